-- How far the spool of an environment has been read: what it said up to there is in `events`, written in the same
-- transaction. And how much more it may say.
CREATE TABLE event_spools (
    deployment_id TEXT PRIMARY KEY,
    segment BIGINT NOT NULL,
    read_bytes BIGINT NOT NULL,
    dropped BIGINT NOT NULL,
    allowance BIGINT NOT NULL,
    allowed_since BIGINT NOT NULL
);
