/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who is parked, or on his way there or back, each held by a pidfd: the eyes do not see him on a device any more, and when he ends
 * his lease is to end, once, and his place in the ledger is free (failures F14). So is who has no lease and was told that he will be
 * ended: the orders name the inode of that pidfd (F48). As in owners.h, what is watched follows from the
 * world.
 */
#include <uv.h>
#include "model/world.h"
#include "programs/lessord/owners.h"

struct parked_one;

struct parked_watch {
        uv_loop_t *loop;
        const struct process_source *processes;
        owners_submit_fn *submit;
        void *ctx;
        struct parked_one **items;
        uint32_t n, cap;
        bool incomplete; /* descriptors or memory ran out: sync again */
};

void parked_watch_init(struct parked_watch *p, uv_loop_t *loop, const struct process_source *processes,
                       owners_submit_fn *submit, void *ctx);
void parked_watch_sync(struct parked_watch *p, const struct world *world);
/* As owners_pidfd_inode(). */
uint64_t parked_watch_pidfd_inode(const struct parked_watch *p, struct identity who);
void parked_watch_close(struct parked_watch *p); /* closes the handles; the loop has to run once more */
