-- Deployments: relations and sort keys are columns, the desired state is one document.
DROP TABLE deployments;
CREATE TABLE deployments (
    id TEXT COLLATE "C" PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    cluster_id TEXT COLLATE "C",
    name TEXT COLLATE "C" NOT NULL,
    name_key TEXT COLLATE "C" NOT NULL,
    namespace TEXT COLLATE "C" NOT NULL,
    spec TEXT COLLATE "C" NOT NULL,
    generation BIGINT NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    status_reason TEXT COLLATE "C" NOT NULL,
    observed TEXT COLLATE "C" NOT NULL,
    observed_generation BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX deployments_name ON deployments (workspace_id, name_key);
CREATE UNIQUE INDEX deployments_namespace ON deployments (namespace);
CREATE INDEX deployments_by_created ON deployments (organization_id, created_at, id);
CREATE INDEX deployments_by_updated ON deployments (organization_id, updated_at, id);
CREATE INDEX deployments_by_name ON deployments (organization_id, name_key, id);
CREATE INDEX deployments_of_workspace ON deployments (workspace_id, created_at, id);
CREATE INDEX deployments_of_cluster ON deployments (cluster_id, workspace_id);

-- What the loops have to look at, and when. A row that is held is due when its lease ends.
CREATE TABLE work (
    kind TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    due_at BIGINT NOT NULL,
    since BIGINT NOT NULL,
    signal BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    holder TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (kind, id)
);
CREATE INDEX work_due ON work (kind, due_at);

-- What remote workers call with: one deployment's own tokens, which open its agent endpoints and nothing else.
CREATE TABLE agent_tokens (
    id TEXT COLLATE "C" PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL,
    deployment_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    name_key TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
    short_token TEXT COLLATE "C" NOT NULL,
    expiry_period_in_days BIGINT,
    start_at BIGINT NOT NULL,
    end_at BIGINT,
    last_used_at BIGINT,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX agent_tokens_name ON agent_tokens (deployment_id, name_key);
CREATE INDEX agent_tokens_by_created ON agent_tokens (deployment_id, created_at, id);
