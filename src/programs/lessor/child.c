/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/child.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/pidfd.h"
#include "programs/lessor/verb.h"
#include "programs/lessor/watch.h"

enum {
        SCOPE_MS = 5000, /* systemd asks the manager over D-Bus: it may hang, the command must not */
        SCOPE_WORDS = 16,
};

/* ---- the inner side of the barrier ---- */

static _Noreturn void wait_and_exec(int report_fd, int go_fd, char *const *argv)
{
        char word = 'R';
        ssize_t n;
        if (write(report_fd, &word, 1) != 1)
                _exit(LESSOR_EXIT_OWN);
        do
                n = read(go_fd, &word, 1);
        while (n < 0 && errno == EINTR);
        if (n != 1)
                _exit(LESSOR_EXIT_OWN); /* abandoned, or our wrapper died: without a lease nothing runs */
        (void) execvp(argv[0], argv);
        int code = errno;
        (void) !write(report_fd, &code, sizeof(code));
        _exit(LESSOR_EXIT_NOT_FOUND);
}

static bool inherit(int fd, bool yes)
{
        int flags = fcntl(fd, F_GETFD);
        return flags >= 0 && fcntl(fd, F_SETFD, yes ? flags & ~FD_CLOEXEC : flags | FD_CLOEXEC) == 0;
}

int child_in_scope_main(int argc, char **argv)
{
        uint64_t report_fd, go_fd, ignored;
        if (argc < 5 || parse_u64("fd", argv[1], 3, INT32_MAX, &report_fd, NULL) < 0 ||
            parse_u64("fd", argv[2], 3, INT32_MAX, &go_fd, NULL) < 0 ||
            parse_u64("flag", argv[3], 0, 1, &ignored, NULL) < 0 || !inherit((int) report_fd, false) ||
            !inherit((int) go_fd, false)) {
                (void) fprintf(stderr, "lessor: %s is not for people\n", CHILD_IN_SCOPE_WORD);
                return LESSOR_EXIT_USAGE;
        }
        if (ignored)
                (void) signal(SIGCHLD, SIG_IGN);
        wait_and_exec((int) report_fd, (int) go_fd, argv + 4);
}

/* systemd-run in place of ourselves: it makes the scope, moves in, and becomes `lessor __in-scope …`. */
static _Noreturn void exec_in_scope(const char *systemd_run, int report_fd, int go_fd, bool chld_ignored,
                                    char *const *argv, const char *lease_id)
{
        char self[512], unit[96], report[16], go[16];
        size_t n_words = 0, n_args = 0;
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        while (argv[n_args])
                n_args++;
        char **words = calloc(n_args + SCOPE_WORDS, sizeof(words[0]));
        if (n <= 0 || !words || !inherit(report_fd, true) || !inherit(go_fd, true))
                _exit(LESSOR_EXIT_OWN);
        self[n] = '\0';
        (void) snprintf(unit, sizeof(unit), "--unit=lessor-%s-%d.scope", lease_id, (int) getpid());
        (void) snprintf(report, sizeof(report), "%d", report_fd);
        (void) snprintf(go, sizeof(go), "%d", go_fd);
        const char *front[] = { systemd_run,         "--user", "--scope", "--quiet",
                                "--collect",         unit,     "--",      self,
                                CHILD_IN_SCOPE_WORD, report,   go,        chld_ignored ? "1" : "0" };
        for (size_t i = 0; i < sizeof(front) / sizeof(front[0]); i++)
                words[n_words++] = (char *) (uintptr_t) front[i];
        for (size_t i = 0; i < n_args; i++)
                words[n_words++] = argv[i];
        (void) execv(systemd_run, words);
        _exit(LESSOR_EXIT_OWN);
}

/* ---- the outer side ---- */

static int start(struct child *child, const struct signals *signals, char *const *argv, const char *lease_id,
                 const char *systemd_run, struct error *err)
{
        int report[2], go[2];
        if (pipe2(report, O_CLOEXEC) < 0)
                return error_errno(err, errno, "making a pipe");
        if (pipe2(go, O_CLOEXEC) < 0) {
                int code = errno;
                (void) close(report[0]);
                (void) close(report[1]);
                return error_errno(err, code, "making a pipe");
        }
        (void) fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
                (void) close(report[0]);
                (void) close(go[1]); /* else the barrier would never see its wrapper die */
                if (systemd_run) {
                        struct signals plain = *signals;
                        plain.chld_was_ignored = false; /* systemd-run waits for children of its own */
                        signals_give_back(&plain);
                        exec_in_scope(systemd_run, report[1], go[0], signals->chld_was_ignored, argv, lease_id);
                }
                signals_give_back(signals);
                wait_and_exec(report[1], go[0], argv);
        }
        int code = errno;
        (void) close(report[1]);
        (void) close(go[0]);
        child->report_fd = report[0];
        child->go_fd = go[1];
        if (pid < 0) {
                child_fini(child);
                return error_errno(err, code, "starting a process");
        }
        child->pid = pid;
        child->pidfd = pidfd_open(pid, 0);
        return 0;
}

static bool reached_barrier(const struct child *child)
{
        uint64_t deadline_ms = clock_now_ms() + SCOPE_MS;
        char word = 0;
        for (;;) {
                struct pollfd fd = { .fd = child->report_fd, .events = POLLIN };
                int n = poll(&fd, 1, (int) u64_sub0(deadline_ms, clock_now_ms()));
                if (n < 0 && errno == EINTR)
                        continue;
                return n > 0 && read(child->report_fd, &word, 1) == 1 && word == 'R';
        }
}

