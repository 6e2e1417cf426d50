# SPDX-License-Identifier: Apache-2.0
"""A double of the brain: starts the real lessor-warden and says to it what a brain says, or what none should.

The messages are written out by hand here (struct), so that these tests judge the wire format too. Tests wait for facts, never for
time: until() looks again and again, and its limit is for what is broken.
"""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import pytest

PATIENCE_S = 60
HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("LESSOR_BUILD_DIR") or os.path.join(HERE, "..", "..", "build"))
WARDEN = os.path.join(BUILD, "bin", "lessor-warden")
ALICE, BOB = 61001, 61002  # users that own nothing here

VERSION = 3
HELLO, ORDER, OUTCOME, SETTLED, HELD, PING, STATE = range(1, 8)
SIGNAL, FREEZE, THAW, KILL_TREE, LOCK, CHECKPOINT, RESTORE, UNLOCK, STOP, CONT, HOLD, LOOK = range(1, 13)
RESULTS = ("done", "blocked", "failed")
WHYS = ("none", "gone", "recycled", "unseen", "other_owner", "uid_not_allowed", "protected_init", "protected_kernel",
        "protected_lessor", "protected_program", "verb", "signal", "no_grace", "rate", "busy", "no_cgroup",
        "cgroup_not_member", "cgroup_not_ours", "cgroup_has_others", "kernel_too_old", "system", "unkillable", "not_frozen",
        "lost", "hands_away", "state", "parked", "final", "record", "stands_still", "lock_timeout", "device", "headroom",
        "cannot_machine", "cannot_library", "cannot_driver", "cannot_process", "cannot_init", "cannot_permitted",
        "cannot_supported", "driver", "no_effect")  # fmt: skip

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")


def until(what, fact, patience_s=PATIENCE_S):
    """Looks until fact() is true and gives it back."""
    give_up = time.monotonic() + patience_s
    while True:
        value = fact()
        if value:
            return value
        if time.monotonic() > give_up:
            raise AssertionError(f"after {patience_s} s still not so: {what}")
        time.sleep(0.005)


def follow(path):
    """As whoever uses that link does, until the kernel need not write down that it was: that is what it cannot do from memory alone."""
    def followed():
        os.stat(path)
        st = os.lstat(path)
        return st.st_atime_ns > st.st_ctime_ns
    if not os.statvfs(path).f_flag & os.ST_NOATIME:
        until("it was used after it was made", followed)


# ---- processes ----

def stat_fields(pid):
    """The fields of /proc/PID/stat from the third on; None when there is nobody."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            text = f.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(b")") + 2 :].split()


def start_ticks(pid):
    fields = stat_fields(pid)
    return int(fields[19]) if fields else 0


def state_of(pid):
    fields = stat_fields(pid)
    return fields[0].decode() if fields else ""


def program_of(pid):
    """Its name as the kernel has it, 15 letters; readable for everybody, which the file it runs is not."""
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().rstrip("\n")
    except (FileNotFoundError, ProcessLookupError):
        return ""


CHECKPOINTER = "lessor-checkpoint"[:15]


def is_dead(pid):
    return state_of(pid) in ("", "Z", "X")


def uid_of(pid):
    return os.stat(f"/proc/{pid}").st_uid


# What a target writes into its file: one byte a signal it got, as long as it can.
COUNTER = """
import os, signal, sys, time
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCONT):
    signal.signal(s, lambda n, frame: os.write(log, b"%d\\n" % n))
os.write(log, b"ready\\n")
while True:
    time.sleep(3600)
