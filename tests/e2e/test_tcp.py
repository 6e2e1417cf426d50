# SPDX-License-Identifier: Apache-2.0
"""The doors by TCP (security S04, S05): what they refuse to open, whom they let in, and what each token may do."""

import http.client
import json
import os
import re
import secrets
import shutil
import socket
import ssl
import subprocess
import warnings

import pytest

from lessor_fixtures import GIB, Answer, Place, until


class Doors(Place):
    """A place whose lessord also serves by TCP; tokens lie beside its configuration."""

    def __init__(self):
        super().__init__()
        self.tokens = {}
        os.makedirs(self.home, mode=0o700)

    def path(self, name):
        return os.path.join(self.home, name)

    def token(self, name, text=None, mode=0o600):
        self.tokens[name] = text or secrets.token_hex(32)
        with open(self.path(name), "w", encoding="ascii") as file:
            os.fchmod(file.fileno(), mode)
            file.write(self.tokens[name] + "\n")
        return self.path(name)

    def address(self, door):
        found = re.findall(rf'event=door name="{door} (.*):(\d+)"', self.log())
        host, port = found[-1]
        return host.strip("[]"), int(port)

    def tcp(self, method, path, token=None, body=None, headers=None, door="tcp", connection=None):
        host, port = self.address(door)
        c = connection or http.client.HTTPConnection(host, port, timeout=60)
        headers = dict(headers or {})
        if token is not None:
            headers["Authorization"] = "Bearer " + token
        if body is not None:
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        c.request(method, path, body, headers)
        answer = Answer(c.getresponse())
        if not connection:
            c.close()
        return answer


@pytest.fixture(scope="module")
def doors():
    place = Doors()
    place.conf(f"tcp_listen = 127.0.0.1:0\n"
               f"tcp_token_file = {place.token('reader')}\n"
               f"tcp_admin_token_file = {place.token('admin')}\n"
               f"tcp_hosts = gpu.example box:8443\n"
               f"metrics_listen = [::1]:0\n"
               f"metrics_token_file = {place.token('metrics')}\n")
    place.start()
    yield place
    assert place.close() == 0


@pytest.fixture
def closed():
    place = Doors()
    yield place
    place.close()


def refused(place, conf):
    """It does not start: its exit status and its words; nothing listens meanwhile."""
    place.conf(conf)
    daemon = place.spawn_daemon()
    status = daemon.wait(60)
    assert "event=door" not in place.log() and "ready socket=" not in place.log()
    return status, place.log()


# ---- what is not opened ----

def test_S04_tcp_is_off_by_default(place):
    assert "event=door" not in place.log()
    inodes = set()
    for fd in os.listdir(f"/proc/{place.daemon.pid}/fd"):
        try:
            target = os.readlink(f"/proc/{place.daemon.pid}/fd/{fd}")
        except OSError:
            continue
        if target.startswith("socket:"):
            inodes.add(target[8:-1])
    for table in ("tcp", "tcp6", "udp", "udp6"):
        with open(f"/proc/{place.daemon.pid}/net/{table}", encoding="ascii") as file:
            assert not inodes & {line.split()[9] for line in file.readlines()[1:]}


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.7:8787", "[fd00::7]:8787"])
def test_S04_address_of_others_without_tls_is_refused(closed, listen):
    token = closed.token("token")
    status, words = refused(closed, f"tcp_listen = {listen}\ntcp_token_file = {token}\n")
    assert status == 78 and "tcp_cert and tcp_key" in words and listen in words, words
    os.unlink(os.path.join(closed.dir, "lessord.err"))
    status, words = refused(closed, f"metrics_listen = {listen}\nmetrics_token_file = {token}\n")
    assert status == 78 and "tcp_cert and tcp_key" in words, words


