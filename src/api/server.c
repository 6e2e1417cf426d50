/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "api/conn.h"
#include "api/json_memory.h"
#include "api/routes.h"
#include "base/escape.h"
#include "base/log.h"

enum {
        MHD_MEMORY_BYTES = 16 * 1024, /* a connection's pool: an 8 KiB head, room to say 431 about a larger one */
        HTTP_PLAIN = 0,
        HTTP_TLS = 1,
};

/* ---- libmicrohttpd on our loop ---- */

static void on_http_ready(uv_poll_t *poll, int status, int events)
{
        (void) status;
        (void) events;
        server_run_http(poll->data);
}

static void on_http_timer(uv_timer_t *timer)
{
        server_run_http(timer->data);
}

/* Its epoll sets are edge-triggered inside: what it left half done is told by a timeout only, not by a descriptor. */
void server_run_http(struct api_server *s)
{
        MHD_UNSIGNED_LONG_LONG ms, soonest = 0;
        bool any = false;

        if (s->stopping)
                return;
        s->woken = false;
        for (size_t i = 0; i < 2; i++) {
                if (!s->http[i].mhd)
                        continue;
                (void) MHD_run(s->http[i].mhd);
                if (MHD_get_timeout(s->http[i].mhd, &ms) == MHD_YES) {
                        soonest = !any || ms < soonest ? ms : soonest;
                        any = true;
                }
        }
        if (any || s->woken) /* one of them may have woken a connection of the other */
                (void) uv_timer_start(&s->mhd_timer, on_http_timer, s->woken ? 0 : soonest, 0);
        else
                (void) uv_timer_stop(&s->mhd_timer);
}

void server_kick(struct api_server *s)
{
        s->woken = true;
        if (!s->stopping)
                (void) uv_timer_start(&s->mhd_timer, on_http_timer, 0, 0);
}

__attribute__((__format__(__printf__, 2, 0))) static void log_http(void *cls, const char *fmt, va_list args)
{
        char line[256], safe[512];

        (void) cls;
        int n = vsnprintf(line, sizeof(line), fmt, args);
        /* It takes every connection it is handed for TCP and regrets three times an answer that a unix socket is none. */
        if (n <= 0 || strstr(line, "TCP_") || strstr(line, "Failed to push"))
                return;
        size_t len = strnlen(line, sizeof(line));
        while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == ' '))
                len--;
        log_debug("event=http words=\"%s\"", text_escape(line, len, safe, sizeof(safe)));
}

static struct conn *conn_of(struct MHD_Connection *mhd)
{
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        return info ? info->socket_context : NULL;
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
        struct api_server *s = cls;
        struct conn *c;

        if (code == MHD_CONNECTION_NOTIFY_STARTED) {
                c = s->incoming;
                *context = c;
                if (c)
                        c->mhd = mhd;
                return;
        }
        c = *context;
        *context = NULL;
        if (c)
                conn_on_closed(c);
}

void server_free_slot(struct api_server *s, uint32_t slot)
{
        s->conns[slot] = NULL;
        s->n_conns--;
        while (s->n_slots > 0 && !s->conns[s->n_slots - 1])
                s->n_slots--;
}

bool server_is_settled(const struct api_server *s)
{
        return s->host.settled(s->host.ctx);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *n_upload, void **request)
{
        struct conn *c = conn_of(mhd);

        (void) cls;
        (void) version;
        if (!c || c->dead)
                return MHD_NO;
        if (!*request) {
                *request = c;
                return conn_begin(c, url, method);
        }
        if (*n_upload > 0) {
                if (!c->too_large && c->early.status == 0)
                        strbuf_append(&c->body, upload, *n_upload);
                c->too_large = c->too_large || c->body.failed;
                *n_upload = 0;
                return MHD_YES;
        }
        if (!c->dispatched)
                conn_dispatch(c);
        if (c->asleep && !c->dead)
                return MHD_YES;
        if (c->reply)
                return conn_send_reply(c);
        return MHD_NO;
}

