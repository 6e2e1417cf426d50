# SPDX-License-Identifier: Apache-2.0
"""Parking across the ends of everybody: the warden in the middle of each step, its brain, lessor-checkpoint, and calls that do not return."""

import os
import shutil
import signal

import pytest

from brain import CHECKPOINT, CHECKPOINTER, CONT, HOLD, LOCK, RESTORE, STOP, UNLOCK, WARDEN, is_dead, program_of, stat_fields, until
from card import counts_on, is_stopped, records, step_reached
from test_warden_parking import DONE, PARK, THAW, Desk

STEPS = [((), LOCK, "lock", "locking", "locked"), ((LOCK,), CHECKPOINT, "checkpoint", "checkpointing", "checkpointed"),
         (PARK, RESTORE, "restore", "restoring", "locked"), ((*PARK, RESTORE), UNLOCK, "unlock", "unlocking", "restored")]  # fmt: skip


@pytest.fixture
def desk(things):
    return Desk(things)


def checkpoint_programs(desk):
    """lessor-checkpoint and its helpers, also of wardens that have ended."""
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit() and program_of(p) == CHECKPOINTER and not is_dead(p)]
    return [p for p in pids if int((stat_fields(p) or [0] * 4)[3]) in desk.warden.pids]


def helper_of(desk):
    """The one in the middle of a call: a child of the program that waits for orders, or of nobody."""
    programs = checkpoint_programs(desk)
    return [p for p in programs if int(stat_fields(p)[1]) in programs or int(stat_fields(p)[1]) != desk.warden.child.pid]


def begin(desk, pid, verb, op, step):
    """An order that hangs in its call, which has arrived."""
    desk.card.fault("checkpoint-hang", op, "--pid", str(pid), "--times", "2")
    i = desk.order(verb, pid)
    until("the target is in the call", lambda: desk.card.faults("checkpoint-hang")[0]["times"] == 1)
    step_reached(desk.parked, pid, step)
    return i


# ---- F03: the warden ends in the middle ----

@pytest.mark.parametrize("before,verb,op,during,after", STEPS)
def test_f03_helper_of_a_killed_warden_finishes_its_call_and_the_next_one_tells(desk, before, verb, op, during, after):
    hog = desk.card.hog("16M", "--count")
    desk.does(hog.pid, *before)
    i = begin(desk, hog.pid, verb, op, during)
    desk.warden.kill()
    assert desk.record(hog.pid)["step"] == during
    desk.card.clear()
    step_reached(desk.parked, hog.pid, after)
    until("the helper has ended", lambda: checkpoint_programs(desk) == [])
    desk.warden.start()
    desk.brain = desk.warden.brain.greet()
    (o,) = desk.brain.outcomes
    assert (o.order_id, o.result, o.kept) == (i, "done", True)
    assert [c[0] for c in desk.card.calls(hog.pid)].count(op) == 1, "not a second time"
    desk.does(hog.pid, *{LOCK: (UNLOCK,), CHECKPOINT: (STOP, *THAW), RESTORE: (UNLOCK,), UNLOCK: ()}[verb])
    assert counts_on(hog)


@pytest.mark.parametrize("before,verb,op,during,after", STEPS)
def test_f03_call_in_progress_is_taken_up_by_the_next_warden(desk, before, verb, op, during, after):
    hog = desk.card.hog("16M", "--count")
    desk.does(hog.pid, *before)
    i = begin(desk, hog.pid, verb, op, during)
    for _ in range(2):
        desk.restart()
        assert desk.brain.held == [i] and desk.brain.outcomes == []
        assert desk.ask(verb, hog.pid) == ("blocked", "busy")
    desk.card.clear()
    assert desk.brain.outcome(i).result == "done" and desk.step(hog.pid) == after


@pytest.mark.parametrize("before,verb,after", [((LOCK, CHECKPOINT), STOP, "stopped"), (PARK, CONT, "checkpointed")])
def test_f03_what_is_stopped_or_woken_stays_so_for_the_next_warden(desk, before, verb, after):
    hog = desk.card.hog("16M", "--count")
    desk.does(hog.pid, *before, verb)
    desk.restart()
    assert desk.step(hog.pid) == after and is_stopped(hog.pid) == (after == "stopped")
    desk.does(hog.pid, *THAW)
    assert counts_on(hog)


@pytest.mark.parametrize("before,verb,op,during,after", STEPS)
def test_f03_helper_that_is_killed_in_its_call_is_lost_and_the_driver_tells_how_it_stands(desk, before, verb, op, during, after):
    """Nobody of ours kills it; the OOM killer may. The call may be carried out all the same, or not."""
    hog = desk.card.hog("16M", "--count")
    desk.does(hog.pid, *before)
    i = begin(desk, hog.pid, verb, op, during)
    (helper,) = helper_of(desk)
    os.kill(helper, signal.SIGKILL)
    o = desk.brain.outcome(i)
    assert (o.result, o.why) == ("failed", "lost") and desk.step(hog.pid) == during
    desk.brain.settle(i)
    desk.card.clear()
    until("the target has carried it out", lambda: [c[0] for c in desk.card.calls(hog.pid)][-1:] == [op])
    rest = {LOCK: (UNLOCK,), CHECKPOINT: (STOP, *THAW), RESTORE: (UNLOCK,), UNLOCK: (LOCK, UNLOCK)}[verb]
    desk.does(hog.pid, *rest)
    assert counts_on(hog) and desk.step(hog.pid) in (None, "restored")


