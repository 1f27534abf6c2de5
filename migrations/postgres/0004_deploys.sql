-- Deploys: code on its way to a deployment. The wide rest of one is a document.
CREATE TABLE deploys (
    id TEXT COLLATE "C" PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL,
    deployment_id TEXT COLLATE "C" NOT NULL,
    type TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    image_tag TEXT COLLATE "C" NOT NULL,
    details TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX deploys_image_tag ON deploys (image_tag);
CREATE INDEX deploys_of_deployment ON deploys (deployment_id, created_at, id);

-- What was uploaded for them. The id is the version that finalizing names.
CREATE TABLE uploads (
    id TEXT COLLATE "C" PRIMARY KEY,
    deployment_id TEXT COLLATE "C" NOT NULL,
    deploy_id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    bytes BIGINT NOT NULL,
    unpacked BIGINT NOT NULL,
    entries BIGINT NOT NULL,
    sha256 TEXT COLLATE "C" NOT NULL,
    object_key TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX uploads_of_deploy ON uploads (deploy_id, kind);
CREATE INDEX uploads_of_deployment ON uploads (deployment_id);
