# SPDX-License-Identifier: Apache-2.0
"""Memory promised for a time to come: made, refused, kept, collected, cancelled, made again, on the simulated card.

Nothing here sleeps until a booking begins: facts are waited for, and that none came too early is told by the world's own figures.
"""

import datetime
import http.client
import json
import os
import re
import socket

import pytest

from cli_helpers import MIB, SIMGPU, Place, until

CONF = "booking_lead = 0\nlinger_filler = 0\ncard_quiet = 0\nyield_grace = 1s\n"


@pytest.fixture(name="place")
def fixture_place():
    place = Place()
    with open(os.path.join(place.dir, "lessord.conf"), "a", encoding="utf-8") as file:
        file.write(CONF)
    assert ask(place, "POST", "/api/reload")[0] == 200
    yield place
    place.close()


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


def ask(place, method, path, body=None):
    c = Connection(place.env["LESSOR_SOCKET"])
    c.request(method, path, body=None if body is None else json.dumps(body), headers={"Content-Type": "application/json"})
    answer = c.getresponse()
    data = json.loads(answer.read() or "null")
    c.close()
    return answer.status, data


def book(place, **fields):
    fields = {"bytes": "2000M", "in": "1h", "for": "10m", **fields}
    status, lease = ask(place, "POST", "/api/leases", {k: v for k, v in fields.items() if v is not None})
    assert status == 202, lease
    return lease


def lease_of(place, lease_id):
    status, lease = ask(place, "GET", f"/api/leases/{lease_id}")
    return lease if status == 200 else None


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


# ---- it is there ----

def test_booking_is_there_at_its_time_and_the_filler_before_it_gives_way(place):
    place.hog("fill", "2500M", "--filler")
    place.holds(2500 * MIB)
    until("what the filler uses is known", lambda: place.lease("fill")["used_bytes"] == 2500 * MIB)
    booked = book(place, **{"in": "10s"}, name="mine")
    assert booked["state"] == "queued" and booked["binding"] == {"to": "heartbeat", "pid": None, "ttl_ms": 31536000000}
    assert re.match(r"begins in \d", booked["booking"]["words"]) and booked["booking"]["every"] is None
    assert moment(booked["booking"]["end"]) - moment(booked["booking"]["start"]) == datetime.timedelta(minutes=10)
    assert place.lease("fill")["state"] == "active", "until then others use the memory"
    early = place.lessor("run", "--no-wait", "--booking", booked["id"], "--", "true")
    assert early.returncode == 124 and "begins in" in early.stderr and "stays booked" in early.stderr

    run = place.start("run", "--booking", booked["id"], "--", SIMGPU, "hog", "--alloc", "2000M")
    place.holds(2000 * MIB)
    mine = place.in_state("mine", "active")
    assert mine["id"] == booked["id"] and mine["waited_ms"] >= 10000, "not before its time"
    assert mine["binding"]["to"] == "process" and mine["binding"]["pid"] == run.pid
    assert mine["booking"]["words"] == "collected" and mine["slot_left_ms"] <= 600000
    assert place.lease("fill")["state"] == "parked"
    again = place.lessor("run", "--booking", booked["id"], "--", "true")
    assert again.returncode == 125 and "somebody has it already" in again.stderr

    run.terminate()
    assert f"{booked['id']} begins in" in run.communicate(timeout=60)[1]
    place.gone("mine")
    place.in_state("fill", "active")


def test_booking_is_kept_until_it_is_collected_also_over_a_restart(place):
    booked = book(place, **{"in": "2s"})
    other = book(place, **{"in": "5h"}, name="other")
    place.kill_daemon()
    place.start_daemon()
    assert lease_of(place, other["id"])["booking"]["start"] == other["booking"]["start"]
    kept = until("it is granted", lambda: (l := lease_of(place, booked["id"])) and l["state"] == "granted" and l)
    assert f"lessor run --booking {booked['id']}" in kept["booking"]["words"]
    refused = place.lessor("run", "--no-wait", "--vram", "2000M", "--", "true")
    assert refused.returncode == 124, "its memory is nobody else's"
    place.kill_daemon()
    place.start_daemon()
    done = place.lessor("run", "--booking", booked["id"], "--", "sh", "-c", "echo in $LESSOR_LEASE")
    assert done.stdout == f"in {booked['id']}\n", done.stderr
    until("it is given back", lambda: lease_of(place, booked["id"]) is None)
    missing = place.lessor("run", "--booking", booked["id"], "--", "true")
    assert missing.returncode == 125 and "has ended" in missing.stderr


def test_booking_that_nobody_collects_ends_with_its_time(place):
    booked = book(place, **{"in": "1s", "for": "1s"})
    status, gone = until("it is over", lambda: (a := ask(place, "GET", f"/api/leases/{booked['id']}"))[0] == 410 and a)
    assert status == 410 and "nobody collected" in json.dumps(gone), gone


