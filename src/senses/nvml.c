/* SPDX-License-Identifier: Apache-2.0 */
#include "senses/nvml.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(struct nvml_memory_v2) == 40 && NVML_MEMORY_V2_VERSION == 0x02000028, "nvmlMemory_v2_t");
static_assert(sizeof(struct nvml_memory_v1) == 24, "nvmlMemory_t");
static_assert(sizeof(struct nvml_process_v1) == 16 && sizeof(struct nvml_process_v2) == 24, "nvmlProcessInfo_t");
static_assert(sizeof(struct nvml_pci_info) >= 68, "nvmlPciInfo_t");

/* ---- symbols ---- */

enum { NAMES_MAX = 3 };

struct symbol {
        size_t offset;
        bool required;
        const char *names[NAMES_MAX]; /* newest first; all of one layout */
};

#define SYM(member) offsetof(struct nvml_symbols, member)
#define LISTS(list_index, base)                                                                                        \
        { SYM(list[list_index][NVML_LIST_V3]), false, { base "_v3" } },                                                \
                { SYM(list[list_index][NVML_LIST_V2]), false, { base "_v2" } },                                        \
        {                                                                                                              \
                SYM(list[list_index][NVML_LIST_V1]), false,                                                            \
                {                                                                                                      \
                        base                                                                                           \
                }                                                                                                      \
        }

static const struct symbol symbols[] = {
        { SYM(init), true, { "nvmlInit_v2", "nvmlInit" } },
        { SYM(shutdown), true, { "nvmlShutdown" } },
        { SYM(driver_version), false, { "nvmlSystemGetDriverVersion" } },
        { SYM(device_count), true, { "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount" } },
        { SYM(device_by_index), true, { "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex" } },
        { SYM(uuid), true, { "nvmlDeviceGetUUID" } },
        { SYM(name), false, { "nvmlDeviceGetName" } },
        { SYM(minor), false, { "nvmlDeviceGetMinorNumber" } },
        { SYM(pci_info), false, { "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo" } },
        { SYM(memory_v2), false, { "nvmlDeviceGetMemoryInfo_v2" } },
        { SYM(memory_v1), true, { "nvmlDeviceGetMemoryInfo" } },
        LISTS(NVML_LIST_COMPUTE, "nvmlDeviceGetComputeRunningProcesses"),
        LISTS(NVML_LIST_GRAPHICS, "nvmlDeviceGetGraphicsRunningProcesses"),
        LISTS(NVML_LIST_MPS, "nvmlDeviceGetMPSComputeRunningProcesses"),
        { SYM(samples_v2), false, { "nvmlDeviceGetProcessesUtilizationInfo" } },
        { SYM(samples_v1), false, { "nvmlDeviceGetProcessUtilization" } },
        { SYM(mig_mode), false, { "nvmlDeviceGetMigMode" } },
        { SYM(mig_max_count), false, { "nvmlDeviceGetMaxMigDeviceCount" } },
        { SYM(mig_by_index), false, { "nvmlDeviceGetMigDeviceHandleByIndex" } },
};

int nvml_resolve(struct nvml_symbols *ret, void *(*lookup)(void *ctx, const char *name), void *ctx,
                 const char **ret_missing)
{
        struct nvml_symbols found;

        memset(&found, 0, sizeof(found));
        for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
                const struct symbol *s = &symbols[i];
                void *address = NULL;

                for (size_t k = 0; k < NAMES_MAX && s->names[k] && !address; k++)
                        address = lookup(ctx, s->names[k]);
                if (!address && s->required) {
                        *ret_missing = s->names[0];
                        return -ENOSYS;
                }
                memcpy((char *) &found + s->offset, &address, sizeof(address));
        }
        *ret = found;
        return 0;
}

static void *lookup_in_library(void *library, const char *name)
{
        return dlsym(library, name);
}

/* ---- results ---- */

enum eyes_error nvml_error_of(int rc)
{
        switch (rc) {
        case NVML_SUCCESS:
                return EYES_ERROR_NONE;
        case NVML_NOT_SUPPORTED:
                return EYES_ERROR_NOT_SUPPORTED;
        case NVML_NO_PERMISSION:
        case NVML_OPERATING_SYSTEM:
                return EYES_ERROR_NO_PERMISSION;
        case NVML_GPU_IS_LOST:
        case NVML_RESET_REQUIRED:
                return EYES_ERROR_LOST;
        case NVML_FUNCTION_NOT_FOUND:
                return EYES_ERROR_NO_SYMBOL;
        default:
                return EYES_ERROR_OTHER;
        }
}