@pytest.mark.parametrize("conf,words", [
    ("tcp_listen = 127.0.0.1:0\n", "without a token everybody would be let in"),
    ("metrics_listen = 127.0.0.1:0\n", "without a token everybody could read"),
    ("tcp_listen = localhost:8787\n", "localhost:8787 is not allowed"),
    ("tcp_listen = 127.0.0.1\n", "127.0.0.1 is not allowed"),
    ("tcp_listen = 127.0.0.1:65536\n", "is not allowed"),
    ("tcp_listen = ::1:8787\n", "is not allowed"),
    ("tcp_listen =\n", "nothing behind the ="),
    ("tcp_cert = /dev/null\n", "belong together"),
    ("admin_group = no-such-group-here\n", "there is no group no-such-group-here"),
    ("tcp_listen = 127.0.0.1:0\ntcp_token_file = TOKEN\ntcp_uid = nobody-like-that\n", "there is no user nobody-like-that"),
    ("tcp_listen = 127.0.0.1:0\ntcp_token_file = TOKEN\ntcp_uid = 0\n", "root is not allowed"),
    ("tcp_listen = 127.0.0.1:0\ntcp_token_file = TOKEN\ntcp_admin_token_file = TOKEN\n", "the same token"),
    ("tcp_listen = 127.0.0.1:0\ntcp_token_file = OPEN\n", "others can read"),
    ("tcp_listen = 127.0.0.1:0\ntcp_token_file = LINK\n", "is a link"),
    ("tcp_listen = 127.0.0.1:0\ntcp_token_file = SHORT\n", "holds no token of 256 bits"),
    ("tcp_listen = 127.0.0.1:0\ntcp_token_file = /nowhere/token\n", "No such file"),
])
def test_S04_door_that_would_not_be_safe_is_not_opened(closed, conf, words):
    os.symlink(closed.token("TOKEN"), closed.path("LINK"))
    closed.token("OPEN", mode=0o644)
    closed.token("SHORT", text="0123456789abcdef")
    for name in ("TOKEN", "OPEN", "LINK", "SHORT"):
        conf = conf.replace(f"= {name}", f"= {closed.path(name)}")
    status, said = refused(closed, conf)
    assert status == 78 and words in said, said
    assert not any(t in said for t in closed.tokens.values())


# ---- whom they let in ----

def test_S04_token_is_asked_for_in_every_request(doors):
    c = http.client.HTTPConnection(*doors.address("tcp"), timeout=60)
    a = doors.tcp("GET", "/healthz", connection=c)
    assert a.status == 401 and a.problem == "token-missing" and a.headers["WWW-Authenticate"].startswith("Bearer"), a
    assert doors.tcp("GET", "/healthz", doors.tokens["reader"], connection=c).status == 200
    a = doors.tcp("GET", "/healthz", connection=c)  # the connection has not become anybody's by that
    assert a.status == 401 and a.problem == "token-missing"
    c.close()


def test_S04_token_that_is_wrong_or_of_another_door_is_refused(doors):
    for token in (secrets.token_hex(32), doors.tokens["reader"][:-1], doors.tokens["metrics"], doors.tokens["reader"] + "0"):
        a = doors.tcp("GET", "/api/status", token)
        assert a.status == 401 and a.problem == "token-wrong", a
    basic = doors.tcp("GET", "/api/status", headers={"Authorization": "Basic " + doors.tokens["reader"]})
    assert basic.status == 401


def test_S04_users_token_without_a_user_only_reads(doors):
    reader = doors.tokens["reader"]
    assert doors.tcp("GET", "/api/status", reader).status == 200
    for method, path, body in (("POST", "/api/leases", {"bytes": 1}), ("DELETE", "/api/leases/L1", None),
                               ("POST", "/api/leases/L1/renew", {}), ("POST", "/api/leases/L1/activate", {})):
        a = doors.tcp(method, path, reader, body)
        assert a.status == 403 and a.problem == "reads-only" and "tcp_uid" in a.json["detail"], a
    assert doors.leases() == []


def test_S04_administrators_token_does_everything_but_name_processes(doors):
    admin, beat = doors.tokens["admin"], {"to": "heartbeat", "ttl_ms": 600000}
    a = doors.tcp("POST", "/api/leases", admin, {"bytes": GIB, "mode": "now", "name": "far", "bind": beat})
    assert a.status == 201 and a.json["uid"] == os.geteuid() and a.json["name"] == "far", a
    seen = doors.tcp("GET", "/api/leases/" + a.json["id"], doors.tokens["reader"])
    assert seen.status == 200 and "far" not in seen.raw.decode()
    assert doors.tcp("DELETE", "/api/leases/" + a.json["id"], admin).status == 200
    for bind in (None, {"to": "process"}):
        a = doors.tcp("POST", "/api/leases", admin, {"bytes": GIB, "mode": "now", "bind": bind})
        assert a.status == 400 and a.json["field"] == "bind", a
    a = doors.tcp("POST", "/api/leases", admin, {"bytes": GIB, "mode": "now", "bind": {"to": "process", "pid": os.getpid()}})
    assert a.status == 403 and a.problem == "not-yours", a
    assert doors.leases() == []


