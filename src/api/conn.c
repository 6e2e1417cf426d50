/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "api/conn.h"
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

static void on_client_stirs(uv_poll_t *poll, int status, int events)
{
        struct conn *c = poll->data;

        (void) status;
        (void) events;
        (void) uv_poll_stop(poll);
        if (c->state == CONN_IDLE) { /* the first byte of a request: its time runs from here */
                conn_set_state(c, CONN_READING);
                return;
        }
        if (c->state != CONN_WAITING && c->state != CONN_STREAMING)
                return;

        /* It left while it waited. Its place is free from this turn on, not when a write fails some day. */
        if (c->gives_up && c->lease_id != 0) {
                c->gives_up = false;
                conn_submit_fact(c, INPUT_RELEASE, c->lease_id, END_CANCELLED, 0);
        }
        c->dead = true;
        conn_wake(c);
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
        case CONN_WAITING:
                if (c->want == WANT_CHANGE) { /* its time is over: the lease as it is */
                        struct action nothing = { .kind = ACTION_NONE, .lease_id = c->lease_id };
                        route_on_action(c, &nothing);
                }
                break;
        case CONN_STREAMING:
                stream_on_beat(c);
                break;
        case CONN_STEPPING:
                break;
        }
}

struct conn *conn_new(struct api_server *server, int fd)
{
        struct conn *c = calloc(1, sizeof(*c));
        if (!c)
                return NULL;

        c->server = server;
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
        json_decref(c->before);
        c->before = NULL;
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

/*
 * One place where it is said what each state watches and how long it may last. The poll is on libmicrohttpd's descriptor,
 * in the loop's epoll set beside libmicrohttpd's own: two sets, so no copy of the descriptor is needed, and it is taken
 * out again (conn_on_closed) before the descriptor is closed.
 */
void conn_set_state(struct conn *c, enum conn_state state)
{
        c->state = state;
        if (uv_is_active((uv_handle_t *) &c->poll)) /* stopping costs a system call, also where nothing runs */
                (void) uv_poll_stop(&c->poll);
        (void) uv_timer_stop(&c->timer);
        if (c->dead || c->server->stopping)
                return;

        switch (state) {
        case CONN_IDLE:
                (void) uv_poll_start(&c->poll, UV_READABLE, on_client_stirs);
                if (c->n_bound == 0)
                        set_timer(c, API_IDLE_MS, 0);
                break;
        case CONN_READING:
        case CONN_ANSWERING:
                set_timer(c, API_REQUEST_DEADLINE_MS, 0);
                break;
        case CONN_STEPPING:
                break;
        case CONN_WAITING:
                (void) uv_poll_start(&c->poll, UV_DISCONNECT, on_client_stirs);
                break;
        case CONN_STREAMING:
                (void) uv_poll_start(&c->poll, UV_DISCONNECT, on_client_stirs);
                set_timer(c, API_STREAM_BEAT_MS, API_STREAM_BEAT_MS);
                break;
        }
}

void conn_drop(struct conn *c)
{
        c->dead = true;
        (void) uv_timer_stop(&c->timer);
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

        *ret = (struct view){
                .host = &s->host,
                .world = s->host.world(s->host.ctx),
                .now_ms = s->host.now_ms(s->host.ctx),
                .names = &s->names,
                .viewer_uid = c->peer.uid,
                .viewer_is_admin = c->peer.is_admin,
        };
        user_names_refresh(&s->names);
}

/* ---- answers ---- */

static void set_reply(struct conn *c, unsigned status, const char *type, json_t *body)
{
        char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
        static char no_memory[] = "{\"type\":\"urn:lessor:problem:busy\",\"title\":\"out of memory\",\"status\":503}";

        json_decref(body);
        if (c->reply)
                MHD_destroy_response(c->reply);
        c->reply = text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE)
                        : MHD_create_response_from_buffer(sizeof(no_memory) - 1, no_memory, MHD_RESPMEM_PERSISTENT);
        c->reply_status = text ? status : MHD_HTTP_SERVICE_UNAVAILABLE;
        if (!c->reply) {
                free(text);
                conn_drop(c);
                return;
        }
        (void) MHD_add_response_header(c->reply, MHD_HTTP_HEADER_CONTENT_TYPE, type);
        (void) MHD_add_response_header(c->reply, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        conn_await(c, 0);
        c->token = 0;
        conn_wake(c);
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
        conn_set_state(c, c->streams ? CONN_STREAMING : CONN_ANSWERING);
        enum MHD_Result r = MHD_queue_response(c->mhd, c->reply_status, reply);
        MHD_destroy_response(reply);
        return r;
}

/* ---- the request ---- */

struct gather {
        struct http_head head;
        const struct route *route;
        const char *unknown_query;
};

static enum MHD_Result gather_header(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
        struct gather *g = cls;

        (void) kind;
        if (g->head.n_headers < HTTP_HEADERS_MAX)
                g->head.headers[g->head.n_headers] = (struct http_header){ name, value ? value : "" };
        g->head.n_headers++;
        return MHD_YES;
}

static enum MHD_Result gather_query(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
        struct gather *g = cls;

        (void) kind;
        (void) value;
        if (g->route && !route_takes_query(g->route, name) && !g->unknown_query)
                g->unknown_query = name;
        return MHD_YES;
}

static int check_head(struct conn *c, const char *url, const char *method, uint64_t *ret_body_bytes, struct problem *p)
{
        struct gather g = { .head = { .may_have_body = strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0 } };
        const union MHD_ConnectionInfo *info;

        info = MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
        g.head.n_bytes = info ? info->header_size : 0;
        (void) MHD_get_connection_values(c->mhd, MHD_HEADER_KIND, gather_header, &g);
        if (http_head_check(&g.head, ret_body_bytes, p) < 0)
                return -1;
        c->route = route_find(method, url, &c->lease_id, p);
        if (!c->route)
                return -1;
        g.route = c->route;
        (void) MHD_get_connection_values(c->mhd, MHD_GET_ARGUMENT_KIND, gather_query, &g);
        if (g.unknown_query)
                return problem_field(p, g.unknown_query, g.unknown_query, strlen(g.unknown_query),
                                     c->route->queries[0] ? c->route->queries : "no parameters here",
                                     "leave the parameter out, or check its spelling");
        return 0;
}

enum MHD_Result conn_begin(struct conn *c, const char *url, const char *method)
{
        uint64_t n_body = UINT64_MAX;

