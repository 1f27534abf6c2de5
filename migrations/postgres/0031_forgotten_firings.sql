-- What alerts have found about DAGs that do not run any more, by age.
CREATE INDEX alert_firings_of_dags_by_since ON alert_firings (since) WHERE until IS NULL AND dag_id <> '';
