/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/enforce.h"
#include <signal.h>
#include <string.h>
#include "arbiter/actions.h"
#include "arbiter/enforce_judge.h"
#include "base/number.h"

enum { AGAIN_MS = 10000, AGAIN_LATER_MS = 600000 };

static uint64_t stamp(const struct world *w)
{
        return w->now_ms != 0 ? w->now_ms : 1; /* 0 means "not" */
}

static bool is_over(const struct world *w, uint64_t since_ms, uint64_t span_ms)
{
        return u64_sub0(w->now_ms, since_ms) >= span_ms;
}

static struct action *say(struct world *w, struct actions *out, const struct audit *a, enum rule rule, uint32_t limit,
                          uint64_t start_ms)
{
        struct action *action = actions_add(w, out, ACTION_STRANGER);

        action->device = a->device;
        action->uid = a->uid;
        action->process = a->identity;
        action->bytes = a->bytes;
        action->why = (struct reason){
                .rule = (uint16_t) rule, .used_bytes = a->bytes, .limit = limit, .start_ms = start_ms
        };
        return action;
}

/* The same of who is audited by it. */
static void say_audit(struct world *w, struct actions *out, struct audit *a, enum rule rule, uint32_t limit,
                      uint64_t start_ms)
{
        if (a->audited_ms == 0)
                a->audited_ms = stamp(w);
        (void) say(w, out, a, rule, limit, start_ms);
}

static void say_once(struct world *w, struct actions *out, struct audit *a, enum audit_told what, enum rule rule,
                     uint32_t limit)
{
        if (a->told & what)
                return;
        a->told |= (uint8_t) what;
        say_audit(w, out, a, rule, limit, 0);
}

/* ---- doubt ---- */

static bool device_was_seen(const struct world *w, const struct device *dev)
{
        return dev->health == DEVICE_LOST ||
               (dev->reading_ms != 0 && dev->reading_ms >= w->enforce.began_ms && dev->settled);
}

/* Everything has to be seen once since the start; most is, for other reasons. What is not is looked at now and then. */
static void sweep(struct world *w, bool order, struct actions *out)
{
        bool all = true;

        for (uint32_t d = 0; d < w->n_devices && w->enforce.swept_ms == 0; d++) {
                const struct device *dev = &w->devices[d];
                if (device_was_seen(w, dev))
                        continue;
                all = false;
                if (order && is_over(w, u64_max(dev->read_asked_ms, w->enforce.began_ms), w->config.enforce_sweep_ms))
                        actions_read(w, out, d);
        }
        if (all && !order && w->enforce.swept_ms == 0)
                w->enforce.swept_ms = stamp(w);
}

/* Nobody needs to know while nothing would be done; and not yet swept is what every start is. */
static void tell_doubt(struct world *w, enum enforce_doubt doubt, struct actions *out)
{
        if (enforce_mode_of(w) != ENFORCE_ENFORCE || doubt == DOUBT_SWEEP || doubt == w->enforce.doubt_told ||
            !actions_have_room(out, 1))
                return;
        w->enforce.doubt_told = (uint8_t) doubt;
        actions_add(w, out, ACTION_ENFORCE)->why = (struct reason){ .rule = RULE_ENFORCE_DOUBT, .limit = doubt };
}

/* ---- one process ---- */

/* What it was sent stays counted, whatever begins anew. */
static void begin_anew(struct audit *a)
{
        a->warned_ms = a->noticed_ms = a->term_ms = a->kill_ms = a->again_ms = 0;
        a->told &= AUDIT_TOLD_UNKILLABLE;
}

/* Another program in the same process is not who was audited. */
static void refresh(struct world *w, struct audit *a, const struct stranger *s)
{
        const struct process *p = s->process;

        a->device = s->device;
        a->bytes = s->bytes;
        if (a->gone_ms != 0) {
                a->gone_ms = 0;
                begin_anew(a);
        }
        if (!p || p->state != PROCESS_LIVE)
                return;
        if (a->over_ms != 0 && (a->program != p->program || a->script != p->script || a->uid != p->uid)) {
                begin_anew(a);
                a->over_ms = stamp(w);
        }
        a->uid = p->uid;
        a->program = p->program;
        a->script = p->script;
        a->place = p->place;
        memcpy(a->comm, p->comm, sizeof(a->comm));
}

/* It has nothing on any device any more: if it was asked to end, that is the success (not what a signal returned). */
static void is_gone(struct world *w, struct audit *a, struct actions *out)
{
        if (a->gone_ms != 0)
                return;
        a->gone_ms = stamp(w);
        a->over_ms = 0;
        a->order_id = 0;
        if (a->term_ms != 0)
                (void) say(w, out, a, RULE_STRANGER_ENDED, 0, 0);
}

