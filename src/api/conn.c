/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "api/conn.h"
#include "api/json_memory.h"
#include "api/routes.h"
#include "base/log.h"
#include "model/lease.h"

enum { DRAIN_MAX_BYTES = 1024 * 1024 };

static void on_handle_closed(uv_handle_t *handle)
{
        struct conn *c = handle->data;

        if (--c->n_handles == 0) {
                free(c->bound);
                free(c);
        }
}

static void on_timer(uv_timer_t *timer)
{
        struct conn *c = timer->data;

        switch (c->state) {
        case CONN_IDLE:
        case CONN_READING:
        case CONN_ANSWERING:
                conn_drop(c);
                break;
        case CONN_LATE:
                conn_wake(c); /* its answer is ready */
                break;
        case CONN_WAITING:
                if (!server_is_settled(c->server)) {
                        conn_limit_wait(c, API_SETTLE_MS); /* the lease as it is cannot be told just now */
                        break;
                }
                if (c->want == WANT_CHANGE) { /* its time is over: the lease as it is */
                        struct action nothing = { .kind = ACTION_NONE, .lease_id = c->lease_id };
                        route_on_action(c, &nothing);
                } else if (c->want == WANT_USER) {
                        limits_reply_unknown(c);
                } else if (c->want == WANT_STUDY) {
                        study_reply_late(c);
                }
                break;
        case CONN_STREAMING:
                stream_on_beat(c);
                break;
        case CONN_NEW:
        case CONN_TURN:
        case CONN_STEPPING:
                break;
        }
}

struct conn *conn_new(struct api_server *server, const struct listener *listener, int fd)
{
        struct conn *c = calloc(1, sizeof(*c));
        if (!c)
                return NULL;

        c->server = server;
        c->listener = listener;
        c->state = CONN_NEW;
        c->fd = fd;
        c->peer.pidfd = -1;
        if (uv_poll_init(server->loop, &c->poll, fd) != 0) {
                free(c);
                return NULL;
        }
        (void) uv_timer_init(server->loop, &c->timer);
        c->poll.data = c->timer.data = c;
        c->n_handles = 2;
        return c;
}

void conn_free_later(struct conn *c)
{
        peer_fini(&c->peer);
        strbuf_fini(&c->body);
        strbuf_fini(&c->out);
        free(c->user_found);
        c->user_found = NULL;
        strbuf_fini(&c->before);
        if (c->reply)
                MHD_destroy_response(c->reply);
        c->reply = NULL;
        uv_close((uv_handle_t *) &c->poll, on_handle_closed);
        uv_close((uv_handle_t *) &c->timer, on_handle_closed);
}

static void set_timer(struct conn *c, uint64_t ms, uint64_t repeat_ms)
{
        (void) uv_timer_start(&c->timer, on_timer, ms, repeat_ms);
}

/* Also while its request is being decided: else many that come in one turn would each find room. */
static bool is_waiting(const struct conn *c, enum conn_state state)
{
        return state == CONN_WAITING || state == CONN_STREAMING ||
               (state == CONN_STEPPING && c->want == WANT_LEASE && c->mode == LEASE_ASK_WAIT);
}

static void count_waiting(struct conn *c, bool waits)
{
        if (waits && !c->counts_as_waiting)
                c->server->n_waiting++;
        if (!waits && c->counts_as_waiting)
                c->server->n_waiting--;
        c->counts_as_waiting = waits;
}

