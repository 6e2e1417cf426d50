# SPDX-License-Identifier: Apache-2.0
"""A lessord that says of one lease whatever a test wants, when it wants it: what the core decides is judged elsewhere."""

import contextlib
import http.server
import json
import os
import shutil
import socketserver
import tempfile
import threading
import urllib.parse

DEVICE = "GPU-11111111-2222-3333-4444-555555555555"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self):
        return "unix"

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True

    def handle_any(self):
        n = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(n) or "{}")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.answer(*self.server.desk.ask(self.command, self.path, body))

    do_GET = do_POST = do_DELETE = do_PATCH = handle_any


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False


class Desk:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="lessor-s-", dir="/tmp")
        self.socket = os.path.join(self.dir, "s")
        self.changed = threading.Condition()
        self.lease = None
        self.number = 0
        self.rev = 0
        self.heard = 0
        self.said = []  # (what, body)
        self.grants = True
        self.server = Server(self.socket, Handler)
        self.server.desk = self
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        shutil.rmtree(self.dir, ignore_errors=True)  # who is just ending may still write or remove there

    def become(self, state, **park):
        """The lease is in this state from now on, and whoever follows it has heard so."""
        with self.changed:
            self._become(state, park or None)
            rev = self.rev
            if not self.changed.wait_for(lambda: self.heard >= rev or self.lease["state"] == "ended", 60):
                raise AssertionError(f"nobody asks what became of it after {state}")

    def asks(self, way, **more):
        self.become("asking", **{"step": "asking", "way": way, "cause": "plan", "for": "L7", "for_user": "alice",
                                 "for_priority": "interactive", "deadline_ms": 30000, "expected_back_ms": 240000, **more})

    def parks(self, way, **more):
        self.become("parked", **{"step": "out", "way": way, "cause": "plan", "for": "L7", "for_user": "alice",
                                 "for_priority": "interactive", "deadline_ms": None, "expected_back_ms": 240000, **more})

    def thaws(self, way):
        self.become("thawing", step="restoring", way=way, cause="plan")

    def _become(self, state, park=None):
        self.rev += 1
        self.lease.update(state=state, rev=self.rev, park=park)
        self.changed.notify_all()

    def wait_said(self, what, n=1, patience_s=60):
        with self.changed:
            if not self.changed.wait_for(lambda: sum(w == what for w, _ in self.said) >= n, patience_s):
                raise AssertionError(f"{what} was not said {n} times, but {self.said}")
            return [body for w, body in self.said if w == what][n - 1]

    def n_said(self, what):
        with self.changed:
            return sum(w == what for w, _ in self.said)

    # ---- what it answers ----

    def ask(self, method, path, body):
        url = urllib.parse.urlparse(path)
        query = dict(urllib.parse.parse_qsl(url.query))
        with self.changed:
            if url.path == "/api/devices":
                return 200, {"devices": [{"uuid": DEVICE, "pci_bus_id": "00000000:01:00.0", "holders": []}]}
            if url.path == "/api/events":
                return 200, {"events": [], "next": self.rev}
            if method == "POST" and url.path == "/api/leases":
                return self._grant(body)
            if not self.lease or url.path.split("/")[3] != self.lease["id"]:
                return 404, {"type": "urn:lessor:problem:not-found", "status": 404, "title": "gone"}
            if method == "GET":
                return self._look(query)
            return self._do(method, url.path.rpartition("/")[2], body)

    def _grant(self, body):
        self.number += 1
        self.rev += 1
        self.said.append(("ask", body))
        self.lease = {"id": f"L{self.number}", "state": "granted", "rev": self.rev, "device": DEVICE, "bytes": 1 << 20,
                      "priority": 5, "park": None, "binding": {"to": "process", "pid": body["bind"].get("pid")}}
        self.changed.notify_all()
        return 202, dict(self.lease)

    def _look(self, query):
        after = int(query.get("after", -1))
        self.heard = max(self.heard, after)
        self.changed.notify_all()
        self.changed.wait_for(lambda: self.lease["rev"] > after, int(query.get("wait_ms", 0)) / 1000)
        if self.lease["state"] == "ended":
            return 410, {"type": "urn:lessor:problem:ended", "status": 410, "title": "over"}
        return 200, dict(self.lease)

    def _do(self, method, what, body):
        if method == "DELETE":
            what = "release"
        self.said.append((what, body))
        if what == "release":
            self._become("ended")
        elif what == "activate":
            self._become("active")
        self.changed.notify_all()
        return 200, dict(self.lease)
