/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has memory on a card and never asked: programs by hand, scripts, what a unit or a container starts again, what may never be
 * a target. And what administrators say about them.
 */
#include <string.h>
#include "trial/trial.h"

enum { RETURNS_MAX = 4, RETURNS_IN_MS = 40000 };

static void look_like_somebody(struct trial *t, struct looks_like *to, uint64_t at_ms)
{
        struct random r = random_of(t->script->seed, 19, at_ms);

        to->program = 3000 + random_below(&r, 4);
        to->script = random_one_in(&r, 3) ? 4000 + random_below(&r, 3) : 0;
        to->place = random_one_in(&r, 3) ? 5000 + random_below(&r, PLACES_SEEN_MAX / 4) : 0;
        to->command = 6000 + to->program % 2; /* interpreters: 3002, and 3003, whose script may not be seen */
        to->runs = to->script != 0       ? RUNS_SCRIPT
                   : to->program == 3002 ? RUNS_COMMAND
                   : to->program == 3003 ? RUNS_UNKNOWN
                                         : RUNS_PROGRAM;
        to->guard = random_one_in(&r, 8) ? (uint8_t) random_between(&r, 1, GUARD_N - 1) : GUARD_NONE;
}

void stranger_comes(struct trial *t, const struct event *e)
{
        uint32_t card = (uint32_t) (e->arg[0] % t->n_cards), uid = 1000 + (uint32_t) (e->arg[1] % 5), shell = NOBODY;

        if (e->arg[1] % 3 == 0) { /* from a shell, which has nothing and is to be left alone */
                shell = proc_new(t, NOBODY, uid, card, NOBODY);
                timer_add(t, e->arg[2] + 1000, TIMER_PROC_DIES, shell, t->procs[shell].identity.pid);
        }
        uint32_t p = proc_new(t, NOBODY, uid, card, shell);
        look_like_somebody(t, &t->procs[p].looks_like, e->at_ms);
        t->procs[p].graphics = e->arg[3] != 0;
        t->procs[p].target_bytes = e->arg[1];
        if (!e->arg[4] && proc_take(t, p, e->arg[1]))
                t->procs[p].target_bytes = 0;
        timer_add(t, 100, TIMER_PROC_GROWS, p, t->procs[p].identity.pid);
        timer_add(t, e->arg[2], TIMER_PROC_DIES, p, t->procs[p].identity.pid);
}

/* Its unit or container starts it again. */
void stranger_died(struct trial *t, uint32_t i)
{
        struct proc *p = &t->procs[i];

        if (p->looks_like.place == 0 || p->enforced.n_signals == 0 || p->enforced.n_returns == RETURNS_MAX ||
            t->faults.quiet)
                return;
        timer_add(t, 500 + random_below(&p->random, RETURNS_IN_MS), TIMER_STRANGER_RETURNS, i, p->identity.pid);
}

void stranger_returns(struct trial *t, uint32_t i)
{
        const struct proc was = t->procs[i];

        if (t->faults.quiet)
                return;
        uint32_t n = proc_new(t, NOBODY, was.uid, was.card, NOBODY);
        struct proc *p = &t->procs[n];
        p->looks_like = was.looks_like;
        p->enforced.n_returns = was.enforced.n_returns + 1;
        p->target_bytes = was.bytes;
        timer_add(t, 100, TIMER_PROC_GROWS, n, p->identity.pid);
        timer_add(t, MINUTES(20) + random_below(&p->random, MINUTES(20)), TIMER_PROC_DIES, n, p->identity.pid);
}

/* ---- administrators, and who says that he is one ---- */

static uint32_t some_stranger(const struct trial *t, uint64_t pick)
{
        uint32_t found = NOBODY;

        for (uint32_t i = 0; i < t->n_procs; i++) {
                const struct proc *p = &t->procs[(i + pick) % t->n_procs];
                if (p->used && p->alive && p->client == NOBODY && p->told)
                        found = (uint32_t) ((i + pick) % t->n_procs);
        }
        return found;
}

static uint64_t some_approval(const struct trial *t, uint64_t pick)
{
        for (uint32_t i = 0; i < APPROVALS_MAX; i++)
                if (t->approvals[(i + pick) % APPROVALS_MAX].id != 0)
                        return t->approvals[(i + pick) % APPROVALS_MAX].id;
        return 1000000; /* nobody's */
}

void stranger_call(struct trial *t, const struct event *e)
{
        struct input input = { .kind = INPUT_ENFORCE };
        struct enforce_call *c = &input.enforce;
        uint32_t p;

        *c = (struct enforce_call){ .token = ++t->next_token, .uid = 1000, .is_admin = e->arg[3] != 0 };
        switch ((enum enforce_event) e->arg[0]) {
        case ENFORCE_EVENT_MODE:
                c->what = ENFORCE_CALL_MODE;
                c->mode = (uint8_t) (e->arg[1] % ENFORCE_MODE_N);
                break;
        case ENFORCE_EVENT_APPROVE:
        case ENFORCE_EVENT_APPROVE_HERE:
                p = some_stranger(t, e->arg[4]);
                if (p == NOBODY)
                        return;
                c->what = ENFORCE_CALL_APPROVE;
                c->process = t->procs[p].identity;
                c->for_ms = e->arg[2];
                c->here = e->arg[0] == ENFORCE_EVENT_APPROVE_HERE;
                break;
        case ENFORCE_EVENT_UNAPPROVE:
                c->what = ENFORCE_CALL_UNAPPROVE;
                c->approval_id = some_approval(t, e->arg[4]);
                break;
        case ENFORCE_EVENT_CEILING:
                t->config.enforce_ceiling =
                        e->arg[4] % 3 == 0 ? (uint8_t) (e->arg[1] % ENFORCE_MODE_N) : (uint8_t) ENFORCE_ENFORCE;
                t->config.enforce_own_uid = e->arg[4] % 5 == 0 ? 1001 : UINT32_MAX;
                daemon_tell_config(t);
                return;
        case ENFORCE_EVENT_N:
                return;
        }
        (void) daemon_submit(t, &input);
}
