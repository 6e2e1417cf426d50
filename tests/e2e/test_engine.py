# SPDX-License-Identifier: Apache-2.0
"""Adopted containers are stopped and started through their engine's socket, whatever that one answers.

The engine is scripted, behind a real unix socket; its containers are real processes on the simulated card, in cgroups as
Docker names them.
"""

import contextlib
import http.server
import json
import os
import secrets
import signal
import socketserver
import subprocess
import threading
import urllib.parse

import pytest

from lessor_fixtures import MIB, NOBODY_LIKE_UIDS, PATIENCE_S, SIMGPU, needs_root, until
from managers_fixtures import Managed, managed  # noqa: F401 - a fixture
from scripted_bus import procs, removed, uid_of
from test_limits import System

pytestmark = needs_root
ALICE = NOBODY_LIKE_UIDS[0]


class Box:
    """A container."""

    def __init__(self, above, env, container_id=None):
        self.id, self.env, self.process = container_id or secrets.token_hex(32), env, None
        self.folder = os.path.join(above, f"docker-{self.id}.scope")
        self.restarting = self.removed_at_end = False

    def run(self, argv=(SIMGPU, "run", "--", SIMGPU, "hog", "--alloc", "200M")):
        os.mkdir(self.folder)
        script = 'echo $$ > "$1/cgroup.procs" && shift && exec "$@"'
        self.process = subprocess.Popen(["sh", "-c", script, "sh", self.folder, *argv], env=self.env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL)
        until("it is in its cgroup", lambda: str(self.process.pid) in procs(self.folder))

    def end(self):
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE_S)
            self.process = None
        if os.path.isdir(self.folder):
            until("its cgroup is empty", lambda: removed(self.folder))

    def state(self):
        return {"Id": self.id, "Name": "/train", "Config": {"Image": "train", "Labels": {}},
                "HostConfig": {"AutoRemove": self.removed_at_end},
                "State": {"Running": self.process is not None, "Restarting": self.restarting,
                          "Pid": self.process.pid if self.process else 0}}