const char *nvml_rc_name(int rc)
{
        static const char *const names[] = {
                "SUCCESS",
                "UNINITIALIZED",
                "INVALID_ARGUMENT",
                "NOT_SUPPORTED",
                "NO_PERMISSION",
                "ALREADY_INITIALIZED",
                "NOT_FOUND",
                "INSUFFICIENT_SIZE",
                "INSUFFICIENT_POWER",
                "DRIVER_NOT_LOADED",
                "TIMEOUT",
                "IRQ_ISSUE",
                "LIBRARY_NOT_FOUND",
                "FUNCTION_NOT_FOUND",
                "CORRUPTED_INFOROM",
                "GPU_IS_LOST",
                "RESET_REQUIRED",
                "OPERATING_SYSTEM",
                "LIB_RM_VERSION_MISMATCH",
                "IN_USE",
                "MEMORY",
                "NO_DATA",
                "VGPU_ECC_NOT_SUPPORTED",
                "INSUFFICIENT_RESOURCES",
                "FREQ_NOT_SUPPORTED",
                "ARGUMENT_VERSION_MISMATCH",
                "DEPRECATED",
                "NOT_READY",
                "GPU_NOT_FOUND",
                "INVALID_STATE",
                "RESET_TYPE_NOT_SUPPORTED",
        };
        return rc >= 0 && (size_t) rc < sizeof(names) / sizeof(*names) ? names[rc] : "UNKNOWN";
}

static struct gpu_status status_of(int rc)
{
        return (struct gpu_status){ .error = nvml_error_of(rc), .rc = rc };
}

static bool means_try_older(int rc)
{
        return rc == NVML_FUNCTION_NOT_FOUND || rc == NVML_ARGUMENT_VERSION_MISMATCH || rc == NVML_NOT_SUPPORTED;
}

/* ---- start and stop ---- */

static void nvml_stop(void *gpu)
{
        struct nvml *nv = gpu;

        if (nv->initialised)
                (void) nv->sym.shutdown();
        nv->initialised = false;
        nv->n_devices = 0;
        free(nv->entries);
        nv->entries = NULL;
        nv->entries_cap = 0;
        free(nv->samples);
        nv->samples = NULL;
        nv->samples_cap = 0;
}

static void close_library(struct nvml *nv)
{
        if (nv->library)
                (void) dlclose(nv->library);
        nv->library = NULL;
        memset(&nv->sym, 0, sizeof(nv->sym));
}

static bool open_library(struct nvml *nv, struct gpu_driver *ret)
{
        const char *name = nv->library_name ? nv->library_name : "libnvidia-ml.so.1";
        const char *missing = NULL;

        nv->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (!nv->library) {
                ret->state = EYES_DRIVER_NO_LIBRARY;
                (void) snprintf(ret->words, sizeof(ret->words),
                                "%s cannot be opened: no NVIDIA driver is installed here", name);
                return false;
        }
        if (nvml_resolve(&nv->sym, lookup_in_library, nv->library, &missing) < 0) {
                ret->state = EYES_DRIVER_OLD_LIBRARY;
                (void) snprintf(ret->words, sizeof(ret->words), "%s has no %s: this driver is too old", name, missing);
                close_library(nv);
                return false;
        }
        return true;
}

static enum eyes_driver_state state_of_init(int rc)
{
        switch (rc) {
        case NVML_SUCCESS:
                return EYES_DRIVER_OK;
        case NVML_DRIVER_NOT_LOADED:
                return EYES_DRIVER_NOT_LOADED;
        case NVML_LIB_RM_VERSION_MISMATCH:
                return EYES_DRIVER_MISMATCH;
        default:
                return EYES_DRIVER_FAILED;
        }
}

/*
 * Initialises once. Called again only after a real need; then the library is opened anew as well, because after an
 * upgrade (18) the file on disk is another one. Every start closes what the one before opened, so descriptors do not grow.
 */