/* One place where it is said what each state watches (conn_watch.c) and how long it may last. */
void conn_set_state(struct conn *c, enum conn_state state)
{
        count_waiting(c, is_waiting(c, state));
        c->state = state;
        (void) uv_timer_stop(&c->timer);
        if (c->dead || c->server->stopping || state == CONN_NEW) {
                conn_watch(c, 0);
                return;
        }

        switch (state) {
        case CONN_IDLE:
                conn_watch(c, UV_READABLE);
                c->idle_in_turn = c->server->n_turns;
                if (c->n_bound == 0)
                        set_timer(c, API_IDLE_MS, 0);
                break;
        case CONN_READING:
        case CONN_ANSWERING:
                set_timer(c, API_REQUEST_DEADLINE_MS, 0);
                break;
        case CONN_NEW:
        case CONN_STEPPING:
                break;
        case CONN_LATE:
                set_timer(c, c->late_ms, 0);
                conn_watch(c, UV_DISCONNECT);
                break;
        case CONN_TURN:
        case CONN_WAITING:
                conn_watch(c, UV_DISCONNECT);
                break;
        case CONN_STREAMING:
                conn_watch(c, UV_DISCONNECT);
                set_timer(c, API_STREAM_BEAT_MS, API_STREAM_BEAT_MS);
                break;
        }
}

void conn_drop(struct conn *c)
{
        c->dead = true;
        (void) uv_timer_stop(&c->timer);
        if (!c->mhd) { /* nobody else knows of it */
                accept_forget(c);
                (void) close(c->fd);
                conn_on_closed(c);
                return;
        }
        (void) shutdown(c->fd, SHUT_RDWR); /* libmicrohttpd sees the end and closes */
        conn_wake(c);
        server_kick(c->server);
}

void conn_sleep(struct conn *c, enum conn_state state)
{
        if (!c->asleep) {
                MHD_suspend_connection(c->mhd);
                c->asleep = true;
        }
        conn_set_state(c, state);
}

void conn_limit_wait(struct conn *c, uint64_t ms)
{
        set_timer(c, ms, 0);
}

void conn_wake(struct conn *c)
{
        if (!c->asleep)
                return;
        c->asleep = false;
        MHD_resume_connection(c->mhd);
        server_kick(c->server);
}

void conn_await(struct conn *c, uint64_t lease_id)
{
        c->server->awaited[c->slot] = lease_id;
}

const char *conn_query(struct conn *c, const char *name)
{
        return MHD_lookup_connection_value(c->mhd, MHD_GET_ARGUMENT_KIND, name);
}

void conn_view(struct conn *c, struct view *ret)
{
        struct api_server *s = c->server;

        ret->host = &s->host;
        ret->world = s->host.world(s->host.ctx);
        ret->now_ms = s->host.now_ms(s->host.ctx);
        ret->names = &s->names;
        ret->viewer_uid = c->peer.uid;
        ret->viewer_is_admin = c->peer.is_admin;
        ret->ordered = false; /* the order of the queue is filled in where somebody asks for it: 40 KiB */
        ret->n_order = 0;
        user_names_refresh(&s->names, ret->now_ms);
}

/* ---- answers ---- */

/* What came of a request with a key: a lease, which is what a repetition is answered with; else nothing, and the key is
 * free again. */
static void settle_key(struct conn *c, unsigned status)
{
        struct api_server *s = c->server;

        if (!c->has_key_row)
                return;
        c->has_key_row = false;
        if (status < 300 && c->lease_id != 0)
                idempotency_done(&s->keys, c->key_row, c->lease_id, status, s->host.now_ms(s->host.ctx));
        else
                idempotency_forget(&s->keys, c->key_row);
}

/* Takes over @text; NULL: there was no memory for it. */
static void set_reply_text(struct conn *c, unsigned status, const char *type, char *text)
{
        static char no_memory[] = "{\"type\":\"urn:lessor:problem:busy\",\"title\":\"out of memory\",\"status\":503}";

        settle_key(c, status);
        if (c->reply)
                MHD_destroy_response(c->reply);
        c->reply = text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE)
                        : MHD_create_response_from_buffer(sizeof(no_memory) - 1, no_memory, MHD_RESPMEM_PERSISTENT);
        c->reply_status = text ? status : MHD_HTTP_SERVICE_UNAVAILABLE;
        c->reply_bytes = c->reply && text ? strlen(text) : 0;
        if (!c->reply) {
                free(text);
                conn_drop(c);
                return;
        }
        (void) MHD_add_response_header(c->reply, MHD_HTTP_HEADER_CONTENT_TYPE, type);
        (void) MHD_add_response_header(c->reply, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
                (void) MHD_add_response_header(c->reply, MHD_HTTP_HEADER_ALLOW, c->allowed);
        if (status == MHD_HTTP_UNAUTHORIZED)
                (void) MHD_add_response_header(c->reply, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"lessor\"");
        conn_await(c, 0);
        c->token = 0;
        conn_wake(c);
}

