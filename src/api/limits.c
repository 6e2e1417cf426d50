/* SPDX-License-Identifier: Apache-2.0 */
/* What the caller may have at once, and has. */
#include <stdlib.h>
#include <string.h>
#include "api/routes.h"
#include "api/user_lookup.h"
#include "arbiter/usage.h"
#include "base/number.h"

uint32_t limits_row(struct conn *c)
{
        const struct api_host *host = &c->server->host;
        const struct peer *peer = &c->peer;
        /* Somebody else's groups (root's, under sudo) say nothing about the person. */
        size_t n = peer->uid == peer->kernel_uid ? peer->n_groups : 0;

        return host->quota_row(host->ctx, peer->uid, peer->groups, n);
}

static json_t *limit_or_null(uint64_t n)
{
        return view_u64_or_null(n != 0, n);
}

static json_t *view_quota(const struct config *config, const struct quota *q)
{
        return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "priority_min", (int) q->priority_min,
                         "leases_max", view_u64(q->leases_max), "waiting_max", view_u64(q->waiting_max), "pins_max",
                         view_u64(q->pins_max), "bytes_max", limit_or_null(q->bytes_max), "slot_max_ms",
                         limit_or_null(q->slot_max_ms), "pin_max_ms", limit_or_null(q->pin_max_ms), "bookings_max",
                         view_u64(config->bookings_per_user_max), "booking_ahead_ms",
                         view_u64(config->booking_ahead_ms));
}

static json_t *view_has(const struct world *w, uint32_t uid, uint64_t now_ms)
{
        uint64_t n_leases = 0, n_waiting = 0, n_pins = 0, n_bookings = 0, bytes = 0, usage = 0;

        for (uint32_t i = 0; i < w->n_leases; i++) {
                const struct lease *lease = &w->leases[i];
                if (w->lease_ids[i] == 0 || lease->uid != uid)
                        continue;
                n_leases++;
                n_waiting += lease->state == LEASE_QUEUED;
                n_bookings += lease->state == LEASE_QUEUED && lease->booked_ms != 0;
                n_pins += lease_state_holds((enum lease_state) lease->state) && w->holders[lease->holder.index].pinned;
                if (lease->state != LEASE_DRAINING)
                        bytes = u64_add_sat(bytes, lease->bytes);
        }
        for (uint32_t i = 0; i < w->n_users; i++)
                if (w->users[i].in_use && w->users[i].uid == uid)
                        usage = usage_mib_s(&w->config, &w->users[i], now_ms);
        return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "leases", view_u64(n_leases), "waiting", view_u64(n_waiting),
                         "pins", view_u64(n_pins), "bytes", view_u64(bytes), "usage_mib_s", view_u64(usage), "bookings",
                         view_u64(n_bookings));
}

static void reply_limits(struct conn *c, uint32_t uid, uint32_t row, bool is_admin)
{
        const struct api_host *host = &c->server->host;
        struct view v;

        conn_view(c, &v);
        struct quota quota = config_quota(&v.world->config, row);
        conn_reply(c, MHD_HTTP_OK,
                   json_pack("{s:I, s:o, s:s, s:b, s:o, s:o}", "uid", (json_int_t) uid, "user",
                             view_text_or_null(user_names_get(v.names, uid)), "row", host->quota_name(host->ctx, row),
                             "administrator", (int) is_admin, "limits", view_quota(&v.world->config, &quota), "has",
                             view_has(v.world, uid, v.now_ms)));
}

/* ---- another user's, for administrators ---- */

/* There is no connection of his to tell his groups: they are looked up, and the request is dispatched anew. */
static void on_found(void *ctx, uint64_t token, const struct user_found *found)
{
        struct api_server *s = ctx;
        struct conn *c = server_conn_of_token(s, token);

        if (!c || s->stopping)
                return;
        c->token = 0;
        c->user_found = malloc(sizeof(*found));
        if (!c->user_found) {
                conn_reply(c, MHD_HTTP_OK, NULL); /* says that there is no memory */
                return;
        }
        *c->user_found = *found;
        c->dispatched = false;
        conn_wake(c);
}

static void look_up(struct conn *c, const char *name)
{
        struct api_server *s = c->server;
        struct problem p;

        if (!c->peer.is_admin) {
                problem_set(&p, 403, "not-owner",
                            "only administrators may look at another user's limits; leave user out");
                conn_reply_problem(c, &p, NULL);
                return;
        }
        if (name[0] == '\0' || strlen(name) > USER_LOOKUP_NAME_MAX) {
                problem_field(&p, "user", name, strlen(name), "the name or uid of a user", "see getent passwd");
                conn_reply_problem(c, &p, NULL);
                return;
        }
        if (!conn_may_wait(c))
                return;
        c->token = server_next_token(s, c);
        if (!user_lookup_start(s->loop, name, on_found, s, c->token)) {
                c->token = 0;
                limits_reply_unknown(c);
                return;
        }
        c->want = WANT_USER;
        conn_sleep(c, CONN_WAITING);
        conn_limit_wait(c, API_USER_LOOKUP_MS);
}

void limits_reply_unknown(struct conn *c)
{
        struct problem p;

        problem_set(&p, 503, "busy",
                    "the name services of this machine do not say who that is and in which groups; try again");
        conn_reply_later(c, &p, 1000);
}

void look_limits(struct conn *c)
{
        const struct api_host *host = &c->server->host;
        const struct user_found *found = c->user_found;
        const char *user = conn_query(c, "user");
        struct problem p;

        if (!user) {
                reply_limits(c, c->peer.uid, limits_row(c), c->peer.is_admin);
        } else if (!found) {
                look_up(c, user);
        } else if (!found->known) {
                problem_field(&p, "user", user, strlen(user), "the name or uid of a user", "see getent passwd");
                conn_reply_problem(c, &p, NULL);
        } else {
                reply_limits(c, found->uid, host->quota_row(host->ctx, found->uid, found->groups, found->n_groups),
                             false);
        }
}
