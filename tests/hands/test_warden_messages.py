# SPDX-License-Identifier: Apache-2.0
"""Who may speak to the hands, and what they make of what is no message (security S01, S22): the connection ends, nothing is done."""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys

import pytest

from brain import (ALICE, BOB, HELLO, LOCK, LOOK, ORDER, OUTCOME, PING, SETTLED, SIGNAL, VERSION, WARDEN, Brain, SystemWarden, follow, needs_root,
                   start_ticks, until)  # fmt: skip


def order_bytes(pid, verb=SIGNAL, sig=int(signal.SIGTERM), owner=None, start=None, order_id=9):
    owner = os.geteuid() if owner is None else owner
    start = start_ticks(pid) if start is None else start
    return struct.pack("<QIIIQQIQI48x", order_id, verb, sig, pid, start, 0, owner, 0, 7)


def header(kind, version=VERSION):
    return struct.pack("<HH", version, kind)


def bad_messages(pid):
    good = header(ORDER) + order_bytes(pid)
    yield from (good[:n] for n in (1, 3, 4, 11, len(good) - 1))
    yield good + b"\0"
    yield good + bytes(4096)
    yield b"\xff" * 40
    yield header(0)
    yield header(8)
    yield header(0xFFFF)
    yield header(ORDER, VERSION + 1) + order_bytes(pid)
    yield header(ORDER, 0) + order_bytes(pid)
    yield header(ORDER) + order_bytes(pid, order_id=0)
    yield header(ORDER) + order_bytes(pid, verb=0)
    yield header(ORDER) + order_bytes(pid, verb=12)
    yield header(ORDER) + order_bytes(pid, verb=LOCK, sig=0)  # without a deadline
    yield header(ORDER) + order_bytes(pid, sig=0)
    yield header(ORDER) + order_bytes(pid, sig=65)
    yield header(ORDER) + order_bytes(pid, verb=2, sig=15)
    yield header(ORDER) + order_bytes(0)
    yield header(ORDER) + order_bytes(2**32 - pid, start=5)  # kill(2)'s process groups
    yield header(ORDER) + order_bytes(2**32 - 1, start=5)  # kill(2)'s everybody
    yield header(ORDER) + order_bytes(pid, owner=2**32 - 1)
    yield header(PING) + bytes(8)
    yield header(SETTLED) + bytes(8)
    yield header(OUTCOME) + struct.pack("<QIIIBIQI", 9, 0, 0, 0, 0, 0, 0, 0)  # the hands' own words
    yield header(HELLO) + b"0.1.0".ljust(32, b"\0")  # a second one


def test_anything_that_is_no_message_ends_the_connection_and_nothing_is_done(things):
    target = things.target()
    warden = things.warden()
    warden.end()
    for i, data in enumerate(bad_messages(target.pid)):
        warden.start()
        brain = warden.brain.greet()
        brain.send(data)
        with contextlib.suppress(BrokenPipeError):  # hung up already
            brain.order(SIGNAL, target.pid, int(signal.SIGTERM))  # what comes after it is not heard
        while (kind := brain.hear()) is not None:
            assert kind != OUTCOME, (i, data)
        another_version = len(data) >= 4 and data[:2] != header(0)[:2]
        assert warden.child.wait(60) == (3 if another_version else 1), (i, data)
    assert target.signals() == []
    warden.start()
    assert warden.brain.greet().signal(target.pid) == ("done", "none")


def test_order_before_a_hello_ends_the_connection(things):
    target = things.target()
    warden = things.warden()
    warden.brain.say(ORDER, order_bytes(target.pid))
    while warden.brain.hear() is not None:
        pass
    assert warden.child.wait(60) == 1 and target.signals() == []


def test_hello_of_another_version_is_named_by_both_and_refused(things):
    warden = things.warden()
    warden.brain.say_hello(version=VERSION + 1, program=b"0.9.7")
    while warden.brain.hear() is not None:
        pass
    version, program = warden.brain.hello
    assert version == VERSION and program
    assert warden.child.wait(60) == 3
    words = warden.words()
    assert f"lessord 0.9.7 speaks version {VERSION + 1}, lessor-warden {program} speaks version {VERSION}" in words and "restart" in words


