# SPDX-License-Identifier: Apache-2.0
"""What the hands refuse whatever the brain says (security S08, S10, S22, S23; failures F48, F50)."""

import os
import shutil
import signal
import subprocess
import time

import pytest

from brain import (ALICE, BOB, FREEZE, KILL_TREE, SIGNAL, THAW, Warden, clone_at, needs_root, reap,
                   start_ticks, state_of, stat_fields, uid_of, until, without)  # fmt: skip


def kernel_threads():
    return [int(p) for p in os.listdir("/proc") if p.isdigit() and int((stat_fields(p) or [0] * 20)[6]) & 0x00200000]


# ---- S22: a brain gone mad ----

def test_s22_process_1_is_never_signalled(things):
    brain = things.warden().brain.greet()
    for verb, sig in ((SIGNAL, signal.SIGTERM), (SIGNAL, signal.SIGKILL), (KILL_TREE, 0), (FREEZE, 0)):
        assert brain.ask(verb, 1, int(sig), owner=uid_of(1)) == ("blocked", "protected_init")


def test_s22_kernel_threads_are_never_signalled(things):
    threads = kernel_threads()
    if not threads:
        pytest.skip("this pid namespace shows no kernel threads")
    brain = things.warden().brain.greet()
    for pid in threads[:3]:
        assert brain.signal(pid, owner=0) == ("blocked", "protected_kernel")


def test_s22_f50_hands_brain_and_who_started_them_are_never_signalled(things):
    warden = things.warden()
    brain = warden.brain.greet()
    kin = [warden.child.pid, os.getpid()]
    parent = os.getppid()
    while parent > 1:
        kin.append(parent)
        parent = int(stat_fields(parent)[1])
    for pid in kin:
        assert brain.signal(pid, signal.SIGKILL) == ("blocked", "protected_lessor"), pid
    assert warden.child.poll() is None


def test_f50_another_warden_is_lessors_own_too(things, folder):
    """By its program: the pid of a helper, or of somebody else's warden, is in nobody's list."""
    other = things.warden()
    os.mkdir(os.path.join(folder, "2"))
    second = Warden(os.path.join(folder, "2"))
    things.keep(second.end)
    why = "protected_lessor" if os.geteuid() == 0 else "unseen"  # it hides its program from its own user
    assert second.brain.greet().signal(other.child.pid) == ("blocked", why)


@needs_root
def test_s22_protected_program_is_never_signalled_and_a_rogue_of_its_name_is(things, folder):
    """S10: protection follows the file, not what a process calls itself: sshd under another name, and a trainer called sshd."""
    sshd, rogue = os.path.join(folder, "sshd"), os.path.join(folder, "rogue", "sshd")
    os.mkdir(os.path.dirname(rogue))
    for path in (sshd, rogue):
        shutil.copy("/usr/bin/sleep", path)
        os.chmod(path, 0o755)
    brain = things.system(f"protected = {sshd}\nsignal_uids = {ALICE}\n").brain.greet()
    become = {"user": ALICE, "group": ALICE, "extra_groups": [], "cwd": "/"}
    real = subprocess.Popen(["python3 train.py", "1000"], executable=sshd, **become)
    fake = subprocess.Popen([sshd, "1000"], executable=rogue, **become)
    things.keep(real.wait)
    things.keep(real.kill)
    things.keep(fake.wait)
    assert brain.signal(real.pid, owner=ALICE) == ("blocked", "protected_program")
    assert brain.signal(fake.pid, owner=ALICE) == ("done", "none")
    assert fake.wait(60) == -signal.SIGTERM and real.poll() is None

    os.remove(sshd)  # upgraded: the old one runs on and has no name any more
    shutil.copy("/usr/bin/true", sshd)
    assert brain.signal(real.pid, owner=ALICE) == ("blocked", "protected_program")
    assert real.poll() is None


