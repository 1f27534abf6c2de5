-- Operations: changes that take time, with what they are doing and how they ended. A target has at most one that is
-- under way. What is needed to undo one is kept until it has ended.
CREATE TABLE operations (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL,
    workspace_id TEXT,
    deployment_id TEXT,
    cluster_id TEXT,
    target_id TEXT NOT NULL,
    target_name TEXT NOT NULL,
    kind TEXT NOT NULL,
    cause TEXT NOT NULL,
    subject_id TEXT,
    state TEXT NOT NULL,
    details TEXT NOT NULL,
    undo TEXT,
    superseded_by TEXT,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT
);
CREATE INDEX operations_by_created ON operations (organization_id, created_at, id);
CREATE INDEX operations_of_target ON operations (target_id, created_at, id);
CREATE UNIQUE INDEX operations_under_way ON operations (target_id) WHERE ended_at IS NULL;
CREATE INDEX operations_ended ON operations (ended_at) WHERE ended_at IS NOT NULL;

-- The operation that a kept answer names in its header.
ALTER TABLE kept_answers ADD COLUMN started_id TEXT;

-- What the planner is told of a table that grows large.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('operations', 'sqlite_autoindex_operations_1', '100000 1'),
    ('operations', 'operations_by_created', '100000 100000 2 1'),
    ('operations', 'operations_of_target', '100000 10 2 1'),
    ('operations', 'operations_under_way', '100 1'),
    ('operations', 'operations_ended', '100000 2');
