# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share: a private folder with a card and a lessord in it, and ways to look at both.

Nothing here waits for time to pass: until() looks for a fact again and again, and its limit is for what is broken.
"""

import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import termios
import time

MIB = 1024 * 1024
PATIENCE_S = 60
BUILD = os.environ.get("LESSOR_BUILD_DIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build")
BUILD = os.path.abspath(BUILD)
SOURCE = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
LESSOR = os.path.join(BUILD, "bin", "lessor")
LESSORD = os.path.join(BUILD, "bin", "lessord")
SIMGPU = next((p for p in (os.path.join(BUILD, "bin", "simgpu"), os.path.join(BUILD, "simgpu", "simgpu"))
               if os.access(p, os.X_OK)), os.path.join(BUILD, "simgpu", "simgpu"))
SANITIZER_WORDS = ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")


def until(what, fact, patience_s=PATIENCE_S):
    """Looks until fact() is true and gives it back."""
    give_up = time.monotonic() + patience_s
    while True:
        value = fact()
        if value:
            return value
        if time.monotonic() > give_up:
            raise AssertionError(f"after {patience_s} s still not true: {what}")
        time.sleep(0.005)


class Place:
    """A card, a lessord beside it, and everything started here: ended with it."""

    def __init__(self, *create):
        self.dir = tempfile.mkdtemp(prefix="lessor-t-", dir="/tmp")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("LESSOR_", "CUDA_", "SIMGPU"))}
        self.env.update(LESSOR_SOCKET=os.path.join(self.dir, "lessor.sock"), SIMGPU=os.path.join(self.dir, "card"),
                        PATH=f"{BUILD}/bin:{os.path.dirname(SIMGPU)}:{os.environ.get('PATH', '/usr/bin:/bin')}")
        self.started = []
        self.daemon = None
        subprocess.run([SIMGPU, "create", "--file", self.env["SIMGPU"], *(create or ("--gpus", "1", "--memory", "3G"))],
                       check=True, stdout=subprocess.DEVNULL, env=self.env)
        self.start_daemon()

    def start_daemon(self):
        with open(os.path.join(self.dir, "lessord.err"), "ab") as err:
            self.daemon = subprocess.Popen([SIMGPU, "run", "--file", self.env["SIMGPU"], "--", LESSORD, "--dir", self.dir],
                                           env=self.env, stdin=subprocess.DEVNULL, stdout=err, stderr=err)

        def ready():
            assert self.daemon.poll() is None, "lessord ended: " + self.daemon_log()
            shown = self.lessor("status", "--json")
            status = json.loads(shown.stdout) if shown.returncode == 0 else {"devices": []}
            return status["devices"] and all(d["usable"] for d in status["devices"])
        until("lessord answers and sees its cards", ready)

    def daemon_log(self):
        with open(os.path.join(self.dir, "lessord.err"), encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]

    def kill_daemon(self):
        """SIGKILL to lessord itself."""
        pid = self.daemon.pid
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            if file.read().strip() != "lessord":
                pid = next(p for p in all_pids() if parent_of(p) == self.daemon.pid)
        os.kill(pid, signal.SIGKILL)
        self.daemon.wait(timeout=PATIENCE_S)

    def close(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
        for process in self.card_processes():
            with contextlib.suppress(OSError):
                os.kill(process["pid"], signal.SIGKILL)
        for process in self.started:
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
        if self.daemon and self.daemon.poll() is None:
            self.daemon.terminate()
            self.daemon.wait(timeout=PATIENCE_S)
        shutil.rmtree(self.dir, ignore_errors=True)  # who is just ending may still write or remove there

    # ---- doing ----

    def lessor(self, *words, env=None, **options):
        """One `lessor …` that is expected to end; text in and out."""
        options.setdefault("stdin", subprocess.DEVNULL)
        if "input" in options:
            del options["stdin"]
        return subprocess.run([LESSOR, *words], env={**self.env, **(env or {})}, stdout=subprocess.PIPE, check=False,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S * 2, **options)

    def start(self, *words, env=None, **options):
        """One that goes on; ended with this place."""
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([LESSOR, *words], env={**self.env, **(env or {})}, text=True, **options)
        self.started.append(process)
        return process

    def hog(self, name, vram, *options, alloc=None, **kwargs):
        """`lessor run` of a program that takes what it leased."""
        return self.start("run", "--name", name, "--vram", vram, *options, "--", SIMGPU, "hog", "--alloc", alloc or vram, **kwargs)

    # ---- looking ----

    def status(self):
        shown = self.lessor("status", "--json")
        assert shown.returncode == 0, shown.stderr
        return json.loads(shown.stdout)

    def strangers(self):
        """Those in the books with what they hold: a program is listed a moment before it has its memory."""
        return [s for s in self.status()["strangers"] if s["used_bytes"] != 0]

    def leases(self):
        return self.status()["leases"]

    def lease(self, name):
        found = [lease for lease in self.leases() if lease["name"] == name]
        assert len(found) <= 1, found
        return found[0] if found else None

    def in_state(self, name, state):
        def fact():
            lease = self.lease(name)
            return lease if lease and lease["state"] == state else None
        return until(f"{name} is {state}", fact)

    def gone(self, name):
        until(f"{name} has no lease", lambda: self.lease(name) is None)

    def free_is(self, n_bytes, device=0):
        until(f"{n_bytes // MIB} MiB are free", lambda: self.status()["devices"][device]["free_bytes"] == n_bytes)

    def card(self):
        shown = subprocess.run([SIMGPU, "show", "--json"], env=self.env, stdout=subprocess.PIPE, check=True)
        return json.loads(shown.stdout)["devices"]

    def card_processes(self):
        try:
            return [p for device in self.card() for p in device["processes"]]
        except (subprocess.CalledProcessError, ValueError):
            return []

    def holds(self, n_bytes):
        """The pid that has exactly so much on the card, as soon as there is one."""
        def fact():
            return [p["pid"] for p in self.card_processes() if p["bytes"] == n_bytes]
        return until(f"a process holds {n_bytes // MIB} MiB", fact)[0]


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class Terminal:
    """A program on a terminal of its own, and what it says there."""

    def __init__(self, words, env):
        self.seen = ""
        self.all = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(shutil.which(words[0], path=env["PATH"]) or words[0], words, env)
        settings = termios.tcgetattr(self.fd)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(self.fd, termios.TCSANOW, settings)

    def read(self, wait_s):
        if not select.select([self.fd], [], [], wait_s)[0]:
            return True
        try:
            text = os.read(self.fd, 65536).decode(errors="replace")
        except OSError:
            return False
        self.seen += text
        self.all += text
        return True

    def expect(self, pattern):
        give_up = time.monotonic() + PATIENCE_S
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < give_up, f"never said {pattern!r}: {self.all[-2000:]!r}"
            if not self.read(0.1):
                found = re.search(pattern, self.seen)
                assert found, f"ended without {pattern!r}: {self.all[-2000:]!r}"
                break
        self.seen = self.seen[found.end():]
        return found

    def send(self, text):
        os.write(self.fd, text.encode())

    def wait(self):
        while self.read(PATIENCE_S):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self):
        with contextlib.suppress(OSError):
            os.close(self.fd)
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