static void set_reply(struct conn *c, unsigned status, const char *type, json_t *body)
{
        char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;

        json_decref(body);
        if (json_memory_take_failed()) {
                free(text);
                text = NULL;
        }
        set_reply_text(c, status, type, text);
}

void conn_reply_text(struct conn *c, unsigned status, const char *type, char *text)
{
        set_reply_text(c, status, type, text);
}

void conn_reply_strbuf(struct conn *c, unsigned status, struct strbuf *text)
{
        if (json_memory_take_failed())
                text->failed = true;
        set_reply_text(c, status, "application/json", strbuf_steal(text));
        strbuf_fini(text);
}

void conn_reply(struct conn *c, unsigned status, json_t *body)
{
        set_reply(c, status, "application/json", body);
}

void conn_reply_problem(struct conn *c, const struct problem *problem, json_t *extra)
{
        json_t *body = view_problem(problem);

        if (body && extra)
                (void) json_object_update(body, extra);
        json_decref(extra);
        set_reply(c, (unsigned) problem->status, "application/problem+json", body);
}

enum MHD_Result conn_send_reply(struct conn *c)
{
        struct MHD_Response *reply = c->reply;

        c->reply = NULL;
        log_debug("event=answer door=%s uid=%" PRIu32 " method=%s path=%s status=%u",
                  door_kind_name(c->listener->door.kind), c->peer.uid, c->route ? c->route->method : "-",
                  c->route ? c->route->path : "-", c->reply_status);
        conn_set_state(c, c->streams ? CONN_STREAMING : CONN_ANSWERING);
        enum MHD_Result r = MHD_queue_response(c->mhd, c->reply_status, reply);
        MHD_destroy_response(reply);
        return r;
}

