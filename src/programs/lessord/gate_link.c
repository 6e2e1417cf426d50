/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/gate_link.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

enum { MESSAGES_AT_ONCE = 64 };

struct gate_link {
        uv_loop_t *loop;
        struct gate_link_host host;
        char socket[sizeof(((struct sockaddr_un *) 0)->sun_path)];
        char version[GATE_PROGRAM_SIZE];
        int sock;             /* -1 = none */
        uv_poll_t *sock_poll; /* one for each connection; freed when the loop has let go of it */
        uv_timer_t again, tick;
        bool up, stopping;
        uint64_t up_since_ms, backoff_ms;
        uint64_t ping_sent, ping_answered;
        char words[sizeof(((struct error *) 0)->msg)];
};

static void begin(struct gate_link *g);

static void on_sock_closed(uv_handle_t *handle)
{
        free(handle);
}

static void on_again(uv_timer_t *timer)
{
        struct gate_link *g = timer->data;

        if (!g->stopping && g->sock < 0)
                begin(g);
}

printf_like(2, 3) static void fail(struct gate_link *g, const char *fmt, ...)
{
        char before[sizeof(g->words)];
        bool was_up = g->up;
        va_list args;

        if (g->sock_poll)
                uv_close((uv_handle_t *) g->sock_poll, on_sock_closed);
        g->sock_poll = NULL;
        closep(&g->sock);
        g->sock = -1;
        g->up = false;
        (void) uv_timer_stop(&g->tick);
        if (g->stopping)
                return;
        if (was_up && clock_now_ms() - g->up_since_ms >= GATE_BACKOFF_MOST_MS)
                g->backoff_ms = GATE_BACKOFF_FIRST_MS;
        memcpy(before, g->words, sizeof(before));
        va_start(args, fmt);
        (void) vsnprintf(g->words, sizeof(g->words), fmt, args);
        va_end(args);
        if (was_up || strcmp(before, g->words) != 0) /* once, not at each attempt */
                log_warning("event=gate-away why=\"%s\" again_in_ms=%" PRIu64, g->words, g->backoff_ms);
        (void) uv_timer_start(&g->again, on_again, g->backoff_ms, 0);
        g->backoff_ms = g->backoff_ms * 2 < GATE_BACKOFF_MOST_MS ? g->backoff_ms * 2 : GATE_BACKOFF_MOST_MS;
        g->host.on_away(g->host.ctx, g->words);
}

/* ---- what is said ---- */

bool gate_link_say(struct gate_link *g, const struct gate_message *msg)
{
        uint8_t buf[GATE_MESSAGE_MAX];
        struct error err = { 0 };
        size_t n = 0;

        if (g->sock < 0)
                return false;
        if (gate_encode(msg, buf, sizeof(buf), &n, &err) < 0) {
                log_error("event=gate-not-told words=\"%s\"", err.msg);
                return false;
        }
        return send(g->sock, buf, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t) n;
}

void gate_link_ask(struct gate_link *g)
{
        const struct gate_message ping = { .kind = GATE_PING, .nonce = g->ping_sent + 1 };

        if (g->up)
                g->ping_sent += gate_link_say(g, &ping);
}

static void on_hello(struct gate_link *g, const struct gate_hello *hello)
{
        if (hello->version != GATE_VERSION) {
                fail(g,
                     "lessor-warden-admin %s speaks version %u, lessord %s speaks version %d; install both from one "
                     "release and restart them",
                     hello->program, hello->version, g->version, GATE_VERSION);
                return;
        }
        g->up = true;
        g->up_since_ms = clock_now_ms();
        (void) snprintf(g->words, sizeof(g->words), "lessor-warden-admin %s", hello->program);
        log_info("event=gate-up program=\"%s\"", g->words);
        g->host.on_up(g->host.ctx);
}

static void on_message(struct gate_link *g, const struct gate_message *msg)
{
        if (msg->kind == GATE_HELLO && !g->up) {
                on_hello(g, &msg->hello);
        } else if (msg->kind == GATE_ANSWER && g->up) {
                g->host.on_answer(g->host.ctx, &msg->answer);
        } else if (msg->kind == GATE_STATE && g->up && msg->state.nonce <= g->ping_sent) {
                g->ping_answered = msg->state.nonce;
                g->host.on_state(g->host.ctx, &msg->state);
        } else {
                fail(g, "lessor-warden-admin says %s where it makes no sense", gate_kind_name(msg->kind));
        }
}

