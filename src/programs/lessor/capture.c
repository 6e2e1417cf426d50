/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/capture.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/number.h"

extern char **environ;

static int open_pipe(int fds[2], struct error *err)
{
        return pipe2(fds, O_CLOEXEC) < 0 ? error_errno(err, errno, "making a pipe") : 0;
}

static int spawn(const char *const *argv, int out_fd, int err_fd, pid_t *ret_pid, struct error *err)
{
        posix_spawn_file_actions_t files;
        posix_spawnattr_t attributes;
        sigset_t none, standard;
        char **words = (char **) (uintptr_t) argv; /* execve(2) takes char *const, and writes to none of them */

        (void) sigemptyset(&none);
        (void) sigemptyset(&standard);
        (void) sigaddset(&standard, SIGPIPE);
        (void) posix_spawn_file_actions_init(&files);
        (void) posix_spawnattr_init(&attributes);
        (void) posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        (void) posix_spawn_file_actions_adddup2(&files, out_fd, STDOUT_FILENO);
        (void) posix_spawn_file_actions_adddup2(&files, err_fd, STDERR_FILENO);
        (void) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        (void) posix_spawnattr_setsigmask(&attributes, &none);
        (void) posix_spawnattr_setsigdefault(&attributes, &standard);
        int r = posix_spawnp(ret_pid, argv[0], &files, &attributes, words, environ);
        (void) posix_spawn_file_actions_destroy(&files);
        (void) posix_spawnattr_destroy(&attributes);
        return r == 0 ? 0 : error_errno(err, r, "starting %s", argv[0]);
}

/* What there is of @fd, into @into. False: that was all. */
static bool take(int fd, struct strbuf *into)
{
        char part[4096];
        ssize_t n = read(fd, part, sizeof(part));
        if (n > 0)
                strbuf_append(into, part, (size_t) n);
        return n > 0 || (n < 0 && errno == EINTR);
}

/* Until it has closed both. */
static int listen_to(int out_fd, int err_fd, uint64_t until_ms, struct capture *c)
{
        struct pollfd fds[] = { { .fd = out_fd, .events = POLLIN }, { .fd = err_fd, .events = POLLIN } };
        struct strbuf *into[] = { &c->out, &c->err };

        while (fds[0].fd >= 0 || fds[1].fd >= 0) {
                uint64_t now_ms = clock_now_ms();
                if (now_ms >= until_ms)
                        return -ETIMEDOUT;
                if (poll(fds, 2, (int) u64_min(until_ms - now_ms, INT32_MAX)) < 0 && errno != EINTR)
                        return -errno;
                for (size_t i = 0; i < 2; i++)
                        if (fds[i].fd >= 0 && fds[i].revents != 0 && !take(fds[i].fd, into[i]))
                                fds[i].fd = -1;
                if (c->out.failed)
                        return -EFBIG;
                if (c->err.failed)
                        fds[1].fd = -1; /* the beginning of a complaint is enough */
        }
        return 0;
}

/* It has said all it had to say, and may still hesitate to end. */
static bool ends_until(int pidfd, uint64_t until_ms)
{
        struct pollfd fd = { .fd = pidfd, .events = POLLIN };
        for (;;) {
                uint64_t now_ms = clock_now_ms();
                int r = poll(&fd, 1, now_ms < until_ms ? (int) u64_min(until_ms - now_ms, INT32_MAX) : 0);
                if (r >= 0 || errno != EINTR)
                        return r > 0;
        }
}

int capture_run(const char *const *argv, uint64_t timeout_ms, struct capture *ret, struct error *err)
{
        uint64_t until_ms = clock_now_ms() + timeout_ms;
        int out[2] = { -1, -1 }, complaints[2] = { -1, -1 }, status = 0;
        pid_t pid = -1;

        *ret = (struct capture){ .exit_status = -1 };
        strbuf_init(&ret->out, CAPTURE_OUT_MAX);
        strbuf_init(&ret->err, CAPTURE_ERR_MAX);
        int r = open_pipe(out, err);
        if (r == 0)
                r = open_pipe(complaints, err);
        if (r == 0)
                r = spawn(argv, out[1], complaints[1], &pid, err);
        auto_close int out_fd = out[0], err_fd = complaints[0];
        closep(&out[1]);
        closep(&complaints[1]);
        if (r < 0)
                return r;

        auto_close int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
        r = listen_to(out_fd, err_fd, until_ms, ret);
        if (r == 0 && pidfd >= 0 && !ends_until(pidfd, until_ms))
                r = -ETIMEDOUT;
        if (r < 0 && pidfd >= 0)
                (void) syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
        else if (r < 0)
                return error_set(err, -r, "%s does not end, and cannot be ended without pidfds", argv[0]);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (r == -ETIMEDOUT)
                return error_set(err, ETIMEDOUT, "%s did not answer within %" PRIu64 " s", argv[0], timeout_ms / 1000);
        if (r < 0)
                return error_errno(err, -r, "asking %s", argv[0]);
        ret->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        return 0;
}

void capture_fini(struct capture *c)
{
        strbuf_fini(&c->out);
        strbuf_fini(&c->err);
}

const char *capture_line(const struct strbuf *said, char *buf, size_t buf_size)
{
        const char *text = strbuf_text(said);
        return text_escape(text, strcspn(text, "\n"), buf, buf_size);
}