static void order(struct world *w, struct actions *out, struct audit *a, int signal, uint64_t start_ms)
{
        struct action *action = say(w, out, a, RULE_STRANGER_ENDING, 0, start_ms);

        action->kind = ACTION_HAND;
        action->hand = HAND_SIGNAL;
        action->signal = (uint8_t) signal;
        a->order_id = action->id;
        a->n_signals++;
}

/* What no longer is to be ended keeps nothing of it; what only cannot be judged just now does. */
static void spare(struct world *w, struct audit *a, struct judgement j, struct actions *out)
{
        bool passing = j.why == VERDICT_WHY_UNSEEN || j.why == VERDICT_WHY_UNKNOWN || j.why == VERDICT_WHY_PARKED;

        if (passing || (a->noticed_ms == 0 && a->term_ms == 0))
                return;
        begin_anew(a);
        (void) say(w, out, a, RULE_STRANGER_SPARED, j.why, 0);
}

/* There is nothing more to send; said once, when the last of it had its time. */
static bool all_was_sent(struct world *w, struct audit *a, struct actions *out)
{
        uint64_t last_ms = a->kill_ms != 0 ? a->kill_ms : a->term_ms;

        if (a->kill_ms == 0 && a->n_signals < ENFORCE_SIGNALS_MAX)
                return (a->told & AUDIT_TOLD_UNKILLABLE) != 0;
        if (is_over(w, last_ms, w->config.enforce_give_up_ms))
                say_once(w, out, a, AUDIT_TOLD_UNKILLABLE, RULE_STRANGER_UNKILLABLE, 0);
        return true;
}

static uint64_t next_step_ms(const struct world *w, const struct audit *a)
{
        uint64_t then_ms = 0;

        if (a->term_ms != 0)
                then_ms = u64_add_sat(a->term_ms, enforce_grace_ms(w, a));
        else if (a->noticed_ms != 0)
                then_ms = u64_add_sat(a->noticed_ms, w->config.enforce_notice_ms);
        return u64_max(then_ms, a->again_ms);
}

/* A step nearer to its end, at most one at a time, on a reading of this moment. Where there is none one is ordered, but not in
 * answer to another one (@on_tick): a card that does not settle would be looked at without pause. */
static void end_it(struct world *w, struct audit *a, const struct stranger *s, bool on_tick, struct actions *out)
{
        if (a->order_id != 0 || all_was_sent(w, a, out) || w->now_ms < next_step_ms(w, a))
                return;
        if (!s->fresh) {
                for (uint32_t d = 0; on_tick && d < w->n_devices; d++)
                        if (world_occupancy_find(w, d, a->identity))
                                actions_read(w, out, d);
                return;
        }
        if (a->noticed_ms == 0) {
                a->noticed_ms = stamp(w);
                say_audit(w, out, a, RULE_STRANGER_NOTICED, 0, u64_add_sat(w->now_ms, w->config.enforce_notice_ms));
        } else if (a->term_ms == 0) {
                a->term_ms = stamp(w);
                order(w, out, a, SIGTERM, u64_add_sat(w->now_ms, enforce_grace_ms(w, a)));
        } else {
                a->kill_ms = stamp(w);
                order(w, out, a, SIGKILL, 0);
        }
}

/* Each change goes with something that is said: a tick that says nothing is in no journal. */
static void act_on(struct world *w, struct audit *a, const struct stranger *s, bool on_tick, struct actions *out)
{
        struct judgement j = enforce_judge(w, s, a);

        if (j.verdict == VERDICT_NONE)
                return;
        if (j.verdict != VERDICT_END)
                spare(w, a, j, out);
        switch (j.verdict) {
        case VERDICT_END:
                end_it(w, a, s, on_tick, out);
                return;
        case VERDICT_WARN:
                if (a->warned_ms == 0) {
                        a->warned_ms = stamp(w);
                        say_audit(w, out, a, RULE_STRANGER_WARNED, j.why, 0);
                }
                return;
        case VERDICT_WOULD_END:
                say_once(w, out, a, AUDIT_TOLD_WOULD, RULE_WOULD_END, j.why);
                return;
        case VERDICT_STOPPED:
                say_once(w, out, a, AUDIT_TOLD_STOPPED, RULE_STRANGER_RETURNS, j.why);
                return;
        case VERDICT_SPARE:
        case VERDICT_NONE:
        case VERDICT_N:
                return;
        }
}

/* ---- all of them ---- */

