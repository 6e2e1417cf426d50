# SPDX-License-Identifier: Apache-2.0
"""Helpers outlive the warden, and each outcome reaches the brain: once when it says so, again until then."""

import contextlib
import ctypes
import os
import signal
import struct
import subprocess

import pytest

from brain import CHECKPOINTER, KILL_TREE, PATIENCE_S, Warden, is_dead, program_of, state_of, stat_fields, until

PTRACE_CONT, PTRACE_SEIZE, PTRACE_O_TRACEEXIT = 7, 0x4206, 0x40
LONG = ["--grace-min-ms", "1", "--kill-wait-ms", "600000"]


class Lingering:
    """A process whose last step is held up: after its SIGKILL it stays until let_go(). So a helper is surely in the middle."""

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.child = subprocess.Popen(["/usr/bin/sleep", "1000"])
        self.pid = self.child.pid
        if self.libc.ptrace(PTRACE_SEIZE, self.pid, None, PTRACE_O_TRACEEXIT) != 0:
            self.child.kill()
            pytest.skip("ptrace is not allowed here")

    def pass_on(self, sig):
        """What it got, a tracer sees first."""
        until("the signal is there", lambda: state_of(self.pid) == "t")
        os.waitpid(self.pid, 0)
        assert self.libc.ptrace(PTRACE_CONT, self.pid, None, sig) == 0

    def is_ending(self):
        return state_of(self.pid) == "t"

    def let_go(self):
        if self.child.returncode is not None:
            return
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        self.libc.ptrace(PTRACE_CONT, self.pid, None, None)
        self.child.kill()
        self.child.wait(PATIENCE_S)


def children_of(warden, program):
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit()]
    return [p for p in pids if int((stat_fields(p) or [0, 0])[1]) == warden.child.pid and not is_dead(p)
            and program_of(p) == program]  # fmt: skip


def helpers_of(warden):
    until("lessor-checkpoint is its own program", lambda: children_of(warden, CHECKPOINTER))
    return children_of(warden, "lessor-warden")


@pytest.fixture
def middle(things):
    """A warden with a KILL_TREE in the middle: (warden, target, order id)."""
    warden = things.warden(*LONG)
    brain = warden.brain.greet()
    target = Lingering()
    things.keep(target.let_go)
    assert brain.signal(target.pid) == ("done", "none")
    target.pass_on(0)  # it survives its SIGTERM

    def begun():
        i = brain.order(KILL_TREE, target.pid)
        while i not in brain.held and not any(o.order_id == i for o in brain.outcomes):
            brain.hear()
        return i if i in brain.held else 0
    order = until("the grace is over", begun)
    until("its SIGKILL is there", target.is_ending)
    return warden, target, order


def test_helper_of_a_killed_warden_finishes_and_the_next_one_tells_once(middle):
    warden, target, order = middle
    (helper,) = helpers_of(warden)
    warden.kill()
    assert warden.brain.hear() is None if warden.brain.sock.fileno() >= 0 else True
    assert not is_dead(helper)
    target.let_go()
    until("the helper has ended", lambda: is_dead(helper))
    warden.start()
    brain = warden.brain.greet()
    (outcome,) = brain.outcomes
    assert (outcome.order_id, outcome.result, outcome.kept) == (order, "done", True)
    brain.settle(order)
    assert brain.ping()[1] == 0
    assert warden.again().outcomes == []


def test_helper_that_still_works_is_taken_up_by_the_next_warden(middle):
    warden, target, order = middle
    brain = warden.again()
    assert (brain.held, brain.outcomes) == ([order], []) and brain.states[-1][1] == 1
    assert brain.ask(KILL_TREE, target.pid) == ("blocked", "busy")
    target.let_go()
    assert brain.outcome(order).result == "done"
    assert [o.order_id for o in brain.outcomes].count(order) == 1


def test_outcome_comes_again_until_it_is_settled(middle):
    warden, target, order = middle
    target.let_go()
    assert warden.brain.outcome(order).kept
    for _ in range(2):
        brain = warden.again()
        assert [o.order_id for o in brain.outcomes] == [order]
    brain.settle(order)
    brain.ping()
    assert warden.again().outcomes == []


def test_end_of_the_warden_is_seen_while_a_helper_works(middle):
    """A helper that kept the socket would make a dead warden look alive."""
    warden, target, _ = middle
    warden.child.kill()
    assert warden.brain.hear() is None
    assert target.is_ending()


def test_helper_takes_no_signal_of_a_terminal_or_a_service_manager(middle):
    warden, target, order = middle
    (helper,) = helpers_of(warden)
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        os.kill(helper, sig)
    target.let_go()
    assert warden.brain.outcome(order).result == "done"


