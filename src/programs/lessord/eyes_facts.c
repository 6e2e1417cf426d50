/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include "api/place.h"
#include "model/lease.h"
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

uint64_t eyes_facts_file_number(bool known, uint64_t dev, uint64_t inode)
{
        uint64_t v = dev * UINT64_C(0x9e3779b97f4a7c15) ^ inode;

        return known ? (v ? v : 1) : 0;
}

/* What shows in the facts alone; programs that are never targets are known by their files. */
static uint8_t guard_of(const struct eyes_process *in, bool host_pids)
{
        if (!host_pids)
                return GUARD_FOREIGN;
        if (in->pid == 1)
                return GUARD_INIT;
        if (in->kernel_thread)
                return GUARD_KERNEL;
        return in->uid_known && in->exe_known ? GUARD_NONE : GUARD_UNSEEN;
}

_Static_assert((int) EYES_KINSHIP_N == (int) LINK_N && (int) EYES_KINSHIP_SESSION == (int) LINK_SESSION &&
                       (int) EYES_KINSHIP_ACCOUNTED == (int) LINK_ACCOUNTED,
               "the eyes and the core count kinds of evidence alike");

/* A login session's number is given again after a reboot, and holds whatever was typed there: it stands for nothing. */
static uint64_t place_of(const struct eyes_process *in)
{
        struct place place;

        if (!in->cgroup_known)
                return 0;
        place_of_cgroup(in->cgroup_path, &place);
        return place.kind == PLACE_UNIT || place.kind == PLACE_CONTAINER ? place.number : 0;
}

void eyes_facts_script(enum script_kind kind, uint64_t file, struct process *ret)
{
        bool by_command = kind == SCRIPT_MODULE || kind == SCRIPT_CODE || kind == SCRIPT_OPTIONS;

        ret->runs = kind == SCRIPT_NONE                ? RUNS_PROGRAM
                    : kind == SCRIPT_FILE && file != 0 ? RUNS_SCRIPT
                    : by_command && ret->command != 0  ? RUNS_COMMAND
                                                       : RUNS_UNKNOWN;
        ret->script = ret->runs == RUNS_SCRIPT ? file : 0;
}

void eyes_facts_process(const struct eyes_process *in, bool host_pids, struct process *ret)
{
        *ret = (struct process){
                .identity = { in->pid, in->start_ticks },
                .uid = in->uid_known ? in->uid : UINT32_MAX,
                .ppid = in->ppid,
                .cgroup_id = in->cgroup_id_known ? in->cgroup_id : 0,
                .program = eyes_facts_file_number(in->exe_known, in->exe_dev, in->exe_inode),
                .command = in->command_known ? (in->command != 0 ? in->command : 1) : 0,
                .place = place_of(in),
                .guard = guard_of(in, host_pids),
        };
        eyes_facts_script((enum script_kind) in->script_kind,
                          eyes_facts_file_number(in->script_known, in->script_dev, in->script_inode), ret);
        for (uint32_t i = 0; i < in->n_ancestors && i < ANCESTORS_MAX; i++) {
                ret->links[i] = in->ancestors[i].link;
                ret->ancestors[ret->n_ancestors++] =
                        (struct identity){ in->ancestors[i].pid, in->ancestors[i].start_ticks };
        }
        memcpy(ret->comm, in->comm, strnlen(in->comm, sizeof(ret->comm) - 1)); /* any bytes, cut */
}

/* "L12-…" → 12; 0: it names no lease. */
static uint64_t lease_of_token(const char *token)
{
        char id[LEASE_ID_TEXT_MAX];
        uint64_t lease_id = 0;
        size_t n = strcspn(token, "-");

        if (token[n] != '-' || n >= sizeof(id))
                return 0;
        memcpy(id, token, n);
        id[n] = '\0';
        return lease_id_parse(id, &lease_id) ? lease_id : 0;
}

static bool is_possible(const struct eyes_ancestor *ancestor, struct identity id)
{
        return id.pid == ancestor->pid && id.start_ticks >= ancestor->start_ticks &&
               id.start_ticks - ancestor->start_ticks <= ancestor->slack_ticks;
}

/* Which processes that leases are bound to can this be? */
struct possible {
        struct identity one; /* the first */
        bool several;
        struct identity of_token; /* the token's lease's; pid 0 = none */
};

static void add_possible(struct possible *p, struct identity id, bool of_token)
{
        if (p->one.pid != 0 && !identity_equal(p->one, id))
                p->several = true;
        if (p->one.pid == 0)
                p->one = id;
        if (of_token)
                p->of_token = id;
}

static struct possible possible_of(const struct world *w, const struct eyes_ancestor *ancestor, uint64_t token_id,
                                   uint32_t uid)
{
        struct possible p = { 0 };

        for (uint32_t i = 0; i < w->n_leases; i++) {
                const struct lease *lease = &w->leases[i];
                if (w->lease_ids[i] == 0)
                        continue;
                bool of_token = lease->id == token_id && lease->uid == uid;
                if (is_possible(ancestor, lease->binding.root))
                        add_possible(&p, lease->binding.root, of_token);
                if (is_possible(ancestor, lease->binding.owner))
                        add_possible(&p, lease->binding.owner, of_token);
        }
        return p;
}

void eyes_facts_settle(const struct eyes_process *in, const struct world *w, struct process *process)
{
        process->token_id = lease_of_token(in->token);
        for (uint32_t i = 0; i < process->n_ancestors; i++) {
                const struct eyes_ancestor *ancestor = &in->ancestors[i];
                if (ancestor->slack_ticks == 0)
                        continue;
                struct possible p = possible_of(w, ancestor, process->token_id, process->uid);
                if (p.several && p.of_token.pid != 0) {
                        process->ancestors[i] = p.of_token;
                        process->links[i] = LINK_TOKEN;
                } else if (p.one.pid != 0 && !p.several) {
                        process->ancestors[i] = p.one;
                }
        }
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
        if (flags & EYES_ROW_WORKED)
                out |= ROW_WORKED;
        if (flags & EYES_ROW_RESTED)
                out |= ROW_RESTED;
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
