# SPDX-License-Identifier: Apache-2.0
"""What may be changed of a lease that lives, what runs already, what would happen, what one may have, and the
configuration read again: against a real daemon on a simulated card."""

import json
import os
import pwd
import select
import signal
import subprocess

import pytest

from lessor_fixtures import BUILD, GIB, LESSORD, MIB, NOBODY_LIKE_UIDS, SIMGPU, Answer, as_user, needs_root, until

ME = pwd.getpwuid(os.geteuid()).pw_name


def patch(place, lease, **fields):
    return place.request("PATCH", f"/api/leases/{lease}", fields)


def post(place, path, **fields):
    return place.request("POST", path, fields)


# ---- priority, slot, pin ----

def test_waiting_lease_that_is_reniced_goes_first(place):
    place.ask("2500M", mode="now")
    first = place.ask("1G", mode="queue", priority=4).json["id"]
    second = place.ask("1G", mode="queue", priority=4).json["id"]
    assert [e["lease"] for e in place.queue()] == [first, second]
    a = patch(place, second, priority="interactive")
    assert a.status == 200 and a.json["priority"] == 2, a
    assert [e["lease"] for e in place.queue()] == [second, first]
    assert [e["kind"] for e in place.events(lease=second)].count("changed") == 1


def test_extension_moves_the_end_and_nothing_else(place):
    lease = place.ask("1G", mode="now", **{"for": "1h"}).json
    a = patch(place, lease["id"], extend="30m")
    assert a.status == 200 and 5390000 < a.json["slot_left_ms"] <= 5400000, a
    a = patch(place, lease["id"], **{"for": None})
    assert a.json["slot_end"] is None and a.json["slot_left_ms"] is None
    a = patch(place, lease["id"], extend_ms=1000)
    assert a.status == 409 and a.problem == "no-slot", a


def test_pin_is_shown_and_ends(place):
    lease = place.ask("1G", mode="now").json["id"]
    assert patch(place, lease, pin="2h").json["pinned"] is True
    a = patch(place, lease, pin=True)
    assert a.json["pinned"] and (a.json["pin_left_ms"] is None) == (os.geteuid() == 0), a.json["pin_left_ms"]
    assert patch(place, lease, pin=False).json["pinned"] is False


@pytest.mark.parametrize("body, field", [
    ({}, "priority"), ({"priority": 9}, "priority"), ({"extend": "1h", "for": "1h"}, "extend"), ({"bytes": "1G"}, "bytes"),
    ({"pin": 3}, "pin"), ({"extend": "soon"}, "extend"), ({"for_ms": 0}, "for_ms")])
def test_change_that_is_not_understood_names_the_field(shared, body, field):
    lease = shared.ask("64M", mode="now").json["id"]
    a = shared.request("PATCH", f"/api/leases/{lease}", body)
    assert a.status == 400 and a.problem == "bad-field" and a.json["field"] == field, a
    shared.release(lease)


def test_change_of_what_is_over_says_how_it_ended(shared):
    lease = shared.ask("64M", mode="now").json["id"]
    shared.release(lease)
    assert patch(shared, lease, priority=4).status == 410
    assert patch(shared, "L999999", priority=4).status == 404


# ---- nothing beside it ----

def test_exclusive_lease_has_the_device_alone(place):
    a = place.request("POST", "/api/leases", {"exclusive": True, "mode": "now", "bind": {"to": "heartbeat"}})
    assert a.status == 201 and a.json["exclusive"] and a.json["bytes"] == 3 * GIB, a
    b = place.ask("64M", mode="queue")
    assert b.status == 202 and b.json["reason"]["rule"] == "exclusive-holds", b
    assert a.json["id"] in b.json["why"]
    place.release(a.json["id"])
    until("the next one starts", lambda: place.lease(b.json["id"]).json["state"] == "granted")


def test_exclusive_lease_waits_for_a_stranger(place):
    hog = place.hog("256M")
    until("it is seen", place.strangers)
    a = place.request("POST", "/api/leases", {"exclusive": True, "mode": "queue", "bytes": "1G"})
    assert a.status == 202, a
    until("it is said for whom", lambda: str(hog.pid) in str(place.lease(a.json["id"]).json["reason"]["blockers"]))
    hog.kill()
    hog.wait()
    until("it starts", lambda: place.lease(a.json["id"]).json["state"] == "granted")


# ---- adopting ----

