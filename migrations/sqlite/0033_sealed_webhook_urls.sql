-- URLs of webhooks may hold secrets of their receivers, so they are encrypted. Those from before are in `url` until the
-- server has encrypted them.
ALTER TABLE webhooks ADD COLUMN sealed_url BLOB;
CREATE INDEX webhooks_with_plain_url ON webhooks (id) WHERE sealed_url IS NULL;
