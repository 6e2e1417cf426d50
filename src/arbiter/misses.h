/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A lease of which nothing was ever seen on a device, while somebody of the same user who came later has memory without one: most
 * likely its own work, which got away from it (a daemon that was there before, a container whose engine started it). Said once.
 */
#include "model/action.h"
#include "model/world.h"

enum { MISSES_AFTER_MS = 10 * 1000 }; /* so long both have to last: a start takes its time, and so does naming */

/* Each second. */
void misses_tick(struct world *world, struct lease *lease, struct actions *out);
