/* SPDX-License-Identifier: Apache-2.0 */
/* The doors: who comes in, who is turned away, and whose container is asked about first. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "api/conn.h"
#include "base/log.h"

enum {
        ACCEPT_AT_ONCE = 64,      /* a turn, so that a flood of connections does not keep out everything else */
        ACCEPT_PAUSE_MS = 100,    /* when descriptors ran out */
        QUESTIONS_OF_ONE_MAX = 8, /* to an engine, about one container, at a time */
};

union address {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un un;
};

/* Said before there is a connection object, in one piece, to a client that may be writing meanwhile. */
static void turn_away(const struct listener *l, int fd, const char *words)
{
        char body[400], answer[700];

        int n_body = snprintf(body, sizeof(body),
                              "{\"type\":\"urn:lessor:problem:limit-connections\",\"title\":\"Too many connections\","
                              "\"status\":429,\"detail\":\"%s\"}",
                              words);
        int n = snprintf(answer, sizeof(answer),
                         "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/problem+json\r\n"
                         "Content-Length: %d\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%s",
                         n_body, body);
        if (!l->door.tls)
                (void) send(fd, answer, (size_t) n, MSG_NOSIGNAL | MSG_DONTWAIT);
        (void) close(fd);
}

/* ---- how many ---- */

/* Under whom a connection counts: whose process it is, so that root's are root's whatever name he works in; those of a
 * container under the user it may act as; those by TCP by their door. */
static uint32_t counts_as(const struct conn *c)
{
        return c->peer.in_container ? c->peer.uid : c->peer.kernel_uid;
}

/* A container that is refused, or asked about first, is nobody's yet: all of its own, also those that were let in, and those
 * of no other. A user makes as many containers as he likes, so all of a user's are one. */
static bool is_same_container(const struct container_place *a, const struct container_place *b)
{
        return a->of_user ? b->of_user && a->user_uid == b->user_uid : strcmp(a->id, b->id) == 0;
}

static uint32_t count_like(const struct api_server *s, const struct conn *c)
{
        bool is_nobodys = c->peer.place.id[0] != '\0' && !c->peer.in_container;
        uint32_t n = 0;

        for (uint32_t i = 0; i < s->options.connections_max; i++) {
                const struct conn *other = s->conns[i];
                if (!other || other->listener != c->listener)
                        continue;
                n += is_nobodys ? is_same_container(&c->peer.place, &other->peer.place)
                                : counts_as(other) == counts_as(c);
        }
        return n;
}

/* NULL, or why it has to go. */
static const char *no_room_for(const struct api_server *s, const struct conn *c)
{
        bool last_one = s->n_conns + 1 >= s->options.connections_max;

        if (s->n_conns >= s->options.connections_max || (last_one && !c->peer.is_admin))
                return "all connections are taken (the last one is kept for an administrator); close idle ones or try "
                       "again";
        if (count_like(s, c) >= s->options.per_uid_max)
                return "this user, or this container, has too many connections open; close some";
        return NULL;
}

/* ---- who ---- */

void accept_hand_over(struct conn *c)
{
        struct api_server *s = c->server;
        union address address = { .un = { .sun_family = AF_UNIX } };
        socklen_t size = sizeof(address.un);

        if (c->listener->door.kind != DOOR_UNIX) {
                size = sizeof(address);
                (void) getpeername(c->fd, &address.any, &size);
        }
        s->incoming = c;
        enum MHD_Result r = MHD_add_connection(s->http[c->listener->door.tls].mhd, c->fd, &address.any, size);
        s->incoming = NULL;
        if (r == MHD_YES) {
                /* who connects wants something: its first bytes may be read before we could look */
                conn_set_state(c, CONN_READING);
        } else if (s->conns[c->slot] == c) { /* it has closed the descriptor */
                server_free_slot(s, c->slot);
                conn_free_later(c);
        }
}

static void on_engine(void *ctx, const struct container_facts *facts, const char *why)
{
        struct conn *c = ctx;
        struct api_server *s = c->server;

        c->question = NULL;
        s->n_questions--;
        (void) peer_settle(&c->peer, &s->options.rules, facts, why, &c->refusal);
        accept_hand_over(c);
        server_run_http(s);
}

void accept_forget(struct conn *c)
{
        if (!c->question)
                return;
        engine_cancel(c->question);
        c->question = NULL;
        c->server->n_questions--;
}

/* So that one container that nobody allowed does not use up the questions about all. */
static bool is_asked_about_enough(const struct api_server *s, const struct conn *c)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < s->options.connections_max; i++)
                n += s->conns[i] && s->conns[i]->question && strcmp(s->conns[i]->peer.place.id, c->peer.place.id) == 0;
        return n >= QUESTIONS_OF_ONE_MAX || s->n_questions >= ENGINE_QUESTIONS_MAX;
}

