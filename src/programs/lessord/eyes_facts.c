/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include "programs/lessord/eyes_facts.h"

static uint8_t health_of(enum eyes_device_state state)
{
        switch (state) {
        case EYES_DEVICE_USABLE:
                return DEVICE_OK;
        case EYES_DEVICE_NO_MEMORY_READING:
                return DEVICE_NO_MEMORY_READING;
        case EYES_DEVICE_LOST:
        case EYES_DEVICE_GONE:
                return DEVICE_LOST;
        case EYES_DEVICE_MIG_PARENT:
                return DEVICE_PARENT;
        case EYES_DEVICE_NO_PERMISSION:
        case EYES_DEVICE_FAILING:
        case EYES_DEVICE_STATE_N:
                break;
        }
        return DEVICE_FAULT;
}

void eyes_facts_device(const struct eyes_device *in, struct device_facts *ret)
{
        *ret = (struct device_facts){
                .minor = in->minor_known ? in->minor : 0,
                .total_bytes = in->total_known ? in->total_bytes : 0,
                .error_code = (uint32_t) in->rc,
                .health = health_of(in->state),
        };
        (void) snprintf(ret->uuid, sizeof(ret->uuid), "%s", in->uuid);
        (void) snprintf(ret->name, sizeof(ret->name), "%s", in->name);
        (void) snprintf(ret->pci_bus_id, sizeof(ret->pci_bus_id), "%s", in->bus_id);
}

void eyes_facts_lost_device(const struct device *known, struct device_facts *ret)
{
        *ret = (struct device_facts){
                .minor = known->minor,
                .total_bytes = known->total_bytes,
                .budget_bytes = known->budget_bytes,
                .health = DEVICE_LOST,
        };
        (void) snprintf(ret->uuid, sizeof(ret->uuid), "%s", known->uuid);
        (void) snprintf(ret->name, sizeof(ret->name), "%s", known->name);
        (void) snprintf(ret->pci_bus_id, sizeof(ret->pci_bus_id), "%s", known->pci_bus_id);
}

/* Both in one number: the same for the same file, and never 0. */
static uint64_t program_of(const struct eyes_process *in)
{
        uint64_t v = in->exe_dev * UINT64_C(0x9e3779b97f4a7c15) ^ in->exe_inode;

        return in->exe_known ? (v ? v : 1) : 0;
}

/* What shows in the facts alone; programs that are never targets are known by their files. */
static uint8_t guard_of(const struct eyes_process *in, bool host_pids)
{
        if (!host_pids)
                return GUARD_FOREIGN;
        if (in->pid == 1)
                return GUARD_INIT;
        return in->uid_known && in->exe_known ? GUARD_NONE : GUARD_UNSEEN;
}

void eyes_facts_process(const struct eyes_process *in, bool host_pids, struct process *ret)
{
        *ret = (struct process){
                .identity = { in->pid, in->start_ticks },
                .uid = in->uid_known ? in->uid : UINT32_MAX,
                .ppid = in->ppid,
                .cgroup_id = in->cgroup_id_known ? in->cgroup_id : 0,
                .program = program_of(in),
                .guard = guard_of(in, host_pids),
        };
        for (uint32_t i = 0; i < in->n_ancestors && i < ANCESTORS_MAX; i++)
                ret->ancestors[ret->n_ancestors++] =
                        (struct identity){ in->ancestors[i].pid, in->ancestors[i].start_ticks };
        memcpy(ret->comm, in->comm, strnlen(in->comm, sizeof(ret->comm) - 1)); /* any bytes, cut */
}

static uint32_t flags_of(uint32_t flags)
{
        uint32_t out = 0;

        if (flags & EYES_ROW_USED_KNOWN)
                out |= ROW_USED_KNOWN;
        if (flags & EYES_ROW_COMPUTE)
                out |= ROW_COMPUTE;
        if (flags & EYES_ROW_GRAPHICS)
                out |= ROW_GRAPHICS;
        if (flags & EYES_ROW_MPS)
                out |= ROW_MPS;
        /* Nobody we could name: counted, and never anybody's. */
        if (flags & (EYES_ROW_GHOST | EYES_ROW_FOREIGN | EYES_ROW_UNIDENTIFIED))
                out |= ROW_GHOST;
        return out;
}

void eyes_facts_reading(const struct eyes_reading *in, struct occupancy *rows, struct reading *ret)
{
        _Static_assert((int) EYES_ROWS_MAX <= (int) ROWS_MAX, "a reading of the eyes must fit into one of the core");

        *ret = (struct reading){
                .taken_ms = in->taken_ms,
                .total_bytes = in->total_bytes,
                .used_bytes = in->used_bytes,
                .used_known = in->memory_valid,
                .per_process_known = in->per_process_valid,
                .settled = in->settled,
                .n_rows = in->n_rows,
                .rows = rows,
        };
        (void) snprintf(ret->uuid, sizeof(ret->uuid), "%s", in->uuid);
        for (uint32_t i = 0; i < in->n_rows; i++) {
                const struct eyes_row *row = &in->rows[i];
                uint32_t flags = flags_of(row->flags);
                rows[i] = (struct occupancy){
                        .identity = { row->pid, (flags & ROW_GHOST) ? 0 : row->start_ticks },
                        .used_bytes = row->used_bytes,
                        .flags = flags,
                };
        }
}
