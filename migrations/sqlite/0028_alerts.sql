-- Alerts: what to watch for, and whom to tell. Like a webhook, each has come to a position of the stream of events. It may
-- send so many notices more, which are earned with time.
CREATE TABLE alerts (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    description TEXT NOT NULL,
    kind TEXT NOT NULL,
    rule TEXT NOT NULL,
    is_enabled BOOLEAN NOT NULL,
    mail_failing_since BIGINT,
    transaction_id BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    notices_left BIGINT NOT NULL,
    notices_since BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);
CREATE UNIQUE INDEX alerts_name ON alerts (organization_id, name_key);
CREATE INDEX alerts_by_created ON alerts (organization_id, created_at, id);
CREATE INDEX alerts_by_updated ON alerts (organization_id, updated_at, id);
CREATE INDEX alerts_enabled ON alerts (organization_id) WHERE is_enabled;

-- What may become a firing at a time, unless it ends before: a deployment that is unhealthy, a DAG run that goes on. One
-- whose time has come and that goes on has none any more.
CREATE TABLE alert_watches (
    alert_id TEXT NOT NULL,
    subject_key TEXT NOT NULL,
    run_id TEXT NOT NULL,
    subject_type TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    subject_name TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    deployment_id TEXT NOT NULL,
    dag_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    since BIGINT NOT NULL,
    due_at BIGINT,
    PRIMARY KEY (alert_id, subject_key, run_id)
);
CREATE INDEX alert_watches_due ON alert_watches (alert_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX alert_watches_of_deployment ON alert_watches (alert_id, deployment_id);
CREATE INDEX alert_watches_by_since ON alert_watches (since);

-- What alerts have found. One that goes on has no end, and there is one for each subject.
CREATE TABLE alert_firings (
    id TEXT PRIMARY KEY,
    alert_id TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    subject_key TEXT NOT NULL,
    run_id TEXT NOT NULL,
    subject_type TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    subject_name TEXT NOT NULL,
    workspace_id TEXT NOT NULL,
    deployment_id TEXT NOT NULL,
    dag_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    since BIGINT NOT NULL,
    until BIGINT,
    count BIGINT NOT NULL,
    is_told BOOLEAN NOT NULL,
    untold_since BIGINT,
    last_notice_at BIGINT
);
CREATE UNIQUE INDEX alert_firings_open ON alert_firings (alert_id, subject_key) WHERE until IS NULL;
CREATE INDEX alert_firings_of_subject ON alert_firings (alert_id, subject_key);
CREATE INDEX alert_firings_of_deployment ON alert_firings (alert_id, deployment_id) WHERE until IS NULL;
CREATE INDEX alert_firings_untold ON alert_firings (alert_id, untold_since) WHERE untold_since IS NOT NULL;
CREATE INDEX alert_firings_by_since ON alert_firings (alert_id, since, id);
CREATE INDEX alert_firings_ended ON alert_firings (alert_id, until) WHERE until IS NOT NULL;
CREATE INDEX alert_firings_by_until ON alert_firings (until) WHERE until IS NOT NULL;

-- Mails that wait to be sent.
CREATE TABLE alert_mails (
    id TEXT PRIMARY KEY,
    alert_id TEXT NOT NULL,
    recipient TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    due_at BIGINT NOT NULL
);
CREATE INDEX alert_mails_due ON alert_mails (alert_id, due_at, id);

-- What new and changed alerts look for.
CREATE INDEX deployments_unhealthy ON deployments (organization_id) WHERE status = 'UNHEALTHY';
CREATE INDEX api_tokens_expiring ON api_tokens (organization_id, end_at) WHERE end_at IS NOT NULL;
