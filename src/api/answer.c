/* SPDX-License-Identifier: Apache-2.0 */
/* What the core decided becomes the answer of the connection that waits for it. */
#include "api/refusal.h"
#include "api/routes.h"
#include "model/lease.h"

static void reply_refused(struct conn *c, const struct action *a)
{
        struct problem p;

        c->gives_up = c->binds_here = false;
        if (a->why.rule == RULE_ADMIN_ONLY)
                (void) route_not_admin(c, &p);
        else
                refusal_of_action(&p, a, c->server->host.now_ms(c->server->host.ctx));
        conn_reply_problem(c, &p, refusal_extra(a, c->server->host.now_ms(c->server->host.ctx)));
}

static void reply_granted(struct conn *c)
{
        struct lease *lease = world_lease_by_id(route_world(c), c->lease_id);

        if (!lease) { /* granted and ended in one turn */
                c->gives_up = c->binds_here = false;
                story_reply_gone(c);
                return;
        }
        route_reply_lease(c, MHD_HTTP_CREATED, lease);
}

/* A grant for a client that waits is collected for it, in its name, before it is answered. */
static void on_grant(struct conn *c)
{
        struct api_server *s = c->server;
        struct lease *lease = world_lease_by_id(route_world(c), c->lease_id);

        if (!lease || lease->state != LEASE_GRANTED || c->mode == LEASE_ASK_QUEUE) {
                reply_granted(c);
                return;
        }
        c->want = WANT_COLLECT;
        c->token = server_next_token(s, c);
        conn_submit_fact(c, INPUT_ACTIVATE, c->lease_id, END_NONE, c->token);
}

static void on_lease_action(struct conn *c, const struct action *a)
{
        struct lease *lease;

        switch ((enum action_kind) a->kind) {
        case ACTION_REFUSED:
                reply_refused(c, a);
                return;
        case ACTION_GRANTED:
                c->lease_id = a->lease_id;
                on_grant(c);
                return;
        case ACTION_ACTIVE:
                reply_granted(c);
                return;
        case ACTION_ENDED:
        case ACTION_DRAINING:
                c->gives_up = c->binds_here = false;
                reply_refused(c, a);
                return;
        case ACTION_QUEUED:
                c->lease_id = a->lease_id;
                lease = world_lease_by_id(route_world(c), a->lease_id);
                if (c->mode == LEASE_ASK_QUEUE && lease)
                        route_reply_lease(c, MHD_HTTP_ACCEPTED, lease);
                else if (!lease)
                        reply_granted(c);
                else if (c->state == CONN_STEPPING) {
                        c->token = 0;
                        conn_await(c, a->lease_id);
                        conn_sleep(c, CONN_WAITING);
                }
                return;
        case ACTION_NONE:
        case ACTION_READ:
        case ACTION_RENEWED:
        case ACTION_WAITING:
        case ACTION_ORPHANED:
        case ACTION_ASKED:
        case ACTION_PARKED:
        case ACTION_THAWING:
        case ACTION_THAWED:
        case ACTION_STUCK:
        case ACTION_PLAN:
        case ACTION_WARNING:
        case ACTION_DEVICE:
        case ACTION_STRANGER:
        case ACTION_EYES:
        case ACTION_RESTARTED:
        case ACTION_CHANGED:
        case ACTION_HAND:
        case ACTION_IDLE:
        case ACTION_MANAGER:
        case ACTION_ENFORCE:
        case ACTION_KIND_N:
                return;
        }
}

/* Activate, renew, release: the first action that answers it. */
static void on_call_action(struct conn *c, const struct action *a)
{
        struct lease *lease = world_lease_by_id(route_world(c), a->lease_id);

        if (a->kind == ACTION_REFUSED) {
                if (a->why.rule == RULE_NOT_FOUND || a->why.rule == RULE_ENDED)
                        story_reply_gone(c);
                else
                        reply_refused(c, a);
                return;
        }
        if (lease) {
                route_reply_lease(c, MHD_HTTP_OK, lease);
                return;
        }
        /* It is gone with this very step: as it was, with its new state. */
        view_last_of_lease_end(a, c->server->host.now_ms(c->server->host.ctx), &c->before);
        conn_reply_strbuf(c, MHD_HTTP_OK, &c->before);
}

static void on_change(struct conn *c)
{
        struct lease *lease = route_lease(c);

        if (lease)
                route_reply_lease(c, MHD_HTTP_OK, lease);
}

void route_on_action(struct conn *c, const struct action *a)
{
        if (c->dead || c->reply || !c->asleep)
                return;
        switch (c->want) {
        case WANT_LEASE:
        case WANT_COLLECT:
                on_lease_action(c, a);
                break;
        case WANT_ENFORCE:
                if (a->kind == ACTION_REFUSED)
                        reply_refused(c, a);
                else
                        enforce_reply(c, a);
                break;
        case WANT_CALL:
                on_call_action(c, a);
                break;
        case WANT_CHANGE:
                on_change(c);
                break;
        case WANT_USER:
        case WANT_STUDY:
        case WANT_NOTHING:
                break;
        }
}
