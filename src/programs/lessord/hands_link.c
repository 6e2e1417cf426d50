/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/hands_link.h"
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "programs/lessord/eyes_child.h"
#include "programs/lessord/launcher.h"
#include "senses/process.h"

enum { EXTRA_MAX = 8, MESSAGES_AT_ONCE = 64 };

/* FREE → ASKED → TOLD (kept by the hands until settled) → UNSAID (settled, but the hands could not be told yet) → FREE */
enum order_state { ORDER_FREE, ORDER_ASKED, ORDER_TOLD, ORDER_UNSAID };

struct known_order {
        uint64_t id;
        enum order_state state;
        bool confirmed; /* these hands know of it */
};

struct hands_link {
        uv_loop_t *loop;
        struct hands_host host;
        char socket[sizeof(((struct sockaddr_un *) 0)->sun_path)], program[4096], dir[4096];
        char version[WARDEN_PROGRAM_SIZE];
        char extra[EXTRA_MAX][128];
        size_t n_extra;
        uint64_t tick_ms, backoff_ms, up_since_ms;

        int launcher;            /* -1 = none, or gone */
        bool launched;           /* the child is the launcher's: there is nothing to reap */
        struct eyes_child child; /* pid 0 = none, or the system's */
        uv_poll_t exit_poll;
        bool exit_polled;
        int sock;             /* -1 = none */
        uv_poll_t *sock_poll; /* one for each connection; freed when the loop has let go of it */
        uv_timer_t restart, tick;
        bool has_hello, up, stopping;
        uint64_t ping_sent, ping_answered;
        uint32_t can;
        char words[sizeof(((struct error *) 0)->msg)];
        struct known_order orders[HANDS_ORDERS_MAX];
        char path[WARDEN_PATH_SIZE]; /* of the outcome that is being told */
};

static void begin(struct hands_link *h);
static void hear(struct hands_link *h);

/* ---- orders ---- */

static struct known_order *find_order(struct hands_link *h, uint64_t id)
{
        for (size_t i = 0; i < HANDS_ORDERS_MAX; i++)
                if (h->orders[i].id == id)
                        return &h->orders[i];
        return NULL; /* for the id 0: full */
}

static void forget(struct known_order *o)
{
        *o = (struct known_order){ 0 };
}

static void tell(struct hands_link *h, const struct warden_answer *a)
{
        h->host.on_outcome(h->host.ctx, a);
}

static void refuse(struct hands_link *h, uint64_t id, enum warden_why why)
{
        const struct warden_answer a = { .order_id = id, .result = WARDEN_BLOCKED, .why = why };
        tell(h, &a);
}

/* True when it is on its way. What does not fit now is not kept here: the socket is the only queue. */
static bool say(struct hands_link *h, const struct warden_message *msg)
{
        uint8_t buf[WARDEN_MESSAGE_MAX];
        struct error err = { 0 };
        size_t n = 0;

        if (h->sock < 0)
                return false;
        if (warden_encode(msg, buf, sizeof(buf), &n, &err) < 0) {
                log_error("event=hands-not-told words=\"%s\"", err.msg);
                return false;
        }
        return send(h->sock, buf, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t) n;
}

void hands_link_order(struct hands_link *h, const struct warden_order *order)
{
        hands_link_look(h, order, "");
}

const char *hands_link_path(const struct hands_link *h)
{
        return h->path;
}

void hands_link_look(struct hands_link *h, const struct warden_order *order, const char *path)
{
        struct warden_message msg = { .kind = WARDEN_ORDER, .order = *order };

        (void) snprintf(msg.path, sizeof(msg.path), "%s", path);
        /* Before they are up they tell what came of earlier orders: what follows from that is no order to hands that are away. */
        if (!h->up && !h->has_hello) {
                refuse(h, order->order_id, WARDEN_WHY_AWAY);
                return;
        }
        struct known_order *o = find_order(h, 0);
        if (!o || !say(h, &msg)) {
                refuse(h, order->order_id, WARDEN_WHY_RATE);
                return;
        }
        *o = (struct known_order){ .id = order->order_id, .state = ORDER_ASKED, .confirmed = true };
}

static void say_settled(struct hands_link *h, struct known_order *o)
{
        const struct warden_message msg = { .kind = WARDEN_SETTLED, .order_id = o->id };

        if (h->up && say(h, &msg))
                forget(o);
        else
                o->state = ORDER_UNSAID;
}

void hands_link_settled(struct hands_link *h, uint64_t order_id)
{
        struct known_order *o = order_id ? find_order(h, order_id) : NULL;

        if (o && o->state == ORDER_TOLD)
                say_settled(h, o);
}