"""


class Target:
    """A process that counts the signals it gets and survives all it can."""

    def __init__(self, folder, uid=None):
        self.log = os.path.join(folder, f"target-{len(os.listdir(folder))}")
        become = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        if uid is not None:
            os.close(os.open(self.log, os.O_CREAT | os.O_WRONLY, 0o666))
            os.chmod(self.log, 0o666)
        self.child = subprocess.Popen(["/usr/bin/python3", "-c", COUNTER, self.log], cwd="/", **become)
        self.pid = self.child.pid
        until("the target runs", lambda: self.signals() is not None)

    def signals(self):
        """What it got, in order; None before it is ready."""
        try:
            with open(self.log) as f:
                lines = f.read().split()
        except FileNotFoundError:
            return None
        return [signal.Signals(int(n)) for n in lines[1:]] if lines else None

    def lives(self):
        return self.child.poll() is None

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            self.child.kill()
        self.child.wait(PATIENCE_S)


# ---- the warden ----

class Outcome:
    def __init__(self, order_id, result, why, error, kept, code, host_bytes, duration_ms, program_dev, program_inode,
                 file_dev, file_inode, path):  # fmt: skip
        self.order_id, self.result, self.why = order_id, RESULTS[result], WHYS[why]
        self.error, self.kept = error, bool(kept)
        self.code, self.host_bytes, self.duration_ms = code, host_bytes, duration_ms
        self.program, self.file, self.path = (program_dev, program_inode), (file_dev, file_inode), path

    def __repr__(self):
        return f"{self.order_id}: {self.result} {self.why} errno={self.error} kept={self.kept} code={self.code}"


def decode(data):
    version, kind = struct.unpack_from("<HH", data)
    body = data[4:]
    if kind == HELLO:
        assert len(body) == 32
        return kind, (version, body.rstrip(b"\0").decode())
    assert version == VERSION
    if kind == OUTCOME:
        fixed, path = struct.unpack_from("<QIIIBIQIQQQQ", body), body[struct.calcsize("<QIIIBIQIQQQQ"):]
        if fixed[8]:  # of a look: the path of the program follows
            assert len(path) == 4 + struct.unpack_from("<I", path)[0]
            path = path[4:]
        else:
            assert not path
        return kind, Outcome(*fixed, path)
    if kind == HELD:
        return kind, struct.unpack("<Q", body)[0]
    assert kind == STATE, kind
    return kind, struct.unpack("<QII", body)


class Brain:
    """One connection to a warden."""

    next_order = 1

    def __init__(self, sock):
        self.sock = sock
        self.sock.settimeout(PATIENCE_S)
        self.held, self.outcomes, self.states, self.hello = [], [], [], None

    def send(self, data):
        self.sock.send(data)

    def say(self, kind, body=b"", version=VERSION):
        self.send(struct.pack("<HH", version, kind) + body)

    def say_hello(self, version=VERSION, program=b"0.1.0"):
        self.say(HELLO, program.ljust(32, b"\0"), version)

    def hear(self):
        """One message; None when the warden hung up."""
        try:
            data = self.sock.recv(4096)
        except ConnectionResetError:
            return None
        if not data:
            return None
        kind, value = decode(data)
        if kind == HELLO:
            self.hello = value
        else:
            {OUTCOME: self.outcomes, HELD: self.held, STATE: self.states}[kind].append(value)
        return kind

    def greet(self):
        self.say_hello()
        while not self.states:
            assert self.hear() is not None, "hung up instead of a hello"
        assert self.hello[0] == VERSION
        return self

    def order(self, verb, pid, sig=0, start=None, inode=0, owner=None, cgroup=0, order_id=None, uuid=bytes(16), lease=0,
              size=0, used_at_most=0, deadline_ms=0, flags=0, path=b""):  # fmt: skip
        if order_id is None:
            order_id = Brain.next_order
            Brain.next_order += 1
        start = start_ticks(pid) if start is None else start
        owner = os.geteuid() if owner is None else owner
        self.say(ORDER, struct.pack("<QIIIQQIQI16sQQQII", order_id, verb, sig, pid, start, inode, owner, cgroup, 7, uuid, lease,
                                    size, used_at_most, deadline_ms, flags)
                 + (struct.pack("<I", len(path)) + path if verb == LOOK else b""))  # fmt: skip
        return order_id

    def flood(self, n, *order, **rest):
        """Orders as fast as they are taken; what is answered meanwhile is read, or both sides would wait for each other."""
        ids = []
        for _ in range(n):
            ids.append(self.order(*order, **rest))
            while select.select([self.sock], [], [], 0)[0]:
                assert self.hear() is not None, "hung up instead of an outcome"
        return ids

    def outcome(self, order_id):
        while True:
            for o in self.outcomes:
                if o.order_id == order_id:
                    return o
            assert self.hear() is not None, "hung up instead of an outcome"

    def ask(self, verb, pid, sig=0, **rest):
        """Orders and waits: (result, why)."""
        o = self.outcome(self.order(verb, pid, sig, **rest))
        return o.result, o.why

    def signal(self, pid, sig=signal.SIGTERM, **rest):
        return self.ask(SIGNAL, pid, int(sig), **rest)

    def settle(self, order_id):
        self.say(SETTLED, struct.pack("<Q", order_id))

    def ping(self):
        nonce = 1000 + len(self.states)
        self.say(PING, struct.pack("<Q", nonce))
        while not any(s[0] == nonce for s in self.states):
            assert self.hear() is not None, "hung up instead of a state"
        return self.states[-1]

    def close(self):
        self.sock.close()


class Warden:
    """A warden in somebody's own session, as lessord starts it."""

    def __init__(self, folder, *options, command=(), program=WARDEN, **popen):
        self.folder, self.options, self.command, self.popen = folder, options, [*command, program], popen
        self.log = os.path.join(folder, "log")
        self.pids = []  # of all that were started here; in a person's own session each begins a session
        self.start()

    def start(self):
        as_uid = self.popen.get("user", os.geteuid())
        root = os.geteuid()
        os.seteuid(as_uid)  # the kernel notes down who made the pair
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        os.seteuid(root)
        with open(self.log, "a") as log:
            self.child = subprocess.Popen(
                [*self.command, "--fd", str(theirs.fileno()), "--dir", os.path.join(self.folder, "warden"),
                 *self.options],
                pass_fds=[theirs.fileno()], stderr=log, **self.popen)  # fmt: skip
        theirs.close()
        self.pids.append(self.child.pid)
        self.brain = Brain(ours)

    def kill(self):
        self.child.kill()
        self.child.wait(PATIENCE_S)
        self.brain.close()

    def again(self):
        """kill -9, and a new one on the same folder, greeted."""
        self.kill()
        self.start()
        return self.brain.greet()

    def end(self):
        self.brain.close()
        status = self.child.wait(PATIENCE_S)
        if status in (98, 99):
            raise AssertionError(open(self.log).read())
        return status

    def words(self):
        with open(self.log) as f:
            return f.read()


