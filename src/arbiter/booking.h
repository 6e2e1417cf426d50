/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Promises for later (design 2, 4.2). From its making a booking is in the way of whoever would still be there when it begins;
 * it is passed only by what ends in time, fits beside it or can be taken back for it, and by priority 1. When it is due it is an
 * entry like others, behind priority 1 alone. Worked example: D9.
 */
#include "arbiter/lane.h"
#include "arbiter/reclaim.h"
#include "model/input.h"
#include "model/world.h"

/* May it be made at all, and on which device? */
bool booking_is_possible(struct world *world, const struct request *request, uint64_t bytes, uint64_t devices,
                         uint32_t user, uint32_t *ret_device, struct reason *why);
/* Its time has come, or nearly so that what is in its way can be gone by then. */
bool booking_is_due(const struct world *world, const struct entry *entry);
/* And has passed: there is nothing in it any more. */
bool booking_is_over(const struct world *world, const struct entry *entry);
/*
 * Would @entry, started now, be in the way of a booking? Returns that booking, or NULL; *ret_promise: it is not, because it may be
 * taken back for that one (none: nobody is owed anything). @plan: whose memory is taken back for it first, or NULL.
 */
const struct entry *booking_in_the_way(struct world *world, uint32_t device, const struct sums *now,
                                       const struct entry *entry, uint64_t ledger_room, const struct reclaim *plan,
                                       struct ref *ret_promise);
/* When a head that could start by @start, bookings aside, can start in fact. */
void booking_push(struct world *world, uint32_t device, const struct sums *now, const struct entry *head,
                  struct projection *start);
