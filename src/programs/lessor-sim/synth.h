/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Made-up traces in the columns and with the proportions of the published ones, for who has none of those. A seed makes the
 * same bytes on every machine: integers only. The distributions stand in lessor-sim(1), and as tables in synth.c.
 */
#include <stdint.h>
#include <stdio.h>
#include "programs/lessor-sim/trace.h"

struct synth_options {
        uint64_t seed;
        uint64_t count;
        uint32_t named_percent; /* of the tasks with GPUs: name the models they may have */
        uint32_t gap_s;         /* mean time between two arrivals */
};

/* To @to, a row each, with the first row. What goes wrong in writing is the stream's. */
void synth_nodes(FILE *to, const struct synth_options *o);
void synth_tasks(FILE *to, const struct synth_options *o);
void synth_jobs(FILE *to, const struct synth_options *o);
