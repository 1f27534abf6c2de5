"""Creates and drops the metadata database of an environment on a PostgreSQL server.

Told by environment variables, because they hold secrets: ADMIN_URL, DATABASE, PASSWORD, TEMPLATE, CONNECTIONS. The environment's role
owns its database and can connect to no other.
"""

import os
import sys
from contextlib import closing

import psycopg2
from psycopg2 import sql

OWN = """
DO $$ DECLARE thing record; BEGIN
  FOR thing IN SELECT c.oid::regclass AS name FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')
  LOOP EXECUTE format('ALTER TABLE %s OWNER TO {role}', thing.name); END LOOP;
  FOR thing IN SELECT c.oid::regclass AS name FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'S'
      AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype IN ('a', 'i'))
  LOOP EXECUTE format('ALTER SEQUENCE %s OWNER TO {role}', thing.name); END LOOP;
  FOR thing IN SELECT t.oid::regtype AS name FROM pg_type t
    WHERE t.typnamespace = 'public'::regnamespace AND t.typtype = 'e'
  LOOP EXECUTE format('ALTER TYPE %s OWNER TO {role}', thing.name); END LOOP;
END $$
"""


def connect(database=None):
    options = {"dbname": database} if database else {}
    connection = psycopg2.connect(os.environ["ADMIN_URL"], **options)
    connection.autocommit = True
    return connection


def exists(cursor, query, name):
    cursor.execute(query, [name])
    return cursor.fetchone() is not None


def has_database(cursor, name):
    return exists(cursor, "SELECT 1 FROM pg_database WHERE datname = %s", name)


def has_role(cursor, name):
    return exists(cursor, "SELECT 1 FROM pg_roles WHERE rolname = %s", name)


def template():
    """Creates an empty database for a template, which the caller migrates. Prints whether the template exists already."""
    name = os.environ["TEMPLATE"]
    draft = sql.Identifier(name + "_draft")
    with closing(connect()) as connection, connection.cursor() as cursor:
        if has_database(cursor, name):
            print("there")
            return
        cursor.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(draft))
        cursor.execute(sql.SQL("CREATE DATABASE {}").format(draft))
        print("new")


def keep():
    """Renames a migrated draft to the template, atomically."""
    name = os.environ["TEMPLATE"]
    statement = sql.SQL("ALTER DATABASE {} RENAME TO {}")
    with closing(connect()) as connection, connection.cursor() as cursor:
        cursor.execute(statement.format(sql.Identifier(name + "_draft"), sql.Identifier(name)))


def ensure():
    name, password = os.environ["DATABASE"], os.environ["PASSWORD"]
    role = sql.Identifier(name)
    with closing(connect()) as connection, connection.cursor() as cursor:
        verb = "ALTER" if has_role(cursor, name) else "CREATE"
        most = sql.Literal(int(os.environ.get("CONNECTIONS", "-1")))
        statement = sql.SQL(verb + " ROLE {} LOGIN PASSWORD {} CONNECTION LIMIT {}")
        cursor.execute(statement.format(role, sql.Literal(password), most))
        if not has_database(cursor, name):
            statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
            cursor.execute(statement.format(role, sql.Identifier(os.environ["TEMPLATE"])))
        # Every time: an earlier run may have been interrupted here.
        cursor.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(role))
        cursor.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(role, role))
    with closing(connect(name)) as connection, connection.cursor() as cursor:
        cursor.execute(sql.SQL("ALTER SCHEMA public OWNER TO {}").format(role))
        cursor.execute(sql.SQL(OWN).format(role=role))


def drop():
    name = sql.Identifier(os.environ["DATABASE"])
    with closing(connect()) as connection, connection.cursor() as cursor:
        cursor.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
        cursor.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(name))


if __name__ == "__main__":
    {"template": template, "keep": keep, "ensure": ensure, "drop": drop}[sys.argv[1]]()
