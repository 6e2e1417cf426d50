/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must never happen to a process without a lease (design 4.7): an order against an identity that was not given notice, while
 * anything is in doubt, before its time, once too often, or against the innocent. And what must: who was to be ended is.
 */
#include <inttypes.h>
#include <signal.h>
#include "trial/trial.h"

enum { DAY_MS = 24 * 3600 * 1000, LEFT_ALONE_MS = 30 * 60 * 1000 };

/* ---- what was said ---- */

static struct place_said *place_of(struct trial *t, const struct proc *p)
{
        for (uint32_t i = 0; i < PLACES_SEEN_MAX; i++) {
                struct place_said *at = &t->places[i];
                if (at->place == 0)
                        *at = (struct place_said){ .place = p->looks_like.place,
                                                   .program = p->looks_like.program,
                                                   .script = p->looks_like.script,
                                                   .uid = p->uid };
                if (at->place == p->looks_like.place && at->program == p->looks_like.program &&
                    at->script == p->looks_like.script && at->uid == p->uid)
                        return at;
        }
        return NULL; /* there are more than the trial follows */
}

static void approved(struct trial *t, const struct action *a)
{
        struct approval_said *row = NULL;
        uint32_t i = proc_find(t, a->process);

        for (uint32_t k = 0; k < APPROVALS_MAX && (!row || row->id != a->why.head_lease_id); k++)
                if (t->approvals[k].id == a->why.head_lease_id || (!row && t->approvals[k].id == 0))
                        row = &t->approvals[k];
        if (!row || i == NOBODY)
                trial_break(t, "approved: who, or one too many");
        const struct proc *p = &t->procs[i];
        if (p->looks_like.program != 0 && p->looks_like.runs == RUNS_UNKNOWN && !t->input.enforce.here)
                trial_break(t, "an interpreter is approved with all of its scripts");
        *row = (struct approval_said){ .id = a->why.head_lease_id,
                                       .uid = p->uid,
                                       .program = p->looks_like.program != 0 ? p->looks_like.program : 1000,
                                       .script = p->looks_like.script,
                                       .command = p->looks_like.command,
                                       .runs = p->looks_like.program != 0 ? p->looks_like.runs : (uint8_t) RUNS_PROGRAM,
                                       .place = t->input.enforce.here ? p->looks_like.place : 0,
                                       .until_ms = a->why.start_ms };
        t->count.approved++;
}

static void said_of_enforcer(struct trial *t, const struct action *a)
{
        bool is_word =
                a->why.rule == RULE_ENFORCE_MODE || a->why.rule == RULE_APPROVED || a->why.rule == RULE_UNAPPROVED;

        if (is_word && (t->input.kind != INPUT_ENFORCE || !t->input.enforce.is_admin))
                trial_break(t, "the enforcer obeys who is no administrator");
        if (a->why.rule == RULE_ENFORCE_MODE) {
                t->enforce_mode = (uint8_t) a->why.limit;
                t->enforce_mode_ms = t->now_ms;
        }
        if (a->why.rule == RULE_APPROVED)
                approved(t, a);
        for (uint32_t k = 0; k < APPROVALS_MAX && a->why.rule == RULE_UNAPPROVED; k++)
                if (t->approvals[k].id == a->why.head_lease_id)
                        t->approvals[k] = (struct approval_said){ 0 };
}

static void ended(struct trial *t, struct proc *p)
{
        struct place_said *at = p->looks_like.place != 0 ? place_of(t, p) : NULL;

        t->count.strangers_ended++;
        if (!at || identity_equal(at->ended[0], p->identity) || identity_equal(at->ended[1], p->identity))
                return;
        at->ended[1] = at->ended[0];
        at->term_ms[1] = at->term_ms[0];
        at->ended[0] = p->identity;
        at->term_ms[0] = p->enforced.term_ms;
}

static void gives_up(struct trial *t, const struct action *a, struct proc *p)
{
        t->count.given_up++;
        if (p->enforced.alarmed)
                trial_break(t, "pid %u is called unkillable twice", a->process.pid);
        p->enforced.alarmed = true;
}