/* An outcome that was told before comes again after a restart: the answer is only whether it may be forgotten. */
static void on_outcome(struct hands_link *h, const struct warden_answer *a)
{
        struct known_order *o = find_order(h, a->order_id);

        if (o && o->state != ORDER_ASKED) {
                o->confirmed = true;
                return;
        }
        if (!o && a->kept && (o = find_order(h, 0)))
                o->id = a->order_id; /* of an earlier daemon */
        if (o && a->kept) {
                o->state = ORDER_TOLD;
                o->confirmed = true;
        } else if (o) {
                forget(o);
        }
        tell(h, a);
}

/* The hands have told all they know: what they do not know of any more is settled, or lost. */
static void reconcile(struct hands_link *h)
{
        for (size_t i = 0; i < HANDS_ORDERS_MAX; i++) {
                struct known_order *o = &h->orders[i];
                const struct warden_answer lost = { .order_id = o->id,
                                                    .result = WARDEN_FAILED,
                                                    .why = WARDEN_WHY_LOST };
                if (o->state == ORDER_UNSAID && o->confirmed) {
                        say_settled(h, o);
                } else if (o->state != ORDER_FREE && !o->confirmed) {
                        bool asked = o->state == ORDER_ASKED;
                        forget(o);
                        if (asked)
                                tell(h, &lost);
                }
        }
}

/* ---- ending and beginning again ---- */

static void on_sock_closed(uv_handle_t *handle)
{
        free(handle);
}

static void on_restart(uv_timer_t *timer)
{
        struct hands_link *h = timer->data;

        if (!h->stopping && h->sock < 0 && !h->exit_polled)
                begin(h);
}

static void plan_restart(struct hands_link *h)
{
        if (h->stopping)
                return;
        (void) uv_timer_start(&h->restart, on_restart, h->backoff_ms, 0);
        h->backoff_ms = h->backoff_ms * 2 < HANDS_BACKOFF_MOST_MS ? h->backoff_ms * 2 : HANDS_BACKOFF_MOST_MS;
}

printf_like(2, 3) static void fail(struct hands_link *h, const char *fmt, ...)
{
        bool was_up = h->up;
        va_list args;

        if (h->sock_poll)
                uv_close((uv_handle_t *) h->sock_poll, on_sock_closed);
        h->sock_poll = NULL;
        closep(&h->sock);
        h->sock = -1;
        (void) uv_timer_stop(&h->tick);
        h->up = h->has_hello = false;
        h->can = 0;
        if (h->child.pid != 0)
                eyes_child_kill(&h->child); /* its helpers are not it: they go on */
        if (h->stopping)
                return;
        if (was_up && clock_now_ms() - h->up_since_ms >= HANDS_BACKOFF_MOST_MS)
                h->backoff_ms = HANDS_BACKOFF_FIRST_MS;
        char before[sizeof(h->words)];
        memcpy(before, h->words, sizeof(before));
        va_start(args, fmt);
        (void) vsnprintf(h->words, sizeof(h->words), fmt, args);
        va_end(args);
        if (was_up || strcmp(before, h->words) != 0) { /* once, not at each attempt */
                log_warning("event=hands-away why=\"%s\" again_in_ms=%" PRIu64, h->words, h->backoff_ms);
                h->host.on_state(h->host.ctx, false, h->words);
        }
        plan_restart(h);
}

static void on_exit_closed(uv_handle_t *handle)
{
        struct hands_link *h = handle->data;

        closep(&h->child.pidfd);
        h->child = (struct eyes_child){ .pidfd = -1, .sock = -1 };
        h->exit_polled = false;
        if (!h->stopping && !uv_is_active((uv_handle_t *) &h->restart))
                plan_restart(h); /* the back-off was over before the old one was reaped */
}

static void on_child_exit(uv_poll_t *poll, int status, int events)
{
        struct hands_link *h = poll->data;
        int code = 0, value = 0;

        (void) status;
        (void) events;
        if (h->sock >= 0)
                hear(h); /* its last words */
        if (h->launched ? !process_is_dead(h->child.pidfd) : !eyes_child_reap(&h->child, &code, &value))
                return;
        h->child.pid = 0;
        if (h->sock >= 0 && h->launched)
                fail(h, "lessor-warden ended");
        else if (h->sock >= 0)
                fail(h, "lessor-warden ended (%s %d)", code == CLD_EXITED ? "status" : "signal", value);
        uv_close((uv_handle_t *) poll, on_exit_closed);
}

/* ---- what they say ---- */

