-- Sessions as their users see them: one row for each sign-in, which says how and from where it began and when it was last
-- used. Whether it still works is not said here: `token_id` is its token in `credentials`, and the session of a browser has
-- its own row in `browser_sessions`, with the same id.
CREATE TABLE user_sessions (
    id TEXT COLLATE "C" PRIMARY KEY,
    user_id TEXT COLLATE "C" NOT NULL,
    token_id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    client_name TEXT COLLATE "C" NOT NULL,
    address TEXT COLLATE "C" NOT NULL,
    user_agent TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    expires_at BIGINT
);
CREATE INDEX user_sessions_created ON user_sessions (user_id, created_at, id);
CREATE INDEX user_sessions_token ON user_sessions (token_id);
CREATE INDEX user_sessions_expiry ON user_sessions (expires_at);

-- A session with a token of its own has the id of that token, and one that was begun with another token has its own.
ALTER TABLE browser_sessions ADD COLUMN id TEXT COLLATE "C";
UPDATE browser_sessions SET id = CASE WHEN is_own <> 0 THEN token_id ELSE 'c' || substr(md5(random()::text || hash), 1, 24) END;
CREATE UNIQUE INDEX browser_sessions_id ON browser_sessions (id);

-- Of those that were there before, it is not known where they began.
INSERT INTO user_sessions (id, user_id, token_id, kind, client_name, address, user_agent, created_at, last_used_at, expires_at)
SELECT b.id, b.subject_id, b.token_id, 'BROWSER', '', '', '', b.created_at, b.created_at, b.expires_at
FROM browser_sessions b JOIN credentials c ON c.hash = b.credential_hash WHERE c.kind = 'SESSION';

-- An id begins with the time at which it was made, in eight digits to the base of 36.
INSERT INTO user_sessions (id, user_id, token_id, kind, client_name, address, user_agent, created_at, last_used_at, expires_at)
SELECT token_id, subject_id, token_id, CASE WHEN expires_at IS NULL THEN 'TOKEN' ELSE 'TERMINAL' END, '', '', '',
    made, made, expires_at
FROM (
    SELECT token_id, subject_id, expires_at,
        (((((((CAST(strpos(digits, substr(token_id, 2, 1)) AS BIGINT) - 1) * 36 + strpos(digits, substr(token_id, 3, 1)) - 1) * 36
        + strpos(digits, substr(token_id, 4, 1)) - 1) * 36 + strpos(digits, substr(token_id, 5, 1)) - 1) * 36
        + strpos(digits, substr(token_id, 6, 1)) - 1) * 36 + strpos(digits, substr(token_id, 7, 1)) - 1) * 36
        + strpos(digits, substr(token_id, 8, 1)) - 1) * 36 + strpos(digits, substr(token_id, 9, 1)) - 1 AS made
    FROM credentials CROSS JOIN (SELECT '0123456789abcdefghijklmnopqrstuvwxyz' AS digits) base
    WHERE kind = 'SESSION' AND token_id NOT IN (SELECT id FROM browser_sessions)
) sessions;