def test_new_work_that_would_be_in_its_way_waits_and_says_for_what(place):
    booked = book(place)
    place.hog("long", "2000M")
    waits = place.in_state("long", "queued")
    assert waits["reason"]["rule"] == "before-booking" and f"booking {booked['id']}" in waits["why"]
    short = place.lessor("run", "--vram", "2000M", "--for", "30m", "--", "true")
    assert short.returncode == 0, "what ends in time goes ahead"
    assert place.lessor("book", "cancel", booked["id"]).stdout == f"{booked['id']} is cancelled\n"
    place.in_state("long", "active")


# ---- no ----

@pytest.mark.parametrize("fields, status, problem", [
    ({"in": None, "start": "2026-11-30T22:00:00"}, 400, "start"),
    ({"in": None, "start": "22:00"}, 400, "start"),
    ({"in": None, "start": 1796158800}, 400, "start"),
    ({"start": "2099-01-01T00:00:00Z"}, 400, "in"),
    ({"in": None, "start": "2001-01-01T00:00:00Z"}, 422, "booking-past"),
    ({"in": None, "start": "2099-01-01T00:00:00+01:00"}, 422, "booking-past"),
    ({"in": "20d"}, 422, "booking-past"),
    ({"in": "0s"}, 400, "in"),
    ({"for": None}, 400, "for"),
    ({"for": "21h", "every": "day"}, 400, "for"),
    ({"every": "week"}, 400, "every"),
    ({"in": None, "every": "day"}, 400, "every"),
    ({"mode": "wait"}, 400, "mode"),
    ({"mode": "now"}, 400, "mode"),
    ({"wait": "1h"}, 400, "wait"),
    ({"bind": {"to": "connection"}}, 400, "bind"),
    ({"exclusive": True}, 400, "exclusive"),
    ({"filler": True}, 400, "filler"),
    ({"bytes": "4G"}, 422, "never-fits"),
    ({"device": "GPU-none"}, 404, "unknown-device"),
], ids=str)
def test_booking_that_cannot_be_is_refused_when_it_is_made(shared, fields, status, problem):
    body = {"bytes": "100M", "in": "1h", "for": "10m", **fields}
    got, answer = ask(shared, "POST", "/api/leases", {k: v for k, v in body.items() if v is not None})
    assert got == status, answer
    assert answer.get("field", answer["type"].removeprefix("urn:lessor:problem:")) == problem, answer
    assert shared.leases() == []


@pytest.fixture(scope="module", name="shared")
def fixture_shared():
    place = Place()
    yield place
    place.close()


def test_what_is_booked_is_not_booked_twice(place):
    first = book(place)
    taken = place.lessor("book", "--in", "65m", "--for", "10m", "--vram", "2000M")
    assert taken.returncode == 1 and "too much is booked for that time already" in taken.stderr and taken.stdout == ""
    status, planned = ask(place, "POST", "/api/plan", {"bytes": "2000M", "in": "65m", "for": "10m"})
    assert status == 200 and planned["outcome"] == "refused" and planned["type"] == "booking-taken"
    status, planned = ask(place, "POST", "/api/plan", {"bytes": "2000M", "in": "80m", "for": "10m"})
    assert status == 200 and planned["outcome"] == "wait" and 0 < planned["expected_start_ms"] <= 80 * 60000
    status, changed = ask(place, "PATCH", f"/api/leases/{first['id']}", {"for": "3h"})
    assert status == 409, changed
    beside = place.lessor("book", "--in", "65m", "--for", "10m", "--vram", "500M")
    assert beside.returncode == 0, beside.stderr


# ---- the command line ----

def test_book_says_when_that_is_and_list_and_cancel_know_it(place):
    zone = {"TZ": "XYZ-1"}
    made = place.lessor("book", "--at", "tomorrow 22:00", "--for", "3h", "--vram", "2000M", "--name", "training", env=zone)
    assert made.returncode == 0, made.stderr
    local = datetime.datetime.now(datetime.timezone(datetime.timedelta(hours=1)))
    assert re.search(r"from \d{4}-\d\d-\d\d 22:00 XYZ \(UTC\+01:00\), in \d", made.stderr)
    assert re.search(r"until \d{4}-\d\d-\d\d 01:00 XYZ \(UTC\+01:00\)", made.stderr) and "clock" not in made.stderr
    later = made.stdout.strip()
    start = moment(lease_of(place, later)["booking"]["start"])
    assert (start.hour, start.minute) == (21, 0) and (start.date() - local.date()).days in (0, 1)
    sooner = json.loads(place.lessor("book", "--in", "2h", "--for", "1h", "--vram", "1G", "--json").stdout)
    listed = place.lessor("book", "list", env=zone)
    assert re.findall(r"^  (L\d+) ", listed.stdout, re.M) == [sooner["id"], later]
    assert "22:00 XYZ (UTC+01:00)" in listed.stdout and "· training" in listed.stdout and "begins in" in listed.stdout
    assert [b["id"] for b in json.loads(place.lessor("book", "list", "--json").stdout)] == [sooner["id"], later]
    limits = json.loads(place.lessor("limits", "--json").stdout)
    assert limits["has"]["bookings"] == 2 and limits["limits"]["bookings_max"] == 4
    assert re.search(r"bookings +4 +2", place.lessor("limits").stdout)
    for lease_id in (sooner["id"], later):
        assert place.lessor("book", "cancel", lease_id).returncode == 0
    assert place.lessor("book", "list").stdout == "nothing is booked\n"
    again = place.lessor("book", "cancel", later)
    assert again.returncode == 1 and "has ended" in again.stderr


