# SPDX-License-Identifier: Apache-2.0
"""The calls of a hand-over and nothing else: bare.py PID ROUNDS, with the driver's library to be found. Prints when each round
began and ended (CLOCK_MONOTONIC, ns), as JSON."""

import ctypes
import json
import os
import signal
import sys
import time


def is_stopped(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


def main():
    pid, rounds = int(sys.argv[1]), int(sys.argv[2])
    cuda = ctypes.CDLL("libcuda.so.1")
    nothing = (ctypes.c_uint32 * 16)()

    def call(name):
        code = getattr(cuda, f"cuCheckpointProcess{name}")(pid, nothing)
        if code != 0:
            raise SystemExit(f"bare: {name} of {pid} answers {code}")
    rows = []
    for _ in range(rounds):
        row = {"request_ns": time.monotonic_ns()}
        call("Lock")
        call("Checkpoint")
        os.kill(pid, signal.SIGSTOP)
        while not is_stopped(pid):
            pass
        row["granted_ns"] = time.monotonic_ns()
        time.sleep(0.02)
        row["release_ns"] = time.monotonic_ns()
        os.kill(pid, signal.SIGCONT)
        call("Restore")
        call("Unlock")
        row["active_ns"] = time.monotonic_ns()
        rows.append(row)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
