# SPDX-License-Identifier: Apache-2.0
"""Idempotency keys: whoever asks again because he does not know what became of the first time gets that, and no second
lease (failures F34, F43)."""

import json
import threading

import pytest

from lessor_fixtures import GIB, Background, needs_root, until
from test_limits import ALICE, BOB, System

BEAT = {"to": "heartbeat", "ttl_ms": 600000}


def ask(place, key, connection=None, **fields):
    fields.setdefault("bytes", "1G")
    fields.setdefault("bind", BEAT)
    return place.request("POST", "/api/leases", fields, {"Idempotency-Key": key}, connection=connection)


def ids(place):
    return [lease["id"] for lease in place.leases()]


def test_F43_request_repeated_with_its_key_is_answered_with_the_same_lease(place):
    first, second = ask(place, "k", mode="now"), ask(place, "k", mode="now")
    assert first.status == second.status == 201
    assert first.json["id"] == second.json["id"] == "L1" and ids(place) == ["L1"]
    assert "Idempotency-Replayed" not in first.headers and second.headers["Idempotency-Replayed"] == "true"
    assert ask(place, "another", mode="now").json["id"] == "L2"


def test_F43_queued_request_repeated_keeps_its_place_and_shows_what_became_of_it(place):
    place.ask("2500M", mode="now")
    first = ask(place, "k", mode="queue")
    assert first.status == 202 and first.json["state"] == "queued"
    again = ask(place, "k", mode="queue")
    assert again.status == 202 and again.json["id"] == first.json["id"] and len(place.queue()) == 1
    place.release("L1")
    until("it is granted", lambda: place.lease("L2").json["state"] == "granted")
    granted = ask(place, "k", mode="queue")
    assert granted.json["id"] == "L2" and granted.json["state"] == "granted" and len(ids(place)) == 1


def test_F34_two_at_once_with_one_key_make_one_lease(place):
    for n in range(30):
        start = threading.Barrier(2)

        def race(key=f"race-{n}"):
            c = place.connection()
            c.connect()
            start.wait()
            answer = ask(place, key, connection=c, mode="now", bytes="10M")
            c.close()
            return answer
        answers = [Background(race), Background(race)]
        answers = [a.answer() for a in answers]
        assert len(ids(place)) == n + 1, answers
        made = {a.json["id"] for a in answers if a.status == 201}
        assert len(made) == 1
        assert all(a.status == 201 or (a.status == 409 and a.problem == "idempotency-key-busy" and a.headers["Retry-After"])
                   for a in answers), answers


def test_first_request_that_still_waits_makes_the_second_wait_or_come_again(place):
    place.ask("2500M", mode="now")
    c = place.connection()
    c.request("POST", "/api/leases", json.dumps({"bytes": "1G", "bind": BEAT}),
              {"Content-Type": "application/json", "Idempotency-Key": "k"})
    until("it waits", lambda: len(place.queue()) == 1)
    busy = ask(place, "k")
    assert busy.status == 409 and busy.problem == "idempotency-key-busy" and int(busy.headers["Retry-After"]) >= 1, busy
    place.release("L1")
    r = c.getresponse()
    assert r.status == 201 and json.loads(r.read())["id"] == "L2"
    c.close()
    again = ask(place, "k")
    assert again.status == 201 and again.json["id"] == "L2" and ids(place) == ["L2"]


def test_key_with_another_body_is_refused_and_makes_nothing(place):
    ask(place, "k", mode="now")
    a = ask(place, "k", mode="now", bytes="1500M")
    assert a.status == 422 and a.problem == "idempotency-key-reused", a
    assert ids(place) == ["L1"]


def test_refused_request_leaves_its_key_free(place):
    place.ask("2500M", mode="now")
    assert ask(place, "k", mode="now").problem == "would-wait"
    assert ask(place, "k", mode="now").problem == "would-wait"
    place.release("L1")
    until("there is room", lambda: place.device()["free_bytes"] == 3 * GIB)
    assert ask(place, "k", mode="now").status == 201


