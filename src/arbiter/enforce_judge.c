/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/enforce_judge.h"
#include "arbiter/lane.h"
#include "base/number.h"
#include "model/input.h"

void stranger_look(struct world *w, struct identity identity, struct stranger *ret)
{
        uint64_t most_bytes = 0;

        *ret = (struct stranger){ .process = world_process_find(w, identity), .known = true, .fresh = true };
        for (uint32_t d = 0; d < w->n_devices; d++) {
                const struct occupancy *row = world_occupancy_find(w, d, identity);
                if (!row)
                        continue;
                if (ret->n_devices++ == 0 || row->used_bytes > most_bytes) {
                        ret->device = d;
                        most_bytes = row->used_bytes;
                }
                ret->bytes = u64_add_sat(ret->bytes, row->used_bytes);
                ret->flags |= row->flags;
                ret->known = ret->known && (row->flags & ROW_USED_KNOWN) != 0 && w->devices[d].per_process_known;
                ret->fresh = ret->fresh && w->devices[d].health == DEVICE_OK && device_is_fresh(w, d);
        }
}

enum enforce_doubt enforce_doubt_of(const struct world *w)
{
        if (w->degraded)
                return DOUBT_BOOKS;
        if (!w->eyes_answering)
                return DOUBT_EYES;
        if (w->pause != PAUSE_NONE || w->enforce.swept_ms == 0 ||
            u64_sub0(w->now_ms, w->enforce.began_ms) < w->config.enforce_sweep_ms)
                return DOUBT_SWEEP;
        return DOUBT_NONE;
}

enum enforce_mode enforce_mode_of(const struct world *w)
{
        return w->enforce.mode < w->config.enforce_ceiling ? (enum enforce_mode) w->enforce.mode
                                                           : (enum enforce_mode) w->config.enforce_ceiling;
}

bool approval_has_lapsed(const struct world *w, const struct approval *a)
{
        return a->until_ms != 0 && w->now_ms >= a->until_ms;
}

static bool covers_what_it_runs(const struct approval *a, const struct process *p)
{
        switch ((enum process_runs) a->runs) {
        case RUNS_UNKNOWN:
                return a->place != 0;
        case RUNS_PROGRAM:
                return p->runs == RUNS_PROGRAM;
        case RUNS_SCRIPT:
                return p->runs == RUNS_SCRIPT && a->script == p->script;
        case RUNS_COMMAND:
                return p->runs == RUNS_COMMAND && a->command == p->command;
        case RUNS_N:
                break;
        }
        return false;
}

static bool covers(const struct approval *a, const struct process *p)
{
        return a->uid == p->uid && a->program != 0 && a->program == p->program && covers_what_it_runs(a, p) &&
               (a->place == 0 || a->place == p->place);
}

const struct approval *enforce_approval_of(const struct world *w, const struct process *p)
{
        const struct approval *best = NULL;

        for (uint32_t i = 0; i < w->n_approvals; i++) {
                const struct approval *a = &w->approvals[i];
                if (!covers(a, p) ||
                    (a->until_ms != 0 && w->now_ms - u64_min(a->until_ms, w->now_ms) >= APPROVAL_WARNS_MS &&
                     approval_has_lapsed(w, a)))
                        continue;
                if (!best || (approval_has_lapsed(w, best) && !approval_has_lapsed(w, a)))
                        best = a;
        }
        return best;
}

uint64_t enforce_grace_ms(const struct world *w, const struct audit *a)
{
        enum grace_class class = a->place != 0 ? GRACE_PLACE : a->script != 0 ? GRACE_SCRIPT : GRACE_PROGRAM;

        return w->config.enforce_grace_ms[class];
}

/* It was sent something since the mode was set, and has ended. Who was missing in one list and there in the next was audited anew,
 * and what it was sent stayed counted: then it is its end that counts. */
static bool was_ended(const struct world *w, const struct audit *a)
{
        return a->gone_ms != 0 && a->n_signals != 0 &&
               (a->term_ms != 0 ? a->term_ms : a->gone_ms) >= w->enforce.mode_ms;
}

/* Was what runs in its unit or container ended before, and came again? What a person starts by hand is in none. Only since the mode
 * was set: to set it again is to say "try once more". */
static uint32_t n_returns(const struct world *w, const struct process *p)
{
        uint32_t n = 0;

        for (uint32_t i = 0; p->place != 0 && i < w->n_audits; i++) {
                const struct audit *a = &w->audits[i];
                n += was_ended(w, a) && a->uid == p->uid && a->place == p->place && a->program == p->program &&
                     a->script == p->script && !identity_equal(a->identity, p->identity);
        }
        return n;
}

/* Why it may not be touched, whatever the mode; NONE = nothing speaks for it. */
static enum verdict_why reason_to_spare(const struct world *w, const struct stranger *s)
{
        const struct process *p = s->process;

        if (!p || p->state != PROCESS_LIVE || p->identity.start_ticks == 0 || (s->flags & ROW_GHOST) ||
            p->uid == UINT32_MAX || p->guard == GUARD_UNSEEN)
                return VERDICT_WHY_UNSEEN;
        if (p->identity.pid == 1 || p->guard != GUARD_NONE)
                return VERDICT_WHY_GUARD;
        if (s->flags & ROW_GRAPHICS)
                return VERDICT_WHY_GRAPHICS;
        if (!ref_is_none(p->lease))
                return VERDICT_WHY_LEASE;
        if (p->member != MEMBER_RUNNING)
                return VERDICT_WHY_PARKED;
        if (!s->known)
                return VERDICT_WHY_UNKNOWN;
        if (s->bytes < u64_max(w->config.enforce_min_bytes, 1))
                return VERDICT_WHY_BELOW;
        if (w->config.enforce_own_uid != UINT32_MAX && w->config.enforce_own_uid != p->uid)
                return VERDICT_WHY_OTHER;
        return VERDICT_WHY_NONE;
}

static struct judgement by_mode(const struct world *w)
{
        static const enum verdict verdicts[ENFORCE_MODE_N] = {
                [ENFORCE_OBSERVE] = VERDICT_WOULD_END, [ENFORCE_WARN] = VERDICT_WARN, [ENFORCE_ENFORCE] = VERDICT_END
        };
        return (struct judgement){ verdicts[enforce_mode_of(w)], VERDICT_WHY_MODE };
}

struct judgement enforce_judge(const struct world *w, const struct stranger *s, const struct audit *audit)
{
        enum verdict_why why = reason_to_spare(w, s);
        if (why != VERDICT_WHY_NONE)
                return (struct judgement){ VERDICT_SPARE, why };

        const struct approval *approval = enforce_approval_of(w, s->process);
        if (approval && !approval_has_lapsed(w, approval))
                return (struct judgement){ VERDICT_SPARE, VERDICT_WHY_APPROVED };
        if (!audit || audit->over_ms == 0 || u64_sub0(w->now_ms, audit->over_ms) < w->config.enforce_stay_ms)
                return (struct judgement){ VERDICT_NONE, VERDICT_WHY_YOUNG };

        struct judgement j = by_mode(w);
        if (j.verdict != VERDICT_END)
                return j;
        if (approval)
                return (struct judgement){ VERDICT_WARN, VERDICT_WHY_LAPSED };
        if (n_returns(w, s->process) > RETURNS_ALLOWED)
                return (struct judgement){ VERDICT_STOPPED, VERDICT_WHY_RETURNS };
        return j;
}
