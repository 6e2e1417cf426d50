# SPDX-License-Identifier: Apache-2.0
"""The HTTP API against a real daemon on a simulated card: asking, waiting, collecting, ending, looking, listening."""

import json
import os
import signal
import socket
import threading

from lessor_fixtures import GIB, MIB, Background, owner_uid, until


# ---- asking and ending ----

def test_request_that_fits_is_granted_at_once_and_counted(place):
    before = place.device()
    assert before["total_bytes"] == 3 * GIB and before["used_bytes"] == 0 and before["free_bytes"] == 3 * GIB
    a = place.ask("1500M", mode="now", name="first", **{"for": "2h"})
    assert a.status == 201, a
    lease = a.json
    assert lease["id"] == "L1" and lease["state"] == "active" and lease["bytes"] == 1500 * MIB
    assert lease["size"] == "1500 MiB (1.57 GB)" and lease["priority"] == 3 and lease["priority_name"] == "normal"
    assert lease["device"] == before["uuid"] and lease["name"] == "first" and lease["uid"] == owner_uid()
    assert lease["reason"]["rule"] == "fits" and lease["why"].startswith("granted")
    assert 0 < lease["slot_left_ms"] <= 7200000 and not lease["over_time"]
    after = place.device()
    assert after["reserved_bytes"] == 1500 * MIB and after["free_bytes"] == 3 * GIB - 1500 * MIB
    assert [h["lease"] for h in after["holders"]] == ["L1"]


def test_release_gives_the_memory_back_once(place):
    place.ask("1G", mode="now")
    released = place.release("L1")
    assert released.status == 200 and released.json["state"] == "ended", released
    again = place.release("L1")
    assert again.status == 410 and again.problem == "ended" and again.json["end"] == "released"
    assert place.lease("L1").status == 410
    assert place.device()["free_bytes"] == 3 * GIB
    assert len([e for e in place.events(lease="L1") if e["kind"] == "ended"]) == 1


def test_lease_that_never_was_is_not_found(place):
    assert place.lease("L7").problem == "not-found"
    assert place.release("L7").status == 404
    assert place.lease("seven").status == 404
    assert place.get("/api/why/L7").status == 404


def test_request_above_the_ceiling_fails_at_once_and_names_it(place):
    a = place.ask("3500M")
    assert a.status == 422 and a.problem == "never-fits", a
    assert a.json["ceiling_bytes"] == 3 * GIB and "blockers" in a.json and a.json["reason"]["rule"] == "never-fits"


def test_request_without_wait_is_refused_and_leaves_nothing(place):
    place.ask("2500M", mode="now")
    a = place.ask("1500M", mode="now")
    assert a.status == 409 and a.problem == "would-wait", a
    assert [b["lease"] for b in a.json["reason"]["blockers"]] == ["L1"]
    assert place.queue() == [] and [x["id"] for x in place.leases()] == ["L1"]


def test_unknown_device_is_named(place):
    a = place.ask("1G", device="GPU-nothing-like-it")
    assert a.status == 404 and a.problem == "unknown-device"
    uuid = place.device()["uuid"]
    assert place.ask("1G", mode="now", device=uuid[:12]).json["device"] == uuid


def test_urgent_without_an_end_is_refused(place):
    a = place.ask("1G", priority=1)
    assert a.status == 403 and a.problem == "urgent-needs-slot"
    assert place.ask("1G", priority="urgent", kill_at_end=True, for_ms=60000, mode="now").status == 201


# ---- waiting ----

def test_waiting_request_is_answered_with_its_grant(place):
    place.ask("2500M", mode="now")
    second = place.ask_in_background("1500M", name="second")
    entry = until("it waits", lambda: place.queue() and place.queue()[0])
    assert entry["lease"] == "L2" and entry["place"] == 1 and entry["bytes"] == 1500 * MIB and entry["is_head"]
    waiting = place.lease("L2").json
    assert waiting["state"] == "queued" and waiting["place"] == 1 and waiting["n_waiting"] == 1
    assert waiting["expected_start_ms"] is None and "L1" in waiting["expectation"]
    assert place.release("L1").status == 200
    granted = second.answer()
    assert granted.status == 201 and granted.json["id"] == "L2" and granted.json["state"] == "active", granted
    assert place.queue() == []


