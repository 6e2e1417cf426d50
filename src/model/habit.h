/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What earlier runs of a program came to, remembered by who ran it and under which name (lease.consumer): nobody learns from
 * what somebody else's program does. A table of bounded size: who was not heard of for the longest is forgotten first.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/limits.h"
#include "model/way_out.h"

/* What a way out came to, measured: means over the last runs, in which the newest counts a quarter. */
struct way_cost {
        uint64_t n;         /* how often; 0 = never */
        uint64_t out_ms;    /* from the first word to the device showing it */
        uint64_t back_ms;   /* and back to work; 0 = it never came back yet */
        uint64_t spread_ms; /* mean distance from the mean, of out and back together */
        uint64_t bytes;     /* given back, the last time */
};

struct habit {
        uint32_t uid;
        char consumer[NAME_MAX_BYTES]; /* "" = an empty row */
        uint64_t last_ms;              /* when it was last added to */
        uint64_t n_runs;               /* whose peak is or was below; the next one's goes to n_runs % PEAKS_MAX */
        uint64_t peak_bytes[PEAKS_MAX];
        uint64_t asked_bytes[PEAKS_MAX];  /* that each of those runs had named; 0 = none */
        bool proven;                      /* it was checkpointed and came back: this program, with this driver */
        uint64_t proof_program;           /* process.program; 0 = could not be seen */
        uint64_t proof_driver;            /* host.driver */
        uint64_t n_cooperated, n_ignored; /* asked to give way by itself: did, and did not (F15) */
        struct way_cost costs[WAY_OUT_N];
        uint64_t floor_bytes[FLOORS_MAX]; /* what stayed after the last releases that settled while idle */
        uint32_t n_floors;                /* ever; the next goes to n_floors % FLOORS_MAX */
};

static inline bool habit_is_none(const struct habit *habit)
{
        return habit->consumer[0] == '\0';
}

/* How many peaks it has. */
static inline uint32_t habit_n_peaks(const struct habit *habit)
{
        return habit->n_runs < PEAKS_MAX ? (uint32_t) habit->n_runs : PEAKS_MAX;
}
