/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Everything the core remembers, in arrays of fixed size, with no pointer in it: a snapshot is its rows, two equal worlds
 * are equal bytes. Zeroed memory plus world_init() is an empty world; rows nobody used were never touched.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/action.h"
#include "model/config.h"
#include "model/device.h"
#include "model/enforce.h"
#include "model/entry.h"
#include "model/habit.h"
#include "model/holder.h"
#include "model/host.h"
#include "model/lease.h"
#include "model/limits.h"
#include "model/plan.h"
#include "model/process.h"
#include "model/tally.h"
#include "model/user.h"

enum { HOLDER_WORDS = HOLDERS_MAX / 64 };
_Static_assert(HOLDERS_MAX % 64 == 0, "whole words of bits");

struct world {
        struct config config;
        uint64_t now_ms; /* of the last input; never goes back */
        uint64_t next_lease_id;
        uint64_t next_entry_id;
        uint64_t next_action_id;
        uint64_t ledger_charged_bytes; /* host memory of parked work */
        uint64_t next_plan_id;
        uint64_t next_approval_id;
        struct host host;
        uint8_t pause;    /* enum pause_what: no transition begins, for the machine stands still soon */
        bool pause_thaws; /* but what is parked, not ended, and fits comes back */
        bool degraded;    /* the books were damaged: nothing is ended or taken back (design 4.7) */
        bool eyes_answering;
        uint64_t eyes_silent_since_ms;
        struct enforce enforce;

        /* Each table: rows [0, n_…) may be in use, an empty row says so itself. */
        uint32_t n_devices;
        uint32_t n_leases;
        uint32_t n_entries;
        uint32_t n_holders;
        uint32_t n_processes;   /* dense, sorted by (pid, start) */
        uint32_t n_occupancies; /* dense, sorted by (device, pid, start) */
        uint32_t n_users;
        uint32_t n_plans;
        uint32_t n_habits;    /* dense */
        uint32_t n_approvals; /* dense */
        uint32_t n_audits;    /* dense, sorted by (pid, start) */

        struct device devices[DEVICES_MAX];
        uint64_t lease_ids[LEASES_MAX]; /* of leases[i], 0 = empty: what a look-up by id scans */
        struct lease leases[LEASES_MAX];
        struct entry entries[ENTRIES_MAX];
        struct holder holders[HOLDERS_MAX];
        struct user users[USERS_MAX];
        struct occupancy occupancies[OCCUPANCIES_MAX];
        struct process processes[PROCESSES_MAX];
        struct plan plans[PLANS_MAX];
        struct habit habits[HABITS_MAX];
        struct approval approvals[APPROVALS_MAX];
        struct audit audits[AUDITS_MAX];

        /* An index, one bit for each row of the holder table: which are on a device, and which are of a kind (of HOLDER_NONE:
         * which are in use). It follows from the table, so it is in no snapshot (world_index) and two equal worlds have it
         * equal. */
        uint64_t holders_on[DEVICES_MAX][HOLDER_WORDS];
        uint64_t holders_of[HOLDER_KIND_N][HOLDER_WORDS];

        /* What the holders of each device come to: in no snapshot either, and no part of what makes two worlds equal. Made anew
         * when it is asked for after a row was written, so only world_tally() and world_leavings() may be asked; likewise
         * world_ledger(). */
        struct tally tallies[DEVICES_MAX];
        struct leavings leavings[DEVICES_MAX];
        struct ledger_tally ledger;
        struct line line; /* always kept */
        struct usage_memo usage_memos[USERS_MAX];
};

/* @world must be zeroed memory. */
void world_init(struct world *world, const struct config *config);
/* Makes the index anew, after rows were written from outside (a snapshot). */
void world_index(struct world *world);

/* @to must be zeroed memory. What nobody used is not touched. */
void world_copy(struct world *to, const struct world *from);

/* Rows. `new` returns NULL when the table is full (or the configured limit is reached); `drop` empties the row and moves its
 * generation on, so that every older ref finds nobody. `get` returns NULL for a ref whose generation is over. */
