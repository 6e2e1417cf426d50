# SPDX-License-Identifier: Apache-2.0
"""What a journal tells: `lessor why`, `usage`, `journal verify`, by lessord and without it."""

import collections
import contextlib
import csv
import io
import json
import os
import shutil
import sqlite3
import subprocess

import pytest

from cli_helpers import LESSOR, LESSORD, MIB, Place, until

NOWHERE = {"LESSOR_SOCKET": "/nowhere/lessor.sock", "XDG_RUNTIME_DIR": "", "XDG_STATE_HOME": ""}


def alone(*words):
    """A `lessor` that finds no lessord."""
    return subprocess.run([LESSOR, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                          check=False, timeout=120, env={**os.environ, **NOWHERE})


def told(shown):
    assert shown.returncode == 0, shown
    return json.loads(shown.stdout)


def live(place):
    """A filler gives way to somebody more important, waits, and comes back; somebody is idle; one is refused. The filler's run."""
    filler = place.hog("fill", "2500M", "--filler")
    place.first_pid = place.holds(2500 * MIB)
    until("the books know what it uses", lambda: (place.lease("fill") or {}).get("used_bytes") == 2500 * MIB)
    urgent = place.hog("now", "1500M", "--priority", "2", "--for", "10m")
    place.holds(1500 * MIB)
    place.in_state("fill", "parked")
    assert place.lessor("run", "--vram", "9G", "--", "true").returncode == 125
    waits = place.start("run", "--name", "late", "--vram", "1000M", "--for", "5m", "--", "sleep", "1000")
    place.in_state("late", "active")
    waits.terminate()
    waits.wait(timeout=60)
    held = place.lessor("lease", "acquire", "--vram", "200M", "--name", "script", "--ttl", "10m").stdout.strip()
    for verb in ("idle", "busy", "idle"):
        assert place.lessor(verb, held).returncode == 0
    assert place.lessor("lease", "release", held).returncode == 0
    urgent.terminate()
    urgent.wait(timeout=60)
    place.in_state("fill", "active")
    place.second_pid = place.holds(2500 * MIB)
    return filler


@pytest.fixture(scope="module", name="lived")
def fixture_lived():
    place = Place()
    live(place)
    yield place
    place.close()


@pytest.fixture(scope="module", name="ended")
def fixture_ended():
    """The same, and all of it is over, lessord too: its journal is at its end."""
    place = Place()
    filler = live(place)
    filler.terminate()
    filler.wait(timeout=60)
    until("all of it is over", lambda: not place.leases())
    place.seen = [json.loads(line) for line in place.lessor("events", "--json").stdout.splitlines()]
    place.daemon.terminate()
    place.daemon.wait(timeout=60)
    yield place
    place.close()


@pytest.fixture(name="copy")
def fixture_copy(lived, tmp_path):
    return copied(lived, tmp_path)


@pytest.fixture(name="written")
def fixture_written(ended, tmp_path):
    """A copy in which every event is in its table already: lessord writes them behind the records, when nobody waits."""
    return copied(ended, tmp_path)


def copied(place, folder):
    path = str(folder / "journal.db")
    with contextlib.closing(sqlite3.connect(os.path.join(place.dir, "journal.db"))) as db, contextlib.closing(sqlite3.connect(path)) as to:
        db.backup(to)
    return path


def steps_of(body, **fields):
    return [s for s in body["steps"] if all(s[key] == value for key, value in fields.items())]


def chain(body, step):
    """What led to it, nearest first."""
    by_event = {s["event"]: s for s in body["steps"] if s["event"]}
    while step:
        yield step
        step = by_event.get(step["cause"])


# ---- why ----

def test_why_tells_from_the_request_over_the_plan_to_the_return(lived):
    body = told(lived.lessor("why", "--json", "L1"))
    assert body["lease"]["state"] == "active" and body["subject"] == {"kind": "lease", "id": "L1"}
    [asked], [parked] = steps_of(body, lease="L1", what="asked"), steps_of(body, lease="L1", what="parked")
    assert [s["what"] for s in chain(body, asked)][:2] == ["asked", "plan"]
    assert [s["lease"] for s in chain(body, asked)][:2] == ["L1", "L2"]
    assert "asked for 1500 MiB (interactive, for 10 min)" in asked["because"] and parked["because"]
    assert asked["event"] in [s["event"] for s in chain(body, parked)]
    assert steps_of(body, lease="L1", what="thawed")
    assert [s["time"] for s in body["steps"]] == sorted(s["time"] for s in body["steps"])
    shown = lived.lessor("why", "1")
    assert shown.returncode == 0 and "taken as lease L1" in shown.stderr
    line = next(x for x in shown.stdout.splitlines() if " asked: " in x)
    assert f"E{asked['event']} " in line and f"← E{asked['cause']}, uid " in line
    assert "now: L1 is active" in shown.stdout


def test_why_of_whom_memory_was_taken_back_for_tells_of_the_others(lived):
    body = told(lived.lessor("why", "--json", "L2"))
    assert steps_of(body, lease="L1", what="asked") and steps_of(body, lease="L1", what="parked")
    assert body["lease"] is None and body["text"].startswith("ended")


def test_why_of_a_process_names_its_lease_and_what_was_seen_of_it(lived):
    body = told(lived.lessor("why", "--json", f"P{lived.first_pid}"))
    assert body["leases"] == ["L1"] and body["processes"] == 1
    seen = steps_of(body, what="seen", pid=lived.first_pid)
    assert any("first seen on GPU-" in s["text"] for s in seen) and any("it ended" in s["text"] for s in seen)
    assert steps_of(body, lease="L1", what="parked")
    shown = lived.lessor("why", f"p{lived.second_pid}")
    assert shown.returncode == 0 and shown.stderr == "" and "under L1" in shown.stdout


def test_why_of_an_event_tells_what_led_to_it_and_what_followed(lived):
    whole = told(lived.lessor("why", "--json", "L1"))
    [asked] = steps_of(whole, lease="L1", what="asked")
    body = told(lived.lessor("why", "--json", f"E{asked['event']}"))
    assert [s["event"] for s in body["steps"] if s["is_subject"]] == [asked["event"]]
    assert {"plan", "asked", "parked"} <= {s["what"] for s in body["steps"]}
    assert len(body["steps"]) < len(whole["steps"])


def test_why_without_lessord_says_the_same_from_the_journal(lived, copy):
    some = told(lived.lessor("why", "--json", "L1"))["steps"][0]["event"]
    for word in ("L1", f"P{lived.first_pid}", f"E{some}"):
        here, there = told(lived.lessor("why", "--json", word)), told(alone("why", "--json", "--journal", copy, word))
        assert {key: here[key] for key in there} == there, word
    assert "asked: " in alone("why", "--journal", copy, "L1").stdout
    assert told(alone("why", "--json", "--journal", lived.dir, "L1"))["steps"], "one that is in use"


@pytest.mark.parametrize("word", ["L999", "P4000000", "E4000000", "77777777"])
def test_why_of_what_nobody_knows_says_so(lived, copy, word):
    for shown in (lived.lessor("why", word), alone("why", "--journal", copy, word)):
        assert shown.returncode == 1 and shown.stdout == "" and word in shown.stderr, shown
    assert alone("why", word).returncode == 69


def test_why_and_usage_read_the_journal_where_lessord_is_away(lived, copy):
    folder = os.path.dirname(copy)
    env = {"LESSOR_SOCKET": os.path.join(folder, "lessor.sock")}
    shown = lived.lessor("why", "L2", env=env)
    assert shown.returncode == 0 and "lessord is away; read from its journal" in shown.stderr and "granted" in shown.stdout
    shown = lived.lessor("usage", env=env)
    assert shown.returncode == 0 and "lessord is away" in shown.stderr and "GPU-HOURS" in shown.stdout
    broken = alone("why", "--journal", "/nowhere/journal.db", "L1")
    assert broken.returncode == 125 and "/nowhere/journal.db" in broken.stderr


def api(place, path):
    import http.client
    import socket

    class Unix(http.client.HTTPConnection):
        def connect(self):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(60)
            self.sock.connect(place.env["LESSOR_SOCKET"])
    c = Unix("localhost", timeout=60)
    c.request("GET", path)
    answer = c.getresponse()
    body = json.loads(answer.read())
    c.close()
    return answer.status, body


@pytest.mark.parametrize("path", ["/api/why", "/api/why?lease=L1&pid=1", "/api/why?lease=x", "/api/why?pid=0", "/api/why?pid=4294967296",
                                  "/api/why?event=-1", "/api/usage?by=tenant", "/api/usage?since=soon", "/api/usage?since=2026-02-30T00:00:00Z",
                                  "/api/usage?since=2026-11-30T14:05:60Z", "/api/usage?since=2026-11-30T%204:%205:%209Z",
                                  "/api/usage?since=2026-11-30T14:05:09%2B01:00"])
def test_wrong_questions_are_400_and_say_what_is_right(lived, path):
    status, problem = api(lived, path)
    assert status == 400 and len(problem["detail"]) > 20, problem


# ---- usage ----

WHATS = ("held", "idle", "waited", "parked")


def sum_of_events(events, now_of):
    """Who had what for how long, from the list of events alone: another way to the same figures."""
    sums = collections.defaultdict(lambda: collections.defaultdict(int))
    since, idle_since, uids, n_bytes = {}, {}, {}, {}

    def end(lease, now):
        what, then = since.pop(lease, (None, 0))
        if what:
            sums[uids[lease]][f"{what}_ms"] += now - then
            sums[uids[lease]][f"{what}_byte_ms"] += (now - then) * n_bytes[lease]
        then = idle_since.pop(lease, None)
        if then is not None:
            sums[uids[lease]]["idle_ms"] += now - then
            sums[uids[lease]]["idle_byte_ms"] += (now - then) * n_bytes[lease]

    becomes = {"queued": "waited", "granted": "held", "thawing": "held", "parked": "parked", "draining": None, "ended": None}
    for event in events:
        lease, now = event["lease"], now_of[event["id"]]
        if not lease:
            continue
        uids[lease], n_bytes[lease] = event["uid"], event["bytes"] or n_bytes.get(lease)
        if event["kind"] in becomes and event["rule"] != "held" and not (event["kind"] == "draining" and lease not in since):
            end(lease, now)
            if becomes[event["kind"]]:
                since[lease] = (becomes[event["kind"]], now)
        elif event["rule"] == "idle":
            idle_since.setdefault(lease, now)
        elif event["rule"] == "busy":
            then = idle_since.pop(lease, now)
            sums[uids[lease]]["idle_ms"] += now - then
            sums[uids[lease]]["idle_byte_ms"] += (now - then) * n_bytes[lease]
    assert not since
    return sums


def test_usage_equals_the_sum_over_the_events(ended):
    journal = os.path.join(ended.dir, "journal.db")
    with contextlib.closing(sqlite3.connect(journal)) as db:
        now_of = dict(db.execute("SELECT id, now_ms FROM event"))
    sums = sum_of_events(ended.seen, now_of)
    body = told(alone("usage", "--json", "--journal", journal))
    assert body["damages"] == 0 and body["core"] is None and len(body["rows"]) == len(sums) == 1
    for row in body["rows"]:
        for what in WHATS:
            assert row[f"{what}_ms"] == sums[row["uid"]][f"{what}_ms"], what
            assert row[f"{what}_mib_s"] == (sums[row["uid"]][f"{what}_byte_ms"] >> 20) // 1000, what
            assert row[f"{what}_ms"] > 0, what


def test_usage_of_the_daemon_is_that_of_its_journal_until_now(lived, copy):
    there = told(alone("usage", "--json", "--journal", copy, "--by", "consumer"))
    here = told(lived.lessor("usage", "--json", "--by", "consumer"))
    assert here["from"] == there["from"] and here["until"] >= there["until"]
    rows = {(r["uid"], r["consumer"]): r for r in here["rows"]}
    for row in there["rows"]:
        now = rows[(row["uid"], row["consumer"])]
        assert all(now[f"{what}_ms"] >= row[f"{what}_ms"] for what in WHATS) and now["user"] == row["user"]
        assert now["waited_ms"] == row["waited_ms"] and now["parked_ms"] == row["parked_ms"], "what is over is the same"
    by_user = told(lived.lessor("usage", "--json"))["rows"]
    assert len(by_user) == 1 and by_user[0]["leases"] == sum(r["leases"] for r in here["rows"])


def test_usage_since_counts_from_then_on(lived, copy):
    assert told(lived.lessor("usage", "--json", "--since", "2001-01-01"))["from"] == told(lived.lessor("usage", "--json"))["from"]
    later = told(alone("usage", "--json", "--journal", copy, "--since", "2100-01-01"))
    assert later["rows"] == []


def test_usage_as_a_table_and_as_csv(lived):
    table = lived.lessor("usage", "--by", "consumer").stdout
    assert table.startswith("from 20") and "CONSUMER" in table and "simgpu" in table
    rows = list(csv.DictReader(io.StringIO(lived.lessor("usage", "--by", "consumer", "--csv").stdout)))
    assert {r["consumer"] for r in rows} >= {"simgpu", "sleep"}
    assert all(float(r["held_hours"]) >= float(r["idle_hours"]) >= 0 for r in rows)


def test_name_that_a_spreadsheet_would_take_for_a_formula_is_text(lived):
    lease = lived.lessor("lease", "acquire", "--vram", "16M", "--consumer", '=1+1"', "--ttl", "10m").stdout.strip()
    assert lease.startswith("L")
    assert lived.lessor("lease", "release", lease).returncode == 0
    shown = lived.lessor("usage", "--by", "consumer", "--csv").stdout
    assert "\"'=1+1\"\"\"," in shown


# ---- journal verify ----

def verify(*words):
    return alone("journal", "verify", *words)


def test_S27_journal_that_is_in_use_verifies_and_so_does_a_copy(lived, copy):
    shown = verify(lived.dir)
    assert shown.returncode == 0 and "whole, and as they were written" in shown.stdout
    body = told(verify("--json", copy))
    assert body["whole"] and body["finding"] is None and body["records"] > 20 and len(body["hash"]) == 64
    assert f"record {body['last_record']} {body['hash']}" in verify(copy).stdout
    counted = ", ".join(f"{body[kind]} {kind}" for kind in ("segments", "records", "events", "audits"))
    assert f": {counted}: whole" in verify(copy).stdout
    said = subprocess.run([LESSORD, "--dir", lived.dir, "--check-journal"], stdout=subprocess.PIPE, text=True, check=False)
    assert said.returncode == 0 and said.stdout.split(": ")[-1] == verify(lived.dir).stdout.splitlines()[0].split(": ")[-1] + "\n"


@pytest.mark.parametrize("sql, words", [
    ("UPDATE record SET wall_ms = wall_ms + 1 WHERE seq = 9", "record 9: not what was written"),
    ("DELETE FROM record WHERE seq = 9", "record 9: missing"),
    ("UPDATE event SET uid = 4711 WHERE id = {one}", "event {one}: its columns do not say what its action says"),
    ("UPDATE event SET action = (SELECT action FROM event WHERE id = {two}) WHERE id = {one}", "event {one}: not what was written, or one before it is missing"),
    ("UPDATE segment SET snapshot = x'00' WHERE id = 1", "segment 1: its snapshot or its figures are not what was written"),
], ids=["a record", "a record that is gone", "an event's column", "an event's action", "a snapshot"])
def test_S27_row_that_was_edited_is_named(written, sql, words):
    with contextlib.closing(sqlite3.connect(written)) as db, db:
        one, two = [row[0] for row in db.execute("SELECT id FROM event ORDER BY id LIMIT 2")]
        assert db.execute(sql.format(one=one, two=two)).rowcount == 1
    words = words.format(one=one)
    shown = verify(written)
    assert shown.returncode == 1 and words in shown.stdout, shown
    body = json.loads(verify("--json", written).stdout)
    assert not body["whole"] and body["finding"]["words"] == words and body["hash"] is None
    number = int(words.split()[1].rstrip(":"))
    assert body["finding"][words.split()[0]] == number


def test_S27_rows_cut_off_behind_are_shown_by_a_hash_that_was_kept(written):
    kept = told(verify("--json", written))
    with contextlib.closing(sqlite3.connect(written)) as db, db:
        db.execute("DELETE FROM event WHERE seq > 20")
        db.execute("DELETE FROM record WHERE seq > 20")
        db.execute("UPDATE keep SET event_seq = 20")
    body = json.loads(verify("--json", written).stdout)
    assert body["hash"] != kept["hash"] and (body["last_record"] or 0) < kept["last_record"]


def test_journal_that_is_cut_off_or_no_journal_is_said_in_words(copy, tmp_path):
    os.truncate(copy, os.path.getsize(copy) // 2 // 4096 * 4096)
    torn = verify(copy)
    assert torn.returncode == 1 and ("damaged" in torn.stdout or "malformed" in torn.stdout), torn
    other = tmp_path / "other.db"
    with contextlib.closing(sqlite3.connect(other)) as db, db:
        db.execute("CREATE TABLE cookies (a)")
    assert verify(str(other)).returncode == 125
    assert verify(str(tmp_path / "none")).returncode == 125
    shutil.rmtree(tmp_path / "empty", ignore_errors=True)
    (tmp_path / "empty").mkdir()
    assert "has no journal.db" in verify(str(tmp_path / "empty")).stderr
