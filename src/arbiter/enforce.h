/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The enforcer (design 4.7): what becomes of processes that have device memory and no lease. A new world observes; in the mode
 * `enforce` one is given notice, SIGTERM, its grace and SIGKILL, each as an order about the identity that was audited (I3), and each
 * only on a reading of that moment. At most ENFORCE_SIGNALS_MAX signals, then one alarm. The process alone: no cgroup, no parent
 * (F52). That it is gone is what the device shows.
 *
 * While the books or the driver are in doubt, and until everything was seen once since the start, nobody is signalled. What could not
 * be tried is no strike against anybody (I4), and what is not known is never a reason (I7).
 */
#include "model/action.h"
#include "model/input.h"
#include "model/world.h"

/* Something is known anew: who has memory, for how long. */
void enforce_look(struct world *world, struct actions *out);
/* What is due by now. Where nothing is said nothing has changed: silent ticks are in no journal. */
void enforce_tick(struct world *world, struct actions *out);
void enforce_call_step(struct world *world, const struct enforce_call *call, struct actions *out);
/* What came of an order about a stranger; of others it is nothing here. */
void enforce_outcome(struct world *world, const struct hand_outcome *outcome, struct actions *out);
/* The driver answers again: everything has to be seen once more. */
void enforce_begin_anew(struct world *world);
/* The same when the daemon came back. */
void enforce_was_away(struct world *world);

/* Why nobody is ended just now, or at least not everybody: memory is there whose owner cannot be seen. For people. */
enum enforce_doubt enforce_doubt_shown(struct world *world);
/* Will something become due by time alone? */
bool enforce_needs_ticks(const struct world *world);
bool enforce_has_stranger(struct world *world, struct identity identity);
