/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Held in place: while somebody more important on the same device says that it is at work, fillers there are locked, their memory
 * kept, so that the device is fast for it; and let go a moment after (design 4.4). Only who may be checkpointed is held, and
 * only for who tells when it is idle: for the others nobody knows when to let go.
 */
#include "model/action.h"
#include "model/world.h"

void hold_all(struct world *world, struct actions *out);
/* @lease, which is held, is to go on. */
void hold_let_go(struct world *world, struct lease *lease, struct actions *out);
/* Its members were locked, or let go, one by one: what that makes of the lease. */
void hold_went_on(struct world *world, struct lease *lease, struct actions *out);