@needs_root
def test_s22_program_that_others_can_change_protects_nobody(things, folder):
    """Else whoever can write the file protects what they like, by hard link or by making it."""
    path = os.path.join(folder, "mine")
    shutil.copy("/usr/bin/sleep", path)
    os.chmod(path, 0o755)
    os.chown(path, ALICE, ALICE)
    brain = things.system(f"protected = {path}\nsignal_uids = {ALICE}\n").brain.greet()
    child = subprocess.Popen([path, "1000"], user=ALICE, group=ALICE, extra_groups=[], cwd="/")
    things.keep(child.wait)
    assert brain.signal(child.pid, owner=ALICE) == ("done", "none")


@needs_root
def test_s22_other_uid_without_policy_is_refused(things):
    alice, bob, root = things.target(ALICE), things.target(BOB), things.target()
    brain = things.system(f"signal_uids = {ALICE}\n").brain.greet()
    assert brain.signal(bob.pid, owner=BOB) == ("blocked", "uid_not_allowed")
    assert brain.signal(bob.pid, owner=ALICE) == ("blocked", "other_owner")
    assert brain.signal(root.pid, owner=0) == ("blocked", "uid_not_allowed")
    assert brain.signal(root.pid, owner=ALICE) == ("blocked", "other_owner")
    assert brain.signal(alice.pid, owner=ALICE) == ("done", "none")
    until("alice's process got it", alice.signals)
    assert bob.signals() == [] and root.signals() == []


@needs_root
def test_s22_default_policy_is_people_only(things):
    alice, root = things.target(1234), things.target()
    system = things.target(200)
    brain = things.system().brain.greet()
    assert brain.signal(alice.pid, owner=1234) == ("done", "none")
    assert brain.signal(root.pid, owner=0) == ("blocked", "uid_not_allowed")
    assert brain.signal(system.pid, owner=200) == ("blocked", "uid_not_allowed")


@needs_root
def test_own_session_signals_its_own_user_only(things):
    bob = things.target(BOB)
    brain = things.warden().brain.greet()
    assert brain.signal(bob.pid, owner=BOB) == ("blocked", "uid_not_allowed")
    assert brain.signal(bob.pid) == ("blocked", "other_owner")
    assert bob.signals() == []


def test_s22_thousand_targets_a_second_are_refused(things):
    """More than the bucket holds: nobody is signalled whom nobody may signal, and no more than the bucket of one's own."""
    target = things.target()
    warden = things.warden()
    brain = warden.brain.greet()
    began = time.monotonic()
    ids = brain.flood(500, SIGNAL, 1, int(signal.SIGKILL), owner=0)
    ids += brain.flood(500, SIGNAL, target.pid, int(signal.SIGHUP))
    whys = [brain.outcome(i).why for i in ids]
    allowed = 64 + 20 * (time.monotonic() - began) + 1
    assert set(whys[:500]) <= {"protected_init", "rate"}
    assert sum(why != "rate" for why in whys) <= allowed
    assert whys.count("none") <= max(0, allowed - 64)
    until("no more signals come", lambda: len(target.signals()) <= whys.count("none"))
    carried = sum(why != "rate" for why in whys)
    assert brain.ping() and warden.words().count("why=rate") <= carried  # no line for each


def test_signal_that_is_nobodys_way_out_is_refused(things):
    target = things.target()
    brain = things.warden().brain.greet()
    for sig in (signal.SIGSEGV, signal.SIGABRT, signal.SIGUSR1, 64):
        assert brain.signal(target.pid, sig) == ("blocked", "signal")
    assert target.lives() and target.signals() == []


# ---- grace ----

def test_sigkill_without_sigterm_is_refused(things):
    target = things.target()
    brain = things.warden("--grace-min-ms", "1").brain.greet()
    assert brain.signal(target.pid, signal.SIGKILL) == ("blocked", "no_grace")
    assert brain.ask(KILL_TREE, target.pid) == ("blocked", "no_grace")
    assert brain.signal(target.pid, signal.SIGINT) == ("done", "none")
    assert brain.signal(target.pid, signal.SIGKILL) == ("blocked", "no_grace")
    assert target.lives()


