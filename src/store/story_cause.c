/* SPDX-License-Identifier: Apache-2.0 */
/* What led to what, and what came again and again: pure, over the steps of a story in their order. */
#include "store/story_private.h"

#include <stdio.h>
#include <stdlib.h>
#include "base/number.h"

static int by_place(const void *left, const void *right)
{
        const struct story_step *a = &((const struct telling_step *) left)->step;
        const struct story_step *b = &((const struct telling_step *) right)->step;

        if (a->seq != b->seq)
                return a->seq < b->seq ? -1 : 1;
        return a->event_id < b->event_id ? -1 : a->event_id > b->event_id;
}

void telling_sort(struct telling *t)
{
        if (t->n > 1)
                qsort(t->steps, t->n, sizeof(*t->steps), by_place);
}

static struct telling_step *of_event(struct telling *t, uint64_t event_id)
{
        for (size_t i = 0; event_id != 0 && i < t->n; i++)
                if (t->steps[i].step.event_id == event_id)
                        return &t->steps[i];
        return NULL;
}

/* ---- what led to what ---- */

/* The last step before @at about @lease_id that is one of @kinds (bits); 0 = none. */
static uint64_t before(const struct telling *t, size_t at, uint64_t lease_id, uint32_t kinds)
{
        for (size_t i = at; i > 0; i--) {
                const struct telling_step *s = &t->steps[i - 1];
                if (s->step.event_id != 0 && s->step.lease_id == lease_id && (kinds & UINT32_C(1) << s->step.kind))
                        return s->step.event_id;
        }
        return 0;
}

static bool is_of_idleness(const struct telling_step *s)
{
        return s->step.rule >= RULE_IDLE_BEGAN && s->step.rule <= RULE_IDLE_LISTED;
}

/* The steps of one time of doing nothing: begun, told of, over. */
static uint64_t before_of_idleness(const struct telling *t, size_t at, uint64_t lease_id)
{
        if (t->steps[at].step.rule == RULE_IDLE_BEGAN)
                return 0;
        for (size_t i = at; i > 0; i--) {
                const struct telling_step *s = &t->steps[i - 1];
                if (s->step.event_id != 0 && s->step.lease_id == lease_id && is_of_idleness(s))
                        return s->step.rule == RULE_IDLE_OVER ? 0 : s->step.event_id;
        }
        return 0;
}

/* The same of a process that is under no lease. */
static uint64_t before_of_process(const struct telling *t, size_t at, uint32_t kinds)
{
        const struct identity who = t->steps[at].action.process;

        for (size_t i = at; !identity_is_none(who) && i > 0; i--) {
                const struct telling_step *s = &t->steps[i - 1];
                if (s->step.event_id != 0 && s->step.lease_id == 0 && identity_equal(s->action.process, who) &&
                    (kinds & UINT32_C(1) << s->step.kind))
                        return s->step.event_id;
        }
        return 0;
}

#define BIT(kind) (UINT32_C(1) << (kind))
_Static_assert(ACTION_KIND_N <= 32, "kinds as bits");

/* Where nothing else is known it is what was said last of those that can lead to it. */
static uint64_t by_kind(const struct telling *t, size_t at)
{
        const uint32_t way_off = BIT(ACTION_ASKED) | BIT(ACTION_HAND) | BIT(ACTION_MANAGER),
                       waits = BIT(ACTION_QUEUED) | BIT(ACTION_WAITING),
                       parked = BIT(ACTION_PARKED) | BIT(ACTION_THAWING) | BIT(ACTION_HAND) | BIT(ACTION_MANAGER);
        const struct action *a = &t->steps[at].action;
        uint64_t plan;

        if (is_of_idleness(&t->steps[at]))
                return before_of_idleness(t, at, a->lease_id);
        switch ((enum action_kind) a->kind) {
        case ACTION_ASKED:
                plan = a->why.head_lease_id != 0 ? before(t, at, a->why.head_lease_id, BIT(ACTION_PLAN)) : 0;
                return plan;
        case ACTION_STRANGER: /* seen, warned, noticed, ended: each after the other */
                return before_of_process(t, at, BIT(ACTION_STRANGER) | BIT(ACTION_HAND));
        case ACTION_HAND: /* the next of the same work, or the first of it */
                if (a->lease_id == 0)
                        return before_of_process(t, at, BIT(ACTION_STRANGER) | BIT(ACTION_HAND));
                return before(t, at, a->lease_id,
                              a->why.rule == RULE_END_ORDERED
                                      ? BIT(ACTION_WARNING) | BIT(ACTION_DRAINING) | BIT(ACTION_ORPHANED)
                                      : way_off | BIT(ACTION_THAWING));
        case ACTION_MANAGER: /* a unit is stopped to park it, and started to bring it back */
        case ACTION_PARKED:
        case ACTION_STUCK:
                return before(t, at, a->lease_id, way_off | BIT(ACTION_THAWING));
        case ACTION_THAWING:
                return before(t, at, a->lease_id, BIT(ACTION_PARKED));
        case ACTION_THAWED:
                return before(t, at, a->lease_id, parked);
        case ACTION_PLAN:
                return before(t, at, a->lease_id, a->why.rule == RULE_PLAN_BEGAN ? waits : BIT(ACTION_PLAN));
        case ACTION_GRANTED:
                plan = a->why.rule == RULE_RECLAIMED ? before(t, at, a->lease_id, BIT(ACTION_PLAN)) : 0;
                return plan != 0 ? plan : before(t, at, a->lease_id, waits);
        case ACTION_ACTIVE:
                return before(t, at, a->lease_id, BIT(ACTION_GRANTED) | BIT(ACTION_THAWING) | BIT(ACTION_THAWED));
        case ACTION_WAITING:
                return before(t, at, a->lease_id, waits | BIT(ACTION_PARKED));
        case ACTION_ENDED:
                return before(t, at, a->lease_id, BIT(ACTION_DRAINING) | BIT(ACTION_ORPHANED));
        case ACTION_NONE:
        case ACTION_READ:
        case ACTION_QUEUED:
        case ACTION_REFUSED:
        case ACTION_RENEWED:
        case ACTION_DRAINING:
        case ACTION_ORPHANED:
        case ACTION_WARNING: /* a park that was blocked or failed is told so too: by what it was tried */
        case ACTION_CHANGED: /* and so is the answer to the program that says it has given way */
                return a->why.rule >= RULE_ASKED && a->why.rule <= RULE_STRUCK_OUT
                               ? before(t, at, a->lease_id, way_off | BIT(ACTION_THAWING))
                               : 0;
        case ACTION_IDLE: /* by its program's word */
        case ACTION_DEVICE:
        case ACTION_EYES:
        case ACTION_RESTARTED:
        case ACTION_ENFORCE:
        case ACTION_KIND_N:
                break;
        }
        return 0;
}

