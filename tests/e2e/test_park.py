# SPDX-License-Identifier: Apache-2.0
"""Memory that is taken back and comes back, by the command line and the API, on the simulated card."""

import http.client
import json
import os
import socket
import subprocess

import pytest

from cli_helpers import MIB, SIMGPU, Place, is_alive, until


@pytest.fixture(name="place")
def fixture_place():
    place = Place()
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


def seen_using(place, name, n_bytes):
    """The books know what it uses, and lessord what this machine can do with it."""
    until("lessord knows that this machine can checkpoint", lambda: place.status()["host"]["checkpoint"] == "can")
    until(f"{name} is known to use {n_bytes // MIB} MiB", lambda: (place.lease(name) or {}).get("used_bytes") == n_bytes)


# ---- for somebody more important ----

def test_filler_ends_for_an_interactive_program_and_is_started_again(place):
    filler = place.hog("fill", "2500M", "--filler")
    first = place.holds(2500 * MIB)
    seen_using(place, "fill", 2500 * MIB)
    plan = json.loads(place.lessor("plan", "--json", "--vram", "1500M", "--priority", "2").stdout)
    assert [(v["lease"], v["way"], v["bytes"]) for v in plan["plan"]["victims"]] == [("L1", "restart", 2500 * MIB)]
    assert "L1 (" in place.lessor("plan", "--vram", "1500M", "--priority", "2").stdout
    assert is_alive(first), "a plan changes nothing"

    urgent = place.hog("now", "1500M", "--priority", "2", "--for", "10m")
    place.holds(1500 * MIB)
    away = place.in_state("fill", "parked")
    assert not is_alive(first)
    assert away["park"]["for"] == "L2" and away["park"]["way"] == "restart" and away["park"]["for_priority"] == "interactive"
    assert 0 < away["park"]["expected_back_ms"] <= 610000
    shown = place.lessor("status").stdout
    assert "restart for L2 (" in shown and "expected back in about" in shown
    assert "for L2 (" in place.lessor("lease", "show", "L1").stdout

    urgent.terminate()
    urgent.wait(timeout=60)
    place.in_state("fill", "active")
    second = place.holds(2500 * MIB)
    assert second != first
    cost = [c for c in json.loads(place.lessor("costs", "--json").stdout) if c["way"] == "restart"]
    assert len(cost) == 1 and cost[0]["runs"] == 1 and cost[0]["consumer"] == "simgpu"
    assert "restart" in place.lessor("costs").stdout
    filler.terminate()
    assert filler.communicate(timeout=60)[1].count("is back at work") == 1


def test_plan_that_would_not_do_says_of_each_in_the_way_why_it_stays(place):
    place.hog("mine", "1900M", "--for", "1h")
    place.holds(1900 * MIB)
    place.hog("fill", "300M", "--filler")
    place.holds(300 * MIB)
    seen_using(place, "mine", 1900 * MIB)
    seen_using(place, "fill", 300 * MIB)
    status, plan = ask(place, "POST", "/api/plan", {"bytes": "1500M", "priority": 2})
    assert status == 200 and plan["outcome"] == "wait" and plan["plan"] is None
    blocker = plan["reason"]["blockers"][0]
    assert (blocker["lease"], blocker["why_not"]) == ("L1", "no-way-out") and 0 < blocker["ends_in_ms"] <= 3600000
    assert 0 < plan["reason"]["earliest_in_ms"] <= 3600000
    assert "named no way out" in place.lessor("plan", "--vram", "1500M", "--priority", "2").stdout


def test_F67_nothing_is_taken_back_for_what_can_never_fit(place):
    place.hog("fill", "2500M", "--filler")
    place.holds(2500 * MIB)
    seen_using(place, "fill", 2500 * MIB)
    refused = place.lessor("run", "--vram", "4G", "--priority", "2", "--", "true")
    assert refused.returncode == 125 and "can never fit" in refused.stderr
    told = [json.loads(line)["kind"] for line in place.lessor("events", "--lease", "L1", "--json").stdout.splitlines()]
    assert "asked" not in told and place.lease("fill")["state"] == "active"


