/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What becomes of the lease while its command runs. One long poll, moved on a step at a time by the loop that waits for
 * the command's end and for signals, which it must never keep waiting; a daemon that is away is come back to, ever more
 * seldom. Where many run it looks now and then instead: a user's connections are limited, and who waits or asks needs them.
 * What a person must know goes to stderr, a line each, once.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include "client/client.h"
#include "model/lease.h"
#include "model/reason.h"
#include "programs/lessor/notices.h"
#include "programs/lessor/obtain.h"

struct watch {
        struct client client;
        char id[LEASE_ID_TEXT_MAX];
        char device[UUID_TEXT_MAX]; /* the granted one */
        uint8_t stage;              /* enum stage, in watch.c */
        uint64_t rev;               /* everything up to here was told, or needs no telling */
        uint64_t due_ms;            /* when the rest is over, or the call has taken too long */
        uint64_t rest_ms;           /* the last rest because of a daemon that is away; 0 = it answered */
        bool counted;               /* how many hold memory: known, and with it */
        bool is_crowded;            /* whether it looks now and then instead of holding a connection */
        struct http_call call;
        json_t *lease;     /* as it was answered last; NULL = it has ended */
        bool told[RULE_N]; /* each is said once */
        bool lost;         /* its device, as was said last */
        struct notices notices;
};

void watch_init(struct watch *watch, const struct obtain *o);
/*
 * What the loop's poll(2) has to wait for on its behalf.
 * @ret  filled in when it returns 1; 0 = nothing
 * @timeout_ms  of that poll: made shorter where it has to be; -1 = none
 */
nfds_t watch_wants(const struct watch *watch, struct pollfd *ret, int *timeout_ms);
/* Does what can be done without waiting. Cheap when there is nothing to do. */
void watch_go_on(struct watch *watch);
void watch_fini(struct watch *watch);