def test_S04_users_token_acts_as_the_user_named_for_it(closed):
    closed.conf(f"tcp_listen = 127.0.0.1:0\ntcp_token_file = {closed.token('user')}\ntcp_uid = 61001\nceiling_user = 3\n")
    closed.start()
    user = closed.tokens["user"]
    beat = {"to": "heartbeat", "ttl_ms": 600000}
    assert closed.ask("1G", mode="now").status == 201
    a = closed.tcp("POST", "/api/leases", user, {"bytes": GIB, "mode": "now", "bind": beat})
    assert a.status == 201 and a.json["uid"] == 61001, a
    a = closed.tcp("POST", "/api/leases", user, {"bytes": GIB, "priority": 2, "bind": beat})
    assert a.status == 403 and a.problem == "priority-ceiling", a
    a = closed.tcp("DELETE", "/api/leases/L1", user)
    assert a.status == 403 and a.problem == "not-owner", a
    assert closed.tcp("DELETE", "/api/leases/L2", user).status == 200


def test_lease_bound_to_a_tcp_connection_ends_with_it(doors):
    c = http.client.HTTPConnection(*doors.address("tcp"), timeout=60)
    a = doors.tcp("POST", "/api/leases", doors.tokens["admin"], {"bytes": GIB, "mode": "now", "bind": {"to": "connection"}},
                  connection=c)
    assert a.status == 201, a
    c.close()
    assert doors.ended(a.json["id"]) == "connection-closed"


@pytest.mark.parametrize("query", ["token", "access_token", "Token", "limit=1&access_token"])
def test_S04_token_in_an_address_is_refused_and_not_repeated(doors, query):
    for who in ("tcp", "unix"):
        path = f"/api/events?{query}={doors.tokens['reader']}"
        a = doors.tcp("GET", path, doors.tokens["reader"]) if who == "tcp" else doors.get(path)
        assert a.status == 400 and a.problem == "token-in-address" and doors.tokens["reader"] not in a.raw.decode(), a


def test_S16_no_token_is_in_the_log_the_journal_or_an_answer(closed):
    closed.conf(f"tcp_listen = 127.0.0.1:0\ntcp_admin_token_file = {closed.token('admin')}\n")
    closed.start("--log-level", "debug")
    admin, wrong = closed.tokens["admin"], secrets.token_hex(32)
    beat = {"to": "heartbeat", "ttl_ms": 600000}
    answers = [closed.tcp("GET", "/api/status", admin), closed.tcp("GET", "/api/status", wrong),
               closed.tcp("POST", "/api/leases", admin, {"bytes": GIB, "mode": "now", "bind": beat}),
               closed.tcp("GET", "/api/events", admin), closed.tcp("GET", "/api/why/L1", admin)]
    assert [a.status for a in answers] == [200, 401, 201, 200, 200]
    assert closed.stop() == 0
    files = [os.path.join(folder, n) for folder, _, names in os.walk(closed.dir) for n in names if n != "admin"]
    assert os.path.join(closed.dir, "lessord.err") in files and closed.path("journal.db") in files
    texts = [a.raw for a in answers]
    for name in filter(os.path.isfile, files):
        with open(name, "rb") as file:
            texts.append(file.read())
    assert not any(t.encode() in text for t in (admin, wrong) for text in texts)


# ---- wrong tokens ----

