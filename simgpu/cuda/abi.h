/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* clang-format off: one layout a line, fields beside each other, as a table is read */

/* abi - types and numbers of the CUDA driver API that simgpu needs, written down from the facts of the ABI (x86-64, aarch64) */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUDA_EXPORT __attribute__((visibility("default")))

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct cuda_context *CUcontext;
typedef struct cuda_stream *CUstream;
typedef struct cuda_event *CUevent;
typedef struct cuda_pool *CUmemoryPool;
typedef unsigned long long CUmemGenericAllocationHandle;

enum {
        CUDA_OK = 0,
        CUDA_INVALID_VALUE = 1,
        CUDA_OUT_OF_MEMORY = 2,
        CUDA_NOT_INITIALIZED = 3,
        CUDA_DEVICE_UNAVAILABLE = 46,
        CUDA_NO_DEVICE = 100,
        CUDA_INVALID_DEVICE = 101,
        CUDA_INVALID_CONTEXT = 201,
        CUDA_OPERATING_SYSTEM = 304,
        CUDA_INVALID_HANDLE = 400,
        CUDA_ILLEGAL_STATE = 401,
        CUDA_NOT_FOUND = 500,
        CUDA_NOT_READY = 600,
        CUDA_PRIMARY_CONTEXT_ACTIVE = 708,
        CUDA_NOT_PERMITTED = 800,
        CUDA_NOT_SUPPORTED = 801,
        CUDA_UNKNOWN = 999,
};

typedef struct {
        unsigned char bytes[16];
} CUuuid;

typedef struct {
        int type;
        int id;
} CUmemLocation; /* type 1 = device */
typedef struct {
        int type;
        int requested_handle_types;
        CUmemLocation location;
        void *win32;
        unsigned char flags[8];
} CUmemAllocationProp;
_Static_assert(sizeof(CUmemAllocationProp) == 32 && offsetof(CUmemAllocationProp, location) == 8, "the ABI says so");

typedef struct {
        unsigned timeoutMs;
        unsigned reserved0;
        uint64_t reserved1[7];
} CUcheckpointLockArgs;
typedef struct {
        uint64_t reserved[8];
} CUcheckpointCheckpointArgs;
typedef struct {
        CUuuid oldUuid, newUuid;
} CUcheckpointGpuPair;
typedef struct {
        CUcheckpointGpuPair *gpuPairs;
        unsigned gpuPairsCount;
        char reserved[44];
        uint64_t reserved1;
} CUcheckpointRestoreArgs;
typedef struct {
        uint64_t reserved[8];
} CUcheckpointUnlockArgs;
_Static_assert(sizeof(CUcheckpointLockArgs) == 64 && sizeof(CUcheckpointCheckpointArgs) == 64, "the ABI says so");
_Static_assert(sizeof(CUcheckpointRestoreArgs) == 64 && sizeof(CUcheckpointUnlockArgs) == 64, "the ABI says so");
_Static_assert(offsetof(CUcheckpointRestoreArgs, gpuPairsCount) == 8 &&
                       offsetof(CUcheckpointRestoreArgs, reserved1) == 56,
               "the ABI says so");
_Static_assert(sizeof(CUcheckpointGpuPair) == 32, "the ABI says so");

enum { CU_GET_PROC_ADDRESS_FOUND = 0, CU_GET_PROC_ADDRESS_NOT_FOUND = 1, CU_GET_PROC_ADDRESS_TOO_OLD = 2 };
