# SPDX-License-Identifier: Apache-2.0
"""The gate with all of lessor: no lease, no device; and whatever breaks locks nobody out. On the real kernel (tests/hands/gated.py)."""

import json
import os
import signal
import subprocess
import sys

import pytest
from lessor_fixtures import BUILD, MIB, Place, until

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hands"))
from gated import Gated, why_not  # noqa: E402

LESSOR = os.path.join(BUILD, "bin", "lessor")


class Scene:
    """A daemon and a keeper of one folder, and a gated cgroup."""

    def __init__(self):
        self.place, self.gate = Place(), Gated()
        self.node = self.gate.devices["nvidia0"]
        os.makedirs(self.place.home, mode=0o700)
        self.gate.socket = f"{self.place.home}/warden-admin.sock"
        self.conf()

    def conf(self, **keys):
        self.gate.conf(**keys)
        with open(f"{self.gate.dir}/lessord.conf") as f:
            self.place.conf(f.read())

    def start(self):
        self.start_keeper()
        self.place.start()
        self.until_state("on")
        return self

    def start_keeper(self):
        self.gate.start("--config", f"{self.place.home}/lessord.conf")

    def reload(self):
        assert self.place.request("POST", "/api/reload").status < 300

    def status(self):
        return self.place.get("/api/status").json["gate"]

    def until_state(self, state):
        return until(f"the gate is {state}", lambda: (gate := self.status()) and gate["state"] == state and gate)

    def lessor(self, *words, cgroup=None, **kw):
        move = ["sh", "-c", f'echo $$ > {cgroup}/cgroup.procs && exec "$@"', "-"] if cgroup else []
        return subprocess.Popen([*move, LESSOR, *words], env={**self.place.env, "LESSOR_SOCKET": self.place.socket},
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kw)

    def say(self, *words, **kw):
        out, err = (p := self.lessor(*words, **kw)).communicate(timeout=60)
        return p.returncode, out, err

    def lease_of(self, opener, hangs=False):
        lease = self.place.ask(100 * MIB, bind={"to": "process", "pid": opener.pid}).json["id"]
        assert self.place.request("POST", f"/api/leases/{lease}/activate", {}).status == 200
        if not hangs and self.keeper_was_late():
            until("the keeper knows it", lambda: opener.ask("open", self.node) == "ENXIO")
        return lease

    def keeper_was_late(self):
        """On a machine that leaves it no time it is not waited for, and that is said."""
        return "event=gate-slow" in self.place.log() and self.status()["state"] == "on"

    def close(self):
        try:
            self.place.close()
        finally:
            self.gate.end()


@pytest.fixture
def scene():
    if why_not():
        pytest.skip(why_not())
    s = Scene()
    yield s
    s.close()


OPEN = """
import errno, os, sys
try:
    os.open(sys.argv[1], os.O_RDWR)
except OSError as e:
    print(errno.errorcode[e.errno], flush=True)
sys.stdin.read()
"""


def test_what_lessor_run_starts_gets_past_the_gate_at_its_first_step_and_who_started_it_does_not(scene):
    scene.start()
    neighbour = scene.gate.opener()
    assert neighbour.ask("open", scene.node) == "EPERM"
    for _ in range(10):
        run = scene.lessor("run", "--vram", "100M", "--", sys.executable, "-c", OPEN, scene.node, cgroup=scene.gate.cgroup)
        said = run.stdout.readline()
        assert said == "ENXIO\n" or (said == "EPERM\n" and scene.keeper_was_late()), (said, run.stderr.read())
        assert neighbour.ask("open", scene.node) == "EPERM"
        assert run.wait(60) == 0, run.stderr.read()
        run.stdout.close()
        run.stderr.close()
    assert neighbour.ask("open", scene.node) == "EPERM"
    until("no lease is left", lambda: scene.status()["leases"] == 0)


def test_a_process_with_a_lease_of_its_own_passes_until_the_end_of_that(scene):
    scene.start()
    owner = scene.gate.opener()
    assert owner.ask("open", scene.node) == "EPERM"
    lease = scene.lease_of(owner)
    assert owner.ask("open", scene.node) == "ENXIO"
    assert scene.place.release(lease).status == 200
    until("it does not pass any more", lambda: owner.ask("open", scene.node) == "EPERM")


def test_a_request_that_waits_lets_nobody_pass(scene):
    scene.start()
    owner, waits = scene.gate.opener(), scene.gate.opener(scene.gate.folder("waits"))
    scene.lease_of(owner)
    asked = scene.place.ask(3000 * MIB, bind={"to": "process", "pid": waits.pid}, mode="queue")
    assert asked.json["state"] == "queued"
    assert waits.ask("open", scene.node) == "EPERM" and owner.ask("open", scene.node) == "ENXIO"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_keeper_that_ends_locks_nobody_out_and_the_next_one_shuts_with_the_same_leases(scene, how):
    scene.start()
    owner, without = scene.gate.opener(scene.gate.folder("a")), scene.gate.opener(scene.gate.folder("b"))
    scene.lease_of(owner)
    assert [o.ask("open", scene.node) for o in (owner, without)] == ["ENXIO", "EPERM"]
    scene.gate.kill(how)
    until("everybody passes", lambda: without.ask("open", scene.node) == "ENXIO")
    assert "hung up" in scene.until_state("away")["words"] or "no lessor-warden-admin" in scene.status()["words"]
    late = scene.gate.opener(scene.gate.folder("c"))
    scene.lease_of(late)  # nothing waits for a keeper that is not there
    scene.start_keeper()
    scene.until_state("on")
    assert [o.ask("open", scene.node) for o in (owner, late, without)] == ["ENXIO", "ENXIO", "EPERM"]


