/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which of the waiting jobs start now, so that small ones use what is free while a large one waits, and do not delay it. The
 * first jobs that cannot start have a reservation each: the earliest time at which they can be placed for as long as they say,
 * topology and all. A later job starts now only where it fits beside what runs and is reserved, for as long as it says itself.
 * With reservations for one that is EASY backfill, for all conservative, for none first come, first served.
 *
 * Ends are estimates. While they are upper bounds nobody starts later than first reserved; a reservation is made again at each
 * pass, earlier where somebody ended early. Whole GPUs of a node count as alike. Parts of one are told apart by size alone, so
 * that a reservation for parts may turn out too early.
 */
#include "placement/gang.h"

enum {
        BACKFILL_FCFS = 0,
        BACKFILL_EASY = 1,
        BACKFILL_MISSES = 64, /* remembered during a pass: whoever wants as much for as long is not tried */
};
#define BACKFILL_CONSERVATIVE UINT32_MAX

enum backfill_state { BACKFILL_WAITING, BACKFILL_RESERVED, BACKFILL_RUNNING };

struct backfill_job {
        const struct gang *gang;
        struct gang_member *members; /* room for all of the gang */
        uint32_t n;                  /* of them, where it runs or is reserved */
        enum backfill_state state;
        int64_t estimate_s; /* how long it says that it runs; less than 1 counts as 1 */
        int64_t start_s;    /* since when, or from when on */
        int64_t end_s;      /* expected */
};

struct backfill_event {
        int64_t at_s;
        bool starts; /* else it ends, which comes first */
        struct backfill_job *job;
};

struct backfill {
        struct cluster *now;
        struct cluster ahead, step, least; /* how it will be; what is free all along */
        struct gang_placer placer;         /* on least */
        struct backfill_event *events;     /* in order */
        uint32_t n_events, events_max;
        struct {
                struct gang_role role;
                uint32_t required;
                int64_t estimate_s;
        } misses[BACKFILL_MISSES];
        uint32_t n_misses;
};

/* For at most @jobs that run or are reserved at once. False: the arena was too small, or only counts. */
bool backfill_init(struct backfill *backfill, struct cluster *cluster, const struct topology *topology, uint32_t jobs,
                   struct arena *arena);
/*
 * One pass over @queue, in order. Who starts is BACKFILL_RUNNING from now on, with its places taken in the cluster; it ends by
 * gang_give() and no longer being among @running. The structs keep reservations from pass to pass. Returns how many started.
 * Jobs beyond what backfill_init was told are not looked at.
 */
uint32_t backfill_pass(struct backfill *backfill, int64_t now_s, struct backfill_job *const *running,
                       uint32_t n_running, struct backfill_job *const *queue, uint32_t n_queue, uint32_t depth);
