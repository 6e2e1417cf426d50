# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own bindings of the CUDA driver API: memory in this process, the six checkpoint calls on another one."""

import ctypes
import os

from cuda.bindings import driver as d

from peer import MIB, Hog, card, judge, ok, same

OK = d.CUresult.CUDA_SUCCESS


def take(answer):
    """The values behind a success; anything else is thrown."""
    if answer[0] != OK:
        raise RuntimeError(answer[0])
    return answer[1] if len(answer) == 2 else answer[1:]


def devices():
    take(d.cuInit(0))
    same(take(d.cuDriverGetVersion()), 13000, "driver version")
    same(take(d.cuDeviceGetCount()), 2, "devices")
    dev = take(d.cuDeviceGet(0))
    uuid = bytes(take(d.cuDeviceGetUuid(dev)).bytes).hex()
    same(uuid, card()["devices"][0]["uuid"][4:].replace("-", ""), "binary UUID")
    same(take(d.cuDeviceTotalMem(dev)), 3072 * MIB, "total memory")
    ok(take(d.cuDeviceGetName(64, dev)).startswith(b"Simulated GPU"), "name")
    attribute = d.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    same(take(d.cuDeviceGetAttribute(attribute, dev)), 9, "compute capability")


def mine():
    return {p["pid"]: p for p in card()["devices"][0]["processes"]}.get(os.getpid(), {})


def memory():
    context = take(d.cuDevicePrimaryCtxRetain(take(d.cuDeviceGet(0))))
    take(d.cuCtxSetCurrent(context))
    same(take(d.cuMemGetInfo()), (3072 * MIB, 3072 * MIB), "an empty card")
    ptr = take(d.cuMemAlloc(100 * MIB))
    same(mine()["bytes"], 100 * MIB, "cuMemAlloc is in the books")
    data = bytes(range(256)) * 16
    back = bytearray(len(data))
    take(d.cuMemcpyHtoD(ptr, data, len(data)))
    view = (ctypes.c_char * len(back)).from_buffer(back)
    take(d.cuMemcpyDtoH(ctypes.addressof(view), ptr, len(back)))
    same(bytes(back), data, "what goes to the card comes back")
    take(d.cuMemsetD8(ptr, 0x5A, 4096))
    take(d.cuMemcpyDtoH(ctypes.addressof(view), ptr, len(back)))
    same(bytes(back), b"\x5a" * 4096, "cuMemsetD8")
    managed = take(d.cuMemAllocManaged(50 * MIB, 1))
    same((mine()["bytes"], mine()["managed_bytes"]), (100 * MIB, 50 * MIB), "managed memory is kept apart")
    same(take(d.cuMemGetInfo())[0], 2922 * MIB, "but used")
    same(d.cuMemAlloc(4096 * MIB)[0], d.CUresult.CUDA_ERROR_OUT_OF_MEMORY, "too much: 2")
    take(d.cuMemFree(ptr))
    take(d.cuMemFree(managed))
    stream = take(d.cuStreamCreate(0))
    ptr = take(d.cuMemAllocAsync(8 * MIB, stream))
    same(mine()["bytes"], 8 * MIB, "cuMemAllocAsync")
    take(d.cuMemFreeAsync(ptr, stream))
    take(d.cuStreamSynchronize(stream))
    take(d.cuStreamDestroy(stream))
    same(take(d.cuMemGetInfo()), (3072 * MIB, 3072 * MIB), "empty again")