def test_a_killed_lessord_comes_back_to_the_same_gate_without_what_ended_meanwhile(scene):
    scene.start()
    openers = [scene.gate.opener(scene.gate.folder(name)) for name in "abc"]
    stays, goes, without = openers
    scene.lease_of(stays)
    neighbour = scene.gate.opener(scene.gate.folder("b"))
    scene.lease_of(goes)
    assert neighbour.ask("open", scene.node) == "ENXIO"
    scene.place.kill()
    goes.end()
    assert without.ask("open", scene.node) == "EPERM"  # a restart opens nothing
    scene.place.start()
    scene.until_state("on")
    until("who ended is forgotten", lambda: neighbour.ask("open", scene.node) == "EPERM")
    assert stays.ask("open", scene.node) == "ENXIO" and without.ask("open", scene.node) == "EPERM"


def test_off_and_log_by_a_reload_refuse_nobody_from_then_on(scene):
    scene.start()
    without = scene.gate.opener()
    assert without.ask("open", scene.node) == "EPERM"
    scene.conf(mode="log")
    scene.reload()
    scene.until_state("log")
    before = scene.status()["refused"]
    assert without.ask("open", scene.node) == "ENXIO"
    counted = until("it is counted", lambda: (gate := scene.status())["refused"] > before and gate)
    assert counted["last_refused_uid"] == 0
    code, out, _ = scene.say("status")
    assert code == 0 and f"gate: log (nobody is refused); leases that pass: 0, opens it would have refused: {counted['refused']}" in out
    scene.conf(mode="off")
    scene.reload()
    assert scene.status() is None
    scene.conf()
    scene.reload()
    scene.until_state("on")
    assert without.ask("open", scene.node) == "EPERM"


def test_status_and_doctor_say_how_the_gate_stands_and_how_to_put_it_right(scene):
    scene.place.start()
    assert scene.status()["state"] == "away"
    code, out, _ = scene.say("status")
    assert code == 0 and "! the gate is open (away), everybody can open the device: no lessor-warden-admin at" in out
    findings = doctor(scene)
    assert findings["finding"] == "warn" and "start lessor-warden-admin as root" in findings["cure"]
    scene.start_keeper()
    scene.until_state("on")
    assert doctor(scene)["text"] == "on: processes without a lease do not open the device"
    os.chmod(f"{scene.place.home}/lessord.conf", 0o666)
    scene.reload()
    scene.until_state("blocked")
    findings = doctor(scene)
    assert findings["finding"] == "warn" and "cannot use lessord.conf" in findings["text"], findings
    metrics = scene.place.get("/metrics").raw.decode()
    assert "lessor_gate_up 0" in metrics and "lessor_gate_refused 0" in metrics


def doctor(scene):
    _, out, _ = scene.say("doctor", "--json")
    return next(f for f in json.loads(out)["checks"] if f["name"] == "gate")


def test_a_keeper_that_hangs_delays_a_lease_for_a_moment_and_not_for_good(scene):
    scene.start()
    owner = scene.gate.opener()
    scene.gate.keeper.send_signal(signal.SIGSTOP)
    try:
        scene.lease_of(owner, hangs=True)
        assert "event=gate-slow" in scene.place.log()
        assert "does not answer" in scene.until_state("away")["words"]
    finally:
        scene.gate.keeper.send_signal(signal.SIGCONT)
    scene.until_state("on")
    assert owner.ask("open", scene.node) == "ENXIO"


def test_a_hundred_leases_at_once_pass_and_are_forgotten(scene):
    scene.start()
    owner = scene.gate.opener()
    leases = [scene.place.ask(MIB, bind={"to": "process", "pid": owner.pid}).json["id"] for _ in range(100)]
    for lease in leases:
        assert scene.place.request("POST", f"/api/leases/{lease}/activate", {}).status == 200
    scene.gate.kill()
    scene.start_keeper()
    until("all of them are told", lambda: scene.status()["state"] == "on" and scene.status()["leases"] == 100)
    owner.end()
    until("none is left", lambda: scene.status()["leases"] == 0)


def test_without_a_section_nothing_is_looked_for(scene):
    scene.place.conf("")
    scene.place.start()
    assert scene.status() is None and "gate" not in scene.place.log()


@pytest.mark.parametrize("text, words", [
    ("[gate]\nmode = on\n", "[gate] has mode = on and no cgroups"),
    ("[gate]\nmood = on\n", "lessord.conf:2: mood is no key of [gate]; allowed: mode cgroups devices always users_from"),
    ("[gate]\ncgroups = /\n", "write a folder below the root of the hierarchy"),
    ("[gate]\nmode = off\n[user root]\nleases_max = 3\n[gate]\nmode = off\n", "[gate] stands here a second time"),
])  # fmt: skip
def test_a_wrong_section_is_refused_with_its_line(tmp_path, text, words):
    conf = tmp_path / "lessord.conf"
    conf.write_text(text)
    done = subprocess.run([os.path.join(BUILD, "bin", "lessord"), "--check-config", "--conf", conf, "--dir", tmp_path],
                          capture_output=True, text=True)
    assert done.returncode != 0 and words in done.stderr + done.stdout, done
