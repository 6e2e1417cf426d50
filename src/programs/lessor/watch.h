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

struct watch {
        struct lessor *handle;
        struct lessor_lease *lease;
        bool over;         /* nothing more will be said about it */
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