def ask_without_reading(place, token):
    s = socket.create_connection(place.address("tcp"), timeout=60)
    s.sendall(f"GET /healthz HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    s.setblocking(False)
    return s


def has_answer(s):
    try:
        return bool(s.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return False


def test_S04_wrong_tokens_are_answered_late_and_lock_nobody_out(closed):
    closed.conf(f"tcp_listen = 127.0.0.1:0\ntcp_token_file = {closed.token('reader')}\n")
    closed.start()
    wrong = [ask_without_reading(closed, secrets.token_hex(32)) for _ in range(30)]
    try:
        until("the first nine are answered", lambda: sum(map(has_answer, wrong)) >= 9)
        until("it is said once with a count", lambda: "event=wrong-tokens" in closed.log())
        # the right token from the same address is not held up by them, nor is the unix socket
        assert closed.tcp("GET", "/healthz", closed.tokens["reader"]).status == 200
        assert closed.get("/healthz").status == 200
        assert sum(map(has_answer, wrong)) < len(wrong), "all of them were answered as if nothing had happened"
        lines = [line for line in closed.log().splitlines() if "event=wrong-tokens" in line]
        assert len(lines) == 1 and "count=10 " in lines[0], lines
        late = until("one that is late is answered in the end", lambda: next(
            (s for s in wrong if has_answer(s) and s.recv(65536).startswith(b"HTTP/1.1 401")), None))
        assert late
    finally:
        for s in wrong:
            s.close()
    until("who left is gone", lambda: len(os.listdir(f"/proc/{closed.daemon.pid}/fd")) < 30)


# ---- S05 ----

HEADERS = [
    ({"Host": "localhost"}, 200), ({"Host": "127.0.0.1:1"}, 200), ({"Host": "[::1]"}, 200), ({"Host": "gpu.example"}, 200),
    ({"Host": "gpu.example:8787"}, 200), ({"Host": "box:8443"}, 200), ({"Host": "box"}, 403), ({"Host": "lessor"}, 403),
    ({"Host": ""}, 403), ({"Host": "evil.example"}, 403), ({"Host": "localhost.evil.example"}, 403),
    ({"Host": "gpu.example."}, 403), ({"Host": "localhost."}, 403), ({"Host": "0x7f000001"}, 403), ({"Host": "127.1"}, 403),
    ({"Host": "[::ffff:127.0.0.1]"}, 403), ({"Host": "::1"}, 403), ({"Host": "169.254.169.254"}, 403),
    ({"Origin": "null"}, 403), ({"Origin": "http://localhost:8787"}, 403), ({"Origin": "https://gpu.example"}, 403),
    ({"Origin": "https://evil.example"}, 403), ({"Origin": ""}, 403), ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Sec-Fetch-Site": "same-site"}, 403), ({"Sec-Fetch-Site": "none"}, 200), ({"Sec-Fetch-Site": "same-origin"}, 200),
    ({"Upgrade": "websocket", "Connection": "Upgrade"}, 400), ({"Upgrade": "h2c", "Connection": "Upgrade, HTTP2-Settings"}, 400),
]


@pytest.mark.parametrize("headers,status", HEADERS, ids=[json.dumps(h) for h, _ in HEADERS])
def test_S05_web_page_with_the_right_token_is_refused_all_the_same(doors, headers, status):
    admin = doors.tokens["admin"]
    for method, path in (("GET", "/healthz"), ("GET", "/api/leases"), ("GET", "/api/nothing")):
        a = doors.tcp(method, path, admin, headers=headers)
        assert a.status == (404 if status == 200 and path == "/api/nothing" else status), a
        assert not [h for h in a.headers if h.lower().startswith("access-control-")]
    if status != 200:
        for method, path in (("POST", "/api/leases"), ("OPTIONS", "/api/leases"), ("DELETE", "/api/leases/L1")):
            assert doors.tcp(method, path, admin, {"bytes": 1}, headers).status == status
        assert doors.leases() == []


@pytest.mark.parametrize("head", [
    "Host: localhost\r\nHost: localhost", "Host: localhost\r\nHost: evil.example", "Accept: */*", "Host : localhost"])
def test_S05_host_that_is_not_there_once_is_refused(doors, head):
    s = socket.create_connection(doors.address("tcp"), timeout=60)
    s.sendall(f"GET /healthz HTTP/1.1\r\n{head}\r\nAuthorization: Bearer {doors.tokens['admin']}\r\nConnection: close\r\n\r\n"
              .encode())
    assert re.match(rb"HTTP/1.1 40[03] ", s.recv(65536))
    s.close()


def test_S05_preflight_gets_no_permission(doors):
    for path in ("/api/leases", "*"):
        a = doors.tcp("OPTIONS", path, doors.tokens["admin"], headers={
            "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"})
        assert a.status in (404, 405) and not [h for h in a.headers if h.lower().startswith("access-control-")]


# ---- the door for metrics ----

def test_metrics_door_has_its_own_token_and_nothing_else_behind_it(doors):
    metrics = doors.tokens["metrics"]
    assert doors.tcp("GET", "/healthz", metrics, door="metrics").status == 200
    for token in (None, doors.tokens["admin"], doors.tokens["reader"]):
        assert doors.tcp("GET", "/healthz", token, door="metrics").status == 401
    for method, path in (("GET", "/api/status"), ("GET", "/api/leases"), ("GET", "/api/events"), ("POST", "/api/leases"),
                         ("DELETE", "/api/leases/L1"), ("GET", "/nothing")):
        a = doors.tcp(method, path, metrics, door="metrics")
        assert a.status == 404 and a.problem == "not-found", a
    assert doors.tcp("GET", "/healthz", metrics, door="metrics", headers={"Host": "gpu.example"}).status == 403


# ---- TLS ----

@pytest.fixture
def certificate(closed):
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl here to make a certificate")
    cert, key = closed.path("cert.pem"), closed.path("key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert],
                   check=True, capture_output=True)
    os.chmod(key, 0o600)
    return cert, key


def test_S04_tls_serves_every_address_and_nobody_without_it(closed, certificate):
    cert, key = certificate
    closed.conf(f"tcp_listen = 0.0.0.0:0\ntcp_token_file = {closed.token('reader')}\ntcp_cert = {cert}\ntcp_key = {key}\n"
                f"metrics_listen = 127.0.0.1:0\nmetrics_token_file = {closed.token('metrics')}\n")
    closed.start()
    context = ssl.create_default_context(cafile=cert)
    for door, token in (("tcp", "reader"), ("metrics", "metrics")):
        _, port = closed.address(door)
        c = http.client.HTTPSConnection("localhost", port, timeout=60, context=context)
        for _ in range(3):  # one connection, several requests
            assert closed.tcp("GET", "/healthz", closed.tokens[token], connection=c).status == 200
        assert closed.tcp("GET", "/healthz", connection=c).status == 401
        assert c.sock.version() in ("TLSv1.2", "TLSv1.3")
        c.close()
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.load_verify_locations(cert)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            old.minimum_version = ssl.TLSVersion.TLSv1
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            http.client.HTTPSConnection("localhost", port, timeout=60, context=old).connect()
        plain = socket.create_connection(("127.0.0.1", port), timeout=60)
        plain.sendall(f"GET /healthz HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {closed.tokens[token]}\r\n\r\n".encode())
        got = b""
        try:
            while chunk := plain.recv(65536):
                got += chunk
        except ConnectionError:
            pass
        assert b"HTTP/1" not in got and b"status" not in got
        plain.close()
    assert closed.get("/healthz").status == 200
    # an event stream and a long answer over TLS
    c = http.client.HTTPSConnection("localhost", closed.address("tcp")[1], timeout=60, context=context)
    closed.ask("1G", mode="now")
    c.request("GET", "/api/events", headers={"Authorization": "Bearer " + closed.tokens["reader"], "Accept": "text/event-stream"})
    stream = c.getresponse()
    seen = b""
    while b"event: active" not in seen:
        seen += stream.read1(4096)
    c.close()
    assert closed.stop() == 0


def test_S04_certificate_that_is_none_is_refused(closed, certificate):
    cert, key = certificate
    conf = f"tcp_listen = 127.0.0.1:0\ntcp_token_file = {closed.token('reader')}\n"
    closed.conf(conf + f"tcp_cert = {key}\ntcp_key = {key}\n")
    daemon = closed.spawn_daemon()
    assert daemon.wait(60) in (1, 78) and "TLS cannot be started" in closed.log()
    os.chmod(key, 0o644)
    os.unlink(os.path.join(closed.dir, "lessord.err"))
    status, words = refused(closed, conf + f"tcp_cert = {cert}\ntcp_key = {key}\n")
    assert status == 78 and "others can read the key" in words
