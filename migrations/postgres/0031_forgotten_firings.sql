-- When something that alerts have found has last happened again, and what they have found about DAGs, by that time: those that do
-- not run any more are forgotten.
ALTER TABLE alert_firings ADD COLUMN last_at BIGINT;
CREATE INDEX alert_firings_of_dags_by_last ON alert_firings (COALESCE(last_at, since)) WHERE until IS NULL AND dag_id <> '';