bool world_has_lease_room(const struct world *world);
struct lease *world_lease_new(struct world *world);
void world_lease_drop(struct world *world, struct lease *lease);
struct lease *world_lease_by_id(struct world *world, uint64_t id);
static inline struct lease *world_lease_get(struct world *world, struct ref ref)
{
        if (ref_is_none(ref) || ref.index >= world->n_leases)
                return NULL;

        struct lease *lease = &world->leases[ref.index];
        return lease->generation == ref.generation && lease->state != LEASE_NONE ? lease : NULL;
}

static inline struct ref world_lease_ref(const struct world *world, const struct lease *lease)
{
        return (struct ref){ .index = (uint32_t) (lease - world->leases), .generation = lease->generation };
}

bool world_has_entry_room(const struct world *world);
struct entry *world_entry_new(struct world *world, enum entry_kind kind);
void world_entry_drop(struct world *world, struct entry *entry);
static inline struct entry *world_entry_get(struct world *world, struct ref ref)
{
        if (ref_is_none(ref) || ref.index >= world->n_entries)
                return NULL;

        struct entry *entry = &world->entries[ref.index];
        return entry->generation == ref.generation && entry->kind != ENTRY_NONE ? entry : NULL;
}

static inline struct ref world_entry_ref(const struct world *world, const struct entry *entry)
{
        return (struct ref){ .index = (uint32_t) (entry - world->entries), .generation = entry->generation };
}

struct holder *world_holder_new(struct world *world, enum holder_kind kind, uint32_t device);
void world_holder_drop(struct world *world, struct holder *holder);
static inline struct holder *world_holder_get(struct world *world, struct ref ref)
{
        if (ref_is_none(ref) || ref.index >= world->n_holders)
                return NULL;

        struct holder *holder = &world->holders[ref.index];
        return holder->generation == ref.generation && holder->kind != HOLDER_NONE ? holder : NULL;
}

static inline struct ref world_holder_ref(const struct world *world, const struct holder *holder)
{
        return (struct ref){ .index = (uint32_t) (holder - world->holders), .generation = holder->generation };
}

/*
 * Who writes a holder, or the state, the end or the backfill of its lease, says so: of one row before and after, or of a whole
 * device after all of it, and before anybody asks. A new row is being written, until that has been said; one that is dropped
 * is taken out.
 */
void world_holder_writing(struct world *world, const struct holder *holder);
void world_holder_written(struct world *world, const struct holder *holder);
static inline void world_device_changed(struct world *world, uint32_t device)
{
        world->tallies[device].kept = false;
        world->leavings[device].kept = false;
}

/* Of a whole device, but only what its holders use: that moves the ends of the leases that drain, and of no others. */
void world_figures_changed(struct world *world, uint32_t device);

/* Who writes what a lease plans to move to host memory, or has set aside there, says so. */
static inline void world_ledger_changed(struct world *world)
{
        world->ledger.kept = false;
}

const struct ledger_tally *world_ledger(struct world *world);
const struct tally *world_tally(struct world *world, uint32_t device);
const struct leavings *world_leavings(struct world *world, uint32_t device);

/* The holders of a device, or of a kind, in row order. Whoever walks may drop the row it stands on. */
struct holder_walk {
        const uint64_t *bits;
        uint64_t word; /* what is left of the word it is in */
        uint32_t at, n_words;
        bool more;
};

static inline struct holder_walk holder_walk_begin(const struct world *world, const uint64_t bits[HOLDER_WORDS])
{
        return (struct holder_walk){
                .bits = bits, .word = bits[0], .n_words = (world->n_holders + 63) / 64, .more = true
        };
}

static inline bool holder_walk_next(struct holder_walk *walk, uint32_t *ret)
{
        while (walk->word == 0) {
                if (++walk->at >= walk->n_words)
                        return false;
                walk->word = walk->bits[walk->at];
        }
        *ret = walk->at * 64 + (uint32_t) __builtin_ctzll(walk->word);
        walk->word &= walk->word - 1;
        return true;
}

