-- Sessions of browsers at the console. The cookie is a random value, stored here as a hash; it is no token and opens
-- nothing by itself. `credential_hash` is the token that the session stands for: once that is revoked the session is
-- worth nothing. `is_own` says that this token was made for the session and ends with it.
CREATE TABLE browser_sessions (
    hash TEXT COLLATE "C" PRIMARY KEY,
    credential_hash TEXT COLLATE "C" NOT NULL,
    token_id TEXT COLLATE "C" NOT NULL,
    subject_id TEXT COLLATE "C" NOT NULL,
    is_own BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX browser_sessions_subject ON browser_sessions (subject_id);
CREATE INDEX browser_sessions_expiry ON browser_sessions (expires_at);

-- The session that a code or a pass came from; NULL for a link that a program made with its token.
ALTER TABLE door_codes ADD COLUMN session_hash TEXT COLLATE "C";
ALTER TABLE door_passes ADD COLUMN session_hash TEXT COLLATE "C";
CREATE INDEX door_codes_session ON door_codes (session_hash);
CREATE INDEX door_passes_session ON door_passes (session_hash);
