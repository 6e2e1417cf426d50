/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A trace played through time: jobs come, wait in one queue, start when they can be placed, run and leave; nodes fail and come
 * back. Everything at one second happens in one order: ends, then nodes, then arrivals, then one pass over the queue. A job
 * that is larger than a node is a gang: all of its parts start together, or none does and nothing is held.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "placement/policy.h"
#include "programs/lessor-sim/trace.h"

enum { REPLAY_BUCKETS = 240, REPLAY_HEAT_ROWS = 64, REPLAY_RESTARTS_MAX = 100 };

struct replay_job {
        int64_t submit_s, duration_s;
        int64_t estimate_s; /* how long it says that it will take; for backfill */
        struct task part;   /* each of @parts */
        struct task rest;   /* and one more; of 0 GPUs and CPU: none */
        uint32_t parts;
        uint32_t row; /* of its file, from 1 */
        bool has_rest;
};

struct replay_options {
        const struct placement_policy *policy; /* in the order they came; NULL: by backfill, with its own places */
        uint32_t depth;                        /* how many that wait have a reservation: of placement/backfill.h */
        uint64_t seed;                         /* of failures, and of policies with chance */
        int64_t fail_each_s; /* a node fails after 1 s to twice as long, each second as likely; 0: none does */
        int64_t repair_s;
};

enum replay_fate { REPLAY_WAITING, REPLAY_RUNNING, REPLAY_ENDED, REPLAY_NEVER, REPLAY_GIVEN_UP };

struct replay_record {         /* of each job */
        enum replay_fate fate; /* REPLAY_NEVER: the empty cluster has no place for it */
        int64_t start_s;       /* when it last started; -1: it did not */
        int64_t first_start_s; /* its wait ended then */
        int64_t end_s;
        uint32_t restarts; /* its node failed: it begins anew, and is given up after REPLAY_RESTARTS_MAX */
};

struct replay_bucket {    /* of the time from first_s to last_s */
        double used_gpus; /* mean */
        double want_gpus; /* of jobs that wait, mean */
};

struct replay_result {
        struct replay_record *records;
        int64_t first_s, last_s; /* first arrival, last end */
        int64_t capacity_milli;
        /* GPU, milli-GPU × s */
        __int128 used, idle_while_waiting,
                stranded; /* idle_while_waiting: free while somebody waits; stranded: of that, while what is free in all would be enough for the head of the queue */
        __int128 wasted;  /* of runs that a failure ended */
        uint64_t ended, never, given_up, restarts, node_failures, passes, most_waiting;
        uint32_t n_buckets;
        struct replay_bucket buckets[REPLAY_BUCKETS];
        uint32_t heat_rows;                             /* groups of nodes of about the same number, in their order */
        uint8_t heat[REPLAY_BUCKETS][REPLAY_HEAT_ROWS]; /* per cent used, when the bucket began */
};

/* @jobs sorted by submit_s. 0: *ret is filled, replay_fini() frees it. */
int replay_run(const struct node_spec *nodes, size_t n_nodes, const struct replay_job *jobs, size_t n_jobs,
               const struct replay_options *o, struct replay_result *ret, struct error *err);
void replay_fini(struct replay_result *result);

/* GPUs of all of it. */
static inline int64_t replay_job_milli(const struct replay_job *job)
{
        return (int64_t) job->parts * task_milli(&job->part) + (job->has_rest ? task_milli(&job->rest) : 0);
}

static inline uint32_t replay_job_parts(const struct replay_job *job)
{
        return job->parts + job->has_rest;
}

static inline const struct task *replay_job_part(const struct replay_job *job, uint32_t i)
{
        return i < job->parts ? &job->part : &job->rest;
}

/* Jobs of the philly kind, on nodes of at most @node_gpus GPUs: as many whole nodes as it takes, and the rest on one more. */
struct replay_job replay_job_of(const struct trace_job *job, uint32_t node_gpus);