def test_clock_that_is_set_until_then_is_said(place):
    tomorrow = datetime.datetime.now(datetime.timezone(datetime.timedelta(hours=1))) + datetime.timedelta(days=1)
    day = tomorrow.timetuple().tm_yday - 1  # from 0, as TZ counts
    spring = {"TZ": f"AAA-1BBB,{day}/2,{(day + 100) % 365}/3"}
    made = place.lessor("book", "--at", "tomorrow 02:30", "--for", "1h", "--vram", "1G", env=spring)
    assert made.returncode == 0, made.stderr
    assert "03:00 BBB (UTC+02:00)" in made.stderr and "the clock leaves 02:30 out that day" in made.stderr
    assert "until then the clock is set forward by 1 h" in made.stderr
    assert place.lessor("book", "cancel", made.stdout.strip()).returncode == 0
    autumn = {"TZ": f"AAA-1BBB,{(day + 100) % 365}/2,{day}/3"}
    made = place.lessor("book", "--at", "tomorrow 02:30", "--for", "1h", "--vram", "1G", env=autumn)
    assert "02:30 BBB (UTC+02:00)" in made.stderr and "02:30 is there twice that day: this is the first" in made.stderr


@pytest.mark.parametrize("words, says", [
    (["book"], "when?"),
    (["book", "--at", "22:00", "--vram", "1G"], "for how long?"),
    (["book", "--at", "22:00", "--for", "1h"], "how much?"),
    (["book", "--at", "22:00", "--in", "1h", "--for", "1h", "--vram", "1G"], "one of the two"),
    (["book", "--at", "10pm", "--for", "1h", "--vram", "1G"], "22:00"),
    (["book", "--at", "2001-01-01 10:00", "--for", "1h", "--vram", "1G"], "has passed"),
    (["book", "--at", "22:00", "--for", "1h", "--vram", "1G", "--every", "week"], "day is"),
    (["book", "--in", "0", "--for", "1h", "--vram", "1G"], "later than now"),
    (["book", "lits"], "list"),
    (["book", "cancel"], "which lease?"),
    (["book", "cancel", "x"], "no lease"),
], ids=" ".join)
def test_wrong_use_is_2_and_says_what_is_right(shared, words, says):
    shown = shared.lessor(*words)
    assert shown.returncode == 2 and shown.stdout == "" and says in shown.stderr, shown.stderr


@pytest.mark.parametrize("words", [["--vram", "1G"], ["--for", "1h"], ["--exclusive"], ["--yield-by", "kill"]], ids=" ".join)
def test_what_was_booked_cannot_be_run_as_something_else(shared, words):
    shown = shared.lessor("run", "--booking", "L1", *words, "--", "true")
    assert shown.returncode == 125 and "it has what was booked" in shown.stderr


def test_lease_that_is_no_booking_is_neither_collected_nor_cancelled_as_one(place):
    place.hog("plain", "100M")
    lease = place.in_state("plain", "active")
    assert lease["booking"] is None
    cancelled = place.lessor("book", "cancel", lease["id"])
    assert cancelled.returncode == 1 and f"lessor lease release {lease['id']}" in cancelled.stderr
    run = place.lessor("run", "--booking", lease["id"], "--", "true")
    assert run.returncode == 125 and "is no booking" in run.stderr
    assert place.lease("plain")["state"] == "active"


# ---- each day ----

def test_daily_booking_is_made_again_once_when_it_begins_also_over_restarts(place):
    made = place.lessor("book", "--in", "2s", "--for", "5m", "--vram", "1G", "--every", "day", "--name", "nightly")
    assert made.returncode == 0 and "each day again, at" in made.stderr, made.stderr
    first = made.stdout.strip()

    def nightly():
        return [lease for lease in place.leases() if lease["name"] == "nightly"]
    until("the next day's is there", lambda: len(nightly()) == 2)
    for _ in range(2):
        place.kill_daemon()
        place.start_daemon()
        today, tomorrow = sorted(nightly(), key=lambda lease: lease["booking"]["start"])
        assert today["id"] == first and today["booking"]["every"] is None and tomorrow["booking"]["every"] == "day"
        assert tomorrow["state"] == "queued" and tomorrow["bytes"] == today["bytes"]
        apart = moment(tomorrow["booking"]["start"]) - moment(today["booking"]["start"])
        assert datetime.timedelta(hours=22) < apart < datetime.timedelta(hours=26)
    until("the first is kept free", lambda: lease_of(place, first)["state"] == "granted")
    assert place.lessor("lease", "release", first).returncode == 0, "today's is given back"
    assert [lease["id"] for lease in nightly()] == [tomorrow["id"]]
    done = place.lessor("book", "cancel", tomorrow["id"])
    assert done.stdout == f"{tomorrow['id']} is cancelled, and not made again\n"
    place.kill_daemon()
    place.start_daemon()
    assert nightly() == []
