# SPDX-License-Identifier: Apache-2.0
"""Whatever a client writes that is not right: every refusal names the field, what was given, what is allowed and the cure,
and changes nothing (failures F87, F88; security S05-S07)."""

import json
import os
import socket

import pytest

from lessor_fixtures import MIB, until

JSON = {"Content-Type": "application/json"}

FIELDS = [
    ("bytes", "-1"), ("bytes", "0"), ("bytes", str(2**63)), ("bytes", str(2**64)), ("bytes", "1e400"), ("bytes", "NaN"),
    ("bytes", "1.5"), ("bytes", "true"), ("bytes", '"12 G"'), ("bytes", '""'), ("bytes", '"-1"'), ("bytes", f'"{2**63}"'),
    ("bytes", f'"{2**64}"'), ("bytes", '"1e400"'), ("bytes", '"NaN"'), ("bytes", '"0%"'), ("bytes", '"101%"'),
    ("priority", "-1"), ("priority", "0"), ("priority", "6"), ("priority", str(2**63)), ("priority", str(2**64)),
    ("priority", "1e400"), ("priority", "NaN"), ("priority", '""'), ("priority", '"top"'),
    ("for", '""'), ("for", '"-1s"'), ("for", '"2 h"'), ("for", '"0s"'), ("for", "7"), ("for", f'"{2**64}s"'),
    ("for_ms", "-1"), ("for_ms", "0"), ("for_ms", str(2**63)), ("for_ms", "1e400"),
    ("wait", '""'), ("wait", '"soon"'), ("wait_ms", "-1"), ("wait_ms", "0"), ("wait_ms", str(2**64)),
    ("mode", '"later"'), ("mode", "1"), ("name", '""'), ("name", json.dumps("n" * 64)), ("name", '"a\\nb"'),
    ("consumer", '"\\u001b[31m"'), ("device", '""'), ("device", "0"), ("managed", "1"), ("kill_at_end", '"yes"'),
    ("yield_by", '"sleep"'), ("yield_by", '""'), ("yield_by", "[1]"), ("bind", '"process"'),
    ("bind.pid", '{"to":"process","pid":0}'), ("bind.pid", '{"to":"process","pid":4194305}'),
    ("bind.pid", '{"to":"process","pid":-1}'), ("bind.ttl_ms", '{"to":"heartbeat","ttl_ms":999}'),
    ("bind.ttl_ms", '{"to":"heartbeat","ttl_ms":86400001}'), ("bind", '{"to":"cgroup"}'),
    ("Bytes", "1"), ("uid", "0"), ("is_admin", "true"),
]


@pytest.mark.parametrize("field,value", FIELDS, ids=[f"{f}={v[:24]}" for f, v in FIELDS])
def test_field_out_of_range_is_named_with_the_cure(shared, field, value):
    top = field.split(".")[0]
    body = "{" + ("" if top == "bytes" else '"bytes":1,') + f'"{top}":{value}' + "}"
    a = shared.request("POST", "/api/leases", body)
    assert a.status == 400 and a.problem == "bad-field", a
    said = a.json
    assert said["field"] == field and said["given"] and said["allowed"] and said["cure"], said
    assert shared.leases() == [] and shared.queue() == []


