/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "base/number.h"
#include "model/world.h"

void world_init(struct world *world, const struct config *config)
{
        world->config = *config;
        world->next_lease_id = 1;
        world->next_entry_id = 1;
        world->next_action_id = 1;
        world->next_plan_id = 1;
        world->next_approval_id = 1;
}

#define TABLE(name) sizeof(((struct world *) 0)->name)
_Static_assert(offsetof(struct world, devices) + TABLE(devices) + TABLE(lease_ids) + TABLE(leases) + TABLE(entries) +
                               TABLE(holders) + TABLE(users) + TABLE(occupancies) + TABLE(processes) + TABLE(plans) +
                               TABLE(habits) + TABLE(approvals) + TABLE(audits) + TABLE(holders_on) +
                               TABLE(holders_of) + TABLE(tallies) + TABLE(leavings) + TABLE(ledger) + TABLE(line) +
                               TABLE(usage_memos) ==
                       sizeof(struct world),
               "another table: world_copy() has to take it along, or world_index() to make it anew");
#undef TABLE

void world_copy(struct world *to, const struct world *from)
{
        memcpy(to, from, offsetof(struct world, devices));
        memcpy(to->devices, from->devices, from->n_devices * sizeof(from->devices[0]));
        memcpy(to->lease_ids, from->lease_ids, from->n_leases * sizeof(from->lease_ids[0]));
        memcpy(to->leases, from->leases, from->n_leases * sizeof(from->leases[0]));
        memcpy(to->entries, from->entries, from->n_entries * sizeof(from->entries[0]));
        memcpy(to->holders, from->holders, from->n_holders * sizeof(from->holders[0]));
        memcpy(to->users, from->users, from->n_users * sizeof(from->users[0]));
        memcpy(to->occupancies, from->occupancies, from->n_occupancies * sizeof(from->occupancies[0]));
        memcpy(to->processes, from->processes, from->n_processes * sizeof(from->processes[0]));
        memcpy(to->plans, from->plans, from->n_plans * sizeof(from->plans[0]));
        memcpy(to->habits, from->habits, from->n_habits * sizeof(from->habits[0]));
        memcpy(to->approvals, from->approvals, from->n_approvals * sizeof(from->approvals[0]));
        memcpy(to->audits, from->audits, from->n_audits * sizeof(from->audits[0]));
        world_index(to);
}

/*
 * Emptying a row keeps its generation and moves it on; everything else is zeroed, so that two worlds with the same history
 * are the same bytes. The high-water marks never fall.
 */

static uint32_t first_free_lease(const struct world *world)
{
        uint32_t i = 0;
        while (i < world->n_leases && world->lease_ids[i] != 0)
                i++;
        return i;
}

bool world_has_lease_room(const struct world *world)
{
        uint32_t i = first_free_lease(world);
        return i < LEASES_MAX && i < world->config.leases_max;
}

struct lease *world_lease_new(struct world *world)
{
        if (!world_has_lease_room(world))
                return NULL;

        uint32_t i = first_free_lease(world);

        struct lease *lease = &world->leases[i];
        lease->generation++;
        lease->state = LEASE_QUEUED;
        lease->id = world->next_lease_id++;
        world->lease_ids[i] = lease->id;
        if (i == world->n_leases)
                world->n_leases++;
        return lease;
}

void world_lease_drop(struct world *world, struct lease *lease)
{
        uint32_t generation = lease->generation;

        if (lease->ledger_set_aside_bytes != 0 || lease->park.planned_bytes != 0)
                world_ledger_changed(world);
        world->lease_ids[lease - world->leases] = 0;
        memset(lease, 0, sizeof(*lease));
        lease->generation = generation + 1;
}

struct lease *world_lease_by_id(struct world *world, uint64_t id)
{
        if (id == 0)
                return NULL;
        for (uint32_t i = 0; i < world->n_leases; i++)
                if (world->lease_ids[i] == id)
                        return &world->leases[i];
        return NULL;
}

static uint32_t first_free_entry(const struct world *world)
{
        uint32_t i = 0;
        while (i < world->n_entries && world->entries[i].kind != ENTRY_NONE)
                i++;
        return i;
}

bool world_has_entry_room(const struct world *world)
{
        uint32_t i = first_free_entry(world);
        return i < ENTRIES_MAX && i < world->config.entries_max;
}

static void line_add(struct line *line, uint32_t row, enum entry_kind kind)
{
        line->entries[line->n++] = row;
        line->n_bookings += kind == ENTRY_BOOKING;
}

