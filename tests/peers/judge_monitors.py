# SPDX-License-Identifier: Apache-2.0
"""nvitop and gpustat, as programs and (nvitop) as a library."""

import json
import subprocess
import sys

from peer import MIB, Hog, card, judge, ok, same


def program(*words):
    return subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)


def gpustat():
    with Hog("--alloc", "1500M") as hog, Hog("--alloc", "20M", "--device", "1"):
        done = program("gpustat", "--json")
        if not ok(done.returncode == 0, "gpustat --json ends well", done.stderr):
            return
        gpus = json.loads(done.stdout)["gpus"]
        same([g["memory.used"] for g in gpus], [1500, 20], "gpustat: memory used")
        same([g["memory.total"] for g in gpus], [3072, 3072], "gpustat: memory in all")
        same([g["uuid"] for g in gpus], [d["uuid"] for d in card()["devices"]], "gpustat: UUIDs")
        same([(p["pid"], p["gpu_memory_usage"]) for p in gpus[0]["processes"]], [(hog.pid, 1500)], "gpustat: the process")
        ok("not simulated" not in done.stderr, "gpustat asks nothing that is not simulated", done.stderr)


def nvitop_program():
    with Hog("--alloc", "1500M") as hog:
        done = program("nvitop", "-1", "--colorful", "--only", "0")
        ok(done.returncode == 0, "nvitop -1 ends well", done.stderr)
        done = program("nvitop", "-1")
        ok("1500MiB / 3072MiB" in done.stdout, "nvitop: memory", done.stdout)
        ok(str(hog.pid) in done.stdout and "1500MiB" in done.stdout, "nvitop: the process", done.stdout)
        ok("not simulated" not in done.stderr, "nvitop asks nothing that is not simulated", done.stderr)


def nvitop_library():
    from nvitop import Device

    with Hog("--alloc", "700M") as hog, Hog("--alloc", "30M", "--graphics") as painter:
        device = Device(0)
        same((device.memory_total(), device.memory_used(), device.memory_free()), (3072 * MIB, 730 * MIB, 2342 * MIB), "memory")
        processes = device.processes()
        same(sorted(processes), sorted([hog.pid, painter.pid]), "pids")
        same(processes[hog.pid].gpu_memory(), 700 * MIB, "bytes")
        same((processes[hog.pid].type, processes[painter.pid].type), ("C", "G"), "types")
        same(device.uuid(), card()["devices"][0]["uuid"], "UUID")
        same(Device.driver_version(), "580.95.05", "driver")


judge(gpustat, nvitop_program, nvitop_library)
