"""Starts a component of Apache Airflow: `python podium_launch.py COMMAND...`, with the commands of `airflow`.

Web servers get their listening socket from the supervisor, as standard input. It is theirs from the first moment, stays
open while they restart, and a new one can take over from an old one without a refused connection. Where the environment
has a network of its own they get the socket in there as well, which tasks connect to.
"""

import os
import socket
import sys

# Where the supervisor finds the socket after it was restarted.
SOCKET = 100


def _let_supervisor_copy() -> None:
    """Some kernels (Yama) let only the parent of a process copy its descriptors, and the supervisor may not be the parent."""
    import ctypes

    set_ptracer, anybody = 0x59616D61, ctypes.c_ulong(-1)
    ctypes.CDLL(None).prctl(set_ptracer, anybody, 0, 0, 0)


def _inner_socket() -> list[int]:
    number = os.environ.pop("PODIUM_INNER_SOCKET", None)
    if number is None:
        return []
    os.set_inheritable(int(number), False)
    return [int(number)]


def _take_socket() -> None:
    _let_supervisor_copy()
    os.dup2(0, SOCKET, inheritable=False)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)


def _api_server() -> None:
    _take_socket()
    listeners = [socket.socket(fileno=number) for number in [SOCKET, *_inner_socket()]]

    import uvicorn

    from podium_airflow import signals

    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            begin = self.lifespan.startup

            async def begin_and_build():
                await begin()
                await _build_execution_api(self.config.loaded_app)

            self.lifespan.startup = begin_and_build
            await super().startup(sockets=sockets)
            if self.started:
                signals.ready()

    def run(app, **options):
        for name in ("host", "port", "workers", "timeout_worker_healthcheck"):
            options.pop(name, None)
        Server(uvicorn.Config(app, **options)).run(sockets=listeners)

    uvicorn.run = run
    _airflow()


async def _build_execution_api(app) -> None:
    """Airflow initializes its task API on the first request, and blocks meanwhile: better before it serves."""
    from airflow.configuration import conf

    base = conf.get("api", "base_url", fallback="").rstrip("/")
    path = f"{base}/execution/health"
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 0),
    }

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_):
        pass

    try:
        await app(scope, receive, send)
    except Exception as error:  # It is built by the first task then.
        print(f"The interface for tasks was not built ahead: {error!r}", file=sys.stderr)


def _webserver() -> None:
    _take_socket()
    sockets = [SOCKET, *_inner_socket()]

    import subprocess

    class Popen(subprocess.Popen):
        """Hands the sockets to gunicorn."""

        def __init__(self, command, *args, **kwargs):
            if isinstance(command, list) and "gunicorn" in command and "--bind" in command:
                command = list(command)
                place = command.index("--bind")
                command[place : place + 2] = [part for number in sockets for part in ("--bind", f"fd://{number}")]
                kwargs["pass_fds"] = tuple(sockets)
            super().__init__(command, *args, **kwargs)

    subprocess.Popen = Popen
    _airflow()


def _celery() -> None:
    from celery.signals import heartbeat_sent

    from podium_airflow import signals

    component = os.environ.get("PODIUM_COMPONENT", "worker")

    @heartbeat_sent.connect(weak=False)
    def still_consuming(**_):
        signals.progress(component)

    _airflow()


def _airflow() -> None:
    from airflow.__main__ import main

    main()


STARTS = {"api-server": _api_server, "webserver": _webserver, "celery": _celery}


def main() -> None:
    sys.argv[0] = "airflow"
    STARTS.get(sys.argv[1], _airflow)()


if __name__ == "__main__":
    main()
