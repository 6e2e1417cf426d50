/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Off its device and back by the manager of its work (design 4.5): a unit or a container is stopped, and later started, by
 * who runs it. An order may be repeated: stopping what does not run and starting what runs are done at once. So what was
 * lost (a daemon that died, an answer that never came) is ordered again; and what came of it the device says, not the manager.
 */
#include "model/action.h"
#include "model/input.h"
#include "model/world.h"

/* Is it taken off its device, and brought back, by its manager? */
static inline bool manage_goes_by(const struct lease *lease)
{
        return binding_is_managed(&lease->binding) &&
               (lease->park.way == WAY_OUT_RESTART || lease->park.way == WAY_OUT_KILL);
}

/* Its processes end because we have it stopped, or did: that is not the end of the lease. */
static inline bool manage_has_it_away(const struct lease *lease)
{
        return lease->park.step != PARK_NONE && manage_goes_by(lease);
}

/* Is there an order that its manager has not answered, or that could not be given yet? */
static inline bool manage_is_under_way(const struct lease *lease)
{
        return manage_has_it_away(lease) &&
               (lease->park.step == PARK_ASKING || lease->park.step == PARK_SETTLING ||
                (lease->park.step == PARK_RETURNING && lease->park.way == WAY_OUT_RESTART));
}

void manage_stop(struct world *world, struct lease *lease, struct actions *out);
void manage_start(struct world *world, struct lease *lease, struct actions *out);
void manage_outcome(struct world *world, const struct manager_outcome *outcome, struct actions *out);
/* What could not be ordered, or was lost, is ordered again. */
void manage_again(struct world *world, struct lease *lease, struct actions *out);
/* Its manager had all the time it may have. */
void manage_deadline(struct world *world, struct lease *lease, struct actions *out);
/* A person: a stop that failed is tried once more. */
void manage_forgive(struct world *world, struct lease *lease, struct actions *out);
/* The daemon was away: whether an order left it nobody knows. */
void manage_was_away(struct world *world);
/* What ended while its manager was at it, and then was let be after all. */
void manage_tick(struct world *world, struct lease *lease, struct actions *out);
