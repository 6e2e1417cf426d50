# SPDX-License-Identifier: Apache-2.0
"""How much one user may ask for, and that others and the administrator are served all the same (security S07, S19)."""

import collections
import contextlib
import json
import os
import re
import signal
import subprocess

import pytest

from lessor_fixtures import LESSORD, MIB, NOBODY_LIKE_UIDS, SIMGPU, Answer, Background, Place, UnixConnection, needs_root, until

ALICE, BOB = NOBODY_LIKE_UIDS
GPU_GROUP, ADMIN_GROUP = 61500, 61501
pytestmark = needs_root


class System(Place):
    """lessord --system for several users: its folders are ours, bound over the machine's in a mount namespace, and so is
    the list of groups, with gpu and gpuadmins in it."""

    def __init__(self):
        super().__init__()
        if subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            pytest.skip("no mount namespaces here")
        os.chmod(self.dir, 0o755)
        self.home = os.path.join(self.dir, "run")
        self.socket = os.path.join(self.home, "lessor.sock")
        os.mkdir(self.home, 0o755)
        os.makedirs(os.path.join(self.dir, "lib"))
        with open("/etc/group", encoding="utf-8") as old, open(os.path.join(self.dir, "group"), "w", encoding="utf-8") as new:
            new.write(old.read() + f"gpu:x:{GPU_GROUP}:\ngpuadmins:x:{ADMIN_GROUP}:\n")
        self.conf_path = os.path.join(self.dir, "lessord.conf")
        self.conf("")

    def conf(self, text):
        with open(self.conf_path, "w", encoding="utf-8") as file:
            file.write(text)

    def spawn_daemon(self, *options):
        prefix = []
        if options and options[0].startswith("--nofile="):
            prefix, options = ["prlimit", options[0]], options[1:]
        script = ('mount --bind "$1/group" /etc/group && mount -t tmpfs none /run && mkdir -m 755 /run/lessor && '
                  'mount --bind "$1/run" /run/lessor && mount --bind "$1/lib" /var/lib && shift && exec "$@"')
        with open(os.path.join(self.dir, "lessord.err"), "ab") as err:
            return subprocess.Popen(
                [SIMGPU, "run", "--file", self.card, "--", "unshare", "--mount", "sh", "-c", script, "sh", self.dir, *prefix,
                 "setpriv", f"--groups={GPU_GROUP}", LESSORD, "--system", "--config", self.conf_path, *options],
                env=self.env, stdin=subprocess.DEVNULL, stdout=err, stderr=err)

    def connection_of(self, uid, *gids):
        """Connected as that user, who is a member of gpu: the kernel notes who it is when it connects."""
        c = UnixConnection(self.socket)

        def connects():
            try:
                c.connect()
            except BlockingIOError:  # there is no room in the backlog just now
                return False
            return True
        with acting_as(uid, gids or (GPU_GROUP,)):
            until("it is connected", connects)
        return c

    def as_user(self, uid, method, path, body=None, headers=None, gids=()):
        c = self.connection_of(uid, *gids)
        try:
            return self.request(method, path, body, headers, connection=c)
        finally:
            c.close()


@contextlib.contextmanager
def acting_as(uid, gids):
    groups = os.getgroups()
    os.setgroups(list(gids))
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


@pytest.fixture
def system():
    place = System()
    yield place
    place.close()


def send(c, path, headers=""):
    c.sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())


def answer_of(c):
    r = c.response_class(c.sock)
    r.begin()
    return Answer(r)


# ---- the socket ----

def test_S03_socket_of_the_system_is_its_groups(system):
    system.start()
    socket_of, folder = os.stat(system.socket), os.stat(system.home)
    assert (socket_of.st_mode & 0o7777, socket_of.st_uid, socket_of.st_gid) == (0o660, 0, GPU_GROUP)
    assert (folder.st_mode & 0o7777, folder.st_uid) == (0o755, 0)
    assert system.as_user(ALICE, "GET", "/healthz").status == 200
    with pytest.raises(PermissionError), acting_as(ALICE, (ALICE,)):
        UnixConnection(system.socket).connect()
    with open("/proc/net/unix", encoding="ascii", errors="replace") as file:
        assert not [line for line in file if " @" in line and "lessor" in line], "an abstract socket"


def test_socket_group_that_is_not_there_is_refused(system):
    system.conf("socket_group = nobody-has-that\n")
    assert system.spawn_daemon().wait(60) != 0
    assert "there is no group nobody-has-that; `groupadd --system nobody-has-that` makes it" in system.log()


# ---- who administers ----

