# SPDX-License-Identifier: Apache-2.0
"""What the hands do with CUDA checkpoints: each verb, each reason against it, and the record that says how things stand."""

import os
import signal
import subprocess

import pytest

from brain import (ALICE, CHECKPOINT, CONT, HOLD, KILL_TREE, LOCK, RESTORE, STOP, UNLOCK, Cgroup, clone_at, is_dead, needs_cgroup,
                   needs_root, reap, start_ticks, stat_fields, state_of, until)  # fmt: skip
from card import MIB, Card, counts_on, is_stopped, records, step_reached

QUICK = ("--grace-min-ms", "1", "--kill-wait-ms", "2000")
PARK, THAW = (LOCK, CHECKPOINT, STOP), (RESTORE, UNLOCK)


class Desk:
    """A card, a warden that sees it, and orders with what belongs into them."""

    def __init__(self, things, card_options=(), warden_options=QUICK, system=False, config="", **popen):
        self.card = Card(things.folder, *card_options)
        things.keep(self.card.end)
        env = {**self.card.env, **popen.pop("env", {})}
        if system:
            self.warden = things.system("signal_uids = 0-70000\n" + config, env=env, **popen)
        else:
            self.warden = things.warden(*warden_options, env=env, **popen)
        self.brain = self.warden.brain.greet()
        self.parked = os.path.join(things.folder, "parked")

    def order(self, verb, pid, **rest):
        given = {"uuid": self.card.uuid(), "lease": 7, "size": 16 * MIB, "used_at_most": 256 * MIB, "deadline_ms": 5000, **rest}
        return self.brain.order(verb, pid, **given)

    def outcome(self, verb, pid, **rest):
        i = self.order(verb, pid, **rest)
        o = self.brain.outcome(i)
        self.brain.settle(i)
        return o

    def ask(self, verb, pid, **rest):
        o = self.outcome(verb, pid, **rest)
        return o.result, o.why

    def does(self, pid, *verbs):
        for verb in verbs:
            assert self.ask(verb, pid) == ("done", "none"), verb

    def record(self, pid):
        return records(self.parked).get(pid)

    def step(self, pid):
        return (self.record(pid) or {}).get("step")

    def restart(self):
        self.brain = self.warden.again()


@pytest.fixture
def desk(things):
    return Desk(things)


DONE = ("done", "none")


# ---- the way there and back ----

def test_park_and_thaw_take_the_memory_away_and_bring_it_back(desk):
    hog = desk.card.hog("32M", "--count")
    assert desk.brain.ping()[2] & 4, "they say that they can"
    assert desk.card.used() == 32 * MIB
    assert desk.ask(LOCK, hog.pid, size=32 * MIB, flags=2) == DONE and desk.step(hog.pid) == "locked"
    o = desk.outcome(CHECKPOINT, hog.pid)
    assert (o.result, o.code) == ("done", 0) and 32 * MIB <= o.host_bytes < 40 * MIB, "what the host grew by"
    assert desk.step(hog.pid) == "checkpointed" and desk.card.used() == 0
    assert desk.ask(STOP, hog.pid) == DONE and is_stopped(hog.pid)
    record = desk.record(hog.pid)
    assert record["step"] == "stopped" and record["lease_id"] == "7" and record["bytes"] == str(32 * MIB)
    assert record["device"] == desk.card.uuids[0] and record["flags"] == "2" and record["uid"] == str(os.geteuid())
    assert record["start_ticks"] == str(start_ticks(hog.pid)) and record["host_bytes"] == str(o.host_bytes)
    assert desk.ask(RESTORE, hog.pid) == DONE and not is_stopped(hog.pid)
    assert desk.step(hog.pid) == "locked" and desk.card.used() == 32 * MIB
    assert desk.ask(UNLOCK, hog.pid) == DONE and counts_on(hog)
    assert desk.step(hog.pid) == "restored", "a note for whoever wants to kill it"


def test_f04_cycles_in_a_row_never_probe_a_stopped_process(desk):
    hog = desk.card.hog("4M", "--count")
    for _ in range(10):
        desk.does(hog.pid, *PARK, *THAW)
    assert counts_on(hog)
    assert [name for name, rc in desk.card.calls(hog.pid)] == ["lock", "checkpoint", "restore", "unlock"] * 10


def test_unlock_cancels_a_lock_and_leaves_no_record(desk):
    hog = desk.card.hog("16M", "--count")
    desk.does(hog.pid, LOCK, UNLOCK)
    assert desk.record(hog.pid) is None and counts_on(hog)


def test_stopped_process_is_woken_without_a_restore(desk):
    hog = desk.card.hog()
    desk.does(hog.pid, *PARK, CONT)
    assert not is_stopped(hog.pid) and desk.step(hog.pid) == "checkpointed"
    desk.does(hog.pid, STOP, RESTORE, UNLOCK)


