# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own Python binding of NVML: totals, processes, settings, errors."""

import pynvml as n

from peer import MIB, Hog, card, judge, ok, same, simgpu


def fails(code, call, *args):
    try:
        call(*args)
    except n.NVMLError as error:
        return error.value == code
    return False


def handle(i=0):
    return n.nvmlDeviceGetHandleByIndex(i)


def system():
    n.nvmlInit()
    same(n.nvmlSystemGetDriverVersion(), "580.95.05", "driver version")
    same(n.nvmlSystemGetCudaDriverVersion(), 13000, "CUDA version")
    same(n.nvmlDeviceGetCount(), 2, "two devices")
    devices = card()["devices"]
    for i in (0, 1):
        same(n.nvmlDeviceGetUUID(handle(i)), devices[i]["uuid"], f"UUID of device {i}")
        same(n.nvmlDeviceGetMinorNumber(handle(i)), i, f"minor number of device {i}")
    same(n.nvmlDeviceGetName(handle()), "Simulated GPU", "name")
    same(n.nvmlDeviceGetPciInfo(handle(1)).busId, "00000000:66:00.0", "PCI bus id")
    by_uuid = n.nvmlDeviceGetHandleByUUID(devices[1]["uuid"])
    same(n.nvmlDeviceGetIndex(by_uuid), 1, "handle by UUID")
    ok(fails(n.NVML_ERROR_NOT_FOUND, n.nvmlDeviceGetHandleByUUID, "GPU-nobody"), "unknown UUID: 6")
    ok(fails(n.NVML_ERROR_INVALID_ARGUMENT, handle, 9), "no such index: 2")


def memory():
    with Hog("--alloc", "1500M") as hog, Hog("--alloc", "200M") as other:
        for version, name in ((None, "v1"), (n.nvmlMemory_v2, "v2")):
            info = n.nvmlDeviceGetMemoryInfo(handle(), version) if version else n.nvmlDeviceGetMemoryInfo(handle())
            same((info.total, info.total - info.free), (3072 * MIB, 1700 * MIB), f"memory {name}: total and used")
        for call in (n.nvmlDeviceGetComputeRunningProcesses_v2, n.nvmlDeviceGetComputeRunningProcesses_v3):
            got = sorted((p.pid, p.usedGpuMemory) for p in call(handle()))
            same(got, sorted([(hog.pid, 1500 * MIB), (other.pid, 200 * MIB)]), f"{call.__name__}: pids and bytes")
        same(n.nvmlDeviceGetComputeRunningProcesses(handle(1)), [], "nobody on the other device")
        same(n.nvmlDeviceGetGraphicsRunningProcesses(handle()), [], "nobody draws")
        detail = n.nvmlDeviceGetRunningProcessDetailList(handle(), n.nvmlProcessDetailList_v1, 0)
        same(len(detail), 2, "detail list")
        ok(n.nvmlSystemGetProcessName(hog.pid).endswith("simgpu"), "process name")
        simgpu("fault", "unknown-memory")
        same([p.usedGpuMemory for p in n.nvmlDeviceGetComputeRunningProcesses(handle())], [None, None], "unknown memory is None")
        simgpu("fault", "clear")
    same(n.nvmlDeviceGetComputeRunningProcesses(handle()), [], "all gone")
    same(n.nvmlDeviceGetMemoryInfo(handle()).used, 0, "and nothing used")


def settings():
    h = handle()
    same(n.nvmlDeviceGetPowerManagementLimitConstraints(h), [200000, 700000], "power limits")
    n.nvmlDeviceSetPowerManagementLimit(h, 450000)
    same(n.nvmlDeviceGetPowerManagementLimit(h), 450000, "power limit kept")
    ok(fails(n.NVML_ERROR_INVALID_ARGUMENT, n.nvmlDeviceSetPowerManagementLimit, h, 1), "out of range: 2")
    n.nvmlDeviceSetGpuLockedClocks(h, 900, 1200)
    same(n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_GRAPHICS), 900, "locked clock")
    n.nvmlDeviceResetGpuLockedClocks(h)
    memory_clocks = n.nvmlDeviceGetSupportedMemoryClocks(h)
    ok(len(n.nvmlDeviceGetSupportedGraphicsClocks(h, memory_clocks[0])) > 1, "supported clocks")
    n.nvmlDeviceSetAccountingMode(h, 1)
    with Hog("--alloc", "64M") as hog:
        same(n.nvmlDeviceGetAccountingPids(h), [hog.pid], "accounting pids")
        same(n.nvmlDeviceGetAccountingStats(h, hog.pid).maxMemoryUsage, 64 * MIB, "accounting memory")
    same(n.nvmlDeviceGetPersistenceMode(h), 1, "persistence")
    values = n.nvmlDeviceGetFieldValues(h, [n.NVML_FI_DEV_POWER_INSTANT, n.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])
    same([v.nvmlReturn for v in values], [0, 0], "field values")


def answers_no():
    h = handle()
    ok(fails(n.NVML_ERROR_NOT_SUPPORTED, n.nvmlDeviceGetMigMode, h), "MIG: 3")
    ok(fails(n.NVML_ERROR_NOT_SUPPORTED, n.nvmlDeviceGetFanSpeed, h), "fans: 3")
    ok(fails(n.NVML_ERROR_NOT_FOUND, n.nvmlDeviceGetProcessUtilization, h, 0), "no samples: 6")
    ok(fails(n.NVML_ERROR_NOT_SUPPORTED, n.nvmlDeviceGetRowRemapperHistogram, h), "an unsimulated name: 3")
    simgpu("fault", "nvml-error", "15", "--symbol", "nvmlDeviceGetUtilizationRates")
    ok(fails(n.NVML_ERROR_GPU_IS_LOST, n.nvmlDeviceGetUtilizationRates, h), "a fault reaches the binding")
    simgpu("fault", "clear")


def events():
    event_set = n.nvmlEventSetCreate()
    n.nvmlDeviceRegisterEvents(handle(1), n.nvmlEventTypeXidCriticalError, event_set)
    ok(fails(n.NVML_ERROR_TIMEOUT, n.nvmlEventSetWait_v2, event_set, 1), "no event: 10")
    simgpu("fault", "xid", "79", "--device", "1")
    event = n.nvmlEventSetWait_v2(event_set, 5000)
    same((event.eventType, event.eventData), (8, 79), "XID 79")
    n.nvmlEventSetFree(event_set)
    n.nvmlShutdown()


judge(system, memory, settings, answers_no, events)