def test_expectation_is_finite_when_the_holder_gave_a_limit(place):
    place.ask("2500M", mode="now", **{"for": "1h"})
    place.ask("1500M", mode="queue")
    lease = until("its start is computed", lambda: (x := place.lease("L2").json)["expected_start_ms"] and x)
    assert 0 < lease["expected_start_ms"] <= 3600000 and lease["expectation"].startswith("in about")


def test_wait_that_is_over_is_a_conflict(place):
    place.ask("2500M", mode="now")
    a = place.ask("1500M", wait_ms=50)
    assert a.status == 409 and a.problem == "wait-over" and a.json["end"] == "wait-over", a
    assert place.queue() == []


def test_queued_request_is_collected_by_its_owner(place):
    place.ask("2500M", mode="now")
    a = place.ask("1500M", mode="queue")
    assert a.status == 202 and a.json["state"] == "queued", a
    early = place.request("POST", "/api/leases/L2/activate", {})
    assert early.status == 409 and early.problem == "wrong-state"
    place.release("L1")
    until("it is granted", lambda: place.lease("L2").json["state"] == "granted")
    b = place.request("POST", "/api/leases/L2/activate", {"pid": os.getpid()})
    assert b.status == 200 and b.json["state"] == "active", b


def test_long_poll_answers_when_something_changed(place):
    place.ask("2500M", mode="now")
    place.ask("1500M", mode="queue")
    # what it waits for may be a look first, then room
    rev = until("it waits for L1", lambda: "L1" in str((x := place.lease("L2").json)["reason"]["blockers"]) and x["rev"])
    unchanged = place.get(f"/api/leases/L2?after={rev}&wait_ms=20")
    assert unchanged.status == 200 and unchanged.json["rev"] == rev
    waiting = Background(lambda: place.get(f"/api/leases/L2?after={rev}&wait_ms=600000"))
    place.release("L1")
    changed = waiting.answer()
    assert changed.status == 200 and changed.json["rev"] > rev, changed
    rev = until("it is granted", lambda: (x := place.lease("L2").json)["state"] == "granted" and x)["rev"]
    waiting = Background(lambda: place.get(f"/api/leases/L2?after={rev}&wait_ms=600000"))
    place.release("L2")
    assert waiting.answer().status == 410


def test_client_that_leaves_while_it_waits_frees_its_place(place):
    place.ask("2500M", mode="now")
    leaver = place.connection()
    leaver.request("POST", "/api/leases", json.dumps({"bytes": "1500M", "bind": {"to": "heartbeat"}}),
                   {"Content-Type": "application/json"})
    until("it waits", lambda: len(place.queue()) == 1)
    place.ask("1600M", mode="queue")
    assert [e["lease"] for e in place.queue()] == ["L2", "L3"]
    leaver.close()
    until("its place is free", lambda: [e["lease"] for e in place.queue()] == ["L3"])
    assert place.ended("L2") == "cancelled"


def test_client_that_leaves_a_long_poll_costs_nothing_but_the_poll(place):
    place.ask("2500M", mode="now")
    rev = place.ask("1500M", mode="queue").json["rev"]
    looker = place.connection()
    looker.request("GET", f"/api/leases/L2?after={rev}&wait_ms=600000")
    looker.close()
    assert place.lease("L2").json["state"] == "queued"


def test_two_clients_racing_for_the_last_bytes_never_both_win(place):
    rounds = 60
    for _ in range(rounds):
        start = threading.Barrier(2)

        def race():
            c = place.connection()
            c.connect()
            start.wait()
            answer = place.ask("1700M", mode="now", connection=c)
            c.close()
            return answer
        racers = [Background(race), Background(race)]
        answers = [r.answer() for r in racers]
        assert sorted(a.status for a in answers) == [201, 409], answers
        winner = next(a for a in answers if a.status == 201).json["id"]
        assert place.device()["reserved_bytes"] == 1700 * MIB
        assert place.release(winner).status == 200
    assert place.device()["free_bytes"] == 3 * GIB


