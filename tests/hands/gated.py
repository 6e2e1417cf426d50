# SPDX-License-Identifier: Apache-2.0
"""The gate on the real kernel: cgroups of our own, device files in a private folder, and programs that try to open them.

The device numbers are NVIDIA's (195); without a driver, who gets past the gate is told ENXIO. Needs root and a kernel that takes
device programs of cgroups; where it does not, the tests are skipped and say so.
"""

import contextlib
import ctypes
import errno
import functools
import itertools
import os
import platform
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile

import pytest
from brain import BUILD, start_ticks, until

KEEPER = os.path.join(BUILD, "bin", "lessor-warden-admin")
HELLO, ALLOW, FORGET, SET, PING, ANSWER, STATE = range(1, 8)
OFF, LOG, ON = range(3)
WHYS = ("none", "outside", "gone", "owner", "not_ours", "whole_gate", "full", "no_cgroup", "config", "mode", "kernel", "system",
        "away")  # fmt: skip
NVIDIA0, NVIDIACTL = (195, 0), (195, 255)
USER = 61001  # owns nothing here

numbers = itertools.count(1)


def hierarchy():
    for place in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if os.path.exists(f"{place}/cgroup.controllers"):
            return place
    return None


@functools.lru_cache(maxsize=None)
def why_not():
    """Why the gate cannot be tried here; "" = it can."""
    if os.geteuid() != 0:
        return "the gate needs root"
    if not hierarchy():
        return "the gate needs cgroup v2"
    try:
        with made_cgroup():
            pass
    except OSError as e:
        return f"no cgroup can be made here ({e.strerror})"
    call = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
    attr = struct.pack("=IIIII", 1, 8, 8, 1, 0) + bytes(100)  # BPF_MAP_CREATE of a hash with one row
    fd = ctypes.CDLL(None, use_errno=True).syscall(call, 0, attr, len(attr)) if call else -1
    if fd < 0:
        return f"the kernel makes no tables for the gate here ({os.strerror(ctypes.get_errno())})"
    os.close(fd)
    return ""


@contextlib.contextmanager
def made_cgroup():
    path = f"{hierarchy()}/gatetest-{os.getpid()}-{next(numbers)}"
    os.mkdir(path)
    try:
        yield path
    finally:
        for folder, _, _ in os.walk(path, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)


PROGRAM = """
import os, sys
uid = int(sys.argv[1])
if uid:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
kept = {}
for line in sys.stdin:
    verb, path = line.split()
    try:
        if verb == "open":
            os.close(os.open(path, os.O_RDWR))
        elif verb == "keep":
            kept[path] = os.open(path, os.O_RDWR)
        elif verb == "read":
            os.read(kept[path], 1)
        elif verb == "mknod":
            os.mknod(path, 0o20600, os.makedev(195, 7))
        print("ok", flush=True)
    except OSError as e:
        print(e.errno, flush=True)
"""


