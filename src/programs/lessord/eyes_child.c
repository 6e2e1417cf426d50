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

/*
 * What of our environment the eyes and hands get; the rest (tokens, keys, whatever a shell carries) is not theirs to hold: a library of
 * somebody else runs there, and whoever gets at the process gets at its environment. A name that ends in _ is a beginning.
 * $LESSOR_EYES_ENV names others, with colons between; none of our own (LESSOR_TOKEN) is passed on even so.
 */
static const char passed_on[] =
        "PATH:LANG:LC_:TZ:TMPDIR"
        ":JOURNAL_STREAM"                           /* that stderr is the journal: base/log.c */
        ":LD_LIBRARY_PATH:LD_PRELOAD:CUDA_:NVIDIA_" /* the driver's library, and what it reads */
        ":ASAN_OPTIONS:LSAN_OPTIONS:UBSAN_OPTIONS:TSAN_OPTIONS";

static bool is_on_list(const char *list, const char *variable)
{
        size_t n_name = strcspn(variable, "=");

        while (*list) {
                size_t n = strcspn(list, ":");
                if (n > 0 && n_name >= n && strncmp(variable, list, n) == 0 && (n_name == n || list[n - 1] == '_'))
                        return true;
                list += n + (list[n] == ':');
        }
        return false;
}

static bool is_passed_on(const char *variable)
{
        const char *others = getenv("LESSOR_EYES_ENV");

        return strncmp(variable, "LESSOR_", strlen("LESSOR_")) != 0 &&
               (is_on_list(passed_on, variable) || is_on_list(others ? others : "", variable));
}

/* NULL when there is no memory. The texts stay environ's. */
char **child_environment(void)
{
        size_t n = 0, n_kept = 0;

        while (environ && environ[n])
                n++;
        char **kept = calloc(n + 1, sizeof(kept[0]));
        for (size_t i = 0; kept && i < n; i++)
                if (is_passed_on(environ[i]))
                        kept[n_kept++] = environ[i];
        return kept;
}

/* Between fork and exec: system calls only. */
void child_become(const char *program, char *const argv[], char **environment, int sock, pid_t parent)
{
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
        execve(program, argv, environment);
        _exit(EXEC_FAILED);
}

int child_start(const char *program, char *const argv[], struct eyes_child *ret, struct error *err)
{
        int pair[2];
        sigset_t all, before;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return error_errno(err, errno, "a socket for %s", argv[0]);
        auto_close int ours = pair[0];
        auto_close int theirs = pair[1];
        if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
                return error_errno(err, errno, "a socket for %s", argv[0]);
        auto_free char **environment = child_environment();
        if (!environment)
                return error_set(err, ENOMEM, "no memory for the environment of %s", argv[0]);

        pid_t parent = getpid();
        (void) sigfillset(&all);
        (void) sigprocmask(SIG_BLOCK, &all, &before);
        pid_t pid = fork();
        if (pid == 0)
                child_become(program, argv, environment, theirs, parent);
        int code = errno;
        (void) sigprocmask(SIG_SETMASK, &before, NULL);
        if (pid < 0)
                return error_errno(err, code, "starting %s", argv[0]);

        int pidfd = -1;
        int r = process_open_pidfd((uint32_t) pid, &pidfd); /* our child, not reaped: nobody else can have its number */
        if (r < 0) {
                /* Without a pidfd it could not be ended in time later; closing the socket ends it by itself. */
                (void) close(take_fd(ours));
                (void) waitpid(pid, NULL, 0);
                return error_errno(err, -r, "holding %s by a pidfd", argv[0]);
        }
        *ret = (struct eyes_child){ .pid = pid, .pidfd = pidfd, .sock = take_fd(ours) };
        return 0;
}

int eyes_child_start(const char *program, const char *accounting, struct eyes_child *ret, struct error *err)
{
        static char name[] = "lessor-eyes", fd_option[] = "--fd", fd_number[] = CHILD_FD_TEXT,
                    option[] = "--accounting";
        char *folder = accounting[0] ? (char *) (uintptr_t) accounting : NULL;
        char *const argv[] = { name, fd_option, fd_number, folder ? option : NULL, folder, NULL };

        return child_start(program, argv, ret, err);
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
