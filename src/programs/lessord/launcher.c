/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/launcher.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/confine.h"
#include "senses/process.h"

enum { PATIENCE_S = 5, ARGUMENTS_N_MAX = 32 };

/* One datagram and at most one descriptor, either way. */
struct parcel {
        struct iovec iov;
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
        struct msghdr msg;
};

static void parcel_init(struct parcel *p, void *data, size_t n)
{
        memset(p, 0, sizeof(*p));
        p->iov = (struct iovec){ .iov_base = data, .iov_len = n };
        p->msg = (struct msghdr){ .msg_iov = &p->iov, .msg_iovlen = 1 };
        p->msg.msg_control = p->control;
        p->msg.msg_controllen = sizeof(p->control);
}

static ssize_t send_parcel(int sock, const void *data, size_t n, int fd)
{
        union {
                const void *given;
                void *sent;
        } bytes = { .given = data };
        struct parcel p;

        parcel_init(&p, bytes.sent, n);
        struct cmsghdr *c = CMSG_FIRSTHDR(&p.msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
        if (fd < 0)
                p.msg.msg_controllen = 0;
        ssize_t sent = sendmsg(sock, &p.msg, MSG_NOSIGNAL);
        return sent < 0 ? -errno : sent;
}

/* Bytes, 0 at the end, or a negative errno. *ret_fd is -1 when none came. */
static ssize_t receive_parcel(int sock, void *data, size_t size, int *ret_fd)
{
        struct parcel p;
        ssize_t n;

        parcel_init(&p, data, size);
        *ret_fd = -1;
        do {
                n = recvmsg(sock, &p.msg, MSG_CMSG_CLOEXEC);
        } while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        const struct cmsghdr *c = CMSG_FIRSTHDR(&p.msg);
        if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
                memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
        return p.msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EMSGSIZE : n;
}

/* ---- the launcher itself ---- */

static pid_t launch(const char *program, char **environment, char *arguments, size_t n, int fd)
{
        char *argv[ARGUMENTS_N_MAX + 1] = { 0 };
        size_t n_argv = 0;

        if (n == 0 || arguments[n - 1] != '\0' || fd < 0)
                return -EINVAL;
        for (size_t at = 0; at < n; at += strlen(arguments + at) + 1) {
                if (n_argv == ARGUMENTS_N_MAX)
                        return -E2BIG;
                argv[n_argv++] = arguments + at;
        }
        pid_t parent = getpid();
        pid_t pid = fork();
        if (pid == 0)
                child_become(program, argv, environment, fd, parent);
        return pid < 0 ? -errno : pid;
}

__attribute__((noreturn)) static void be_launcher(const char *program, int sock)
{
        static char arguments[LAUNCHER_ARGUMENTS_MAX];
        char **environment = child_environment();
        struct error err = { 0 };

        (void) prctl(PR_SET_NAME, "lessor-launcher");
        (void) setsid();                 /* the terminal's Ctrl-C is lessord's */
        (void) signal(SIGCHLD, SIG_IGN); /* nobody waits for them: the kernel reaps */
        if (!environment || confine_no_core(&err) < 0)
                _exit(1);
        for (;;) {
                auto_close int fd = -1, pidfd = -1;
                ssize_t n = receive_parcel(sock, arguments, sizeof(arguments), &fd);
                if (n <= 0)
                        _exit(n < 0);
                int32_t pid = launch(program, environment, arguments, (size_t) n, fd);
                if (pid > 0 && process_open_pidfd((uint32_t) pid, &pidfd) < 0)
                        pid = -ESRCH; /* it was over before it began */
                if (send_parcel(sock, &pid, sizeof(pid), pidfd) < 0)
                        _exit(1);
        }
}

/* ---- lessord's end ---- */

int launcher_start(const char *program, int *ret_launcher, struct error *err)
{
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return error_errno(err, errno, "a socket for the launcher of lessor-warden");
        auto_close int ours = pair[0];
        auto_close int theirs = pair[1];
        const struct timeval patience = { .tv_sec = PATIENCE_S };
        if (setsockopt(ours, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
                return error_errno(err, errno, "a socket for the launcher of lessor-warden");
        pid_t pid = fork();
        if (pid < 0)
                return error_errno(err, errno, "starting the launcher of lessor-warden");
        if (pid == 0) {
                (void) close(take_fd(ours));
                be_launcher(program, theirs);
        }
        *ret_launcher = take_fd(ours);
        return 0;
}

int launcher_spawn(int launcher, char *const argv[], struct eyes_child *ret, struct error *err)
{
        char arguments[LAUNCHER_ARGUMENTS_MAX];
        size_t n = 0;
        int pair[2];
        int32_t pid = 0;

        for (size_t i = 0; argv[i]; i++) {
                size_t len = strlen(argv[i]) + 1;
                if (len > sizeof(arguments) - n)
                        return error_set(err, E2BIG, "the options of %s are too long", argv[0]);
                memcpy(arguments + n, argv[i], len);
                n += len;
        }
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return error_errno(err, errno, "a socket for %s", argv[0]);
        auto_close int ours = pair[0];
        auto_close int theirs = pair[1];
        auto_close int pidfd = -1;
        if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
                return error_errno(err, errno, "a socket for %s", argv[0]);
        ssize_t sent = send_parcel(launcher, arguments, n, theirs);
        ssize_t got = sent < 0 ? sent : receive_parcel(launcher, &pid, sizeof(pid), &pidfd);
        if (got == 0)
                got = -EPIPE;
        if (got < 0)
                return error_errno(err, (int) -got, "the launcher of %s", argv[0]);
        if (got != sizeof(pid) || pid <= 0 || pidfd < 0)
                return error_errno(err, pid < 0 && pid > -4096 ? -pid : EIO, "starting %s", argv[0]);
        *ret = (struct eyes_child){ .pid = pid, .pidfd = take_fd(pidfd), .sock = take_fd(ours) };
        return 0;
}
