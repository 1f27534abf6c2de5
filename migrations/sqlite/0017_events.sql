-- What happened, in order: one row for each event, written in the transaction of its change.
CREATE TABLE events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    transaction_id BIGINT NOT NULL DEFAULT 0,
    at BIGINT NOT NULL,
    event_type TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    workspace_id TEXT,
    deployment_id TEXT,
    audience TEXT NOT NULL,
    data TEXT NOT NULL
);
CREATE INDEX events_order ON events (transaction_id, sequence);
CREATE INDEX events_of_organization ON events (organization_id, transaction_id, sequence);
CREATE INDEX events_of_organization_at ON events (organization_id, at);
CREATE INDEX events_of_workspace ON events (workspace_id, transaction_id, sequence) WHERE workspace_id IS NOT NULL;
CREATE INDEX events_of_deployment ON events (deployment_id, transaction_id, sequence) WHERE deployment_id IS NOT NULL;

-- The last event that was removed because of its age: what is before it can no longer be read in full.
CREATE TABLE event_horizon (
    id BIGINT PRIMARY KEY,
    transaction_id BIGINT NOT NULL,
    sequence BIGINT NOT NULL
);
INSERT INTO event_horizon (id, transaction_id, sequence) VALUES (1, 0, 0);

-- Whether a deploy was seen to run, which is told once. Those from before are not told any more.
ALTER TABLE deploys ADD COLUMN has_run BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE deploys SET has_run = TRUE WHERE status = 'DEPLOYED';
