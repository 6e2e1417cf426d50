/* SPDX-License-Identifier: Apache-2.0 */
/* What administrators say to the enforcer: the mode, and whose program may stay without a lease. */
#include <string.h>
#include "arbiter/actions.h"
#include "arbiter/enforce.h"
#include "arbiter/enforce_judge.h"
#include "base/number.h"

static void answer(struct world *w, const struct enforce_call *c, enum action_kind kind, const struct reason *why,
                   struct actions *out)
{
        struct action *a = actions_add(w, out, kind);

        a->token = c->token;
        a->uid = c->uid;
        a->why = *why;
}

static void refuse(struct world *w, const struct enforce_call *c, enum rule rule, uint32_t limit, struct actions *out)
{
        answer(w, c, ACTION_REFUSED,
               &(struct reason){ .rule = (uint16_t) rule, .limit = limit, .head_lease_id = c->approval_id }, out);
        out->items[out->n - 1].process = c->process; /* none but of who is to be approved */
}

static void set_mode(struct world *w, const struct enforce_call *c, struct actions *out)
{
        if (c->mode > w->config.enforce_ceiling) {
                refuse(w, c, RULE_MODE_CEILING, w->config.enforce_ceiling, out);
                return;
        }
        w->enforce.mode = c->mode;
        w->enforce.mode_by_uid = c->uid;
        w->enforce.mode_ms = w->now_ms != 0 ? w->now_ms : 1;
        answer(w, c, ACTION_ENFORCE, &(struct reason){ .rule = RULE_ENFORCE_MODE, .limit = c->mode }, out);
}

static struct approval *same_approval(struct world *w, const struct approval *of)
{
        for (uint32_t i = 0; i < w->n_approvals; i++) {
                struct approval *a = &w->approvals[i];
                if (a->uid == of->uid && a->program == of->program && a->runs == of->runs && a->script == of->script &&
                    a->command == of->command && a->place == of->place)
                        return a;
        }
        return NULL;
}

/* What is approved is what the world knows of the process, not what the caller says of it. */
static void approve(struct world *w, const struct enforce_call *c, struct actions *out)
{
        const struct process *p = world_process_find(w, c->process);

        if (!p || p->state != PROCESS_LIVE) {
                refuse(w, c, RULE_NOT_A_STRANGER, 0, out);
                return;
        }
        if (p->program == 0 || p->uid == UINT32_MAX) {
                refuse(w, c, RULE_PROGRAM_UNKNOWN, 0, out);
                return;
        }
        if (c->here && p->place == 0) {
                refuse(w, c, RULE_PLACE_UNKNOWN, 0, out);
                return;
        }
        if (p->runs == RUNS_UNKNOWN && !c->here) {
                refuse(w, c, RULE_SCRIPT_UNKNOWN, 0, out);
                return;
        }
        const struct approval wanted = { .uid = p->uid,
                                         .program = p->program,
                                         .script = p->runs == RUNS_SCRIPT ? p->script : 0,
                                         .command = p->runs == RUNS_COMMAND ? p->command : 0,
                                         .place = c->here ? p->place : 0,
                                         .runs = p->runs };
        struct approval *a = same_approval(w, &wanted);
        if (!a)
                a = world_approval_new(w);
        if (!a) {
                refuse(w, c, RULE_LIMIT_APPROVALS, APPROVALS_MAX, out);
                return;
        }
        a->uid = wanted.uid;
        a->by_uid = c->uid;
        a->program = wanted.program;
        a->script = wanted.script;
        a->command = wanted.command;
        a->place = wanted.place;
        a->runs = wanted.runs;
        a->since_ms = w->now_ms;
        a->until_ms = c->for_ms != 0 ? u64_add_sat(w->now_ms, c->for_ms) : 0;
        a->lapse_told = false;
        memcpy(a->comm, p->comm, sizeof(a->comm));
        answer(w, c, ACTION_ENFORCE,
               &(struct reason){ .rule = RULE_APPROVED, .head_lease_id = a->id, .start_ms = a->until_ms }, out);
        out->items[out->n - 1].process = p->identity;
}

static void unapprove(struct world *w, const struct enforce_call *c, struct actions *out)
{
        struct approval *a = world_approval_by_id(w, c->approval_id);

        if (!a || c->approval_id == 0) {
                refuse(w, c, RULE_NO_APPROVAL, 0, out);
                return;
        }
        answer(w, c, ACTION_ENFORCE, &(struct reason){ .rule = RULE_UNAPPROVED, .head_lease_id = a->id }, out);
        world_approval_drop(w, a);
}

void enforce_call_step(struct world *w, const struct enforce_call *c, struct actions *out)
{
        if (!c->is_admin) {
                refuse(w, c, RULE_ADMIN_ONLY, 0, out);
                return;
        }
        switch ((enum enforce_call_what) c->what) {
        case ENFORCE_CALL_MODE:
                set_mode(w, c, out);
                break;
        case ENFORCE_CALL_APPROVE:
                approve(w, c, out);
                break;
        case ENFORCE_CALL_UNAPPROVE:
                unapprove(w, c, out);
                break;
        case ENFORCE_CALL_NONE:
        case ENFORCE_CALL_N:
                return;
        }
        enforce_look(w, out);
}
