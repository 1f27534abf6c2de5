"""Creates and drops the metadata database of an environment on a PostgreSQL server.

Told by environment variables, because they hold secrets: those in TOLD. The environment's role owns its database and can connect to no
other.

Whoever owns a database decides what statements in it mean: with functions, triggers and settings. So the administrator never
connects to one that an environment can connect to. A database is made under another name, closed to everybody else, and gets
its name and its owner once nothing is left to do in it.
"""

import os
import subprocess
import sys
from contextlib import closing

import psycopg2
from psycopg2 import errors, sql

TOLD = ("ADMIN_URL", "DATABASE", "PASSWORD", "TEMPLATE", "CONNECTIONS")

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
    with connection.cursor() as cursor:
        cursor.execute("SET search_path = pg_catalog")
    return connection


def exists(cursor, query, name):
    cursor.execute(query, [name])
    return cursor.fetchone() is not None


def has_database(cursor, name):
    return exists(cursor, "SELECT 1 FROM pg_database WHERE datname = %s", name)


def has_role(cursor, name):
    return exists(cursor, "SELECT 1 FROM pg_roles WHERE rolname = %s", name)


def draft_of(name):
    """No environment has a database of this name: there is no hyphen in theirs."""
    return name + "-draft"


def run(cursor, statement, *names):
    cursor.execute(sql.SQL(statement).format(*(sql.Identifier(name) for name in names)))


def make_draft(cursor, name, template):
    """Creates a database that only its administrator can connect to, at no time anybody else."""
    draft = draft_of(name)
    run(cursor, "DROP DATABASE IF EXISTS {} WITH (FORCE)", draft)
    run(cursor, "CREATE DATABASE {} TEMPLATE {} ALLOW_CONNECTIONS false", draft, template)
    run(cursor, "REVOKE ALL ON DATABASE {} FROM PUBLIC", draft)
    run(cursor, "ALTER DATABASE {} ALLOW_CONNECTIONS true", draft)
    return draft


def template():
    """Creates a template unless it exists: a draft that the command in the arguments migrates, and that is closed for good."""
    name = os.environ["TEMPLATE"]
    with closing(connect()) as connection, connection.cursor() as cursor:
        # Another server may be making it. Its session holds the lock, however it ends.
        cursor.execute("SELECT pg_advisory_lock(hashtext(%s))", [name])
        # One that could be connected to is of an earlier version, and may hold whatever anybody has put there.
        if exists(cursor, "SELECT 1 FROM pg_database WHERE datname = %s AND NOT datallowconn", name):
            return
        for earlier in (name, name + "_draft"):
            run(cursor, "DROP DATABASE IF EXISTS {} WITH (FORCE)", earlier)
        draft = make_draft(cursor, name, "template0")
        others = {key: value for key, value in os.environ.items() if key not in TOLD}
        migrated = subprocess.run(sys.argv[2:], env=others, umask=0o022)
        if migrated.returncode:
            sys.exit(1)
        run(cursor, "ALTER DATABASE {} ALLOW_CONNECTIONS false", draft)
        run(cursor, "ALTER DATABASE {} RENAME TO {}", draft, name)


def ensure():
    name, password = os.environ["DATABASE"], os.environ["PASSWORD"]
    role = sql.Identifier(name)
    with closing(connect()) as connection, connection.cursor() as cursor:
        verb = "ALTER" if has_role(cursor, name) else "CREATE"
        most = sql.Literal(int(os.environ.get("CONNECTIONS", "-1")))
        statement = sql.SQL(verb + " ROLE {} LOGIN PASSWORD {} CONNECTION LIMIT {}")
        cursor.execute(statement.format(role, sql.Literal(password), most))
        if not has_database(cursor, name):
            draft = make_draft(cursor, name, os.environ["TEMPLATE"])
            with closing(connect(draft)) as inside, inside.cursor() as there:
                run(there, "ALTER SCHEMA public OWNER TO {}", name)
                there.execute(sql.SQL(OWN).format(role=role))
            run(cursor, "ALTER DATABASE {} RENAME TO {}", draft, name)
        # Every time: an earlier run may have been interrupted here.
        run(cursor, "ALTER DATABASE {} OWNER TO {}", name, name)


def drop():
    name = os.environ["DATABASE"]
    with closing(connect()) as connection, connection.cursor() as cursor:
        for database in (name, draft_of(name)):
            run(cursor, "DROP DATABASE IF EXISTS {} WITH (FORCE)", database)
        if not has_role(cursor, name):
            return
        # What others let it do with their databases.
        run(cursor, "DROP OWNED BY {}", name)
        try:
            run(cursor, "DROP ROLE {}", name)
        except errors.DependentObjectsStillExist:
            # It has left something in another environment's database, where only that one may look.
            run(cursor, "ALTER ROLE {} NOLOGIN PASSWORD NULL", name)


if __name__ == "__main__":
    {"template": template, "ensure": ensure, "drop": drop}[sys.argv[1]]()
