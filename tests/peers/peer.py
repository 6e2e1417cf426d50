# SPDX-License-Identifier: Apache-2.0
"""What the judges share: TAP, hogs on the card they see, and the card's own figures to compare with."""

import json
import os
import subprocess
import sys
import time
import traceback

SIMGPU = os.environ["SIMGPU_TEST_PROGRAM"]
MIB = 1 << 20
DEADLINE_S = 60

_count = 0
_failed = 0


def ok(good, name, details=""):
    global _count, _failed
    _count += 1
    print(f"{'ok' if good else 'not ok'} {_count} - {name}", flush=True)
    if not good:
        _failed += 1
        for line in str(details).splitlines():
            print("# " + line, flush=True)
    return good


def same(got, want, name):
    return ok(got == want, name, f"got {got!r}, want {want!r}")


def wait_for(fact):
    """Poll until it holds: nothing here is right because of a sleep."""
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        if fact():
            return True
        time.sleep(0.002)
    return False


def simgpu(*words):
    return subprocess.run([SIMGPU, *words], check=True, capture_output=True, text=True).stdout


def card():
    return json.loads(simgpu("show", "--json"))


class Hog:
    """A process that holds device memory; ready when constructed."""

    def __init__(self, *options):
        self.process = subprocess.Popen([SIMGPU, "hog", *options], stdout=subprocess.PIPE, text=True)
        self.first = self.process.stdout.readline()
        assert self.first.startswith("holding "), self.first
        self.pid = self.process.pid

    def next_count(self):
        for line in self.process.stdout:
            if line.startswith("count "):
                return int(line.split()[1])
        return None

    def status_kib(self, field):
        with open(f"/proc/{self.pid}/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith(field + ":"):
                    return int(line.split()[1])
        return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def judge(*parts):
    """Run each part; an exception is a failure of that part, not the end of the others."""
    for part in parts:
        try:
            part()
        except Exception:  # noqa: BLE001 - whatever a judge throws is a verdict
            ok(False, part.__name__, traceback.format_exc())
    print(f"1..{_count}", flush=True)
    sys.exit(1 if _failed else 0)
