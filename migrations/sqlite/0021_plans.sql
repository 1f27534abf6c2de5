-- Plans of changes: calls that were tried and taken back, to be made once. `document` has the calls, whose bodies may hold
-- secrets, and what they were found to do, so it is sealed as a whole.
CREATE TABLE plans (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    document BLOB NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX plans_of_subject ON plans (organization_id, subject_id);
CREATE INDEX plans_expiry ON plans (expires_at);