void telling_find_causes(struct telling *t)
{
        for (size_t i = 0; i < t->n; i++) {
                struct telling_step *s = &t->steps[i];
                const struct telling_step *order = of_event(t, s->order_id);

                if (s->step.event_id == 0)
                        continue;
                s->step.cause_id = order ? order->step.event_id : by_kind(t, i);
        }
}

/* ---- what belongs to an event ---- */

void telling_keep_chain(struct telling *t, uint64_t event_id)
{
        size_t n = 0;

        for (struct telling_step *s = of_event(t, event_id); s && !s->is_kept; s = of_event(t, s->step.cause_id))
                s->is_kept = true;          /* and what led to it */
        for (size_t i = 0; i < t->n; i++) { /* causes stand before what they lead to */
                struct telling_step *s = &t->steps[i];
                const struct telling_step *cause = of_event(t, s->step.cause_id);
                s->step.is_subject = s->step.event_id == event_id;
                if (s->step.event_id > event_id && cause && cause->is_kept && cause->step.event_id >= event_id)
                        s->is_kept = true;
        }
        for (size_t i = 0; i < t->n; i++)
                if (t->steps[i].is_kept)
                        t->steps[n++] = t->steps[i];
        t->n = n;
}

/* ---- what came again and again ---- */

static bool is_alike(const struct telling_step *a, const struct telling_step *b)
{
        if (a->step.lease_id == 0 && !identity_equal(a->action.process, b->action.process))
                return false;
        return a->step.lease_id == b->step.lease_id && a->step.kind == b->step.kind && a->step.rule == b->step.rule &&
               a->action.hand == b->action.hand && a->action.device == b->action.device;
}

/* A heartbeat is meant to be a clock. What one record says several times is said once. */
static size_t alike(const struct telling *t, size_t first, uint64_t *times_ms, uint64_t *wall_ms)
{
        size_t n = 0;

        for (size_t i = first; i < t->n; i++) {
                const struct telling_step *s = &t->steps[i];
                if (!is_alike(&t->steps[first], s) || (n > 0 && s->step.now_ms == times_ms[n - 1]))
                        continue;
                times_ms[n] = s->step.now_ms;
                wall_ms[n++] = s->step.wall_ms;
        }
        return n;
}

static bool is_first_of_its_kind(const struct telling *t, size_t at)
{
        for (size_t i = 0; i < at; i++)
                if (is_alike(&t->steps[i], &t->steps[at]))
                        return false;
        return true;
}

void telling_find_rhythms(struct telling *t)
{
        struct story *story = t->story;
        uint64_t *times_ms = calloc(t->n + 1, 2 * sizeof(*times_ms)), *wall_ms = times_ms ? times_ms + t->n + 1 : NULL;

        t->failed = t->failed || !times_ms;
        for (size_t i = 0; times_ms && i < t->n; i++) {
                const struct telling_step *s = &t->steps[i];
                if (s->step.event_id == 0 || s->step.kind == ACTION_RENEWED || !is_first_of_its_kind(t, i))
                        continue;
                size_t n = alike(t, i, times_ms, wall_ms);
                for (struct rhythm r = rhythm_find(times_ms, n, 0); r.n != 0 && story->n_rhythms < STORY_RHYTHMS_MAX;
                     r = rhythm_find(times_ms, n, r.first + r.n)) {
                        struct story_rhythm *found = &story->rhythms[story->n_rhythms++];
                        *found = (struct story_rhythm){
                                .lease_id = s->step.lease_id,
                                .first_wall_ms = wall_ms[r.first],
                                .last_wall_ms = wall_ms[r.first + r.n - 1],
                                .period_ms = r.period_ms,
                                .n = r.n,
                                .rule = s->step.rule,
                        };
                        (void) snprintf(found->what, sizeof(found->what), "%s", s->step.what);
                }
        }
        free(times_ms);
}