def test_f05_tree_is_locked_whole_before_anybody_is_checkpointed_or_stopped(desk):
    hogs = [desk.card.hog("8M", "--count") for _ in range(3)]
    for verb in PARK:
        for hog in hogs:
            desk.does(hog.pid, verb)
    assert desk.card.used() == 0 and all(is_stopped(h.pid) for h in hogs)
    for verb in THAW:
        for hog in reversed(hogs):
            desk.does(hog.pid, verb)
    assert all(counts_on(h) for h in hogs)


def test_f05_tree_whose_third_cannot_be_locked_is_unlocked_and_nobody_stands(desk):
    hogs = [desk.card.hog("8M", "--count") for _ in range(3)]
    desk.card.fault("lock-timeout", "--pid", str(hogs[2].pid))
    desk.does(hogs[0].pid, LOCK)
    desk.does(hogs[1].pid, LOCK)
    assert desk.ask(LOCK, hogs[2].pid, deadline_ms=50) == ("blocked", "lock_timeout")
    desk.does(hogs[1].pid, UNLOCK)
    desk.does(hogs[0].pid, UNLOCK)
    assert records(desk.parked) == {} and all(counts_on(h) for h in hogs)


def test_members_whose_calls_wait_for_each_other_come_to_an_end_by_an_unlock(desk):
    """As with ranks that talk to each other (NCCL): once one is locked, calls on the other hang."""
    first, second = (desk.card.hog("8M", "--count") for _ in range(2))
    desk.does(first.pid, LOCK)
    desk.card.fault("group-hang", "--pid", str(second.pid))
    i = desk.order(LOCK, second.pid)
    while i not in desk.brain.held:
        desk.brain.hear()
    desk.does(first.pid, UNLOCK)
    assert desk.brain.outcome(i).result == "done"
    desk.does(second.pid, UNLOCK)
    assert counts_on(first) and counts_on(second)


def test_more_orders_than_helpers_are_busy_and_none_is_lost(desk):
    hogs = [desk.card.hog("4M") for _ in range(18)]
    desk.card.fault("checkpoint-hang", "lock")
    ids = [desk.order(LOCK, hog.pid) for hog in hogs]
    while len(desk.brain.outcomes) < 2:
        desk.brain.hear()
    assert {(o.order_id, o.why) for o in desk.brain.outcomes} == {(ids[16], "busy"), (ids[17], "busy")}
    desk.card.clear()
    assert {desk.brain.outcome(i).why for i in ids[:16]} == {"none"}


@needs_root
def test_s22_steps_of_parking_have_a_rate_of_their_own(things):
    desk = Desk(things, system=True, config="rate_per_s = 1\n")  # of which there are ten for these: no machine is slower
    target = things.target()
    whys = [desk.brain.outcome(i).why for i in desk.brain.flood(3000, STOP, target.pid)]
    assert set(whys[:640]) <= {"state", "busy"} and "rate" in whys and set(whys) <= {"state", "busy", "rate"}
    assert desk.brain.signal(target.pid) == DONE, "signals are counted apart"


def test_several_members_are_locked_at_the_same_time(desk):
    hogs = [desk.card.hog("8M") for _ in range(4)]
    ids = [desk.order(LOCK, hog.pid) for hog in hogs]
    assert {desk.brain.outcome(i).why for i in ids} == {"none"}


# ---- could not be tried ----

@pytest.mark.parametrize("code,why", [(1, "cannot_process"), (3, "cannot_init"), (800, "cannot_permitted"),
                                      (801, "cannot_supported")])  # fmt: skip
def test_f07_lock_that_cannot_be_tried_is_blocked_with_its_reason(desk, code, why):
    hog = desk.card.hog("16M", "--count")
    desk.card.fault("cuda-error", str(code), "--symbol", "cuCheckpointProcessLock")
    o = desk.outcome(LOCK, hog.pid)
    assert (o.result, o.why, o.code) == ("blocked", why, code)
    assert desk.record(hog.pid) is None and counts_on(hog)


@pytest.mark.parametrize("code,why", [(1, "cannot_process"), (800, "cannot_permitted"), (801, "cannot_supported")])
def test_f07_checkpoint_that_cannot_be_tried_is_blocked_and_can_be_unlocked(desk, code, why):
    hog = desk.card.hog("16M", "--count")
    desk.does(hog.pid, LOCK)
    desk.card.fault("cuda-error", str(code), "--symbol", "cuCheckpointProcessCheckpoint")
    assert desk.ask(CHECKPOINT, hog.pid) == ("blocked", why)
    assert desk.step(hog.pid) == "locked"
    desk.does(hog.pid, UNLOCK)
    assert counts_on(hog)


