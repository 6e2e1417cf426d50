/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/apart.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"

_Noreturn static void be_the_child(void (*work)(void *), void *answer, size_t n, int fd)
{
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null >= 0) { /* libraries that feel like talking */
                (void) dup2(null, STDOUT_FILENO);
                (void) dup2(null, STDERR_FILENO);
        }
        work(answer);
        _exit(write(fd, answer, n) == (ssize_t) n ? 0 : 1);
}

/* Bytes read until the end of the pipe, or of the time. */
static size_t collect(int fd, char *buf, size_t size, uint64_t until_ms, bool *ret_ended)
{
        struct pollfd wait = { .fd = fd, .events = POLLIN };
        size_t n = 0;

        *ret_ended = false;
        while (n < size && !*ret_ended) {
                int r = poll(&wait, 1, (int) u64_sub0(until_ms, clock_now_ms()));
                if (r == 0)
                        break;
                ssize_t part = r > 0 ? read(fd, buf + n, size - n) : -1;
                if (part > 0)
                        n += (size_t) part;
                *ret_ended = part == 0 || (part < 0 && errno != EINTR);
        }
        return n;
}

int apart(void (*work)(void *answer), void *answer, size_t n, uint64_t deadline_ms)
{
        auto_free char *buf = malloc(n);
        bool ended;
        int fds[2];

        if (!buf)
                return -ENOMEM;
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        (void) fflush(NULL);
        pid_t pid = fork();
        int fork_errno = errno;
        if (pid == 0)
                be_the_child(work, answer, n, fds[1]);
        (void) close(fds[1]);
        auto_close int fd = fds[0];
        if (pid < 0)
                return -fork_errno;

        auto_close int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
        bool whole = collect(fd, buf, n, clock_now_ms() + deadline_ms, &ended) == n;
        bool hangs = !whole && !ended;
        if (hangs && pidfd >= 0)
                (void) syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
        /* One that is stuck in the kernel cannot be waited for: it goes when it can. */
        (void) waitpid(pid, NULL, hangs ? WNOHANG : 0);
        if (whole)
                memcpy(answer, buf, n);
        return whole ? 0 : ended ? -EIO : -ETIMEDOUT;
}
