/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-warden/serve.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

/* ---- saying something ---- */

static void hang_up(struct serve *s, int why)
{
        closep(&s->carry.peer);
        s->carry.peer = -1;
        s->carry.brain_pid = 0;
        s->greeted = false;
        s->alone_until_ms = clock_now_ms() + WARDEN_ALONE_MS;
        s->last_error = why;
}

/* Waits while the brain is slow: its socket is the only queue there is, and while it waits nothing is done. */
static void say(struct serve *s, const struct warden_message *msg)
{
        uint8_t buf[WARDEN_MESSAGE_MAX];
        struct error err = { 0 };
        ssize_t sent;
        size_t n = 0;

        if (s->carry.peer < 0)
                return;
        if (warden_encode(msg, buf, sizeof(buf), &n, &err) < 0) {
                log_error("event=not-said words=\"%s\"", err.msg); /* our own bug; the brain has its deadlines */
                return;
        }
        do {
                sent = send(s->carry.peer, buf, n, MSG_NOSIGNAL);
        } while (sent < 0 && errno == EINTR);
        if (sent < 0)
                hang_up(s, -errno);
}

static void say_id(struct serve *s, enum warden_kind kind, uint64_t order_id)
{
        const struct warden_message msg = { .kind = kind, .order_id = order_id };
        say(s, &msg);
}

static void say_answer(struct serve *s, const struct warden_answer *answer)
{
        struct warden_message msg = { .kind = WARDEN_OUTCOME, .outcome = *answer };

        if (answer->program_dev != 0) /* a LOOK's, which is answered at once */
                memcpy(msg.path, s->carry.path, sizeof(msg.path));
        say(s, &msg);
}

static void say_state(struct serve *s, uint64_t nonce)
{
        struct warden_message msg = { .kind = WARDEN_STATE };

        carry_state(&s->carry, &msg.state);
        msg.state.nonce = nonce;
        say(s, &msg);
}

static void say_hello(struct serve *s)
{
        struct warden_message msg = { .kind = WARDEN_HELLO, .hello.version = WARDEN_VERSION };

        (void) snprintf(msg.hello.program, sizeof(msg.hello.program), "%s", s->program);
        say(s, &msg);
}

/* ---- being told something ---- */

static void on_hello(struct serve *s, const struct warden_hello *hello)
{
        if (hello->version != WARDEN_VERSION) {
                log_error(
                        "event=version-skew words=\"lessord %s speaks version %u, lessor-warden %s speaks version %d; "
                        "install both from one release and restart them\"",
                        hello->program, hello->version, s->program, WARDEN_VERSION);
                hang_up(s, -EPROTONOSUPPORT);
                return;
        }
        s->greeted = true;
        log_info("event=brain program=%s pid=%u", hello->program, s->carry.brain_pid);
        for (size_t i = 0; i < BOOK_HELPERS_MAX; i++) {
                const struct book_slot *slot = &s->carry.book.slots[i];
                if (slot->state == BOOK_ENDED)
                        say_answer(s, &slot->answer);
                else if (slot->state != BOOK_FREE)
                        say_id(s, WARDEN_HELD, slot->order.order_id);
        }
        say_state(s, 0);
}

static void on_order(struct serve *s, const struct warden_order *order)
{
        struct warden_answer answer;

        if (carry_order(&s->carry, order, &answer) == CARRY_HELD)
                say_id(s, WARDEN_HELD, order->order_id);
        else
                say_answer(s, &answer);
}

static void on_message(struct serve *s, const struct warden_message *msg)
{
        if (!s->greeted && msg->kind == WARDEN_HELLO) {
                on_hello(s, &msg->hello);
        } else if (s->greeted && msg->kind == WARDEN_ORDER) {
                memcpy(s->carry.path, msg->path, sizeof(msg->path));
                on_order(s, &msg->order);
        } else if (s->greeted && msg->kind == WARDEN_SETTLED) {
                carry_settled(&s->carry, msg->order_id);
        } else if (s->greeted && msg->kind == WARDEN_PING) {
                say_state(s, msg->nonce);
        } else {
                log_error("event=out-of-place message=%s", warden_kind_name(msg->kind));
                hang_up(s, -EBADMSG);
        }
}

