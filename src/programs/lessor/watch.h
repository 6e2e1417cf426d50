/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What becomes of the lease while its command runs, as liblessor follows it, beside the loop that waits for the command's end
 * and for signals. What a person must know goes to stderr, a line each, once.
 */
#include <poll.h>
#include <stdbool.h>
#include "model/reason.h"
#include "programs/lessor/notices.h"
#include "programs/lessor/obtain.h"
#include "programs/lessor/yield.h"

enum { WATCH_FDS = 2 };

struct watch {
        struct obtain *obtain;
        struct lessor *handle;
        struct lessor_lease *lease;
        uint64_t again_ms; /* the books are new: when its memory is asked for again; 0 = they are not */
        uint64_t again_until_ms;
        bool quiet;
        bool over;         /* nothing more will be said about it */
        bool told[RULE_N]; /* each is said once */
        bool lost;         /* its device, as was said last */
        bool books_new;    /* and nothing runs that its memory could be asked again for */
        struct yield yield;
        struct notices notices;
};

/* A lease that lessord lost with its books is asked for again over the command, which never notices. */
void watch_init(struct watch *watch, struct obtain *o, struct child *child);
/*
 * What the loop's poll(2) has to wait for on its behalf.
 * @ret  room for WATCH_FDS; returns how many were filled in
 * @timeout_ms  of that poll: made shorter where it has to be; -1 = none
 */
nfds_t watch_wants(const struct watch *watch, struct pollfd *ret, int *timeout_ms);
/* Does what can be done without waiting. Cheap when there is nothing to do. */
void watch_go_on(struct watch *watch);
void watch_fini(struct watch *watch);
/* The command was stopped by SIGSTOP: by the hands, to park it? */
bool watch_is_parking(struct watch *watch);
/* True: nothing more is to be done about this signal. */
bool watch_takes_signal(struct watch *watch, const struct signalfd_siginfo *info);
