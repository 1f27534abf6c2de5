-- The plane that made or connected a cluster, and where removed environments and clusters are: their rows are gone, so the
-- work on them knows.
ALTER TABLE clusters ADD COLUMN plane TEXT;
ALTER TABLE work ADD COLUMN location TEXT;
