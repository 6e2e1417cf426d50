# SPDX-License-Identifier: Apache-2.0
"""Whole trees: freezing and ending them, nobody else's, and always with an end (failures F52, F54, F55)."""

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from brain import (ALICE, BOB, FREEZE, KILL_TREE, SIGNAL, THAW, WARDEN, Cgroup, is_dead, needs_cgroup, needs_root, own_cgroup, state_of,
                   until)  # fmt: skip

# A job that does not want to end: workers that left by double fork and setsid, a child for each SIGTERM, and one that is always
# somebody else: it forks and goes, so that nobody who reads a list of pids is in time for it.
STUBBORN = """
import os, signal, time
def leave():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            return True
        os._exit(0)
    os.wait()
    return False
def fork_on_signal(number, frame):
    if leave():
        signal.pause()
signal.signal(signal.SIGTERM, fork_on_signal)
if leave():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        if os.fork():
            os._exit(0)
        time.sleep(0.0005)
for _ in range(4):
    if leave():
        break
else:
    print("ready", flush=True)
while True:
    time.sleep(1000)
"""


def in_cgroup(cgroup, code, **popen):
    """A process that is in the folder before its first line runs."""
    enter = f"open({os.path.join(cgroup.path, 'cgroup.procs')!r}, 'w').write('0')\n"
    child = subprocess.Popen([sys.executable, "-c", enter + code], stdout=subprocess.PIPE, cwd="/", **popen)
    child.stdout.readline()
    return child


QUIET = "import time\nprint('ready', flush=True)\ntime.sleep(1000)\n"


@pytest.fixture
def cgroup(things):
    group = Cgroup()
    things.keep(group.end)
    return group


def grace_over(brain, pid, **rest):
    """KILL_TREE, as often as it takes until the grace is over: the outcome of the one that was carried out."""
    def ask():
        r = brain.ask(KILL_TREE, pid, **rest)
        return None if r[1] in ("no_grace", "rate") else r
    return until("the grace is over", ask)


# ---- F54 ----

@needs_cgroup
@pytest.mark.parametrize("options", [[], ["--lacks", "cgroup.kill"]])
def test_f54_tree_that_forks_for_each_signal_ends(things, cgroup, options):
    brain = things.warden("--grace-min-ms", "1", *options).brain.greet()
    child = in_cgroup(cgroup, STUBBORN)
    things.keep(child.wait)
    things.keep(child.kill)
    before = len(cgroup.pids())
    assert brain.signal(child.pid, cgroup=cgroup.id) == ("done", "none")
    until("it forked for that", lambda: len(cgroup.pids()) > before)
    assert grace_over(brain, child.pid, cgroup=cgroup.id) == ("done", "none")
    assert cgroup.pids() == [] and "populated 0" in cgroup.read("cgroup.events") and "frozen 0" in cgroup.read("cgroup.events")
    assert child.wait(60) == -signal.SIGKILL


@needs_cgroup
def test_f54_workers_whose_parent_ended_are_ended_by_the_grace_of_their_lease(things, cgroup):
    """The parent got the SIGTERM and went; one of its orphans leads to the folder."""
    brain = things.warden("--grace-min-ms", "1").brain.greet()
    child = in_cgroup(cgroup, "import os, time\nif os.fork() == 0:\n    time.sleep(1000)\n" + QUIET)
    until("both are there", lambda: len(cgroup.pids()) == 2)
    assert brain.signal(child.pid, cgroup=cgroup.id) == ("done", "none")
    child.wait()
    (orphan,) = until("one is left", lambda: (p := cgroup.pids()) and len(p) == 1 and p)
    assert grace_over(brain, orphan, cgroup=cgroup.id) == ("done", "none")
    assert cgroup.pids() == []


@needs_cgroup
def test_folders_below_are_part_of_the_tree(things, cgroup):
    brain = things.warden("--grace-min-ms", "1", "--lacks", "cgroup.kill").brain.greet()
    below = Cgroup("inner", cgroup.path)
    child, inner = in_cgroup(cgroup, QUIET), in_cgroup(below, QUIET)
    assert brain.signal(inner.pid, cgroup=cgroup.id) == ("done", "none")
    assert grace_over(brain, child.pid, cgroup=cgroup.id) == ("done", "none")
    assert child.wait(60) == -signal.SIGKILL and inner.wait(60) in (-signal.SIGKILL, -signal.SIGTERM)


