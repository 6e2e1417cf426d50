/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/hook.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/number.h"

enum { ANSWER_MAX_BYTES = 64 * 1024, SHOWN_MAX = 128, PORT_TEXT_MAX = 8 };

/* ---- the address ---- */

static int refuse(const char *text, struct error *err)
{
        char shown[SHOWN_MAX];
        return error_set(
                err, EINVAL,
                "--yield-hook: \"%s\" is no address on this machine that can be asked: http://127.0.0.1:PORT/PATH, "
                "http://[::1]:PORT/PATH or unix:/SOCKET:/PATH",
                text_escape(text, strlen(text), shown, sizeof(shown)));
}

/* What stands behind the host: all of it goes into the first line of a request. */
static bool take_path(const char *at, struct hook_target *t)
{
        size_t n = strlen(at);
        if (n == 0)
                at = "/", n = 1;
        if (at[0] != '/' || n >= sizeof(t->path))
                return false;
        for (size_t i = 0; i < n; i++)
                if (at[i] <= ' ' || at[i] >= 0x7f || at[i] == '#')
                        return false;
        memcpy(t->path, at, n + 1);
        return true;
}

static bool take_port(const char *at, struct hook_target *t, const char **ret_rest)
{
        char digits[PORT_TEXT_MAX];
        uint64_t port = 80;
        if (at[0] == ':') {
                size_t n = strcspn(at + 1, "/");
                if (n == 0 || n >= sizeof(digits))
                        return false;
                memcpy(digits, at + 1, n);
                digits[n] = '\0';
                if (parse_u64("port", digits, 1, UINT16_MAX, &port, NULL) < 0)
                        return false;
                at += 1 + n;
        }
        t->port = (uint16_t) port;
        *ret_rest = at;
        return true;
}

static bool take_host(const char *at, struct hook_target *t, const char **ret_rest)
{
        static const struct {
                const char *name;
                bool is_v6;
        } hosts[] = { { "127.0.0.1", false }, { "localhost", false }, { "[::1]", true } };

        for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
                size_t n = strlen(hosts[i].name);
                if (strncmp(at, hosts[i].name, n) == 0 && (at[n] == ':' || at[n] == '/' || at[n] == '\0')) {
                        t->is_v6 = hosts[i].is_v6;
                        *ret_rest = at + n;
                        return true;
                }
        }
        return false;
}

static bool take_socket(const char *at, struct hook_target *t, const char **ret_rest)
{
        size_t n = strcspn(at, ":");
        if (at[0] != '/' || n > HTTP_SOCKET_PATH_MAX)
                return false;
        memcpy(t->socket_path, at, n);
        t->socket_path[n] = '\0';
        t->is_unix = true;
        *ret_rest = at[n] == ':' ? at + n + 1 : at + n;
        return true;
}

int hook_parse(const char *text, struct hook_target *ret, struct error *err)
{
        struct hook_target t = { 0 };
        const char *at = text;
        bool good;

        if (strncmp(text, "unix:", 5) == 0)
                good = take_socket(text + 5, &t, &at);
        else
                good = strncmp(text, "http://", 7) == 0 && take_host(text + 7, &t, &at) && take_port(at, &t, &at);
        if (!good || !take_path(at, &t))
                return refuse(text, err);
        *ret = t;
        return 0;
}

/* ---- the question ---- */

static int connect_loopback(const struct hook_target *t, int *ret_fd, struct error *err)
{
        union {
                struct sockaddr any;
                struct sockaddr_in v4;
                struct sockaddr_in6 v6;
        } to = { .any = { .sa_family = t->is_v6 ? AF_INET6 : AF_INET } };
        socklen_t size = t->is_v6 ? sizeof(to.v6) : sizeof(to.v4);

        if (t->is_v6) {
                to.v6.sin6_port = htons(t->port);
                to.v6.sin6_addr = in6addr_loopback;
        } else {
                to.v4.sin_port = htons(t->port);
                to.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        }
        auto_close int fd =
                http_clear_of_standard(socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (fd < 0)
                return error_errno(err, errno, "making a socket");
        if (connect(fd, &to.any, size) < 0 && errno != EINPROGRESS)
                return error_errno(err, errno, "connecting to port %u", (unsigned) t->port);
        *ret_fd = take_fd(fd);
        return 0;
}

int hook_begin(struct hook *hook, const struct hook_target *t, const char *body, uint64_t due_ms, struct error *err)
{
        struct http_request request = {
                .method = "POST", .path = t->path, .body = body, .max_bytes = ANSWER_MAX_BYTES
        };
        int fd = -1, r;

        hook_end(hook);
        if (t->is_unix) {
                r = http_call_begin(&hook->call, t->socket_path, &request, 0, err);
        } else {
                r = connect_loopback(t, &fd, err);
                if (r < 0)
                        return r;
                r = http_call_begin_on(&hook->call, fd, &request, err);
        }
        hook->busy = true;
        hook->due_ms = due_ms;
        if (r < 0)
                hook_end(hook);
        return r;
}

void hook_end(struct hook *hook)
{
        if (hook->busy)
                http_call_end(&hook->call);
        hook->busy = false;
}

nfds_t hook_wants(const struct hook *hook, struct pollfd *ret, int *timeout_ms)
{
        if (!hook->busy)
                return 0;
        uint64_t left_ms = u64_min(u64_sub0(hook->due_ms, clock_now_ms()), INT32_MAX);
        if (*timeout_ms < 0 || left_ms < (uint64_t) *timeout_ms)
                *timeout_ms = (int) left_ms;
        *ret = (struct pollfd){ .fd = hook->call.fd, .events = hook->call.stage == HTTP_SENDING ? POLLOUT : POLLIN };
        return 1;
}

enum hook_news hook_go_on(struct hook *hook, struct error *err)
{
        if (!hook->busy)
                return HOOK_NOTHING;
        int r = http_call_go_on(&hook->call, false, 0, -1, err);
        if (r == -ETIMEDOUT && clock_now_ms() < hook->due_ms)
                return HOOK_NOTHING;
        if (r == -ETIMEDOUT)
                (void) error_set(err, ETIMEDOUT, "no answer in time");
        if (r == 0 && (hook->call.status < 200 || hook->call.status > 299))
                r = error_set(err, EPROTO, "the answer was %d", hook->call.status);
        hook_end(hook);
        return r < 0 ? HOOK_FAILED : HOOK_DONE;
}