static void ask_engine(struct conn *c)
{
        struct api_server *s = c->server;
        const struct peer_rules *rules = &s->options.rules;

        if (!is_asked_about_enough(s, c))
                c->question = engine_ask(s->loop, rules->engine_socket, c->peer.place.id, on_engine, c);
        if (c->question) {
                s->n_questions++;
                return;
        }
        (void) peer_settle(&c->peer, rules, NULL,
                           "its engine is being asked about too many callers just now; try again", &c->refusal);
        accept_hand_over(c);
}

/* IPv6: a network of one owner, who has 2^64 addresses of his own, is one address. */
static void note_address(struct conn *c, const union address *from)
{
        c->address[0] = c->listener->number;
        if (from->any.sa_family == AF_INET6)
                memcpy(c->address + 1, &from->v6.sin6_addr, 8);
        else if (from->any.sa_family == AF_INET)
                memcpy(c->address + 1, &from->v4.sin_addr, sizeof(from->v4.sin_addr));
}

static int find_out(struct conn *c, const union address *from)
{
        if (c->listener->door.kind == DOOR_UNIX)
                return peer_of_socket(c->fd, &c->server->options.rules, &c->peer, &c->refusal);
        peer_of_tcp(&c->peer);
        note_address(c, from);
        return 0;
}

static void take_connection(struct listener *l, int fd, const union address *from)
{
        struct api_server *s = l->server;
        struct conn *c = conn_new(s, l, fd);

        if (!c) {
                turn_away(l, fd, "out of memory; try again");
                return;
        }
        /* A caller that is refused still gets its 403 through HTTP, for every request, and then the end. */
        int r = find_out(c, from);
        const char *words = no_room_for(s, c);
        if (words) {
                turn_away(l, fd, words);
                conn_free_later(c);
                return;
        }
        uint32_t slot = 0;
        while (s->conns[slot])
                slot++;
        c->slot = slot;
        s->conns[slot] = c;
        if (slot >= s->n_slots)
                s->n_slots = slot + 1;
        s->n_conns++;
        if (r == PEER_ASK_ENGINE)
                ask_engine(c);
        else
                accept_hand_over(c);
}

/* ---- the doors ---- */

static void on_accept_ready(uv_poll_t *poll, int status, int events);

static void on_accept_timer(uv_timer_t *timer)
{
        struct api_server *s = timer->data;

        for (uint32_t i = 0; i < s->n_listeners; i++)
                (void) uv_poll_start(&s->listeners[i].poll, UV_READABLE, on_accept_ready);
}

static void on_accept_ready(uv_poll_t *poll, int status, int events)
{
        struct listener *l = poll->data;

        (void) status;
        (void) events;
        for (unsigned i = 0; i < ACCEPT_AT_ONCE; i++) {
                union address from = { .any = { .sa_family = AF_UNSPEC } };
                socklen_t size = sizeof(from);
                int fd = accept4(l->door.listen_fd, &from.any, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (fd >= 0) {
                        take_connection(l, fd, &from);
                        continue;
                }
                if (errno == EINTR || errno == ECONNABORTED)
                        continue;
                if (errno != EAGAIN) { /* out of descriptors or memory: leave it in the backlog for a moment */
                        log_warning("event=accept-failed door=\"%s\" errno=%d words=\"%s\"", l->door.name, errno,
                                    strerror(errno));
                        (void) uv_poll_stop(&l->poll);
                        (void) uv_timer_start(&l->server->accept_timer, on_accept_timer, ACCEPT_PAUSE_MS, 0);
                }
                break;
        }
        server_run_http(l->server);
}

void accept_start(struct api_server *s, const struct api_options *options)
{
        (void) uv_timer_init(s->loop, &s->accept_timer);
        s->accept_timer.data = s;
        for (uint32_t i = 0; i < options->n_doors; i++) {
                struct listener *l = &s->listeners[i];
                l->server = s;
                l->door = options->doors[i];
                l->number = (uint8_t) i;
                (void) uv_poll_init(s->loop, &l->poll, l->door.listen_fd);
                l->poll.data = l;
                s->n_listeners++;
        }
        for (uint32_t i = 0; i < s->n_listeners; i++)
                (void) uv_poll_start(&s->listeners[i].poll, UV_READABLE, on_accept_ready);
}

void accept_stop(struct api_server *s)
{
        for (uint32_t i = 0; i < s->n_listeners; i++) {
                (void) uv_poll_stop(&s->listeners[i].poll);
                uv_close((uv_handle_t *) &s->listeners[i].poll, NULL);
                (void) close(s->listeners[i].door.listen_fd);
        }
        uv_close((uv_handle_t *) &s->accept_timer, NULL);
}
