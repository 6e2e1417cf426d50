/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The signals of this process, read from a descriptor instead of interrupting it. While it waits, only those that ask it
 * to end are held back, so that Ctrl-Z works as everywhere; while the command runs, all that can be.
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>

struct signals {
        int fd;
        sigset_t before; /* the mask this process was started with: the command gets it back */
        bool chld_was_ignored;
};

int signals_init(struct signals *s);
/* From "waiting" to "the command runs". */
void signals_take_all(struct signals *s);
/* And back: it waits again. */
void signals_take_few(struct signals *s);
/* In the child, before exec. */
void signals_give_back(const struct signals *s);
/* The next one that is there; false = none. */
bool signals_next(struct signals *s, struct signalfd_siginfo *ret);
/* End as if never having caught @signal_number: the shell must see it. Without a core file. */
_Noreturn void signals_die_by(int signal_number);
/* Stop as @signal_number would have stopped us; returns when continued. */
void signals_stop_by(int signal_number);
