# SPDX-License-Identifier: Apache-2.0
"""Who may do what (security S01, S02, S05, S09) and how much of it (S07), for what exists so far."""

import json
import os
import signal
import socket
import stat
import subprocess

import pytest

from lessor_fixtures import GIB, NOBODY_LIKE_UIDS, Place, as_user, needs_root, owner_uid, programs_for_others, until

ALICE, BOB = NOBODY_LIKE_UIDS


# ---- S05: where a request says it comes from ----

HEADERS = [
    ({"Host": "localhost"}, 200), ({"Host": "localhost:1"}, 200), ({"Host": "127.0.0.1"}, 200), ({"Host": "[::1]"}, 200),
    ({"Host": "evil.example"}, 403), ({"Host": "localhost.evil.example"}, 403), ({"Host": "localhost."}, 403),
    ({"Host": "0x7f000001"}, 403), ({"Host": "169.254.169.254"}, 403), ({"Host": "::1"}, 403),
    ({"Origin": "null"}, 403), ({"Origin": "http://localhost"}, 403), ({"Origin": "https://evil.example"}, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403), ({"Sec-Fetch-Site": "same-site"}, 403), ({"Sec-Fetch-Site": "none"}, 200),
    ({"Upgrade": "websocket", "Connection": "Upgrade"}, 400),
]


@pytest.mark.parametrize("headers,status", HEADERS, ids=[json.dumps(h) for h, _ in HEADERS])
def test_S05_request_from_a_web_page_is_refused_whatever_it_asks(shared, headers, status):
    for method, path, body in (("GET", "/healthz", None), ("GET", "/api/status", None)):
        a = shared.request(method, path, body, headers)
        assert a.status == status, a
        assert "Access-Control-Allow-Origin" not in a.headers
    if status != 200:
        a = shared.request("POST", "/api/leases", {"bytes": 1}, headers)
        assert a.status == status and shared.leases() == []


def test_S05_two_hosts_are_refused(shared):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(shared.socket)
    s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
    assert s.recv(65536).startswith(b"HTTP/1.1 403")
    s.close()


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"])
def test_S05_body_that_does_not_say_json_is_refused(shared, kind):
    a = shared.request("POST", "/api/leases", '{"bytes":1}', {"Content-Type": kind})
    assert a.status == 415 and a.problem == "not-json" and shared.leases() == []


# ---- the socket ----

def test_S03_socket_and_folder_belong_to_their_owner_alone(place):
    assert stat.S_IMODE(os.stat(place.socket).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(place.home).st_mode) == 0o700
    for name in os.listdir(place.home):
        assert stat.S_IMODE(os.stat(os.path.join(place.home, name)).st_mode) & 0o077 == 0, name


def open_the_door(place):
    """So that other users reach the socket at all: the daemon itself must refuse them."""
    os.chmod(place.dir, 0o755)
    os.chmod(place.home, 0o755)
    os.chmod(place.socket, 0o666)


@needs_root
def test_S01_own_session_refuses_other_users_with_words(place):
    open_the_door(place)

    def ask():
        answers = [place.get("/healthz"), place.ask(1, mode="now"), place.release("L1")]
        return [(a.status, a.problem, a.json["detail"]) for a in answers]
    for status, problem, detail in as_user(ALICE, ask):
        assert (status, problem) == (403, "forbidden-caller") and "user who started it" in detail
    assert place.leases() == []


@needs_root
def test_S03_caller_in_another_pid_namespace_is_refused_with_words(place):
    # unshare(1) forks: its child is pid 1 of a namespace of its own, as in a container
    script = ("import socket,sys\n"
              "s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
              "s.sendall(b'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n')\n"
              "d=b''\n"
              "while True:\n"
              "    c=s.recv(65536)\n"
              "    if not c: break\n"
              "    d+=c\n"
              "sys.stdout.buffer.write(d)\n")
    r = subprocess.run(["unshare", "--fork", "--pid", "/usr/bin/python3", "-c", script, place.socket], capture_output=True,
                       check=False)
    if r.returncode != 0 and b"unshare" in r.stderr:
        pytest.skip("no pid namespaces here: " + r.stderr.decode(errors="replace").strip())
    assert r.stdout.startswith(b"HTTP/1.1 403") and b"pid namespace" in r.stdout, r


@needs_root
def test_S01_caller_whose_user_is_not_mapped_is_refused(place):
    open_the_door(place)

    def ask():
        a = place.get("/healthz")
        return [a.status, a.problem]
    # uid 65534 is what an unmapped user looks like
    assert as_user(65534, ask) == [403, "forbidden-caller"]