class SystemWarden(Warden):
    """As systemd starts it, but for its paths: root's, listening; the brain's uid is root's too unless said otherwise."""

    def __init__(self, folder, config="", brain_uid=0, **popen):
        self.socket = os.path.join(folder, "warden.sock")
        self.config = os.path.join(folder, "warden.conf")
        with open(self.config, "w") as f:
            f.write(config)
        os.chmod(self.config, 0o600)
        self.brain_uid = brain_uid
        super().__init__(folder, **popen)

    def start(self):
        with open(self.log, "a") as log:
            before = log.tell()
            self.child = subprocess.Popen(
                [*self.command, "--system", "--dir", os.path.join(self.folder, "warden"), "--parked",
                 os.path.join(self.folder, "parked"), "--socket", self.socket, "--config", self.config,
                 "--brain-uid", str(self.brain_uid)],
                stderr=log, **self.popen)  # fmt: skip
        until("the warden listens", lambda: "event=ready" in self.words()[before:] or self.child.poll() is not None)
        self.brain = self.connect() if self.child.poll() is None else None

    def connect(self):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.connect(self.socket)
        return Brain(s)

    def end(self):
        self.child.terminate()
        return self.child.wait(PATIENCE_S)


@pytest.fixture
def folder():
    path = tempfile.mkdtemp(prefix="lessor-w-")
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def things(folder):
    """Whatever is put in here is ended at the end, the last first."""
    with contextlib.ExitStack() as stack:

        class Things:
            def warden(self, *options, **popen):
                w = Warden(folder, *options, **popen)
                stack.callback(w.end)
                return w

            def system(self, config="", **rest):
                w = SystemWarden(folder, config, **rest)
                stack.callback(w.end)
                return w

            def target(self, uid=None):
                t = Target(folder, uid)
                stack.callback(t.end)
                return t

            def keep(self, callback, *args):
                stack.callback(callback, *args)

        things = Things()
        things.folder = folder
        yield things


