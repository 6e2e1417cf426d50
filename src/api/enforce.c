/* SPDX-License-Identifier: Apache-2.0 */
/* The enforcer: what it does and would do, and what administrators say to it. */
#include <inttypes.h>
#include <stdio.h>
#include "api/enforce_json.h"
#include "api/enforce_view.h"
#include "api/routes.h"

void look_enforce(struct conn *c)
{
        struct view v;

        conn_view(c, &v);
        conn_reply(c, MHD_HTTP_OK, view_enforce(&v));
}

void look_approvals(struct conn *c)
{
        struct view v;

        conn_view(c, &v);
        conn_reply(c, MHD_HTTP_OK, json_pack("{s:o}", "approvals", view_approvals(&v)));
}

static void submit(struct conn *c, const struct enforce_call *call)
{
        struct input input = { .kind = INPUT_ENFORCE, .enforce = *call };

        input.enforce.uid = c->peer.uid;
        input.enforce.is_admin = c->peer.is_admin;
        route_submit(c, &input, &input.enforce.token, WANT_ENFORCE);
}

void ask_enforce(struct conn *c)
{
        struct enforce_call call;
        struct problem p;

        if (enforce_json_parse(strbuf_text(&c->body), c->body.len, &call, &p) < 0)
                conn_reply_problem(c, &p, NULL);
        else
                submit(c, &call);
}

/* Whoever has that number now, by the facts that the eyes brought. */
static const struct process *find_process(struct conn *c, uint32_t pid)
{
        struct world *w = route_world(c);

        for (uint32_t i = 0; i < w->n_processes; i++)
                if (w->processes[i].identity.pid == pid && w->processes[i].state == PROCESS_LIVE)
                        return &w->processes[i];
        return NULL;
}

void ask_approve(struct conn *c)
{
        struct enforce_call call;
        struct problem p;
        uint32_t pid;

        if (approve_json_parse(strbuf_text(&c->body), c->body.len, &call, &pid, &p) < 0) {
                conn_reply_problem(c, &p, NULL);
                return;
        }
        const struct process *process = find_process(c, pid);
        if (!process) {
                problem_set(&p, 404, "not-a-stranger",
                            "process %" PRIu32 " has no memory on a device; see /api/status for who has", pid);
                conn_reply_problem(c, &p, NULL);
                return;
        }
        call.process = process->identity;
        submit(c, &call);
}

void ask_unapprove(struct conn *c)
{
        struct enforce_call call;
        struct problem p;

        if (unapprove_json_parse(strbuf_text(&c->body), c->body.len, &call, &p) < 0)
                conn_reply_problem(c, &p, NULL);
        else
                submit(c, &call);
}

void enforce_reply(struct conn *c, const struct action *a)
{
        struct view v;

        conn_view(c, &v);
        if (a->why.rule == RULE_APPROVED) {
                const struct approval *approval = world_approval_by_id(v.world, a->why.head_lease_id);
                conn_reply(c, MHD_HTTP_CREATED, approval ? view_approval(&v, approval) : json_object());
        } else if (a->why.rule == RULE_UNAPPROVED) {
                conn_reply(c, MHD_HTTP_OK, json_pack("{s:o}", "approvals", view_approvals(&v)));
        } else {
                conn_reply(c, MHD_HTTP_OK, view_enforce(&v));
        }
}