class Engine(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def __init__(self, path):
        self.boxes, self.asked = {}, []
        self.on_stop, self.on_start, self.on_look = stops, starts, looks
        super().__init__(path, Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def posts(self):
        return [path.split("/")[3] for method, path in self.asked if method == "POST"]


class Handler(http.server.BaseHTTPRequestHandler):
    def address_string(self):
        return "unix"

    def log_message(self, format, *args):  # noqa: A002 - the name is the base class's
        pass

    def answer(self, status, body=None):
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def serve(self, behave):
        self.server.asked.append((self.command, self.path))
        box = self.server.boxes.get(self.path.split("/")[2])
        if not box:
            self.answer(404, {"message": "No such container"})
            return
        with contextlib.suppress(BrokenPipeError):
            behave(self, box)

    def do_GET(self):
        self.serve(self.server.on_look)

    def do_POST(self):
        self.serve(self.server.on_stop if "/stop" in self.path else self.server.on_start)


def looks(handler, box):
    handler.answer(200, box.state())


def stops(handler, box):
    running = box.process is not None
    box.end()
    handler.answer(204 if running else 304)


def starts(handler, box):
    running = box.process is not None
    if not running:
        box.run()
    handler.answer(304 if running else 204)


def forbids(handler, box):
    handler.answer(403, {"message": "authorization denied by plugin"})


def fails(handler, box):
    handler.answer(500, {"message": "cannot kill container: permission denied"})


def breaks_off(handler, box):
    handler.connection.close()


def stops_and_breaks_off(handler, box):
    box.end()
    handler.connection.close()


def is_stopped_and_runs_again(handler, box):
    box.end()
    box.run()
    handler.answer(204)


def says(text):
    def behave(handler, box):
        handler.wfile.write(text)
    return behave


@pytest.fixture
def engine(managed):
    e = Engine(os.path.join(managed.place.dir, "engine.sock"))
    yield e
    for box in e.boxes.values():
        box.end()
    e.shutdown()
    e.server_close()


@pytest.fixture
def box(managed, engine):
    """One that runs, and lessord, which knows its engine."""
    b = Box(managed.folders.below("lessor-test.slice"), managed.place.env)
    engine.boxes[b.id] = b
    b.run()
    managed.start(f"engine_socket = {engine.server_address}\n")
    yield b
    if os.path.isdir(b.folder):
        b.end()


def adopted(managed, box):
    return managed.adopted(box.process.pid), managed.demand()


def test_container_gives_way_is_stopped_by_its_engine_and_started_again(managed, engine, box):
    first = box.process.pid
    lease, who = adopted(managed, box)
    managed.wait_state(who, "granted")
    assert managed.wait_state(lease, "parked")["park"]["way"] == "restart"
    assert box.process is None and managed.used() < 100 * MIB
    managed.place.release(who)
    managed.is_back(lease, box)
    assert box.process.pid != first and engine.posts() == ["stop?t=30", "start"]
    assert all(urllib.parse.urlsplit(path).path.split("/")[2] == box.id for _, path in engine.asked)


# ---- blocked ----

def blocked(managed, box, why):
    pid = box.process.pid
    lease, who = adopted(managed, box)
    until("it was tried", lambda: f"why={why}" in managed.place.log())
    v = managed.wait_state(lease, "active")
    assert all(way["strikes"] == 0 for way in v["ways"]), v["ways"]
    assert managed.lease(who)["state"] == "queued" and box.process.pid == pid and box.process.poll() is None
    return lease, who


def test_stop_that_the_engine_forbids_leaves_the_container_as_it_was(managed, engine, box):
    engine.on_stop = forbids
    lease, who = blocked(managed, box, "forbidden")
    engine.on_stop = stops
    managed.wait_state(who, "granted")
    managed.wait_state(lease, "parked")


def test_container_that_is_removed_when_it_ends_is_not_stopped(managed, engine, box):
    box.removed_at_end = True
    blocked(managed, box, "no-way-back")
    assert engine.posts() == []


@pytest.mark.parametrize("look", [
    breaks_off, says(b""), says(b"HTTP/1.0 200 OK\r\n\r\n[]"), says(b"HTTP/1.0 200 OK\r\n\r\n" + b"[" * 100000),
    says(b'HTTP/1.0 200 OK\r\n\r\n{"State":{"Running":true,"Pid":-1}}'), fails,
], ids=["breaks off", "says nothing", "says a list", "nests", "names no pid", "fails"])
def test_engine_that_is_not_understood_leaves_the_container_as_it_was(managed, engine, box, look):
    engine.on_look = look
    blocked(managed, box, "manager-away")
    assert engine.posts() == []


def test_engine_that_is_away_when_memory_is_wanted_blocks_until_it_is_back(managed, engine, box):
    os.rename(engine.server_address, engine.server_address + ".away")
    lease, who = blocked(managed, box, "manager-away")
    os.rename(engine.server_address + ".away", engine.server_address)
    managed.wait_state(who, "granted")
    managed.wait_state(lease, "parked")


# ---- lost, failed ----

def test_engine_that_breaks_off_in_the_middle_of_a_stop_is_asked_again(managed, engine, box):
    engine.on_stop = breaks_off
    lease, who = adopted(managed, box)
    managed.logged("result=failed why=lost")
    assert managed.lease(lease)["state"] == "asking"
    engine.on_stop = stops_and_breaks_off
    managed.wait_state(lease, "parked")
    managed.wait_state(who, "granted")


def test_container_that_its_policy_starts_again_is_struck_and_goes_on_under_its_lease(managed, engine, box):
    engine.on_stop = is_stopped_and_runs_again
    first = box.process.pid
    lease, who = adopted(managed, box)
    managed.logged("why=runs-again")
    until("it is struck", lambda: any(way["strikes"] for way in managed.lease(lease)["ways"]))
    assert box.process.pid != first
    engine.on_stop = stops
    managed.wait_state(who, "granted")
    managed.wait_state(lease, "parked")


def test_container_that_cannot_be_stopped_goes_on_and_is_struck(managed, engine, box):
    engine.on_stop = fails
    lease, who = adopted(managed, box)
    managed.logged("result=failed why=manager-failed status=500")
    until("it is struck", lambda: any(way["strikes"] for way in managed.lease(lease)["ways"]))
    assert managed.lease(who)["state"] == "queued"


def test_start_that_fails_is_tried_again(managed, engine, box):
    engine.on_start = fails
    lease, who = adopted(managed, box)
    managed.wait_state(lease, "parked")
    managed.place.release(who)
    managed.logged("event=container-start")
    until("it failed", lambda: "result=failed why=manager-failed status=500" in managed.place.log())
    managed.wait_state(lease, "parked")
    engine.on_start = starts
    managed.is_back(lease, box)


def test_container_that_was_removed_while_it_was_parked_is_not_brought_back(managed, engine, box):
    lease, who = adopted(managed, box)
    managed.wait_state(lease, "parked")
    del engine.boxes[box.id]
    managed.place.release(who)
    until("it failed", lambda: "result=failed why=manager-failed status=404" in managed.place.log())
    assert managed.lease(lease)["state"] in ("parked", "thawing", "stuck")


def test_S09_cgroup_that_a_user_called_as_somebodys_container_has_that_one_stopped_for_nobody(managed, engine, box):
    """Below her own service manager she may make any name; the engine would stop whom the name means."""
    fake = Box(managed.folders.below(f"user.slice/user-{ALICE}.slice/user@{ALICE}.service/app.slice"), managed.place.env, box.id)
    fake.run(["sleep", "1000"])
    try:
        answer = managed.adopt(fake.process.pid)
        assert answer.status == 422 and "somebody else's engine" in answer.json["detail"], answer
    finally:
        fake.end()
    assert [asked for asked in engine.asked if asked[0] != "GET"] == [] and box.process.poll() is None


def test_S09_machines_lessord_stops_no_container_of_a_persons_own_engine():
    m = Managed(System())
    fake = Box(m.folders.below(f"user.slice/user-{ALICE}.slice/user@{ALICE}.service/app.slice"), m.place.env)
    try:
        m.start("engine_socket = /nowhere/engine.sock\n")
        fake.run(["setpriv", f"--reuid={ALICE}", "--clear-groups", "sleep", "1000"])
        until("it is hers", lambda: uid_of(fake.process.pid) == ALICE)
        body = {"pid": fake.process.pid, "cgroup": True, "bytes": "100M", "yield_by": ["restart"]}
        answer = m.place.as_user(ALICE, "POST", "/api/adopt", body)
        assert answer.status == 422 and "a person's own engine" in answer.json["detail"], answer
    finally:
        fake.end()
        m.close()


def test_restart_of_a_container_is_refused_where_no_engine_is_configured(managed, engine, box):
    managed.place.stop()
    managed.start()
    answer = managed.adopt(box.process.pid)
    assert answer.status == 422 and answer.problem == "way-out-unfit", answer
    assert "engine_socket in lessord.conf" in answer.json["detail"] and "--container" in answer.json["detail"]
