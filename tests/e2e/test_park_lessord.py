# SPDX-License-Identifier: Apache-2.0
"""Parking through lessord, its hands and a simulated card: a filler gives way and counts on, whoever is killed in the middle."""

import contextlib
import os
import signal
import subprocess

import pytest

from lessor_fixtures import MIB, SIMGPU, Place, until

CONF = "back_off = 1s\npoll_busy = 20ms\npoll = 100ms\n"


class Scene:
    """A card of 512 MiB, a filler of 200 MiB on it that counts in device memory."""

    def __init__(self, *create, checkpoint="can"):
        self.place = Place("--gpus", "1", "--memory", "512M", *create)
        self.place.conf(CONF)
        self.place.start()
        until("the hands are there", lambda: self.checkpoint() == checkpoint)

    def close(self):
        try:
            for p in self.place.started:
                with contextlib.suppress(ProcessLookupError):
                    p.kill()
            return self.place.close()
        finally:
            subprocess.run([SIMGPU, "fault", "clear", "--file", self.place.card], check=False, env=self.place.env,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def status(self):
        return self.place.get("/api/status").json

    def checkpoint(self):
        return self.status()["host"]["checkpoint"]

    def filler(self, **fields):
        self.out = os.path.join(self.place.dir, "count")
        with open(self.out, "wb") as out:
            self.hog = subprocess.Popen([SIMGPU, "run", "--", SIMGPU, "hog", "--alloc", "200M", "--count"],
                                        env=self.place.env, stdin=subprocess.DEVNULL, stdout=out)
        self.place.started.append(self.hog)
        until("it counts", self.count)
        fields = {"priority": 5, "yield_by": ["checkpoint"], "mode": "now",
                  "bind": {"to": "process", "pid": self.hog.pid}} | fields
        answer = self.place.ask("260M", **fields)
        assert answer.status == 201, answer
        until("the card shows it", lambda: (self.lease("L1")["used_bytes"] or 0) >= 200 * MIB)
        return answer.json["id"]

    def count(self):
        with open(self.out, encoding="utf-8") as file:
            whole = file.read().rpartition("\n")[0].splitlines()
        return int(whole[-1].split()[1]) if whole and whole[-1].startswith("count") else 0

    def goes_on(self):
        was = self.count()
        return until("it counts on", lambda: (n := self.count()) > was and n)

    def lease(self, lease_id):
        answer = self.place.lease(lease_id)
        return answer.json if answer.status == 200 else {"state": "ended"}

    def state(self, lease_id):
        return self.lease(lease_id)["state"]

    def wait_state(self, lease_id, state):
        return until(f"{lease_id} is {state}", lambda: (v := self.lease(lease_id))["state"] == state and v)

    def demand(self):
        """Somebody more important wants what only the filler can give: queued, its grant is not collected."""
        answer = self.place.ask("400M", mode="queue", priority=2)
        assert answer.status in (201, 202), answer
        return answer.json["id"]

    def records(self):
        """{pid: step} of the records of the hands."""
        found = {}
        folder = os.path.join(self.place.home, "parked")
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            if name.replace("-", "").isdigit():
                with contextlib.suppress(FileNotFoundError):
                    with open(os.path.join(folder, name), encoding="ascii") as file:
                        record = dict(line.split("=", 1) for line in file.read().splitlines())
                    found[int(record["pid"])] = record
        return found

    def process_state(self):
        with open(f"/proc/{self.hog.pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]

    def books_say_parked(self):
        """Lease, ledger, record, process and card agree that it is off the card."""
        lease, record = self.wait_state("L1", "parked"), self.records()[self.hog.pid]
        assert lease["reserved_bytes"] == 0, lease
        assert record["step"] == "stopped" and self.process_state() == "T", record
        assert int(record["host_bytes"]) >= 200 * MIB
        assert self.status()["ledger"]["charged_bytes"] == int(record["host_bytes"]) == lease["park"]["host_bytes"]

    def books_say_back(self):
        lease = self.wait_state("L1", "active")
        assert lease["reserved_bytes"] >= 60 * MIB, lease
        assert self.records().get(self.hog.pid, {"step": "restored"})["step"] == "restored"
        assert self.status()["ledger"]["charged_bytes"] == 0
        self.goes_on()


@pytest.fixture
def scene():
    s = Scene()
    yield s
    assert s.close() in (0, None, -signal.SIGKILL)


def test_filler_gives_way_and_counts_on(scene):
    scene.filler()
    before = scene.goes_on()
    who = scene.demand()
    scene.wait_state(who, "granted")
    scene.books_say_parked()
    parked_at = scene.count()
    scene.place.release(who)
    scene.wait_state("L1", "active")
    assert scene.goes_on() > parked_at >= before
    scene.books_say_back()
    kinds = [(e["kind"], e["lease"]) for e in scene.place.events()]
    assert [k for k, lease in kinds if lease == "L1" and k in ("asked", "parked", "thawing", "thawed")] == \
        ["asked", "parked", "thawing", "thawed"]


# ---- F03, A4: killed at each step ----

def warden(scene):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if words[0].endswith(b"lessor-warden") and os.fsencode(os.path.join(scene.place.home, "warden")) in words:
                return int(pid)
    return None


def kill(scene, who):
    if who == "lessord":
        scene.place.kill()
        scene.place.start()
    else:
        pid = until("the hands", lambda: warden(scene))
        os.kill(pid, signal.SIGKILL)
        until("other hands are there", lambda: (now := warden(scene)) and now != pid)


def seen(scene, words):
    until(f"the log says {words}", lambda: words in scene.place.log())


OUT = ["event=asked", "verb=lock", "verb=checkpoint", "verb=stop", "event=parked"]
BACK = ["event=thawing", "verb=restore", "verb=unlock", "event=thawed"]


@pytest.mark.parametrize("who", ["lessord", "lessor-warden"])
@pytest.mark.parametrize("when", OUT)
def test_F03_killed_on_the_way_out(scene, who, when):
    scene.filler()
    other = scene.demand()
    seen(scene, when)
    kill(scene, who)
    scene.wait_state(other, "granted")
    scene.books_say_parked()
    scene.place.release(other)
    scene.books_say_back()


@pytest.mark.parametrize("who", ["lessord", "lessor-warden"])
@pytest.mark.parametrize("when", BACK)
def test_F03_killed_on_the_way_back(scene, who, when):
    scene.filler()
    other = scene.demand()
    scene.wait_state(other, "granted")
    scene.place.release(other)
    seen(scene, when)
    kill(scene, who)
    scene.books_say_back()


@pytest.mark.parametrize("who", ["lessord", "lessor-warden"])
@pytest.mark.parametrize("call", ["lock", "checkpoint"])
def test_F03_killed_while_the_driver_works_on_the_way_out(scene, who, call):
    """The helper that made the call outlives both; what it did is taken up."""
    scene.filler()
    scene.place.fault("checkpoint-hang", call)
    other = scene.demand()
    step = {"lock": "locking", "checkpoint": "checkpointing"}[call]
    until("it hangs", lambda: scene.records().get(scene.hog.pid, {}).get("step") == step)
    kill(scene, who)
    until("the hands are there", lambda: scene.checkpoint() == "can")
    assert scene.records()[scene.hog.pid]["step"] == step
    scene.place.fault("clear")
    scene.wait_state(other, "granted")
    scene.books_say_parked()
    scene.place.release(other)
    scene.books_say_back()


@pytest.mark.parametrize("who", ["lessord", "lessor-warden"])
@pytest.mark.parametrize("call", ["restore", "unlock"])
def test_F03_killed_while_the_driver_works_on_the_way_back(scene, who, call):
    scene.filler()
    other = scene.demand()
    scene.wait_state(other, "granted")
    scene.place.fault("checkpoint-hang", call)
    scene.place.release(other)
    step = {"restore": "restoring", "unlock": "unlocking"}[call]
    until("it hangs", lambda: scene.records().get(scene.hog.pid, {}).get("step") == step)
    kill(scene, who)
    until("the hands are there", lambda: scene.checkpoint() == "can")
    scene.place.fault("clear")
    scene.books_say_back()


def helper(scene):
    """The living child of lessor-checkpoint that makes the call."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                head, tail = file.read().rsplit(")", 1)
            state, ppid = tail.split()[:2]
            with open(f"/proc/{ppid}/stat", encoding="utf-8", errors="replace") as file:
                parent, tail = file.read().rsplit(")", 1)
            if "(lessor-checkpoi" in head and "(lessor-checkpoi" in parent and state != "Z" and \
                    int(tail.split()[1]) == warden(scene):
                return int(pid)
    return None


def test_F02_helper_killed_in_the_middle_of_a_checkpoint_leaves_the_lease_stuck(scene):
    scene.filler()
    scene.place.fault("checkpoint-hang", "checkpoint")
    other = scene.demand()
    until("it hangs", lambda: scene.records().get(scene.hog.pid, {}).get("step") == "checkpointing")
    os.kill(until("the helper", lambda: helper(scene)), signal.SIGKILL)
    lease = scene.wait_state("L1", "stuck")
    assert lease["reserved_bytes"] > 0 and scene.state(other) == "queued"  # nobody knows what of it is still there
    assert scene.records()[scene.hog.pid]["step"] == "checkpointing" and scene.hog.poll() is None
    scene.place.fault("clear")


def test_F02_helper_killed_in_the_middle_of_a_lock_leaves_nobody_locked(scene):
    scene.filler()
    scene.place.fault("checkpoint-hang", "lock")
    other = scene.demand()
    until("it hangs", lambda: scene.records().get(scene.hog.pid, {}).get("step") == "locking")
    os.kill(until("the helper", lambda: helper(scene)), signal.SIGKILL)
    seen(scene, "event=order-lost")
    scene.place.fault("clear")
    scene.wait_state(other, "granted")
    scene.books_say_parked()
    scene.place.release(other)
    scene.books_say_back()


# ---- ends and losses ----

def test_F14_parked_process_that_is_killed_ends_its_lease_once(scene):
    scene.filler()
    other = scene.demand()
    scene.wait_state(other, "granted")
    scene.place.kill()  # and a daemon that comes back watches it again
    scene.place.start()
    scene.hog.kill()
    scene.hog.wait()
    assert scene.place.ended("L1") == "owner-exited"
    assert scene.status()["ledger"]["charged_bytes"] == 0
    assert [e["lease"] for e in scene.place.events() if e["kind"] == "ended"].count("L1") == 1
    scene.place.release(other)


def test_journal_deleted_while_something_is_parked_takes_it_up_from_its_record(scene):
    scene.filler()
    other = scene.demand()
    scene.wait_state(other, "granted")
    charged = scene.status()["ledger"]["charged_bytes"]
    scene.place.kill()
    for name in os.listdir(scene.place.home):
        if name.startswith(("journal.db", "clock")):
            os.unlink(os.path.join(scene.place.home, name))
    blocker = scene.place.hog("400M")  # so that it stays parked until it was looked at
    until("it is there", lambda: "400" in subprocess.run([SIMGPU, "show", "--file", scene.place.card], text=True,
                                                         stdout=subprocess.PIPE, env=scene.place.env).stdout)
    scene.place.start()
    lease = until("it is taken up", lambda: next(iter(scene.place.leases()), None))
    assert lease["state"] == "parked" and lease["binding"]["pid"] == scene.hog.pid, lease
    assert scene.status()["ledger"]["charged_bytes"] == charged
    blocker.kill()
    blocker.wait()
    until("it is back", lambda: scene.place.leases()[0]["state"] == "active")
    scene.goes_on()
    assert scene.status()["ledger"]["charged_bytes"] == 0


# ---- room for it ----

def test_F10_ledger_that_is_full_parks_nobody(scene):
    scene.place.conf(CONF + "ledger_cap = 100M\n")
    assert scene.place.request("POST", "/api/reload").status == 200
    scene.filler()
    other = scene.demand()
    seen(scene, "event=queued")
    why = until("the reason", lambda: [b for b in scene.lease(other)["reason"]["blockers"]])
    assert any(b.get("why_not") == "ledger-full" for b in why), why
    assert scene.state("L1") == "active" and scene.records() == {}
    scene.place.conf(CONF)
    assert scene.place.request("POST", "/api/reload").status == 200
    scene.wait_state(other, "granted")
    scene.books_say_parked()


def test_F10_host_memory_below_its_reserve_parks_nobody(scene):
    scene.place.conf(CONF + "host_reserve = 1000000G\n")
    assert scene.place.request("POST", "/api/reload").status == 200
    scene.filler()
    other = scene.demand()
    why = until("the reason", lambda: [b for b in scene.lease(other)["reason"]["blockers"]])
    assert any(b.get("why_not") == "host-memory" for b in why), why
    assert scene.state("L1") == "active" and scene.records() == {}


@pytest.fixture
def memory_cgroup():
    """A memory cgroup of one's own, of either hierarchy, and the file with its limit."""
    for point, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        path = os.path.join(point, f"lessor-test-{os.getpid()}")
        try:
            os.mkdir(path)
        except OSError:
            continue
        if os.path.exists(os.path.join(path, limit)):
            yield path, os.path.join(path, limit)
            until("it is empty", lambda: not read_text(os.path.join(path, "cgroup.procs")))
            os.rmdir(path)
            return
        os.rmdir(path)
    pytest.skip("no memory cgroup can be made here")


def read_text(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def write_text(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(text))


def test_F10_memory_cgroup_without_room_parks_nobody(memory_cgroup, scene):
    folder, limit = memory_cgroup
    scene.filler()
    write_text(os.path.join(folder, "cgroup.procs"), scene.hog.pid)
    write_text(limit, 100 * MIB)
    until("it is known", lambda: any(
        b.get("why_not") == "cgroup-limit" for b in scene.place.request(
            "POST", "/api/plan", {"bytes": 400 * MIB, "priority": 2}).json["reason"]["blockers"]))
    assert scene.state("L1") == "active" and scene.records() == {}
    write_text(limit, 2000 * MIB)
    scene.wait_state(scene.demand(), "granted")
    scene.books_say_parked()


def test_checkpoint_switched_off_parks_nobody(scene):
    scene.place.conf(CONF + "checkpoint = off\n")
    assert scene.place.request("POST", "/api/reload").status == 200
    until("it is told", lambda: scene.checkpoint() == "off")
    scene.filler()
    other = scene.demand()
    why = until("the reason", lambda: [b for b in scene.lease(other)["reason"]["blockers"]])
    assert any(b.get("why_not") == "cannot-checkpoint" for b in why), why
    assert scene.state("L1") == "active" and scene.records() == {}


@pytest.fixture
def old_driver():
    s = Scene("--abi", "r535", checkpoint="old-driver")
    yield s
    assert s.close() in (0, None)


def test_F07_driver_without_the_calls_is_known_before_anything_is_tried(old_driver):
    old_driver.filler()
    other = old_driver.demand()
    why = until("the reason", lambda: [b for b in old_driver.lease(other)["reason"]["blockers"]])
    assert any(b.get("why_not") == "cannot-checkpoint" for b in why), why
    assert old_driver.state("L1") == "active" and old_driver.records() == {}
    trace = subprocess.run([SIMGPU, "trace", "--file", old_driver.place.card], text=True, stdout=subprocess.PIPE,
                           check=True, env=old_driver.place.env).stdout
    assert "hold" not in trace and "lock" not in trace.replace("clock", ""), trace


# ---- the end of the daemon ----

def test_sigterm_finishes_what_is_half_way_and_leaves_it_parked(scene):
    scene.filler()
    scene.place.fault("checkpoint-hang", "checkpoint")
    scene.demand()
    until("it is half way", lambda: scene.records().get(scene.hog.pid, {}).get("step") == "checkpointing")
    scene.place.daemon.send_signal(signal.SIGTERM)
    seen(scene, "half_way=1")
    assert scene.place.ask("1M", mode="now").status == 503
    scene.place.fault("clear")
    assert scene.place.daemon.wait() == 0
    assert scene.records()[scene.hog.pid]["step"] == "stopped"
    assert "event=left-parked leases=1" in scene.place.log()
    scene.place.start()
    scene.books_say_parked()


def test_second_sigterm_hurries(scene):
    scene.filler()
    scene.place.fault("checkpoint-hang", "checkpoint")
    scene.demand()
    until("it is half way", lambda: scene.records().get(scene.hog.pid, {}).get("step") == "checkpointing")
    scene.place.daemon.send_signal(signal.SIGTERM)
    seen(scene, "half_way=1")
    scene.place.daemon.send_signal(signal.SIGTERM)
    assert scene.place.daemon.wait() == 0
    scene.place.fault("clear")
    scene.place.start()
    scene.books_say_parked()


# ---- held in place ----

def stands_still(scene):
    """The hands say held, and the counter does not move while they do (the hog counts ten times a second)."""
    record = scene.records().get(scene.hog.pid, {})
    return record.get("step") == "held" and scene.count()


@pytest.mark.parametrize("who", ["lessord", "lessor-warden"])
def test_held_in_place_is_let_go_when_everybody_is_killed_and_held_again(scene, who):
    scene.place.conf(CONF + "hold_in_place = on\nhold_after = 100ms\n")
    assert scene.place.request("POST", "/api/reload").status == 200
    scene.filler()
    other = scene.place.ask("100M", mode="now", priority=2).json["id"]
    assert scene.place.request("POST", f"/api/leases/{other}/busy", {}).status == 200
    scene.wait_state("L1", "held")
    stood = until("it is held", lambda: stands_still(scene))
    assert scene.lease("L1")["used_bytes"] >= 200 * MIB and scene.process_state() != "T"
    if who == "lessord":
        scene.place.kill()
        until("the hands let it go", lambda: scene.count() > stood)
        scene.place.start()
    else:
        kill(scene, who)
    until("lease and hands agree", lambda: scene.state("L1") == "held" and stands_still(scene))
    assert scene.place.request("POST", f"/api/leases/{other}/idle", {}).status == 200
    scene.books_say_back()


# ---- trees ----

def test_F05_tree_is_locked_whole_before_anybody_is_checkpointed_and_comes_back_whole(scene):
    """Three programs under one command, lessord killed in the middle of it."""
    counts = [os.path.join(scene.place.dir, f"count{i}") for i in range(3)]
    lines = "".join(f"'{SIMGPU}' hog --alloc 60M --count > '{path}' & " for path in counts)
    tree = subprocess.Popen([SIMGPU, "run", "--", "sh", "-c", lines + "wait"], env=scene.place.env,
                            stdin=subprocess.DEVNULL, start_new_session=True)
    scene.place.started.append(tree)

    def counted(path):
        with contextlib.suppress(OSError):
            with open(path, encoding="utf-8") as file:
                return file.read().count("count")
        return 0
    answer = scene.place.ask("260M", mode="now", priority=5, yield_by=["checkpoint"],
                             bind={"to": "process", "pid": tree.pid})
    assert answer.status == 201, answer
    until("all three count", lambda: all(counted(path) for path in counts))
    until("the card shows them", lambda: (scene.lease("L1")["used_bytes"] or 0) >= 180 * MIB)
    other = scene.demand()
    seen(scene, "verb=checkpoint")
    kill(scene, "lessord")
    scene.wait_state(other, "granted")
    lease = scene.wait_state("L1", "parked")
    records = scene.records().values()
    assert [r["step"] for r in records] == ["stopped"] * 3, records
    assert scene.status()["ledger"]["charged_bytes"] == sum(int(r["host_bytes"]) for r in records) == \
        lease["park"]["host_bytes"]
    verbs = [line.split("verb=")[1].split()[0] for line in scene.place.log().splitlines() if "event=hand " in line]
    assert verbs.index("checkpoint") >= 3 and verbs[:3] == ["lock"] * 3, verbs
    parked_at = [counted(path) for path in counts]
    scene.place.release(other)
    scene.wait_state("L1", "active")
    until("all three count on", lambda: all(counted(path) > was for path, was in zip(counts, parked_at)))
    assert scene.status()["ledger"]["charged_bytes"] == 0
    os.killpg(tree.pid, signal.SIGKILL)