def test_helper_that_dies_in_the_middle_is_lost_and_said_so(middle):
    warden, _, order = middle
    (helper,) = helpers_of(warden)
    os.kill(helper, signal.SIGKILL)
    outcome = warden.brain.outcome(order)
    assert (outcome.result, outcome.why, outcome.kept) == ("failed", "lost", True)


def test_helper_that_died_with_its_warden_is_lost_too(middle):
    warden, _, order = middle
    (helper,) = helpers_of(warden)
    warden.kill()
    os.kill(helper, signal.SIGKILL)
    until("it is dead", lambda: is_dead(helper))
    warden.start()
    assert [(o.order_id, o.why) for o in warden.brain.greet().outcomes] == [(order, "lost")]


def test_order_id_that_is_taken_by_another_order_is_refused_and_gets_no_others_outcome(middle, things):
    """A brain whose journal began anew counts from 1 again."""
    warden, _, order = middle
    other = things.target()
    assert warden.brain.ask(KILL_TREE, other.pid, order_id=order) == ("blocked", "busy")
    assert other.lives() and other.signals() == []


# ---- the folder ----

def slot_file(warden):
    return os.path.join(warden.folder, "warden", "helpers")


def test_record_of_another_boot_is_dropped(middle):
    warden, target, order = middle
    target.let_go()
    warden.brain.outcome(order)  # no helper writes into it any more
    warden.kill()
    with open(slot_file(warden), "r+b") as f:
        f.seek(16)
        f.write(b"00000000-0000-0000-0000-000000000000")
    warden.start()
    assert warden.brain.greet().outcomes == [] and warden.brain.held == []


@pytest.mark.parametrize("damage", [b"", b"lessor-", b"\xff" * 4096, b"\0" * 64 + b"\x01" * 300])
def test_damaged_records_are_nobodys_orders(things, damage):
    warden = things.warden()
    warden.brain.greet()
    warden.kill()
    for name in ("helpers", "grace"):
        with open(os.path.join(warden.folder, "warden", name), "wb") as f:
            f.write(damage)
    warden.start()
    brain = warden.brain.greet()
    assert brain.held == [] and brain.outcomes == []
    assert brain.signal(things.target().pid) == ("done", "none")


@pytest.mark.parametrize("pid", [1, 0, 2**31, os.getpid()])
def test_record_that_names_somebody_else_as_helper_harms_nobody(things, pid):
    """A forged or torn record: whoever it names is neither waited for nor touched, and the order is lost."""
    warden = things.warden()
    warden.brain.greet()
    warden.kill()
    order = struct.pack("<QIIIxxxxQQIxxxxQI16xxxxxQQQII", 77, KILL_TREE, 0, 4242, 99, 0, os.geteuid(), 0, 7, 0, 0, 0, 0, 0)
    with open(slot_file(warden), "r+b") as f:
        f.seek(64)
        f.write(struct.pack("<IIQ", 1, pid % 2**32, 12345) + order + bytes(256 - 16 - len(order)))
    warden.start()
    brain = warden.brain.greet()
    assert brain.held == [] and [(o.order_id, o.why) for o in brain.outcomes] in ([], [(77, "lost")])
    assert brain.outcomes or not 0 < pid < 2**31


def test_folder_that_others_may_enter_is_refused(things, folder):
    os.mkdir(os.path.join(folder, "warden"), 0o755)
    os.chmod(os.path.join(folder, "warden"), 0o755)
    warden = things.warden()
    assert warden.child.wait(60) == 78 and "for its owner alone" in warden.words()


@pytest.mark.parametrize("name", ["warden", "warden/helpers", "warden/grace", "warden/lock"])
def test_link_in_the_folders_place_is_not_followed(things, folder, name):
    os.makedirs(os.path.join(folder, "elsewhere"), 0o700)
    if "/" in name:
        os.mkdir(os.path.join(folder, "warden"), 0o700)
        victim = os.path.join(folder, "elsewhere", "file")
        with open(victim, "w") as f:
            f.write("precious")
        os.symlink(victim, os.path.join(folder, name))
    else:
        os.symlink("elsewhere", os.path.join(folder, name))
    warden = things.warden()
    assert warden.child.wait(60) != 0
    assert "/" not in name or open(victim).read() == "precious"


def test_two_wardens_never_share_a_folder(things, folder):
    first = things.warden()
    first.brain.greet()
    second = Warden(folder)
    assert second.child.wait(60) == 1 and "another lessor-warden works in" in second.words()
    assert first.brain.ping()