        c->dispatched = false;
        c->is_head = strcmp(method, "HEAD") == 0;
        c->too_large = false;
        c->lease_id = 0;
        c->route = NULL;
        c->early = (struct problem){ 0 };
        strbuf_init(&c->body, HTTP_BODY_MAX_BYTES);
        if (c->state != CONN_READING)
                conn_set_state(c, CONN_READING);

        if (check_head(c, url, method, &n_body, &c->early) == 0 && c->refusal.status == 0)
                return MHD_YES;
        if (c->refusal.status != 0)
                c->early = c->refusal;
        if (n_body <= DRAIN_MAX_BYTES)
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

        conn_await(c, 0);
        c->gives_up = c->binds_here = c->streams = false;
        c->want = WANT_NOTHING;
        c->token = 0;
        strbuf_fini(&c->body);
        strbuf_fini(&c->out);
        c->out_at = 0;
        json_decref(c->before);
        c->before = NULL;
        if (c->reply)
                MHD_destroy_response(c->reply);
        c->reply = NULL;
        if (!c->dead)
                conn_set_state(c, CONN_IDLE);
}

void conn_bind_lease(struct conn *c, uint64_t lease_id)
{
        if (c->n_bound == c->cap_bound) {
                uint32_t cap = c->cap_bound ? c->cap_bound * 2 : 4;
                uint64_t *grown = reallocarray(c->bound, cap, sizeof(*grown));
                if (!grown) { /* a lease nobody would ever end: end it now */
                        conn_submit_fact(c, INPUT_OWNER_ENDED, lease_id, END_CONNECTION_CLOSED, 0);
                        return;
                }
                c->bound = grown;
                c->cap_bound = cap;
        }
        c->bound[c->n_bound++] = lease_id;
}

void conn_on_closed(struct conn *c)
{
        struct api_server *s = c->server;

        for (uint32_t i = 0; i < c->n_bound; i++)
                if (world_lease_by_id(s->host.world(s->host.ctx), c->bound[i]))
                        conn_submit_fact(c, INPUT_OWNER_ENDED, c->bound[i], END_CONNECTION_CLOSED, 0);

        (void) uv_poll_stop(&c->poll);
        s->awaited[c->slot] = 0;
        s->conns[c->slot] = NULL;
        s->n_conns--;
        conn_free_later(c);
}
