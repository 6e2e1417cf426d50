# SPDX-License-Identifier: Apache-2.0
"""Who asks, where the uid alone does not say it: callers in containers (security S03), root under sudo (S01, S09).

A container here is what the kernel sees of one: a pid namespace and a cgroup whose name holds an id. The engine is a
small HTTP server on a unix socket.
"""

import contextlib
import http.server
import json
import os
import secrets
import signal
import socketserver
import sqlite3
import subprocess
import threading

import pytest

from lessor_fixtures import NOBODY_LIKE_UIDS, Place, as_user, needs_root, until
from test_limits import ADMIN_GROUP, GPU_GROUP, System

ALICE, BOB = NOBODY_LIKE_UIDS
BEAT = {"to": "heartbeat", "ttl_ms": 600000}
pytestmark = needs_root

# Runs inside: [[method, path, body], …] on stdin, [[status, answer], …] on stdout. "CHILD" in a body is the pid, as it is
# known inside, of a child that lives as long as this.
INSIDE = r"""
import http.client, json, os, socket, subprocess, sys
child = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL)
answers = []
for method, path, body in json.load(sys.stdin):
    c = http.client.HTTPConnection("localhost", timeout=60)
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.connect(sys.argv[1])
    text = None if body is None else json.dumps(body).replace('"CHILD"', str(child.pid)).replace('"SELF"', str(os.getpid()))
    c.request(method, path, text, {"Content-Type": "application/json"} if text else {})
    r = c.getresponse()
    answers.append([r.status, json.loads(r.read())])
    c.close()
child.kill()
child.wait()
print(json.dumps(answers))
"""


def cgroup_mount():
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mount = next((line.split()[4] for line in file if " - cgroup2 " in line), None)
    if not mount or not os.access(mount, os.W_OK):
        pytest.skip("no cgroup2 hierarchy to make a container's folder in")
    return mount


