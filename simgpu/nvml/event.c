/* SPDX-License-Identifier: Apache-2.0 */
/* event - XIDs and other events; what was posted before a registration is lost, as it is for real */

#include <stdlib.h>
#include <time.h>

#include "nvml/state.h"

#define TYPES_SUPPORTED 0xffffull
#define POLL_NS 1000000

struct nvml_event_set {
        uint64_t mask[CARD_DEVICES_MAX];
        uint64_t seen[CARD_DEVICES_MAX]; /* event number at registration, per device */
        uint64_t next;                   /* the first number not looked at */
};

NVML(nvmlEventSetCreate, (nvmlEventSet_t * ret))
{
        nvmlReturn_t rc = nvml_enter(__func__, -1);
        if (rc != NVML_OK)
                return rc;
        if (!ret)
                return NVML_INVALID_ARGUMENT;
        *ret = calloc(1, sizeof **ret);
        if (!*ret)
                return NVML_UNKNOWN;
        (*ret)->next = atomic_load(&nvml.card.file->event_seq) + 1;
        return NVML_OK;
}

NVML(nvmlEventSetFree, (nvmlEventSet_t set))
{
        free(set);
        return set ? NVML_OK : NVML_INVALID_ARGUMENT;
}

NVML(nvmlDeviceGetSupportedEventTypes, (nvmlDevice_t handle, uint64_t *types))
{
        DEVICE_BEGIN(handle);
        if (!types)
                return NVML_INVALID_ARGUMENT;
        *types = TYPES_SUPPORTED;
        return NVML_OK;
}

NVML(nvmlDeviceRegisterEvents, (nvmlDevice_t handle, uint64_t types, nvmlEventSet_t set))
{
        DEVICE_BEGIN(handle);
        if (!set)
                return NVML_INVALID_ARGUMENT;
        if (types & ~TYPES_SUPPORTED)
                return NVML_NOT_SUPPORTED;
        if (set->mask[index] == 0)
                set->seen[index] = atomic_load(&nvml.card.file->event_seq);
        set->mask[index] |= types;
        return NVML_OK;
}

static bool take_event(nvmlEventSet_t set, nvmlEventData_t *data)
{
        uint64_t last = atomic_load(&nvml.card.file->event_seq);
        if (last >= CARD_EVENTS_MAX && set->next <= last - CARD_EVENTS_MAX)
                set->next = last - CARD_EVENTS_MAX + 1; /* overwritten ones are lost */
        for (; set->next <= last; set->next++) {
                struct card_event e = nvml.card.file->event[set->next % CARD_EVENTS_MAX];
                if (e.device < 0 || (uint32_t) e.device >= nvml.card.n_devices)
                        continue;
                if (!(set->mask[e.device] & e.type) || set->next <= set->seen[e.device])
                        continue;
                *data = (nvmlEventData_t){ .device = &nvml.handle[e.device],
                                           .type = e.type,
                                           .data = e.data,
                                           .gi = 0xffffffffu,
                                           .ci = 0xffffffffu };
                set->next++;
                return true;
        }
        return false;
}

static nvmlReturn_t wait_event(const char *symbol, nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
        nvmlReturn_t rc = nvml_enter(symbol, -1);
        if (rc != NVML_OK)
                return rc;
        if (!set || !data)
                return NVML_INVALID_ARGUMENT;
        uint64_t since_ns = card_now_ns();
        while (!take_event(set, data)) {
                if ((card_now_ns() - since_ns) / 1000000 >= timeout_ms)
                        return NVML_TIMEOUT;
                struct timespec step = { .tv_nsec = POLL_NS };
                (void) nanosleep(&step, NULL);
        }
        return NVML_OK;
}

NVML(nvmlEventSetWait_v2, (nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms))
{
        return wait_event(__func__, set, data, timeout_ms);
}

/* The old data ends before the instances. */
NVML(nvmlEventSetWait, (nvmlEventSet_t set, void *data, unsigned timeout_ms))
{
        nvmlEventData_t whole;
        nvmlReturn_t rc = wait_event(__func__, set, data ? &whole : NULL, timeout_ms);
        if (rc == NVML_OK)
                __builtin_memcpy(data, &whole, offsetof(nvmlEventData_t, gi));
        return rc;
}
