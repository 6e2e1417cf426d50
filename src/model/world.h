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
#include "model/entry.h"
#include "model/holder.h"
#include "model/lease.h"
#include "model/limits.h"
#include "model/process.h"
#include "model/user.h"

struct world {
        struct config config;
        uint64_t now_ms; /* of the last input; never goes back */
        uint64_t next_lease_id;
        uint64_t next_entry_id;
        uint64_t next_action_id;
        uint64_t ledger_charged_bytes; /* host memory of parked work */
        bool degraded;                 /* the books were damaged: nothing is ended or taken back (design 4.7) */
        bool eyes_answering;
        uint64_t eyes_silent_since_ms;

        /* Each table: rows [0, n_…) may be in use, an empty row says so itself. */
        uint32_t n_devices;
        uint32_t n_leases;
        uint32_t n_entries;
        uint32_t n_holders;
        uint32_t n_processes;   /* dense, sorted by (pid, start) */
        uint32_t n_occupancies; /* dense, sorted by (device, pid, start) */
        uint32_t n_users;

        struct device devices[DEVICES_MAX];
        uint64_t lease_ids[LEASES_MAX]; /* of leases[i], 0 = empty: what a look-up by id scans */
        struct lease leases[LEASES_MAX];
        struct entry entries[ENTRIES_MAX];
        struct holder holders[HOLDERS_MAX];
        struct user users[USERS_MAX];
        struct occupancy occupancies[OCCUPANCIES_MAX];
        struct process processes[PROCESSES_MAX];
};

/* @world must be zeroed memory. */
void world_init(struct world *world, const struct config *config);

/* @to must be zeroed memory. What nobody used is not touched. */
void world_copy(struct world *to, const struct world *from);

/* Rows. `new` returns NULL when the table is full (or the configured limit is reached); `drop` empties the row and moves its
 * generation on, so that every older ref finds nobody. `get` returns NULL for a ref whose generation is over. */
bool world_has_lease_room(const struct world *world);
struct lease *world_lease_new(struct world *world);
void world_lease_drop(struct world *world, struct lease *lease);
struct lease *world_lease_get(struct world *world, struct ref ref);
struct lease *world_lease_by_id(struct world *world, uint64_t id);
struct ref world_lease_ref(const struct world *world, const struct lease *lease);

bool world_has_entry_room(const struct world *world);
struct entry *world_entry_new(struct world *world, enum entry_kind kind);
void world_entry_drop(struct world *world, struct entry *entry);
struct entry *world_entry_get(struct world *world, struct ref ref);
struct ref world_entry_ref(const struct world *world, const struct entry *entry);

struct holder *world_holder_new(struct world *world, enum holder_kind kind, uint32_t device);
void world_holder_drop(struct world *world, struct holder *holder);
struct holder *world_holder_get(struct world *world, struct ref ref);
struct ref world_holder_ref(const struct world *world, const struct holder *holder);

struct device *world_device_by_uuid(struct world *world, const char *uuid, uint32_t *ret_index);
struct device *world_device_new(struct world *world, uint32_t *ret_index);

/* The row of a uid, made on demand; NULL when the table is full and nobody's row can be forgotten. */
struct user *world_user(struct world *world, uint32_t uid, uint32_t *ret_index);

struct process *world_process_find(struct world *world, struct identity identity);
/* Insert or overwrite; keeps the table sorted. NULL when full. */
struct process *world_process_put(struct world *world, const struct process *facts);
void world_process_drop(struct world *world, struct identity identity);

/*
 * What must hold between the tables whatever happened (refs point at each other, sums fit, sorted tables are sorted).
 * Returns NULL, or the first thing that does not hold, in words. For tests, the trial and debug builds.
 */
const char *world_check(const struct world *world);