def test_sigkill_before_the_grace_is_over_is_refused(things):
    target = things.target()
    brain = things.warden("--grace-min-ms", "3600000").brain.greet()
    assert brain.signal(target.pid) == ("done", "none")
    assert brain.signal(target.pid, signal.SIGKILL) == ("blocked", "no_grace")
    assert brain.ask(KILL_TREE, target.pid) == ("blocked", "no_grace")
    assert target.lives()


def test_sigkill_after_the_grace_ends_it(things):
    target, other = things.target(), things.target()
    brain = things.warden("--grace-min-ms", "1").brain.greet()
    assert brain.signal(target.pid) == ("done", "none")
    until("the grace is over", lambda: brain.signal(target.pid, signal.SIGKILL)[0] == "done")
    assert target.child.wait(60) == -signal.SIGKILL
    assert brain.signal(other.pid, signal.SIGKILL) == ("blocked", "no_grace")  # the grace of one is nobody else's
    assert brain.signal(target.pid, start=1) == ("blocked", "gone")


@needs_root
def test_system_file_cannot_make_the_grace_shorter_than_a_second(things):
    warden = things.system("grace_min_ms = 999\n")
    assert warden.child.wait(60) == 78
    assert "warden.conf:1: grace_min_ms" in warden.words() and "1000" in warden.words()


def test_grace_is_known_after_a_restart(things):
    target = things.target()
    warden = things.warden("--grace-min-ms", "1")
    assert warden.brain.greet().signal(target.pid) == ("done", "none")
    brain = warden.again()
    until("the grace is over", lambda: brain.signal(target.pid, signal.SIGKILL)[0] == "done")


# ---- F48: who has the pid now ----

def test_f48_start_time_of_another_is_refused(things):
    target = things.target()
    brain = things.warden().brain.greet()
    for start in (start_ticks(target.pid) - 1, start_ticks(target.pid) + 1, 0, 2**64 - 1):
        assert brain.signal(target.pid, start=start) == ("blocked", "recycled")
    assert target.signals() == []


def test_f48_pidfd_of_another_is_refused(things):
    target = things.target()
    brain = things.warden().brain.greet()
    fd = os.pidfd_open(target.pid)
    inode = os.fstat(fd).st_ino
    os.close(fd)
    assert brain.signal(target.pid, inode=inode + 1) == ("blocked", "recycled")
    assert target.signals() == []
    assert brain.signal(target.pid, inode=inode) == ("done", "none")


@needs_root
def test_f48_pid_reused_within_the_same_tick_gets_no_signal(things):
    """Equal pid and equal start time: only the pidfd tells them apart. SIGTERM of the first is no grace for the second."""
    brain = things.warden("--grace-min-ms", "1").brain.greet()
    pid = 30000
    while os.path.exists(f"/proc/{pid}"):
        pid -= 1
    try:
        first = clone_at(pid)
    except OSError as e:
        pytest.skip(f"a pid cannot be chosen here: {e}")
    reap(first)
    for _ in range(2000):
        first = clone_at(pid)
        fd = os.pidfd_open(first)
        ticks, inode = start_ticks(first), os.fstat(fd).st_ino
        os.close(fd)
        reap(first)
        second = clone_at(pid)
        if start_ticks(second) == ticks:
            break
        reap(second)
    else:
        pytest.fail("never twice within a hundredth of a second")
    things.keep(reap, second)
    fd = os.pidfd_open(second)
    if os.fstat(fd).st_ino == inode:
        pytest.skip("pidfds have no identity of their own before Linux 6.9")
    os.close(fd)
    for sig in (signal.SIGTERM, signal.SIGKILL):
        assert brain.signal(second, sig, start=ticks, inode=inode) == ("blocked", "recycled")
    assert brain.ask(KILL_TREE, second, start=ticks, inode=inode) == ("blocked", "recycled")
    assert state_of(second) in "SR"


