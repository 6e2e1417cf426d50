# SPDX-License-Identifier: Apache-2.0
"""Older releases of NVIDIA's binding on cards that play the drivers of their time: 16- and 32-byte rows of processes."""

import os
import sys

from peer import MIB, Hog, card, judge, ok, same

sys.path.insert(0, os.path.join(os.environ["PEER_VENV"], card()["abi"]))
import pynvml as n  # noqa: E402 - the old one, from the folder above


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def whole():
    n.nvmlInit()
    ok(os.environ["PEER_VENV"] in n.__file__ and os.sep + card()["abi"] + os.sep in n.__file__, "the old binding is under test", n.__file__)
    same(text(n.nvmlSystemGetDriverVersion()), card()["driver"], "driver version")
    h = n.nvmlDeviceGetHandleByIndex(0)
    same(text(n.nvmlDeviceGetUUID(h)), card()["devices"][0]["uuid"], "UUID")
    with Hog("--alloc", "1G") as a, Hog("--alloc", "300M") as b, Hog("--alloc", "20M") as c:
        got = sorted((p.pid, p.usedGpuMemory) for p in n.nvmlDeviceGetComputeRunningProcesses(h))
        want = sorted([(a.pid, 1024 * MIB), (b.pid, 300 * MIB), (c.pid, 20 * MIB)])
        same(got, want, "three processes, none of them garbage")
        info = n.nvmlDeviceGetMemoryInfo(h)
        same((info.total, info.used, info.free), (3072 * MIB, 1344 * MIB, 1728 * MIB), "memory")
    same(n.nvmlDeviceGetComputeRunningProcesses(h), [], "all gone")
    n.nvmlShutdown()


judge(whole)
