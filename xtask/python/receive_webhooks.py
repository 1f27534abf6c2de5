"""Receives events from a served program, and verifies them with the published library of Standard Webhooks.

Usage: receive_webhooks.py URL TOKEN
"""

import json
import queue
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

BASE, TOKEN = sys.argv[1:]
# Long enough that only a hang exceeds it.
PATIENCE = 120
received = queue.Queue()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        received.put(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def call(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    request = urllib.request.Request(f"{BASE}/v1{path}", data, headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=PATIENCE) as response:
        text = response.read()
    return json.loads(text) if text else None


def refused(secret, body, headers):
    try:
        Webhook(secret).verify(body, headers)
    except WebhookVerificationError:
        return True
    return False


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    organization = "/organizations/" + call("/organizations")["organizations"][0]["id"]
    url = f"http://127.0.0.1:{server.server_port}/hook"
    types = ["podium.team.*"]
    webhook = call(f"{organization}/webhooks", {"name": "verified", "url": url, "eventTypes": types})
    call(f"{organization}/teams", {"name": "verified by a library"})
    headers, body = received.get(timeout=PATIENCE)
    event = Webhook(webhook["secret"]).verify(body, headers)
    assert event["type"] == "podium.team.created", event
    assert event["data"]["resource"]["name"] == "verified by a library", event
    assert event["id"] == headers["webhook-id"], headers
    assert refused(webhook["secret"], body.replace(b"library", b"liberty"), headers), "a changed body"
    later = {**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)}
    assert refused(webhook["secret"], body, later), "a changed time"
    other = {**headers, "webhook-id": "0-1"}
    assert refused(webhook["secret"], body, other), "a changed id"

    path = f"{organization}/webhooks/{webhook['id']}"
    rotated = call(f"{path}/rotate-secret", {})
    assert refused(rotated["secret"], body, headers), "another secret"
    call(f"{path}/test", {})
    headers, body = received.get(timeout=PATIENCE)
    for secret in [webhook["secret"], rotated["secret"]]:
        assert Webhook(secret).verify(body, headers)["type"] == "podium.webhook.tested"
    print("two events verified, under both secrets, and four forgeries refused")


main()