def test_f03_helper_that_is_killed_after_its_call_and_before_its_record_does_not_call_again(desk):
    hog = desk.card.hog("16M", "--count")
    desk.does(hog.pid, LOCK)
    desk.card.fault("checkpoint-hang", "state")
    i = desk.order(CHECKPOINT, hog.pid)
    until("the call is done, and the question after it hangs", lambda: ("checkpoint", 0) in desk.card.calls(hog.pid))
    (helper,) = helper_of(desk)
    os.kill(helper, signal.SIGKILL)
    assert desk.brain.outcome(i).why == "lost" and desk.step(hog.pid) == "checkpointing"
    desk.card.clear()
    assert desk.ask(CHECKPOINT, hog.pid) == ("blocked", "state"), "it is checkpointed already"
    assert desk.record(hog.pid)["host_bytes"] == desk.record(hog.pid)["bytes"], "nobody saw what it grew by: all of it"
    assert [c[0] for c in desk.card.calls(hog.pid)].count("checkpoint") == 1
    desk.does(hog.pid, STOP, *THAW)
    assert counts_on(hog)


# ---- F02: calls that do not return ----

def test_f02_checkpoint_that_does_not_return_is_held_and_its_late_result_is_taken(desk):
    hog = desk.card.hog("16M", "--count")
    desk.does(hog.pid, LOCK)
    i = begin(desk, hog.pid, CHECKPOINT, "checkpoint", "checkpointing")
    (helper,) = helper_of(desk)
    assert desk.brain.ping()[1] == 1 and i in desk.brain.held
    assert desk.ask(UNLOCK, hog.pid) == ("blocked", "busy") and not is_dead(helper)
    other = desk.card.hog("8M", "--count")
    desk.does(other.pid, *PARK, *THAW)  # nobody else waits for it
    desk.card.clear()
    o = desk.brain.outcome(i)
    assert o.result == "done" and desk.step(hog.pid) == "checkpointed"
    desk.does(hog.pid, STOP, *THAW)
    assert counts_on(hog) and counts_on(other)


def test_killed_lessor_checkpoint_takes_no_call_along_and_parking_is_refused_afterwards(desk):
    hog = desk.card.hog("16M", "--count")
    desk.does(hog.pid, LOCK)
    i = begin(desk, hog.pid, CHECKPOINT, "checkpoint", "checkpointing")
    (helper,) = helper_of(desk)
    (program,) = set(checkpoint_programs(desk)) - {helper}
    os.kill(program, signal.SIGKILL)
    until("it has ended", lambda: is_dead(program))
    desk.card.clear()
    assert desk.brain.outcome(i).result == "done"
    said = desk.ask(STOP, hog.pid)
    assert said in {("blocked", "system"), ("blocked", "verb")} and desk.brain.ping()[2] & 4 == 0
    assert desk.ask(STOP, hog.pid) == ("blocked", "verb")
    desk.restart()
    desk.does(hog.pid, STOP, *THAW)
    assert counts_on(hog)


def test_prepared_kill_is_carried_out_by_the_next_warden(desk):
    hog = desk.card.hog("16M", "--ignore-term")
    desk.does(hog.pid, *PARK, *THAW)
    desk.card.fault("checkpoint-hang", "checkpoint")
    assert desk.brain.signal(hog.pid) == DONE

    def begun():
        i = desk.brain.order(1, hog.pid, int(signal.SIGKILL))
        while i not in desk.brain.held and not any(o.order_id == i for o in desk.brain.outcomes):
            desk.brain.hear()
        return i if i in desk.brain.held else 0
    i = until("the grace is over", begun)
    step_reached(desk.parked, hog.pid, "checkpointing")
    desk.warden.kill()
    desk.card.clear()
    step_reached(desk.parked, hog.pid, "checkpointed")
    until("the helper has ended", lambda: checkpoint_programs(desk) == [])
    assert hog.poll() is None
    desk.warden.start()
    desk.brain = desk.warden.brain.greet()
    assert desk.brain.outcome(i).result == "done"
    until("it is dead", lambda: is_dead(hog.pid))


# ---- held in place ----

def test_held_process_keeps_its_memory_and_goes_on_when_it_is_let_go(desk):
    hog = desk.card.hog("16M", "--count")
    used = desk.card.used()
    assert desk.ask(HOLD, hog.pid) == DONE and desk.step(hog.pid) == "held" and desk.record(hog.pid)["hold"] == "1"
    assert desk.card.used() == used
    desk.does(hog.pid, UNLOCK)
    assert desk.record(hog.pid) is None and counts_on(hog)