@pytest.mark.parametrize("program", [b"", b"a b", b"0.1\n", b"\x1b[2J", b"x" * 32, b"0.1\0x"])
def test_hello_whose_program_is_no_version_is_refused(things, program):
    warden = things.warden()
    warden.brain.say_hello(program=program)
    while (kind := warden.brain.hear()) is not None:
        assert kind == HELLO
    assert warden.child.wait(60) == 1


def test_warden_ends_when_lessord_does(things):
    warden = things.warden()
    warden.brain.greet()
    warden.brain.close()
    assert warden.child.wait(60) == 0


def test_descriptors_that_come_along_are_not_taken(things):
    warden = things.warden()
    brain = warden.brain.greet()
    ours, theirs = os.pipe()
    socket.send_fds(brain.sock, [header(PING) + struct.pack("<Q", 5)], [theirs])
    os.close(theirs)
    while not any(s[0] == 5 for s in brain.states):
        assert brain.hear() is not None
    assert os.read(ours, 1) == b""  # nobody holds the other end
    os.close(ours)


# ---- the system's socket ----

def as_user(uid, work):
    """work() as that user, in a child; its truth."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            status = 0 if work() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@needs_root
def test_s01_socket_is_lessords_alone_and_its_uid_is_checked_too(things):
    warden = things.system(brain_uid=ALICE)
    st = os.stat(warden.socket)
    assert (st.st_uid, st.st_mode & 0o777) == (ALICE, 0o600)

    def refused():
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            s.connect(warden.socket)
        except PermissionError:
            return True
        brain = Brain(s)
        return brain.hear() is None and brain.hello is None

    def greeted():
        return warden.connect().greet().hello is not None
    assert as_user(BOB, refused)
    os.chmod(warden.socket, 0o666)  # as if somebody had opened the door: the kernel's word decides
    assert as_user(BOB, refused)
    assert refused()  # root is not lessord either
    assert as_user(ALICE, greeted)


@needs_root
def test_second_connection_is_refused_and_the_next_after_an_end_is_taken(things):
    warden = things.system()
    first = warden.brain.greet()
    second = warden.connect()
    assert second.hear() is None and second.hello is None
    assert first.ping()
    first.close()
    until("the next one is taken", lambda: (b := warden.connect()).hear() is not None and b.greet())


@needs_root
def test_garbage_costs_the_connection_and_not_the_warden(things):
    warden = things.system()
    warden.brain.greet().send(b"\xff" * 10)
    while warden.brain.hear() is not None:
        pass
    again = until("a new connection is greeted", lambda: (b := warden.connect()).hear() is not None and b.greet())
    assert again.ping() and warden.child.poll() is None


@needs_root
def test_socket_of_systemd_is_taken(things, folder):
    path = os.path.join(folder, "given.sock")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen()
    become = ("import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()));"
              "os.execv(sys.argv[2], sys.argv[2:])")
    child = subprocess.Popen([sys.executable, "-c", become, str(listener.fileno()), WARDEN, "--system", "--dir", os.path.join(folder, "w"),
                              "--brain-uid", "0", "--config", os.path.join(folder, "none"), "--socket", "/nowhere/s"],
                             pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL)  # fmt: skip
    things.keep(child.wait)
    things.keep(child.kill)
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(path)
    assert Brain(s).greet().ping()


# ---- a look ----

@needs_root
def test_look_tells_which_file_another_users_process_runs_and_asks_no_leave_for_it(things):
    """What may not be signalled may be looked at: the brain is to know whom it must leave alone."""
    warden = things.system("signal_uids =\n")
    brain = warden.brain.greet()
    child = subprocess.Popen(["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups", "sleep", "1000"])
    things.keep(child.wait)
    things.keep(child.kill)
    exe = f"/proc/{child.pid}/exe"
    until("it runs", lambda: os.path.basename(os.readlink(exe)) == "sleep")
    st = os.stat(exe)
    seen = brain.outcome(brain.order(LOOK, child.pid, owner=ALICE))
    assert (seen.result, seen.program, seen.kept) == ("done", (st.st_dev, st.st_ino), False)
    assert (seen.path, seen.file) == (os.readlink(exe).encode(), (0, 0))
    for why, rest in (("other_owner", {"owner": BOB}), ("recycled", {"owner": ALICE, "start": 1})):
        seen = brain.outcome(brain.order(LOOK, child.pid, **rest))
        assert (seen.result, seen.why, seen.program, seen.path) == ("blocked", why, (0, 0), b"")
    assert brain.ask(LOOK, 1, owner=0) == ("blocked", "protected_init")
    assert brain.signal(child.pid, owner=ALICE) == ("blocked", "uid_not_allowed") and child.poll() is None


def private_home(things):
    """A folder that only ALICE may look into, with a.py in it, and a process of hers that works there."""
    home = os.path.join(things.folder, "home")
    os.mkdir(home, 0o700)
    with open(os.path.join(home, "a.py"), "w") as f:
        f.write("print()\n")
    os.symlink("a.py", os.path.join(home, "link.py"))
    os.symlink(os.path.join(home, "a.py"), os.path.join(home, "whole.py"))
    os.symlink("/proc/self/fd/0", os.path.join(home, "fd.py"))
    os.mkfifo(os.path.join(home, "fifo.py"))
    os.chown(home, ALICE, ALICE)
    child = subprocess.Popen(["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups", "sleep", "1000"], cwd=home)
    things.keep(child.wait)
    things.keep(child.kill)
    until("it runs", lambda: os.path.basename(os.readlink(f"/proc/{child.pid}/exe")) == "sleep")
    return home, child


def file_of(brain, child, path):
    seen = brain.outcome(brain.order(LOOK, child.pid, owner=ALICE, path=path.encode()))
    assert seen.result == "done" and seen.program != (0, 0), seen
    return seen.file


@needs_root
def test_look_tells_which_file_another_users_process_means_by_a_path(things):
    brain = things.system("signal_uids =\n").brain.greet()
    home, child = private_home(things)
    for name in ("link.py", "whole.py"):
        follow(os.path.join(home, name))
    st = os.stat(os.path.join(home, "a.py"))
    for path in ("a.py", "./a.py", "../home/a.py", "link.py", "whole.py", os.path.join(home, "a.py"), os.path.join(home, "x", "..", "link.py")):
        expected = (0, 0) if "/x/" in path else (st.st_dev, st.st_ino)
        assert file_of(brain, child, path) == expected, path
    for path in ("", "none.py", ".", "fifo.py", "fd.py", "/proc/self/exe", f"/proc/{child.pid}/exe", "/dev/null", "a.py/", "/" + 500 * "x"):
        assert file_of(brain, child, path) == (0, 0), path
    assert brain.ping() and child.poll() is None


@needs_root
def test_look_for_a_file_is_made_where_the_process_is(things):
    """In a container the same name is another file, and an absolute link in it leads to what is there."""
    brain = things.system("signal_uids =\n").brain.greet()
    home, other = os.path.join(things.folder, "app"), os.path.join(things.folder, "other")
    for folder in (home, other):
        os.mkdir(folder)
        with open(os.path.join(folder, "a.py"), "w") as f:
            f.write("print()\n")
        os.symlink(os.path.join(home, "a.py"), os.path.join(folder, "whole.py"))
    child = subprocess.Popen(["unshare", "--mount", "sh", "-c", 'mount --bind "$1" "$2" && cd "$2" && exec setpriv "--reuid=$3" "--regid=$3" --clear-groups sleep 1000',
                              "sh", other, home, str(ALICE)])
    things.keep(child.wait)
    things.keep(child.kill)
    until("it runs", lambda: os.path.basename(os.readlink(f"/proc/{child.pid}/exe")) == "sleep")
    st = os.stat(os.path.join(other, "a.py"))
    follow(f"/proc/{child.pid}/root{home}/whole.py")
    for path in ("a.py", os.path.join(home, "a.py"), "whole.py"):
        assert file_of(brain, child, path) == (st.st_dev, st.st_ino), path


# ---- its file ----

@needs_root
@pytest.mark.parametrize("config,words", [
    ("signal_uids = 1000\nkill_all = yes\n", ":2: kill_all is no key"),
    ("[warden]\nburst = 3\n", ":2: sections are not used"),
    ("burst = 0\n", ":1: burst"),
    ("burst = 1001\n", "1000"),
    ("rate_per_s = many\n", ":1: rate_per_s"),
    ("signal_uids = 1000-\n", ":1: signal_uids"),
    ("signal_uids = 2000-1000\n", ":1: signal_uids"),
    ("signal_uids = 1 2 3 4 5 6 7 8 9\n", "at most 8"),
    ("protected = sshd\n", "absolute path"),
    ("grace_min_ms = 0\n", ":1: grace_min_ms"),
    ("burst = 3\nburst = 4\n", ":2: burst stands here a second time"),
    ("# " + "x" * 300 + "\n", ":1: the line is longer"),
])
def test_configuration_with_an_error_names_file_and_line(things, config, words):
    warden = things.system(config)
    assert warden.child.wait(60) == 78
    assert warden.config in warden.words() and words in warden.words()


@needs_root
@pytest.mark.parametrize("how", ["writable", "owned", "link"])
def test_configuration_that_others_can_change_is_refused(things, folder, how):
    from brain import SystemWarden

    class Prepared(SystemWarden):
        def start(self):
            if how == "writable":
                os.chmod(self.config, 0o666)
            elif how == "owned":
                os.chown(self.config, ALICE, ALICE)
            else:
                os.rename(self.config, self.config + ".real")
                os.symlink(self.config + ".real", self.config)
            super().start()
    warden = Prepared(folder, "burst = 3\n")
    assert warden.child.wait(60) != 0 and warden.config in warden.words()


@needs_root
@pytest.mark.parametrize("change", ["owner", "mode"])
def test_folder_of_the_configuration_that_others_can_change_is_refused(things, folder, change):
    """Who can take the file away takes away what it forbids; it need not be there any more."""
    etc = os.path.join(folder, "etc")
    os.mkdir(etc)
    if change == "owner":
        os.chown(etc, ALICE, ALICE)
    else:
        os.chmod(etc, 0o777)
    r = subprocess.run([WARDEN, "--system", "--dir", os.path.join(folder, "w"), "--socket", os.path.join(folder, "s"), "--brain-uid", "0",
                        "--config", os.path.join(etc, "warden.conf")], capture_output=True, text=True, timeout=60)  # fmt: skip
    assert r.returncode == 78 and etc in r.stderr and "chmod go-w" in r.stderr


@needs_root
def test_second_warden_leaves_the_first_ones_socket_alone(things):
    """Typed by hand beside the service: lessord would not have found its hands again."""
    warden = things.system()
    r = subprocess.run(warden.child.args, capture_output=True, text=True, timeout=60)
    assert r.returncode == 1 and "another lessor-warden works in" in r.stderr
    warden.brain.close()
    until("the first one still answers there", lambda: (b := warden.connect()).hear() is not None and b.greet())


@pytest.mark.parametrize("options", [
    ["--system", "--grace-min-ms", "1"], ["--system", "--kill-wait-ms", "1"], ["--system", "--fd", "0"],
    ["--system", "--lacks", "cgroup.kill"], ["--dir", "/tmp"], ["--fd", "0"], ["--fd", "0", "--dir", "/tmp", "--socket", "/x"],
    ["--fd", "x", "--dir", "/tmp"], ["--fd", "0", "--dir", "/tmp", "more"], ["--fd", "0", "--dir", "/tmp", "--lacks", "sense"],
])
def test_options_of_a_session_are_no_options_of_the_system(options):
    r = subprocess.run([WARDEN, *options], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert r.returncode == 2 and "Usage" in r.stderr


def test_help_and_version_answer():
    assert "signal" in subprocess.run([WARDEN, "--help"], capture_output=True, text=True, timeout=60).stdout
    assert subprocess.run([WARDEN, "--version"], capture_output=True, text=True, timeout=60).stdout.startswith("lessor-warden ")