# ---- what a lease is bound to ----

def test_lease_ends_with_its_process(place):
    owner = place.sleeper()
    a = place.ask("1G", mode="now", bind={"to": "process", "pid": owner.pid})
    assert a.status == 201 and a.json["binding"] == {"to": "process", "pid": owner.pid, "ttl_ms": None}
    owner.send_signal(signal.SIGKILL)
    assert place.ended("L1") == "owner-exited"
    owner.wait()
    assert place.device()["free_bytes"] == 3 * GIB


def test_queued_lease_ends_with_its_process(place):
    owner = place.sleeper()
    place.ask("2500M", mode="now")
    place.ask("1500M", mode="queue", bind={"to": "process", "pid": owner.pid})
    owner.kill()
    assert place.ended("L2") == "owner-exited"


def test_lease_ends_with_its_connection(place):
    c = place.connection()
    a = place.ask("1G", mode="now", bind={"to": "connection"}, connection=c)
    assert a.status == 201 and a.json["binding"]["to"] == "connection"
    assert place.lease("L1").json["state"] == "active"
    c.close()
    assert place.ended("L1") == "connection-closed"


def test_lease_without_a_heartbeat_expires_and_with_one_does_not(place):
    place.ask("1G", mode="now", bind={"to": "heartbeat", "ttl_ms": 1000})
    place.ask("1G", mode="now", bind={"to": "heartbeat", "ttl_ms": 600000})
    assert place.request("POST", "/api/leases/L2/renew").status == 200
    assert place.request("POST", "/api/leases/L2/renew", {}).status == 200
    assert place.ended("L1") == "expired" and place.lease("L2").json["state"] == "active"
    late = place.request("POST", "/api/leases/L1/renew")
    assert late.status == 410 and late.json["end"] == "expired"


def test_default_binding_is_the_caller_itself(place):
    a = place.request("POST", "/api/leases", {"bytes": "1G", "mode": "now"})
    assert a.json["binding"]["to"] == "process" and a.json["binding"]["pid"] == os.getpid()
    assert a.json["consumer"]


# ---- looking ----

def test_stranger_shrinks_what_is_free_and_is_named(place):
    stranger = place.hog("1G")
    seen = until("it is seen", lambda: (s := place.strangers()) and s[0])
    assert seen["pid"] == stranger.pid and seen["used_bytes"] == GIB and seen["comm"]
    a = place.ask("2500M", mode="now")
    assert a.status == 409 and a.json["reason"]["blockers"][0]["kind"] == "stranger", a
    stranger.kill()
    until("it is gone", lambda: place.get("/api/status").json["strangers"] == [])
    assert place.ask("2500M", mode="now").status == 201


def test_status_has_everything_at_once(place):
    place.ask("2G", mode="now", name="x")
    place.ask("2G", mode="queue")
    s = place.get("/api/status").json
    assert s["version"] and s["started"].endswith("Z") and s["gpu"] == "ok" and s["degraded"] is None
    assert s["read_only_reason"] is None and s["strangers"] == []
    assert [d["reserved_bytes"] for d in s["devices"]] == [2 * GIB]
    assert {x["id"]: x["state"] for x in s["leases"]} == {"L1": "active", "L2": "queued"}
    assert [e["lease"] for e in s["queue"]] == ["L2"]
    health = place.get("/healthz").json
    assert health["status"] == "ok" and health["gpu"] == "ok" and health["gpu_age_ms"] >= 0


def test_why_tells_the_story_of_a_lease(place):
    place.ask("2500M", mode="now")
    place.ask("1500M", mode="queue")
    why = place.get("/api/why/L2").json
    assert why["lease"]["id"] == "L2" and why["text"].startswith("waits") and why["events"][0]["kind"] == "queued"
    place.release("L2")
    why = place.get("/api/why/L2").json
    assert why["lease"] is None and why["text"].startswith("ended")
    assert [e["kind"] for e in why["events"]][-1] == "ended"


# ---- events ----

