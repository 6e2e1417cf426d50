# SPDX-License-Identifier: Apache-2.0
"""Which program a process runs, where the file does not lie on a disk of ours (security S10, failures F50)."""

import os
import signal
import subprocess

import pytest

from brain import ALICE, LOOK, until
from userfs import UserFs, needs_fuse


def run_from(things, allow_other):
    fs = UserFs(os.path.join(things.folder, "mnt"), ALICE, "/usr/bin/sleep", allow_other)
    things.keep(fs.end)
    child = subprocess.Popen([fs.program, "1000"], user=ALICE, group=ALICE, extra_groups=[], cwd="/")
    things.keep(child.wait)
    things.keep(child.kill)
    until("it sleeps", lambda: b"nanosleep" in open(f"/proc/{child.pid}/wchan", "rb").read() or child.poll() is not None)
    assert child.poll() is None
    return fs, child


@needs_fuse
def test_f50_program_in_a_file_system_that_only_its_user_may_see_is_no_protected_one(things):
    """An AppImage: root is told nothing of the file but its device, and everything run from one could never be signalled."""
    _, child = run_from(things, allow_other=False)
    with pytest.raises(PermissionError):
        os.stat(f"/proc/{child.pid}/exe")
    brain = things.system(f"signal_uids = {ALICE}\n").brain.greet()
    assert brain.signal(child.pid, owner=ALICE) == ("done", "none")
    assert child.wait(60) == -signal.SIGTERM


@needs_fuse
def test_look_for_a_file_on_a_server_that_went_away_is_answered(things):
    """Its user's script lies there; whoever waits for it waits for ever."""
    fs, child = run_from(things, allow_other=True)
    brain = things.system(f"signal_uids = {ALICE}\n").brain.greet()
    fs.stop_answering()
    folder = os.path.dirname(fs.program)
    for path in (os.path.join(folder, "a.py"), os.path.join(folder, "deep", "a.py")):
        seen = brain.outcome(brain.order(LOOK, child.pid, owner=ALICE, path=path.encode()))
        assert (seen.result, seen.file) == ("done", (0, 0)) and seen.program != (0, 0), (path, seen)
    assert brain.ping()


@needs_fuse
def test_file_server_that_went_away_does_not_stop_the_hands(things):
    """One user's program on it, and nobody of any user could be signalled any more."""
    fs, child = run_from(things, allow_other=True)
    brain = things.system(f"signal_uids = {ALICE}\n").brain.greet()
    fs.stop_answering()
    assert brain.signal(child.pid, owner=ALICE) == ("done", "none")
    assert brain.ping()