static void line_take_out(struct line *line, uint32_t row, enum entry_kind kind)
{
        uint32_t at = 0;

        while (at < line->n && line->entries[at] != row)
                at++;
        if (at == line->n)
                return; /* it was not there */
        line->n--;
        memmove(&line->entries[at], &line->entries[at + 1], (line->n - at) * sizeof(line->entries[0]));
        line->n_bookings -= kind == ENTRY_BOOKING;
}

struct entry *world_entry_new(struct world *world, enum entry_kind kind)
{
        if (!world_has_entry_room(world))
                return NULL;

        uint32_t i = first_free_entry(world);

        struct entry *entry = &world->entries[i];
        entry->generation++;
        entry->kind = (uint8_t) kind;
        entry->id = world->next_entry_id++;
        if (i == world->n_entries)
                world->n_entries++;
        line_add(&world->line, i, kind);
        return entry;
}

void world_entry_drop(struct world *world, struct entry *entry)
{
        uint32_t generation = entry->generation;

        line_take_out(&world->line, (uint32_t) (entry - world->entries), (enum entry_kind) entry->kind);
        memset(entry, 0, sizeof(*entry));
        entry->generation = generation + 1;
}

static void index_holder(struct world *world, uint32_t i, bool in_use)
{
        const struct holder *h = &world->holders[i];
        uint64_t bit = UINT64_C(1) << (i % 64);
        uint64_t *words[] = { &world->holders_on[h->device][i / 64], &world->holders_of[h->kind][i / 64],
                              &world->holders_of[HOLDER_NONE][i / 64] };

        for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
                *words[k] = in_use ? *words[k] | bit : *words[k] & ~bit;
}

static void index_entries(struct world *world)
{
        world->line.n = world->line.n_bookings = 0;
        for (uint32_t i = 0; i < world->n_entries; i++)
                if (world->entries[i].kind != ENTRY_NONE)
                        line_add(&world->line, i, (enum entry_kind) world->entries[i].kind);
}

void world_index(struct world *world)
{
        index_entries(world);
        size_t n_bytes = (world->n_holders + 63) / 64 * sizeof(uint64_t);

        world_ledger_changed(world);
        for (uint32_t d = 0; d < world->n_devices; d++)
                world_device_changed(world, d);
        for (uint32_t d = 0; d < world->n_devices && n_bytes != 0; d++)
                memset(world->holders_on[d], 0, n_bytes);
        for (uint32_t kind = 0; kind < HOLDER_KIND_N && n_bytes != 0; kind++)
                memset(world->holders_of[kind], 0, n_bytes);
        for (uint32_t i = 0; i < world->n_holders; i++)
                if (world->holders[i].kind != HOLDER_NONE)
                        index_holder(world, i, true);
}

void world_holder_writing(struct world *world, const struct holder *holder)
{
        if (world->tallies[holder->device].kept)
                tally_take_out(&world->tallies[holder->device], world, holder);
        if (world->leavings[holder->device].kept && holder->kind == HOLDER_LEASE)
                leavings_take_out(&world->leavings[holder->device], world, holder);
}

void world_holder_written(struct world *world, const struct holder *holder)
{
        struct tally *tally = &world->tallies[holder->device];

        if (tally->kept && !holder->exclusive)
                tally_add(tally, world, holder);
        else
                tally->kept = false;
        if (world->leavings[holder->device].kept && holder->kind == HOLDER_LEASE)
                leavings_add(&world->leavings[holder->device], world, holder);
}

enum { DRAINING_FEW = 16 };

void world_figures_changed(struct world *world, uint32_t device)
{
        struct leavings *leavings = &world->leavings[device];
        uint32_t draining[DRAINING_FEW], n = 0;

        world->tallies[device].kept = false;
        if (!leavings->kept)
                return;
        for (uint32_t i = 0; i < leavings->n && n <= DRAINING_FEW; i++) {
                uint32_t row = leavings->of[i].holder;
                if (world->leases[world->holders[row].lease.index].state != LEASE_DRAINING)
                        continue;
                if (n < DRAINING_FEW)
                        draining[n] = row;
                n++;
        }
        leavings->kept = n <= DRAINING_FEW; /* else it is quicker to sort them all */
        for (uint32_t i = 0; i < n && leavings->kept; i++) {
                leavings_take_out(leavings, world, &world->holders[draining[i]]);
                leavings_add(leavings, world, &world->holders[draining[i]]);
        }
}