def test_f07_restore_that_cannot_be_tried_is_blocked_and_can_be_tried_again(desk):
    hog = desk.card.hog("16M", "--count")
    desk.does(hog.pid, *PARK)
    desk.card.fault("cuda-error", "800", "--symbol", "cuCheckpointProcessRestore")
    assert desk.ask(RESTORE, hog.pid) == ("blocked", "cannot_permitted")
    assert desk.step(hog.pid) == "checkpointed"
    desk.card.clear()
    desk.does(hog.pid, STOP, *THAW)
    assert counts_on(hog)


def test_f07_unlock_that_cannot_be_tried_is_blocked_and_can_be_tried_again(desk):
    hog = desk.card.hog("16M", "--count")
    desk.does(hog.pid, LOCK)
    desk.card.fault("cuda-error", "800", "--symbol", "cuCheckpointProcessUnlock")
    assert desk.ask(UNLOCK, hog.pid) == ("blocked", "cannot_permitted") and desk.step(hog.pid) == "locked"
    desk.card.clear()
    desk.does(hog.pid, UNLOCK)
    assert counts_on(hog)


@pytest.mark.parametrize("options", [("--abi", "r535"), ("--hide", "cuCheckpointProcessRestore")])
def test_f07_driver_without_checkpoints_is_told_before_any_call(things, options):
    desk = Desk(things, options)
    hog = desk.card.hog()
    assert desk.ask(LOCK, hog.pid) == ("blocked", "cannot_driver")
    assert desk.card.calls(hog.pid) == [] and records(desk.parked) == {}


def test_f07_machine_without_the_library_is_told(things):
    desk = Desk(things, env={"LD_LIBRARY_PATH": ""})
    if desk.ask(LOCK, desk.card.hog().pid) != ("blocked", "cannot_library"):
        pytest.skip("a real libcuda.so.1 is installed here")


def test_restore_is_initialised_once_where_the_driver_wants_it(things):
    desk = Desk(things, ("--persistence", "off"))
    hog = desk.card.hog("16M", "--count")
    desk.does(hog.pid, *PARK, *THAW)
    assert counts_on(hog)


def test_process_without_cuda_is_no_target(desk, things):
    target = things.target()
    assert desk.ask(LOCK, target.pid) == ("blocked", "cannot_process")
    assert desk.record(target.pid) is None and target.signals() == []


def test_f02_lock_that_timed_out_is_undone(desk):
    hog = desk.card.hog("16M", "--count")
    desk.card.fault("lock-timeout")
    o = desk.outcome(LOCK, hog.pid, deadline_ms=30)
    assert (o.result, o.why, o.code) == ("blocked", "lock_timeout", 600) and o.duration_ms >= 30
    assert desk.record(hog.pid) is None and counts_on(hog)


def test_process_that_somebody_stopped_is_not_asked(desk):
    hog = desk.card.hog("16M", "--count")
    hog.send_signal(signal.SIGSTOP)
    until("it stands", lambda: is_stopped(hog.pid))
    assert desk.ask(LOCK, hog.pid) == ("blocked", "stands_still")
    hog.send_signal(signal.SIGCONT)
    desk.does(hog.pid, LOCK)
    hog.send_signal(signal.SIGSTOP)
    until("it stands", lambda: is_stopped(hog.pid))
    assert desk.ask(CHECKPOINT, hog.pid) == ("blocked", "stands_still") and desk.step(hog.pid) == "locked"
    assert desk.ask(UNLOCK, hog.pid) == ("blocked", "stands_still") and desk.step(hog.pid) == "locked"
    hog.send_signal(signal.SIGCONT)
    desk.does(hog.pid, CHECKPOINT)
    hog.send_signal(signal.SIGSTOP)
    until("it stands", lambda: is_stopped(hog.pid))
    assert desk.ask(RESTORE, hog.pid) == ("blocked", "stands_still"), "nobody but its user stopped it"
    hog.send_signal(signal.SIGCONT)
    desk.does(hog.pid, *THAW)
    assert counts_on(hog)


@needs_cgroup
def test_frozen_process_is_not_asked(desk, things):
    group = Cgroup("lessor-frozen")
    things.keep(group.end)
    hog = desk.card.hog("16M", "--count")
    group.put(hog.pid)
    freeze = os.path.join(group.path, "cgroup.freeze")
    with open(freeze, "w") as f:
        f.write("1")
    until("it is frozen", lambda: "frozen 1" in group.read("cgroup.events"))
    assert desk.ask(LOCK, hog.pid) == ("blocked", "stands_still")
    with open(freeze, "w") as f:
        f.write("0")
    desk.does(hog.pid, LOCK, UNLOCK)


