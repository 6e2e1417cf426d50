/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What earlier runs of a program came to, remembered by who ran it and under which name (lease.consumer): nobody learns from
 * what somebody else's program does. A table of bounded size: who was not heard of for the longest is forgotten first.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/limits.h"

struct habit {
        uint32_t uid;
        char consumer[NAME_MAX_BYTES]; /* "" = an empty row */
        uint64_t last_ms;              /* when it was last added to */
        uint64_t n_runs;               /* whose peak is or was below; the next one's goes to n_runs % PEAKS_MAX */
        uint64_t peak_bytes[PEAKS_MAX];
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
