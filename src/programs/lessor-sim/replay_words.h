/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What became of a trace that was replayed. */
#include <stdio.h>
#include <jansson.h>
#include "programs/lessor-sim/replay.h"

struct replayed { /* one run */
        const char *policy;
        const struct replay_job *jobs;
        size_t n_jobs;
        const struct replay_result *result;
};

void replay_print(FILE *to, const struct replayed *runs, size_t n_runs);
json_t *replay_json(const struct replayed *runs, size_t n_runs);
/* policy,job,submit_s,start_s,end_s,wait_s,gpus,restarts,fate; an empty field is none. */
void replay_csv(FILE *to, const struct replayed *runs, size_t n_runs);

/* Sizes that waits are told apart by: up to so many GPUs. */
enum { REPLAY_SIZES = 6 };
extern const uint32_t replay_sizes[REPLAY_SIZES];

struct waits { /* of jobs that started, in seconds */
        size_t n;
        double mean;
        int64_t median, p90, p99, most;
};
/* @size: index into replay_sizes; REPLAY_SIZES: all. -ENOMEM: ret->n is 0. */
struct waits replay_waits(const struct replayed *run, size_t size);
/* GPU-hours of a sum of milli-GPU × s. */
double replay_gpu_hours(__int128 milli_s);
/* Per cent of GPU time from first to last that was used. */
double replay_occupancy(const struct replay_result *r);
