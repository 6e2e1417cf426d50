/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The end of the daemon: SIGTERM lets what is half way off a device, or back, arrive first. What is parked stays parked, and the
 * log says so: the next lessord goes on with it, and `lessor rescue` brings it back without one.
 */
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct daemon;
struct world;

enum { FINISH_MOST_MS = 75000 }; /* less than the 90 s that systemd gives by itself */

struct finish {
        uv_timer_t timer;
        bool begun;
};

/* A signal to stop; the second one hurries. */
void finish_begin(struct daemon *d, int signal);
/* How many leases are half way off their device, or back. */
uint32_t finish_half_way(const struct world *world);
/* After a turn: has everything arrived? */
void finish_look(struct daemon *d);
