"""Answers as the web server of Apache Airflow does when everybody is well; not at all while a file says so."""

import datetime
import http.server
import json
import os
import pathlib
import signal
import socket
import sys
import threading
import time

TOLD = pathlib.Path(sys.argv[1])
BASE = os.environ.get("AIRFLOW__API__BASE_URL", "")
# As the launcher does, unless it is to be found by nobody.
SOCKET = 101 if (TOLD / "hidden-socket").exists() else 100
os.dup2(0, SOCKET)


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        while (TOLD / "hang").exists():
            (TOLD / "hanging").touch()
            # Rarely: what hangs does nothing.
            time.sleep(0.2)
        now = datetime.datetime.now(datetime.timezone.utc).isoformat()
        if "/api/v2/dags?" in self.path or "/api/v2/importErrors?" in self.path:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"dags": [], "import_errors": [], "total_entries": 0}')
            return
        if self.path.endswith("/execution/health") and (TOLD / "no-task-api").exists():
            self.send_response(503)
            self.end_headers()
            return
        names = ("scheduler", "triggerer", "dag_processor")
        report = {name: {"status": "healthy", f"latest_{name}_heartbeat": now} for name in names}
        if (TOLD / "no-heartbeat").exists():
            report["scheduler"] = {"status": None, "latest_scheduler_heartbeat": None}
        known = (BASE + "/api/v2/monitor/health", BASE + "/execution/health")
        is_known = self.path in known or self.path.endswith("/health") and not BASE
        self.send_response(200 if is_known else 404)
        self.end_headers()
        self.wfile.write(json.dumps(report).encode())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers, bind_and_activate=False)
server.socket = socket.socket(fileno=SOCKET)
(pathlib.Path(os.environ["PODIUM_STATUS"]) / f"{os.getpid()}.ready").touch()
# Being told to end it finishes what it has begun, as the real one does.
server.daemon_threads = False
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever(poll_interval=0.02)
server.server_close()
