"""As much of the PostgreSQL driver as the helper for databases uses: every statement is a run of psql."""

import subprocess
from urllib.parse import urlsplit, urlunsplit


class errors:
    class DependentObjectsStillExist(Exception):
        pass


def literal(value):
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


class sql:
    class SQL(str):
        def format(self, *args, **kwargs):
            return sql.SQL(str.format(self, *args, **kwargs))

    @staticmethod
    def Identifier(name):
        return '"' + name.replace('"', '""') + '"'

    Literal = staticmethod(literal)


class Connection:
    autocommit = False

    def __init__(self, url):
        self.url, self.settings, self.sessions = url, [], []

    def cursor(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def close(self):
        for session in self.sessions:
            session.stdin.close()
            session.wait()

    def hold(self, statement):
        """Runs a statement in a session that lasts as long as this connection."""
        command = ["psql", "--no-psqlrc", "-qtA", "-d", self.url]
        session = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.sessions.append(session)
        session.stdin.write(statement + ";\n\\echo held\n")
        session.stdin.flush()
        while session.stdout.readline() != "held\n":
            pass

    def execute(self, statement, values=()):
        statement = statement % tuple(literal(value) for value in values) if values else str(statement)
        if "pg_advisory_lock" in statement:
            self.hold(statement)
            return
        if statement.startswith("SET "):
            self.settings += ["-c", statement]
        command = ["psql", "--no-psqlrc", "-qtA", "--set", "ON_ERROR_STOP=1", "-d", self.url, *self.settings, "-c", statement]
        ran = subprocess.run(command, capture_output=True, text=True)
        if "depend on it" in ran.stderr:
            raise errors.DependentObjectsStillExist(ran.stderr)
        if ran.returncode:
            raise RuntimeError(ran.stderr.strip())
        self.rows = ran.stdout.split()

    def fetchone(self):
        return self.rows[0] if self.rows else None


def connect(url, dbname=None):
    parts = urlsplit(url)
    return Connection(urlunsplit(parts._replace(path="/" + dbname)) if dbname else url)