def test_adopted_stranger_is_a_holder_and_let_go_a_stranger_again(place):
    hog = place.hog("512M")
    until("it is seen", place.strangers)
    used = place.device()["used_bytes"]
    a = post(place, "/api/adopt", pid=hog.pid)
    assert a.status == 201 and a.json["state"] == "active" and a.json["adopted"], a
    assert a.json["used_bytes"] == 512 * MIB and a.json["uid"] == os.geteuid()
    status = place.get("/api/status").json
    assert status["strangers"] == [] and status["devices"][0]["used_bytes"] == used
    assert post(place, "/api/adopt", pid=hog.pid).problem == "already-leased"
    assert place.release(a.json["id"]).json["reason"]["end"] == "unadopted"
    assert [s["pid"] for s in until("a stranger again", place.strangers)] == [hog.pid]
    assert hog.poll() is None


def test_adopted_lease_ends_with_its_process(place):
    hog = place.hog("512M")
    until("it is seen", place.strangers)
    lease = post(place, "/api/adopt", pid=hog.pid, name="served").json
    hog.kill()
    hog.wait()
    assert place.ended(lease["id"]) == "owner-exited"
    assert place.device()["free_bytes"] == 3 * GIB


def test_what_cannot_be_adopted_is_told_why(place):
    assert post(place, "/api/adopt").json["field"] == "pid"
    sleeper = place.sleeper()
    assert post(place, "/api/adopt", pid=sleeper.pid).problem == "nothing-to-adopt"
    assert post(place, "/api/adopt", pid=4194303).status == 400
    a = post(place, "/api/adopt", pid=sleeper.pid, bytes="1G")
    assert a.status in (201, 409), a  # with a size it is a promise for later, where a young look shows the room


@needs_root
def test_S09_adopting_a_process_of_another_user_is_refused(place):
    hog = place.hog("256M")
    until("it is seen", place.strangers)
    os.chmod(place.dir, 0o755)
    answer = as_user(NOBODY_LIKE_UIDS[0], lambda: _status_of_foreign_adopt(place, hog.pid))
    assert answer in ("refused", 403), answer
    assert [s["pid"] for s in place.get("/api/status").json["strangers"]] == [hog.pid]


def _status_of_foreign_adopt(place, pid):
    try:
        return post(place, "/api/adopt", pid=pid).status
    except OSError:
        return "refused"  # a private folder's socket lets nobody else in at all


# ---- what would happen ----

def test_plan_tells_and_changes_nothing(place):
    a = post(place, "/api/plan", bytes="1G")
    assert a.status == 200 and a.json["outcome"] == "start" and a.json["bytes"] == GIB, a
    assert a.json["device"] == place.device()["uuid"] and a.json["expected_start_ms"] == 0
    holder = place.ask("2500M", mode="now", **{"for": "1h"}).json["id"]
    a = post(place, "/api/plan", bytes="1G").json
    assert a["outcome"] == "wait" and a["place"] == 1 and 3500000 < a["expected_start_ms"] <= 3600000, a
    assert holder in a["text"] and a["as_of_ms"] is not None
    a = post(place, "/api/plan", bytes="30G").json
    assert a["outcome"] == "refused" and a["type"].endswith("never-fits"), a
    assert [x["id"] for x in place.leases()] == [holder] and place.queue() == []
    assert place.ask("64M", mode="now").json["id"] == "L2"


def test_plan_with_a_silent_driver_says_so(place):
    place.fault("nvml-hang")
    until("the driver is seen to hang", lambda: place.get("/healthz").json["gpu"] == "stale")
    a = post(place, "/api/plan", bytes="1G").json
    assert a["outcome"] == "wait" and "reading" in a["reason"]["rule"], a
    place.fault("clear")


# ---- what one may have ----

def test_limits_of_a_user_count_and_are_shown(bare):
    bare.conf(f"bytes_per_user_max = 2GiB\nslot_max = 4h\n\n[user {ME}]\nleases_max = 2\npriority_min = 1\nslot_max = 0\n")
    bare.start()
    shown = bare.get("/api/limits").json
    assert shown["row"] == f"user {ME}" and shown["limits"]["leases_max"] == 2, shown
    assert shown["limits"]["bytes_max"] == 2 * GIB and shown["limits"]["slot_max_ms"] is None
    bare.ask("64M", mode="now")
    bare.ask("64M", mode="now")
    a = bare.ask("64M", mode="now")
    assert a.status == 429 and a.problem == "limit-leases-per-user", a
    assert bare.get("/api/limits").json["has"]["leases"] == 2


@needs_root
def test_limits_of_groups_and_everyone_hold_for_other_users(bare):
    uid, other = NOBODY_LIKE_UIDS
    bare.conf(f"bytes_per_user_max = 1GiB\n[user {uid}]\nbytes_max = 128MiB\n[group {other}]\nslot_max = 1h\n")
    # as the system's daemon is for them: one that serves others too
    bare.start()
    os.chmod(bare.dir, 0o755)
    rows = bare.get(f"/api/limits?user={uid}").json
    assert rows["row"] == f"user {uid}" and rows["limits"]["bytes_max"] == 128 * MIB, rows
    assert bare.get("/api/limits?user=nobody-of-this-name").status == 400


