-- What happened, in order: one row for each event, written in the transaction of its change.
CREATE TABLE events (
    sequence BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    transaction_id BIGINT NOT NULL DEFAULT (pg_current_xact_id()::text::bigint),
    at BIGINT NOT NULL,
    event_type TEXT COLLATE "C" NOT NULL,
    subject_id TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C",
    deployment_id TEXT COLLATE "C",
    audience TEXT COLLATE "C" NOT NULL,
    data TEXT COLLATE "C" NOT NULL
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
