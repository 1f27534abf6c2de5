-- What came of deploys: written once, when the rollout of one ends.
CREATE TABLE deploy_reports (
    deploy_id TEXT COLLATE "C" PRIMARY KEY,
    deployment_id TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    report TEXT COLLATE "C" NOT NULL,
    finished_at BIGINT NOT NULL
);
CREATE INDEX deploy_reports_of_deployment ON deploy_reports (deployment_id);
