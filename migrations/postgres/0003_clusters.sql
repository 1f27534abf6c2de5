-- Clusters: relations, filters and sort keys are columns, what their owners have chosen is one document.
DROP TABLE cluster_workspaces;
DROP TABLE clusters;
CREATE TABLE clusters (
    id TEXT COLLATE "C" PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    name_key TEXT COLLATE "C" NOT NULL,
    cluster_type TEXT COLLATE "C" NOT NULL,
    cloud_provider TEXT COLLATE "C" NOT NULL,
    region TEXT COLLATE "C" NOT NULL,
    details TEXT COLLATE "C" NOT NULL,
    wants_failed_over BOOLEAN NOT NULL,
    generation BIGINT NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    status_reason TEXT COLLATE "C" NOT NULL,
    is_failed_over BOOLEAN NOT NULL,
    health TEXT COLLATE "C" NOT NULL,
    metadata TEXT COLLATE "C" NOT NULL,
    observed_generation BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX clusters_name ON clusters (organization_id, name_key);
CREATE INDEX clusters_by_created ON clusters (organization_id, created_at, id);
CREATE INDEX clusters_by_updated ON clusters (organization_id, updated_at, id);
CREATE INDEX clusters_of_provider ON clusters (organization_id, cloud_provider, created_at, id);

-- The only workspaces that a cluster takes; one without rows takes all.
CREATE TABLE cluster_workspaces (
    cluster_id TEXT COLLATE "C" NOT NULL,
    workspace_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (cluster_id, workspace_id)
);
CREATE INDEX cluster_workspaces_workspace ON cluster_workspaces (workspace_id);

CREATE INDEX workspaces_default_cluster ON workspaces (default_cluster_id);
