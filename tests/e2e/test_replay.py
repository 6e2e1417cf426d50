# SPDX-License-Identifier: Apache-2.0
"""`lessor replay`: what a real lessord wrote is decided again, as it was and under other configurations; and what is no journal."""

import contextlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import tempfile
import time

import pytest

from lessor_fixtures import BUILD, Background, Place, bare, until  # noqa: F401 - a fixture
from test_mutated_journal import FILES, in_bytes, in_values

LESSOR = os.path.join(BUILD, "bin", "lessor")
LESSORD = os.path.join(BUILD, "bin", "lessord")
DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "demo", "run")
RENEWALS = 10050  # a segment has 10,000 records
SANITIZED = os.environ.get("LESSOR_SANITIZED") == "1"


def replay(*words, env=None):
    return subprocess.run([LESSOR, "replay", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          text=True, check=False, timeout=120,
                          env={**os.environ, "LESSOR_SOCKET": "/nowhere/lessor.sock", **(env or {})})


def replay_json(*words, env=None):
    shown = replay("--json", *words, env=env)
    assert shown.stderr == "", shown.stderr
    body = json.loads(shown.stdout)
    assert shown.returncode == (0 if body["equal"] and body["n_damages"] == 0 else 1)
    return body


def live_a_little(place):
    """Grants, waits, refusals, ends of each kind, changes, a stranger, a killed owner."""
    hog = place.hog("256M")
    first = place.ask("1G", mode="now", name="first", **{"for": "2h"}).json["id"]
    waits = place.ask_in_background("2500M", mode="queue", name="waits")
    until("it waits", lambda: place.queue())
    assert place.ask("9G", mode="queue", name="giant").status == 422
    assert place.ask("2G", mode="now", name="late").status == 409
    small = place.ask("64M", mode="queue", priority=2, name="small").json["id"]
    assert place.request("PATCH", f"/api/leases/{small}", {"pin": "1m"}).status == 200
    assert place.request("PATCH", f"/api/leases/{small}", {"priority": 4}).status == 200
    owner = place.sleeper()
    mine = place.ask("100M", mode="queue", name="mine", bind={"to": "process", "pid": owner.pid}).json["id"]
    owner.kill()
    owner.wait()
    place.ended(mine)
    hog.kill()
    hog.wait()
    for lease in (small, first):
        assert place.release(lease).status == 200
    waits = waits.answer().json["id"]
    until("the stranger is gone", lambda: place.device()["used_bytes"] == 0)
    assert place.release(waits).status == 200
    return waits


def rotate(place):
    """More records than a segment has."""
    lease = place.ask("64M", mode="now", name="renewed").json["id"]
    connection = place.connection()
    for _ in range(RENEWALS if not SANITIZED else 200):
        assert place.request("POST", f"/api/leases/{lease}/renew", {}, connection=connection).status == 200
    connection.close()
    assert place.release(lease).status == 200


@pytest.fixture(scope="module", name="lived")
def fixture_lived():
    """The folder of a daemon that was restarted, killed, and wrote into several segments; it runs."""
    place = Place()
    place.start()
    live_a_little(place)
    assert place.stop() == 0
    place.start()
    live_a_little(place)
    rotate(place)
    kept = place.ask("128M", mode="now", name="kept").json["id"]
    place.kill()
    place.start()
    until("it is there again", lambda: place.lease(kept).status == 200)
    live_a_little(place)
    yield place
    assert place.close() == 0


def journal_of(place):
    return os.path.join(place.home, "journal.db")


@pytest.fixture(name="copy")
def fixture_copy(lived, tmp_path):
    """The journal as a file of its own, whole."""
    path = str(tmp_path / "journal.db")
    with contextlib.closing(sqlite3.connect(journal_of(lived))) as db, contextlib.closing(sqlite3.connect(path)) as to:
        db.backup(to)
    return path


def change(path, sql, *values):
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        assert db.execute(sql, values).rowcount > 0, sql


# ---- as it was ----

def test_replay_of_the_demo_is_equal():
    base = tempfile.mkdtemp(prefix="lessor-r-", dir="/tmp")
    try:
        folder = os.path.join(base, "demo")
        subprocess.run([DEMO, "--dir", folder, "--keep"], env={**os.environ, "LESSOR_BUILD_DIR": BUILD}, check=True,
                       stdout=subprocess.DEVNULL, timeout=200)
        shown = replay(folder)
        assert shown.returncode == 0 and shown.stderr == "", shown
        assert "equal: each was decided again as it stands there, byte by byte" in shown.stdout
        body = replay_json(os.path.join(folder, "journal.db"))
        assert body["records"] > 50 and body["actions"] > 30 and body["snapshots_compared"] == body["segments"] - 1 > 0
        assert sum(body["inputs"].values()) == body["records"] and body["inputs"]["request"] >= 6
    finally:
        shutil.rmtree(base)


def test_replay_is_equal_over_restarts_a_kill_and_full_segments_of_a_daemon_that_runs(lived):
    body = replay_json(lived.home)
    assert body["equal"] and body["differences"] == [] and body["damages"] == []
    assert body["segments"] >= 4 and body["snapshots_compared"] == body["segments"] - 1
    assert body["records"] > (RENEWALS if not SANITIZED else 200)
    assert body["core_recorded"] == body["core_now"]


def test_replay_does_not_disturb_who_writes(lived):
    before = sorted(os.listdir(lived.home))
    many = [Background(lambda: replay_json(lived.home)) for _ in range(3)]
    granted = [lived.ask("64M", mode="now").json["id"] for _ in range(20)]
    for lease in granted:
        assert lived.release(lease).status == 200
    for one in many:
        assert one.answer()["equal"]
    assert sorted(os.listdir(lived.home)) == before
    shown = subprocess.run([LESSORD, "--dir", lived.home, "--check-journal"], stdout=subprocess.PIPE, text=True, check=False)
    assert shown.returncode == 0, shown.stdout


def test_replay_finds_the_journal_of_the_lessord_that_would_be_asked(lived, tmp_path):
    assert replay_json(env={"LESSOR_SOCKET": lived.socket})["journal"] == journal_of(lived)
    session = {"LESSOR_SOCKET": "", "XDG_RUNTIME_DIR": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    os.makedirs(tmp_path / "state" / "lessor")
    shutil.copy(journal_of(lived), tmp_path / "state" / "lessor")
    shutil.copy(journal_of(lived) + "-wal", tmp_path / "state" / "lessor")
    assert replay_json(env=session)["journal"] == str(tmp_path / "state" / "lessor" / "journal.db")
    shown = replay()
    assert shown.returncode == 125 and "there is no journal of a lessord here; name the file" in shown.stderr


def test_S27_action_that_was_changed_in_its_record_is_named_with_both(copy):
    with contextlib.closing(sqlite3.connect(copy)) as db:
        seq, other = [row[0] for row in db.execute("SELECT seq FROM record WHERE kind = 8 ORDER BY seq LIMIT 2")]
    change(copy, "UPDATE record SET actions = (SELECT actions FROM record WHERE seq = ?) WHERE seq = ?", other, seq)
    body = replay_json(copy)
    assert body["damages"] == [f"record {seq} is not what was written"]
    assert body["n_differences"] == 1
    [found] = body["differences"]
    assert (found["seq"], found["input"]) == (seq, "request")
    assert found["recorded"]["lease"] != found["now"]["lease"] or found["recorded"]["id"] != found["now"]["id"]
    shown = replay(copy)
    assert shown.returncode == 1
    assert f"record {seq} of segment" in shown.stdout and "  recorded: event " in shown.stdout and "  now:      event " in shown.stdout
    assert "not equal" in shown.stdout


def test_replay_passes_over_a_damaged_snapshot_and_lists_no_more_than_it_is_told(copy):
    change(copy, "UPDATE segment SET snapshot = substr(snapshot, 1, 40) WHERE id = 2")
    body = replay_json(copy)
    assert body["n_damages"] == 2 and "segment 2" in body["damages"][0] and body["n_differences"] == 0
    # a figure of the world from which all of a segment follows: the number of the next event
    change(copy, "UPDATE record SET actions = x'04000000000000' WHERE segment = 1 AND length(actions) > 40")
    shown = replay("--limit", "2", copy)
    assert shown.returncode == 1
    assert shown.stdout.count("\nrecord ") + shown.stdout.startswith("record ") <= 2


def test_replay_since_begins_later_and_says_so_when_there_is_nothing(lived, copy):
    whole = replay_json(copy)
    events = lived.events(limit=1000)
    some = events[len(events) // 2]
    body = replay_json(copy, "--since", str(some["id"]))
    assert body["equal"] and 0 < body["records"] < whole["records"]
    assert replay_json(copy, "--since", "1h")["records"] == whole["records"]
    assert replay_json(copy, "--since", "2001-01-01")["records"] == whole["records"]
    moment = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(whole["first_wall_ms"] / 1000))
    assert replay_json(copy, "--since", moment)["records"] == whole["records"]
    for never in ("2100-01-01", "4000000000"):
        shown = replay(copy, "--since", never)
        assert shown.returncode == 125 and "the journal has no" in shown.stderr, never


# ---- with another configuration ----

def changes(copy, tmp_path, text):
    conf = tmp_path / "other.conf"
    conf.write_text(text)
    return replay_json(copy, "--with", str(conf), "--limit", "1000")


def test_with_the_same_configuration_nothing_would_have_changed(copy, tmp_path):
    body = changes(copy, tmp_path, "")
    assert body["equal"] and body["changes"] == [] and body["n_changes"] == 0
    assert body["requests"] == body["counts"]["same"] >= 15
    shown = replay(copy, "--with", str(tmp_path / "other.conf"))
    assert shown.returncode == 0 and "nothing would have been decided differently" in shown.stdout


def test_with_another_ceiling_it_says_who_would_have_been_refused(copy, tmp_path):
    body = changes(copy, tmp_path, "ceiling_admin = 3\nceiling_user = 3\n")
    refused = [c for c in body["changes"] if c["change"] == "refused"]
    assert len(refused) == body["counts"]["refused"] >= 3
    assert {c["name"] for c in refused} == {"small"}
    assert all(c["would"]["rule"] == "priority-ceiling" and c["was"]["rule"] != "priority-ceiling" for c in refused)
    shown = replay(copy, "--with", str(tmp_path / "other.conf"))
    assert shown.returncode == 1 and shown.stderr == ""
    assert "small (uid" in shown.stdout and "would have been refused" in shown.stdout
    assert "highest allowed is 3 (normal)" in shown.stdout


def test_with_fewer_leases_a_user_others_are_granted_at_other_times(copy, tmp_path):
    body = changes(copy, tmp_path, "leases_per_user_max = 1\n")
    assert body["counts"]["refused"] >= 3 and not body["equal"]
    assert {c["would"]["rule"] for c in body["changes"] if c["change"] == "refused"} <= {"limit-leases-per-user"}


def test_with_limits_for_one_user_the_row_is_looked_up_anew(copy, tmp_path):
    body = changes(copy, tmp_path, f"[user {os.geteuid()}]\nleases_max = 1\n")
    assert body["counts"]["refused"] >= 3
    body = changes(copy, tmp_path, "[user 61007]\nleases_max = 1\n")
    assert body["equal"]


def test_with_another_ceiling_what_was_asked_of_a_lease_would_have_been_answered_otherwise(copy, tmp_path):
    body = changes(copy, tmp_path, "ceiling_admin = 5\nceiling_user = 5\n")
    assert body["counts"]["refused"] > body["counts"]["same"]
    asked = [c for c in body["changes"] if c["change"] == "answer"]
    assert body["counts"]["answer"] == len(asked) >= 6, body["counts"]
    assert all(c["was"]["kind"] == "changed" and c["would"]["kind"] == "refused" for c in asked)
    assert set(body["counts"]) == {"same", "earlier", "later", "never", "also", "refused", "not-refused", "other-refusal",
                                   "elsewhere", "ends", "answer"}
    shown = replay(copy, "--with", str(tmp_path / "other.conf"), "--limit", "3")
    assert "more (--limit)" in shown.stdout and "would have been answered otherwise" in shown.stdout


def test_with_since_only_what_came_later_counts(lived, copy, tmp_path):
    everything = changes(copy, tmp_path, "leases_per_user_max = 1\n")
    events = [event["id"] for event in lived.events(limit=1000) if event["kind"] != "renewed"]
    late = replay_json(copy, "--with", str(tmp_path / "other.conf"), "--since", str(events[len(events) * 2 // 3]))
    assert 0 < late["n_changes"] < everything["n_changes"] and late["records"] < everything["records"]


def test_with_a_file_that_is_wrong_says_file_and_line(copy, tmp_path):
    conf = tmp_path / "bad.conf"
    conf.write_text("margin = 1\nmargni = 2\n")
    shown = replay(copy, "--with", str(conf))
    assert shown.returncode == 125 and f"{conf}:2: margni is no key" in shown.stderr and shown.stdout == ""
    os.mkfifo(tmp_path / "pipe.conf")
    for name in ("pipe.conf", "nowhere.conf"):
        shown = replay(copy, "--with", str(tmp_path / name))
        assert shown.returncode == 125 and name in shown.stderr, name


# ---- what is no journal ----

def make_bad(tmp_path, kind):
    path = tmp_path / "j"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "folder with a folder":
        (path / "journal.db").mkdir(parents=True)
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("hello\n" * 1000)
    elif kind == "huge":
        with open(path, "wb") as file:
            file.truncate(1 << 40)
    elif kind == "of another program":
        change_foreign(path)
    return path


def change_foreign(path):
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE cookies (a)")
        db.execute("INSERT INTO cookies VALUES (1)")


@pytest.mark.parametrize("kind,words", [
    ("not there", "there is no file"), ("fifo", "is not a regular file"), ("folder", "has no journal.db"),
    ("folder with a folder", "is not a regular file"), ("empty", "no journal"), ("text", "not a database"),
    ("huge", "not a database"), ("of another program", "of another program")])
def test_what_is_no_journal_is_refused_in_words_and_left_as_it_is(tmp_path, kind, words):
    path = make_bad(tmp_path, kind)
    before = path.read_bytes() if kind in ("empty", "text", "of another program") else None
    shown = replay(str(path))
    assert shown.returncode == 125 and shown.stdout == "", shown
    assert words in shown.stderr and shown.stderr.startswith("lessor replay: "), shown.stderr
    assert before is None or path.read_bytes() == before


def test_journal_of_a_newer_lessor_is_refused(copy):
    with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as db:
        db.execute("PRAGMA user_version = 99000")
    shown = replay(copy)
    assert shown.returncode == 125 and "newer lessor" in shown.stderr


def test_journal_that_was_cut_off_is_an_error_in_words(copy):
    os.truncate(copy, 6 * 4096)
    shown = replay(copy)
    assert shown.returncode == 125 and shown.stdout == "" and "damaged" in shown.stderr or "malformed" in shown.stderr


def test_S14_journal_that_was_changed_at_random_is_replayed_or_refused_in_words(lived, tmp_path):
    ends = {0: 0, 1: 0, 125: 0}
    conf = tmp_path / "other.conf"
    conf.write_text("leases_per_user_max = 2\naging = 1s\n")
    small = Place()
    small.start()
    live_a_little(small)
    small.kill()
    try:
        for n in range(60):
            draw = random.Random(f"replay/{n}")
            folder = tmp_path / f"m{n}"
            folder.mkdir()
            for name in FILES:
                shutil.copy(os.path.join(small.home, name), folder)
            path = str(folder / "journal.db")
            how = in_values(draw, path) if n % 2 == 0 else in_bytes(draw, str(folder / draw.choice(FILES)))
            shown = replay(str(folder), *(["--with", str(conf)] if n % 3 == 0 else []))
            assert shown.returncode in ends, f"replay/{n}: {how}: {shown}"
            assert (shown.returncode == 125) == (shown.stdout == "" and shown.stderr != ""), f"replay/{n}: {how}: {shown}"
            ends[shown.returncode] += 1
    finally:
        small.daemon = None
        small.close()
    assert ends[1] + ends[125] >= 20, ends