static void nvml_start(void *gpu, struct gpu_driver *ret)
{
        struct nvml *nv = gpu;

        memset(ret, 0, sizeof(*ret));
        nvml_stop(nv);
        if (!nv->symbols_given) {
                close_library(nv);
                if (!open_library(nv, ret))
                        return;
        }
        ret->rc = nv->sym.init();
        ret->state = state_of_init(ret->rc);
        if (ret->state != EYES_DRIVER_OK) {
                (void) snprintf(ret->words, sizeof(ret->words), "NVML does not start: %s (%d)%s", nvml_rc_name(ret->rc),
                                ret->rc,
                                ret->state == EYES_DRIVER_MISMATCH
                                        ? "; the driver was upgraded, reboot to load the new one"
                                        : "");
                return;
        }
        nv->initialised = true;
        if (nv->sym.driver_version && nv->sym.driver_version(ret->version, sizeof(ret->version)) != NVML_SUCCESS)
                ret->version[0] = '\0';
        ret->version[sizeof(ret->version) - 1] = '\0';
        nv->prefer_list_v2 = strncmp(ret->version, "535.", 4) == 0;
}

/* ---- devices ---- */

void nvml_bus_id(const struct nvml_pci_info *pci, char ret_id[EYES_BUS_ID_SIZE])
{
        (void) snprintf(ret_id, EYES_BUS_ID_SIZE, "%04x:%02x:%02x.0", pci->domain, pci->bus, pci->device);
}

static bool uuid_is_sane(const char *uuid)
{
        if (strncmp(uuid, "GPU-", 4) != 0 && strncmp(uuid, "MIG-", 4) != 0)
                return false;
        for (const char *p = uuid; *p; p++)
                if (*p <= ' ' || *p > '~')
                        return false;
        return true;
}

const struct nvml_device *nvml_find(const struct nvml *nv, const char *uuid)
{
        for (uint32_t i = 0; i < nv->n_devices; i++)
                if (strcmp(nv->devices[i].uuid, uuid) == 0)
                        return &nv->devices[i];
        return NULL;
}

static struct gpu_status read_memory_of(const struct nvml *nv, nvml_handle handle, struct gpu_memory *ret)
{
        struct nvml_memory_v2 v2 = { .version = NVML_MEMORY_V2_VERSION };
        struct nvml_memory_v1 v1 = { 0 };

        int rc = nv->sym.memory_v2 ? nv->sym.memory_v2(handle, &v2) : NVML_FUNCTION_NOT_FOUND;
        if (rc == NVML_SUCCESS) {
                *ret = (struct gpu_memory){ .total_bytes = v2.total, .free_bytes = v2.free };
                return status_of(rc);
        }
        if (!means_try_older(rc))
                return status_of(rc);
        rc = nv->sym.memory_v1(handle, &v1);
        if (rc == NVML_SUCCESS)
                *ret = (struct gpu_memory){ .total_bytes = v1.total, .free_bytes = v1.free };
        return status_of(rc);
}

/* False when it has no UUID to be named by, or no room: then it is hidden. */
static bool describe(struct nvml *nv, nvml_handle handle, struct eyes_device *dev)
{
        struct nvml_pci_info pci;

        memset(dev, 0, sizeof(*dev));
        memset(&pci, 0, sizeof(pci));
        if (nv->n_devices == EYES_DEVICES_MAX || nv->sym.uuid(handle, dev->uuid, sizeof(dev->uuid)) != NVML_SUCCESS)
                return false;
        dev->uuid[sizeof(dev->uuid) - 1] = '\0';
        if (!uuid_is_sane(dev->uuid) || nvml_find(nv, dev->uuid))
                return false;
        if (nv->sym.name && nv->sym.name(handle, dev->name, sizeof(dev->name)) != NVML_SUCCESS)
                dev->name[0] = '\0';
        dev->name[sizeof(dev->name) - 1] = '\0';
        if (nv->sym.pci_info && nv->sym.pci_info(handle, &pci) == NVML_SUCCESS)
                nvml_bus_id(&pci, dev->bus_id);
        unsigned minor = 0;
        if (nv->sym.minor && nv->sym.minor(handle, &minor) == NVML_SUCCESS) {
                dev->minor_known = true;
                dev->minor = minor;
        }

        struct nvml_device *kept = &nv->devices[nv->n_devices++];
        memcpy(kept->uuid, dev->uuid, sizeof(kept->uuid));
        kept->handle = handle;
        kept->mig_parent = false;
        return true;
}

static bool is_mig_parent(const struct nvml *nv, nvml_handle handle)
{
        unsigned current = 0, pending = 0;
        return nv->sym.mig_mode && nv->sym.mig_mode(handle, &current, &pending) == NVML_SUCCESS && current == 1;
}

/* The instances of one card. Indices may have holes: go on to the maximum. */
static void enumerate_instances(struct nvml *nv, nvml_handle parent, const struct eyes_device *parent_dev,
                                struct eyes_device *devices, uint32_t *n)
{
        unsigned max = 0;