def test_S01_caller_that_is_gone_before_it_is_known_is_refused(place):
    """The connection is handed on by a child that has ended: whoever holds it now is not who connected."""
    def state():
        with open(f"/proc/{place.daemon.pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    ours, theirs = socket.socketpair()
    place.daemon.send_signal(signal.SIGSTOP)
    until("it cannot accept before the caller is gone", lambda: state() == "T")
    pid = os.fork()
    if pid == 0:
        s = socket.socket(socket.AF_UNIX)
        s.connect(place.socket)
        socket.send_fds(theirs, [b"x"], [s.fileno()])
        os._exit(0)
    os.waitpid(pid, 0)
    _, fds, _, _ = socket.recv_fds(ours, 1, 1)
    place.daemon.send_signal(signal.SIGCONT)
    s = socket.socket(fileno=fds[0])
    s.settimeout(60)
    s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert s.recv(65536).startswith(b"HTTP/1.1 403")
    s.close()
    ours.close()
    theirs.close()


def test_S01_socket_path_with_words_about_users_means_nothing(bare):
    bare.home = os.path.join(bare.dir, "uid=0,pid=1")
    bare.socket = os.path.join(bare.home, "lessor.sock")
    bare.start()
    assert bare.ask("1G", mode="now").json["uid"] == owner_uid()


# ---- S02: the matrix of verbs and callers ----

@needs_root
def test_S02_matrix_of_verbs_and_callers():
    """The daemon of a plain user: that user owns the lease, another one asks, root administers."""
    place = Place()
    try:
        os.chmod(place.dir, 0o755)
        os.chmod(place.card, 0o666)
        os.makedirs(place.home, mode=0o700)
        os.chown(place.home, ALICE, ALICE)
        programs = programs_for_others(place)
        log = os.path.join(place.dir, "lessord.err")
        with open(log, "ab") as err:
            os.chmod(log, 0o666)
            place.daemon = subprocess.Popen(
                ["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups", os.path.join(programs, "simgpu"), "run",
                 "--file", place.card, "--", os.path.join(programs, "lessord"), "--dir", place.home],
                env=place.env, cwd="/", stdin=subprocess.DEVNULL, stdout=err, stderr=err)

        def ready():
            assert place.daemon.poll() is None, place.log()
            return "ready socket=" in place.log()
        until("lessord of another user is ready", ready)
        os.chmod(place.home, 0o755)
        os.chmod(place.socket, 0o666)

        made = as_user(ALICE, lambda: place.ask("1G", mode="now", name="secret").json)
        assert made["uid"] == ALICE and made["name"] == "secret"

        def verbs():
            answers = {
                "show": place.lease("L1"), "list": place.get("/api/leases"), "why": place.get("/api/why/L1"),
                "renew": place.request("POST", "/api/leases/L1/renew"),
                "activate": place.request("POST", "/api/leases/L1/activate"),
            }
            return {name: [a.status, "secret" in a.raw.decode()] for name, a in answers.items()}

        owner, other = as_user(ALICE, verbs), as_user(BOB, verbs)
        root = verbs()
        assert owner == {"show": [200, True], "list": [200, True], "why": [200, True], "renew": [200, True],
                         "activate": [200, True]}
        assert root == owner  # an administrator sees and may do what the owner does
        assert {v[0] for v in other.values()} == {403} and not any(v[1] for v in other.values())
        assert as_user(BOB, lambda: [place.release("L1").status]) == [403]
        assert place.lease("L1").json["state"] == "active"

        ended = place.release("L1")
        assert ended.status == 200
        until("it is over", lambda: place.lease("L1").status == 410)
        assert place.lease("L1").json["end"] == "released-by-administrator"
    finally:
        place.close()


# ---- S09: whose processes ----

@needs_root
def test_S09_process_of_another_user_cannot_be_named(place):
    foreign = subprocess.Popen(["setpriv", f"--reuid={BOB}", "--clear-groups", "sleep", "1000"], stdin=subprocess.DEVNULL)
    place.started.append(foreign)

    def uid_of():
        with open(f"/proc/{foreign.pid}/status", encoding="utf-8") as f:
            return next(line for line in f if line.startswith("Uid:")).split()[1]
    until("it is somebody else's", lambda: uid_of() == str(BOB))
    a = place.ask("1G", mode="now", bind={"to": "process", "pid": foreign.pid})
    assert a.status == 403 and a.problem == "not-yours", a
    place.ask("1G", mode="now")
    place.ask("2500M", mode="queue")
    place.release("L1")
    until("granted", lambda: place.lease("L2").json["state"] == "granted")
    b = place.request("POST", "/api/leases/L2/activate", {"pid": foreign.pid})
    assert b.status == 403 and b.problem == "not-yours", b
    assert place.device()["reserved_bytes"] == 2500 * 1024 * 1024


# ---- S07: how much ----

def test_S19_priority_above_what_users_may_ask_is_refused(bare):
    bare.conf("ceiling_admin = 3\n")
    bare.start()
    a = bare.ask("1G", priority=2)
    assert a.status == 403 and a.problem == "priority-ceiling" and a.json["limit"] == 3, a


def test_S07_waiting_requests_of_one_user_have_a_limit(bare):
    bare.conf("waiting_per_user_max = 3\n")
    bare.start()
    bare.ask(3 * GIB, mode="now")
    for _ in range(3):
        assert bare.ask("1G", mode="queue").status == 202
    a = bare.ask("1G", mode="queue")
    assert a.status == 429 and a.problem == "limit-waiting-per-user" and a.json["limit"] == 3, a
    assert len(bare.queue()) == 3


def test_S07_connections_have_a_limit_and_the_rest_is_told_so(place):
    held = []
    try:
        for _ in range(1100):
            s = socket.socket(socket.AF_UNIX)
            until("there is room in the backlog", lambda: connects(s, place.socket))
            held.append(s)
        told = until("somebody is turned away", lambda: next(
            (d for s in reversed(held) if (d := peek(s))), None))
        assert told.startswith(b"HTTP/1.1 429") and b"limit-connections" in told
    finally:
        for s in held:
            s.close()
    until("it serves again", lambda: serves(place))


def connects(s, path):
    try:
        s.setblocking(False)
        s.connect(path)
        return True
    except BlockingIOError:
        return False


def peek(s):
    try:
        return s.recv(4096, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return b""


def serves(place):
    try:
        return place.get("/healthz").status == 200
    except OSError:
        return False