static void find_new(struct world *w)
{
        world_each_holder_of (w, i, HOLDER_STRANGER) {
                struct identity who = w->holders[i].process;
                struct stranger s;
                if (who.pid == 0 || world_audit_find(w, who))
                        continue;
                stranger_look(w, who, &s);
                if (enforce_judge(w, &s, NULL).verdict == VERDICT_SPARE)
                        continue;
                struct audit *a = world_audit_new(w, who);
                if (!a)
                        return; /* who is not remembered is not touched; it is said (what_is_hidden) */
                refresh(w, a, &s);
                a->over_ms = stamp(w);
        }
}

/* It may be spared for other reasons; what counts here is what it has. */
static void look_again(struct world *w, struct audit *a, const struct stranger *s)
{
        struct judgement j = enforce_judge(w, s, a);

        refresh(w, a, s);
        if (j.why == VERDICT_WHY_BELOW || j.why == VERDICT_WHY_APPROVED)
                a->over_ms = 0;
        else if (a->over_ms == 0 && j.verdict != VERDICT_SPARE)
                a->over_ms = stamp(w);
}

static void forget_old(struct world *w)
{
        for (uint32_t i = w->n_audits; i > 0; i--) {
                struct audit *a = &w->audits[i - 1];
                bool never_was = a->audited_ms == 0 && a->n_signals == 0;
                if (a->gone_ms != 0 && (never_was || is_over(w, a->gone_ms, AUDIT_KEPT_MS)))
                        world_audit_drop(w, a);
        }
        for (uint32_t i = w->n_approvals; i > 0; i--) {
                struct approval *a = &w->approvals[i - 1];
                if (approval_has_lapsed(w, a) && a->lapse_told && is_over(w, a->until_ms, APPROVAL_WARNS_MS))
                        world_approval_drop(w, a);
        }
}

/* Whose memory is there, and nobody can be held to it. */
static enum enforce_doubt what_is_hidden(struct world *w)
{
        enum enforce_doubt doubt = DOUBT_NONE;

        world_each_holder_of (w, i, HOLDER_STRANGER) {
                const struct holder *h = &w->holders[i];
                struct stranger s;
                if (h->used_bytes < w->config.enforce_min_bytes || world_audit_find(w, h->process))
                        continue;
                stranger_look(w, h->process, &s);
                struct judgement j = enforce_judge(w, &s, NULL);
                if (j.why == VERDICT_WHY_UNSEEN && doubt == DOUBT_NONE)
                        doubt = DOUBT_BLIND;
                else if (j.verdict != VERDICT_SPARE)
                        doubt = DOUBT_FULL;
        }
        return doubt;
}

void enforce_look(struct world *w, struct actions *out)
{
        sweep(w, false, out);
        find_new(w);
        if (what_is_hidden(w) == DOUBT_NONE)
                w->enforce.hidden_ms = 0;
        else if (w->enforce.hidden_ms == 0)
                w->enforce.hidden_ms = stamp(w);
        for (uint32_t i = 0; i < w->n_audits; i++) {
                struct stranger s;
                if (!actions_have_room(out, 1 + DEVICES_MAX))
                        return;
                stranger_look(w, w->audits[i].identity, &s);
                if (s.n_devices == 0) {
                        is_gone(w, &w->audits[i], out);
                        continue;
                }
                look_again(w, &w->audits[i], &s);
                if (enforce_doubt_of(w) == DOUBT_NONE)
                        act_on(w, &w->audits[i], &s, false, out);
        }
        forget_old(w);
}

static void tell_lapsed(struct world *w, struct actions *out)
{
        for (uint32_t i = 0; i < w->n_approvals; i++) {
                struct approval *a = &w->approvals[i];
                if (!approval_has_lapsed(w, a) || a->lapse_told || !actions_have_room(out, 1))
                        continue;
                a->lapse_told = true;
                struct action *said = actions_add(w, out, ACTION_ENFORCE);
                said->uid = a->uid;
                said->why = (struct reason){ .rule = RULE_APPROVAL_LAPSED, .head_lease_id = a->id };
                find_new(w); /* whom it covered is looked at from now on */
                for (uint32_t k = 0; k < w->n_audits; k++) {
                        struct stranger s;
                        stranger_look(w, w->audits[k].identity, &s);
                        if (s.n_devices != 0)
                                look_again(w, &w->audits[k], &s);
                }
        }
}

