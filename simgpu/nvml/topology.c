/* SPDX-License-Identifier: Apache-2.0 */
/* topology - how devices lie to each other (all on one host bridge, no NVLink), and field values */

#include <sched.h>
#include <string.h>
#include <time.h>

#include "nvml/state.h"

#define TOPOLOGY_INTERNAL 0
#define TOPOLOGY_HOSTBRIDGE 30
#define NVLINKS_MAX 18u
#define UNUSED __attribute__((unused))

NVML(nvmlDeviceGetTopologyCommonAncestor, (nvmlDevice_t handle, nvmlDevice_t other, int *level))
{
        DEVICE_BEGIN(handle);
        if (!level || other < nvml.handle || other >= nvml.handle + nvml.card.n_devices)
                return NVML_INVALID_ARGUMENT;
        *level = handle == other ? TOPOLOGY_INTERNAL : TOPOLOGY_HOSTBRIDGE;
        return NVML_OK;
}

NVML(nvmlDeviceGetTopologyNearestGpus, (nvmlDevice_t handle, int level, unsigned *count, nvmlDevice_t *devices))
{
        DEVICE_BEGIN(handle);
        if (!count)
                return NVML_INVALID_ARGUMENT;
        unsigned n = level == TOPOLOGY_HOSTBRIDGE ? nvml.card.n_devices - 1 : 0;
        if (devices && *count < n)
                return NVML_INSUFFICIENT_SIZE;
        *count = n;
        for (unsigned i = 0, to = 0; devices && to < n; i++)
                if (i != index)
                        devices[to++] = &nvml.handle[i];
        return NVML_OK;
}

NVML(nvmlDeviceOnSameBoard, (nvmlDevice_t handle, nvmlDevice_t other, int *same))
{
        DEVICE_BEGIN(handle);
        if (!same)
                return NVML_INVALID_ARGUMENT;
        *same = handle == other;
        return NVML_OK;
}

NVML(nvmlDeviceGetP2PStatus, (nvmlDevice_t handle, nvmlDevice_t other, int what, int *status))
{
        DEVICE_BEGIN(handle);
        if (!status || what < 0 || what > 5 || other < nvml.handle || other >= nvml.handle + nvml.card.n_devices)
                return NVML_INVALID_ARGUMENT;
        *status = what == 2 || what == 3 ? 5 : 0; /* NVLink, atomics: not supported; over PCI: fine */
        return NVML_OK;
}

NVML(nvmlDeviceGetNvLinkState, (nvmlDevice_t handle, unsigned link, unsigned *active))
{
        DEVICE_BEGIN(handle);
        (void) active;
        return link < NVLINKS_MAX ? NVML_NOT_SUPPORTED : NVML_INVALID_ARGUMENT;
}

NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2, (nvmlDevice_t handle, unsigned link, nvmlPciInfo_t *pci UNUSED))
{
        DEVICE_BEGIN(handle);
        return link < NVLINKS_MAX ? NVML_NOT_SUPPORTED : NVML_INVALID_ARGUMENT;
}

NVML(nvmlDeviceGetNvLinkRemoteDeviceType, (nvmlDevice_t handle, unsigned link, int *type UNUSED))
{
        DEVICE_BEGIN(handle);
        return link < NVLINKS_MAX ? NVML_NOT_SUPPORTED : NVML_INVALID_ARGUMENT;
}

static nvmlReturn_t affinity(unsigned n_words, unsigned long *words)
{
        cpu_set_t set;
        if (!words || n_words == 0)
                return NVML_INVALID_ARGUMENT;
        memset(words, 0, n_words * sizeof *words);
        if (sched_getaffinity(0, sizeof set, &set) < 0)
                return NVML_UNKNOWN;
        for (unsigned cpu = 0; cpu < CPU_SETSIZE && cpu / (8 * sizeof *words) < n_words; cpu++)
                if (CPU_ISSET(cpu, &set))
                        words[cpu / (8 * sizeof *words)] |= 1ul << cpu % (8 * sizeof *words);
        return NVML_OK;
}

NVML(nvmlDeviceGetCpuAffinity, (nvmlDevice_t handle, unsigned n_words, unsigned long *words))
{
        DEVICE_BEGIN(handle);
        return affinity(n_words, words);
}

NVML(nvmlDeviceGetCpuAffinityWithinScope, (nvmlDevice_t handle, unsigned n_words, unsigned long *words, unsigned scope))
{
        DEVICE_BEGIN(handle);
        return scope <= 1 ? affinity(n_words, words) : NVML_INVALID_ARGUMENT;
}

NVML(nvmlDeviceGetMemoryAffinity, (nvmlDevice_t handle, unsigned n_words, unsigned long *nodes, unsigned scope))
{
        DEVICE_BEGIN(handle);
        if (!nodes || n_words == 0 || scope > 1)
                return NVML_INVALID_ARGUMENT;
        memset(nodes, 0, n_words * sizeof *nodes);
        nodes[0] = 1;
        return NVML_OK;
}

/* Field values: each has a code of its own; a wrong field does not fail the call. */
static nvmlReturn_t field(const struct card_device *dev, nvmlFieldValue_t *f)
{
        uint32_t limit = dev->settings.power_limit_mw ? dev->settings.power_limit_mw : 700000;
        f->value_type = 1; /* unsigned int */
        /* clang-format off */
        switch (f->field) {
        case 82: f->value.ui = 42; break;       /* memory temperature */
        case 185: case 186: f->value.ui = 75000; break;
        case 187: f->value.ui = 200000; break;
        case 188: case 189: f->value.ui = 700000; break;
        case 190: case 192: f->value.ui = limit; break;
        case 230: f->value.ui = 0; break;       /* recovery action: none */
        default: return NVML_NOT_SUPPORTED;
        }
        /* clang-format on */
        return NVML_OK;
}

NVML(nvmlDeviceGetFieldValues, (nvmlDevice_t handle, int n, nvmlFieldValue_t *values))
{
        DEVICE_BEGIN(handle);
        if (n <= 0 || !values)
                return NVML_INVALID_ARGUMENT;
        struct timespec ts;
        (void) clock_gettime(CLOCK_REALTIME, &ts);
        for (int i = 0; i < n; i++) {
                values[i].at_us = (int64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
                values[i].latency_us = 0;
                values[i].rc = field(dev, &values[i]);
        }
        return NVML_OK;
}
