-- Webhooks: where events are sent. Each has come to a position of the stream; what it has taken from there is a delivery.
CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    description TEXT NOT NULL,
    url TEXT NOT NULL,
    filter TEXT NOT NULL,
    is_enabled BOOLEAN NOT NULL,
    disabled_reason TEXT NOT NULL,
    failing_since BIGINT,
    sealed_secret BLOB NOT NULL,
    sealed_previous_secret BLOB,
    previous_secret_expires_at BIGINT,
    transaction_id BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    pending BIGINT NOT NULL,
    kept BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);
CREATE UNIQUE INDEX webhooks_name ON webhooks (organization_id, name_key);
CREATE INDEX webhooks_by_created ON webhooks (organization_id, created_at, id);
CREATE INDEX webhooks_by_updated ON webhooks (organization_id, updated_at, id);
CREATE INDEX webhooks_with_previous_secret ON webhooks (previous_secret_expires_at)
    WHERE previous_secret_expires_at IS NOT NULL;
CREATE INDEX webhooks_enabled ON webhooks (organization_id) WHERE is_enabled;

-- One event for one webhook, and the last attempt to send it.
CREATE TABLE webhook_deliveries (
    id TEXT PRIMARY KEY,
    webhook_id TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    transaction_id BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    event_type TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    next_attempt_at BIGINT,
    last_attempt_at BIGINT,
    last_status BIGINT,
    last_duration BIGINT,
    last_response TEXT NOT NULL,
    last_error TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX webhook_deliveries_of_event ON webhook_deliveries (webhook_id, transaction_id, sequence);
CREATE INDEX webhook_deliveries_in_state ON webhook_deliveries (webhook_id, state, transaction_id, sequence);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, next_attempt_at, transaction_id, sequence)
    WHERE next_attempt_at IS NOT NULL;
CREATE INDEX webhook_deliveries_by_created ON webhook_deliveries (created_at);