/* One message. What is wrong with it is the connection's end. */
static void hear(struct serve *s)
{
        uint8_t buf[WARDEN_MESSAGE_MAX];
        struct warden_message msg;
        struct error err = { 0 };

        ssize_t n = recv(s->carry.peer, buf, sizeof(buf), MSG_TRUNC | MSG_DONTWAIT); /* descriptors are not taken */
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0) {
                hang_up(s, n < 0 && errno != ECONNRESET ? -errno : 0);
                return;
        }
        int r = n > WARDEN_MESSAGE_MAX ? error_set(&err, EBADMSG, "a message of %zd bytes", n)
                                       : warden_decode(buf, (size_t) n, &msg, &err);
        if (r < 0) {
                log_error("event=bad-message words=\"%s\"", err.msg);
                hang_up(s, r);
                return;
        }
        on_message(s, &msg);
}

/* ---- the loop ---- */

int serve_take_peer(struct serve *s, int fd)
{
        struct ucred cred = { 0 };
        socklen_t n = sizeof(cred);

        /* The kernel's own record of who connected (for a pair: who made it); nothing is nobody (security S01). */
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0 || n != sizeof(cred) || cred.pid <= 0 ||
            cred.uid != s->brain_uid) {
                log_error("event=refused-peer uid=%u pid=%d", cred.uid, cred.pid);
                (void) close(fd);
                return -EPERM;
        }
        if (s->carry.peer >= 0) {
                log_error("event=refused-second-peer uid=%u pid=%d", cred.uid, cred.pid);
                (void) close(fd);
                return -EBUSY;
        }
        s->carry.peer = fd;
        s->carry.brain_pid = (uint32_t) cred.pid;
        say_hello(s);
        return 0;
}

static void collect_helper(struct serve *s, size_t i)
{
        carry_helper_ended(&s->carry, i);
        if (s->greeted && s->carry.book.slots[i].state == BOOK_ENDED)
                say_answer(s, &s->carry.book.slots[i].answer);
        if (s->carry.peer < 0 && s->alone_until_ms == 0)
                carry_let_go(&s->carry); /* it may have held somebody */
}

/* For poll(): until those that are held are let go. */
static int patience_ms(struct serve *s)
{
        uint64_t now_ms = clock_now_ms();

        if (s->carry.peer >= 0 || s->alone_until_ms == 0)
                return -1;
        if (now_ms < s->alone_until_ms)
                return (int) (s->alone_until_ms - now_ms);
        s->alone_until_ms = 0;
        carry_let_go(&s->carry);
        return -1;
}

int serve_run(struct serve *s)
{
        enum { PEER, LISTENER, HELPERS };
        struct pollfd fds[HELPERS + BOOK_HELPERS_MAX];

        s->alone_until_ms = clock_now_ms() + WARDEN_ALONE_MS;
        for (size_t i = 0; i < BOOK_HELPERS_MAX; i++)
                if (s->carry.book.slots[i].state == BOOK_PREPARED)
                        collect_helper(s, i);
        while (s->carry.peer >= 0 || s->carry.listener >= 0) {
                fds[PEER] = (struct pollfd){ .fd = s->carry.peer, .events = POLLIN };
                fds[LISTENER] = (struct pollfd){ .fd = s->carry.listener, .events = POLLIN };
                for (size_t i = 0; i < BOOK_HELPERS_MAX; i++)
                        fds[HELPERS + i] = (struct pollfd){ .fd = s->carry.helper_pidfds[i], .events = POLLIN };
                if (poll(fds, HELPERS + BOOK_HELPERS_MAX, patience_ms(s)) < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                for (size_t i = 0; i < BOOK_HELPERS_MAX; i++)
                        if (fds[HELPERS + i].revents)
                                collect_helper(s, i);
                if (fds[PEER].revents && s->carry.peer >= 0)
                        hear(s); /* to its end, before another one is taken in its place */
                else if (fds[LISTENER].revents) {
                        int fd = accept4(s->carry.listener, NULL, NULL, SOCK_CLOEXEC);
                        if (fd >= 0)
                                (void) serve_take_peer(s, fd);
                }
        }
        return s->last_error;
}
