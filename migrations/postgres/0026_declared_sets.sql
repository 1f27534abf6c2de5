-- Sets of declared resources: what a file of declarations has made or taken over, so that it may delete that again and nothing
-- else. `members` is a JSON list of kinds and ids.
CREATE TABLE declared_sets (
    id TEXT COLLATE "C" PRIMARY KEY,
    organization_id TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    name_key TEXT COLLATE "C" NOT NULL,
    members TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX declared_sets_name ON declared_sets (organization_id, name_key);
CREATE INDEX declared_sets_created ON declared_sets (organization_id, created_at, id);
CREATE INDEX declared_sets_updated ON declared_sets (organization_id, updated_at, id);
