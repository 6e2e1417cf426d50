# SPDX-License-Identifier: Apache-2.0
"""A private folder with a simulated card and a lessord on it, and an HTTP client that speaks over its socket.

Tests wait for facts, never for time: until() looks again and again, and its limit is for what is broken.
"""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import pytest

MIB = 1024 * 1024
GIB = 1024 * MIB
PATIENCE_S = 60
HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("LESSOR_BUILD_DIR") or os.path.join(HERE, "..", "..", "build"))
LESSORD = os.path.join(BUILD, "bin", "lessord")
SIMGPU = next((p for p in (os.path.join(BUILD, "bin", "simgpu"), os.path.join(BUILD, "simgpu", "simgpu"))
               if os.access(p, os.X_OK)), os.path.join(BUILD, "simgpu", "simgpu"))
NOBODY_LIKE_UIDS = (61001, 61002)  # users that own nothing here; needs root to become them


def owner_uid():
    """Whose leases ours are: our own user's, or under sudo the one's who logged in."""
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/self/loginuid", encoding="ascii") as file:
            login = int(file.read())
        if os.geteuid() == 0 and 0 < login < 2 ** 32 - 1 and login != 65534:
            return login
    return os.geteuid()


def until(what, fact, patience_s=PATIENCE_S):
    """Looks until fact() is true and gives it back."""
    give_up = time.monotonic() + patience_s
    while True:
        value = fact()
        if value:
            return value
        if time.monotonic() > give_up:
            raise AssertionError(f"after {patience_s} s still not so: {what}")
        time.sleep(0.005)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=PATIENCE_S):
        super().__init__("localhost", timeout=timeout)
        self.unix_path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.unix_path)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.raw = response.read()

    @property
    def json(self):
        return json.loads(self.raw)

    @property
    def problem(self):
        """The type of a problem object, without its prefix; fails where the answer is none."""
        assert self.headers["Content-Type"] == "application/problem+json", self.raw
        body = self.json
        assert body["status"] == self.status and body["title"] and body["detail"], body
        return body["type"].removeprefix("urn:lessor:problem:")

    def __repr__(self):
        return f"{self.status} {self.raw[:800]!r}"