# ---- cgroups ----

def cgroup_root():
    for path in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if os.path.exists(os.path.join(path, "cgroup.procs")) and os.path.exists(os.path.join(path, "cgroup.controllers")):
            return path
    return None


def own_cgroup():
    """The folder this process is in; None where no folder can be made in it."""
    root = cgroup_root()
    if not root:
        return None
    with open("/proc/self/cgroup") as f:
        line = next((line for line in f if line.startswith("0::")), "0::/").strip()
    path = os.path.normpath(root + line[3:])
    return path if os.access(path, os.W_OK) and os.access(os.path.join(path, "cgroup.procs"), os.W_OK) else None


needs_cgroup = pytest.mark.skipif(not own_cgroup(), reason="no cgroup v2 folder can be made here")


class Cgroup:
    def __init__(self, name="lessor-T", parent=None, owner=None):
        self.path = os.path.join(parent or own_cgroup(), f"{name}.{os.getpid()}")
        os.mkdir(self.path)
        if owner is not None:
            for path in (self.path, *(os.path.join(self.path, f) for f in os.listdir(self.path))):
                os.chown(path, owner, owner)

    @property
    def id(self):
        return os.stat(self.path).st_ino

    def put(self, pid):
        with open(os.path.join(self.path, "cgroup.procs"), "w") as f:
            f.write(str(pid))

    def pids(self):
        with open(os.path.join(self.path, "cgroup.procs")) as f:
            return [int(line) for line in f]

    def read(self, name):
        with open(os.path.join(self.path, name)) as f:
            return f.read()

    def end(self):
        if not os.path.exists(self.path):
            return
        with contextlib.suppress(OSError):
            with open(os.path.join(self.path, "cgroup.freeze"), "w") as f:
                f.write("0")
        with open(os.path.join(self.path, "cgroup.kill"), "w") as f:
            f.write("1")
        until("the cgroup is empty", lambda: "populated 0" in self.read("cgroup.events"))
        for below in os.listdir(self.path):
            if os.path.isdir(os.path.join(self.path, below)):
                os.rmdir(os.path.join(self.path, below))
        os.rmdir(self.path)


# ---- what an older kernel does ----

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW = 0x00050000, 0x7FFF0000
NUMBERS = {"pidfd_send_signal": 424, "pidfd_open": 434}  # the same on every architecture


def without(*calls):
    """For preexec_fn: these system calls answer ENOSYS from here on, as on a kernel that does not know them."""
    code = [(0x20, 0, 0, 0)]  # the call's number
    for call in calls:
        code.append((0x15, 0, 1, NUMBERS[call]))
        code.append((0x06, 0, 0, SECCOMP_RET_ERRNO | 38))
    code.append((0x06, 0, 0, SECCOMP_RET_ALLOW))
    filters = b"".join(struct.pack("=HBBI", *line) for line in code)

    def install():
        libc = ctypes.CDLL(None, use_errno=True)
        buf = ctypes.create_string_buffer(filters)
        program = struct.pack("@HP", len(code), ctypes.addressof(buf))
        held = ctypes.create_string_buffer(program)
        if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, held, 0, 0):
            raise OSError(ctypes.get_errno(), "seccomp")

    return install


# ---- a pid of one's choice ----

def clone_at(pid):
    """A child of ours with exactly that pid, which waits until it is killed (clone3 with set_tid; needs root)."""
    libc = ctypes.CDLL(None, use_errno=True)
    tid = (ctypes.c_int * 1)(pid)
    args = struct.pack("@QQQQQQQQQQ", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(tid), 1)
    held = ctypes.create_string_buffer(args)
    child = libc.syscall(435, held, len(args))
    if child == 0:
        try:
            while True:
                signal.pause()
        finally:
            os._exit(0)
    if child < 0:
        raise OSError(ctypes.get_errno(), f"clone3 with the pid {pid}")
    return child


def reap(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


sys.modules.setdefault("brain", sys.modules[__name__])