BODIES = {
    "nothing": "", "half an object": '{"bytes":', "a list": "[1]", "a text": '"bytes"', "two objects": '{"bytes":1}{"bytes":1}',
    "a key twice": '{"bytes":1,"bytes":2}', "65 levels": '{"bytes":' + "[" * 64 + "]" * 64 + "}",
    "a lone surrogate": '{"bytes":1,"name":"\\ud800"}', "a NUL": '{"bytes":1,"name":"a\\u0000"}',
    "no UTF-8": b'{"bytes":1,"name":"\xff\xfe"}', "a comment": '{"bytes":1, /* one */ "name":"x"}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_F87_body_that_is_no_object_is_refused(shared, body):
    a = shared.request("POST", "/api/leases", body)
    assert a.status == 400 and a.problem == "bad-json", a
    assert shared.leases() == []


def test_F87_body_nested_a_thousandfold_is_refused_and_the_daemon_lives(shared):
    a = shared.request("POST", "/api/leases", "[" * 60000)
    assert a.status == 400 and a.problem == "bad-json"
    assert shared.get("/healthz").status == 200


def test_S07_body_at_its_limit_is_read_and_one_byte_more_is_refused(shared):
    body = '{"bytes":"x"}'
    fits = body + " " * (65536 - len(body))
    a = shared.request("POST", "/api/leases", fits)
    assert a.status == 400 and a.json["field"] == "bytes"
    a = shared.request("POST", "/api/leases", fits + " ")
    assert a.status == 413 and a.problem == "too-large"


def test_process_that_does_not_live_is_named(shared):
    a = shared.request("POST", "/api/leases", {"bytes": 1, "bind": {"to": "process", "pid": 4194303}})
    assert a.status == 400 and a.json["field"] == "bind.pid" and a.json["given"] == "4194303"


QUERIES = ["after=-1", "after=x", f"after={2**63}", "wait_ms=5", "after=1&wait_ms=3600001", "after=1&wait_ms=-1", "wiat_ms=1"]


@pytest.mark.parametrize("query", QUERIES)
def test_query_out_of_range_is_named(shared, query):
    a = shared.get(f"/api/leases/L1?{query}")
    assert a.status == 400 and a.problem == "bad-field" and a.json["field"] in ("after", "wait_ms", "wiat_ms"), a


def test_method_that_an_address_does_not_take_is_refused(shared):
    a = shared.request("PUT", "/api/leases", {"bytes": 1})
    assert a.status == 405 and "GET, POST" in a.json["detail"]
    assert shared.request("OPTIONS", "/api/leases").status == 405
    assert shared.get("/").status == 404 and shared.get("/api/leases/L1/x").status == 404
    assert shared.request("HEAD", "/healthz").status == 200


# ---- below HTTP: bytes on the socket ----

def talk(shared, text, half_close=False):
    """What comes back for these bytes, until the daemon closes or answers; and whether it closed."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(shared.socket)
    s.sendall(text)
    if half_close:
        s.shutdown(socket.SHUT_WR)
    got = b""
    while chunk := s.recv(65536):
        got += chunk
    s.close()
    return got


def framed(*headers, body=b'{"bytes":1}'):
    lines = ["POST /api/leases HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


CHUNKED = b'b\r\n{"bytes":1}\r\n0\r\n\r\n'
FRAMINGS = {
    "length -1": framed("Content-Length: -1"),
    "length +11": framed("Content-Length: +11"),
    "length 2^64-1": framed("Content-Length: 18446744073709551615"),
    "length 2^64": framed("Content-Length: 18446744073709551616"),
    "length 0x0b": framed("Content-Length: 0x0b"),
    "no length": framed("Content-Length:"),
    "two lengths": framed("Content-Length: 11", "Content-Length: 12"),
    "two equal lengths": framed("Content-Length: 11", "Content-Length: 11"),
    "a list of lengths": framed("Content-Length: 11, 11"),
    "chunked and a length": framed("Content-Length: 11", "Transfer-Encoding: chunked", body=CHUNKED),
    "a length and chunked": framed("Transfer-Encoding: chunked", "Content-Length: 5", body=CHUNKED),
    "gzip, chunked": framed("Transfer-Encoding: gzip, chunked", body=CHUNKED),
    "identity": framed("Transfer-Encoding: identity", "Content-Length: 11"),
    "chunked twice": framed("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=CHUNKED),
    "chunk size -1": framed("Transfer-Encoding: chunked", body=b'-1\r\n{"bytes":1}\r\n0\r\n\r\n'),
    "chunk size 2^64": framed("Transfer-Encoding: chunked", body=b'10000000000000000\r\n{"bytes":1}\r\n0\r\n\r\n'),
}


@pytest.mark.parametrize("text", FRAMINGS.values(), ids=FRAMINGS.keys())
def test_F88_ambiguous_framing_is_refused_and_closed(shared, text):
    got = talk(shared, text)
    assert got == b"" or got.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")), got
    # (libmicrohttpd 0.9.75 says the head of its own refusals twice; never more, and never anything but the refusal)
    status_lines = [line for line in got.split(b"\r\n") if line.startswith(b"HTTP/1.")]
    assert len(status_lines) <= 2 and len(set(status_lines)) <= 1, status_lines
    assert shared.leases() == [] and shared.queue() == []


def test_S06_chunked_body_means_the_same_as_one_with_a_length(place):
    body = b'{"bytes":"1G","mode":"now","bind":{"to":"heartbeat"}}'
    text = b"".join(b"1\r\n%c\r\n" % c for c in body) + b"0\r\n\r\n"
    got = talk(place, framed("Transfer-Encoding: chunked", "Connection: close", body=text))
    assert got.startswith(b"HTTP/1.1 201")


def test_S07_chunked_body_above_the_limit_is_refused(shared):
    text = (b"1000\r\n" + b" " * 4096 + b"\r\n") * 17 + b"0\r\n\r\n"
    got = talk(shared, framed("Transfer-Encoding: chunked", "Connection: close", body=text))
    assert got.startswith(b"HTTP/1.1 413"), got


def test_S07_head_above_its_limit_is_refused_and_closed(shared):
    for big in (b"X: " + b"y" * 9000, b"\r\n".join(b"X%d: y" % i for i in range(80)), b"X: " + b"y" * 100000):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(60)
        s.connect(shared.socket)
        got = b""
        try:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + big + b"\r\n\r\n")
            while chunk := s.recv(65536):
                got += chunk
        except (BrokenPipeError, ConnectionResetError):
            pass  # it had enough before we were through
        s.close()
        assert got == b"" or got.startswith(b"HTTP/1.1 431") or got.startswith(b"HTTP/1.1 4"), got[:200]
    assert shared.get("/healthz").status == 200


@pytest.mark.parametrize("text", [b"\x00" * 64, b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET /healthz HTTP/9.9\r\n\r\n",
                                  b"BREW /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                                  b"GET /healthz?%00%ff%zz=%00 HTTP/1.1\r\nConnection: close\r\n\r\n",
                                  b"GET /api/leases/%00 HTTP/1.1\r\nConnection: close\r\n\r\n"])
def test_bytes_that_are_no_request_of_ours_are_no_harm(shared, text):
    got = talk(shared, text, half_close=True)
    assert b" 200 " not in got.split(b"\r\n")[0], got
    assert shared.get("/healthz").status == 200


def test_F88_slow_requests_are_closed_by_a_total_deadline_while_others_are_served(place):
    slow = []
    for n in range(60):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(60)
        s.connect(place.socket)
        # half of them never finish the head, half never finish the body
        s.sendall(b"POST /api/leases HTTP/1.1\r\nX: y" if n % 2 else framed("Content-Length: 11", body=b'{"by'))
        slow.append(s)
    assert place.get("/healthz").status == 200
    assert place.ask(MIB, mode="now").status == 201
    for s in slow:
        try:
            s.sendall(b"t")  # one more byte is no new deadline
            got = s.recv(65536)
        except OSError:
            got = b""
        assert got == b"" or got.startswith(b"HTTP/1.1 4"), got
        s.close()
    assert [x["id"] for x in place.leases()] == ["L1"]


def to_its_end(s):
    """All that comes until it is closed; an answer may come in several pieces."""
    return b"".join(iter(lambda: s.recv(65536), b""))


def test_slow_request_behind_one_that_was_answered_is_closed_by_the_same_deadline(place):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)  # half of what a connection without any request may stay
        s.connect(place.socket)
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert s.recv(65536).startswith(b"HTTP/1.1 200 ")
        s.sendall(b"GET /healthz HTTP/1.1\r\nX: y")
        assert b"HTTP/1.1 " not in to_its_end(s)


def test_slow_request_that_came_in_one_with_the_one_before_is_closed_by_the_same_deadline(place):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)  # half of what a connection without any request may stay
        s.connect(place.socket)
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nX: y")
        said = to_its_end(s)
        assert said.startswith(b"HTTP/1.1 200 ") and said.count(b"HTTP/1.1 ") == 1, said


def test_closed_connections_leave_no_descriptor_behind(place):
    def open_files():
        return len(os.listdir(f"/proc/{place.daemon.pid}/fd"))
    until("the hands are there", lambda: place.get("/api/status").json["hands"] == "ok")
    before = open_files()
    for n in range(40):
        s = socket.socket(socket.AF_UNIX)
        s.connect(place.socket)
        if n % 3:
            s.sendall(b"GET /healthz HTTP/1.1\r\n" if n % 3 == 1 else framed("Content-Length: 100"))
        s.close()
    until("all are closed", lambda: open_files() <= before)


def test_answer_to_a_head_has_no_body_also_where_events_would_stream(shared):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(shared.socket)
        s.sendall(b"HEAD /api/events HTTP/1.1\r\nAccept: text/event-stream\r\n\r\n"
                  b"GET /nowhere HTTP/1.1\r\nConnection: close\r\n\r\n")
        said = to_its_end(s)
    first, rest = said.split(b"\r\n\r\n", 1)
    assert first.startswith(b"HTTP/1.1 200 ") and rest.startswith(b"HTTP/1.1 404 "), said