@needs_cgroup
@pytest.mark.parametrize("options", [[], ["--lacks", "cgroup.kill"]])
def test_f54_threaded_folder_is_no_hiding_place(things, cgroup, options):
    """It lists no processes; whoever is in it is listed above."""
    brain = things.warden("--grace-min-ms", "1", *options).brain.greet()
    below = Cgroup("inner", cgroup.path)
    with open(os.path.join(below.path, "cgroup.type"), "w") as f:
        f.write("threaded")
    child, inner = in_cgroup(cgroup, QUIET), in_cgroup(cgroup, QUIET)
    with open(os.path.join(below.path, "cgroup.threads"), "w") as f:
        f.write(str(inner.pid))
    assert brain.signal(child.pid, cgroup=cgroup.id) == ("done", "none")
    assert grace_over(brain, inner.pid, cgroup=cgroup.id) == ("done", "none")
    assert child.wait(60) in (-signal.SIGKILL, -signal.SIGTERM) and inner.wait(60) == -signal.SIGKILL


# ---- F52: nobody else's folder ----

@needs_cgroup
@needs_root
@pytest.mark.parametrize("verb", [KILL_TREE, FREEZE])
@pytest.mark.parametrize("options", [[], ["--lacks", "cgroup.kill"]])
def test_f52_folder_whose_name_begins_with_a_dot_is_looked_into(things, cgroup, verb, options):
    hidden = Cgroup(".hidden", cgroup.path)
    guest, child = things.target(BOB), things.target()
    hidden.put(guest.pid)
    cgroup.put(child.pid)
    brain = things.warden("--grace-min-ms", "1", *options).brain.greet()
    assert brain.signal(child.pid, cgroup=cgroup.id) == ("done", "none")
    ask = grace_over if verb == KILL_TREE else (lambda brain, pid, **rest: brain.ask(FREEZE, pid, **rest))
    assert ask(brain, child.pid, cgroup=cgroup.id) == ("blocked", "cgroup_has_others")
    assert guest.lives() and child.lives() and "frozen 0" in hidden.read("cgroup.events")


