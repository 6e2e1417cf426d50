/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What `lessor run` does when the memory of its command is wanted, and when it may have it again.
 *
 *   restart     the command and what it started is ended: SIGTERM, SIGKILL shortly before the time for it is over; later it
 *               is started again. Both are said to lessord
 *   cooperate   the command is told by a signal or by a POST to its hook; an answered POST is its word that it gave way
 *   the rest    nothing: the hands do it. Here it is only told to the person
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include "programs/lessor/child.h"
#include "programs/lessor/hook.h"
#include "programs/lessor/notices.h"
#include "programs/lessor/obtain.h"

struct child;

enum yield_step {
        YIELD_NOTHING,
        YIELD_ENDING,  /* the command was sent SIGTERM for it */
        YIELD_TELLING, /* its hook is asked to give way */
        YIELD_AWAY,    /* it gave way: the command is gone (restart), or lives without its memory */
        YIELD_CALLING, /* its hook is told that it may have its memory again */
};

struct yield {
        struct obtain *obtain;
        struct child *child;
        struct notices *notices;
        uint8_t step; /* enum yield_step */
        bool quiet;
        bool has_child;    /* the command is there; false: ended, to be started again */
        bool may_start;    /* and may be now */
        bool person_ended; /* a signal that ends the command came from somebody else meanwhile */
        bool told_parked;  /* to the person: it is parked, or held */
        bool told_stuck;
        bool explained;   /* what a Ctrl-C means meanwhile */
        uint64_t kill_ms; /* ENDING: when SIGKILL follows; 0 = it did */
        uint64_t say_ms;  /* when lessord is told (again): @says; 0 = nothing is to be told */
        enum { YIELD_SAYS_YIELDED, YIELD_SAYS_ACTIVE, YIELD_SAYS_THAW } says;
        struct hook hook;
};

void yield_init(struct yield *y, struct obtain *o, struct child *child, struct notices *notices);
void yield_fini(struct yield *y);
/* There is news of the lease: look at it. */
void yield_on_news(struct yield *y, enum lessor_news news);
/* As watch_wants() and watch_go_on(). */
nfds_t yield_wants(const struct yield *y, struct pollfd *ret, int *timeout_ms);
void yield_go_on(struct yield *y);
/* The command stands still or is gone because lessord wants that, as far as lessord says. */
bool yield_is_parked(const struct yield *y);
/* The command was stopped: by the hands? lessord is asked. */
bool yield_was_stopped(struct yield *y);
/* A signal to this process while its command runs or stands still. True: that is all to be done about it. */
bool yield_takes_signal(struct yield *y, const struct signalfd_siginfo *info);
/* Says for whom it is away. */
void yield_explain(struct yield *y);
/* The command ended. True: for this, and it is to be started again once @may_start. */
bool yield_child_ended(struct yield *y);
/* It runs again. */
void yield_started(struct yield *y);