class Background(threading.Thread):
    """A request that waits; its answer, or what went wrong, when it is asked for."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.work, self.value, self.error = work, None, None
        self.start()

    def run(self):
        try:
            self.value = self.work()
        except Exception as e:  # noqa: BLE001 - handed to whoever asks for the answer
            self.error = e

    def answer(self):
        self.join(PATIENCE_S)
        assert not self.is_alive(), "no answer"
        if self.error:
            raise self.error
        return self.value


class Place:
    """A folder below /tmp with a card in it; everything started here ends with it."""

    def __init__(self, *create):
        self.dir = tempfile.mkdtemp(prefix="lessor-e-", dir="/tmp")
        self.home = os.path.join(self.dir, "d")
        self.socket = os.path.join(self.home, "lessor.sock")
        self.card = os.path.join(self.dir, "card")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("LESSOR_", "CUDA_", "SIMGPU"))}
        self.env["SIMGPU"] = self.card
        self.started = []
        self.daemon = None
        subprocess.run([SIMGPU, "create", "--file", self.card, *(create or ("--gpus", "1", "--memory", "3G"))],
                       check=True, stdout=subprocess.DEVNULL, env=self.env)

    # ---- the daemon ----

    def conf(self, text):
        os.makedirs(self.home, mode=0o700, exist_ok=True)
        with open(os.path.join(self.home, "lessord.conf"), "w", encoding="utf-8") as file:
            file.write(text)

    def spawn_daemon(self, *options):
        """Started, not waited for."""
        with open(os.path.join(self.dir, "lessord.err"), "ab") as err:
            return subprocess.Popen([SIMGPU, "run", "--file", self.card, "--", LESSORD, "--dir", self.home, *options],
                                    env=self.env, stdin=subprocess.DEVNULL, stdout=err, stderr=err)

    def start(self, *options):
        said = self.log().count("lessord: ready socket=")
        self.daemon = self.spawn_daemon(*options)

        def ready():
            assert self.daemon.poll() is None, "lessord ended: " + self.log()
            return self.log().count("lessord: ready socket=") > said
        until("lessord is ready", ready)
        return self

    def stop(self):
        if self.daemon and self.daemon.poll() is None:
            self.daemon.send_signal(signal.SIGTERM)
            try:
                self.daemon.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                raise
        return self.daemon.wait() if self.daemon else None

    def kill(self):
        self.daemon.kill()
        self.daemon.wait()

    def log(self):
        try:
            with open(os.path.join(self.dir, "lessord.err"), encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def eyes(self):
        """pids of living lessor-eyes of this daemon (zombies are none)."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                    head, tail = file.read().rsplit(")", 1)
                state, ppid = tail.split()[:2]
                if head.endswith("(lessor-eyes") and int(ppid) == self.daemon.pid and state != "Z":
                    found.append(int(pid))
        return found

    # ---- asking ----

    def connection(self):
        return UnixConnection(self.socket)

    def request(self, method, path, body=None, headers=None, connection=None):
        c = connection or self.connection()
        headers = dict(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        c.request(method, path, body, headers)
        answer = Answer(c.getresponse())
        if not connection:
            c.close()
        return answer

    def get(self, path, **kw):
        return self.request("GET", path, **kw)

    def ask(self, bytes, **fields):
        """A lease; bound to a heartbeat unless told otherwise, so that it does not hang on this test's process."""
        connection = fields.pop("connection", None)
        fields.setdefault("bind", {"to": "heartbeat", "ttl_ms": 600000})
        return self.request("POST", "/api/leases", {"bytes": bytes, **fields}, connection=connection)

    def ask_in_background(self, bytes, **fields):
        return Background(lambda: self.ask(bytes, **fields))

    def lease(self, lease_id):
        return self.get(f"/api/leases/{lease_id}")

    def release(self, lease_id):
        return self.request("DELETE", f"/api/leases/{lease_id}")

    def device(self):
        return self.get("/api/devices").json["devices"][0]

    def queue(self):
        return self.get("/api/queue").json["queue"]

    def leases(self):
        return self.get("/api/leases").json["leases"]

    def events(self, **query):
        words = "&".join(f"{k}={v}" for k, v in query.items())
        return self.get("/api/events" + ("?" + words if words else "")).json["events"]

    def strangers(self):
        """Those in the books with what they hold: a program is listed a moment before it has its memory."""
        return [s for s in self.get("/api/status").json["strangers"] if s["used_bytes"] != 0]

    def ended(self, lease_id):
        """How a lease ended; waits for that."""
        gone = until(f"{lease_id} ended", lambda: (a := self.lease(lease_id)).status != 200 and a)
        return gone.json["end"]

    # ---- the card, and programs on it ----

    def fault(self, *words):
        subprocess.run([SIMGPU, "fault", "--file", self.card, *words] if words[0] != "clear" else
                       [SIMGPU, "fault", "clear", *words[1:]],
                       check=True, stdout=subprocess.DEVNULL, env=self.env)

    def hog(self, size, *options):
        p = subprocess.Popen([SIMGPU, "run", "--", SIMGPU, "hog", "--alloc", size, *options], env=self.env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.started.append(p)
        return p

    def sleeper(self):
        """A process to bind leases to."""
        p = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
        self.started.append(p)
        return p

    def close(self):
        for p in self.started:
            if p.poll() is None:
                p.kill()
            p.wait()
        try:
            status = self.stop() if self.daemon else 0
        finally:
            shutil.rmtree(self.dir, ignore_errors=True)
        return status


@pytest.fixture
def bare():
    """A card and a folder; no daemon yet."""
    place = Place()
    yield place
    place.close()


@pytest.fixture
def place():
    """A daemon of one test's own on a card of 3 GiB."""
    p = Place()
    p.start()
    yield p
    status = p.close()
    assert status in (0, None, -signal.SIGKILL), f"lessord ended with {status}"


@pytest.fixture(scope="module")
def shared():
    """One daemon for a file of tests that leave nothing behind."""
    p = Place()
    p.start()
    yield p
    assert p.close() == 0


def programs_for_others(place):
    """Copies of the programs where any user may run them (a clone below /root is closed to others). The folder."""
    folder = os.path.join(place.dir, "bin")
    os.mkdir(folder, 0o755)
    libs = os.path.join(BUILD, "simgpu")
    for file in [LESSORD, os.path.join(BUILD, "bin", "lessor-eyes"), SIMGPU,
                 *(os.path.join(libs, name) for name in ("libcuda.so.1", "libnvidia-ml.so.1"))]:
        shutil.copy(file, folder)
        os.chmod(os.path.join(folder, os.path.basename(file)), 0o755)
    return folder


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")


def as_user(uid, work):
    """work() in a child process with another uid; what it returns (JSON) comes back."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(read_end)
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            with os.fdopen(write_end, "w") as out:
                json.dump(work(), out)
            status = 0
        except BaseException as e:  # noqa: BLE001 - told by the parent
            with contextlib.suppress(Exception):
                os.write(write_end, json.dumps({"error": repr(e)}).encode())
        finally:
            os._exit(status)
    os.close(write_end)
    with os.fdopen(read_end) as back:
        text = back.read()
    _, status = os.waitpid(pid, 0)
    assert status == 0, f"in the child: {text}"
    return json.loads(text)
