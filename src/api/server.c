/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "api/conn.h"
#include "api/routes.h"
#include "base/escape.h"
#include "base/log.h"

enum {
        ACCEPT_AT_ONCE = 64,          /* a turn, so that a flood of connections does not keep out everything else */
        ACCEPT_PAUSE_MS = 100,        /* when descriptors ran out */
        MHD_MEMORY_BYTES = 16 * 1024, /* a connection's pool: an 8 KiB head, room to say 431 about a larger one */
};

/* ---- libmicrohttpd on our loop ---- */

static void run_http(struct api_server *s);

static void on_http_ready(uv_poll_t *poll, int status, int events)
{
        (void) status;
        (void) events;
        run_http(poll->data);
}

static void on_http_timer(uv_timer_t *timer)
{
        run_http(timer->data);
}

/* Its epoll set is edge-triggered inside: what it left half done is told by a timeout only, not by a descriptor. */
static void run_http(struct api_server *s)
{
        MHD_UNSIGNED_LONG_LONG ms;

        if (!s->mhd)
                return;
        s->woken = false;
        (void) MHD_run(s->mhd);
        if (MHD_get_timeout(s->mhd, &ms) == MHD_YES)
                (void) uv_timer_start(&s->mhd_timer, on_http_timer, ms, 0);
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
        if (!c->dispatched) {
                c->dispatched = true;
                if (c->early.status != 0) {
                        conn_reply_problem(c, &c->early, NULL);
                        if (c->reply && (c->refusal.status != 0 || c->early.status == 413))
                                (void) MHD_add_response_header(c->reply, MHD_HTTP_HEADER_CONNECTION, "close");
                } else if (c->too_large) {
                        struct problem p;
                        problem_set(&p, 413, "too-large", "the body has more than %d bytes", HTTP_BODY_MAX_BYTES);
                        conn_reply_problem(c, &p, NULL);
                } else {
                        c->route->run(c);
                }
        }
        if (c->reply)
                return conn_send_reply(c);
        return c->dead || !c->asleep ? MHD_NO : MHD_YES;
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

/* ---- accepting ---- */

/* Said before there is a connection object, in one piece, to a client that may be writing meanwhile. */
static void turn_away(int fd, const char *words)
{
        char body[400], answer[700];

        int n_body = snprintf(body, sizeof(body),
                              "{\"type\":\"urn:lessor:problem:limit-connections\",\"title\":\"Too many connections\","
                              "\"status\":429,\"detail\":\"%s\"}",
                              words);
        int n = snprintf(answer, sizeof(answer),
                         "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/problem+json\r\n"
                         "Content-Length: %d\r\nConnection: close\r\n\r\n%s",
                         n_body, body);
        (void) send(fd, answer, (size_t) n, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void) close(fd);
}

static uint32_t count_of_uid(const struct api_server *s, uint32_t uid)
{
        uint32_t n = 0;
        for (uint32_t i = 0; i < s->options.connections_max; i++)
                n += s->conns[i] && s->conns[i]->peer.uid == uid;
        return n;
}

static void take_connection(struct api_server *s, int fd)
{
        const struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct conn *c = conn_new(s, fd);

        if (!c) {
                turn_away(fd, "out of memory; try again");
                return;
        }
        /* A caller that is refused still gets its 403 through HTTP, for every request, and then the end. */
        (void) peer_of_socket(fd, &s->options.rules, &c->peer, &c->refusal);

        bool last_one = s->n_conns + 1 >= s->options.connections_max;
        bool all_taken = s->n_conns >= s->options.connections_max;
        if (all_taken || (last_one && !c->peer.is_admin) || count_of_uid(s, c->peer.uid) >= s->options.per_uid_max) {
                turn_away(fd, all_taken || last_one
                                      ? "all connections are taken (the last one is kept for an administrator); "
                                        "close idle ones or try again"
                                      : "this user has too many connections open; close some");
                conn_free_later(c);
                return;
        }

        uint32_t slot = 0;
        while (s->conns[slot])
                slot++;
        c->slot = slot;
        s->conns[slot] = c;
        s->n_conns++;
        s->incoming = c;
        enum MHD_Result r = MHD_add_connection(s->mhd, fd, (const struct sockaddr *) &address, sizeof(address));
        s->incoming = NULL;
        if (r != MHD_YES) { /* it has closed the descriptor */
                if (s->conns[slot] == c) {
                        s->conns[slot] = NULL;
                        s->n_conns--;
                        conn_free_later(c);
                }
                return;
        }
        conn_set_state(
                c, CONN_READING); /* who connects wants something: its first bytes may be read before we could look */
}

static void on_accept_ready(uv_poll_t *poll, int status, int events);

static void on_accept_timer(uv_timer_t *timer)
{
        struct api_server *s = timer->data;
        (void) uv_poll_start(&s->listen_poll, UV_READABLE, on_accept_ready);
}

static void on_accept_ready(uv_poll_t *poll, int status, int events)
{
        struct api_server *s = poll->data;

        (void) status;
        (void) events;
        for (unsigned i = 0; i < ACCEPT_AT_ONCE; i++) {
                int fd = accept4(s->options.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (fd >= 0) {
                        take_connection(s, fd);
                        continue;
                }
                if (errno == EINTR || errno == ECONNABORTED)
                        continue;
                if (errno != EAGAIN) { /* out of descriptors or memory: leave it in the backlog for a moment */
                        log_warning("event=accept-failed errno=%d words=\"%s\"", errno, strerror(errno));
                        (void) uv_poll_stop(&s->listen_poll);
                        (void) uv_timer_start(&s->accept_timer, on_accept_timer, ACCEPT_PAUSE_MS, 0);
                }
                break;
        }
        run_http(s);
}

/* ---- life ---- */

int api_server_new(struct api_server **ret, uv_loop_t *loop, const struct api_options *options,
                   const struct api_host *host, struct error *err)
{
        struct api_server *s = calloc(1, sizeof(*s));
        if (!s)
                return error_set(err, ENOMEM, "no memory for the API server");

        s->loop = loop;
        s->host = *host;
        s->options = *options;
        s->next_token = 1;
        s->mhd = MHD_start_daemon(
                MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
                on_request, s, MHD_OPTION_EXTERNAL_LOGGER, log_http, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
                MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_CONNECTION_LIMIT,
                (unsigned) options->connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) MHD_MEMORY_BYTES,
                MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_END);
        const union MHD_DaemonInfo *info = s->mhd ? MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
        if (!info) {
                if (s->mhd)
                        MHD_stop_daemon(s->mhd);
                free(s);
                return error_set(err, ENOTSUP, "libmicrohttpd cannot be started with epoll");
        }

        (void) uv_poll_init(loop, &s->mhd_poll, info->epoll_fd);
        (void) uv_poll_init(loop, &s->listen_poll, options->listen_fd);
        (void) uv_timer_init(loop, &s->mhd_timer);
        (void) uv_timer_init(loop, &s->accept_timer);
        s->mhd_poll.data = s->listen_poll.data = s->mhd_timer.data = s->accept_timer.data = s;
        (void) uv_poll_start(&s->mhd_poll, UV_READABLE, on_http_ready);
        (void) uv_poll_start(&s->listen_poll, UV_READABLE, on_accept_ready);
        *ret = s;
        return 0;
}

void api_server_stop(struct api_server *s)
{
        if (s->stopping)
                return;
        s->stopping = true;
        (void) uv_poll_stop(&s->listen_poll);
        (void) uv_poll_stop(&s->mhd_poll);

        for (uint32_t i = 0; i < s->options.connections_max; i++)
                if (s->conns[i])
                        conn_drop(s->conns[i]);
        (void) MHD_run(s->mhd); /* those that slept notice */
        MHD_stop_daemon(s->mhd);
        s->mhd = NULL;

        uv_close((uv_handle_t *) &s->listen_poll, NULL);
        uv_close((uv_handle_t *) &s->mhd_poll, NULL);
        uv_close((uv_handle_t *) &s->mhd_timer, NULL);
        uv_close((uv_handle_t *) &s->accept_timer, NULL);
        (void) close(s->options.listen_fd);
}

void api_server_free(struct api_server *s)
{
        if (!s)
                return;
        user_names_fini(&s->names);
        free(s);
}

/* ---- what a turn decided ---- */

static struct conn *conn_of_token(const struct api_server *s, uint64_t token)
{
        uint32_t slot = (uint32_t) (token % API_CONNECTIONS_MAX); /* api_token() */
        struct conn *c = token != 0 ? s->conns[slot] : NULL;
        return c && c->token == token ? c : NULL;
}

void api_server_on_actions(struct api_server *s, const struct action *actions, size_t n)
{
        if (s->stopping)
                return;
        for (size_t i = 0; i < n; i++) {
                const struct action *a = &actions[i];
                struct conn *asked = conn_of_token(s, a->token);
                if (asked)
                        route_on_action(asked, a);
                if (a->kind == ACTION_READ)
                        continue;
                for (uint32_t slot = 0; slot < s->options.connections_max; slot++) {
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
                run_http(s);
}

void api_server_on_refused(struct api_server *s, uint64_t token, int code, const char *words)
{
        struct conn *c = conn_of_token(s, token);
        struct problem p;

        if (!c || s->stopping)
                return;
        c->gives_up = c->binds_here = false;
        if (code == ENOSPC)
                problem_set(&p, 507, "store-full", "nothing was changed: %s; make room and try again", words);
        else
                problem_set(&p, 503, "store-unavailable", "nothing was changed: %s; try again", words);
        conn_reply_problem(c, &p, NULL);
}