class Container:
    def __init__(self, place, parent="lessor-test.slice", container_id=None):
        if subprocess.run(["unshare", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            pytest.skip("no pid namespaces here")
        self.place = place
        self.id = container_id or secrets.token_hex(32)
        self.folders = []
        folder = cgroup_mount()
        for part in [*parent.split("/"), f"docker-{self.id}.scope"]:
            folder = os.path.join(folder, part)
            try:
                os.mkdir(folder)
            except FileExistsError:
                continue
            except OSError as e:
                pytest.skip(f"no cgroup can be made here: {e}")
            self.folders.append(folder)
        self.cgroup = folder

    def ask(self, *requests):
        """Everything at once: answers come back in the same order."""
        script = 'echo $$ > "$1/cgroup.procs" && shift && exec unshare --pid --fork "$@"'
        r = subprocess.run(["sh", "-c", script, "sh", self.cgroup, "/usr/bin/python3", "-c", INSIDE, self.place.socket],
                           input=json.dumps(requests), capture_output=True, text=True, check=False)
        assert r.returncode == 0, r.stderr
        answers = json.loads(r.stdout)
        return answers[0] if len(answers) == 1 else answers

    def run(self, code, *args):
        """Python code that goes on inside, with a pipe to and from it."""
        script = 'echo $$ > "$1/cgroup.procs" && shift && exec unshare --pid --fork /usr/bin/python3 -c "$@"'
        p = subprocess.Popen(["sh", "-c", script, "sh", self.cgroup, code, self.place.socket, *args], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
        self.place.started.append(p)
        return p

    def remove(self):
        for folder in reversed(self.folders):
            with contextlib.suppress(OSError):
                until("the cgroup is empty", lambda f=folder: removed(f))


def removed(folder):
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True


@pytest.fixture
def container(bare):
    c = Container(bare)
    yield c
    c.remove()


def lease(**fields):
    return ["POST", "/api/leases", {"bytes": "100M", "mode": "now", "bind": BEAT, **fields}]


STATUS = ["GET", "/api/status", None]


# ---- refused ----

def test_S03_container_that_is_not_allowed_is_told_what_to_write(bare, container):
    bare.start()
    for status, answer in container.ask(STATUS, lease(), ["DELETE", "/api/leases/L1", None]):
        assert status == 403 and answer["type"].endswith(":forbidden-container"), answer
        assert container.id[:12] in answer["detail"] and "[container NAME]" in answer["detail"]
        assert "lessord.conf" in answer["detail"]
    assert bare.leases() == []


def test_S03_what_the_refusal_says_is_what_allows_it(bare, container):
    """The words are taken as they are and written into the configuration."""
    bare.start()
    _, answer = container.ask(STATUS)
    section, container_line, uid_line = answer["detail"].split("`")[1::2]
    bare.stop()
    bare.conf(f"{section}\n{container_line}\n{uid_line}\n")
    bare.start()
    status, answer = container.ask(lease())
    assert status == 201 and f"uid = {answer['uid']}" == uid_line, answer


def test_S03_cgroup_that_a_user_could_have_made_is_no_container(bare):
    fake = Container(bare, parent="lessor-test.service")
    try:
        bare.conf(f"[container x]\nid = {fake.id}\nuid = {ALICE}\n")
        bare.start()
        status, answer = fake.ask(STATUS)
        assert status == 403 and "no container that its cgroup names" in answer["detail"], answer
    finally:
        fake.remove()


def test_S03_container_of_a_users_own_engine_acts_as_that_user_only(bare):
    own = Container(bare, parent=f"user-{ALICE}.slice/user@{ALICE}.service/user.slice")
    try:
        bare.conf(f"[container x]\nid = {own.id}\nuid = {BOB}\n")
        bare.start()
        assert own.ask(STATUS)[0] == 403
        bare.stop()
        bare.conf(f"[container x]\nid = {own.id}\nuid = {ALICE}\n")
        bare.start()
        assert own.ask(STATUS)[0] == 200
    finally:
        own.remove()


# ---- allowed ----

def test_S03_allowed_container_has_the_rights_of_its_section_only(bare, container):
    bare.conf(f"[container webui]\nid = {container.id[:20]}\nuid = {ALICE}\npriority_min = 4\n")
    bare.start()
    bare.ask("1G", mode="now", name="secret")
    answers = container.ask(lease(priority=4), lease(priority=3), ["GET", "/api/leases/L1", None], ["DELETE", "/api/leases/L1", None],
                            ["POST", "/api/leases/L1/renew", {}], ["PATCH", "/api/leases/L2", {"priority": 3}], ["POST", "/api/plan", {"bytes": "100M", "priority": 3}],
                            ["POST", "/api/reload", None], ["DELETE", "/api/leases/L2", None])
    made, above, seen, deleted, renewed, changed, planned, reloaded, ended = answers
    assert made[0] == 201 and made[1]["uid"] == ALICE and made[1]["priority"] == 4, made
    assert above[0] == 403 and above[1]["type"].endswith(":priority-ceiling") and "[container webui]" in above[1]["detail"]
    assert seen[0] == 200 and not seen[1].get("name") and not seen[1].get("binding")
    for status, answer in (deleted, renewed):
        assert status == 403 and answer["type"].endswith(":not-owner"), answer
    assert changed[0] == 403 and changed[1]["type"].endswith(":priority-ceiling"), changed
    assert planned[0] == 403 and planned[1]["type"].endswith(":priority-ceiling"), planned
    assert reloaded[0] == 403 and reloaded[1]["type"].endswith(":not-admin"), reloaded
    assert ended[0] == 200
    assert [x["id"] for x in bare.leases()] == ["L1"]


def test_S09_container_names_itself_and_its_children_by_its_own_numbers(bare, container):
    bare.conf(f"[container webui]\nid = {container.id}\nuid = {ALICE}\n")
    bare.start()
    outside = bare.sleeper()
    answers = container.ask(lease(bind={"to": "process"}), lease(bind={"to": "process", "pid": "SELF"}),
                            lease(bind={"to": "process", "pid": "CHILD"}), lease(bind={"to": "process", "pid": outside.pid}),
                            lease(bind={"to": "process", "pid": 4000000}))
    assert [status for status, _ in answers] == [201, 201, 201, 403, 403], answers
    pids = [answer["binding"]["pid"] for _, answer in answers[:3]]
    assert pids[0] == pids[1] != pids[2] and min(pids) > 2, "they are known here by the host's numbers"
    for i in ("L1", "L2", "L3"):
        assert bare.ended(i) == "owner-exited"


def test_S03_section_that_is_taken_away_shuts_the_door_without_a_restart(bare, container):
    bare.conf(f"[container webui]\nid = {container.id}\nuid = {ALICE}\n")
    bare.start()
    assert container.ask(STATUS)[0] == 200
    bare.conf("")
    assert bare.request("POST", "/api/reload").status == 200
    assert container.ask(STATUS)[0] == 403


def test_S03_lease_under_way_when_its_section_is_taken_away_is_given_up(bare, container):
    """The disk is slow, the request is being written, and a reload shuts the container out: nobody is left to be told of the
    lease, which would live as long as a connection that is gone."""
    bare.conf(f"[container webui]\nid = {container.id}\nuid = {ALICE}\n")
    bare.start()
    bare.conf("")
    disk = sqlite3.connect(os.path.join(bare.home, "journal.db"), isolation_level=None)
    disk.execute("BEGIN IMMEDIATE")
    body = json.dumps({"bytes": "100M", "mode": "now", "bind": {"to": "connection"}})
    request = ("POST /api/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
               f"Content-Length: {len(body)}\r\n\r\n{body}")
    client = container.run("import socket,sys\n"
                           "s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode())\n"
                           "print('sent', flush=True)\n"
                           "while s.recv(4096): pass\n"
                           "print('closed', flush=True)\n"
                           "sys.stdin.read()\n", request)
    assert client.stdout.readline() == "sent\n"
    for _ in range(3):  # turns of the loop: it is read, decided and waits for the disk
        assert bare.get("/healthz").status == 200
    bare.daemon.send_signal(signal.SIGHUP)
    until("it was read", lambda: "event=reloaded" in bare.log())
    disk.execute("COMMIT")
    disk.close()
    assert client.stdout.readline() == "closed\n"
    until("its lease is gone", lambda: bare.leases() == [])
    client.communicate("")


# ---- the engine is asked ----

class Engine(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers as Docker does about the containers it knows; `behave` makes it worse."""
    daemon_threads, request_queue_size = True, 64

    def __init__(self, path):
        self.known, self.asked, self.behave = {}, [], None
        self.gate = threading.Event()
        super().__init__(path, Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.gate.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def address_string(self):
        return "unix"

    def log_message(self, format, *args):  # noqa: A002 - the name is the base class's
        pass

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.server.behave:
            self.server.behave(self)
            return
        answer = self.server.known.get(self.path.split("/")[2])
        body = json.dumps(answer or {"message": "No such container"}).encode()
        self.send_response(200 if answer else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def engine(bare):
    e = Engine(os.path.join(bare.dir, "engine.sock"))
    yield e
    e.close()


def docker(name, image="ghcr.io/x/webui:v2", **labels):
    return {"Name": "/" + name, "Config": {"Image": image, "Labels": labels}}


@pytest.mark.parametrize("rule", ["name = webui", "image = ghcr.io/x/webui", "label = team=ml",
                                  "name = webui\nimage = ghcr.io/x/webui:v2\nlabel = team=ml\nlabel = tier=web"])
def test_S03_container_is_allowed_by_name_image_or_label(bare, container, engine, rule):
    engine.known[container.id] = docker("webui", team="ml", tier="web")
    bare.conf(f"engine_socket = {engine.server_address}\n[container any]\n{rule}\nuid = {ALICE}\n")
    bare.start()
    status, answer = container.ask(lease())
    assert status == 201 and answer["uid"] == ALICE, answer
    assert engine.asked == [f"/containers/{container.id}/json"]
    other = Container(bare)
    try:
        engine.known[other.id] = docker("other", image="ghcr.io/x/other:v2", team="web")
        status, answer = other.ask(STATUS)
        assert status == 403 and "(other)" in answer["detail"] and "[container other]" in answer["detail"], answer
    finally:
        other.remove()


def hang(handler):
    handler.server.gate.wait()


def drip_without_end(handler):
    handler.send_response(200)
    handler.end_headers()
    with contextlib.suppress(OSError):
        while True:
            handler.wfile.write(b" " * 65536)


def say(text):
    def behave(handler):
        handler.wfile.write(text)
    return behave


@pytest.mark.parametrize("behave,words", [
    (hang, "did not answer in time"),
    (drip_without_end, "too long"),
    (say(b""), "answers like no engine"),
    (say(b"SSH-2.0-OpenSSH\r\n\r\n"), "answers like no engine"),
    (say(b"HTTP/1.0 500 Internal Server Error\r\n\r\n{}"), "does not tell about it"),
    (say(b"HTTP/1.0 200 OK\r\n\r\n[]"), "not understood"),
    (say(b"HTTP/1.0 200 OK\r\n\r\n" + b"[" * 100000), "not understood"),
    (say(b"HTTP/1.0 404 Not Found\r\n\r\n{}"), "does not know it"),
], ids=["hangs", "never ends", "says nothing", "is none", "fails", "says a list", "nests", "does not know"])
def test_S03_engine_that_does_not_tell_lets_nobody_in_and_holds_nobody_up(bare, container, engine, behave, words):
    engine.behave = behave
    bare.conf(f"engine_socket = {engine.server_address}\n[container any]\nname = webui\nuid = {ALICE}\n")
    bare.start()
    asked = threading.Thread(target=lambda: setattr(container, "answer", container.ask(STATUS)))
    asked.start()
    until("the engine is asked", lambda: engine.asked)
    assert bare.get("/healthz").status == 200
    asked.join()
    status, answer = container.answer
    assert status == 403 and words in answer["detail"] and container.id[:12] in answer["detail"], answer


def test_S03_engine_that_is_not_there_or_not_named_lets_nobody_in(bare, container):
    bare.conf(f"engine_socket = {bare.dir}/nobody.sock\n[container any]\nname = webui\nuid = {ALICE}\n")
    bare.start()
    status, answer = container.ask(STATUS)
    assert status == 403 and "nobody answers at engine_socket" in answer["detail"], answer
    bare.stop()
    bare.conf(f"[container any]\nname = webui\nuid = {ALICE}\n")
    bare.start()
    status, answer = container.ask(STATUS)
    assert status == 403 and "engine_socket is not set" in answer["detail"], answer


def test_caller_that_leaves_while_its_engine_is_asked_is_forgotten(bare, container, engine):
    engine.behave = hang
    bare.conf(f"engine_socket = {engine.server_address}\n[container any]\nname = webui\nuid = {ALICE}\n")
    bare.start()
    until("the hands are there", lambda: bare.get("/api/status").json["hands"] == "ok")
    before = len(os.listdir(f"/proc/{bare.daemon.pid}/fd"))
    script = 'echo $$ > "$1/cgroup.procs" && exec unshare --pid --fork /usr/bin/python3 -c "$2" "$3"'
    connect = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])"
    for _ in range(40):
        subprocess.run(["sh", "-c", script, "sh", container.cgroup, connect, bare.socket], check=True)
    until("all of them are gone", lambda: len(os.listdir(f"/proc/{bare.daemon.pid}/fd")) <= before + 1)
    assert bare.get("/healthz").status == 200


def test_S03_callers_of_one_container_do_not_use_up_the_questions_about_others(bare, container, engine):
    engine.behave = hang
    bare.conf(f"engine_socket = {engine.server_address}\n[container any]\nname = webui\nuid = {ALICE}\n")
    bare.start()
    many = ("import socket,sys\n"
            "held=[socket.socket(socket.AF_UNIX) for _ in range(40)]\n"
            "for s in held: s.connect(sys.argv[1])\n"
            "held[-1].sendall(b'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')\n"
            "print(held[-1].recv(4096).decode(), flush=True)\n"
            "sys.stdin.read()\n")
    crowd = container.run(many)
    assert crowd.stdout.readline().startswith("HTTP/1.1 403")  # the last of them is not asked about
    other = Container(bare)
    try:
        engine.known[other.id], engine.behave = docker("webui"), None
        assert other.ask(STATUS)[0] == 200
        assert engine.asked.count(f"/containers/{container.id}/json") == 8
    finally:
        crowd.communicate("")
        other.remove()


def test_S03_containers_are_counted_each_by_itself(bare, container, engine):
    """256 connections of one that nobody allowed leave room for another that has to be asked about; and one that is let in
    after the question has no more than 256 either."""
    engine.known[container.id] = docker("other")
    bare.conf(f"engine_socket = {engine.server_address}\n[container any]\nname = webui\nuid = {ALICE}\n")
    bare.start()
    many = ("import socket,sys\n"
            "ask = b'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n'\n"
            "held, codes = [], []\n"
            "for _ in range(260):\n"
            "    s = socket.socket(socket.AF_UNIX)\n"
            "    s.connect(sys.argv[1])\n"
            "    s.setblocking(sys.argv[2] == 'ask')\n"
            "    held.append(s)\n"
            "    if sys.argv[2] == 'ask':\n"
            "        try: s.sendall(ask)\n"
            "        except BrokenPipeError: pass\n"
            "        codes.append(s.recv(4096).split()[1].decode())\n"
            "print(codes.count('200'), codes.count('429'), flush=True)\n"
            "sys.stdin.read()\n")
    crowd = container.run(many, "hold")
    assert crowd.stdout.readline() == "0 0\n"
    other = Container(bare)
    try:
        engine.known[other.id] = docker("webui")
        friends = other.run(many, "ask")
        assert friends.stdout.readline() == "256 4\n"
        friends.communicate("")
    finally:
        crowd.communicate("")
        other.remove()


def test_daemon_that_ends_while_an_engine_is_asked_ends_cleanly(bare, container, engine):
    engine.behave = hang
    bare.conf(f"engine_socket = {engine.server_address}\n[container any]\nname = webui\nuid = {ALICE}\n")
    bare.start()
    script = 'echo $$ > "$1/cgroup.procs" && exec unshare --pid --fork /usr/bin/python3 -c "$2" "$3"'
    wait = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.recv(1)"
    asker = subprocess.Popen(["sh", "-c", script, "sh", container.cgroup, wait, bare.socket], stderr=subprocess.DEVNULL)
    bare.started.append(asker)
    until("the engine is asked", lambda: engine.asked)
    assert bare.stop() == 0
    asker.wait(60)


# ---- sudo ----

def as_login(uid, work):
    """work() in a child that somebody with this uid logged in for, as root: what sudo leaves behind."""
    def logged_in():
        try:
            with open("/proc/self/loginuid", "w", encoding="ascii") as file:
                file.write(str(uid))
            with open("/proc/self/loginuid", encoding="ascii") as file:
                kept = file.read().strip() == str(uid)
        except OSError as e:
            return {"skip": f"the login uid cannot be set here: {e}"}
        return work() if kept else {"skip": "this kernel keeps no login uid"}
    answer = as_user(0, logged_in)
    if isinstance(answer, dict) and "skip" in answer:
        pytest.skip(answer["skip"])
    return answer


def test_S01_lease_of_root_under_sudo_is_the_persons_who_typed_it(place):
    place.ask("100M", mode="now")

    def work():
        made = place.ask("1G", mode="now")
        return [made.status, made.json["uid"], place.release("L1").status]
    assert as_login(ALICE, work) == [201, ALICE, 200], "owner and rights of an administrator"
    assert place.lease("L2").json["uid"] == ALICE


def test_S09_root_under_sudo_names_his_own_processes_and_the_persons(place):
    his = subprocess.Popen(["setpriv", f"--reuid={ALICE}", "--clear-groups", "sleep", "1000"])
    foreign = subprocess.Popen(["setpriv", f"--reuid={BOB}", "--clear-groups", "sleep", "1000"])
    roots = place.sleeper()
    place.started += [his, foreign]
    for process, uid in ((his, ALICE), (foreign, BOB)):
        until("it is its user's", lambda p=process, u=uid: uid_of(p.pid) == u)

    def work():
        return [place.ask("100M", mode="now", bind={"to": "process", "pid": p.pid}).status for p in (his, foreign, roots)]
    assert as_login(ALICE, work) == [201, 403, 201]


def uid_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(next(line for line in file if line.startswith("Uid:")).split()[1])


def test_S01_login_uid_of_who_is_not_root_changes_nothing():
    place = Place()
    try:
        os.chmod(place.dir, 0o755)
        place.start()

        def work():
            return [place.ask("1G", mode="now").json["uid"]]
        assert as_login(0, work) == [0]
        assert as_login(65534, work) == [0], "an unmapped uid is nobody's"
    finally:
        place.close()


# ---- S02: the matrix of verbs and callers, whole ----

# verb: method, path, body, and what each of owner, other user, administrator, root and container is answered
VERBS = {
    "show": ("GET", "/api/leases/L1", None, (200, 200, 200, 200, 200)),
    "list": ("GET", "/api/leases", None, (200, 200, 200, 200, 200)),
    "status": ("GET", "/api/status", None, (200, 200, 200, 200, 200)),
    "why": ("GET", "/api/why/L1", None, (200, 200, 200, 200, 200)),
    "events": ("GET", "/api/events?lease=L1", None, (200, 200, 200, 200, 200)),
    "renew": ("POST", "/api/leases/L1/renew", {}, (200, 403, 200, 200, 403)),
    "activate": ("POST", "/api/leases/L1/activate", {}, (200, 403, 200, 200, 403)),
    "change": ("PATCH", "/api/leases/L1", {"priority": 4}, (200, 403, 200, 200, 403)),
    "plan": ("POST", "/api/plan", {"bytes": "1G"}, (200, 200, 200, 200, 200)),
    "reload": ("POST", "/api/reload", None, (403, 403, 200, 200, 403)),
    "release": ("DELETE", "/api/leases/L1", None, (200, 403, 200, 200, 403)),
}
CALLERS = ("owner", "other", "administrator", "root", "container")
SEES_NAMES = {"owner", "administrator", "root"}


@pytest.mark.parametrize("caller", CALLERS)
def test_S02_caller_may_do_what_the_matrix_says_and_sees_no_more(caller):
    system = System()
    container = None
    try:
        container = Container(system)
        system.conf(f"admin_group = gpuadmins\n[container webui]\nid = {container.id}\nuid = 61003\n")
        system.start()
        made = system.as_user(ALICE, "POST", "/api/leases", {"bytes": "1G", "mode": "now", "name": "secret-name", "bind": BEAT})
        assert made.status == 201 and made.json["uid"] == ALICE
        if caller == "container":
            answers = [(status, json.dumps(answer)) for status, answer in container.ask(*([m, p, b] for m, p, b, _ in VERBS.values()))]
        else:
            uid, gids = {"owner": (ALICE, ()), "other": (BOB, ()), "administrator": (BOB, (GPU_GROUP, ADMIN_GROUP)), "root": (0, ())}[caller]
            answers = [(a.status, a.raw.decode()) for a in (system.as_user(uid, m, p, b, gids=gids) for m, p, b, _ in VERBS.values())]
        column = CALLERS.index(caller)
        assert {v: a[0] for v, a in zip(VERBS, answers)} == {v: row[3][column] for v, row in VERBS.items()}
        named = {v for v, a in zip(VERBS, answers) if "secret-name" in a[1]}
        assert ("show" in named and "list" in named) == (caller in SEES_NAMES)
        if caller not in SEES_NAMES:
            assert not named
    finally:
        if container:
            container.remove()
        system.close()