SLOW_NAMES = os.path.join(BUILD, "tests", "e2e", "libslow_names.so")


@pytest.mark.skipif(not os.path.exists(SLOW_NAMES), reason="built with sanitizers, which are to be the first library")
def test_S19_name_service_that_is_silent_holds_up_who_asks_about_a_name_and_nobody_else(bare):
    gate = os.path.join(bare.dir, "gate")
    bare.env |= {"SLOW_NAMES": gate, "LD_PRELOAD": SLOW_NAMES}
    bare.conf("[user 1]\nleases_max = 3\n")
    bare.start()
    name = pwd.getpwuid(1).pw_name
    asked = [bare.connection() for _ in range(5)]
    for c in asked:
        c.request("GET", f"/api/limits?user={name}")
    # whichever lessord read last: those before it are not answered yet
    late = until("one of five is told so", lambda: select.select([c.sock for c in asked], [], [], 0)[0])
    refused = Answer(asked.pop(next(i for i, c in enumerate(asked) if c.sock is late[0])).getresponse())
    assert refused.status == 503 and "name services" in refused.json["detail"] and refused.headers["Retry-After"], refused
    assert bare.ask("64M", mode="now").status == 201
    assert bare.get("/api/limits").status == 200
    asked.pop().close()  # who leaves is forgotten, and what is found for him too
    with open(gate, "w", encoding="utf-8"):
        pass
    rows = [json.loads(c.getresponse().read()) for c in asked]
    assert [r["row"] for r in rows] == ["user 1"] * 3, rows
    found = until("it is known again", lambda: (a := bare.get(f"/api/limits?user={name}")).status == 200 and a)
    assert found.json["uid"] == 1 and found.json["limits"]["leases_max"] == 3, found
    assert bare.get("/api/limits?user=nobody-of-this-name").status == 400


@pytest.mark.parametrize("text, words", [
    ("[user no-such-person]\nleases_max = 1\n", "there is no user"),
    ("[printer x]\na = 1\n", "there is no section"),
    ("[user 0]\nslots = 1\n", "is no key of [user 0]"),
    ("[user 0]\nleases_max = -1\n", "leases_max"),
    ("[user 0]\nleases_max = 1\nleases_max = 2\n", "a second time"),
    ("[user 0]\nleases_max = 1\n[group 0]\nleases_max=1\n[user 0]\nleases_max = 3\n", "a second time"),
    ("[container web]\nname = web\n", "needs uid"),
    ("[container web]\nuid = 1000\n", "says of no container which"),
    ("[container web]\nname = web\nuid = 0\n", "root"),
])
def test_section_that_is_wrong_is_refused_with_its_line(bare, text, words):
    bare.conf("# first\n" + text)
    r = subprocess.run([LESSORD, "--dir", bare.home, "--check-config"], env=bare.env, capture_output=True, text=True,
                       timeout=60, check=False)
    assert r.returncode == 78 and words in r.stderr and "lessord.conf" in r.stderr, r.stderr


# ---- the configuration, read again ----

def key(place, name):
    return next(k for k in place.get("/api/config").json["keys"] if k["key"] == name)["value"]


def test_reload_takes_all_of_it_or_nothing(bare):
    bare.conf("waiting_per_user_max = 3\n")
    bare.start()
    assert key(bare, "waiting_per_user_max") == "3" and bare.get("/api/config").json["from"] == "file"
    bare.conf("waiting_per_user_max = 1\n")
    a = bare.request("POST", "/api/reload")
    assert a.status == 200 and key(bare, "waiting_per_user_max") == "1", a
    bare.ask("3G", mode="now")
    assert bare.ask("64M", mode="queue").status == 202
    assert bare.ask("64M", mode="queue").problem == "limit-waiting-per-user"

    bare.conf("waiting_per_user_max = 9\nno_such_key = 1\n")
    a = bare.request("POST", "/api/reload")
    assert a.status == 422 and a.problem == "bad-config" and "lessord.conf:2" in a.json["detail"], a
    assert key(bare, "waiting_per_user_max") == "1"
    assert "no_such_key" in bare.get("/api/config").json["error"]
    assert "no_such_key" in bare.get("/api/status").json["config_error"]

    bare.conf("waiting_per_user_max = 5\n")
    bare.daemon.send_signal(signal.SIGHUP)
    until("it was read", lambda: key(bare, "waiting_per_user_max") == "5")
    assert bare.get("/api/status").json["config_error"] is None