def test_limits_of_a_group_are_its_members_also_where_it_is_the_primary_one(system):
    """The kernel names the supplementary groups and the primary one apart."""
    system.conf(f"[group {ALICE}]\nleases_max = 3\n[group {GPU_GROUP}]\nleases_max = 4\n")
    system.start()
    for uid, row, most in ((ALICE, f"group {ALICE}", 3), (BOB, f"group {GPU_GROUP}", 4)):
        shown = system.as_user(uid, "GET", "/api/limits").json
        assert shown["row"] == row and shown["limits"]["leases_max"] == most, shown


@pytest.mark.parametrize("what", ["park", "thaw", "yielded", "idle", "busy", "forgive"])
def test_parking_what_is_not_yours_is_403_and_an_event_that_says_who_tried(system, what):
    system.conf("admin_group = gpuadmins\n")
    system.start()
    ask = {"bytes": "1G", "mode": "now", "bind": {"to": "heartbeat"}}
    assert system.as_user(ALICE, "POST", "/api/leases", ask).status == 201
    refused = system.as_user(BOB, "POST", f"/api/leases/L1/{what}", {})
    assert refused.status == 403 and refused.problem == "not-owner", refused
    told = [e for e in system.get("/api/events?lease=L1").json["events"] if e["kind"] == "refused"]
    assert [(e["rule"], e["uid"]) for e in told] == [("not-owner", BOB)]
    assert system.get("/api/leases/L1").json["state"] == "active"
    other = system.as_user(ALICE, "POST", f"/api/leases/L1/{what}", {}, gids=(GPU_GROUP,))
    assert other.status in (200, 409), other


def test_members_of_admin_group_administer_and_others_do_not(system):
    system.conf("admin_group = gpuadmins\nceiling_user = 3\nceiling_admin = 2\n")
    system.start()
    ask = {"bytes": "100M", "mode": "now", "priority": 2, "bind": {"to": "heartbeat", "ttl_ms": 600000}}
    assert system.as_user(ALICE, "POST", "/api/leases", ask).problem == "priority-ceiling"
    assert system.as_user(ALICE, "POST", "/api/leases", ask, gids=(GPU_GROUP, ADMIN_GROUP)).status == 201
    assert system.as_user(BOB, "DELETE", "/api/leases/L1").problem == "not-owner"
    assert system.as_user(BOB, "DELETE", "/api/leases/L1", gids=[*range(70000, 70600), GPU_GROUP, ADMIN_GROUP]).status == 200


def test_what_is_for_administrators_names_the_group_and_the_cure(system):
    system.conf("admin_group = gpuadmins\n")
    system.start()
    a = system.as_user(ALICE, "POST", "/api/reload")
    assert a.status == 403 and a.problem == "not-admin" and "`usermod -aG gpuadmins NAME`" in a.json["detail"], a
    assert system.as_user(ALICE, "POST", "/api/reload", gids=(GPU_GROUP, ADMIN_GROUP)).status == 200
    system.stop()
    system.conf("")
    system.start()
    a = system.as_user(ALICE, "POST", "/api/reload", gids=(GPU_GROUP, ADMIN_GROUP))
    assert a.status == 403 and "admin_group in lessord.conf" in a.json["detail"], a


# ---- how many connections ----

def test_S07_one_user_has_256_connections_and_is_told_so(system):
    system.start()
    held = [system.connection_of(ALICE) for _ in range(256)]
    one_more = system.connection_of(ALICE)
    told = until("the next one is told", lambda: one_more.sock.recv(4096))
    assert told.startswith(b"HTTP/1.1 429") and b"limit-connections" in told and b"this user" in told
    assert b"Retry-After:" in told
    assert system.as_user(BOB, "GET", "/healthz").status == 200
    held.pop().close()
    until("there is room again", lambda: works(system, ALICE))


def works(system, uid):
    try:
        return system.as_user(uid, "GET", "/healthz").status == 200
    except OSError:
        return False


def test_S07_one_connection_is_kept_for_an_administrator(system):
    """With 400 descriptors there are 36 connections; one user takes all he gets."""
    system.start("--nofile=400:400")
    held = []

    def all_taken():
        c = system.connection_of(ALICE)
        held.append(c)
        with contextlib.suppress(BrokenPipeError):  # it is told so, and closed, before it asks
            send(c, "/healthz")
        return c.sock.recv(4096).startswith(b"HTTP/1.1 429") and len(held)
    n = until("all are taken", all_taken)
    assert 30 < n < 40, n
    b = system.connection_of(BOB)
    assert b.sock.recv(4096).startswith(b"HTTP/1.1 429")
    root = UnixConnection(system.socket)
    a = system.request("GET", "/api/status", connection=root)
    assert a.status == 200, a
    ask = {"bytes": "100M", "mode": "now", "bind": {"to": "heartbeat", "ttl_ms": 600000}}
    assert system.request("POST", "/api/leases", ask, connection=root).status == 201
    assert system.request("DELETE", "/api/leases/L1", connection=root).status == 200


