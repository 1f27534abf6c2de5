-- Environment objects: relations and sort keys are columns, what an object holds is a document, secrets are sealed.
CREATE TABLE environment_objects (
    id TEXT COLLATE "C" PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL,
    scope TEXT COLLATE "C" NOT NULL,
    entity_id TEXT COLLATE "C" NOT NULL,
    object_type TEXT COLLATE "C" NOT NULL,
    object_key TEXT COLLATE "C" NOT NULL,
    unique_key TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
    auto_link BOOLEAN NOT NULL,
    document TEXT COLLATE "C" NOT NULL,
    sealed_secrets BYTEA,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX environment_objects_key ON environment_objects (entity_id, object_type, unique_key);
CREATE INDEX environment_objects_by_created ON environment_objects (organization_id, created_at, id);
CREATE INDEX environment_objects_by_updated ON environment_objects (organization_id, updated_at, id);
CREATE INDEX environment_objects_by_type ON environment_objects (organization_id, object_type, id);
CREATE INDEX environment_objects_by_key ON environment_objects (organization_id, object_key, id);
CREATE INDEX environment_objects_of_entity ON environment_objects (entity_id, created_at, id);

-- The deployments that objects of workspaces are linked to, and what is different there.
CREATE TABLE environment_object_links (
    object_id TEXT COLLATE "C" NOT NULL,
    deployment_id TEXT COLLATE "C" NOT NULL,
    document TEXT COLLATE "C" NOT NULL,
    sealed_secrets BYTEA,
    PRIMARY KEY (object_id, deployment_id)
);
CREATE INDEX environment_object_links_deployment ON environment_object_links (deployment_id);

-- The deployments that objects of workspaces are kept from.
CREATE TABLE environment_object_exclusions (
    object_id TEXT COLLATE "C" NOT NULL,
    deployment_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (object_id, deployment_id)
);
CREATE INDEX environment_object_exclusions_deployment ON environment_object_exclusions (deployment_id);
