/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/signals.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* SIGPIPE is a matter of our own output, and the others are faults of this process itself. */
static const int never_taken[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPIPE };
static const int ends_the_wait[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

int signals_init(struct signals *s)
{
        struct sigaction before, standard = { .sa_handler = SIG_DFL };
        sigset_t taken;

        s->chld_was_ignored = sigaction(SIGCHLD, &standard, &before) == 0 && before.sa_handler == SIG_IGN;
        (void) sigemptyset(&taken);
        for (size_t i = 0; i < sizeof(ends_the_wait) / sizeof(ends_the_wait[0]); i++)
                (void) sigaddset(&taken, ends_the_wait[i]);
        if (sigprocmask(SIG_BLOCK, &taken, &s->before) < 0)
                return -errno;
        s->fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
        return s->fd < 0 ? -errno : 0;
}

void signals_take_all(struct signals *s)
{
        sigset_t all;
        (void) sigfillset(&all);
        for (size_t i = 0; i < sizeof(never_taken) / sizeof(never_taken[0]); i++)
                (void) sigdelset(&all, never_taken[i]);
        (void) sigprocmask(SIG_BLOCK, &all, NULL);
        (void) signalfd(s->fd, &all, SFD_CLOEXEC | SFD_NONBLOCK);
}

void signals_take_few(struct signals *s)
{
        sigset_t few, mask = s->before;
        (void) sigemptyset(&few);
        for (size_t i = 0; i < sizeof(ends_the_wait) / sizeof(ends_the_wait[0]); i++) {
                (void) sigaddset(&few, ends_the_wait[i]);
                (void) sigaddset(&mask, ends_the_wait[i]);
        }
        (void) signalfd(s->fd, &few, SFD_CLOEXEC | SFD_NONBLOCK);
        (void) sigprocmask(SIG_SETMASK, &mask, NULL);
}

void signals_give_back(const struct signals *s)
{
        if (s->chld_was_ignored)
                (void) signal(SIGCHLD, SIG_IGN);
        (void) sigprocmask(SIG_SETMASK, &s->before, NULL);
}

bool signals_next(struct signals *s, struct signalfd_siginfo *ret)
{
        return read(s->fd, ret, sizeof(*ret)) == (ssize_t) sizeof(*ret);
}

static void unblock(int signal_number)
{
        sigset_t one;
        (void) sigemptyset(&one);
        (void) sigaddset(&one, signal_number);
        (void) sigprocmask(SIG_UNBLOCK, &one, NULL);
}

void signals_die_by(int signal_number)
{
        struct rlimit none = { 0, 0 };
        (void) fflush(NULL);
        (void) setrlimit(RLIMIT_CORE, &none);
        (void) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* also where core_pattern is a pipe */
        (void) signal(signal_number, SIG_DFL);
        (void) raise(signal_number);
        unblock(signal_number);
        _exit(128 + signal_number); /* one that does not end a process by default */
}

void signals_stop_by(int signal_number)
{
        sigset_t one;
        (void) raise(signal_number);
        unblock(signal_number); /* here it stops */
        (void) sigemptyset(&one);
        (void) sigaddset(&one, signal_number);
        (void) sigprocmask(SIG_BLOCK, &one, NULL);
}