static void hear(struct gate_link *g)
{
        for (int i = 0; i < MESSAGES_AT_ONCE && g->sock >= 0; i++) {
                uint8_t buf[GATE_MESSAGE_MAX];
                struct gate_message msg;
                struct error err = { 0 };
                ssize_t n = recv(g->sock, buf, sizeof(buf), MSG_TRUNC | MSG_DONTWAIT);

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return;
                if (n <= 0)
                        fail(g, "lessor-warden-admin hung up");
                else if ((size_t) n > sizeof(buf) || gate_decode(buf, (size_t) n, &msg, &err) < 0)
                        fail(g, "lessor-warden-admin makes no sense: %s", err.msg);
                else
                        on_message(g, &msg);
        }
}

static void on_sock(uv_poll_t *poll, int status, int events)
{
        (void) status;
        (void) events;
        hear(poll->data);
}

static void on_tick(uv_timer_t *timer)
{
        struct gate_link *g = timer->data;

        hear(g); /* what came while this program stood still counts as said in time */
        if (g->sock < 0)
                return;
        if (!g->up || g->ping_answered != g->ping_sent)
                fail(g, "lessor-warden-admin does not answer");
        else
                gate_link_ask(g);
}

/* ---- beginning ---- */

/* Who listens there must be root: anybody else would only pretend that the kernel knows. */
static int connect_to(struct gate_link *g, struct error *err)
{
        struct sockaddr_un addr = { .sun_family = AF_UNIX };
        struct ucred cred = { .uid = 1 };
        socklen_t n = sizeof(cred);
        auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
                return error_errno(err, errno, "a socket for lessor-warden-admin");
        (void) snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", g->socket);
        if (connect(fd, (struct sockaddr *) &addr, sizeof(addr)) < 0)
                return error_errno(err, errno, "no lessor-warden-admin at %s", g->socket);
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0 || cred.uid != 0)
                return error_set(err, EPERM, "who listens at %s is not root: this is no lessor-warden-admin",
                                 g->socket);
        g->sock = take_fd(fd);
        return 0;
}

static void begin(struct gate_link *g)
{
        struct gate_message hello = { .kind = GATE_HELLO, .hello.version = GATE_VERSION };
        struct error err = { 0 };
        uv_poll_t *poll = calloc(1, sizeof(*poll));

        int r = poll ? connect_to(g, &err) : error_set(&err, ENOMEM, "no memory for the gate");
        if (r < 0) {
                free(poll);
                fail(g, "%s", err.msg);
                return;
        }
        (void) uv_poll_init(g->loop, poll, g->sock);
        poll->data = g;
        g->sock_poll = poll;
        (void) uv_poll_start(poll, UV_READABLE, on_sock);
        g->ping_sent = g->ping_answered = 0;
        (void) uv_timer_start(&g->tick, on_tick, GATE_TICK_MS, GATE_TICK_MS);
        memcpy(hello.hello.program, g->version, sizeof(g->version));
        (void) gate_link_say(g, &hello);
}

void gate_link_begin_again(struct gate_link *g, const char *why)
{
        fail(g, "%s", why);
}

/* ---- life ---- */

int gate_link_new(struct gate_link **ret, uv_loop_t *loop, const char *socket, const char *version,
                  const struct gate_link_host *host, struct error *err)
{
        struct gate_link *g = calloc(1, sizeof(*g));

        if (!g)
                return error_set(err, ENOMEM, "no memory for the gate");
        if ((size_t) snprintf(g->socket, sizeof(g->socket), "%s", socket) >= sizeof(g->socket)) {
                free(g);
                return error_set(err, ENAMETOOLONG, "the socket's path %s is longer than the kernel takes", socket);
        }
        (void) snprintf(g->version, sizeof(g->version), "%s", version);
        g->loop = loop;
        g->host = *host;
        g->sock = -1;
        g->backoff_ms = GATE_BACKOFF_FIRST_MS;
        (void) snprintf(g->words, sizeof(g->words), "lessor-warden-admin was not looked for yet");
        (void) uv_timer_init(loop, &g->again);
        (void) uv_timer_init(loop, &g->tick);
        g->again.data = g->tick.data = g;
        *ret = g;
        return 0;
}

void gate_link_start(struct gate_link *g)
{
        begin(g);
}

void gate_link_stop(struct gate_link *g)
{
        g->stopping = true;
        fail(g, "stopped");
        uv_close((uv_handle_t *) &g->again, NULL);
        uv_close((uv_handle_t *) &g->tick, NULL);
}

void gate_link_free(struct gate_link *g)
{
        free(g);
}

bool gate_link_is_up(const struct gate_link *g)
{
        return g->up;
}

const char *gate_link_words(const struct gate_link *g)
{
        return g->words;
}
