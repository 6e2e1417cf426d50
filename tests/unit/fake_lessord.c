/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_lessord.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cm.h"

enum { PATIENCE_MS = 30 * 1000, BACKLOG = 8 };

void fake_start(struct fake *f)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        *f = (struct fake){ .dir = "/tmp/lessor-u-XXXXXX", .fd = -1 };
        assert_non_null(mkdtemp(f->dir));
        (void) snprintf(f->path, sizeof(f->path), "%s/s", f->dir);
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s", f->path);
        f->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(f->listen_fd, (const struct sockaddr *) &address, sizeof(address)), 0);
        assert_int_equal(listen(f->listen_fd, BACKLOG), 0);
        assert_int_equal(lessor_open(&f->l, f->path, NULL), 0);
}

void fake_stop(struct fake *f)
{
        fake_hang_up(f);
        lessor_close(f->l);
        (void) close(f->listen_fd);
        (void) unlink(f->path);
        (void) rmdir(f->dir);
}

void fake_hang_up(struct fake *f)
{
        if (f->fd >= 0)
                (void) close(f->fd);
        f->fd = -1;
}

enum lessor_news fake_news(struct fake *f)
{
        for (;;) {
                int news = lessor_process(f->l, &f->lease);
                assert_true(news >= 0);
                if (news != LESSOR_NOTHING)
                        return (enum lessor_news) news;
                struct pollfd fd = { .fd = lessor_fd(f->l), .events = (short) lessor_events(f->l) };
                assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
        }
}

/* Head and body, as Content-Length tells. */
static int is_whole(const char *text, size_t n)
{
        const char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "\r\nContent-Length:");
        if (!end)
                return 0;
        size_t n_body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
        return n >= (size_t) (end + 4 - text) + n_body;
}

static void read_request(int fd, char *buf)
{
        size_t n = 0;
        buf[0] = '\0';
        while (!is_whole(buf, n)) {
                ssize_t got = recv(fd, buf + n, FAKE_REQUEST_MAX - 1 - n, 0);
                if (got <= 0)
                        break;
                n += (size_t) got;
                buf[n] = '\0';
        }
}

void fake_next_call(struct fake *f)
{
        fake_hang_up(f);
        for (;;) {
                struct pollfd fds[] = { { .fd = f->listen_fd, .events = POLLIN },
                                        { .fd = lessor_fd(f->l), .events = (short) lessor_events(f->l) } };
                assert_int_equal(lessor_process(f->l, &f->lease), LESSOR_NOTHING);
                assert_true(poll(fds, 2, PATIENCE_MS) > 0);
                if (fds[0].revents != 0)
                        break;
        }
        f->fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        assert_true(f->fd >= 0);
        assert_int_equal(lessor_process(f->l, &f->lease), LESSOR_NOTHING);
        read_request(f->fd, f->request);
}

void fake_send(struct fake *f, const void *bytes, size_t n)
{
        assert_int_equal(send(f->fd, bytes, n, MSG_NOSIGNAL), (ssize_t) n);
}

void fake_answer(struct fake *f, int status, const char *headers, const char *body)
{
        char text[16384];
        int n = snprintf(text, sizeof(text), "HTTP/1.1 %d Whatever\r\n%sContent-Length: %zu\r\n\r\n%s", status, headers,
                         strlen(body), body);
        assert_true(n > 0 && (size_t) n < sizeof(text));
        fake_send(f, text, (size_t) n);
        fake_hang_up(f);
}

const char *fake_header(const struct fake *f, const char *name, char *buf, size_t buf_size)
{
        char wanted[64];
        (void) snprintf(wanted, sizeof(wanted), "\r\n%s: ", name);
        const char *at = strcasestr(f->request, wanted);
        buf[0] = '\0';
        if (at) {
                at += strlen(wanted);
                (void) snprintf(buf, buf_size, "%.*s", (int) strcspn(at, "\r"), at);
        }
        return buf;
}

const char *fake_body(const struct fake *f)
{
        const char *end = strstr(f->request, "\r\n\r\n");
        return end ? end + 4 : "";
}

int fake_script(struct fake *f, const char *const *answers, size_t n_answers)
{
        static char request[FAKE_REQUEST_MAX];
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid > 0)
                return pid;
        for (size_t i = 0; i < n_answers; i++) {
                int fd = accept(f->listen_fd, NULL, NULL);
                if (fd < 0)
                        _exit(1);
                read_request(fd, request);
                (void) send(fd, answers[i], strlen(answers[i]), MSG_NOSIGNAL);
                (void) close(fd);
        }
        _exit(0);
}

void fake_script_end(int pid)
{
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}
