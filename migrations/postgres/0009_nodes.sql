-- Machines that run environments, for data planes that are bound to a machine.
CREATE TABLE nodes (
    id TEXT COLLATE "C" PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    first_seen_at BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX nodes_name ON nodes (name);

-- Which node a deployment runs on. It outlives the deployment until the node has cleaned up. An empty node means that
-- the node was forgotten and another one is chosen.
CREATE TABLE placements (
    deployment_id TEXT COLLATE "C" PRIMARY KEY,
    node_id TEXT COLLATE "C" NOT NULL
);
CREATE INDEX placements_of_node ON placements (node_id);

-- Work on a deployment is claimed by the node that runs it; the rest, with an empty node, by anybody.
ALTER TABLE work ADD COLUMN node_id TEXT COLLATE "C" NOT NULL DEFAULT '';
DROP INDEX work_due;
CREATE INDEX work_due ON work (kind, node_id, due_at);