def test_held_process_can_be_parked(desk):
    hog = desk.card.hog("16M", "--count")
    desk.does(hog.pid, HOLD, CHECKPOINT, STOP, *THAW)
    assert counts_on(hog)


@pytest.mark.parametrize("how", ["the brain is killed", "the warden is killed"])
def test_held_process_is_let_go_when_nobody_is_there_and_what_is_parked_stays(desk, how):
    held, parked, restored = (desk.card.hog("16M", "--count") for _ in range(3))
    desk.does(parked.pid, *PARK)
    desk.does(restored.pid, *PARK, *THAW, HOLD)
    desk.does(held.pid, HOLD)
    if how == "the brain is killed":
        desk.brain.close()
    else:
        desk.warden.child.kill()
    until("they run", lambda: (desk.step(held.pid), desk.step(restored.pid)) == (None, "restored"))
    assert counts_on(held) and counts_on(restored)
    assert desk.step(parked.pid) == "stopped" and is_stopped(parked.pid)
    until("nobody of ours is left", lambda: checkpoint_programs(desk) == [])


def test_process_that_is_just_being_held_is_let_go_too(desk):
    hog = desk.card.hog("16M", "--count")
    begin(desk, hog.pid, HOLD, "lock", "locking")
    desk.brain.close()
    desk.warden.child.wait(60)
    desk.card.clear()
    until("it runs", lambda: desk.record(hog.pid) is None)
    assert counts_on(hog) and [c[0] for c in desk.card.calls(hog.pid)] == ["lock", "unlock"]


def test_process_whose_hold_hangs_before_its_record_is_let_go_too(desk):
    hog = desk.card.hog("16M", "--count")
    desk.card.fault("checkpoint-hang", "thread")
    i = desk.order(HOLD, hog.pid)
    while i not in desk.brain.held:
        desk.brain.hear()
    until("the helper is in its call", lambda: helper_of(desk))
    desk.brain.close()
    desk.warden.child.wait(60)
    until("only the helper is left", lambda: len(checkpoint_programs(desk)) == 1)
    desk.card.clear()
    until("nobody is left", lambda: checkpoint_programs(desk) == [])
    assert desk.record(hog.pid) is None and counts_on(hog)


def test_held_process_that_its_user_stopped_is_let_go_when_it_runs_again(desk):
    hog = desk.card.hog("16M", "--count")
    desk.does(hog.pid, HOLD)
    hog.send_signal(signal.SIGSTOP)
    until("it stands", lambda: is_stopped(hog.pid))
    desk.brain.close()
    desk.warden.child.wait(60)
    until("somebody waits for it", lambda: desk.step(hog.pid) == "unlocking")
    hog.send_signal(signal.SIGCONT)
    until("it runs", lambda: desk.record(hog.pid) is None)
    assert counts_on(hog)


@pytest.mark.skipif(os.geteuid() != 0, reason="the system's hands are root's")
def test_system_hands_let_go_by_themselves_after_a_while_without_a_brain(things):
    desk = Desk(things, system=True)
    held, parked = (desk.card.hog("16M", "--count") for _ in range(2))
    for verb in PARK:
        assert desk.ask(verb, parked.pid, owner=0) == DONE
    assert desk.ask(HOLD, held.pid, owner=0) == DONE
    desk.brain.close()
    brain = desk.warden.connect().greet()
    assert desk.step(held.pid) == "held", "a brain that is there again soon finds it so"
    brain.close()
    until("it runs", lambda: desk.record(held.pid) is None)
    assert counts_on(held) and is_stopped(parked.pid) and desk.warden.child.poll() is None
    desk.brain = desk.warden.connect().greet()
    for verb in THAW:
        assert desk.ask(verb, parked.pid, owner=0) == DONE
    assert counts_on(parked)


# ---- without any of it ----

def test_warden_without_lessor_checkpoint_does_all_the_rest(things, folder):
    alone = os.path.join(folder, "alone")
    os.mkdir(alone)
    warden = things.warden(program=shutil.copy(WARDEN, alone))
    hands = warden.brain.greet()
    target = things.target()
    assert hands.ping()[2] & 4 == 0 and "event=no-parking" in warden.words()
    assert hands.ask(LOCK, target.pid, uuid=b"u" * 16, deadline_ms=100) == ("blocked", "verb")
    assert hands.signal(target.pid) == DONE


def test_records_are_kept_when_nobody_is_there(desk):
    hog = desk.card.hog("16M", "--count")
    desk.does(hog.pid, *PARK)
    assert desk.warden.end() == 0
    until("nobody of ours is left", lambda: checkpoint_programs(desk) == [])
    assert records(desk.parked)[hog.pid]["step"] == "stopped"
    desk.warden.start()
    desk.brain = desk.warden.brain.greet()
    desk.does(hog.pid, *THAW)
    assert counts_on(hog)