        if (!nv->sym.mig_max_count || !nv->sym.mig_by_index || nv->sym.mig_max_count(parent, &max) != NVML_SUCCESS)
                return;
        for (unsigned i = 0; i < max && i < EYES_DEVICES_MAX && *n < EYES_DEVICES_MAX; i++) {
                nvml_handle handle = NULL;

                if (nv->sym.mig_by_index(parent, i, &handle) != NVML_SUCCESS || !describe(nv, handle, &devices[*n]))
                        continue;
                struct eyes_device *dev = &devices[(*n)++];
                dev->mig = true;
                memcpy(dev->bus_id, parent_dev->bus_id, sizeof(dev->bus_id));
                memcpy(dev->parent_uuid, parent_dev->uuid, sizeof(dev->parent_uuid));
        }
}

static struct gpu_status nvml_enumerate(void *gpu, struct eyes_device *ret_devices, uint32_t *ret_n,
                                        uint32_t *ret_n_hidden)
{
        struct nvml *nv = gpu;
        unsigned count = 0;
        uint32_t n = 0, n_hidden = 0;

        nv->n_devices = 0;
        int rc = nv->sym.device_count(&count);
        if (rc != NVML_SUCCESS)
                return status_of(rc);
        for (unsigned i = 0; i < count && i < EYES_DEVICES_MAX; i++) {
                nvml_handle handle = NULL;

                /* One that cannot be opened (4, 17, or lost) does not stop the others. */
                if (n == EYES_DEVICES_MAX || nv->sym.device_by_index(i, &handle) != NVML_SUCCESS ||
                    !describe(nv, handle, &ret_devices[n])) {
                        n_hidden++;
                        continue;
                }
                struct eyes_device *dev = &ret_devices[n++];
                if (!is_mig_parent(nv, handle))
                        continue;
                dev->state = EYES_DEVICE_MIG_PARENT;
                nv->devices[nv->n_devices - 1].mig_parent = true;
                enumerate_instances(nv, handle, dev, ret_devices, &n);
        }
        *ret_n = n;
        *ret_n_hidden = n_hidden;
        return status_of(NVML_SUCCESS);
}

static struct gpu_status nvml_read_memory(void *gpu, const char *uuid, struct gpu_memory *ret)
{
        const struct nvml *nv = gpu;
        const struct nvml_device *dev = nvml_find(nv, uuid);

        return dev ? read_memory_of(nv, dev->handle, ret) : status_of(NVML_NOT_FOUND);
}

/* ---- process lists ---- */

enum {
        STRIDE_WORST = 32, /* what 535.43 … 535.86 wrote through _v3 */
        ENTRIES_FIRST = 16,
        ENTRIES_MAX = EYES_ROWS_MAX,
        SIZE_TRIES = 8,     /* a list that grows between all of these is not going to be read now */
        INSTANCE_MAX = 256, /* gpu and compute instance ids are small, or all ones */
        POISON = 0xa5,
};

static size_t stride_of(int version)
{
        return version == NVML_LIST_V1 ? sizeof(struct nvml_process_v1) : sizeof(struct nvml_process_v2);
}

/* Room for @n entries of the worst stride, so that a driver that writes too much hurts nobody. */
static bool have_room(struct nvml *nv, unsigned n)
{
        if (n <= nv->entries_cap)
                return true;
        void *more = realloc(nv->entries, (size_t) n * STRIDE_WORST);
        if (!more)
                return false;
        nv->entries = more;
        nv->entries_cap = n;
        return true;
}

/*
 * One call with a buffer that fits: grow and repeat on 7, since processes come between two calls. The buffer is filled
 * with a pattern first: an entry of another size leaves a pid or an instance id nobody has, and a write beyond the entries
 * asked for shows (*ret_overrun).
 */
static int call_list(struct nvml *nv, nvml_list_fn fn, nvml_handle handle, size_t stride, unsigned *ret_count,
                     bool *ret_overrun)
{
        unsigned want = nv->entries_cap ? nv->entries_cap : ENTRIES_FIRST;

        for (int i = 0; i < SIZE_TRIES; i++) {
                if (!have_room(nv, want))
                        return NVML_INSUFFICIENT_SIZE;
                unsigned cap = nv->entries_cap, count = cap;
                size_t n_bytes = (size_t) cap * STRIDE_WORST, n_asked = (size_t) cap * stride;

                memset(nv->entries, POISON, n_bytes);
                int rc = fn(handle, &count, nv->entries);
                if (rc == NVML_SUCCESS) {
                        const unsigned char *bytes = nv->entries;

                        *ret_overrun = count > cap;
                        for (size_t k = n_asked; k < n_bytes; k++)
                                *ret_overrun |= bytes[k] != POISON;
                        *ret_count = count;
                        return rc;
                }
                if (rc != NVML_INSUFFICIENT_SIZE)
                        return rc;
                if (count > ENTRIES_MAX)
                        return rc;
                want = 2 * (count > cap ? count : cap); /* a list that keeps growing is caught up with */
        }
        return NVML_INSUFFICIENT_SIZE;
}