# ---- the last look ----

def test_f01_restore_without_headroom_calls_nothing_and_can_be_tried_again(desk):
    hog = desk.card.hog("32M", "--count")
    desk.does(hog.pid, *PARK)
    other = desk.card.hog("100M")
    for _ in range(5):
        assert desk.ask(RESTORE, hog.pid, used_at_most=100 * MIB - 1) == ("blocked", "headroom")
    assert is_stopped(hog.pid) and desk.step(hog.pid) == "stopped"
    assert "restore" not in dict(desk.card.calls(hog.pid))
    assert desk.ask(RESTORE, hog.pid, used_at_most=100 * MIB) == DONE, "the edge is inside"
    desk.does(hog.pid, UNLOCK)
    assert counts_on(hog) and other.poll() is None


@pytest.mark.parametrize("fault", [("no-memory-info",), ("lost",), ("nvml-error", "18", "--symbol", "nvmlInit*")])
def test_f01_device_whose_use_is_not_known_has_no_headroom(desk, fault):
    hog = desk.card.hog()
    desk.does(hog.pid, *PARK)
    desk.card.fault(*fault)
    assert desk.ask(RESTORE, hog.pid) == ("blocked", "headroom") and is_stopped(hog.pid)
    desk.card.clear()
    desk.does(hog.pid, *THAW)


def test_f01_restore_that_finds_no_room_after_all_is_final(desk):
    hog = desk.card.hog()
    desk.does(hog.pid, *PARK)
    desk.card.fault("restore-fail")
    o = desk.outcome(RESTORE, hog.pid)
    assert (o.result, o.why, o.code) == ("failed", "driver", 2) and desk.step(hog.pid) == "failed"
    desk.card.clear()
    n = len(desk.card.calls(hog.pid))
    for verb in (RESTORE, UNLOCK, LOCK, CHECKPOINT, STOP, CONT, HOLD):
        assert desk.ask(verb, hog.pid) == ("blocked", "final")
    assert len(desk.card.calls(hog.pid)) == n and hog.poll() is None, "no call and no signal after it"


def test_f08_restore_goes_to_the_recorded_device_and_no_other(things):
    desk = Desk(things, ("--gpus", "2"))
    hog = desk.card.hog("16M", "--count")
    desk.does(hog.pid, *PARK)
    assert desk.ask(RESTORE, hog.pid, uuid=desk.card.uuid(1)) == ("blocked", "device")
    assert desk.ask(RESTORE, hog.pid, uuid=b"\x01" * 16) == ("blocked", "device")
    assert "restore" not in dict(desk.card.calls(hog.pid))
    other = desk.card.hog("200M", "--device", "1")
    assert desk.ask(RESTORE, hog.pid, used_at_most=0) == DONE, "the other device's memory is none of its business"
    desk.does(hog.pid, UNLOCK)
    assert desk.card.used(0) == 16 * MIB and other.poll() is None and counts_on(hog)


# ---- tried, and went wrong ----

def test_checkpoint_that_fails_is_final(desk):
    hog = desk.card.hog()
    desk.does(hog.pid, LOCK)
    desk.card.fault("checkpoint-fail")
    o = desk.outcome(CHECKPOINT, hog.pid)
    assert (o.result, o.why, o.code) == ("failed", "driver", 304) and desk.step(hog.pid) == "failed"
    desk.card.clear()
    assert desk.ask(CHECKPOINT, hog.pid) == ("blocked", "final")
    assert desk.ask(UNLOCK, hog.pid) == ("blocked", "final") and hog.poll() is None


@pytest.mark.parametrize("before,verb,op,step", [((), LOCK, "lock", None), ((LOCK,), CHECKPOINT, "checkpoint", "failed"),
                                                 (PARK, RESTORE, "restore", "failed"), ((LOCK,), UNLOCK, "unlock", "locked")])  # fmt: skip
def test_success_without_effect_is_not_believed(desk, before, verb, op, step):
    hog = desk.card.hog()
    desk.does(hog.pid, *before)
    desk.card.fault("no-effect", op)
    assert desk.ask(verb, hog.pid) == ("failed", "no_effect")
    assert desk.step(hog.pid) == step


@pytest.mark.parametrize("fault", [("failed-state",), ("unknown-state", "4"), ("unknown-state", "5"), ("unknown-state", "-1")])
def test_state_that_nobody_knows_is_never_running_or_checkpointed(desk, fault):
    hog = desk.card.hog()
    desk.does(hog.pid, LOCK)
    desk.card.fault(*fault)
    assert desk.ask(CHECKPOINT, hog.pid) == ("failed", "no_effect") and desk.step(hog.pid) == "failed"


# ---- what the record does not allow ----

