/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Off a device and back (design 4.4): the steps of one lease. Each is begun by something that happened, and is over when the hands or
 * the device say so; "could not be tried" undoes what had begun and leaves no mark, "was tried and went wrong" is final for
 * a checkpoint, a strike for what can be repeated.
 */
#include "model/action.h"
#include "model/input.h"
#include "model/world.h"

/* @lease is at work: it is to give its device up by @way. @for_id: whose memory it will be; 0 = nobody's. */
void park_begin(struct world *world, struct lease *lease, enum way_out_kind way, enum park_cause cause, uint64_t for_id,
                uint32_t by_uid, struct actions *out);
/* Its entry may start: it comes back. The entry is dropped by the caller. */
void thaw_begin(struct world *world, struct lease *lease, struct actions *out);
/* The lease counts its bytes on its device from now on (false: only what it uses there). */
void park_reserve(struct world *world, struct lease *lease, uint64_t bytes);

/* Does it want back: not while a person keeps it away, nor while it has nothing to do and would say when it has. */
bool thaw_is_wanted(const struct world *world, const struct lease *lease);
/* Its place in the queue, where it wants back and has none. */
void thaw_enqueue(struct world *world, struct lease *lease);
/* What its return needs where @part of its rows is: its bytes, and for a restore some slack, never beyond what the device can give
 * (D4). */
uint64_t thaw_need_bytes(struct world *world, const struct lease *lease, const struct holder *part);
/* Of that, what is not there yet, for a context that stayed is its own already; the most of its devices. */
uint64_t thaw_demand_bytes(struct world *world, const struct lease *lease);
/* How much may be used on the device of @part when @p, a process of @lease, is restored: what HAND_RESTORE says of the first part.
 * UINT64_MAX: nothing of it comes back there. */
uint64_t thaw_limit_bytes(struct world *world, const struct lease *lease, const struct process *p, uint32_t part);
/* What keeps it from coming back although it fits; RULE_NONE = nothing. @why: NULL, or where the figures of that go. */
enum rule thaw_keeps_waiting(struct world *world, const struct lease *lease, struct reason *why);

void park_step(struct world *world, const struct park_call *call, struct actions *out);
/* False: it was about no member of a parked lease. */
bool park_outcome(struct world *world, const struct hand_outcome *outcome, struct actions *out);
void park_record(struct world *world, const struct park_record *record, struct actions *out);
void park_after_reading(struct world *world, uint32_t device, struct actions *out);
void park_tick(struct world *world, struct lease *lease, struct actions *out);
void park_process_ended(struct world *world, struct identity identity, struct actions *out);
void park_was_away(struct world *world, uint64_t away_ms);
/* Its command was started again, or says that it has its memory again. */
void park_activated(struct world *world, struct lease *lease, struct actions *out);
/* Its end: what it had in the ledger is given back. */
void park_forget(struct world *world, struct lease *lease);
/* Somebody of it is away, and only we can bring him back. */
bool park_has_away(struct world *world, const struct lease *lease);
/* It was to be killed for somebody who is not waiting any more, and nobody was sent SIGKILL: then it goes on (F51). */
bool park_kill_is_called_off(struct world *world, struct lease *lease, struct actions *out);
/* Its slot does not run: from when it was off its device until it is at work again, stuck on its way or not. */
static inline bool park_slot_stands(const struct lease *lease)
{
        return lease->park.step != PARK_NONE && lease->park.parked_ms != 0;
}
/* What is said of a step, from the lease as it is. */
void park_say(struct world *world, const struct lease *lease, enum action_kind kind, enum rule rule, uint32_t limit,
              struct actions *out);
