/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "trial/shrink.h"

enum { LETTERS = 12 }; /* of what broke, that two failures have in common */

struct shrinking {
        struct trial *t;
        struct script *best, *attempt;
        char what[LETTERS + 1];
        unsigned plays;
};

static bool still_fails(struct shrinking *s)
{
        if (s->plays == 0)
                return false;
        s->plays--;
        return !trial_play(s->t, s->attempt, false) && strncmp(s->t->what, s->what, LETTERS) == 0;
}

static void keep(struct shrinking *s)
{
        *s->best = *s->attempt;
}

/* Without events [from, from + n). */
static bool leave_out(struct shrinking *s, uint32_t from, uint32_t n)
{
        *s->attempt = *s->best;
        uint32_t end = from + n < s->best->n_events ? from + n : s->best->n_events;
        memmove(&s->attempt->events[from], &s->attempt->events[end],
                (s->best->n_events - end) * sizeof(s->attempt->events[0]));
        s->attempt->n_events -= end - from;
        if (!still_fails(s))
                return false;
        keep(s);
        return true;
}

static void leave_out_events(struct shrinking *s)
{
        for (uint32_t n = s->best->n_events / 2; n > 0; n /= 2)
                for (uint32_t from = 0; from < s->best->n_events && s->plays > 0;)
                        if (!leave_out(s, from, n))
                                from += n;
}

static void leave_out_faults(struct shrinking *s)
{
        for (unsigned f = 0; f < FAULT_N; f++) {
                if (s->best->off[f])
                        continue;
                *s->attempt = *s->best;
                s->attempt->off[f] = true;
                if (still_fails(s))
                        keep(s);
        }
}

/* What comes after it broke had no part in it. */
static void cut_the_end(struct shrinking *s, uint64_t broken_ms)
{
        *s->attempt = *s->best;
        while (s->attempt->n_events > 0 &&
               s->attempt->events[s->attempt->n_events - 1].at_ms + TRIAL_START_MS > broken_ms)
                s->attempt->n_events--;
        if (still_fails(s))
                keep(s);
}

void shrink(struct trial *t, struct script *script, unsigned plays)
{
        struct shrinking s = { .t = t, .best = script, .attempt = malloc(sizeof(*script)), .plays = plays };

        if (!s.attempt)
                abort();
        memcpy(s.what, t->what, LETTERS);
        cut_the_end(&s, t->broken_ms);
        leave_out_events(&s);
        leave_out_faults(&s);
        leave_out_events(&s);
        free(s.attempt);
        (void) trial_play(t, script, false);
}