def test_verb_that_the_record_does_not_allow_is_blocked_and_no_call_is_made(desk):
    hog = desk.card.hog("16M", "--count")
    allowed = {None: (LOCK, HOLD), "locked": (CHECKPOINT, UNLOCK), "checkpointed": (STOP, RESTORE), "stopped": (CONT, RESTORE)}
    for verb in (None, LOCK, CHECKPOINT, STOP):
        if verb:
            desk.does(hog.pid, verb)
        n = len(desk.card.calls(hog.pid))
        for other in {LOCK, CHECKPOINT, RESTORE, UNLOCK, STOP, CONT, HOLD} - set(allowed[desk.step(hog.pid)]):
            assert desk.ask(other, hog.pid) == ("blocked", "state"), (verb, other)
        assert len(desk.card.calls(hog.pid)) == n
    desk.does(hog.pid, *THAW)
    assert counts_on(hog)


def test_s08_strangers_are_neither_stopped_nor_woken_by_these_verbs(desk, things):
    target = things.target()
    assert desk.ask(STOP, target.pid) == ("blocked", "state") and not is_stopped(target.pid)
    target.child.send_signal(signal.SIGSTOP)
    until("it stands", lambda: is_stopped(target.pid))
    assert desk.ask(CONT, target.pid) == ("blocked", "state") and is_stopped(target.pid)


@needs_root
def test_s22_other_users_and_protected_processes_are_not_parked(things):
    desk = Desk(things, ("--shared",), system=True)
    hog = desk.card.hog("16M", user=ALICE, group=ALICE, extra_groups=[])
    assert desk.ask(LOCK, hog.pid, owner=0) == ("blocked", "other_owner")
    assert desk.ask(LOCK, hog.pid, owner=ALICE, start=1) == ("blocked", "recycled")
    assert desk.ask(LOCK, 1, owner=0) == ("blocked", "protected_init")
    assert desk.ask(LOCK, os.getpid(), owner=0) == ("blocked", "protected_lessor")
    assert desk.card.calls(hog.pid) == []
    for verb in (*PARK, *THAW):
        assert desk.ask(verb, hog.pid, owner=ALICE) == DONE


def test_s22_program_that_calls_the_driver_is_protected_as_the_hands_are(desk):
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit() and int((stat_fields(p) or [0, 0])[1]) == desk.warden.child.pid]
    (program,) = pids
    for said in (desk.brain.signal(program), desk.ask(LOCK, program), desk.brain.ask(KILL_TREE, program)):
        assert said in {("blocked", "protected_lessor"), ("blocked", "unseen")}, "a plain user's hands do not see what it is"


