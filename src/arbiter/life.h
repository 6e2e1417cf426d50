/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The life of a lease after its grant: collected, renewed, released, its owner gone, its memory gone. Each end is exactly
 * once: a second one finds nobody. */
#include "model/action.h"
#include "model/input.h"
#include "model/world.h"

/* The one way in which a lease that holds changes its state; the table says where to (model/lease.c). */
void life_change_state(struct world *world, struct lease *lease, enum lease_event event);
void life_activate(struct world *world, const struct lease_call *call, struct actions *out);
void life_renew(struct world *world, const struct lease_call *call, struct actions *out);
void life_release(struct world *world, const struct lease_call *call, struct actions *out);
/* A process that may be the command of a lease. */
void life_process_ended(struct world *world, struct identity identity, struct actions *out);
void life_owner_ended(struct world *world, const struct lease_call *call, struct actions *out);

/* Collected: by a call, or at once by an asker who is connected. */
void life_set_active(struct world *world, struct lease *lease, uint64_t token, struct actions *out);
/* Its end, whoever says so: out of the queue, or draining while the device still shows memory of it, or gone. */
void life_end(struct world *world, struct lease *lease, enum end_reason end, uint64_t token, struct actions *out);
/* The reading of a device changed: what drained is gone, orphans without workers end. */
void life_after_reading(struct world *world, uint32_t device, struct actions *out);
/* Slots, heartbeats, uncollected grants, waits that are over. */
void life_tick(struct world *world, struct actions *out);
/* The device is lost, or back. */
void life_device_lost(struct world *world, uint32_t device, bool lost, struct actions *out);
/* The machine was rebooted: everything of before has ended. */
void life_rebooted(struct world *world, struct actions *out);
/* The daemon was away for so long. */
void life_was_away(struct world *world, uint64_t away_ms);
