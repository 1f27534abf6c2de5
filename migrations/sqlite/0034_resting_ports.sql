-- When a port was last an environment's, and whose: pages of that environment may still be open in browsers, at the same origin.
CREATE TABLE resting_ports (
    port BIGINT PRIMARY KEY,
    deployment_id TEXT NOT NULL,
    released_at BIGINT NOT NULL
);
