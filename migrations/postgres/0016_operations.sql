-- Operations: changes that take time, with what they are doing and how they ended. A target has at most one that is
-- under way. What is needed to undo one is kept until it has ended.
CREATE TABLE operations (
    id TEXT COLLATE "C" PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C",
    deployment_id TEXT COLLATE "C",
    cluster_id TEXT COLLATE "C",
    target_id TEXT COLLATE "C" NOT NULL,
    target_name TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    cause TEXT COLLATE "C" NOT NULL,
    subject_id TEXT COLLATE "C",
    state TEXT COLLATE "C" NOT NULL,
    details TEXT COLLATE "C" NOT NULL,
    undo TEXT COLLATE "C",
    superseded_by TEXT COLLATE "C",
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
ALTER TABLE kept_answers ADD COLUMN started_id TEXT COLLATE "C";
