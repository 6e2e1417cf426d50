/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "programs/lessord/eyes_child.h"
#include "senses/process.h"

enum { CHILD_FD = 3, EXEC_FAILED = 127 };

/* Between fork and exec: system calls only. */
__attribute__((noreturn)) static void become_eyes(const char *program, int sock, pid_t parent)
{
        static char fd_option[] = "--fd", fd_number[] = "3", name[] = "lessor-eyes";
        char *const argv[] = { name, fd_option, fd_number, NULL };
        sigset_t none;

        /* Our handlers write into our own signal pipe: back to the defaults before anything is let through. */
        for (int sig = 1; sig < NSIG; sig++)
                (void) signal(sig, SIG_DFL);
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(EXEC_FAILED); /* we died before that was set */

        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null >= 0) {
                (void) dup2(null, STDIN_FILENO);
                (void) dup2(null, STDOUT_FILENO);
        }
        if (sock == CHILD_FD)
                (void) fcntl(sock, F_SETFD, 0);
        else if (dup2(sock, CHILD_FD) < 0)
                _exit(EXEC_FAILED);
        (void) syscall(SYS_close_range, CHILD_FD + 1, ~0U, 0); /* everything is CLOEXEC anyway */
        execv(program, argv);
        _exit(EXEC_FAILED);
}

int eyes_child_start(const char *program, struct eyes_child *ret, struct error *err)
{
        int pair[2];
        sigset_t all, before;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return error_errno(err, errno, "a socket for lessor-eyes");
        auto_close int ours = pair[0];
        auto_close int theirs = pair[1];
        if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
                return error_errno(err, errno, "a socket for lessor-eyes");

        pid_t parent = getpid();
        (void) sigfillset(&all);
        (void) sigprocmask(SIG_BLOCK, &all, &before);
        pid_t pid = fork();
        if (pid == 0)
                become_eyes(program, theirs, parent);
        int code = errno;
        (void) sigprocmask(SIG_SETMASK, &before, NULL);
        if (pid < 0)
                return error_errno(err, code, "starting lessor-eyes");

        int pidfd = -1;
        int r = process_open_pidfd((uint32_t) pid, &pidfd); /* our child, not reaped: nobody else can have its number */
        if (r < 0) {
                /* Without a pidfd it could not be ended in time later; closing the socket ends it by itself. */
                (void) close(take_fd(ours));
                (void) waitpid(pid, NULL, 0);
                return error_errno(err, -r, "holding lessor-eyes by a pidfd");
        }
        *ret = (struct eyes_child){ .pid = pid, .pidfd = pidfd, .sock = take_fd(ours) };
        return 0;
}

void eyes_child_kill(const struct eyes_child *child)
{
        (void) syscall(SYS_pidfd_send_signal, child->pidfd, SIGKILL, NULL, 0);
}

bool eyes_child_reap(struct eyes_child *child, int *ret_code, int *ret_status)
{
        siginfo_t info = { 0 };

        if (waitid(P_PID, (id_t) child->pid, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
                return false;
        *ret_code = info.si_code;
        *ret_status = info.si_status;
        child->pid = 0;
        return true;
}