# ---- how many that wait ----

def test_S07_so_many_requests_wait_and_one_more_for_an_administrator(system):
    system.start()
    made = system.ask("100M", mode="now").json
    poll = f"/api/leases/L1?after={made['rev']}&wait_ms=3600000"
    waiting = [system.connection_of(ALICE) for _ in range(256)] + [system.connection_of(BOB) for _ in range(255)]
    for c in waiting:
        send(c, poll)

    def full():
        a = system.as_user(61003, "GET", poll.replace("3600000", "1"))
        return a.status == 429 and a
    a = until("511 wait", full)
    assert a.problem == "limit-waiting" and a.headers["Retry-After"], a
    for path, headers in (("/api/events", {"Accept": "text/event-stream"}), (poll, {})):
        assert system.as_user(61003, "GET", path, headers=headers).problem == "limit-waiting"
    asked = system.as_user(61003, "POST", "/api/leases", {"bytes": "3G", "bind": {"to": "connection"}})
    assert asked.problem == "limit-waiting" and len(system.leases()) == 1
    queued = system.as_user(61003, "POST", "/api/leases", {"bytes": "3G", "mode": "queue", "bind": {"to": "heartbeat"}})
    assert queued.status == 202, queued
    root = UnixConnection(system.socket)
    root.connect()
    send(root, poll)
    until("the last place is taken", lambda: system.get(poll.replace("3600000", "1")).status == 429)
    assert system.get("/healthz").status == 200
    assert system.release("L1").status == 200
    for c in [*waiting[:3], root]:
        assert answer_of(c).status == 410


# ---- how often ----

def test_S19_requests_beyond_the_bucket_are_refused_and_leave_no_trace(system):
    system.conf("requests_per_s = 1\nrequests_burst = 5\n")
    system.start()
    c = system.connection_of(ALICE)
    ask = {"bytes": "100M", "mode": "now", "bind": {"to": "heartbeat", "ttl_ms": 600000}}
    told = until("it is enough", lambda: (a := system.request("POST", "/api/leases", ask, connection=c)).status == 429 and a)
    assert told.problem == "limit-requests" and int(told.headers["Retry-After"]) >= 1, told
    assert "requests_per_s" in told.json["detail"]
    before = system.events(limit=1000)
    refused = sum(system.request("POST", "/api/leases", ask, connection=c).status == 429 for _ in range(200))
    assert refused > 150
    after = system.events(limit=1000)
    assert len(after) - len(before) <= 3 * (200 - refused)
    assert system.request("GET", "/api/status", connection=c).status == 200, "looking is free"
    assert system.as_user(BOB, "POST", "/api/leases", ask).status == 201
    for _ in range(20):
        assert system.request("POST", "/api/leases/L1/renew", {}).status == 200


def test_S19_refusals_without_end_do_not_push_out_what_happened(bare):
    bare.start()
    bare.ask("2G", mode="now")
    ask = json.dumps({"bytes": "2G", "mode": "now", "bind": {"to": "heartbeat"}})

    def refused_until_it_is_enough():
        c, n = bare.connection(), 0
        while (a := bare.request("POST", "/api/leases", ask, connection=c)).status == 409:
            n += 1
            assert n < 50000, "there is no end to it"
        assert a.status == 429 and a.problem == "limit-refusals" and a.headers["Retry-After"], a
        assert bare.request("GET", "/api/status", connection=c).status == 200
        c.close()
        return n
    # several at once: they are allowed again at a rate, and one after the other may be slower than that
    assert sum(b.answer() for b in [Background(refused_until_it_is_enough) for _ in range(8)]) >= 990