class Opener:
    """A program in a cgroup that opens what it is told to."""

    def __init__(self, cgroup, uid=0):
        self.process = subprocess.Popen([sys.executable, "-u", "-c", PROGRAM, str(uid)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.ask("pass", "-")  # it has opened what it needs by then
        self.move(cgroup)

    pid = property(lambda self: self.process.pid)

    def move(self, cgroup):
        with open(f"{cgroup}/cgroup.procs", "w") as f:
            f.write(str(self.pid))

    def ask(self, verb, path):
        self.process.stdin.write(f"{verb} {path}\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline().strip()
        return said if said == "ok" else errno.errorcode[int(said)]

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Gated:
    """A folder, a cgroup that is to be gated, a keeper, and a connection to it as the brain's."""

    def __init__(self, conf=None):
        self.dir = tempfile.mkdtemp(prefix="lessor-gate-", dir="/tmp")
        os.chmod(self.dir, 0o755)
        self.stack = contextlib.ExitStack()
        self.cgroup = self.stack.enter_context(made_cgroup())
        self.name = os.path.relpath(self.cgroup, hierarchy())
        self.socket, self.sessions = f"{self.dir}/warden-admin.sock", f"{self.dir}/sessions"
        os.mkdir(self.sessions)
        self.keeper = self.connection = None
        self.devices = {}
        for numbers_of, name in ((NVIDIA0, "nvidia0"), (NVIDIACTL, "nvidiactl"), ((1, 5), "zero")):
            self.devices[name] = f"{self.dir}/{name}"
            os.mknod(self.devices[name], stat.S_IFCHR | 0o666, os.makedev(*numbers_of))
            os.chmod(self.devices[name], 0o666)
        self.conf(**(conf or {}))

    def conf(self, **keys):
        keys = {"mode": "on", "cgroups": self.name, "users_from": "0", **keys}
        text = "[gate]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())
        with open(f"{self.dir}/lessord.conf", "w") as f:
            f.write(text)

    # ---- the keeper ----

    def start(self, *options):
        self.log_file = open(f"{self.dir}/keeper.err", "ab")
        said = self.log().count("event=ready")
        self.keeper = subprocess.Popen([KEEPER, "--socket", self.socket, "--config", f"{self.dir}/lessord.conf", "--brain-uid",
                                        "0", "--sessions", self.sessions, *options], stderr=self.log_file)
        until("the keeper is ready", lambda: self.log().count("event=ready") > said or self.keeper.poll() is not None)
        assert self.keeper.poll() is None, self.log()
        return self

    def log(self):
        with open(f"{self.dir}/keeper.err") as f:
            return f.read()

    def kill(self, how=signal.SIGKILL):
        self.keeper.send_signal(how)
        self.keeper.wait()

    def connect(self):
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.connection.settimeout(60)
        self.connection.connect(self.socket)
        assert self.receive()[0] == HELLO
        self.say(HELLO, struct.pack("32s", b"0.1.0"))
        return self

    # ---- what is said ----

    def say(self, kind, body=b"", version=1):
        self.connection.send(struct.pack("<HH", version, kind) + body)

    def receive(self):
        data = self.connection.recv(256)
        if not data:
            return None, b""
        return struct.unpack("<HH", data[:4])[1], data[4:]

    def answer(self):
        kind, body = self.receive()
        assert kind == ANSWER, kind
        lease, result, why, code = struct.unpack("<QIII", body)
        assert (result == 0) == (why in (0, 1))
        return lease, WHYS[why], code

    def set(self, mode=ON):
        self.say(SET, struct.pack("<I", mode))
        lease, why, _ = self.answer()
        assert lease == 0
        return why

    def allow(self, lease, cgroup=None, process=None, uid=0, ticks=None):
        pid = process.pid if process else 0
        ticks = start_ticks(pid) if process and ticks is None else (ticks or 0)
        self.say(ALLOW, struct.pack("<QQIQI", lease, os.stat(cgroup).st_ino if cgroup else 0, pid, ticks, uid))
        told, why, _ = self.answer()
        assert told == lease
        return why

    def forget(self, lease):
        self.say(FORGET, struct.pack("<Q", lease))
        self.state()  # behind it

    def state(self):
        self.say(PING, struct.pack("<Q", 7))
        kind, body = self.receive()
        assert kind == STATE
        nonce, mode, n_cgroups, n_leases, refused, last_uid = struct.unpack("<QIIIQI", body)
        assert nonce == 7
        return {"mode": mode, "cgroups": n_cgroups, "leases": n_leases, "refused": refused, "uid": last_uid}

    # ---- who opens ----

    def opener(self, cgroup=None, uid=0):
        one = Opener(cgroup or self.cgroup, uid)
        self.stack.callback(one.end)
        return one

    def folder(self, name, owner=None):
        path = os.path.join(self.cgroup, name)
        os.makedirs(path, exist_ok=True)
        if owner is not None:
            os.chown(path, owner, owner)
        return path

    def end(self):
        if self.connection:
            self.connection.close()
        if self.keeper:
            if self.keeper.poll() is None:
                self.kill()
            self.log_file.close()
        self.stack.close()
        shutil.rmtree(self.dir, ignore_errors=True)


@pytest.fixture
def gated():
    """gated(mode="log", …): what the configuration says beyond what is usual."""
    if why_not():
        pytest.skip(why_not())
    made = []

    def make(**conf):
        made.append(Gated(conf))
        return made[-1]

    yield make
    for one in made:
        one.end()