static void on_hello(struct hands_link *h, const struct warden_hello *hello)
{
        if (hello->version != WARDEN_VERSION) {
                fail(h,
                     "lessor-warden %s speaks version %u, lessord %s speaks version %d; install both from one release "
                     "and "
                     "restart them",
                     hello->program, hello->version, h->version, WARDEN_VERSION);
                return;
        }
        h->has_hello = true;
        (void) snprintf(h->words, sizeof(h->words), "lessor-warden %s", hello->program);
}

static void on_state(struct hands_link *h, const struct warden_state *state)
{
        h->can = state->can;
        if (state->nonce != 0) {
                h->ping_answered = state->nonce;
                return;
        }
        h->up = true;
        h->up_since_ms = clock_now_ms();
        log_info("event=hands-up program=\"%s\" running=%u", h->words, state->n_running);
        reconcile(h);
        h->host.on_state(h->host.ctx, true, h->words);
}

static void on_message(struct hands_link *h, const struct warden_message *msg)
{
        struct known_order *o = NULL;

        if (msg->kind == WARDEN_HELLO && !h->has_hello) {
                on_hello(h, &msg->hello);
        } else if (msg->kind == WARDEN_OUTCOME && h->has_hello) {
                memcpy(h->path, msg->path, sizeof(h->path));
                on_outcome(h, &msg->outcome);
                h->path[0] = '\0';
        } else if (msg->kind == WARDEN_HELD && h->has_hello) {
                o = find_order(h, msg->order_id);
                if (!o && (o = find_order(h, 0)))
                        *o = (struct known_order){ .id = msg->order_id, .state = ORDER_ASKED };
                if (o)
                        o->confirmed = true;
        } else if (msg->kind == WARDEN_STATE && h->has_hello && (msg->state.nonce != 0) == h->up) {
                on_state(h, &msg->state);
        } else {
                fail(h, "lessor-warden says %s where it makes no sense", warden_kind_name(msg->kind));
        }
}

static void hear(struct hands_link *h)
{
        for (int i = 0; i < MESSAGES_AT_ONCE && h->sock >= 0; i++) {
                uint8_t buf[WARDEN_MESSAGE_MAX];
                struct warden_message msg;
                struct error err = { 0 };
                ssize_t n = recv(h->sock, buf, sizeof(buf), MSG_TRUNC | MSG_DONTWAIT);

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return;
                if (n <= 0)
                        fail(h, "lessor-warden hung up");
                else if ((size_t) n > sizeof(buf) || warden_decode(buf, (size_t) n, &msg, &err) < 0)
                        fail(h, "lessor-warden makes no sense: %s", err.msg);
                else
                        on_message(h, &msg);
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
        struct hands_link *h = timer->data;

        hear(h); /* what came while this program stood still counts as said in time */
        if (h->sock < 0)
                return;
        if (!h->up || h->ping_answered != h->ping_sent) {
                fail(h, "lessor-warden does not answer");
                return;
        }
        for (size_t i = 0; i < HANDS_ORDERS_MAX; i++)
                if (h->orders[i].state == ORDER_UNSAID)
                        say_settled(h, &h->orders[i]);
        const struct warden_message ping = { .kind = WARDEN_PING, .nonce = h->ping_sent + 1 };
        h->ping_sent += say(h, &ping);
}

/* ---- beginning ---- */

static int start_child(struct hands_link *h, struct error *err)
{
        static char name[] = "lessor-warden", fd_option[] = "--fd", fd_number[] = CHILD_FD_TEXT, dir_option[] = "--dir";
        char *argv[6 + EXTRA_MAX] = { name, fd_option, fd_number, dir_option, h->dir };

        for (size_t i = 0; i < h->n_extra; i++)
                argv[5 + i] = h->extra[i];
        h->launched = h->launcher >= 0;
        int r = h->launched ? launcher_spawn(h->launcher, &h->child, err)
                            : child_start(h->program, argv, &h->child, err);
        if (r < 0 && h->launched)
                h->launcher = -1; /* the next one is a child of ours */
        if (r < 0)
                return r;
        log_info("event=hands-started pid=%d", (int) h->child.pid);
        (void) uv_poll_init(h->loop, &h->exit_poll, h->child.pidfd);
        h->exit_poll.data = h;
        h->exit_polled = true;
        (void) uv_poll_start(&h->exit_poll, UV_READABLE, on_child_exit);
        h->sock = h->child.sock;
        h->child.sock = -1;
        return 0;
}

/* Who listens there must be root: anybody else would only pretend to do what is ordered. */
static int connect_system(struct hands_link *h, struct error *err)
{
        struct sockaddr_un addr = { .sun_family = AF_UNIX };
        struct ucred cred = { .uid = 1 };
        socklen_t n = sizeof(cred);
        auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
                return error_errno(err, errno, "a socket for lessor-warden");
        (void) snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", h->socket);
        if (connect(fd, (struct sockaddr *) &addr, sizeof(addr)) < 0)
                return error_errno(err, errno, "connecting to lessor-warden at %s", h->socket);
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0 || cred.uid != 0)
                return error_set(err, EPERM, "who listens at %s is not root: this is no lessor-warden", h->socket);
        h->sock = take_fd(fd);
        return 0;
}

