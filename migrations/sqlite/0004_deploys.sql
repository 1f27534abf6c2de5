-- Deploys: code on its way to a deployment. The wide rest of one is a document.
CREATE TABLE deploys (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL,
    deployment_id TEXT NOT NULL,
    type TEXT NOT NULL,
    status TEXT NOT NULL,
    image_tag TEXT NOT NULL,
    details TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);
CREATE UNIQUE INDEX deploys_image_tag ON deploys (image_tag);
CREATE INDEX deploys_of_deployment ON deploys (deployment_id, created_at, id);

-- What was uploaded for them. The id is the version that finalizing names.
CREATE TABLE uploads (
    id TEXT PRIMARY KEY,
    deployment_id TEXT NOT NULL,
    deploy_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    unpacked BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    object_key TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX uploads_of_deploy ON uploads (deploy_id, kind);
CREATE INDEX uploads_of_deployment ON uploads (deployment_id);