void check_enforced(struct trial *t, const struct action *a)
{
        uint32_t i = a->kind == ACTION_STRANGER ? proc_find(t, a->process) : NOBODY;

        if (a->kind == ACTION_ENFORCE)
                said_of_enforcer(t, a);
        t->count.would_end += a->why.rule == RULE_WOULD_END;
        t->count.warned += a->why.rule == RULE_STRANGER_WARNED;
        t->count.spared += a->why.rule == RULE_STRANGER_SPARED;
        t->count.stopped += a->why.rule == RULE_STRANGER_RETURNS;
        if (i == NOBODY)
                return;
        struct proc *p = &t->procs[i];
        switch ((unsigned) a->why.rule) {
        case RULE_STRANGER_NOTICED:
                t->count.noticed++;
                p->enforced.noticed_ms = t->now_ms;
                p->enforced.term_ms = 0;
                break;
        case RULE_STRANGER_SPARED:
                p->enforced.noticed_ms = p->enforced.term_ms = 0;
                break;
        case RULE_STRANGER_ENDED:
                ended(t, p);
                break;
        case RULE_STRANGER_UNKILLABLE:
                gives_up(t, a, p);
                break;
        }
}

/* ---- an order ---- */

static bool is_approved(const struct trial *t, const struct proc *p)
{
        for (uint32_t i = 0; i < APPROVALS_MAX; i++) {
                const struct approval_said *a = &t->approvals[i];
                if (a->id != 0 && a->uid == p->uid && a->program == p->looks_like.program &&
                    (a->runs == RUNS_UNKNOWN || (a->runs == p->looks_like.runs && a->script == p->looks_like.script &&
                                                 (a->runs != RUNS_COMMAND || a->command == p->looks_like.command))) &&
                    (a->place == 0 || a->place == p->looks_like.place) &&
                    (a->until_ms == 0 || t->now_ms < a->until_ms + DAY_MS))
                        return true; /* one that lapsed warns for a day */
        }
        return false;
}

static const struct row_said *row_of(const struct trial *t, const struct proc *p)
{
        const struct said *said = &t->cards[p->card].said;

        for (uint32_t i = 0; i < said->n_rows; i++)
                if (identity_equal(said->rows[i].identity, p->identity))
                        return &said->rows[i];
        return NULL;
}

/* Is all of this known of it, by a look of this moment? */
static const char *what_is_not_known(const struct trial *t, const struct proc *p)
{
        const struct said *said = &t->cards[p->card].said;
        const struct row_said *row = row_of(t, p);

        if (!t->eyes_open || t->degraded)
                return "while in doubt";
        if (!said->told || !said->settled || !said->per_process ||
            t->now_ms - said->taken_ms > t->config.reading_max_age_ms)
                return "without a look at its card";
        if (!row || !row->known || row->ghost)
                return "and what it has is not known";
        if (row->bytes < t->config.enforce_min_bytes)
                return "and it has next to nothing";
        return NULL;
}

/* Who is missing in one list and there in the next has not ended. */
static bool was_ended_often(struct trial *t, const struct proc *p)
{
        const struct place_said *at = p->looks_like.place != 0 ? place_of(t, p) : NULL;
        uint64_t since_ms = u64_max(t->enforce_mode_ms, u64_sub0(t->now_ms, DAY_MS));
        bool often = at != NULL;

        for (uint32_t k = 0; often && k < 2; k++) {
                uint32_t i = proc_find(t, at->ended[k]);
                often = at->term_ms[k] != 0 && at->term_ms[k] >= since_ms && (i == NOBODY || !t->procs[i].alive);
        }
        return often;
}

static const char *what_speaks_for_it(struct trial *t, const struct proc *p)
{
        const struct book *b = p->client != NOBODY ? book_of(t, t->clients[p->client].lease_id) : NULL;

        if (t->enforce_mode != ENFORCE_ENFORCE || t->world->config.enforce_ceiling < ENFORCE_ENFORCE)
                return "and nobody said that strangers are to be ended";
        if (b && (book_lives(b) || b->life == LIFE_DRAINS))
                return "which has a lease";
        if (p->graphics || p->looks_like.guard != GUARD_NONE)
                return "which may never be a target";
        if (t->world->config.enforce_own_uid != UINT32_MAX && t->world->config.enforce_own_uid != p->uid)
                return "which is somebody else's";
        if (is_approved(t, p))
                return "which is approved";
        if (was_ended_often(t, p))
                return "whose unit starts it again and again";
        return NULL;
}