void enforce_tick(struct world *w, struct actions *out)
{
        enum enforce_doubt doubt = enforce_doubt_of(w);

        tell_lapsed(w, out);
        if (doubt != DOUBT_NONE) {
                if (doubt == DOUBT_SWEEP && w->n_audits != 0)
                        sweep(w, true, out);
                tell_doubt(w, doubt, out);
                return;
        }
        if (w->enforce.hidden_ms == 0)
                tell_doubt(w, DOUBT_NONE, out);
        else if (is_over(w, w->enforce.hidden_ms, w->config.enforce_stay_ms)) /* who is dying is hidden for a moment */
                tell_doubt(w, what_is_hidden(w), out);
        for (uint32_t i = 0; i < w->n_audits; i++) {
                struct audit *a = &w->audits[i];
                struct stranger s;
                if (a->gone_ms != 0 || !actions_have_room(out, 2 + DEVICES_MAX))
                        continue;
                stranger_look(w, a->identity, &s);
                if (s.n_devices != 0)
                        act_on(w, a, &s, true, out);
        }
}

enum enforce_doubt enforce_doubt_shown(struct world *w)
{
        enum enforce_doubt doubt = enforce_doubt_of(w);

        return doubt == DOUBT_NONE && w->enforce.hidden_ms != 0 ? what_is_hidden(w) : doubt;
}

static bool is_open(enum enforce_mode mode, const struct audit *a)
{
        if (a->gone_ms != 0)
                return false;
        if (mode == ENFORCE_ENFORCE)
                return true;
        return mode == ENFORCE_WARN ? a->warned_ms == 0 : !(a->told & AUDIT_TOLD_WOULD);
}

bool enforce_needs_ticks(const struct world *w)
{
        enum enforce_mode mode = enforce_mode_of(w);
        bool needs = w->enforce.hidden_ms != 0 && mode == ENFORCE_ENFORCE;

        for (uint32_t i = 0; !needs && i < w->n_audits; i++)
                needs = is_open(mode, &w->audits[i]);
        for (uint32_t i = 0; !needs && i < w->n_approvals; i++)
                needs = w->approvals[i].until_ms != 0 && !w->approvals[i].lapse_told;
        return needs;
}

bool enforce_has_stranger(struct world *w, struct identity identity)
{
        for (uint32_t d = 0; d < w->n_devices; d++)
                if (world_occupancy_find(w, d, identity))
                        return true;
        return false;
}

/* ---- what came of it ---- */

/* What a person has to change is not asked every few seconds. */
static uint64_t again_after_ms(enum hand_why why)
{
        bool lasts = why == HAND_WHY_PROTECTED || why == HAND_WHY_OWNER || why == HAND_WHY_KERNEL;
        return lasts ? AGAIN_LATER_MS : AGAIN_MS;
}

static struct audit *find_order(struct world *w, uint64_t order_id)
{
        for (uint32_t i = 0; order_id != 0 && i < w->n_audits; i++)
                if (w->audits[i].order_id == order_id)
                        return &w->audits[i];
        return NULL;
}

void enforce_outcome(struct world *w, const struct hand_outcome *o, struct actions *out)
{
        struct audit *a = find_order(w, o->order_id);
        if (!a)
                return;

        a->order_id = 0;
        if (o->outcome == OUTCOME_DONE || o->why == HAND_WHY_GONE)
                return; /* the device will show it */
        if (o->outcome == OUTCOME_FAILED) {
                say_once(w, out, a, AUDIT_TOLD_UNKILLABLE, RULE_STRANGER_UNKILLABLE, 0);
                return;
        }
        /* It was not sent. Without its grace (hands that were started anew do not know of it) it is the SIGTERM. */
        bool was_term = a->kill_ms == 0;
        if (a->n_signals > 0)
                a->n_signals--;
        a->kill_ms = 0;
        if (was_term || o->why == HAND_WHY_GRACE)
                a->term_ms = 0;
        a->again_ms = w->now_ms + again_after_ms((enum hand_why) o->why);
        say_once(w, out, a, AUDIT_TOLD_BLOCKED, RULE_STRANGER_BLOCKED, o->why);
}

void enforce_begin_anew(struct world *w)
{
        w->enforce.began_ms = w->now_ms;
        w->enforce.swept_ms = 0;
}

/* Decided, stored, and then the daemon died: whether the order left it nobody knows. A SIGKILL that may never have left is ordered
 * again, while there are signals left; of a SIGTERM that did not the hands say so, when the kill comes without its grace. */
void enforce_was_away(struct world *w)
{
        for (uint32_t i = 0; i < w->n_audits; i++) {
                struct audit *a = &w->audits[i];
                if (a->order_id != 0 && a->n_signals < ENFORCE_SIGNALS_MAX)
                        a->kill_ms = 0;
                a->order_id = 0;
        }
        enforce_begin_anew(w);
}