def test_configuration_that_is_not_utf8_is_told_and_hides_nothing(bare):
    """What is wrong with a file is quoted in status; a byte of it that is no UTF-8 must not take status away."""
    bare.start()
    path = os.path.join(bare.home, "lessord.conf")
    with open(path, "wb") as file:
        file.write(b"poll = caf\xe9\n")
    a = bare.request("POST", "/api/reload")
    assert a.status == 422 and a.problem == "bad-config" and "lessord.conf:1" in a.json["detail"], a
    for address, field in (("/api/status", "config_error"), ("/api/config", "error")):
        a = bare.get(address)
        assert a.status == 200 and "lessord.conf:1" in a.json[field], a

    os.rename(path, path := os.path.join(os.fsencode(bare.dir), b"caf\xe9.conf"))
    with open(path, "wb") as file:
        file.write(b"poll = 2s\n")
    assert bare.stop() == 0
    bare.start("--config", path)
    assert "caf" in bare.get("/api/config").json["file"] and key(bare, "poll") == "2s"


def test_reload_of_what_is_set_up_once_is_refused_by_name(bare):
    bare.conf("poll = 1s\n")
    bare.start()
    bare.conf("poll = 2s\neyes_deadline = 5s\n")
    a = bare.request("POST", "/api/reload")
    assert a.status == 422 and "eyes_deadline" in a.json["detail"] and "restart" in a.json["detail"], a
    assert key(bare, "poll") == "1s"


def test_file_that_is_wrong_at_the_start_gives_way_to_the_last_good_one(bare):
    bare.conf("waiting_per_user_max = 7\n")
    bare.start()
    assert bare.stop() == 0
    bare.conf("waiting_per_user_max = seven\n")
    bare.start()
    config = bare.get("/api/config").json
    assert config["from"] == "last-accepted" and key(bare, "waiting_per_user_max") == "7"
    assert "lessord.conf:1" in bare.get("/api/status").json["config_error"]
    bare.conf("waiting_per_user_max = 8\n")
    assert bare.request("POST", "/api/reload").status == 200
    assert bare.get("/api/status").json["config_error"] is None and key(bare, "waiting_per_user_max") == "8"


# ---- ends that were named ----

def test_kill_at_end_ends_the_program_when_its_slot_is_over(bare):
    bare.conf("end_grace = 10s\n")
    bare.start()
    until("the hands are there", lambda: bare.get("/api/status").json["hands"] == "ok")
    hog = bare.hog("256M")
    until("it is seen", bare.strangers)
    a = post(bare, "/api/adopt", pid=hog.pid, kill_at_end=True, **{"for": "2s"})
    assert a.status == 201, a
    assert hog.wait(timeout=60) in (0, -signal.SIGTERM)
    assert bare.ended(a.json["id"]) == "owner-exited"
    said = [(e["kind"], e["rule"]) for e in bare.events(lease=a.json["id"])]
    assert ("warning", "end-ordered") in said and said.count(("hand", "end-ordered")) == 1, said


def test_program_that_does_not_listen_is_killed_after_its_grace(bare):
    bare.conf("end_grace = 10s\n")
    bare.start()
    hog = subprocess.Popen([SIMGPU, "run", "--", "sh", "-c", "exec \"$0\" hog --alloc 256M --ignore-term", SIMGPU],
                           env=bare.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    bare.started.append(hog)
    pid = until("it is seen", bare.strangers)[0]["pid"]
    a = post(bare, "/api/adopt", pid=pid, kill_at_end=True, **{"for": "2s"})
    assert a.status == 201, a
    assert hog.wait(timeout=90) == -signal.SIGKILL
    assert bare.ended(a.json["id"]) == "owner-exited"


def test_F54_what_the_command_leaves_behind_is_ended_when_that_was_asked_for(bare):
    bare.start()
    go = os.path.join(bare.dir, "go")
    leaves = 'setsid "$0" hog --alloc 256M >/dev/null 2>&1 & while ! [ -e "$1" ]; do sleep 0.05; done'
    run = subprocess.Popen([os.path.join(os.path.dirname(LESSORD), "lessor"), "run", "--vram", "512M", "--kill-left", "--",
                            SIMGPU, "run", "--", "sh", "-c", leaves, SIMGPU, go],
                           env={**bare.env, "LESSOR_SOCKET": bare.socket}, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    bare.started.append(run)
    until("the worker is counted", lambda: [x for x in bare.leases() if x["used_bytes"] == 256 * MIB])
    with open(go, "w", encoding="ascii"):
        pass
    said = run.communicate(timeout=120)[1]
    assert run.returncode == 0, said
    until("nothing of it is on the card", lambda: bare.device()["used_bytes"] == 0)
    rules = until("the lease is over", lambda: (e := [(e["kind"], e["rule"]) for e in bare.events(lease="L1")])[-1][0] == "ended" and e)
    assert ("hand", "end-ordered") in rules, rules
