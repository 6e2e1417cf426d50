/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include "trial/trial.h"

void trial_break(struct trial *t, const char *fmt, ...)
{
        va_list args;

        t->broken = true;
        t->broken_ms = t->now_ms;
        va_start(args, fmt);
        (void) vsnprintf(t->what, sizeof(t->what), fmt, args);
        va_end(args);
        siglongjmp(t->out_of_here, 1);
}

void trial_say(const struct trial *t, const char *fmt, ...)
{
        va_list args;

        if (!t->verbose)
                return;
        uint64_t ms = t->now_ms - TRIAL_START_MS;
        printf("%3" PRIu64 ":%02" PRIu64 ":%02" PRIu64 ".%03" PRIu64 " ", ms / HOURS(1), ms / MINUTES(1) % 60,
               ms / 1000 % 60, ms % 1000);
        va_start(args, fmt);
        (void) vprintf(fmt, args);
        va_end(args);
        putchar('\n');
}

/* ---- timers: a heap, by time and then by who came first ---- */

static bool before(const struct timer *a, const struct timer *b)
{
        return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void swap(struct timer *a, struct timer *b)
{
        struct timer c = *a;
        *a = *b;
        *b = c;
}

void timer_add(struct trial *t, uint64_t in_ms, enum timer_kind kind, uint32_t a, uint64_t b)
{
        if (t->n_timers == TIMERS_MAX)
                trial_break(t, "the trial itself: more than %d timers", TIMERS_MAX);
        uint32_t i = t->n_timers++;
        t->timers[i] = (struct timer){
                .at_ms = t->now_ms + in_ms, .order = t->next_timer++, .kind = (uint8_t) kind, .a = a, .b = b
        };
        for (; i > 0 && before(&t->timers[i], &t->timers[(i - 1) / 2]); i = (i - 1) / 2)
                swap(&t->timers[i], &t->timers[(i - 1) / 2]);
}

uint64_t timer_next_ms(const struct trial *t)
{
        return t->n_timers == 0 ? UINT64_MAX : t->timers[0].at_ms;
}

bool timer_take(struct trial *t, uint64_t until_ms, struct timer *ret)
{
        if (timer_next_ms(t) > until_ms)
                return false;
        *ret = t->timers[0];
        t->timers[0] = t->timers[--t->n_timers];
        for (uint32_t i = 0;;) {
                uint32_t least = i;
                for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < t->n_timers; child++)
                        if (before(&t->timers[child], &t->timers[least]))
                                least = child;
                if (least == i)
                        return true;
                swap(&t->timers[i], &t->timers[least]);
                i = least;
        }
}
