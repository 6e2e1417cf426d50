# SPDX-License-Identifier: Apache-2.0
"""lessor-accounting as it is started: what it may do, how it ends, what it refuses. In a pid namespace of its own, since there is one
file for a namespace and the machine's is not ours."""

import os
import shutil
import signal
import subprocess

import pytest

from brain import BUILD, until

PROGRAM = os.path.join(BUILD, "bin", "lessor-accounting")
CAP_SYS_PACCT = 1 << 20
ALONE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


def may_account():
    probe = "import ctypes,sys; sys.exit(ctypes.CDLL(None).acct(None) != 0)"
    return (os.geteuid() == 0 and shutil.which("unshare") is not None and
            subprocess.run([*ALONE, "python3", "-c", probe], stderr=subprocess.DEVNULL, check=False).returncode == 0)


needs_rights = pytest.mark.skipif(not may_account(), reason="needs root, namespaces and CAP_SYS_PACCT")


def status_of(pid, key):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return next(line.split(":")[1].strip() for line in file if line.startswith(key + ":"))


class Accounting:
    """The program, not as pid 1 of its namespace, which takes everybody along when it ends. What it exits with comes last on stdout."""

    def __init__(self, folder):
        self.folder, self.log = os.path.join(folder, "accounting"), os.path.join(folder, "log")
        words = [PROGRAM, "--folder", self.folder, "--group", "root"]
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen([*ALONE, "sh", "-c", '"$@" & wait $!; echo status $?; exec sleep 100000', "sh", *words],
                                          stdout=log, stderr=log)
        until("it is ready, or has ended", lambda: "event=ready" in self.words() or "status" in self.words())
        pids = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and self.is_ours(pid)]
        self.keeper = next((pid for pid in pids if int(status_of(pid, "CapEff"), 16) != 0), None)
        self.waits = next((pid for pid in pids if pid != self.keeper), None)

    def is_ours(self, pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            return os.fsencode(self.folder) in words and os.readlink(f"/proc/{pid}/exe") == os.path.realpath(PROGRAM)
        except OSError:
            return False

    def words(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def end(self):
        self.child.kill()
        self.child.wait()


@pytest.fixture(name="accounting")
def fixture_accounting(folder):
    it = Accounting(folder)
    yield it
    it.end()


@needs_rights
def test_who_keeps_it_may_do_that_alone_and_who_waits_nothing(accounting):
    assert accounting.keeper and accounting.waits
    assert int(status_of(accounting.keeper, "CapEff"), 16) == int(status_of(accounting.keeper, "CapBnd"), 16) == CAP_SYS_PACCT
    assert int(status_of(accounting.waits, "CapEff"), 16) == 0
    assert status_of(accounting.keeper, "NoNewPrivs") == status_of(accounting.waits, "NoNewPrivs") == "1"
    assert sorted(os.listdir(accounting.folder)) == ["records"]


@needs_rights
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_is_off_and_empty_when_it_was_asked_to_end(accounting, how):
    os.kill(accounting.waits, how)
    until("it has ended", lambda: "status 0" in accounting.words())
    assert os.listdir(accounting.folder) == []


@needs_rights
def test_it_is_off_and_empty_when_it_was_killed(accounting):
    os.kill(accounting.waits, signal.SIGKILL)
    until("who kept it has ended", lambda: not accounting.is_ours(accounting.keeper))
    assert os.listdir(accounting.folder) == []


@needs_rights
def test_sigterm_to_all_of_it_is_no_other_end(accounting):
    os.kill(accounting.keeper, signal.SIGTERM)
    os.kill(accounting.waits, signal.SIGTERM)
    until("it has ended", lambda: "status 0" in accounting.words())
    assert os.listdir(accounting.folder) == []


@needs_rights
def test_when_who_keeps_it_is_gone_it_ends_and_fails(accounting):
    os.kill(accounting.keeper, signal.SIGKILL)
    until("it has ended", lambda: "status 1" in accounting.words())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("options,status,words", [
    (["--group", "nobody-of-this-name"], 78, "--group"),
    (["--folder"], 2, "Usage"),
    (["here"], 2, "Usage"),
    (["--help"], 0, "/run/lessor/accounting"),
    (["--version"], 0, "lessor-accounting 0."),
])
def test_wrong_words_are_refused_with_the_right_ones(options, status, words):
    shown = subprocess.run([PROGRAM, *options], capture_output=True, text=True, timeout=60, check=False)
    assert shown.returncode == status and words in shown.stdout + shown.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_who_is_not_root_is_told_so():
    shown = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert shown.returncode == 78 and "as root" in shown.stderr