static const char *what_is_early(const struct trial *t, const struct action *a, const struct proc *p)
{
        const struct enforced *e = &p->enforced;

        if (e->noticed_ms == 0 || t->now_ms - e->noticed_ms < t->config.enforce_notice_ms)
                return "before its notice was over";
        if (a->signal == SIGKILL && (e->term_ms == 0 || t->now_ms - e->term_ms < t->config.enforce_grace_ms[0]))
                return "before its grace was over";
        return NULL;
}

void check_stranger_order(struct trial *t, const struct action *a)
{
        uint32_t i = proc_find(t, a->process);
        struct proc *p = i != NOBODY ? &t->procs[i] : NULL;

        if (a->hand != HAND_SIGNAL || a->lease_id != 0 || (a->signal != SIGTERM && a->signal != SIGKILL))
                trial_break(t, "F52: more than the process pid %u alone is ordered", a->process.pid);
        if (!p)
                trial_break(t, "I3: an order against pid %u, which is nobody that was there", a->process.pid);
        const char *words = what_is_not_known(t, p);
        if (words)
                trial_break(t, "I7: a signal for pid %u %s", a->process.pid, words);
        words = what_speaks_for_it(t, p);
        if (!words)
                words = what_is_early(t, a, p);
        if (words)
                trial_break(t, "I3: a signal for pid %u %s", a->process.pid, words);
        if (a->signal == SIGTERM)
                p->enforced.term_ms = t->now_ms;
        else
                p->enforced.kill_ms = t->now_ms;
        t->count.terms += a->signal == SIGTERM;
        t->count.strangers_killed += a->signal == SIGKILL;
}

void check_signal_sent(struct trial *t, const struct action *a, uint32_t i)
{
        struct proc *p = &t->procs[i];

        if (!rule_is_enforcement(a->why.rule))
                return;
        if (++p->enforced.n_signals > ENFORCE_SIGNALS_MAX)
                trial_break(t, "pid %u is sent a signal for the %uth time", a->process.pid, p->enforced.n_signals);
}

/* ---- as time passes ---- */

/* Of a unit something was ended before: it may be one too many, and a person has to look. */
static bool may_be_left(struct trial *t, const struct proc *p)
{
        return p->looks_like.place != 0 &&
               (p->enforced.n_returns != 0 || place_of(t, p) == NULL || place_of(t, p)->term_ms[0] != 0);
}

/* Nothing speaks for it, everything is known of it, and nothing is done. */
static bool is_due(struct trial *t, const struct proc *p)
{
        const struct row_said *row = p->used && p->alive ? row_of(t, p) : NULL;

        if (!row || !row->known || p->client != NOBODY || !p->told || p->no_figure || p->was_restored ||
            p->enforced.n_signals != 0 || p->bytes < t->config.enforce_min_bytes || t->cards[p->card].lost)
                return false;
        return t->up && t->hands_up && t->eyes_open && !t->degraded && !t->faults.quiet && !may_be_left(t, p) &&
               !what_speaks_for_it(t, p);
}

void check_strangers_in_time(struct trial *t)
{
        for (uint32_t i = 0; i < t->n_procs; i++) {
                struct proc *p = &t->procs[i];
                if (!is_due(t, p))
                        p->enforced.left_alone_ms = 0;
                else if (p->enforced.left_alone_ms == 0)
                        p->enforced.left_alone_ms = t->now_ms;
                else if (t->now_ms - p->enforced.left_alone_ms > LEFT_ALONE_MS)
                        trial_break(t, "pid %u has %" PRIu64 " and no lease, and is left alone", p->identity.pid,
                                    p->bytes);
        }
}

void check_strangers_slept(struct trial *t, uint64_t ms)
{
        for (uint32_t i = 0; i < t->n_procs; i++)
                if (t->procs[i].enforced.left_alone_ms != 0)
                        t->procs[i].enforced.left_alone_ms += ms;
}