def test_F15_command_that_ignores_sigterm_still_makes_room(place):
    deaf = ("import signal, subprocess, sys\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            f"subprocess.run([{SIMGPU!r}, 'hog', '--alloc', '2500M'])")
    with open(os.path.join(place.dir, "lessord.conf"), "a", encoding="utf-8") as file:
        file.write("yield_grace = 1s\n")
    assert place.lessor("config", "check", os.path.join(place.dir, "lessord.conf")).returncode == 0
    status, _ = ask(place, "POST", "/api/reload")
    assert status == 200
    place.start("run", "--name", "deaf", "--vram", "2500M", "--yield-by", "restart", "--priority", "5", "--",
                "/usr/bin/python3", "-c", deaf)
    place.holds(2500 * MIB)
    seen_using(place, "deaf", 2500 * MIB)
    place.hog("now", "1500M", "--priority", "2")
    place.holds(1500 * MIB)
    place.in_state("deaf", "parked")

# A program of the driver's own interface: gives its memory back when it is told, and takes it again. Its word is its pid.
GIVES_WAY = """
import ctypes, os, signal, sys
told = {signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, told)
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *args):
    assert getattr(cuda, name)(*args) == 0, name
device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
call("cuInit", 0); call("cuDeviceGet", ctypes.byref(device), 0); call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
def take():
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(int(sys.argv[1]) << 20))
    print("took", flush=True)
take()
lies = len(sys.argv) > 2
while (number := signal.sigwaitinfo(told).si_signo) != signal.SIGTERM:
    if number == signal.SIGUSR1 and not lies:
        call("cuMemFree_v2", memory)
        print("gave", flush=True)
    elif number == signal.SIGUSR2 and not lies:
        take()
"""


# Python is not built with a sanitizer, which wants to be the first library of a process.
needs_plain = pytest.mark.skipif(os.environ.get("LESSOR_SANITIZED") == "1",
                                 reason="built with sanitizers, which are to be the first library")


def cooperating(place, *more, ways="cooperate"):
    return place.start("run", "--name", "kind", "--vram", "2500M", "--priority", "4", "--yield-by", ways, "--yield-signal", "USR1:USR2",
                       "--", SIMGPU, "run", "--file", place.env["SIMGPU"], "--", "/usr/bin/python3", "-c", GIVES_WAY, "2400", *more)


@needs_plain
def test_program_that_is_told_by_a_signal_gives_way_and_takes_it_again(place):
    kind = cooperating(place)
    assert kind.stdout.readline() == "took\n"
    pid = place.holds(2400 * MIB)
    seen_using(place, "kind", 2400 * MIB)
    urgent = place.hog("now", "1500M", "--priority", "2")
    assert kind.stdout.readline() == "gave\n"
    place.holds(1500 * MIB)
    assert place.in_state("kind", "parked")["park"]["way"] == "cooperate"
    assert is_alive(pid)
    urgent.terminate()
    assert kind.stdout.readline() == "took\n"
    place.in_state("kind", "active")
    assert place.holds(2400 * MIB) == pid
    kind.terminate()
    assert kind.wait(timeout=60) == 0


@needs_plain
def test_F15_program_that_lies_is_not_believed_and_goes_by_its_next_way_out(place):
    with open(os.path.join(place.dir, "lessord.conf"), "a", encoding="utf-8") as file:
        file.write("ask = 1s\n")
    assert ask(place, "POST", "/api/reload")[0] == 200
    kind = cooperating(place, "lies", ways="cooperate,restart")
    assert kind.stdout.readline() == "took\n"
    pid = place.holds(2400 * MIB)
    seen_using(place, "kind", 2400 * MIB)
    place.hog("now", "1500M", "--priority", "2")
    place.holds(1500 * MIB)
    away = place.in_state("kind", "parked")
    assert away["park"]["way"] == "restart" and not is_alive(pid)
    assert {w["way"]: w["strikes"] for w in away["ways"]} == {"cooperate": 1, "restart": 0}


def test_filler_comes_back_after_lessord_was_killed_while_it_was_away(place):
    place.hog("fill", "2500M", "--filler")
    place.holds(2500 * MIB)
    seen_using(place, "fill", 2500 * MIB)
    urgent = place.hog("now", "1500M", "--priority", "2")
    place.holds(1500 * MIB)
    place.in_state("fill", "parked")
    place.kill_daemon()
    place.start_daemon()
    assert place.in_state("fill", "parked")["park"]["way"] == "restart"
    urgent.terminate()
    place.in_state("fill", "active")
    place.holds(2500 * MIB)


# ---- by a person ----

def test_park_by_a_person_stays_until_thaw(place):
    place.hog("mine", "1000M", "--yield-by", "checkpoint")
    pid = place.holds(1000 * MIB)
    seen_using(place, "mine", 1000 * MIB)
    done = place.lessor("park", "L1")
    assert done.returncode == 0 and "L1 is parked (checkpoint): 1000 MiB came free" in done.stdout, done.stderr
    assert is_alive(pid)
    lease = place.lease("mine")
    assert lease["state"] == "parked" and lease["park"]["cause"] == "person" and lease["park"]["by_uid"] == os.getuid()
    status = place.status()
    assert status["ledger"]["charged_bytes"] >= 900 * MIB and status["host"]["checkpoint"] == "can"
    assert "of host memory" in place.lessor("status").stdout
    refused = place.lessor("lease", "release", "L1")
    assert refused.returncode == 1 and "lessor thaw L1" in refused.stderr
    done = place.lessor("thaw", "L1")
    assert done.returncode == 0 and "L1 is back at work" in done.stdout, done.stderr
    assert place.holds(1000 * MIB) == pid
    again = place.lessor("thaw", "L1")
    assert again.returncode == 1 and "not parked" in again.stderr


def test_rehearsal_proves_what_nobody_named(place):
    place.hog("mine", "1000M")
    pid = place.holds(1000 * MIB)
    seen_using(place, "mine", 1000 * MIB)
    status, problem = ask(place, "POST", "/api/leases/L1/park", {})
    assert status == 409 and problem["type"] == "urn:lessor:problem:cannot-park" and problem["why_not"] == "no-way-out"
    done = place.lessor("park", "L1", "--rehearse")
    assert done.returncode == 0 and "it is proven" in done.stdout, done.stderr
    assert place.lease("mine")["ways"][0]["proven"] is True
    assert place.holds(1000 * MIB) == pid
    assert place.lessor("park", "L1").returncode == 0, "and now it may be"


def test_clear_makes_room_and_resume_gives_it_back(place):
    place.hog("fill", "2500M", "--filler")
    place.holds(2500 * MIB)
    seen_using(place, "fill", 2500 * MIB)
    done = place.lessor("clear", "--vram", "2G", "--for", "1h")
    assert done.returncode == 0 and done.stdout == "L2\n", done.stderr
    assert place.lease("fill")["state"] == "parked"
    cleared = place.lease("clear")
    assert cleared["priority"] == 2 and cleared["binding"]["to"] == "heartbeat" and cleared["binding"]["ttl_ms"] == 3600000
    done = place.lessor("resume")
    assert done.returncode == 0 and "L2 is given back" in done.stdout
    place.in_state("fill", "active")
    assert place.lessor("resume").returncode == 1


def test_idle_and_busy_are_what_its_program_says(place):
    place.hog("mine", "1000M")
    place.holds(1000 * MIB)
    place.in_state("mine", "active")
    until("the books know what it uses: more of it is work", lambda: place.lease("mine")["used_bytes"] == 1000 * MIB)
    assert place.lease("mine")["idle_ms"] is None
    assert place.lessor("idle", "L1", "--keep-alive", "5m").stdout == "L1 is idle\n"
    assert place.lease("mine")["idle_ms"] is not None
    assert place.lessor("busy", "L1").stdout == "L1 is at work\n"
    assert place.lease("mine")["idle_ms"] is None


# ---- what is refused ----

@pytest.mark.parametrize("body, way", [({"managed": True, "yield_by": "checkpoint"}, "checkpoint"),
                                       ({"bind": {"to": "connection"}, "yield_by": ["kill", "restart"]}, "restart"),
                                       ({"bind": {"to": "connection"}, "filler": True}, "restart")])
@pytest.mark.parametrize("path", ["/api/leases", "/api/plan"])
def test_way_out_that_would_not_do_is_refused_when_asked_for(place, body, way, path):
    status, problem = ask(place, "POST", path, {"bytes": "100M", **body})
    assert status == 422 and problem["type"] == "urn:lessor:problem:way-out-unfit" and way in problem["detail"], problem
    assert place.leases() == []


def test_adopted_program_cannot_be_told_or_started_again(place):
    hog = subprocess.Popen([SIMGPU, "run", "--file", place.env["SIMGPU"], "--", SIMGPU, "hog", "--alloc", "300M"], env=place.env,
                           stdout=subprocess.DEVNULL)
    place.started.append(hog)
    pid = place.holds(300 * MIB)
    until("it is a stranger", lambda: any(s["pid"] == pid for s in place.strangers()))
    for way in ("restart", "cooperate", "checkpoint,cooperate"):
        refused = place.lessor("adopt", str(pid), "--yield-by", way)
        assert refused.returncode == 1 and "would not do" in refused.stderr, refused.stderr
    done = place.lessor("adopt", str(pid), "--yield-by", "checkpoint")
    assert done.returncode == 0, done.stderr


def test_park_of_no_lease_is_404_and_bad_fields_are_named(place):
    assert ask(place, "POST", "/api/leases/L9/park", {})[0] == 404
    place.hog("mine", "1000M")
    place.in_state("mine", "active")
    status, problem = ask(place, "POST", "/api/leases/L1/park", {"for": "soon"})
    assert status == 400 and problem["field"] == "for"
    status, problem = ask(place, "POST", "/api/leases/L1/thaw", {})
    assert status == 409 and problem["type"] == "urn:lessor:problem:not-parked"
    status, problem = ask(place, "POST", "/api/leases/L1/yielded", {})
    assert status == 409 and problem["type"] == "urn:lessor:problem:wrong-state"


def test_metrics_tell_what_came_of_it(place):
    place.hog("mine", "1000M", "--yield-by", "checkpoint")
    place.holds(1000 * MIB)
    seen_using(place, "mine", 1000 * MIB)
    assert place.lessor("park", "L1").returncode == 0
    c = Connection(place.env["LESSOR_SOCKET"])
    c.request("GET", "/metrics")
    text = c.getresponse().read().decode()
    c.close()
    assert 'lessor_leases{state="parked"} 1' in text
    assert 'lessor_moves_total{move="park",outcome="done"} 1' in text
    assert f"lessor_parked_bytes {1000 * MIB}" in text and "lessor_checkpoint_possible 1" in text