@needs_cgroup
@needs_root
def test_f52_what_is_mounted_on_a_folder_is_no_cgroup(things, cgroup):
    """Its inode and its files are whoever's who mounted it."""
    if subprocess.run(["unshare", "--mount", "--propagation", "private", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("no mount namespaces here")
    child = in_cgroup(cgroup, QUIET)
    things.keep(child.wait)
    things.keep(child.kill)
    mount = f'mount -t tmpfs none {cgroup.path} && touch {cgroup.path}/cgroup.freeze {cgroup.path}/cgroup.procs && exec "$@"'
    warden = things.warden(command=["unshare", "--mount", "--propagation", "private", "sh", "-c", mount, "sh"])
    brain = warden.brain.greet()
    fake = os.stat(f"/proc/{warden.child.pid}/root{cgroup.path}").st_ino
    assert fake != cgroup.id
    for verb in (FREEZE, THAW):
        assert brain.ask(verb, child.pid, cgroup=fake) == ("blocked", "cgroup_not_member")


@needs_cgroup
def test_f52_session_scope_is_never_killed_or_frozen(things):
    """A trainer in a terminal: the folder is the session's, whoever orders it."""
    scope = Cgroup("session-7.scope")
    things.keep(scope.end)
    siblings = [in_cgroup(scope, QUIET) for _ in range(5)]
    brain = things.warden("--grace-min-ms", "1").brain.greet()
    rogue = siblings[0]
    for verb in (KILL_TREE, FREEZE):
        assert brain.ask(verb, rogue.pid, cgroup=scope.id)[1] in ("cgroup_not_ours", "no_grace")
    assert brain.signal(rogue.pid, cgroup=scope.id) == ("blocked", "cgroup_not_ours")
    assert brain.signal(rogue.pid) == ("done", "none")
    assert rogue.wait(60) == -signal.SIGTERM
    assert [s.poll() for s in siblings[1:]] == [None] * 4


@needs_cgroup
def test_f52_folder_above_a_lease_is_not_the_leases(things):
    scope = Cgroup("session-7.scope")
    things.keep(scope.end)
    lease = Cgroup("lessor-L7", scope.path)
    things.keep(lease.end)
    shell, child = in_cgroup(scope, QUIET), in_cgroup(lease, QUIET)
    brain = things.warden("--grace-min-ms", "1").brain.greet()
    assert brain.signal(child.pid, cgroup=lease.id) == ("done", "none")
    assert brain.ask(FREEZE, shell.pid, cgroup=lease.id) == ("blocked", "cgroup_not_member")
    assert brain.ask(FREEZE, shell.pid, cgroup=scope.id) == ("blocked", "cgroup_not_ours")
    assert brain.ask(FREEZE, shell.pid, cgroup=12345678) == ("blocked", "cgroup_not_member")
    root = os.stat(own_cgroup()).st_ino
    assert brain.ask(FREEZE, shell.pid, cgroup=root)[1] in ("cgroup_not_ours", "cgroup_not_member")
    assert shell.poll() is None


@needs_cgroup
@needs_root
@pytest.mark.parametrize("verb", [KILL_TREE, FREEZE])
@pytest.mark.parametrize("options", [[], ["--lacks", "cgroup.kill"]])
def test_f52_folder_with_somebody_elses_process_in_it_is_left_alone(things, cgroup, verb, options):
    brain = things.warden("--grace-min-ms", "1", *options).brain.greet()
    child, guest = in_cgroup(cgroup, QUIET), things.target(BOB)
    cgroup.put(guest.pid)
    things.keep(child.wait)
    things.keep(child.kill)
    assert brain.signal(things.target().pid) == ("done", "none")
    ask = brain.ask
    if verb == KILL_TREE:
        keeper = things.target()  # survives its SIGTERM, so that the grace is the only thing in the way
        cgroup.put(keeper.pid)
        assert brain.signal(keeper.pid, cgroup=cgroup.id) == ("done", "none")
        assert grace_over(brain, keeper.pid, cgroup=cgroup.id) == ("blocked", "cgroup_has_others")
    else:
        assert ask(FREEZE, child.pid, cgroup=cgroup.id) == ("blocked", "cgroup_has_others")
    assert guest.signals() == [] and guest.lives() and child.poll() is None
    assert "frozen 0" in cgroup.read("cgroup.events")


@needs_cgroup
@needs_root
def test_f52_folder_of_another_user_is_not_the_owners(things):
    """Bob may put Alice's name on an order, but not his folder around her process."""
    theirs = Cgroup("lessor-L8", owner=BOB)
    things.keep(theirs.end)
    alice = things.target(ALICE)
    theirs.put(alice.pid)
    brain = things.system(f"signal_uids = {ALICE}\n").brain.greet()
    assert brain.ask(FREEZE, alice.pid, owner=ALICE, cgroup=theirs.id) == ("blocked", "cgroup_not_ours")


@needs_cgroup
@needs_root
def test_system_warden_ends_a_users_tree_in_the_users_own_folder(things):
    lease = Cgroup("lessor-L9", owner=ALICE)
    things.keep(lease.end)
    alice = things.target(ALICE)
    lease.put(alice.pid)
    brain = things.system(f"signal_uids = {ALICE}\ngrace_min_ms = 1000\n").brain.greet()
    ask = {"owner": ALICE, "cgroup": lease.id}
    assert brain.ask(FREEZE, alice.pid, **ask) == ("done", "none")
    assert "frozen 1" in lease.read("cgroup.events")
    assert brain.ask(THAW, alice.pid, **ask) == ("done", "none")
    assert brain.signal(alice.pid, **ask) == ("done", "none")
    assert grace_over(brain, alice.pid, **ask) == ("done", "none")
    assert alice.child.wait(60) == -signal.SIGKILL


@needs_cgroup
def test_member_that_is_lessors_own_keeps_the_tree_alive(things, cgroup):
    """A developer's lessord under `lessor run`: no tree with a part of lessor in it is ended."""
    brain = things.warden("--grace-min-ms", "1").brain.greet()
    target = things.target()
    cgroup.put(target.pid)
    child = subprocess.Popen(["/bin/sh", "-c", f"echo $$ > {cgroup.path}/cgroup.procs && exec {WARDEN} --system --dir "
                              f"{things.folder}/w2 --socket {things.folder}/s --brain-uid 0"], stderr=subprocess.DEVNULL)  # fmt: skip
    things.keep(child.wait)
    things.keep(child.kill)
    until("it runs in there", lambda: os.path.exists(f"{things.folder}/s"))
    assert brain.signal(target.pid, cgroup=cgroup.id) == ("done", "none")
    assert grace_over(brain, target.pid, cgroup=cgroup.id) == ("blocked", "cgroup_has_others")
    assert target.lives() and child.poll() is None


# ---- S22: a grace in which nobody could hear ----

@needs_cgroup
def test_s22_sigterm_to_a_frozen_tree_is_heard(things, cgroup):
    """Else a brain gone mad freezes, asks, waits and kills: nobody had a chance to save anything."""
    target = things.target()
    cgroup.put(target.pid)
    brain = things.warden("--grace-min-ms", "1").brain.greet()
    assert brain.ask(FREEZE, target.pid, cgroup=cgroup.id) == ("done", "none")
    assert brain.signal(target.pid) == ("done", "none")  # it names no folder, and is in one all the same
    until("it hears", target.signals)


def test_s22_sigterm_to_a_stopped_process_is_heard(things):
    target = things.target()
    brain = things.warden("--grace-min-ms", "1").brain.greet()
    assert brain.ask(FREEZE, target.pid) == ("done", "none")
    assert brain.signal(target.pid) == ("done", "none")
    until("it hears", lambda: signal.SIGTERM in target.signals())


@needs_cgroup
@pytest.mark.parametrize("how", ["frozen", "stopped"])
def test_s22_grace_in_which_somebody_was_stopped_is_none(things, cgroup, how):
    target = things.target()
    cgroup.put(target.pid)
    brain = things.warden("--grace-min-ms", "1").brain.greet()
    assert brain.signal(target.pid) == ("done", "none")
    if how == "frozen":
        assert brain.ask(FREEZE, target.pid, cgroup=cgroup.id) == ("done", "none")
        assert brain.ask(THAW, target.pid, cgroup=cgroup.id) == ("done", "none")
    else:
        assert brain.signal(target.pid, signal.SIGSTOP) == ("done", "none")
    for _ in range(3):
        assert brain.signal(target.pid, signal.SIGKILL) == ("blocked", "no_grace")
    assert brain.signal(target.pid) == ("done", "none")
    until("it was asked again", lambda: brain.signal(target.pid, signal.SIGKILL)[0] == "done")


# ---- one process ----

def test_kill_tree_without_a_cgroup_ends_the_one_process(things):
    child = subprocess.Popen(
        [sys.executable, "-c", "import os, signal, time\nsignal.signal(15, signal.SIG_IGN)\nr = os.fork()\n"
         "print(r, flush=True) if r else None\ntime.sleep(1000)"], stdout=subprocess.PIPE)  # fmt: skip
    grandchild = int(child.stdout.readline())
    things.keep(os.kill, grandchild, signal.SIGKILL)
    brain = things.warden("--grace-min-ms", "1").brain.greet()
    assert brain.signal(child.pid) == ("done", "none")
    assert grace_over(brain, child.pid) == ("done", "none")
    assert child.wait(60) == -signal.SIGKILL and not is_dead(grandchild)


def test_freeze_without_a_cgroup_stops_the_one_process_and_thaw_lets_it_go_on(things):
    target = things.target()
    brain = things.warden().brain.greet()
    assert brain.ask(FREEZE, target.pid) == ("done", "none")
    assert state_of(target.pid) == "T"
    assert brain.ask(THAW, target.pid) == ("done", "none")
    until("it runs again", lambda: state_of(target.pid) in "SR")


@needs_cgroup
def test_freeze_and_thaw_of_a_lease(things, cgroup):
    brain = things.warden().brain.greet()
    child = in_cgroup(cgroup, STUBBORN)
    things.keep(child.wait)
    things.keep(child.kill)
    assert brain.ask(FREEZE, child.pid, cgroup=cgroup.id) == ("done", "none")
    first = cgroup.pids()
    assert "frozen 1" in cgroup.read("cgroup.events") and cgroup.pids() == first  # the one that always forks stands still
    assert brain.ask(THAW, child.pid, cgroup=cgroup.id) == ("done", "none")
    until("it goes on", lambda: "frozen 0" in cgroup.read("cgroup.events") and cgroup.pids() != first)


# ---- F55 ----

V1_FREEZER = "/sys/fs/cgroup/freezer"


@contextlib.contextmanager
def unkillable():
    """A process that takes no signal at all, SIGKILL neither: in a frozen v1 cgroup it is as in a driver call that never returns."""
    path = os.path.join(V1_FREEZER, f"lessor-test-{os.getpid()}")
    os.mkdir(path)
    child = subprocess.Popen(["/usr/bin/sleep", "1000"])
    def put(name, value):
        with open(os.path.join(path, name), "w") as f:
            f.write(value)
    try:
        put("cgroup.procs", str(child.pid))
        put("freezer.state", "FROZEN")
        until("it hangs", lambda: open(os.path.join(path, "freezer.state")).read().strip() == "FROZEN")
        yield child
    finally:
        put("freezer.state", "THAWED")
        child.kill()
        child.wait()
        until("its folder is empty", lambda: os.rmdir(path) is None if not open(os.path.join(path, "cgroup.procs")).read() else False)


needs_v1_freezer = pytest.mark.skipif(not os.access(V1_FREEZER, os.W_OK) or not os.path.exists(V1_FREEZER + "/cgroup.procs"),
                                      reason="no cgroup v1 freezer to hang a process in")


@needs_v1_freezer
def test_f55_process_that_hangs_in_the_kernel_is_unkillable_after_the_bound(things):
    brain = things.warden("--grace-min-ms", "1", "--kill-wait-ms", "50").brain.greet()
    other = things.target()
    with unkillable() as child:
        assert brain.signal(child.pid) == ("done", "none")
        assert grace_over(brain, child.pid) == ("failed", "unkillable")
        assert not is_dead(child.pid)
        assert brain.signal(other.pid) == ("done", "none")  # nobody else waits for it


@needs_v1_freezer
@needs_cgroup
@pytest.mark.parametrize("options", [[], ["--lacks", "cgroup.kill"]])
def test_f55_tree_with_a_member_that_hangs_is_unkillable_and_the_others_are_ended(things, cgroup, options):
    brain = things.warden("--grace-min-ms", "1", "--kill-wait-ms", "50", *options).brain.greet()
    with unkillable() as child:
        cgroup.put(child.pid)
        worker = in_cgroup(cgroup, QUIET)
        assert brain.signal(child.pid, cgroup=cgroup.id) == ("done", "none")
        assert grace_over(brain, child.pid, cgroup=cgroup.id) == ("failed", "unkillable")
        assert worker.wait(60) == -signal.SIGKILL and not is_dead(child.pid)
    until("the folder is empty", lambda: cgroup.pids() == [])


@needs_v1_freezer
def test_order_on_a_process_that_a_helper_works_on_is_busy(things):
    brain = things.warden("--grace-min-ms", "1", "--kill-wait-ms", "600000").brain.greet()
    with unkillable() as child:
        assert brain.signal(child.pid) == ("done", "none")
        def begun():
            i = brain.order(KILL_TREE, child.pid)
            while i not in brain.held and not any(o.order_id == i for o in brain.outcomes):
                brain.hear()
            return i if i in brain.held else 0
        running = until("the grace is over", begun)
        for verb, sig in ((SIGNAL, signal.SIGTERM), (KILL_TREE, 0), (FREEZE, 0), (THAW, 0)):
            assert brain.ask(verb, child.pid, int(sig)) == ("blocked", "busy")
        assert brain.ping()[1] == 1
        assert brain.order(KILL_TREE, child.pid, order_id=running) and brain.held.count(running) == 1
        until("it is told that this is being done", lambda: brain.hear() and brain.held.count(running) == 2)
    assert brain.outcome(running).result == "done"
