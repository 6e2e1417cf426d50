/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The processes that leases are bound to, and the commands that run under them, each held by one pidfd: when it becomes
 * readable the process is gone, and the core is told so in the same turn (failures F45). What is watched follows from the world, not from what happened:
 * owners_sync() compares row by row, so a restart or a world that was read again needs nothing special.
 */
#include <uv.h>
#include "model/input.h"
#include "model/world.h"
#include "senses/process.h"

typedef void owners_submit_fn(void *ctx, const struct input *input);

struct owner_watch;

enum owners_role {
        OWNERS_OF_LEASES, /* binding.owner: its end is the lease's, or leaves it orphaned */
        ROOTS_OF_LEASES,  /* binding.root: while it lives, a lease without its owner goes on */
};

struct owners {
        uv_loop_t *loop;
        enum owners_role role;
        const struct process_source *processes;
        owners_submit_fn *submit;
        void *ctx;
        struct owner_watch **watches; /* one for each distinct process */
        uint32_t n_watches, cap_watches;
        uint32_t n_rows;
        bool incomplete;               /* descriptors or memory ran out: some are not watched yet, sync again */
        uint64_t lease_id[LEASES_MAX]; /* by row of the world's lease table */
        struct owner_watch *watch[LEASES_MAX];
        struct identity who[LEASES_MAX]; /* it may be another one from some moment on */
};

void owners_init(struct owners *o, enum owners_role role, uv_loop_t *loop, const struct process_source *processes,
                 owners_submit_fn *submit, void *ctx);
/* @end: what is said of owners that are found gone already. */
void owners_sync(struct owners *o, const struct world *world, enum end_reason end);
/* The inode of the pidfd that holds this process; 0 = none does. Unique where the kernel is 6.9 or newer (failures F48). */
uint64_t owners_pidfd_inode(const struct owners *o, struct identity who);
/* 1: gone; 0: held by a pidfd of exactly this process; negative errno: could not be tried. */
int owners_hold(const struct process_source *processes, struct identity who, int *ret_pidfd);
void owners_close(struct owners *o); /* closes the handles; the loop has to run once more */
