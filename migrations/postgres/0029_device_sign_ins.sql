-- Terminals that wait for a person to sign them in with a browser. The code that the terminal polls with is stored as a hash,
-- the one that the person types as a keyed hash. `credential_hash` is the token of whoever approved it, without which the
-- approval is worth nothing.
CREATE TABLE device_sign_ins (
    hash TEXT COLLATE "C" PRIMARY KEY,
    user_code_hash TEXT COLLATE "C" NOT NULL,
    place TEXT COLLATE "C" NOT NULL,
    site TEXT COLLATE "C" NOT NULL,
    address TEXT NOT NULL,
    client_name TEXT NOT NULL,
    user_agent TEXT NOT NULL,
    decision TEXT COLLATE "C",
    user_id TEXT COLLATE "C",
    credential_hash TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX device_sign_ins_user_code ON device_sign_ins (user_code_hash);
CREATE INDEX device_sign_ins_place ON device_sign_ins (place, expires_at);
CREATE INDEX device_sign_ins_site ON device_sign_ins (site, expires_at);
CREATE INDEX device_sign_ins_expiry ON device_sign_ins (expires_at);
CREATE INDEX device_sign_ins_user ON device_sign_ins (user_id);