/* The outer loop goes round once: it only holds the walk. */
#define world_each_holder(world, i, bits)                                                                              \
        for (struct holder_walk i##_walk = holder_walk_begin(world, bits); i##_walk.more; i##_walk.more = false)       \
                for (uint32_t i = 0; holder_walk_next(&i##_walk, &i);)
#define world_each_holder_on(world, i, device) world_each_holder (world, i, (world)->holders_on[device])
#define world_each_holder_of(world, i, kind) world_each_holder (world, i, (world)->holders_of[kind])

/* The rows of a lease, one on each of its devices; each lives as long as the lease has any. */
static inline struct holder *world_part_next(struct world *world, const struct lease *lease, uint32_t *at)
{
        return *at < lease_n_parts(lease) ? &world->holders[lease_part(lease, (*at)++).holder.index] : NULL;
}
#define each_part(w, lease, h) for (uint32_t h##_at = 0; (h = world_part_next((w), (lease), &h##_at));)

/* Its row there; NULL = it has none. */
struct holder *world_part_on(struct world *world, const struct lease *lease, uint32_t device);
/* What it uses on all of them; false: of one at least that is not known. */
bool world_lease_used(const struct world *world, const struct lease *lease, uint64_t *ret_bytes);
/* How many processes are listed for it, on all of them. */
uint32_t world_lease_listed(const struct world *world, const struct lease *lease);

/* The plan that takes memory back for @entry; NULL = none. */
struct plan *world_plan_of(struct world *world, struct ref entry);
/* A gang has one on each of the devices it is to start on: that one. */
struct plan *world_plan_on(struct world *world, struct ref entry, uint32_t device);
struct plan *world_plan_new(struct world *world); /* NULL = there are too many */

struct device *world_device_by_uuid(struct world *world, const char *uuid, uint32_t *ret_index);
struct device *world_device_new(struct world *world, uint32_t *ret_index);

/* The row of a uid, made on demand; NULL when the table is full and nobody's row can be forgotten. */
struct user *world_user(struct world *world, uint32_t uid, uint32_t *ret_index);

/* What is remembered of a user's program; NULL when nothing is, or it has no name. */
struct habit *world_habit_find(struct world *world, uint32_t uid, const char *consumer);
/* The same, made on demand: when there is no room, who was not heard of for the longest is forgotten. NULL without a name. */
struct habit *world_habit(struct world *world, uint32_t uid, const char *consumer);

struct process *world_process_find(struct world *world, struct identity identity);
/* The same for whoever asks for many in ascending order: @at remembers where it came to, and is 0 at first. */
struct process *world_process_find_from(struct world *world, struct identity identity, uint32_t *at);
/* What a process has on a device; NULL when it was not listed there at the last look. */
struct occupancy *world_occupancy_find(struct world *world, uint32_t device, struct identity identity);
/* Was it listed on one of the devices of @lease? */
bool world_has_memory_of(struct world *world, const struct lease *lease, struct identity identity);
/* Insert or overwrite; keeps the table sorted. NULL when full. */
struct process *world_process_put(struct world *world, const struct process *facts);
void world_process_drop(struct world *world, struct identity identity);

/* What is remembered of a stranger; NULL = nothing. `new`: NULL when there are too many that live. */
struct audit *world_audit_find(struct world *world, struct identity identity);
struct audit *world_audit_new(struct world *world, struct identity identity);
void world_audit_drop(struct world *world, struct audit *audit);
struct approval *world_approval_by_id(struct world *world, uint64_t id);
struct approval *world_approval_new(struct world *world); /* NULL = there are too many */
void world_approval_drop(struct world *world, struct approval *approval);

/*
 * What must hold between the tables whatever happened (refs point at each other, sums fit, sorted tables are sorted).
 * Returns NULL, or the first thing that does not hold, in words. For tests, the trial and debug builds.
 */
const char *world_check(const struct world *world);
