/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sleep and shutdown wait (logind, "delay"): while the lock is held, logind tells us before and waits for it to be let go, for
 * InhibitDelayMaxSec at most (5 s unless configured). From the word on no transition begins; what is half way arrives, what
 * may come back does; then the lock is let go, and taken again once the machine is awake. Without logind there is nothing to
 * wait for us: what is parked has its records all the same, and sleeps where it is.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/input.h"
#include "programs/lessord/bus.h"

enum { INHIBIT_LOOK_MS = 50, INHIBIT_THAW_MS = 1500, INHIBIT_MOST_MS = 75000 };

struct inhibit_host {
        void *ctx;
        void (*submit)(void *ctx, const struct input *input);
        /* The core knows of the pause, and nothing is half way any more. */
        bool (*ready)(void *ctx, enum pause_what what);
        bool (*thaws_before_sleep)(void *ctx);
};

struct inhibit {
        struct bus *bus;
        struct inhibit_host host;
        sd_bus_slot *sleep, *shutdown, *owner; /* signals; NULL: not listened to */
        sd_bus_slot *taking;                   /* the call that is out */
        int fd;                                /* the lock; -1 = not held */
        uint8_t pausing;                       /* enum pause_what */
        bool thaws;
        uint64_t began_ms;
        uv_timer_t timer;
        char peer[32];             /* logind's own name on the bus */
        char words[BUS_WORDS_MAX]; /* why it is not held, unless the bus is away */
};

void inhibit_init(struct inhibit *inhibit, struct bus *bus, const struct inhibit_host *host);
void inhibit_bus_changed(struct inhibit *inhibit, bool up);
/* Why sleep and shutdown do not wait; "" = they do. */
const char *inhibit_words(const struct inhibit *inhibit);
void inhibit_stop(struct inhibit *inhibit);