def test_waiting_request_whose_client_left_is_made_anew_by_a_repetition(place):
    place.ask("2500M", mode="now")
    c = place.connection()
    c.request("POST", "/api/leases", json.dumps({"bytes": "1G", "bind": BEAT}),
              {"Content-Type": "application/json", "Idempotency-Key": "k"})
    until("it waits", lambda: len(place.queue()) == 1)
    c.close()
    until("its place is free", lambda: place.queue() == [])
    again = Background(lambda: ask(place, "k"))
    until("it waits again", lambda: [e["lease"] for e in place.queue()] == ["L3"])
    place.release("L1")
    assert again.answer().json["id"] == "L3"


def test_lease_that_has_ended_is_told_as_ended_and_not_made_again(place):
    ask(place, "k", mode="now")
    assert place.release("L1").status == 200
    a = ask(place, "k", mode="now")
    assert a.status == 410 and a.json["end"] == "released" and ids(place) == [], a


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_F43_key_survives_a_restart_with_its_lease(bare, how):
    bare.start()
    assert ask(bare, "granted", mode="now").json["id"] == "L1"
    assert ask(bare, "queued", mode="queue", bytes="2500M").json["id"] == "L2"
    getattr(bare, how)()
    bare.start()
    assert ask(bare, "granted", mode="now").json["id"] == "L1"
    again = ask(bare, "queued", mode="queue", bytes="2500M")
    assert again.json["id"] == "L2" and again.json["state"] == "queued", again
    assert ask(bare, "granted", mode="now", bytes="2G").problem == "idempotency-key-reused"
    assert ids(bare) == ["L1", "L2"] and len(bare.queue()) == 1


def test_F43_answer_lost_with_a_killed_daemon_is_found_again_by_its_key(bare):
    bare.start()
    body = json.dumps({"bytes": "100M", "mode": "queue", "bind": BEAT})  # to the byte the same, or it is another request
    for n in range(5):
        headers = {"Content-Type": "application/json", "Idempotency-Key": f"lost-{n}"}
        c = bare.connection()
        c.request("POST", "/api/leases", body, headers)
        bare.kill()  # whatever it had done by then
        c.close()
        bare.start()
        again = bare.request("POST", "/api/leases", body, headers)
        assert again.status in (201, 202), again
        assert len(ids(bare)) == n + 1


def test_renewal_with_a_key_renews_once(place):
    place.ask("1G", mode="now")
    for _ in range(2):
        a = place.request("POST", "/api/leases/L1/renew", {}, {"Idempotency-Key": "beat-1"})
        assert a.status == 200 and a.json["id"] == "L1", a
    assert place.request("POST", "/api/leases/L2/renew", {}, {"Idempotency-Key": "beat-1"}).status == 404


@needs_root
def test_key_of_another_user_is_another_key():
    system = System()
    try:
        system.start()
        body, key = {"bytes": "100M", "mode": "now", "bind": BEAT}, {"Idempotency-Key": "k"}
        made = [system.as_user(uid, "POST", "/api/leases", body, key).json for uid in (ALICE, BOB, ALICE)]
        assert [(m["id"], m["uid"]) for m in made] == [("L1", ALICE), ("L2", BOB), ("L1", ALICE)]
    finally:
        system.close()


@pytest.mark.parametrize("key", ["", "x" * 65, "a\tb", "\u00e4"])
def test_key_that_is_none_is_named(place, key):
    a = ask(place, key.encode("latin-1"), mode="now")
    assert a.status == 400 and ids(place) == [], a
    if a.problem == "bad-field":
        assert a.json["field"] == "Idempotency-Key"


def test_key_where_nothing_is_changed_is_ignored(place):
    for _ in range(2):
        assert place.request("GET", "/api/leases", None, {"Idempotency-Key": "k"}).status == 200
