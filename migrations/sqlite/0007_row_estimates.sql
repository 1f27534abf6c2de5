-- What the planner is told of tables that grow large. Without it a list of a few names or ids walks its whole
-- organization in the order of the list; measured once by ANALYZE it would keep the sizes of that day.
ANALYZE deployments;
DELETE FROM sqlite_stat1 WHERE tbl IN ('deployments', 'workspaces', 'teams');
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('deployments', 'sqlite_autoindex_deployments_1', '100000 1'),
    ('deployments', 'deployments_name', '100000 100 1'),
    ('deployments', 'deployments_namespace', '100000 1'),
    ('deployments', 'deployments_by_created', '100000 100000 2 1'),
    ('deployments', 'deployments_by_updated', '100000 100000 2 1'),
    ('deployments', 'deployments_by_name', '100000 100000 2 1'),
    ('deployments', 'deployments_of_workspace', '100000 100 2 1'),
    ('deployments', 'deployments_of_cluster', '100000 10000 1000'),
    ('workspaces', 'sqlite_autoindex_workspaces_1', '100000 1'),
    ('workspaces', 'workspaces_name', '100000 100000 1'),
    ('workspaces', 'workspaces_created', '100000 100000 2 1'),
    ('workspaces', 'workspaces_updated', '100000 100000 2 1'),
    ('workspaces', 'workspaces_default_cluster', '100000 10000'),
    ('teams', 'sqlite_autoindex_teams_1', '100000 1'),
    ('teams', 'teams_name', '100000 100000 1'),
    ('teams', 'teams_created', '100000 100000 2 1'),
    ('teams', 'teams_updated', '100000 100000 2 1'),
    ('teams', 'teams_description', '100000 100000 100 1');
