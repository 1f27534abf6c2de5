-- Blocks that were sent for archives which nobody has put together yet: what they take is bounded for each deploy,
-- deployment and organization.
CREATE TABLE staged_blocks (
    deploy_id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    block TEXT COLLATE "C" NOT NULL,
    deployment_id TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (deploy_id, kind, block)
);
CREATE INDEX staged_blocks_of_deployment ON staged_blocks (deployment_id);
CREATE INDEX staged_blocks_of_organization ON staged_blocks (organization_id);

-- Deploys that wait to be finalized: few, and asked for with every upload.
CREATE INDEX deploys_waiting ON deploys (organization_id) WHERE status = 'INITIALIZED';
