/* SPDX-License-Identifier: Apache-2.0 */
/* A request that is there as a whole: how many a user may make, whether it was made before, whose turn it is. */
#include <inttypes.h>
#include "api/routes.h"

static bool is_within_limits(struct conn *c)
{
        struct api_server *s = c->server;
        uint64_t now_ms = s->host.now_ms(s->host.ctx), wait_ms = 0;
        struct problem p;

        if (c->route->cost == 0)
                return true;
        if (!c->peer.is_admin)
                wait_ms = buckets_take(&s->requests, c->peer.uid, c->route->cost, now_ms);
        if (wait_ms > 0) {
                problem_set(&p, 429, "limit-requests",
                            "this user asks more often than requests_per_s in lessord.conf allows (%" PRIu32
                            " a second, %" PRIu32 " at once); nothing was changed: wait, and try again",
                            s->requests.per_s, s->requests.burst);
        } else if ((wait_ms = buckets_wait_ms(&s->refusals, c->peer.uid, 1, now_ms)) > 0) {
                problem_set(
                        &p, 429, "limit-refusals",
                        "so many requests of this user were refused that no more are looked at for a moment; nothing "
                        "was changed: see what the refusals said before asking again");
        } else {
                return true;
        }
        conn_reply_later(c, &p, wait_ms);
        return false;
}

static void reply_repeated(struct conn *c, const struct idempotency_row *row)
{
        struct lease *lease = world_lease_by_id(route_world(c), row->lease_id);

        c->lease_id = row->lease_id;
        if (lease)
                route_reply_lease(c, row->status, lease);
        else
                story_reply_gone(c);
        if (c->reply)
                (void) MHD_add_response_header(c->reply, "Idempotency-Replayed", "true");
}

/* False: the answer is there, from the first time it was asked, or the reason why there is none. */
static bool is_asked_first(struct conn *c)
{
        struct api_server *s = c->server;
        struct problem p;

        if (!c->has_key)
                return true;
        idempotency_hash(c->peer.uid, c->route->method, c->route->path, c->lease_id, c->key_text, strbuf_text(&c->body),
                         c->body.len, &c->key);
        switch (idempotency_begin(&s->keys, &c->key, c->peer.uid, s->host.now_ms(s->host.ctx), &c->key_row)) {
        case IDEMPOTENCY_NEW:
                c->has_key_row = true;
                return true;
        case IDEMPOTENCY_REPEATED:
                reply_repeated(c, &s->keys.rows[c->key_row]);
                return false;
        case IDEMPOTENCY_BUSY:
                problem_set(&p, 409, "idempotency-key-busy",
                            "the first request with this Idempotency-Key has no answer yet; wait for it, or ask again "
                            "later");
                break;
        case IDEMPOTENCY_OTHER_ASK:
                problem_set(&p, 422, "idempotency-key-reused",
                            "this Idempotency-Key was used with another body; take a new key for a new request");
                conn_reply_problem(c, &p, NULL);
                return false;
        case IDEMPOTENCY_NO_ROOM:
                problem_set(&p, 429, "limit-keys",
                            "too many requests with an Idempotency-Key are under way; wait for some");
                break;
        }
        conn_reply_later(c, &p, 1000);
        return false;
}

static void refuse_early(struct conn *c)
{
        struct problem large;

        if (c->early.status == 0) {
                problem_set(&large, 413, "too-large", "the body has more than %d bytes", HTTP_BODY_MAX_BYTES);
                conn_reply_problem(c, &large, NULL);
                return;
        }
        conn_reply_problem(c, &c->early, NULL);
        if (c->reply && (c->refusal.status != 0 || c->early.status == 413))
                (void) MHD_add_response_header(c->reply, MHD_HTTP_HEADER_CONNECTION, "close");
        if (c->late_ms > 0)
                conn_sleep(c, CONN_LATE);
}

/* All but those that are refused anyway and /healthz, which asks whether the daemon lives. */
static bool looks_at_world(const struct conn *c)
{
        return c->early.status == 0 && !c->too_large && c->route->run != look_health;
}

static uint64_t unread_bytes(const struct api_server *s, uint32_t uid)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < s->options.connections_max; i++)
                sum += s->conns[i] && s->conns[i]->peer.uid == uid ? s->conns[i]->reply_bytes : 0;
        return sum;
}

void conn_run(struct conn *c)
{
        struct problem p;

        if (!(c->route->flags & ROUTE_HEAVY) || unread_bytes(c->server, c->peer.uid) < UNREAD_MAX_BYTES) {
                c->route->run(c);
                return;
        }
        problem_set(&p, 429, "limit-unread",
                    "%d MiB of answers to this user were not read yet; read them, or close their connections",
                    UNREAD_MAX_BYTES >> 20);
        conn_reply_later(c, &p, 1000);
}

void conn_dispatch(struct conn *c)
{
        struct api_server *s = c->server;

        if (looks_at_world(c) && !server_is_settled(s)) {
                c->wants_settled = true;
                conn_sleep(c, CONN_STEPPING);
                return;
        }
        c->dispatched = true;
        if (c->early.status != 0 || c->too_large)
                refuse_early(c);
        else if (!is_within_limits(c) || !is_asked_first(c))
                return;
        else if (!(c->route->flags & ROUTE_HEAVY) || turns_enter(&s->turns, c->slot, c->peer.uid))
                conn_run(c);
        else
                conn_sleep(c, CONN_TURN);
        if (s->turns.served > 0 || s->turns.n_waiting > 0)
                server_await_turn(s);
}
