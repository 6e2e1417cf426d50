/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Is there a clock behind it? Moments that follow each other at equal distances: five strikes 20 s apart are a timer and its
 * time-out, not five failures. Pure, over times.
 */
#include <stddef.h>
#include <stdint.h>

enum {
        RHYTHM_MIN = 5,          /* so many moments: fewer lie at equal distances by chance */
        RHYTHM_JITTER_MS = 1000, /* a tick: what is decided by ticks is told so much earlier or later */
        RHYTHM_SHARE = 8,        /* and no more than this part of the distance itself */
        RHYTHM_TEXT_MAX = 160,
};

struct rhythm {
        size_t first; /* index of its first moment */
        size_t n;     /* moments; 0 = there is none */
        uint64_t period_ms;
};

/*
 * rhythm_find - the next run of equal distances among @times_ms[@from …], which ascend
 * All distances of a run lie within the jitter of the same one: a distance that grows a little each time is none, and neither
 * is one that doubles. Moments that are equal are one decision, not two: they end a run.
 */
struct rhythm rhythm_find(const uint64_t *times_ms, size_t n, size_t from);
/* "5 times, each 20s after the last: a clock, not chance". Returns @buf. */
const char *rhythm_text(const struct rhythm *rhythm, char buf[RHYTHM_TEXT_MAX]);
