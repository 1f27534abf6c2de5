-- When the history of an environment was last cleaned up: what was missed meanwhile is due at once, and once.
CREATE TABLE clean_ups (
    deployment_id TEXT COLLATE "C" PRIMARY KEY,
    began_at BIGINT NOT NULL
);