static uint32_t first_free_holder(const struct world *world)
{
        for (uint32_t at = 0; at < HOLDER_WORDS; at++) {
                uint64_t free_bits = ~world->holders_of[HOLDER_NONE][at];
                if (free_bits != 0)
                        return at * 64 + (uint32_t) __builtin_ctzll(free_bits);
        }
        return HOLDERS_MAX;
}

struct holder *world_holder_new(struct world *world, enum holder_kind kind, uint32_t device)
{
        uint32_t i = first_free_holder(world);
        if (i >= HOLDERS_MAX)
                return NULL;

        struct holder *holder = &world->holders[i];
        holder->generation++;
        holder->kind = (uint8_t) kind;
        holder->device = device;
        holder->used_known = true;
        index_holder(world, i, true);
        if (i == world->n_holders)
                world->n_holders++;
        return holder;
}

void world_holder_drop(struct world *world, struct holder *holder)
{
        uint32_t generation = holder->generation;

        world_holder_writing(world, holder);
        index_holder(world, (uint32_t) (holder - world->holders), false);
        memset(holder, 0, sizeof(*holder));
        holder->generation = generation + 1;
}

const struct tally *world_tally(struct world *world, uint32_t device)
{
        if (!world->tallies[device].kept)
                tally_make(world, device, &world->tallies[device]);
        return &world->tallies[device];
}

const struct ledger_tally *world_ledger(struct world *world)
{
        if (!world->ledger.kept)
                ledger_tally_make(world, &world->ledger);
        return &world->ledger;
}

const struct leavings *world_leavings(struct world *world, uint32_t device)
{
        if (!world->leavings[device].kept)
                leavings_make(world, device, &world->leavings[device]);
        return &world->leavings[device];
}

struct device *world_device_by_uuid(struct world *world, const char *uuid, uint32_t *ret_index)
{
        for (uint32_t i = 0; i < world->n_devices; i++)
                if (world->devices[i].health != DEVICE_ABSENT && strcmp(world->devices[i].uuid, uuid) == 0) {
                        *ret_index = i;
                        return &world->devices[i];
                }
        return NULL;
}

struct device *world_device_new(struct world *world, uint32_t *ret_index)
{
        if (world->n_devices >= DEVICES_MAX)
                return NULL;
        *ret_index = world->n_devices;
        return &world->devices[world->n_devices++];
}

/* A uid that holds nothing, waits for nothing and has used nothing lately is as good as one that was never here. */
static bool user_is_forgettable(const struct world *world, const struct user *user)
{
        return user->n_leases == 0 && user->n_waiting == 0 &&
               (user->usage_mib_s == 0 || world->now_ms - user->usage_at_ms > 20 * world->config.usage_half_life_ms);
}

struct user *world_user(struct world *world, uint32_t uid, uint32_t *ret_index)
{
        uint32_t free_at = USERS_MAX;

        for (uint32_t i = 0; i < world->n_users; i++) {
                struct user *user = &world->users[i];
                if (user->in_use && user->uid == uid) {
                        *ret_index = i;
                        return user;
                }
                if (free_at == USERS_MAX && (!user->in_use || user_is_forgettable(world, user)))
                        free_at = i;
        }
        if (world->n_users < USERS_MAX && (free_at == USERS_MAX || world->users[free_at].in_use))
                free_at = world->n_users++;
        if (free_at == USERS_MAX)
                return NULL;

        world->users[free_at] = (struct user){ .uid = uid, .in_use = true, .usage_at_ms = world->now_ms };
        *ret_index = free_at;
        return &world->users[free_at];
}

/* Where @identity stands, or would stand, in the sorted table between @low and @high. */
static uint32_t process_between(const struct world *world, struct identity identity, uint32_t low, uint32_t high,
                                bool *ret_found)
{
        while (low < high) {
                uint32_t mid = low + (high - low) / 2;
                int c = identity_compare(world->processes[mid].identity, identity);
                if (c == 0) {
                        *ret_found = true;
                        return mid;
                }
                if (c < 0)
                        low = mid + 1;
                else
                        high = mid;
        }
        *ret_found = false;
        return low;
}

static uint32_t process_position(const struct world *world, struct identity identity, bool *ret_found)
{
        return process_between(world, identity, 0, world->n_processes, ret_found);
}

struct process *world_process_find_from(struct world *world, struct identity identity, uint32_t *at)
{
        uint32_t low = *at, step = 1;
        bool found;

