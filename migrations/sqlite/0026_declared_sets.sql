-- Sets of declared resources: what a file of declarations has made or taken over, so that it may delete that again and nothing
-- else. `members` is a JSON list of kinds and ids.
CREATE TABLE declared_sets (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    members TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);
CREATE UNIQUE INDEX declared_sets_name ON declared_sets (organization_id, name_key);
CREATE INDEX declared_sets_created ON declared_sets (organization_id, created_at, id);
CREATE INDEX declared_sets_updated ON declared_sets (organization_id, updated_at, id);