def lines_of_status(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


KILL, DAC_OVERRIDE, PTRACE, RESOURCE = 1 << 5, 1 << 1, 1 << 19, 1 << 24


@pytest.mark.parametrize("system", [pytest.param(True, marks=needs_root), False])
def test_s23_program_that_calls_the_driver_has_the_capabilities_it_needs_and_no_other(things, system):
    desk = Desk(things, system=system)
    (program,) = [p for p in os.listdir("/proc")
                  if p.isdigit() and int((stat_fields(p) or [0, 0])[1]) == desk.warden.child.pid]  # fmt: skip
    desk.ask(LOCK, desk.card.hog().pid, owner=os.geteuid())  # it has come as far as to take orders
    lines = lines_of_status(program)
    here = int(lines_of_status("self")["CapPrm"], 16)
    keep = (KILL | DAC_OVERRIDE | PTRACE | RESOURCE if system else PTRACE if os.geteuid() == 0 else 0) & here
    assert int(lines["CapPrm"], 16) == int(lines["CapEff"], 16) == keep
    assert int(lines["CapInh"], 16) == int(lines["CapAmb"], 16) == 0 and lines["NoNewPrivs"] == "1"
    assert lines["Seccomp"] == "2"


# ---- damaged and foreign records ----

def name_of(hog):
    return f"{hog.pid}-{start_ticks(hog.pid)}"


@pytest.mark.parametrize("damage", [b"", b"lessor_record=1\n", b"\0" * 100, b"lessor_record=2\n", b"x" * 5000])
def test_damaged_record_is_not_acted_on(desk, damage):
    hog = desk.card.hog()
    desk.does(hog.pid, *PARK)
    path = os.path.join(desk.parked, name_of(hog))
    with open(path, "wb") as f:
        f.write(damage)
    n = len(desk.card.calls(hog.pid))
    for verb in (RESTORE, CONT, UNLOCK, LOCK):
        assert desk.ask(verb, hog.pid) == ("blocked", "record")
    assert desk.brain.signal(hog.pid) == ("blocked", "record"), "who may be parked is not signalled"
    assert is_stopped(hog.pid) and len(desk.card.calls(hog.pid)) == n
    with open(path, "rb") as f:
        assert f.read() == damage, "it is left for a person"


def test_link_or_another_processes_record_in_its_place_is_not_acted_on(desk, things):
    hog, other = desk.card.hog(), desk.card.hog()
    desk.does(hog.pid, *PARK)
    path, others = (os.path.join(desk.parked, name_of(h)) for h in (hog, other))
    os.rename(path, others)
    assert desk.ask(RESTORE, other.pid) == ("blocked", "record") and desk.ask(STOP, other.pid) == ("blocked", "record")
    os.rename(others, path + ".real")
    os.symlink(path + ".real", path)
    assert desk.ask(RESTORE, hog.pid) == ("blocked", "record")
    os.unlink(path)
    os.link(path + ".real", path)
    assert desk.ask(RESTORE, hog.pid) == ("blocked", "record")
    os.unlink(path)
    os.rename(path + ".real", path)
    os.chmod(path, 0o666)
    assert desk.ask(RESTORE, hog.pid) == ("blocked", "record")
    os.chmod(path, 0o600)
    if os.geteuid() == 0:
        os.chown(path, ALICE, ALICE)
        assert desk.ask(RESTORE, hog.pid) == ("blocked", "record")
        os.chown(path, 0, 0)
    assert is_stopped(hog.pid) and not is_stopped(other.pid)
    desk.does(hog.pid, *THAW)


def test_record_of_another_boot_is_moved_aside_at_the_start(desk):
    hog = desk.card.hog()
    desk.does(hog.pid, *PARK)
    path = os.path.join(desk.parked, name_of(hog))
    with open(path) as f:
        text = f.read()
    boot = text.split("boot_id=")[1][:36]
    with open(path, "w") as f:
        f.write(text.replace(boot, "0" * 8 + boot[8:]))
    assert desk.ask(RESTORE, hog.pid) == ("blocked", "record")
    desk.restart()
    until("it is aside", lambda: os.path.exists(path + ".aside"))
    assert not os.path.exists(path) and is_stopped(hog.pid)
    assert desk.ask(RESTORE, hog.pid) == ("blocked", "state")


def test_record_that_cannot_be_written_leaves_the_process_as_it_is(desk):
    hog = desk.card.hog("16M", "--count")
    os.mkdir(os.path.join(desk.parked, f".{name_of(hog)}.new"))
    o = desk.outcome(LOCK, hog.pid)
    assert (o.result, o.why) == ("blocked", "record") and o.error != 0
    assert desk.card.calls(hog.pid) == [] and counts_on(hog)


@needs_root
def test_s23_records_of_the_system_are_roots_and_readable_by_lessords_group(things):
    import grp
    import pwd

    user = pwd.getpwnam("nobody")
    desk = Desk(things, system=True, brain_uid=0)
    hog = desk.card.hog()
    assert desk.ask(LOCK, hog.pid, owner=0) == DONE
    st, folder = os.stat(os.path.join(desk.parked, name_of(hog))), os.stat(desk.parked)
    assert (st.st_uid, st.st_gid, st.st_mode & 0o7777) == (0, 0, 0o640)
    assert (folder.st_uid, folder.st_mode & 0o7777) == (0, 0o2750)
    assert desk.ask(UNLOCK, hog.pid, owner=0) == DONE
    desk.warden.end()
    desk.warden.brain_uid = user.pw_uid
    desk.warden.start()
    assert os.stat(desk.parked).st_gid == user.pw_gid and grp.getgrgid(user.pw_gid)


def test_folder_in_which_others_can_write_is_refused(things):
    parked = os.path.join(things.folder, "parked")
    os.mkdir(parked)
    os.chmod(parked, 0o777)
    warden = things.warden()
    assert warden.child.wait(60) == 78 and "parked is not a folder for its owner alone; chmod go-w" in warden.words()


# ---- the OOM killer ----

def oom(pid):
    with open(f"/proc/{pid}/oom_score_adj") as f:
        return int(f.read())


def test_parked_process_is_kept_from_the_oom_killer_and_its_value_is_put_back(desk):
    hog = desk.card.hog()
    with open(f"/proc/{hog.pid}/oom_score_adj", "w") as f:
        f.write("300")
    desk.does(hog.pid, LOCK)
    assert oom(hog.pid) == 300
    desk.does(hog.pid, CHECKPOINT, STOP)
    assert oom(hog.pid) <= 0 and desk.record(hog.pid)["oom_score_adj"] == "300"
    desk.restart()
    desk.does(hog.pid, *THAW)
    assert oom(hog.pid) == 300 and desk.record(hog.pid)["oom_kept"] == "0"


def test_value_for_the_oom_killer_is_remembered_over_a_second_checkpoint(desk):
    hog = desk.card.hog()
    with open(f"/proc/{hog.pid}/oom_score_adj", "w") as f:
        f.write("300")
    desk.does(hog.pid, *PARK, RESTORE, CHECKPOINT, RESTORE)
    assert desk.record(hog.pid)["oom_score_adj"] == "300" and oom(hog.pid) <= 0
    desk.does(hog.pid, UNLOCK)
    assert oom(hog.pid) == 300


@needs_root
def test_s23_system_hands_take_it_out_of_the_oom_killers_hands_altogether(things):
    desk = Desk(things, ("--shared",), system=True)
    hog = desk.card.hog("16M", user=ALICE, group=ALICE, extra_groups=[])
    for verb in (LOCK, CHECKPOINT):
        assert desk.ask(verb, hog.pid, owner=ALICE) == DONE
    may_lower = not subprocess.run(["/bin/sh", "-c", "echo -1000 >/proc/self/oom_score_adj"], stderr=subprocess.DEVNULL).returncode
    assert oom(hog.pid) == (-1000 if may_lower else 0)
    for verb in (RESTORE, UNLOCK):
        assert desk.ask(verb, hog.pid, owner=ALICE) == DONE
    assert oom(hog.pid) == 0


# ---- signals and parked processes ----

def kill(desk, pid, verb=None, **rest):
    """SIGTERM, then the end as soon as the grace allows: (result, why)."""
    desk.brain.signal(pid, signal.SIGTERM, **rest)

    def over():
        if verb:
            said = desk.brain.ask(verb, pid, **rest)
        else:
            said = desk.brain.signal(pid, signal.SIGKILL, **rest)
        return None if said == ("blocked", "no_grace") else said

    return until("the grace is over", over)


def test_parked_process_gets_no_signal(desk):
    hog = desk.card.hog("16M", "--ignore-term", "--count")
    assert desk.brain.signal(hog.pid) == DONE  # its grace runs
    desk.does(hog.pid, LOCK, CHECKPOINT)
    for step in (None, STOP):
        if step:
            desk.does(hog.pid, step)
        for sig in (signal.SIGTERM, signal.SIGKILL, signal.SIGCONT, signal.SIGSTOP, signal.SIGINT):
            assert desk.brain.signal(hog.pid, sig) in {("blocked", "parked"), ("blocked", "no_grace")}
        assert desk.brain.ask(KILL_TREE, hog.pid) in {("blocked", "parked"), ("blocked", "no_grace")}
    assert desk.brain.signal(hog.pid, signal.SIGTERM) == ("blocked", "parked")
    desk.does(hog.pid, *THAW)
    assert counts_on(hog)


def test_grace_of_before_the_park_does_not_count_after_it(desk):
    hog = desk.card.hog("16M", "--ignore-term", "--count")
    assert desk.brain.signal(hog.pid) == DONE
    desk.does(hog.pid, *PARK, *THAW)
    assert desk.brain.signal(hog.pid, signal.SIGKILL) == ("blocked", "no_grace") and counts_on(hog)


@pytest.mark.parametrize("verb", [None, KILL_TREE])
def test_process_that_was_restored_is_checkpointed_before_it_is_killed(desk, verb):
    hog = desk.card.hog("16M", "--ignore-term")
    desk.does(hog.pid, *PARK, *THAW)
    n = len(desk.card.calls(hog.pid))
    assert kill(desk, hog.pid, verb) == DONE
    until("it is dead", lambda: is_dead(hog.pid))
    assert desk.card.calls(hog.pid)[n:] == [("lock", 0), ("checkpoint", 0)]


def test_process_that_was_restored_and_cannot_be_locked_is_not_killed(desk):
    hog = desk.card.hog("16M", "--ignore-term", "--count")
    desk.does(hog.pid, *PARK, *THAW)
    desk.card.fault("cuda-error", "800", "--symbol", "cuCheckpointProcessLock")
    assert kill(desk, hog.pid) == ("blocked", "cannot_permitted")
    assert counts_on(hog) and desk.step(hog.pid) == "restored"


@needs_cgroup
def test_tree_with_a_restored_process_is_killed_after_its_checkpoint(desk, things):
    group = Cgroup("lessor-tree", owner=os.geteuid())
    things.keep(group.end)
    hogs = [desk.card.hog("8M", "--ignore-term") for _ in range(3)]
    for hog in hogs:
        group.put(hog.pid)
    desk.does(hogs[0].pid, *PARK, *THAW)
    desk.does(hogs[1].pid, *PARK, *THAW)
    assert kill(desk, hogs[2].pid, KILL_TREE, cgroup=group.id) == DONE
    assert all(is_dead(h.pid) for h in hogs)
    assert [len(desk.card.calls(h.pid)) for h in hogs] == [6, 6, 0]


@needs_cgroup
def test_tree_with_a_parked_process_is_not_killed(desk, things):
    group = Cgroup("lessor-tree", owner=os.geteuid())
    things.keep(group.end)
    hogs = [desk.card.hog("8M", "--ignore-term") for _ in range(2)]
    for hog in hogs:
        group.put(hog.pid)
    desk.does(hogs[0].pid, *PARK)
    assert kill(desk, hogs[1].pid, KILL_TREE, cgroup=group.id) == ("blocked", "parked")
    assert all(h.poll() is None for h in hogs) and is_stopped(hogs[0].pid)


def test_process_that_failed_for_good_can_be_killed(desk):
    hog = desk.card.hog("16M", "--ignore-term")
    desk.does(hog.pid, *PARK)
    desk.card.fault("restore-fail")
    assert desk.ask(RESTORE, hog.pid) == ("failed", "driver")
    assert kill(desk, hog.pid) == DONE
    until("it is dead", lambda: is_dead(hog.pid))


# ---- a victim that dies ----

def test_f14_process_that_died_before_a_step_is_gone_and_its_record_too(desk):
    for before, verb in (((LOCK,), CHECKPOINT), ((LOCK,), UNLOCK), (PARK, RESTORE), ((LOCK, CHECKPOINT), STOP), (PARK, CONT)):
        hog = desk.card.hog()
        desk.does(hog.pid, *before)
        start, n = start_ticks(hog.pid), len(desk.card.calls(hog.pid))
        hog.kill()
        hog.wait(60)
        assert desk.ask(verb, hog.pid, start=start) == ("blocked", "gone"), verb
        assert len(desk.card.calls(hog.pid)) == n


def test_f14_process_that_dies_in_a_checkpoint_is_gone_and_never_asked_again(desk):
    hog = desk.card.hog()
    start = start_ticks(hog.pid)
    desk.does(hog.pid, LOCK)
    desk.card.fault("checkpoint-die")
    assert desk.ask(CHECKPOINT, hog.pid) == ("failed", "gone")
    assert desk.record(hog.pid) is None and state_of(hog.pid) in ("Z", "")
    assert desk.ask(RESTORE, hog.pid, start=start) == ("blocked", "gone")


@pytest.mark.parametrize("before,verb,op", [((), LOCK, "lock"), ((LOCK,), CHECKPOINT, "checkpoint"), (PARK, RESTORE, "restore"),
                                            ((LOCK,), UNLOCK, "unlock")])  # fmt: skip
def test_f14_process_that_dies_while_a_call_hangs_is_gone(desk, before, verb, op):
    hog = desk.card.hog()
    desk.does(hog.pid, *before)
    desk.card.fault("checkpoint-hang", op)
    i = desk.order(verb, hog.pid)
    step_reached(desk.parked, hog.pid, {"lock": "locking", "checkpoint": "checkpointing", "restore": "restoring",
                                        "unlock": "unlocking"}[op])  # fmt: skip
    hog.kill()
    o = desk.brain.outcome(i)
    assert (o.result, o.why) in {("failed", "gone"), ("blocked", "gone")} and desk.record(hog.pid) is None


@needs_root
@pytest.mark.parametrize("before,verb", [((LOCK,), CHECKPOINT), (PARK, RESTORE), (PARK, CONT), ((LOCK, CHECKPOINT), STOP)])
def test_f14_pid_of_a_dead_parked_process_that_is_used_again_gets_no_call_and_no_signal(desk, things, before, verb):
    hog = desk.card.hog()
    desk.does(hog.pid, *before)
    start, n = start_ticks(hog.pid), len(desk.card.calls(hog.pid))
    hog.kill()
    hog.wait(60)
    try:
        again = clone_at(hog.pid)
        while start_ticks(again) == start:  # all of this within one tick: told apart by its pidfd alone, and not what is meant here
            reap(again)
            again = clone_at(hog.pid)
    except OSError:
        pytest.skip("the kernel gives no pid of one's choice here")
    things.keep(reap, again)
    until("it waits", lambda: state_of(again) == "S")
    assert desk.ask(verb, again, start=start) == ("blocked", "recycled")
    assert desk.ask(verb, again) == ("blocked", "state"), "the record is not its own"
    assert len(desk.card.calls(again)) == n and state_of(again) == "S"


def test_f14_record_of_the_dead_is_removed_by_the_next_warden(desk):
    hog = desk.card.hog()
    desk.does(hog.pid, *PARK)
    hog.kill()
    hog.wait(60)
    desk.restart()
    until("its record is gone", lambda: records(desk.parked) == {})
