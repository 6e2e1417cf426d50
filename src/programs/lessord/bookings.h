/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What of bookings goes by people's clocks, which the core does not know: a daily one is made again when it begins, and one
 * that waits goes with the clock when that is set, or the world's stood still while the machine slept (failures F26, F79).
 * All of it follows from the world: a restart needs nothing of its own, and what could not be stored is tried again.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/input.h"
#include "model/world.h"

enum {
        BOOKINGS_STEP_MS = 1500,           /* clocks that part by less are only adjusted */
        BOOKINGS_DAYS_TRIED = 14,          /* where the next day's is refused, the day after, and so on */
        BOOKINGS_AGAIN_MS = 5 * 60 * 1000, /* and where all are, from the first on again */
};

/* World time and wall time of one moment. */
struct clocks {
        uint64_t world_ms, wall_ms;
};

/* Does this lease owe the next day's booking now? */
bool bookings_owes_next(const struct world *world, const struct lease *lease, uint64_t now_ms);
/* That one, on the device that was named, if one was; @day days later than the next (0 = the next); its slot is as long, what it asks for the same. False: no such day. */
bool bookings_next(const struct world *world, const struct lease *lease, struct clocks now, uint32_t day,
                   struct request *ret);
/* Where does it begin by the wall clock? True: elsewhere than the world has it, and *ret is the change. */
bool bookings_moved(const struct lease *lease, struct clocks now, struct change *ret);

/* Daily ones that no day would take, by row of the world's lease table, and when that is tried again. */
struct bookings {
        uint64_t lease_id[LEASES_MAX];
        uint64_t again_ms[LEASES_MAX];
};

struct daemon;
/* After each turn: daily ones that began. Nothing else may wait to be stepped. */
void bookings_look(struct daemon *d);
/* Each second: the clocks as well. */
void bookings_tick(struct daemon *d);
