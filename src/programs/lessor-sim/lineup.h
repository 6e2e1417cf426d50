/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The queue of a replay as backfill sees it (placement/backfill.h): who may go ahead of whom. */
#include "placement/backfill.h"
#include "programs/lessor-sim/replay.h"

enum { LINEUP_WINDOW = 100 }; /* so many from the head of the queue are looked at in a pass */

struct lineup_job {
        struct backfill_job job;
        struct gang gang;
        struct gang_role roles[2];
        uint32_t place; /* among those that run */
};

struct lineup {
        struct cluster *cluster;
        uint32_t depth; /* reservations */
        struct topology topology;
        struct backfill backfill;
        void *memory;
        struct lineup_job *jobs; /* of each of the replay */
        struct backfill_job **running;
        uint32_t n_running;
        struct backfill_job *window[LINEUP_WINDOW];
};

int lineup_init(struct lineup *lineup, struct cluster *cluster, size_t n_jobs, uint32_t depth, struct error *err);
void lineup_fini(struct lineup *lineup, size_t n_jobs);

int lineup_arrive(struct lineup *lineup, uint32_t id, const struct replay_job *job, struct error *err);
/* Has those start that may, of the @n that wait; returns how many. */
uint32_t lineup_pass(struct lineup *lineup, int64_t now_s, const uint32_t *queue, size_t n);
bool lineup_runs(const struct lineup *lineup, uint32_t id);
bool lineup_is_on(const struct lineup *lineup, uint32_t id, uint32_t node);
/* Gives its places back. It may wait again. */
void lineup_leave(struct lineup *lineup, uint32_t id);
