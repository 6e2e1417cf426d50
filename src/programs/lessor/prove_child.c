/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/prove_child.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "hands/target.h"
#include "programs/lessor/lessord.h"

enum { EXEC_FAILED = 127 };

_Noreturn static void become(const char *program, int sock, const char *device)
{
        static char name[] = "lessor-prove";
        char *argv[] = { name, NULL };
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        (void) setpgid(0, 0);
        if (device[0] != '\0')
                (void) setenv("CUDA_VISIBLE_DEVICES", device, 1);
        if (null >= 0) /* libraries that feel like talking */
                (void) dup2(null, STDERR_FILENO);
        if (dup2(sock, STDIN_FILENO) >= 0 && dup2(sock, STDOUT_FILENO) >= 0)
                (void) execv(program, argv);
        _exit(EXEC_FAILED);
}

int prove_child_start(struct prove_child *ret, const char *device, struct error *err)
{
        char program[PATH_MAX];
        struct target t;
        int pair[2];

        *ret = (struct prove_child){ .pidfd = -1, .sock = -1 };
        if (!lessord_find_helper("lessor-prove", program, sizeof(program)))
                return error_set(err, ENOENT, "there is no lessor-prove beside lessor");
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return error_errno(err, errno, "a socket for lessor-prove");
        auto_close int ours = pair[0];
        auto_close int theirs = pair[1];
        (void) fflush(NULL);
        ret->pid = fork();
        if (ret->pid < 0)
                return error_errno(err, errno, "starting lessor-prove");
        if (ret->pid == 0)
                become(program, theirs, device);
        target_open((uint32_t) ret->pid, &t,
                    &ret->pidfd); /* our own child, not waited for: nobody else has its number */
        if (ret->pidfd < 0 || !t.seen)
                return error_set(err, t.error ? t.error : ESRCH, "lessor-prove cannot be held by a pidfd");
        ret->start_ticks = t.start_ticks;
        ret->sock = take_fd(ours);
        return 0;
}

int prove_child_hear(struct prove_child *child, uint64_t wait_ms, char line[PROVE_LINE_MAX])
{
        uint64_t until_ms = clock_now_ms() + wait_ms;
        struct pollfd p = { .fd = child->sock, .events = POLLIN };
        size_t n = 0;

        while (n + 1 < PROVE_LINE_MAX) {
                int r = poll(&p, 1, (int) u64_sub0(until_ms, clock_now_ms()));
                if (r == 0)
                        return -ETIMEDOUT;
                ssize_t part = r > 0 ? recv(child->sock, &line[n], 1, 0) : -1;
                if (part == 0 || (part < 0 && errno != EINTR))
                        return -EPIPE;
                if (part == 1 && line[n] == '\n') {
                        line[n] = '\0';
                        return 0;
                }
                n += part == 1;
        }
        return -EPIPE;
}

int prove_child_ask(struct prove_child *child)
{
        static const char go[] = "go\n";

        return send(child->sock, go, sizeof(go) - 1, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static bool wait_for_end(struct prove_child *child, uint64_t wait_ms)
{
        struct pollfd p = { .fd = child->pidfd, .events = POLLIN };
        uint64_t until_ms = clock_now_ms() + wait_ms;
        int r;

        do {
                r = poll(&p, 1, (int) u64_sub0(until_ms, clock_now_ms()));
        } while (r < 0 && errno == EINTR);
        if (r > 0)
                (void) waitpid(child->pid, NULL, 0);
        closep(&child->pidfd);
        closep(&child->sock);
        child->pidfd = child->sock = -1;
        return r > 0;
}

bool prove_child_leave(struct prove_child *child, uint64_t wait_ms)
{
        if (child->pidfd < 0)
                return true;
        (void) shutdown(child->sock, SHUT_WR);
        return wait_for_end(child, wait_ms);
}

bool prove_child_kill(struct prove_child *child, uint64_t wait_ms)
{
        if (child->pidfd < 0)
                return true;
        (void) syscall(SYS_pidfd_send_signal, child->pidfd, SIGKILL, NULL, 0);
        return wait_for_end(child, wait_ms);
}