def test_events_are_told_in_order_and_in_pages(place):
    place.ask("1G", mode="now")
    place.release("L1")
    everything = place.events()
    assert [e["id"] for e in everything] == sorted({e["id"] for e in everything})
    # a busy machine may have to look at the card once more first
    assert [e["kind"] for e in everything if e["lease"] == "L1" and e["kind"] != "queued"] == ["granted", "active", "ended"]
    first = place.get("/api/events?limit=1").json
    assert len(first["events"]) == 1 and first["next"] == everything[0]["id"]
    rest = place.get(f"/api/events?after={first['next']}").json
    assert [e["id"] for e in rest["events"]] == [e["id"] for e in everything[1:]]
    assert place.get(f"/api/events?after={rest['next']}").json == {"events": [], "next": rest["next"]}
    granted = next(e for e in everything if e["kind"] == "granted")
    assert granted["rule"] == "fits" and granted["reason"]["need_bytes"] == GIB and granted["text"]
    assert place.get("/api/events?limit=0").status == 400 and place.get("/api/events?lease=x").status == 400


class Stream:
    """Server-sent events of one connection, as they come."""

    def __init__(self, place, path="/api/events", **headers):
        self.connection = place.connection()
        self.connection.request("GET", path, headers={"Accept": "text/event-stream", **headers})
        self.response = self.connection.getresponse()
        assert self.response.status == 200 and self.response.headers["Content-Type"] == "text/event-stream"

    def next(self):
        event = {}
        while True:
            line = self.response.readline().decode().rstrip("\n")
            if line == "" and event.get("data"):
                return event
            if line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                event[name] = value

    def close(self):
        self.connection.close()


def test_event_stream_tells_the_past_then_the_present(place):
    place.ask("1G", mode="now")
    known = place.events()
    stream = Stream(place)
    told = [stream.next() for _ in known]
    assert [int(t["id"]) for t in told] == [e["id"] for e in known]
    assert [json.loads(t["data"]) for t in told] == known
    place.release("L1")
    live = stream.next()
    assert live["event"] == "ended" and json.loads(live["data"])["lease"] == "L1"
    stream.close()


def test_event_stream_of_one_lease_goes_on_where_it_was(place):
    place.ask("1G", mode="now")
    place.ask("1G", mode="now")
    first = Stream(place, "/api/events?lease=L2")
    begin = first.next()
    assert json.loads(begin["data"])["lease"] == "L2"
    first.close()
    place.release("L1")
    place.release("L2")
    again = Stream(place, "/api/events?lease=L2", **{"Last-Event-ID": begin["id"]})
    told = [again.next()["event"]]
    while told[-1] != "ended":
        told.append(again.next()["event"])
    # a busy machine may have to look at the card once more first: then the first of all was that it is queued
    assert told == (["active", "ended"] if begin["event"] == "granted" else ["granted", "active", "ended"]), (begin, told)
    again.close()


def test_stream_reader_that_reads_nothing_holds_nobody_up(place):
    idle = socket.socket(socket.AF_UNIX)
    idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    idle.connect(place.socket)
    idle.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
    for _ in range(150):
        lease = place.ask("1G", mode="now").json["id"]
        assert place.release(lease).status == 200
    assert place.get("/healthz").status == 200
    idle.close()


# ---- connections ----

def test_connection_serves_many_requests(place):
    c = place.connection()
    for n in range(1, 30):
        assert place.ask("1G", mode="now", connection=c).json["id"] == f"L{n}"
        assert place.request("DELETE", f"/api/leases/L{n}", connection=c).status == 200
        assert place.request("GET", "/healthz", connection=c).status == 200
    c.close()


def test_requests_sent_in_one_piece_are_answered_in_order(place):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(place.socket)
    body = b'{"bytes":"1G","mode":"now","bind":{"to":"heartbeat"}}'
    head = b"POST /api/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    s.sendall((head % len(body) + body) * 3 + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    text = b""
    while chunk := s.recv(65536):
        text += chunk
    assert text.count(b"HTTP/1.1 201") == 3 and text.count(b"HTTP/1.1 200") == 1
    assert text.index(b'"L1"') < text.index(b'"L2"') < text.index(b'"L3"') < text.index(b'"status":"ok"')
    s.close()
