-- An applied plan stays for a while, with the response in the place of its calls, so that a client which lost the response
-- gets it by applying the plan again.
ALTER TABLE plans ADD COLUMN applied_at BIGINT;
