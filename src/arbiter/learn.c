/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/learn.h"
#include "base/number.h"

void learn_use(struct lease *lease, const struct holder *holder)
{
        /* A figure that is known to be incomplete (managed memory, a process without one) would teach too little. */
        if (holder_reading_is_known(holder))
                lease->peak_bytes = u64_max(lease->peak_bytes, holder->used_bytes);
}

/* Cut short by somebody else, or said to have failed: it might have come to more. Who is ended by its own user was through: so
 * servers end. */
static bool ended_badly(const struct lease *lease, enum end_reason end)
{
        bool by_itself = end == END_RELEASED || end == END_CONNECTION_CLOSED || end == END_WORKERS_GONE ||
                         end == END_OWNER_EXITED;

        return !by_itself || lease->failed || lease->ending;
}

/* Of the runs that had named @asked_bytes; 0 = of all. The p95 by nearest rank: the smallest peak that at least 95 of 100 runs stayed within. Of fewer than 20 that is the
 * largest, of 20 the second largest: one run that went astray is forgotten in time. */
static uint64_t p95_bytes(const struct habit *habit, uint64_t asked_bytes, uint8_t *ret_n_runs)
{
        uint64_t sorted[PEAKS_MAX];
        uint32_t n = 0;

        for (uint32_t i = 0; i < habit_n_peaks(habit); i++) {
                if (asked_bytes != 0 && habit->asked_bytes[i] != asked_bytes)
                        continue;
                uint32_t at = n++;
                for (; at > 0 && sorted[at - 1] > habit->peak_bytes[i]; at--)
                        sorted[at] = sorted[at - 1];
                sorted[at] = habit->peak_bytes[i];
        }

        uint32_t rank = (95 * n + 99) / 100;
        *ret_n_runs = (uint8_t) n;
        return rank != 0 ? sorted[rank - 1] : 0;
}

uint64_t learn_p95_bytes(const struct habit *habit)
{
        uint8_t n_runs;

        return p95_bytes(habit, 0, &n_runs);
}

void learn_end(struct world *w, const struct lease *lease, enum end_reason end)
{
        if (lease->active_ms == 0 || lease->peak_bytes == 0 || lease->managed)
                return;
        if (end == END_UNADOPTED) /* its program goes on: the most it will use is not known */
                return;

        if (ended_badly(lease, end)) { /* teaches nothing smaller than is known, and nothing where nothing is (F39) */
                const struct habit *known = world_habit_find(w, lease->uid, lease->consumer);
                if (!known || habit_n_peaks(known) == 0 || lease->peak_bytes <= learn_p95_bytes(known))
                        return;
        }

        struct habit *habit = world_habit(w, lease->uid, lease->consumer);
        if (!habit)
                return;
        habit->asked_bytes[habit->n_runs % PEAKS_MAX] = lease->asked_bytes;
        habit->peak_bytes[habit->n_runs++ % PEAKS_MAX] = lease->peak_bytes;
        habit->last_ms = w->now_ms;
}

uint64_t learn_size_bytes(struct world *w, const struct request *r, uint8_t *ret_n_runs)
{
        *ret_n_runs = 0;
        /* With managed memory now, what runs without it were seen to use says nothing. */
        if (r->managed || r->exclusive || r->adopt || (!r->learned && (r->bytes == 0 || !w->config.correct_sizes)))
                return 0;

        const struct habit *habit = world_habit_find(w, r->uid, r->consumer);
        if (!habit)
                return 0;

        /* One program runs with many sizes of data: only runs that named the same amount, and came to more than is let pass, say
         * that this amount is too small. */
        uint8_t n_runs;
        uint64_t bytes = p95_bytes(habit, r->learned ? 0 : r->bytes, &n_runs);
        if (bytes == 0 || (!r->learned && bytes <= u64_add_sat(r->bytes, w->config.over_use_bytes)))
                return 0;
        *ret_n_runs = n_runs;
        return bytes;
}