int child_prepare(struct child *child, const struct signals *signals, char *const *argv, const char *lease_id,
                  struct error *err)
{
        char systemd_run[512];
        *child = (struct child){ .pidfd = -1, .report_fd = -1, .go_fd = -1 };
        int usable = pidfd_check_usable(err); /* else no signal of a person could be passed on to the command */
        if (usable < 0)
                return usable;
        (void) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        tree_sweep();

        if (tree_scope_possible(systemd_run, sizeof(systemd_run))) {
                int r = start(child, signals, argv, lease_id, systemd_run, err);
                if (r < 0)
                        return r;
                if (reached_barrier(child) && tree_find_scope(&child->tree, child->pid))
                        return 0;
                child_abandon(child); /* the manager would not: the next best */
        }
        struct tree tree;
        bool has_cgroup = tree_make_cgroup(&tree, lease_id);
        int r = start(child, signals, argv, lease_id, NULL, err);
        if (r < 0 || !reached_barrier(child)) {
                if (has_cgroup)
                        tree_remove(&tree);
                if (r == 0) {
                        child_abandon(child);
                        r = error_set(err, EIO, "the new process ended before it began");
                }
                return r;
        }
        if (has_cgroup && tree_put(&tree, child->pid))
                child->tree = tree;
        else if (has_cgroup)
                tree_remove(&tree);
        return 0;
}

void child_fini(struct child *child)
{
        int *fds[] = { &child->pidfd, &child->report_fd, &child->go_fd };
        for (size_t i = 0; i < 3; i++) {
                if (*fds[i] >= 0)
                        (void) close(*fds[i]);
                *fds[i] = -1;
        }
        tree_remove(&child->tree);
}

void child_abandon(struct child *child)
{
        if (child->pidfd >= 0)
                (void) pidfd_send_signal(child->pidfd, SIGKILL, NULL, 0);
        if (child->go_fd >= 0)
                (void) close(child->go_fd);
        child->go_fd = -1;
        if (child->pid > 0)
                while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        child->pid = 0;
        child_fini(child);
}

int child_go(struct child *child)
{
        int code = 0;
        ssize_t n;
        (void) !write(child->go_fd, "G", 1);
        (void) close(child->go_fd);
        child->go_fd = -1;
        do
                n = read(child->report_fd, &code, sizeof(code));
        while (n < 0 && errno == EINTR);
        return n == (ssize_t) sizeof(code) ? -code : 0; /* nothing: exec closed it */
}

static void pass_on(const struct child *child, const struct signalfd_siginfo *info)
{
        int signal_number = (int) info->ssi_signo;
        if (info->ssi_code > 0 && signal_number != SIGCONT)
                return; /* from the terminal or the kernel: the command is in the same group and got it itself */
        if ((pid_t) info->ssi_pid == child->pid)
                return; /* it sent this to its whole group */
        if (info->ssi_code == SI_QUEUE) {
                siginfo_t queued = { .si_signo = signal_number, .si_code = SI_QUEUE };
                queued.si_pid = getpid();
                queued.si_uid = getuid();
                queued.si_value.sival_ptr = (void *) (uintptr_t) info->ssi_ptr;
                if (pidfd_send_signal(child->pidfd, signal_number, &queued, 0) == 0)
                        return;
        }
        (void) pidfd_send_signal(child->pidfd, signal_number, NULL, 0);
}

/* `fg` gave the terminal to our group. A command that leads a group of its own (an interactive shell) had it before. */
static void hand_on_terminal(pid_t pid)
{
        pid_t group = getpgid(pid);
        if (group <= 0 || group == getpgrp())
                return;
        auto_close int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
        if (fd >= 0 && tcgetpgrp(fd) == getpgrp())
                (void) tcsetpgrp(fd, group);
}

/* True when the command itself ended. Others are orphans of its tree that came to us as their subreaper. */
static bool reap(const struct child *child, struct watch *watch, int *ret_status)
{
        int status;
        pid_t pid;
        bool ended = false;
        while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
                if (pid != child->pid || WIFCONTINUED(status))
                        continue;
                if (WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP && watch && watch_is_parking(watch))
                        continue; /* the hands did that: the terminal and its job control are the person's still */
                if (WIFSTOPPED(status)) {
                        signals_stop_by(WSTOPSIG(status));
                        hand_on_terminal(pid);
                        (void) pidfd_send_signal(child->pidfd, SIGCONT, NULL, 0);
                        continue;
                }
                *ret_status = status;
                ended = true;
        }
        return ended;
}

int child_wait(struct child *child, struct signals *signals, struct watch *watch)
{
        int status = 0;
        while (!reap(child, watch, &status)) {
                struct pollfd fds[1 + WATCH_FDS] = { { .fd = signals->fd, .events = POLLIN } };
                struct signalfd_siginfo info;
                int timeout_ms = -1;
                nfds_t n = 1 + (watch ? watch_wants(watch, &fds[1], &timeout_ms) : 0);
                (void) poll(fds, n, timeout_ms);
                while (signals_next(signals, &info))
                        if (info.ssi_signo != SIGCHLD && !(watch && watch_takes_signal(watch, &info)))
                                pass_on(child, &info);
                if (watch)
                        watch_go_on(watch);
        }
        return status;
}
