/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-warden-admin/serve.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

static void hang_up(struct serve *s)
{
        closep(&s->peer);
        s->peer = -1;
        s->greeted = false;
}

/* Never waits: answers fit into the socket as long as the brain reads, and one that does not read is not worth a wait. */
static void say(struct serve *s, const struct gate_message *msg)
{
        uint8_t buf[GATE_MESSAGE_MAX];
        struct error err = { 0 };
        size_t n = 0;

        if (s->peer < 0)
                return;
        if (gate_encode(msg, buf, sizeof(buf), &n, &err) < 0) {
                log_error("event=not-said words=\"%s\"", err.msg);
                return;
        }
        if (send(s->peer, buf, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                hang_up(s);
}

static void say_answer(struct serve *s, const struct gate_answer *answer)
{
        const struct gate_message msg = { .kind = GATE_ANSWER, .answer = *answer };
        say(s, &msg);
}

static void on_hello(struct serve *s, const struct gate_hello *hello)
{
        if (hello->version != GATE_VERSION) {
                log_error("event=version-skew words=\"lessord %s speaks version %u, lessor-warden-admin %s speaks "
                          "version %d; install both from one release and restart them\"",
                          hello->program, hello->version, s->program, GATE_VERSION);
                hang_up(s);
                return;
        }
        s->greeted = true;
        log_info("event=brain program=%s", hello->program);
        keeper_greet(&s->keeper);
}

static void on_message(struct serve *s, const struct gate_message *msg)
{
        struct gate_message state = { .kind = GATE_STATE };
        struct gate_answer answer;

        if (!s->greeted && msg->kind == GATE_HELLO) {
                on_hello(s, &msg->hello);
        } else if (s->greeted && msg->kind == GATE_ALLOW) {
                keeper_allow(&s->keeper, &msg->allow, &answer);
                say_answer(s, &answer);
        } else if (s->greeted && msg->kind == GATE_FORGET) {
                keeper_forget(&s->keeper, msg->lease_id);
        } else if (s->greeted && msg->kind == GATE_SET) {
                keeper_set(&s->keeper, msg->mode, s->heard_ms, &answer);
                say_answer(s, &answer);
        } else if (s->greeted && msg->kind == GATE_PING) {
                keeper_look(&s->keeper, s->heard_ms);
                keeper_state(&s->keeper, &state.state);
                state.state.nonce = msg->nonce;
                say(s, &state);
        } else {
                log_error("event=out-of-place message=%s", gate_kind_name(msg->kind));
                hang_up(s);
        }
}

/* One message. What is wrong with it is the connection's end. */
static void hear(struct serve *s)
{
        uint8_t buf[GATE_MESSAGE_MAX];
        struct gate_message msg;
        struct error err = { 0 };

        ssize_t n = recv(s->peer, buf, sizeof(buf), MSG_TRUNC | MSG_DONTWAIT); /* descriptors are not taken */
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        s->heard_ms = clock_now_ms();
        if (n <= 0) {
                hang_up(s);
                return;
        }
        int r = n > GATE_MESSAGE_MAX ? error_set(&err, EBADMSG, "a message of %zd bytes", n)
                                     : gate_decode(buf, (size_t) n, &msg, &err);
        if (r < 0) {
                log_error("event=bad-message words=\"%s\"", err.msg);
                hang_up(s);
                return;
        }
        on_message(s, &msg);
}

static void take_peer(struct serve *s)
{
        struct gate_message hello = { .kind = GATE_HELLO, .hello.version = GATE_VERSION };
        struct ucred cred = { 0 };
        socklen_t n = sizeof(cred);
        auto_close int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0)
                return;
        /* The kernel's own record of who connected; nothing is nobody (security S01). */
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0 || n != sizeof(cred) || cred.pid <= 0 ||
            cred.uid != s->brain_uid) {
                log_error("event=refused-peer uid=%u pid=%d", cred.uid, cred.pid);
                return;
        }
        if (s->peer >= 0) {
                log_error("event=refused-second-peer uid=%u pid=%d", cred.uid, cred.pid);
                return;
        }
        s->peer = take_fd(fd);
        s->heard_ms = clock_now_ms();
        (void) snprintf(hello.hello.program, sizeof(hello.hello.program), "%s", s->program);
        say(s, &hello);
}

/* For poll(): until everybody passes because nobody speaks, or a session's doubt is looked at again. */
static int patience_ms(const struct serve *s)
{
        uint64_t now_ms = clock_now_ms(), until_ms = s->always_next_ms;

        if (s->keeper.wanted != GATE_OFF && (until_ms == 0 || s->heard_ms + GATE_ALONE_MS < until_ms))
                until_ms = s->heard_ms + GATE_ALONE_MS;
        if (until_ms == 0)
                return -1;
        return until_ms > now_ms ? (int) (until_ms - now_ms) : 0;
}

static void look_at_time(struct serve *s)
{
        uint64_t now_ms = clock_now_ms();

        if (s->keeper.wanted != GATE_OFF && now_ms >= s->heard_ms + GATE_ALONE_MS) {
                keeper_open(&s->keeper, "lessord is not heard any more: everybody passes until it is back");
                hang_up(s);
        }
        if (s->always_next_ms == 0 || now_ms >= s->always_next_ms)
                s->always_next_ms = always_tick(&s->keeper.always, now_ms);
}

int serve_run(struct serve *s)
{
        enum { PEER, LISTENER, FOLDERS, N };

        s->heard_ms = clock_now_ms();
        for (;;) {
                struct pollfd fds[N] = { [PEER] = { .fd = s->peer, .events = POLLIN },
                                         [LISTENER] = { .fd = s->listener, .events = POLLIN },
                                         [FOLDERS] = { .fd = s->keeper.always.inotify, .events = POLLIN } };
                if (poll(fds, N, patience_ms(s)) < 0) {
                        if (errno == EINTR)
                                continue;
                        return -errno;
                }
                /* First: who has just been given a screen opens the device next. */
                if (fds[FOLDERS].revents)
                        always_hear(&s->keeper.always, clock_now_ms());
                if (fds[PEER].revents && s->peer >= 0)
                        hear(s); /* to its end, before another one is taken in its place */
                else if (fds[LISTENER].revents)
                        take_peer(s);
                look_at_time(s);
        }
}
