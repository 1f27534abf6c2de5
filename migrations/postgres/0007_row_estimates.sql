-- PostgreSQL keeps its own statistics; SQLite is told some here.
SELECT 1;
