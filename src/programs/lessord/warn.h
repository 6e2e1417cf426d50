/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Owners of processes without a lease are told: the line on their terminals, and the administrator's hook (`warn_hook`), a program
 * with its arguments and no shell, which gets as further arguments
 *
 *      warned|noticed PID UID BYTES DEVICE-UUID WORDS
 *
 * The hook runs with lessord's rights, WARN_HOOKS_MOST at a time, WARN_HOOK_MS long; what is too many is left out and logged.
 */
#include <uv.h>
#include "model/action.h"
#include "programs/lessord/eyes_child.h"

enum { WARN_HOOKS_MOST = 4, WARN_HOOK_MS = 10000, WARN_ARGS_MAX = 24 };

struct daemon;

struct warn_hook {
        struct daemon *daemon;
        struct eyes_child child; /* pid 0: none */
        uv_poll_t poll;
        uv_timer_t timer;
        unsigned n_handles;
};

struct warn {
        struct warn_hook hooks[WARN_HOOKS_MOST];
};

/* An action was committed; most say nothing to anybody. */
void warn_act(struct daemon *daemon, const struct action *action);
void warn_stop(struct daemon *daemon); /* closes the handles; the loop has to run once more */
