/* SPDX-License-Identifier: Apache-2.0 */
#include "model/rhythm.h"
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include "base/duration.h"

enum { ROUGH_MS = 10 * 1000, SECOND_MS = 1000 };

/* May distances from @least_ms to @most_ms be one? Each may lie the jitter above it or below. */
static bool is_one(uint64_t least_ms, uint64_t most_ms)
{
        uint64_t jitter_ms = least_ms / RHYTHM_SHARE < RHYTHM_JITTER_MS ? least_ms / RHYTHM_SHARE : RHYTHM_JITTER_MS;
        return least_ms > 0 && most_ms - least_ms <= 2 * jitter_ms;
}

/* The last moment of the longest run that begins at @first. */
static size_t run_end(const uint64_t *times_ms, size_t n, size_t first)
{
        uint64_t least_ms = UINT64_MAX, most_ms = 0;
        size_t last = first;

        while (last + 1 < n && times_ms[last + 1] >= times_ms[last]) {
                uint64_t distance_ms = times_ms[last + 1] - times_ms[last];
                least_ms = distance_ms < least_ms ? distance_ms : least_ms;
                most_ms = distance_ms > most_ms ? distance_ms : most_ms;
                if (!is_one(least_ms, most_ms))
                        break;
                last++;
        }
        return last;
}

/* What grows each time by less than the jitter comes to more than it in the end, but not in five: it is no clock either. */
static bool drifts(const uint64_t *times_ms, size_t first, size_t last)
{
        bool up = true, down = true;

        for (size_t i = first + 2; i <= last; i++) {
                uint64_t before_ms = times_ms[i - 1] - times_ms[i - 2], after_ms = times_ms[i] - times_ms[i - 1];
                uint64_t noise_ms = before_ms / 50; /* what a timer and a busy machine make of the same distance */
                up = up && after_ms > before_ms + noise_ms;
                down = down && before_ms > after_ms + noise_ms;
        }
        return up || down;
}

struct rhythm rhythm_find(const uint64_t *times_ms, size_t n, size_t from)
{
        for (size_t first = from; first + RHYTHM_MIN <= n; first++) {
                size_t last = run_end(times_ms, n, first);
                if (last - first + 1 < RHYTHM_MIN || drifts(times_ms, first, last))
                        continue;
                return (struct rhythm){ .first = first,
                                        .n = last - first + 1,
                                        .period_ms = (times_ms[last] - times_ms[first]) / (last - first) };
        }
        return (struct rhythm){ 0 };
}

const char *rhythm_text(const struct rhythm *rhythm, char buf[RHYTHM_TEXT_MAX])
{
        uint64_t period_ms = rhythm->period_ms;
        char span[DURATION_TEXT_MAX];

        if (period_ms >= ROUGH_MS) /* it was found within a tick: more than that it does not say */
                period_ms = (period_ms + SECOND_MS / 2) / SECOND_MS * SECOND_MS;
        (void) snprintf(buf, RHYTHM_TEXT_MAX, "%zu times, each %s after the last: a clock, not chance", rhythm->n,
                        duration_text(period_ms, span));
        return buf;
}
