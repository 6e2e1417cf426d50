/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * NVML as a struct gpu_ops: libnvidia-ml.so.1 by dlopen, never linked; its symbols as a table, newest name first.
 * Facts and sources of every layout and number here: the GPU fact sheet, part A (nvml.h 11.0 … 13.3 compared).
 *
 * The library exports *old* layouts under unsuffixed names, so a name and the struct it takes go together: where the
 * layout differs, each variant has a slot of its own, tried in order; 13, 25 and 3 at call time mean "try the older one"
 * (a newer library over an older kernel module has the symbol and cannot serve it).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "senses/gpu.h"

enum nvml_rc {
        NVML_SUCCESS = 0,
        NVML_UNINITIALIZED = 1,
        NVML_INVALID_ARGUMENT = 2,
        NVML_NOT_SUPPORTED = 3,
        NVML_NO_PERMISSION = 4,
        NVML_NOT_FOUND = 6,
        NVML_INSUFFICIENT_SIZE = 7,
        NVML_DRIVER_NOT_LOADED = 9,
        NVML_FUNCTION_NOT_FOUND = 13,
        NVML_GPU_IS_LOST = 15,
        NVML_RESET_REQUIRED = 16,
        NVML_OPERATING_SYSTEM = 17, /* a device cgroup hides the node */
        NVML_LIB_RM_VERSION_MISMATCH = 18,
        NVML_ARGUMENT_VERSION_MISMATCH = 25,
};

typedef void *nvml_handle;

/* 68 bytes in v3; only the first 28 are the same in every version, and only those are read. */
struct nvml_pci_info {
        char bus_id_legacy[16];
        uint32_t domain, bus, device, pci_device_id;
        uint8_t rest[64];
};

struct nvml_memory_v1 {
        uint64_t total, free, used;
};

struct nvml_memory_v2 {
        uint32_t version; /* NVML_MEMORY_V2_VERSION, else 25 */
        uint32_t padding;
        uint64_t total, reserved, free, used;
};

#define NVML_MEMORY_V2_VERSION ((uint32_t) (sizeof(struct nvml_memory_v2) | (2U << 24)))

/* v1: the unsuffixed functions. v2 and v3 share the second layout. */
struct nvml_process_v1 {
        uint32_t pid;
        uint32_t padding;
        uint64_t used;
};

struct nvml_process_v2 {
        uint32_t pid;
        uint32_t padding;
        uint64_t used;
        uint32_t gpu_instance, compute_instance; /* all ones without MIG */
};

enum { NVML_LIST_COMPUTE, NVML_LIST_GRAPHICS, NVML_LIST_MPS, NVML_LIST_N };
enum { NVML_LIST_V3, NVML_LIST_V2, NVML_LIST_V1, NVML_LIST_VERSION_N };

/* Of nvmlDeviceGetProcessUtilization; who did nothing has none, or one of zeros. */
struct nvml_sample_v1 {
        uint32_t pid;
        uint32_t padding;
        uint64_t at_us;
        uint32_t sm, memory, encoder, decoder; /* percent */
};

/* Of nvmlDeviceGetProcessesUtilizationInfo. */
struct nvml_sample_v2 {
        uint64_t at_us;
        uint32_t pid, sm, memory, encoder, decoder, jpeg, ofa;
        uint32_t padding;
};

struct nvml_samples {
        uint32_t version; /* NVML_SAMPLES_VERSION, else 25 */
        uint32_t n;
        uint64_t since_us;
        void *entries;
};

#define NVML_SAMPLES_VERSION ((uint32_t) (sizeof(struct nvml_samples) | (1U << 24)))

typedef int (*nvml_list_fn)(nvml_handle, unsigned *count, void *entries);

struct nvml_symbols {
        int (*init)(void);
        int (*shutdown)(void);
        int (*driver_version)(char *, unsigned);
        int (*device_count)(unsigned *);
        int (*device_by_index)(unsigned, nvml_handle *);
        int (*uuid)(nvml_handle, char *, unsigned);
        int (*name)(nvml_handle, char *, unsigned);
        int (*minor)(nvml_handle, unsigned *);
        int (*pci_info)(nvml_handle, struct nvml_pci_info *);
        int (*memory_v2)(nvml_handle, struct nvml_memory_v2 *);
        int (*memory_v1)(nvml_handle, struct nvml_memory_v1 *);
        nvml_list_fn list[NVML_LIST_N][NVML_LIST_VERSION_N];
        int (*samples_v2)(nvml_handle, struct nvml_samples *);
        int (*samples_v1)(nvml_handle, void *, unsigned *, uint64_t);
        int (*mig_mode)(nvml_handle, unsigned *, unsigned *);
        int (*mig_max_count)(nvml_handle, unsigned *);
        int (*mig_by_index)(nvml_handle, unsigned, nvml_handle *);
};

struct nvml_device {
        char uuid[EYES_UUID_SIZE];
        nvml_handle handle;
        bool mig_parent;
};

struct nvml {
        void *library;            /* of dlopen; NULL when not open, or when a test gave the symbols */
        const char *library_name; /* NULL: libnvidia-ml.so.1 */
        struct nvml_symbols sym;
        bool symbols_given; /* a test filled @sym: start() does not look for a library */
        bool initialised;
        bool prefer_list_v2; /* R535 wrote 32-byte entries through _v3 (535.43 … 535.86) */
        uint32_t n_devices;
        struct nvml_device devices[EYES_DEVICES_MAX];
        void *entries; /* buffer of the process lists */
        unsigned entries_cap;
        void *samples; /* of the samples of work */
        unsigned samples_cap;
};

/* read_work of struct gpu_ops (nvml_work.c). */
struct gpu_status nvml_read_work(void *gpu, const char *uuid, struct gpu_work *work);
const struct nvml_device *nvml_find(const struct nvml *nvml, const char *uuid);

extern const struct gpu_ops nvml_ops; /* its @gpu is a struct nvml, zeroed at first */

/*
 * nvml_resolve - fill the symbol table
 * @lookup       dlsym() or a test's stand-in; NULL = no such symbol
 * @ret_missing  set on failure: the newest name of a required symbol nobody has
 * -ENOSYS when a required one is missing. Optional ones stay NULL.
 */
int nvml_resolve(struct nvml_symbols *ret, void *(*lookup)(void *ctx, const char *name), void *ctx,
                 const char **ret_missing);

/* What an NVML result means, and its name for people ("GPU_IS_LOST"). */
enum eyes_error nvml_error_of(int rc);
const char *nvml_rc_name(int rc);

/* As sysfs writes it: 4 digits of domain, lower case, "0000:65:00.0". NVML's own text has 8. */
void nvml_bus_id(const struct nvml_pci_info *pci, char ret_id[EYES_BUS_ID_SIZE]);