static bool instance_is_sane(uint32_t id)
{
        return id == UINT32_MAX || id < INSTANCE_MAX;
}

/* False when an entry cannot be one: then the struct behind the symbol is not the one its name stands for. */
static bool take_entries(const struct nvml *nv, int version, unsigned count, uint32_t list, struct gpu_listed *listed)
{
        for (unsigned i = 0; i < count; i++) {
                struct nvml_process_v2 e = { .gpu_instance = UINT32_MAX, .compute_instance = UINT32_MAX };

                memcpy(&e, (const char *) nv->entries + i * stride_of(version), stride_of(version));
                if (!instance_is_sane(e.gpu_instance) || !instance_is_sane(e.compute_instance))
                        return false;
                listed[i] = (struct gpu_listed){ .pid = e.pid, .list = list, .used_known = e.used != UINT64_MAX };
                if (listed[i].used_known)
                        listed[i].used_bytes = e.used;
        }
        return true;
}

static struct gpu_status read_one_list(struct nvml *nv, nvml_handle handle, int which, uint32_t flag,
                                       struct gpu_listed *listed, size_t max, size_t *ret_n)
{
        static const int newest_first[NVML_LIST_VERSION_N] = { NVML_LIST_V3, NVML_LIST_V2, NVML_LIST_V1 };
        static const int v2_first[NVML_LIST_VERSION_N] = { NVML_LIST_V2, NVML_LIST_V3, NVML_LIST_V1 };
        const int *order = nv->prefer_list_v2 ? v2_first : newest_first;
        int rc = NVML_FUNCTION_NOT_FOUND;

        for (int i = 0; i < NVML_LIST_VERSION_N; i++) {
                nvml_list_fn fn = nv->sym.list[which][order[i]];
                unsigned count = 0;
                bool overrun = false;

                if (!fn)
                        continue;
                rc = call_list(nv, fn, handle, stride_of(order[i]), &count, &overrun);
                if (means_try_older(rc))
                        continue;
                if (rc != NVML_SUCCESS)
                        return status_of(rc);
                if (overrun || count > max || !take_entries(nv, order[i], count, flag, listed))
                        return (struct gpu_status){ .error = EYES_ERROR_REJECTED, .rc = rc };
                *ret_n = count;
                return status_of(rc);
        }
        return status_of(rc);
}

static struct gpu_status nvml_read_list(void *gpu, const char *uuid, struct gpu_listed *ret_listed, size_t max,
                                        size_t *ret_n)
{
        static const struct {
                int which;
                uint32_t flag;
                bool optional; /* not on every part (graphics) or driver (MPS from R470 on) */
        } lists[] = {
                { NVML_LIST_COMPUTE, EYES_ROW_COMPUTE, false },
                { NVML_LIST_GRAPHICS, EYES_ROW_GRAPHICS, true },
                { NVML_LIST_MPS, EYES_ROW_MPS, true },
        };
        struct nvml *nv = gpu;
        const struct nvml_device *dev = nvml_find(nv, uuid);
        size_t n = 0;

        if (!dev)
                return status_of(NVML_NOT_FOUND);
        for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
                size_t n_more = 0;

                struct gpu_status st =
                        read_one_list(nv, dev->handle, lists[i].which, lists[i].flag, ret_listed + n, max - n, &n_more);
                if (lists[i].optional && (st.error == EYES_ERROR_NOT_SUPPORTED || st.error == EYES_ERROR_NO_SYMBOL))
                        continue;
                if (st.error != EYES_ERROR_NONE)
                        return st;
                n += n_more;
        }
        *ret_n = n;
        return status_of(NVML_SUCCESS);
}

const struct gpu_ops nvml_ops = {
        .name = "nvml",
        .start = nvml_start,
        .stop = nvml_stop,
        .enumerate = nvml_enumerate,
        .read_memory = nvml_read_memory,
        .read_list = nvml_read_list,
        .read_work = nvml_read_work,
};
