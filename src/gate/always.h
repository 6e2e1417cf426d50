/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Cgroups that always pass, found as they are made: those that the configuration names by patterns, and login sessions at the
 * machine's own screen (logind gives them a seat), whatever display server they start. A session that has just begun passes until
 * logind has said what it is: a screen that stays dark is worse than a program that opens the device for a moment too long.
 *
 * Only folders in which a pattern could name something are watched, so the cost is one watch a user, not one a process.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "gate/conf.h"

enum {
        ALWAYS_WATCHES_MAX = 1024,
        ALWAYS_DOUBTS_MAX = 64,
        ALWAYS_PATH_SIZE = 256,
        ALWAYS_DOUBT_MS = 10000, /* then a session of which logind says nothing is like any other */
        ALWAYS_AGAIN_MS = 500,
};

struct always_host {
        void *ctx;
        /* It passes from now on with all below it, or not any more. */
        void (*pass)(void *ctx, uint64_t cgroup_id, bool passes);
};

struct always {
        int root;    /* of the hierarchy, borrowed */
        int inotify; /* -1 = nothing is watched */
        const struct gate_conf *conf;
        const char *sessions; /* logind's folder */
        struct always_host host;
        size_t n_watches;
        struct {
                int wd;
                char path[ALWAYS_PATH_SIZE]; /* below the root */
        } watches[ALWAYS_WATCHES_MAX];
        size_t n_doubts;
        struct {
                uint64_t cgroup_id, until_ms;
                char id[32]; /* of the session */
        } doubts[ALWAYS_DOUBTS_MAX];
        bool overflowed; /* events were lost: look at all of it again */
};

void always_init(struct always *a, int root, const char *sessions, const struct always_host *host);
/* Looks at all there is and watches from then on; @conf is borrowed. Negative errno: nothing is watched. */
int always_begin(struct always *a, const struct gate_conf *conf, uint64_t now_ms, struct error *err);
/* The inotify descriptor is readable; it may still be afterwards. */
void always_hear(struct always *a, uint64_t now_ms);
/* Sessions in doubt; returns when to call again, 0 = no need. */
uint64_t always_tick(struct always *a, uint64_t now_ms);
void always_end(struct always *a);

/* What logind's file of a session says: 1 it has a seat, 0 it has none, -1 not said yet. Any bytes are safe. */
int always_session_has_seat(const char *text);
