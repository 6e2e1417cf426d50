/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The published experiment (Weng and others, "Beware of Fragmentation", USENIX ATC 2023): tasks arrive one by one on an empty
 * cluster, each is placed at once or fails for good, none ever leaves. A run is one policy and one seed. The same seed gives
 * every policy the same arrivals and the same order of nodes, so that policies are compared pair by pair.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "placement/policy.h"
#include "programs/lessor-sim/trace.h"

enum {
        FILL_PERCENT_MAX = 200,
        FILL_POINTS = FILL_PERCENT_MAX + 1,
        FILL_STRANDED_SIZES = 4, /* tasks of 1, 2, 4 and 8 GPUs */
};

struct fill_options {
        uint32_t inflate_percent; /* tasks are added or taken away until they want so much of the GPUs there are: 130 */
};

struct fill_point {          /* means over the arrivals after which tasks for so many % of the GPUs had arrived */
        uint32_t arrivals;   /* 0: none, and nothing below is known */
        double used_pct;     /* of capacity */
        double fragment_pct; /* of capacity */
        double fragment_of_idle_pct;
};

struct fill_result {
        struct fill_point points[FILL_POINTS];
        uint32_t placed, failed;
        /* at the end, in milli-GPU: free on nodes with fewer than 1, 2, 4, 8 GPUs that are wholly free */
        int64_t stranded_milli[FILL_STRANDED_SIZES];
        int64_t free_milli;
        uint32_t partly_used_nodes; /* with GPUs, some of them used and some free */
};

/* How many GPUs a task has for which stranded_milli[i] is counted. */
extern const uint32_t fill_stranded_gpus[FILL_STRANDED_SIZES];

/* The tasks of a run in the order in which they arrive, as indices into trace->tasks. The caller frees *ret. */
int fill_arrivals(const struct trace *trace, const struct fill_options *o, uint64_t seed, uint32_t **ret, size_t *ret_n,
                  struct error *err);
/* Threads may run at once: what they share is read only. */
int fill_run(const struct trace *trace, const struct fill_options *o, const struct placement_policy *policy,
             uint64_t seed, struct fill_result *ret, struct error *err);