static void begin(struct hands_link *h)
{
        struct warden_message hello = { .kind = WARDEN_HELLO, .hello.version = WARDEN_VERSION };
        struct error err = { 0 };
        uv_poll_t *poll = calloc(1, sizeof(*poll));

        int r = !poll          ? error_set(&err, ENOMEM, "no memory for the hands")
                : h->socket[0] ? connect_system(h, &err)
                               : start_child(h, &err);
        if (r < 0) {
                free(poll);
                fail(h, "%s", err.msg);
                return;
        }
        (void) uv_poll_init(h->loop, poll, h->sock);
        poll->data = h;
        h->sock_poll = poll;
        (void) uv_poll_start(poll, UV_READABLE, on_sock);
        for (size_t i = 0; i < HANDS_ORDERS_MAX; i++)
                h->orders[i].confirmed = false;
        h->ping_sent = h->ping_answered = 0;
        (void) uv_timer_start(&h->tick, on_tick, h->tick_ms, h->tick_ms);
        memcpy(hello.hello.program, h->version, sizeof(h->version));
        (void) say(h, &hello);
}

/* ---- life ---- */

static bool copy_text(char *dst, size_t size, const char *src)
{
        int n = snprintf(dst, size, "%s", src ? src : "");
        return n >= 0 && (size_t) n < size;
}

int hands_link_new(struct hands_link **ret, uv_loop_t *loop, const struct hands_options *options,
                   const struct hands_host *host, struct error *err)
{
        struct hands_link *h = calloc(1, sizeof(*h));
        bool fits = h != NULL;

        if (!h)
                return error_set(err, ENOMEM, "no memory for the hands");
        fits = copy_text(h->socket, sizeof(h->socket), options->socket) &&
               copy_text(h->program, sizeof(h->program), options->program) &&
               copy_text(h->dir, sizeof(h->dir), options->dir) &&
               copy_text(h->version, sizeof(h->version), options->version);
        for (const char *const *extra = options->extra; fits && extra && *extra; extra++)
                fits = h->n_extra < EXTRA_MAX && copy_text(h->extra[h->n_extra++], sizeof(h->extra[0]), *extra);
        if (!fits) {
                free(h);
                return error_set(err, ENAMETOOLONG, "a path or option for lessor-warden is too long");
        }
        h->loop = loop;
        h->host = *host;
        h->sock = -1;
        h->launcher = options->has_launcher ? options->launcher : -1;
        h->child = (struct eyes_child){ .pidfd = -1, .sock = -1 };
        h->tick_ms = options->tick_ms ? options->tick_ms : HANDS_TICK_MS;
        h->backoff_ms = HANDS_BACKOFF_FIRST_MS;
        (void) copy_text(h->words, sizeof(h->words), "lessor-warden was not started yet");
        (void) uv_timer_init(loop, &h->restart);
        (void) uv_timer_init(loop, &h->tick);
        h->restart.data = h->tick.data = h;
        *ret = h;
        return 0;
}

void hands_link_start(struct hands_link *h)
{
        begin(h);
}

void hands_link_stop(struct hands_link *h)
{
        h->stopping = true;
        fail(h, "stopped");
        if (h->exit_polled && !uv_is_closing((uv_handle_t *) &h->exit_poll))
                uv_close((uv_handle_t *) &h->exit_poll, on_exit_closed);
        uv_close((uv_handle_t *) &h->restart, NULL);
        uv_close((uv_handle_t *) &h->tick, NULL);
}

void hands_link_free(struct hands_link *h)
{
        free(h);
}

bool hands_link_knows(const struct hands_link *h, uint64_t order_id)
{
        for (size_t i = 0; order_id != 0 && i < HANDS_ORDERS_MAX; i++)
                if (h->orders[i].id == order_id)
                        return h->orders[i].state == ORDER_ASKED || h->orders[i].state == ORDER_TOLD;
        return false;
}

bool hands_link_is_up(const struct hands_link *h)
{
        return h->up;
}

const char *hands_link_words(const struct hands_link *h)
{
        return h->words;
}

uint32_t hands_link_can(const struct hands_link *h)
{
        return h->can;
}