def flood(c, request, n, at_once=50):
    """@n requests of one connection, at_once of them in a row, and how they were answered."""
    with c.sock.makefile("rb") as stream:
        for _ in range(n // at_once):
            c.sock.sendall(request * at_once)
            for _ in range(at_once):
                yield int(stream.readline().split()[1])
                length = 0
                while (line := stream.readline().lower()) != b"\r\n":
                    length = int(line.split(b":")[1]) if line.startswith(b"content-length:") else length
                stream.read(length)


def test_S19_hundred_thousand_requests_of_one_user_hold_up_nobody_and_fill_no_disk(system):
    """Counted in answers, not in time: those of the other user came while the flood went on, in the order he asked."""
    system.start()
    body = json.dumps({"bytes": "64M", "mode": "queue", "bind": {"to": "heartbeat", "ttl_ms": 600000}})
    request = (f"POST /api/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
               f"Content-Length: {len(body)}\r\n\r\n{body}").encode()
    counts = [collections.Counter() for _ in range(8)]
    crowd = [Background(lambda c=system.connection_of(ALICE), own=own: own.update(flood(c, request, 12500))) for own in counts]
    one, got = system.connection_of(BOB), []
    while any(b.is_alive() for b in crowd):
        answer = system.request("POST", "/api/leases", body, {"Content-Type": "application/json"}, connection=one)
        assert answer.status in (201, 202), answer
        got.append(int(answer.json["id"][1:]))
        assert system.request("DELETE", f"/api/leases/{answer.json['id']}", connection=one).status == 200
    for b in crowd:
        b.answer()
    told = sum(counts, collections.Counter())
    assert told.total() == 100000 and told[429] > 99000 and set(told) <= {201, 202, 429}, told
    assert len(got) >= 2 and got == sorted(got), got
    size = sum(os.path.getsize(os.path.join(folder, name))
               for folder, _, names in os.walk(os.path.join(system.dir, "lib")) for name in names)
    assert size < 16 * MIB, f"{size} bytes on the disk"
    assert len(system.leases()) <= told[201] + told[202]


# ---- whose turn ----

def answers(log):
    return re.findall(r"event=answer door=unix uid=(\d+) method=GET path=(\S+) status=200", log)


@pytest.mark.parametrize("path", ["/healthz", "/api/status", "/api/events"])
@pytest.mark.parametrize("order", ["first", "last"])
def test_S19_one_user_with_240_connections_does_not_hold_up_another_one(system, path, order):
    """Counted in answers, not in time: how many the crowd got before the one got his."""
    system.start("--log-level", "debug")
    crowd, one = [system.connection_of(ALICE) for _ in range(240)], system.connection_of(BOB)
    for c in [*crowd, one]:
        send(c, "/healthz")
        assert answer_of(c).status == 200
    begin = len(system.log())
    system.daemon.send_signal(signal.SIGSTOP)
    until("it stands still", lambda: state_of(system.daemon.pid) == "T")
    for c in [one, *crowd] if order == "first" else [*crowd, one]:
        send(c, path if c is one else "/api/status")
    system.daemon.send_signal(signal.SIGCONT)
    assert answer_of(one).status == 200
    for c in crowd:
        assert answer_of(c).status == 200
    log = until("all of it is in the log", lambda: len(a := answers(system.log()[begin:])) == 241 and a)
    before = log.index((str(BOB), path))
    assert before <= 12, f"{before} answers of the crowd came first"


@pytest.mark.skipif(os.environ.get("LESSOR_SANITIZED") == "1",
                    reason="built with sanitizers: 16 MiB of answers are not made within the 5 s that one may stay unread")
def test_S19_answers_that_one_user_does_not_read_fill_no_memory(system):
    system.start()
    one, ask = system.connection_of(ALICE), {"bytes": "1M", "mode": "now", "bind": {"to": "heartbeat", "ttl_ms": 600000}}
    for _ in range(400):
        assert system.request("POST", "/api/leases", ask, connection=one).status == 201
    crowd = [system.connection_of(ALICE) for _ in range(240)]
    for c in crowd:
        send(c, "/api/leases")
    # Answers that fit into a socket are gone from here; of the others so many are made.
    refused = until("it is enough", lambda: (a := system.request("GET", "/api/status", connection=one)).status == 429 and a)
    assert refused.problem == "limit-unread" and refused.headers["Retry-After"], refused
    assert system.request("GET", "/healthz", connection=one).status == 200
    assert len(system.as_user(BOB, "GET", "/api/leases").json["leases"]) == 400
    for c in crowd:
        c.close()
    until("he is served again", lambda: system.request("GET", "/api/status", connection=one).status == 200)


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def test_who_leaves_while_he_waits_for_his_turn_is_forgotten(system):
    system.start()
    crowd = [system.connection_of(ALICE) for _ in range(200)]
    system.daemon.send_signal(signal.SIGSTOP)
    for c in crowd:
        send(c, "/api/status")
    for c in crowd[::2]:
        c.sock.close()
    system.daemon.send_signal(signal.SIGCONT)
    for c in crowd[1::2]:
        assert answer_of(c).status == 200
    assert system.get("/api/status").status == 200


# ---- what a connection remembers ----

def test_S19_connection_forgets_the_leases_bound_to_it_that_have_ended(place):
    c = place.connection()
    for _ in range(300):
        a = place.ask("100M", mode="now", bind={"to": "connection"}, connection=c)
        assert a.status == 201 and place.request("DELETE", f"/api/leases/{a.json['id']}", connection=c).status == 200
    kept = [place.ask("10M", mode="now", bind={"to": "connection"}, connection=c).json["id"] for _ in range(40)]
    assert len(place.leases()) == 40
    c.close()
    assert [place.ended(i) for i in kept] == ["connection-closed"] * 40
    until("the card is free again", lambda: place.device()["reserved_bytes"] == 0)
