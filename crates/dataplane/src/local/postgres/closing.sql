-- Run by the administrator whenever the server is started or taken over.
SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC', datname) FROM pg_database
  WHERE datname IN ('postgres', 'template1') OR datname LIKE 'podium\_template\_%' \gexec
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE (datname IN ('postgres', 'template1') OR datname LIKE 'podium\_template\_%') AND usename <> current_user;