/* A request line is read whole. Where it came in one with the request before it, or just as that was answered, libmicrohttpd
 * has read it and nothing stirs any more (conn_watch.c). */
static void *on_request_line(void *cls, const char *uri, struct MHD_Connection *mhd)
{
        struct conn *c = conn_of(mhd);

        (void) cls;
        (void) uri;
        if (c && !c->dead && c->state == CONN_IDLE)
                conn_set_state(c, CONN_READING);
        return NULL; /* what on_request() finds in *request */
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **request, enum MHD_RequestTerminationCode code)
{
        struct conn *c = *request;

        (void) cls;
        (void) mhd;
        *request = NULL;
        if (c)
                conn_end_request(c, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
}

/* ---- turns (turns.h) ---- */

static void on_turn_goes_on(uv_idle_t *idle)
{
        (void) idle; /* its being active is all */
}

static void on_turn_begins(uv_prepare_t *prepare)
{
        struct api_server *s = prepare->data;
        uint32_t slot;

        if (!server_is_settled(s)) { /* api_server_on_settled() goes on */
                (void) uv_idle_stop(&s->turn_goes_on);
                (void) uv_prepare_stop(prepare);
                return;
        }
        turns_begin(&s->turns);
        while (turns_next(&s->turns, &slot)) {
                struct conn *c = s->conns[slot];
                if (c && !c->dead)
                        conn_run(c);
        }
        if (s->turns.n_waiting == 0)
                (void) uv_idle_stop(&s->turn_goes_on);
        if (s->turns.n_waiting == 0 && s->turns.served == 0)
                (void) uv_prepare_stop(prepare);
        if (s->woken)
                server_run_http(s);
}

static void on_turn_passes(uv_prepare_t *prepare)
{
        ((struct api_server *) prepare->data)->n_turns++;
}

void server_await_turn(struct api_server *s)
{
        if (s->stopping)
                return;
        (void) uv_prepare_start(&s->turn_begins, on_turn_begins);
        if (s->turns.n_waiting > 0)
                (void) uv_idle_start(&s->turn_goes_on, on_turn_goes_on);
}

/* ---- life ---- */

static int start_http(struct api_server *s, size_t which, const struct api_options *options, struct error *err)
{
        struct http *http = &s->http[which];
        unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME;
        const struct MHD_OptionItem tls[] = {
                { MHD_OPTION_HTTPS_MEM_CERT, 0, (void *) (uintptr_t) options->tls_cert },
                { MHD_OPTION_HTTPS_MEM_KEY, 0, (void *) (uintptr_t) options->tls_key },
                { MHD_OPTION_HTTPS_PRIORITIES, 0, (void *) (uintptr_t) "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2" },
                { MHD_OPTION_END, 0, NULL },
        }, nothing[] = { { MHD_OPTION_END, 0, NULL } };

        if (log_wants(LOG_LEVEL_DEBUG)) /* what it regrets with every answer is not even put into words otherwise */
                flags |= MHD_USE_ERROR_LOG;
        if (which == HTTP_TLS && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
                return error_set(err, ENOTSUP,
                                 "this libmicrohttpd was built without TLS: leave out tcp_cert and tcp_key, and "
                                 "listen on 127.0.0.1 alone");
        http->mhd = MHD_start_daemon(which == HTTP_TLS ? flags | MHD_USE_TLS : flags, 0, NULL, NULL, on_request, s,
                                     MHD_OPTION_EXTERNAL_LOGGER, log_http, s, MHD_OPTION_NOTIFY_CONNECTION,
                                     on_connection, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
                                     MHD_OPTION_URI_LOG_CALLBACK, on_request_line, s, MHD_OPTION_CONNECTION_LIMIT,
                                     (unsigned) options->connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                     (size_t) MHD_MEMORY_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_ARRAY,
                                     which == HTTP_TLS ? tls : nothing, MHD_OPTION_END);
        if (http->mhd)
                return 0;
        if (which == HTTP_TLS)
                return error_set(err, EINVAL,
                                 "TLS cannot be started: is tcp_cert a certificate, and tcp_key its key, both as PEM?");
        return error_set(err, ENOTSUP, "libmicrohttpd cannot be started with epoll");
}

static void watch_http(struct api_server *s, struct http *http)
{
        if (!http->mhd)
                return;
        (void) uv_poll_init(s->loop, &http->poll, MHD_get_daemon_info(http->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd);
        http->poll.data = s;
        (void) uv_poll_start(&http->poll, UV_READABLE, on_http_ready);
}

static void stop_http(struct http *http)
{
        if (!http->mhd)
                return;
        (void) uv_poll_stop(&http->poll);
        uv_close((uv_handle_t *) &http->poll, NULL);
        (void) MHD_run(http->mhd); /* those that slept notice */
        MHD_stop_daemon(http->mhd);
        http->mhd = NULL;
}

static void restore_keys(struct api_server *s)
{
        const struct world *w = s->host.world(s->host.ctx);

        for (uint32_t i = 0; i < w->n_leases; i++)
                if (w->lease_ids[i] != 0)
                        idempotency_restore(&s->keys, &w->leases[i].idempotency, w->leases[i].uid, w->lease_ids[i],
                                            w->leases[i].arrived_ms);
}

int api_server_new(struct api_server **ret, uv_loop_t *loop, const struct api_options *options,
                   const struct api_host *host, struct error *err)
{
        struct api_server *s = calloc(1, sizeof(*s));
        bool tls = false;

        if (!s)
                return error_set(err, ENOMEM, "no memory for the API server");
        json_memory_watch();
        s->loop = loop;
        s->host = *host;
        s->options = *options;
        s->next_token = 1;
        s->refusals.per_s = REFUSALS_PER_S;
        s->refusals.burst = REFUSALS_BURST;
        restore_keys(s);

        for (uint32_t i = 0; i < options->n_doors; i++)
                tls = tls || options->doors[i].tls;
        int r = start_http(s, HTTP_PLAIN, options, err);
        if (r == 0 && tls)
                r = start_http(s, HTTP_TLS, options, err);
        if (r < 0) {
                if (s->http[HTTP_PLAIN].mhd)
                        MHD_stop_daemon(s->http[HTTP_PLAIN].mhd);
                free(s);
                return r;
        }
        watch_http(s, &s->http[HTTP_PLAIN]);
        watch_http(s, &s->http[HTTP_TLS]);
        (void) uv_timer_init(loop, &s->mhd_timer);
        (void) uv_prepare_init(loop, &s->turn_begins);
        (void) uv_idle_init(loop, &s->turn_goes_on);
        (void) uv_prepare_init(loop, &s->turn_passes);
        s->mhd_timer.data = s->turn_begins.data = s->turn_passes.data = s->turn_goes_on.data = s;
        (void) uv_prepare_start(&s->turn_passes, on_turn_passes);
        s->options.tls_cert = s->options.tls_key = NULL;
        accept_start(s, options);
        *ret = s;
        return 0;
}

/* What the section says now about a container that is inside; what it was taken for no longer stands there: it has to go. */
static bool stays_inside(struct peer *peer, const struct api_limits *limits)
{
        for (uint32_t i = 0; i < limits->n_containers; i++) {
                const struct container_rule *rule = &limits->containers[i];
                if (strcmp(rule->section, peer->section) != 0 || rule->uid != peer->uid)
                        continue;
                peer->priority_min = rule->priority_min;
                return true;
        }
        return false;
}

/* What its input makes is known only then, and has to be given up with it: a lease that nobody was told of would have nobody
 * to end it. */
static void shut_out(struct conn *c)
{
        if (c->token != 0)
                c->shut_out = true;
        else
                conn_drop(c);
}

void api_server_set_limits(struct api_server *s, const struct api_limits *limits)
{
        s->requests.per_s = limits->requests_per_s;
        s->requests.burst = limits->requests_burst;
        s->options.rules.containers = limits->containers;
        s->options.rules.n_containers = limits->n_containers;
        s->options.rules.engine_socket = limits->engine_socket;
        for (uint32_t i = 0; i < s->options.connections_max; i++)
                if (s->conns[i] && s->conns[i]->peer.in_container && !stays_inside(&s->conns[i]->peer, limits))
                        shut_out(s->conns[i]);
}

void api_server_stop(struct api_server *s)
{
        if (s->stopping)
                return;
        s->stopping = true;
        accept_stop(s);
        for (uint32_t i = 0; i < s->options.connections_max; i++)
                if (s->conns[i])
                        conn_drop(s->conns[i]);
        stop_http(&s->http[HTTP_PLAIN]);
        stop_http(&s->http[HTTP_TLS]);
        uv_close((uv_handle_t *) &s->mhd_timer, NULL);
        uv_close((uv_handle_t *) &s->turn_begins, NULL);
        uv_close((uv_handle_t *) &s->turn_passes, NULL);
        uv_close((uv_handle_t *) &s->turn_goes_on, NULL);
}

void api_server_free(struct api_server *s)
{
        if (!s)
                return;
        user_names_fini(&s->names);
        free(s);
}

/* ---- what a turn decided ---- */

uint64_t server_next_token(struct api_server *s, const struct conn *c)
{
        return s->next_token++ * API_CONNECTIONS_MAX + c->slot;
}

struct conn *server_conn_of_token(const struct api_server *s, uint64_t token)
{
        uint32_t slot = (uint32_t) (token % API_CONNECTIONS_MAX); /* server_next_token() */
        struct conn *c = token != 0 ? s->conns[slot] : NULL;
        return c && c->token == token ? c : NULL;
}

static void count_action(struct api_server *s, const struct action *a)
{
        const struct lease *lease =
                a->kind == ACTION_GRANTED ? world_lease_by_id(s->host.world(s->host.ctx), a->lease_id) : NULL;

        metrics_count(&s->metrics, a, lease ? lease->waited_ms : 0);
}

void api_server_on_actions(struct api_server *s, const struct action *actions, size_t n)
{
        if (s->stopping)
                return;
        for (size_t i = 0; i < n; i++) {
                const struct action *a = &actions[i];
                struct conn *asked = server_conn_of_token(s, a->token);
                count_action(s, a);
                if (asked && a->kind == ACTION_REFUSED)
                        buckets_charge(&s->refusals, asked->peer.uid, 1, s->host.now_ms(s->host.ctx));
                if (asked)
                        route_on_action(asked, a);
                if (asked && asked->shut_out)
                        conn_drop(asked);
                if (a->kind == ACTION_READ)
                        continue;
                for (uint32_t slot = 0; slot < s->n_slots; slot++) {
                        struct conn *c = s->conns[slot];
                        if (!c || c == asked)
                                continue;
                        if (a->lease_id != 0 && s->awaited[slot] == a->lease_id)
                                route_on_action(c, a);
                        else if (c->state == CONN_STREAMING && (c->lease_id == 0 || c->lease_id == a->lease_id))
                                stream_wake(c);
                }
        }
        if (s->woken)
                server_run_http(s);
}

void api_server_on_settled(struct api_server *s)
{
        if (s->stopping)
                return;
        for (uint32_t slot = 0; slot < s->n_slots; slot++) {
                struct conn *c = s->conns[slot];
                if (!c || !c->wants_settled)
                        continue;
                c->wants_settled = false;
                conn_wake(c);
        }
        if (s->turns.n_waiting > 0 || s->turns.served > 0)
                server_await_turn(s);
        if (s->woken)
                server_run_http(s);
}

void api_server_on_refused(struct api_server *s, uint64_t token, int code, const char *words)
{
        struct conn *c = server_conn_of_token(s, token);
        struct problem p;

        if (!c || s->stopping)
                return;
        c->gives_up = c->binds_here = false;
        if (code == ENOSPC)
                problem_set(&p, 507, "store-full", "nothing was changed: %s; make room and try again", words);
        else
                problem_set(&p, 503, "store-unavailable", "nothing was changed: %s; try again", words);
        conn_reply_problem(c, &p, NULL);
        if (c->shut_out)
                conn_drop(c);
}
