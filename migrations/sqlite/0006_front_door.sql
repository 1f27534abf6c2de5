-- The front door: one-time codes that a browser takes to an environment's own origin, what it then holds there, and the
-- ports of environments that have no host name. Values are stored as hashes; `credential_hash` is the token or session
-- that they stand for.
CREATE TABLE door_codes (
    hash TEXT PRIMARY KEY,
    deployment_id TEXT NOT NULL,
    credential_hash TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX door_codes_expiry ON door_codes (expires_at);
CREATE INDEX door_codes_deployment ON door_codes (deployment_id);

CREATE TABLE door_passes (
    hash TEXT PRIMARY KEY,
    deployment_id TEXT NOT NULL,
    credential_hash TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX door_passes_expiry ON door_passes (expires_at);
CREATE INDEX door_passes_deployment ON door_passes (deployment_id);

CREATE TABLE door_ports (
    port BIGINT PRIMARY KEY,
    deployment_id TEXT NOT NULL
);
CREATE UNIQUE INDEX door_ports_deployment ON door_ports (deployment_id);
