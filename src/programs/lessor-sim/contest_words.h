/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a contest came to: a table for people, JSON and CSV for programs. */
#include <stdio.h>
#include <jansson.h>
#include "programs/lessor-sim/contest.h"

/* The points that tables show. */
struct shown_points {
        uint32_t pct[16];
        size_t n;
};

/* @base: the policy that others are held against; n_policies: none. */
void contest_print(FILE *to, const struct contest *contest, const struct shown_points *points, size_t base);
json_t *contest_json(const struct contest *contest, const struct shown_points *points, size_t base);
/* Each seed, each point where anything arrived: policy,seed,arrived_pct,alloc_pct,frag_pct_of_capacity,frag_pct_of_idle. */
void contest_csv(FILE *to, const struct contest *contest);

/* Whose seeds these are not. */
extern const char contest_seeds_note[];
