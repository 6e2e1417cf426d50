/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/learn.h"
#include "base/number.h"

void learn_use(struct lease *lease, const struct holder *holder)
{
        /* A figure that is known to be incomplete (managed memory, a process without one) would teach too little. */
        if (holder_reading_is_known(holder))
                lease->peak_bytes = u64_max(lease->peak_bytes, holder->used_bytes);
}

void learn_end(struct world *w, const struct lease *lease, enum end_reason end)
{
        if (lease->active_ms == 0 || lease->peak_bytes == 0 || lease->managed)
                return;
        if (end == END_UNADOPTED) /* its program goes on: the most it will use is not known */
                return;

        struct habit *habit = world_habit(w, lease->uid, lease->consumer);
        if (!habit)
                return;
        habit->peak_bytes[habit->n_runs++ % PEAKS_MAX] = lease->peak_bytes;
        habit->last_ms = w->now_ms;
}

/* The p95 by nearest rank: the smallest peak that at least 95 of 100 runs stayed within. Of fewer than 20 that is the
 * largest, of 20 the second largest: one run that went astray is forgotten in time. */
static uint64_t p95_bytes(const struct habit *habit)
{
        uint64_t sorted[PEAKS_MAX];
        uint32_t n = habit_n_peaks(habit), rank = (95 * n + 99) / 100;

        for (uint32_t i = 0; i < n; i++) {
                uint32_t at = i;
                for (; at > 0 && sorted[at - 1] > habit->peak_bytes[i]; at--)
                        sorted[at] = sorted[at - 1];
                sorted[at] = habit->peak_bytes[i];
        }
        return rank != 0 ? sorted[rank - 1] : 0;
}

uint64_t learn_size_bytes(struct world *w, const struct request *r, uint8_t *ret_n_runs)
{
        *ret_n_runs = 0;
        /* With managed memory now, what runs without it were seen to use says nothing. */
        if (!r->learned || r->managed || r->exclusive || r->bytes != 0)
                return 0;

        const struct habit *habit = world_habit_find(w, r->uid, r->consumer);
        if (!habit)
                return 0;
        *ret_n_runs = (uint8_t) habit_n_peaks(habit);
        return p95_bytes(habit);
}