def test_f48_process_that_ended_is_gone(things):
    target = things.target()
    brain = things.warden().brain.greet()
    start = start_ticks(target.pid)
    target.child.kill()
    os.waitid(os.P_PID, target.pid, os.WEXITED | os.WNOWAIT)  # a zombie
    assert brain.signal(target.pid, start=start) == ("blocked", "gone")
    target.end()
    assert brain.signal(target.pid, start=start) == ("blocked", "gone")


# ---- F50: what cannot be seen ----

@needs_root
def test_f50_program_that_cannot_be_seen_is_refused(things):
    """A user's own process that became root's on the way (set-uid): its program is not theirs to see, so it may be anything."""
    become = {"user": ALICE, "group": ALICE, "extra_groups": []}
    code = "import ctypes, time; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); print(1, flush=True); time.sleep(1000)"
    child = subprocess.Popen(["/usr/bin/python3", "-c", code], stdout=subprocess.PIPE, cwd="/", **become)
    things.keep(child.wait)
    things.keep(child.kill)
    child.stdout.readline()
    os.chown(things.folder, ALICE, ALICE)
    brain = things.warden(**become).brain.greet()
    assert brain.signal(child.pid, owner=ALICE) == ("blocked", "unseen")
    assert child.poll() is None


# ---- old kernels (A7) ----

@pytest.mark.parametrize("call", ["pidfd_open", "pidfd_send_signal"])
def test_kernel_without_pidfd_signals_is_refused_and_nobody_signalled(things, call):
    target = things.target()
    brain = things.warden(preexec_fn=without(call)).brain.greet()
    assert brain.signal(target.pid) == ("blocked", "kernel_too_old")
    assert brain.signal(target.pid, signal.SIGKILL)[0] == "blocked"
    assert brain.ask(THAW, target.pid)[0] == "blocked"
    assert target.lives() and target.signals() == []


# ---- S23: what is left of the privileges ----

def masks(pid):
    with open(f"/proc/{pid}/status") as f:
        lines = dict(line.split(":\t", 1) for line in f if ":\t" in line)
    return {k: int(lines[k], 16) for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}, lines


KILL, DAC_OVERRIDE, PTRACE = 1 << 5, 1 << 1, 1 << 19


@needs_root
def test_s23_system_warden_has_three_capabilities(things):
    warden = things.system()
    warden.brain.greet()
    caps, lines = masks(warden.child.pid)
    keep = KILL | DAC_OVERRIDE | PTRACE
    assert caps == {"CapInh": 0, "CapPrm": keep, "CapEff": keep, "CapBnd": keep, "CapAmb": 0}
    assert lines["NoNewPrivs"].strip() == "1"
    assert os.environ.get("LESSOR_SANITIZED") or lines["Seccomp"].strip() == "2"


def test_s23_own_sessions_warden_has_none_but_roots_sight(things):
    warden = things.warden()
    warden.brain.greet()
    caps, lines = masks(warden.child.pid)
    assert caps["CapPrm"] == caps["CapEff"] == (PTRACE if os.geteuid() == 0 else 0)
    assert caps["CapInh"] == caps["CapAmb"] == 0 and lines["NoNewPrivs"].strip() == "1"


@needs_root
def test_s23_a_users_warden_has_no_capability(things):
    os.chown(things.folder, ALICE, ALICE)
    warden = things.warden(user=ALICE, group=ALICE, extra_groups=[])
    warden.brain.greet()
    caps, _ = masks(warden.child.pid)
    assert (caps["CapInh"], caps["CapPrm"], caps["CapEff"], caps["CapAmb"]) == (0, 0, 0, 0)

