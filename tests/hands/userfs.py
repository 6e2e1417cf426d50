# SPDX-License-Identifier: Apache-2.0
"""A file system of a user's own with one program in it, as an AppImage or a home on a file server: /dev/fuse, spoken by hand.

It answers from a process of its own, which can be stopped: then it is a file server that went away.
"""

import contextlib
import ctypes
import errno
import os
import signal
import stat
import struct

import pytest

LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT, INTERRUPT, BATCH_FORGET = 1, 2, 3, 14, 15, 18, 25, 26, 36, 42
ROOT, PROGRAM = 1, 2  # inodes
MNT_DETACH, MS_NOSUID, MS_NODEV = 2, 2, 4

needs_fuse = pytest.mark.skipif(os.geteuid() != 0 or not os.path.exists("/dev/fuse"), reason="mounting needs root and /dev/fuse")


def attributes(inode, uid, size):
    mode = stat.S_IFDIR | 0o755 if inode == ROOT else stat.S_IFREG | 0o755
    return struct.pack("<6Q10I", inode, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, uid, uid, 0, 4096, 0)


def answer(opcode, inode, body, uid, program):
    """The bytes after the head of an answer; a negative errno; None = none is wanted."""
    if opcode == INIT:
        return struct.pack("<IIIIHHIIHHI7I", 7, 31, 65536, 0, 0, 0, 65536, 1, 0, 0, 0, *[0] * 7)
    if opcode == LOOKUP:
        if body != b"program\0":
            return -errno.ENOENT
        return struct.pack("<4Q2I", PROGRAM, 0, 3600, 0, 0, 0) + attributes(PROGRAM, uid, len(program))
    if opcode == GETATTR:  # good for no time at all: who asks again has to ask us
        return struct.pack("<QII", 0, 0, 0) + attributes(inode, uid, len(program))
    if opcode == OPEN:
        return struct.pack("<QII", 1, 0, 0)
    if opcode == READ:
        _, offset, size = struct.unpack_from("<QQI", body)
        return program[offset : offset + size]
    if opcode in (RELEASE, FLUSH):
        return b""
    return None if opcode in (FORGET, BATCH_FORGET, INTERRUPT) else -errno.ENOSYS


def serve(fd, uid, program):
    while True:
        try:
            request = os.read(fd, 1 << 20)
        except OSError as e:
            if e.errno == errno.ENODEV:  # unmounted
                return
            continue
        _, opcode, unique, inode = struct.unpack_from("<IIQQ", request)
        said = answer(opcode, inode, request[40:], uid, program)
        if said is not None:
            code, data = (said, b"") if isinstance(said, int) else (0, said)
            with contextlib.suppress(OSError):  # who asked is gone
                os.write(fd, struct.pack("<IiQ", 16 + len(data), code, unique) + data)


class UserFs:
    """`program` in @folder is a copy of @source. Without @allow_other nobody but its user sees anything of it, root neither."""

    def __init__(self, folder, uid, source, allow_other):
        with open(source, "rb") as f:
            copy = f.read()
        self.folder, self.program = folder, os.path.join(folder, "program")
        self.libc = ctypes.CDLL(None, use_errno=True)
        os.mkdir(folder)
        fd = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={fd},rootmode=40000,user_id={uid},group_id={uid}" + (",allow_other" if allow_other else "")
        if self.libc.mount(b"test", folder.encode(), b"fuse", MS_NOSUID | MS_NODEV, options.encode()):
            pytest.skip(f"no file system of a user's own can be mounted: {os.strerror(ctypes.get_errno())}")
        self.server = os.fork()
        if self.server == 0:
            try:
                serve(fd, uid, copy)
            finally:
                os._exit(0)
        os.close(fd)

    def stop_answering(self):
        os.kill(self.server, signal.SIGSTOP)

    def end(self):
        os.kill(self.server, signal.SIGKILL)
        os.waitpid(self.server, 0)
        self.libc.umount2(self.folder.encode(), MNT_DETACH)
        os.rmdir(self.folder)
