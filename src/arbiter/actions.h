/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The list of orders and events of one step, while it grows. */
#include "model/action.h"
#include "model/world.h"

enum { NO_DEVICE = UINT32_MAX };

/* Room for at least @n more? Where not, out->more is set: the caller leaves the rest to the next step. */
bool actions_have_room(struct actions *out, uint32_t n);
/* Append one; its id is drawn from the world. The list is never full here: callers ask first, and a step that makes a
 * bounded number of actions is sized for (ACTIONS_MAX). */
struct action *actions_add(struct world *world, struct actions *out, enum action_kind kind);
/* The same about a lease: its id, owner, priority, bytes, device. */
struct action *actions_add_lease(struct world *world, struct actions *out, enum action_kind kind,
                                 const struct lease *lease, const struct reason *why);
/* Order a look at @device, at most one an ORDER_AGAIN_MS while none was answered. */
void actions_read(struct world *world, struct actions *out, uint32_t device);
/* The same, a little later: somebody is on his way, and the device is to show it. */
void actions_read_soon(struct world *world, struct actions *out, uint32_t device);
/* Both at all devices of @lease. */
void actions_read_of(struct world *world, struct actions *out, const struct lease *lease);
void actions_read_soon_of(struct world *world, struct actions *out, const struct lease *lease);
