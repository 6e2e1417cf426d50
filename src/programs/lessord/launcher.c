/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/launcher.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/confine.h"
#include "senses/process.h"

enum { PATIENCE_S = 5 };

static const char launch_one[] = "launch"; /* all that can be asked of a launcher */

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
        p->msg.msg_controllen = CMSG_LEN(sizeof(int)); /* with its padding a second one would fit, and be lost */
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

static pid_t launch(const char *program, const char *dir, char **environment, int fd)
{
        static char name[] = "lessor-warden", fd_option[] = "--fd", fd_number[] = CHILD_FD_TEXT, dir_option[] = "--dir";
        char folder[PATH_MAX];
        char *const argv[] = { name, fd_option, fd_number, dir_option, folder, NULL };

        if (fd < 0 || (size_t) snprintf(folder, sizeof(folder), "%s", dir) >= sizeof(folder))
                return -EINVAL;
        pid_t parent = getpid();
        pid_t pid = fork();
        if (pid == 0)
                child_become(program, argv, environment, fd, parent);
        return pid < 0 ? -errno : pid;
}

/*
 * What lessord gives up is not kept here either, but for what the hands of root's own session keep: to see which program a
 * process of root's runs. No filter: the hands would inherit it. Nothing that was open is ours, but where to complain.
 */
static int give_up_rights(int sock)
{
        static const int sight[] = { CAP_SYS_PTRACE };
        struct error err = { 0 };

        if (sock > STDERR_FILENO + 1)
                (void) syscall(SYS_close_range, STDERR_FILENO + 1, sock - 1, 0);
        (void) syscall(SYS_close_range, sock + 1, ~0U, 0);
        int r = confine_no_core(&err);
        return r < 0 ? r : confine_capabilities(sight, geteuid() == 0 ? 1 : 0, &err);
}

/* Those that ended are reaped here and only here: until then their numbers are theirs, and a pidfd of one is of no other. */
static void reap(void)
{
        while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
}

__attribute__((noreturn)) static void be_launcher(const char *program, const char *dir, int sock)
{
        char **environment = child_environment();
        char asked[sizeof(launch_one)];

        (void) prctl(PR_SET_NAME, "lessor-launcher");
        (void) setsid(); /* the terminal's Ctrl-C is lessord's */
        (void) signal(SIGCHLD, SIG_DFL);
        if (!environment || give_up_rights(sock) < 0)
                _exit(1);
        for (;;) {
                auto_close int fd = -1;
                auto_close int pidfd = -1;
                ssize_t n = receive_parcel(sock, asked, sizeof(asked), &fd);
                if (n != sizeof(asked) || memcmp(asked, launch_one, sizeof(asked)) != 0)
                        _exit(n != 0);
                reap();
                int32_t pid = launch(program, dir, environment, fd);
                if (pid > 0 && process_open_pidfd((uint32_t) pid, &pidfd) < 0)
                        pid = -ESRCH; /* it was over before it began */
                if (send_parcel(sock, &pid, sizeof(pid), pidfd) < 0)
                        _exit(1);
        }
}

/* ---- lessord's end ---- */

int launcher_start(const char *program, const char *dir, int *ret_launcher, struct error *err)
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
                be_launcher(program, dir, theirs);
        }
        *ret_launcher = take_fd(ours);
        return 0;
}

int launcher_spawn(int launcher, struct eyes_child *ret, struct error *err)
{
        int pair[2];
        int32_t pid = 0;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return error_errno(err, errno, "a socket for lessor-warden");
        auto_close int ours = pair[0];
        auto_close int theirs = pair[1];
        auto_close int pidfd = -1;
        if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
                return error_errno(err, errno, "a socket for lessor-warden");
        ssize_t sent = send_parcel(launcher, launch_one, sizeof(launch_one), theirs);
        ssize_t got = sent < 0 ? sent : receive_parcel(launcher, &pid, sizeof(pid), &pidfd);
        if (got == 0)
                got = -EPIPE;
        if (got < 0)
                return error_errno(err, (int) -got, "the launcher of lessor-warden");
        if (got != sizeof(pid) || pid <= 0 || pidfd < 0)
                return error_errno(err, pid < 0 && pid > -4096 ? -pid : EIO, "starting lessor-warden");
        *ret = (struct eyes_child){ .pid = pid, .pidfd = take_fd(pidfd), .sock = take_fd(ours) };
        return 0;
}