        for (uint32_t n = 0; n < 4 && low < world->n_processes; n++, low++) { /* it mostly stands near */
                int c = identity_compare(world->processes[low].identity, identity);
                if (c < 0)
                        continue;
                *at = low;
                return c == 0 ? &world->processes[low] : NULL;
        }

        /* In ever longer steps to the first that stands behind it, and then between that and the last but one. */
        while (low + step < world->n_processes &&
               identity_compare(world->processes[low + step].identity, identity) < 0) {
                low += step;
                step *= 2;
        }
        uint32_t high = low + step < world->n_processes ? low + step + 1 : world->n_processes;
        *at = process_between(world, identity, low, high, &found);
        return found ? &world->processes[*at] : NULL;
}

struct process *world_process_find(struct world *world, struct identity identity)
{
        bool found;
        uint32_t at = process_position(world, identity, &found);
        return found ? &world->processes[at] : NULL;
}

struct occupancy *world_occupancy_find(struct world *world, uint32_t device, struct identity identity)
{
        uint32_t low = 0, high = world->n_occupancies;

        while (low < high) {
                uint32_t mid = low + (high - low) / 2;
                const struct occupancy *row = &world->occupancies[mid];
                if (row->device < device || (row->device == device && identity_compare(row->identity, identity) < 0))
                        low = mid + 1;
                else
                        high = mid;
        }
        struct occupancy *found = &world->occupancies[low];
        return low < world->n_occupancies && found->device == device && identity_equal(found->identity, identity)
                       ? found
                       : NULL;
}

bool world_has_memory_of(struct world *world, const struct lease *lease, struct identity identity)
{
        for (uint32_t i = 0; i < lease_n_parts(lease); i++)
                if (world_occupancy_find(world, lease_part(lease, i).device, identity))
                        return true;
        return false;
}

struct process *world_process_put(struct world *world, const struct process *facts)
{
        bool found;
        uint32_t at = process_position(world, facts->identity, &found);

        if (!found) {
                if (world->n_processes >= PROCESSES_MAX)
                        return NULL;
                memmove(&world->processes[at + 1], &world->processes[at],
                        (world->n_processes - at) * sizeof(world->processes[0]));
                world->n_processes++;
        }
        world->processes[at] = *facts;
        return &world->processes[at];
}

void world_process_drop(struct world *world, struct identity identity)
{
        bool found;
        uint32_t at = process_position(world, identity, &found);
        if (!found)
                return;

        world->n_processes--;
        memmove(&world->processes[at], &world->processes[at + 1],
                (world->n_processes - at) * sizeof(world->processes[0]));
        memset(&world->processes[world->n_processes], 0, sizeof(world->processes[0]));
}

struct holder *world_part_on(struct world *world, const struct lease *lease, uint32_t device)
{
        for (uint32_t i = 0; i < lease_n_parts(lease); i++)
                if (lease_part(lease, i).device == device)
                        return world_holder_get(world, lease_part(lease, i).holder);
        return NULL;
}

bool world_lease_used(const struct world *world, const struct lease *lease, uint64_t *ret_bytes)
{
        bool known = true;

        *ret_bytes = 0;
        for (uint32_t i = 0; i < lease_n_parts(lease); i++) {
                const struct holder *h = &world->holders[lease_part(lease, i).holder.index];
                known = known && holder_reading_is_known(h);
                *ret_bytes = u64_add_sat(*ret_bytes, h->used_bytes);
        }
        return known;
}

uint32_t world_lease_listed(const struct world *world, const struct lease *lease)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < lease_n_parts(lease); i++)
                n += world->holders[lease_part(lease, i).holder.index].n_processes;
        return n;
}

struct plan *world_plan_of(struct world *world, struct ref entry)
{
        for (uint32_t i = 0; i < world->n_plans; i++)
                if (world->plans[i].id != 0 && ref_equal(world->plans[i].entry, entry))
                        return &world->plans[i];
        return NULL;
}

struct plan *world_plan_on(struct world *world, struct ref entry, uint32_t device)
{
        for (uint32_t i = 0; i < world->n_plans; i++)
                if (world->plans[i].id != 0 && world->plans[i].device == device &&
                    ref_equal(world->plans[i].entry, entry))
                        return &world->plans[i];
        return NULL;
}

struct plan *world_plan_new(struct world *world)
{
        uint32_t i = 0;

        while (i < world->n_plans && world->plans[i].id != 0)
                i++;
        if (i >= PLANS_MAX)
                return NULL;
        if (i == world->n_plans)
                world->n_plans++;
        world->plans[i] = (struct plan){ .id = world->next_plan_id++ };
        return &world->plans[i];
}
