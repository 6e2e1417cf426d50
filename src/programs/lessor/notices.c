/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/notices.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"

enum { REST_FIRST_MS = 100, REST_LAST_MS = 5000 };

void notices_init(struct notices *n, const char *verb)
{
        *n = (struct notices){ .verb = verb };
}

/*
 * Without waiting, and without O_NONBLOCK on the description that the command writes to as well: a pipe and a terminal are
 * opened once more for that. -EAGAIN: not now.
 */
static ssize_t write_now(const char *text, size_t len)
{
        struct stat st;
        if (fstat(STDERR_FILENO, &st) < 0)
                return -errno;
        if (S_ISSOCK(st.st_mode)) {
                ssize_t sent = send(STDERR_FILENO, text, len, MSG_DONTWAIT | MSG_NOSIGNAL);
                return sent < 0 ? -errno : sent;
        }
        auto_close int own = -1;
        if (!S_ISREG(st.st_mode)) {
                struct pollfd fd = { .fd = STDERR_FILENO, .events = POLLOUT };
                own = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
                if (own < 0 && poll(&fd, 1, 0) <= 0) /* somebody else's: as good as it gets */
                        return -EAGAIN;
        }
        ssize_t n = write(own >= 0 ? own : STDERR_FILENO, text, len);
        return n < 0 ? -errno : n;
}

static void flush(struct notices *n)
{
        while (n->len > 0) {
                ssize_t done = write_now(n->text, n->len);
                if (done == -EINTR)
                        continue;
                if (done == -EAGAIN || done == 0) {
                        n->rest_ms = u64_min(u64_max(2 * n->rest_ms, REST_FIRST_MS), REST_LAST_MS);
                        n->due_ms = clock_now_ms() + n->rest_ms;
                        return;
                }
                if (done < 0) { /* nobody is there to read it */
                        n->len = 0;
                        return;
                }
                n->len -= (size_t) done;
                memmove(n->text, n->text + done, n->len);
        }
        n->rest_ms = 0;
}

void notices_say(struct notices *n, const char *fmt, ...)
{
        char text[NOTICES_MAX / 2];
        va_list args;
        va_start(args, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, args);
        va_end(args);
        size_t room = sizeof(n->text) - n->len;
        int len = snprintf(n->text + n->len, room, "lessor %s: %s\n", n->verb, text);
        if (len < 0 || (size_t) len >= room)
                return;
        n->len += (size_t) len;
        flush(n);
}

void notices_go_on(struct notices *n)
{
        if (n->len > 0 && clock_now_ms() >= n->due_ms)
                flush(n);
}
