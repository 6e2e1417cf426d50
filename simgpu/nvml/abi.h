/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* clang-format off: one layout a line, fields beside each other, as a table is read */

/* abi - types and numbers of NVML that simgpu needs, written down from the facts of the ABI */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NVML_EXPORT __attribute__((visibility("default")))
/* Declaration and definition in one, since no header of NVIDIA's is used: NVML(nvmlReturn_t, nvmlFoo, (int a)) { … } */
#define NVML(name, args)                                                                                               \
        NVML_EXPORT nvmlReturn_t name args;                                                                            \
        nvmlReturn_t name args

typedef int nvmlReturn_t;
typedef struct nvml_device *nvmlDevice_t;
typedef struct nvml_event_set *nvmlEventSet_t;

enum {
        NVML_OK = 0,
        NVML_UNINITIALIZED = 1,
        NVML_INVALID_ARGUMENT = 2,
        NVML_NOT_SUPPORTED = 3,
        NVML_NO_PERMISSION = 4,
        NVML_NOT_FOUND = 6,
        NVML_INSUFFICIENT_SIZE = 7,
        NVML_DRIVER_NOT_LOADED = 9,
        NVML_TIMEOUT = 10,
        NVML_FUNCTION_NOT_FOUND = 13,
        NVML_GPU_IS_LOST = 15,
        NVML_ARGUMENT_VERSION_MISMATCH = 25,
        NVML_UNKNOWN = 999,
};

/* A versioned struct starts with its size and version; anything else is refused before a byte is written. */
#define VERSION_WORD(type, version) ((uint32_t) (sizeof(type) | ((version) << 24)))
#define SIZE_IS(type, n) _Static_assert(sizeof(type) == (n), "size of " #type)
#define FIELD_AT(type, field, n) _Static_assert(offsetof(type, field) == (n), "place of " #type "." #field)

typedef struct {
        uint64_t total, free, used;
} nvmlMemory_t;
SIZE_IS(nvmlMemory_t, 24);
typedef struct {
        uint32_t version;
        uint64_t total, reserved, free, used;
} nvmlMemory_v2_t;
SIZE_IS(nvmlMemory_v2_t, 40);
FIELD_AT(nvmlMemory_v2_t, total, 8);
FIELD_AT(nvmlMemory_v2_t, used, 32);

typedef struct {
        uint32_t pid;
        uint64_t used;
} nvmlProcessInfo_v1_t;
SIZE_IS(nvmlProcessInfo_v1_t, 16);
typedef struct {
        uint32_t pid;
        uint64_t used;
        uint32_t gi, ci;
} nvmlProcessInfo_v2_t;
SIZE_IS(nvmlProcessInfo_v2_t, 24);
FIELD_AT(nvmlProcessInfo_v2_t, gi, 16);
/* What R535.43-535.86 wrote for _v3, and the entry of the detail list. */
typedef struct {
        uint32_t pid;
        uint64_t used;
        uint32_t gi, ci;
        uint64_t protected_used;
} nvmlProcessDetail_v1_t;
SIZE_IS(nvmlProcessDetail_v1_t, 32);
typedef struct {
        uint32_t version, mode, n;
        nvmlProcessDetail_v1_t *procs;
} nvmlProcessDetailList_t;
SIZE_IS(nvmlProcessDetailList_t, 24);
FIELD_AT(nvmlProcessDetailList_t, procs, 16);

typedef struct {
        char bus_id_legacy[16];
        uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
        char bus_id[32];
} nvmlPciInfo_t;
SIZE_IS(nvmlPciInfo_t, 68);
FIELD_AT(nvmlPciInfo_t, bus_id, 36);
typedef struct {
        uint32_t version, domain, bus, device, pci_device_id, pci_subsystem_id, base_class, sub_class;
        char bus_id[32];
} nvmlPciInfoExt_t;
SIZE_IS(nvmlPciInfoExt_t, 64);

typedef struct {
        uint32_t gpu, memory;
} nvmlUtilization_t;
typedef struct {
        uint32_t pid;
        uint64_t at_us;
        uint32_t sm, memory, encoder, decoder;
} nvmlProcessUtilization_t;
SIZE_IS(nvmlProcessUtilization_t, 32);
typedef struct {
        uint64_t at_us;
        uint32_t pid, sm, memory, encoder, decoder, jpeg, ofa;
} nvmlProcessUtilizationInfo_t;
SIZE_IS(nvmlProcessUtilizationInfo_t, 40);
FIELD_AT(nvmlProcessUtilizationInfo_t, sm, 12);
typedef struct {
        uint32_t version, n;
        uint64_t last_seen_us;
        void *procs;
} nvmlProcessesUtilization_t;
SIZE_IS(nvmlProcessesUtilization_t, 24);
typedef struct {
        uint32_t gpu_utilization, memory_utilization;
        uint64_t max_memory, time_ms, start_us;
        uint32_t is_running, reserved[5];
} nvmlAccountingStats_t;
SIZE_IS(nvmlAccountingStats_t, 56);
FIELD_AT(nvmlAccountingStats_t, is_running, 32);

typedef struct {
        uint32_t version, type, pstate;
        int32_t offset_mhz, min_mhz, max_mhz;
} nvmlClockOffset_t;
SIZE_IS(nvmlClockOffset_t, 24);
typedef struct {
        uint32_t version;
        uint8_t scope;
        uint32_t mw;
} nvmlPowerValue_t;
SIZE_IS(nvmlPowerValue_t, 12);
FIELD_AT(nvmlPowerValue_t, mw, 8);
typedef struct {
        uint32_t version, sensor;
        int32_t celsius;
} nvmlTemperature_t;
SIZE_IS(nvmlTemperature_t, 12);
typedef struct {
        uint32_t version;
        int32_t celsius;
} nvmlMarginTemperature_t;
SIZE_IS(nvmlMarginTemperature_t, 8);
typedef struct {
        uint32_t field, scope;
        int64_t at_us, latency_us;
        uint32_t value_type;
        nvmlReturn_t rc;
        union {
                double d;
                uint32_t ui;
                uint64_t ull;
                int32_t si;
        } value;
} nvmlFieldValue_t;
SIZE_IS(nvmlFieldValue_t, 40);
FIELD_AT(nvmlFieldValue_t, rc, 28);
typedef struct {
        nvmlDevice_t device;
        uint64_t type, data;
        uint32_t gi, ci;
} nvmlEventData_t;
SIZE_IS(nvmlEventData_t, 32);
FIELD_AT(nvmlEventData_t, gi, 24);
typedef struct {
        uint64_t total, free, used;
} nvmlBAR1Memory_t;