void conn_reply_later(struct conn *c, const struct problem *problem, uint64_t wait_ms)
{
        char seconds[24];

        conn_reply_problem(c, problem, NULL);
        (void) snprintf(seconds, sizeof(seconds), "%" PRIu64, (wait_ms + 999) / 1000);
        if (c->reply)
                (void) MHD_add_response_header(c->reply, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
}

bool conn_may_wait(struct conn *c)
{
        struct api_server *s = c->server;
        struct problem p;

        if (s->n_waiting < s->options.waiting_max - (c->peer.is_admin ? 0 : 1))
                return true;
        problem_set(&p, 429, "limit-waiting",
                    "%" PRIu32
                    " requests wait already, and no more can; end some, or use mode queue and look again later",
                    s->n_waiting);
        conn_reply_later(c, &p, 1000);
        return false;
}

/* ---- the request ---- */

enum MHD_Result conn_begin(struct conn *c, const char *url, const char *method)
{
        uint64_t n_body = UINT64_MAX;

        c->dispatched = false;
        c->is_head = strcmp(method, "HEAD") == 0;
        c->too_large = false;
        c->lease_id = 0;
        c->route = NULL;
        c->early = (struct problem){ 0 };
        c->late_ms = 0;
        c->has_key = c->has_key_row = false;
        strbuf_init(&c->body, HTTP_BODY_MAX_BYTES);
        if (c->state != CONN_READING)
                conn_set_state(c, CONN_READING);

        if (enter_check(c, url, method, &n_body, &c->early) == 0 && c->refusal.status == 0)
                return MHD_YES;
        if (c->refusal.status != 0)
                c->early = c->refusal;
        if (n_body <= DRAIN_MAX_BYTES || c->late_ms > 0)
                return MHD_YES; /* a client in the middle of its body would see a broken pipe instead of the answer */

        /* Answered before the body is read, so libmicrohttpd closes the connection behind the answer. */
        conn_reply_problem(c, &c->early, NULL);
        if (!c->reply)
                return MHD_NO;
        (void) MHD_add_response_header(c->reply, MHD_HTTP_HEADER_CONNECTION, "close");
        c->dispatched = true;
        return conn_send_reply(c);
}

void conn_submit_fact(struct conn *c, enum input_kind kind, uint64_t lease_id, enum end_reason end, uint64_t token)
{
        struct api_host *host = &c->server->host;
        struct input input = {
                .kind = (uint8_t) kind,
                .now_ms = host->now_ms(host->ctx),
                .call = {
                        .token = token,
                        .lease_id = lease_id,
                        .uid = c->peer.uid,
                        .is_admin = c->peer.is_admin,
                        .by_system = true,
                        .end_reason = (uint8_t) end,
                },
        };

        if (c->server->stopping)
                return;
        (void) host->submit(host->ctx, &input, NULL);
}

void conn_end_request(struct conn *c, bool sent)
{
        if (!sent && c->gives_up && c->lease_id != 0) /* nobody has read the answer */
                conn_submit_fact(c, INPUT_RELEASE, c->lease_id, END_CANCELLED, 0);
        else if (sent && c->binds_here && c->lease_id != 0)
                conn_bind_lease(c, c->lease_id);

        if (c->has_key_row)
                idempotency_forget(&c->server->keys, c->key_row);
        else if (!sent && c->has_key && c->gives_up) /* what it made is over, so it may be made again */
                idempotency_forget_key(&c->server->keys, &c->key);
        c->has_key = c->has_key_row = false;
        turns_leave(&c->server->turns, c->slot);
        conn_await(c, 0);
        c->gives_up = c->binds_here = c->streams = false;
        c->want = WANT_NOTHING;
        c->token = 0;
        strbuf_fini(&c->body);
        strbuf_fini(&c->out);
        c->out_at = 0;
        c->reply_bytes = 0;
        free(c->user_found);
        c->user_found = NULL;
        strbuf_fini(&c->before);
        if (c->reply)
                MHD_destroy_response(c->reply);
        c->reply = NULL;
        if (!c->dead)
                conn_set_state(c, CONN_IDLE);
}

/* Those that ended meanwhile, by a release or their slot. */
static void forget_ended(struct conn *c)
{
        struct world *w = route_world(c);
        uint32_t kept = 0;

        for (uint32_t i = 0; i < c->n_bound; i++)
                if (world_lease_by_id(w, c->bound[i]))
                        c->bound[kept++] = c->bound[i];
        c->n_bound = kept;
}

static bool grow_bound(struct conn *c)
{
        uint32_t cap = c->cap_bound ? c->cap_bound * 2 : 4;
        uint64_t *grown = reallocarray(c->bound, cap, sizeof(*grown));

        if (!grown)
                return false;
        c->bound = grown;
        c->cap_bound = cap;
        return true;
}

void conn_bind_lease(struct conn *c, uint64_t lease_id)
{
        if (c->n_bound == c->cap_bound) {
                forget_ended(c);
                /* Half of it free, so that it is gone through rarely. */
                if (c->n_bound * 2 >= c->cap_bound && !grow_bound(c) && c->n_bound == c->cap_bound) {
                        /* a lease nobody would ever end: end it now */
                        conn_submit_fact(c, INPUT_OWNER_ENDED, lease_id, END_CONNECTION_CLOSED, 0);
                        return;
                }
        }
        c->bound[c->n_bound++] = lease_id;
}

void conn_on_closed(struct conn *c)
{
        struct api_server *s = c->server;

        for (uint32_t i = 0; i < c->n_bound; i++)
                if (world_lease_by_id(s->host.world(s->host.ctx), c->bound[i]))
                        conn_submit_fact(c, INPUT_OWNER_ENDED, c->bound[i], END_CONNECTION_CLOSED, 0);

        conn_set_state(c, CONN_NEW);
        turns_leave(&s->turns, c->slot);
        s->awaited[c->slot] = 0;
        server_free_slot(s, c->slot);
        conn_free_later(c);
}
