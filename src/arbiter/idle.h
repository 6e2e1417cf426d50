/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A lease that holds and does nothing: how long, and what follows from that. Idle is who says so himself, or, where a program
 * says nothing of the kind, whose processes were all seen to do nothing (ROW_RESTED). What nobody knows is work, and so is
 * whatever a program that talks says of itself. Only a lease that holds counts, not one that is parked, held in place or on
 * its way. One sign of work, and it begins anew.
 *
 *      notice  →  reclaimable  →  listed        by the class of its priority (struct idle_ladder)
 *
 * Reclaimable means: whoever needs memory may take it as from an idle one (arbiter/reclaim.h), by its own ways out, after the
 * linger that it owes. Nothing here ends anybody.
 */
#include "model/action.h"
#include "model/world.h"

/* Since when it does nothing, by its own word or by what was seen; 0 = works, or nobody knows. */
uint64_t idle_since_ms(const struct world *world, const struct holder *holder);
/* The same for whoever wants its memory: what was only seen counts from the reclaimable step on. *ret_changes_ms, where it is not
 * NULL and 0 is returned: when that will be so; 0 = nobody knows. */
uint64_t idle_reclaimable_since_ms(const struct world *world, const struct holder *holder, uint64_t *ret_changes_ms);
/* Is it to be shown to an administrator? */
bool idle_is_listed(const struct world *world, const struct holder *holder);

/* Its processes' activity came with a reading: holder->activity is what the rows say. */
void idle_after_reading(struct world *world, const struct lease *lease, struct holder *holder);
/* Each second: what is to be said of it. */
void idle_tick(struct world *world, const struct lease *lease, struct actions *out);
/* Nobody looked: what was seen before says nothing of now. */
void idle_forget(struct world *world);