def vmm():
    prop = d.CUmemAllocationProp()
    prop.type = d.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    prop.location.type = d.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    prop.location.id = 1
    grain = take(d.cuMemGetAllocationGranularity(prop, d.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM))
    size = 8 * grain
    base = take(d.cuMemAddressReserve(4 * size, 0, 0, 0))
    before = card()["devices"][1]["used_bytes"]
    first, second = take(d.cuMemCreate(size, prop, 0)), take(d.cuMemCreate(size, prop, 0))
    same(card()["devices"][1]["used_bytes"] - before, 2 * size, "cuMemCreate counts, on the device of its properties")
    take(d.cuMemMap(base, size, 0, first, 0))
    take(d.cuMemMap(int(base) + size, size, 0, second, 0))
    access = d.CUmemAccessDesc()
    access.location = prop.location
    access.flags = d.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    take(d.cuMemSetAccess(base, 2 * size, [access], 1))
    word = (ctypes.c_uint64 * 1)(0x1234567890)
    out = (ctypes.c_uint64 * 1)()
    take(d.cuMemcpyHtoD(int(base) + size + 8, ctypes.addressof(word), 8))
    take(d.cuMemcpyDtoH(ctypes.addressof(out), int(base) + size + 8, 8))
    same(out[0], word[0], "a mapped range can be written and read")
    take(d.cuMemUnmap(base, 2 * size))
    same(card()["devices"][1]["used_bytes"] - before, 2 * size, "unmapping frees nothing")
    take(d.cuMemRelease(first))
    take(d.cuMemRelease(second))
    same(card()["devices"][1]["used_bytes"], before, "releasing does")
    take(d.cuMemAddressFree(base, 4 * size))


def checkpoint():
    State = d.CUprocessState
    with Hog("--alloc", "500M", "--count") as hog:
        count = hog.next_count()
        same(take(d.cuCheckpointProcessGetState(hog.pid)), State.CU_PROCESS_STATE_RUNNING, "running")
        ok(os.path.exists(f"/proc/{hog.pid}/task/{take(d.cuCheckpointProcessGetRestoreThreadId(hog.pid))}"), "restore thread")
        lock = d.CUcheckpointLockArgs()
        lock.timeoutMs = 10000
        take(d.cuCheckpointProcessLock(hog.pid, lock) + (None,))
        same(take(d.cuCheckpointProcessGetState(hog.pid)), State.CU_PROCESS_STATE_LOCKED, "locked")
        before = hog.status_kib("RssAnon")
        take(d.cuCheckpointProcessCheckpoint(hog.pid, d.CUcheckpointCheckpointArgs()) + (None,))
        same(take(d.cuCheckpointProcessGetState(hog.pid)), State.CU_PROCESS_STATE_CHECKPOINTED, "checkpointed")
        grown = hog.status_kib("RssAnon") - before
        ok(500 * 1024 <= grown <= 504 * 1024, "the target's memory grew by what was parked", grown)
        same(card()["devices"][0]["used_bytes"], 0, "the card is empty")
        take(d.cuCheckpointProcessRestore(hog.pid, d.CUcheckpointRestoreArgs()) + (None,))
        same(take(d.cuCheckpointProcessGetState(hog.pid)), State.CU_PROCESS_STATE_LOCKED, "restored: locked")
        take(d.cuCheckpointProcessUnlock(hog.pid, d.CUcheckpointUnlockArgs()) + (None,))
        same(take(d.cuCheckpointProcessGetState(hog.pid)), State.CU_PROCESS_STATE_RUNNING, "unlocked: running")
        ok(hog.next_count() > count, "and it goes on counting")
        same(d.cuCheckpointProcessUnlock(hog.pid, d.CUcheckpointUnlockArgs())[0], d.CUresult.CUDA_ERROR_ILLEGAL_STATE, "401")
    same(d.cuCheckpointProcessLock(2147483646, d.CUcheckpointLockArgs())[0], d.CUresult.CUDA_ERROR_INVALID_VALUE, "no such pid: 1")


def computes_nothing():
    same(d.cuModuleLoadData(b"\0" * 64)[0], d.CUresult.CUDA_ERROR_NOT_SUPPORTED, "loading a program: 801")
    name = take(d.cuGetErrorName(d.CUresult.CUDA_ERROR_NOT_SUPPORTED))
    same(name, b"CUDA_ERROR_NOT_SUPPORTED", "error names")


judge(devices, memory, vmm, checkpoint, computes_nothing)
