/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A plan while it is carried out (model/plan.h): victim after victim, with a claim that grows by what their device shows to be
 * free. Design 4.1 ("while a lease is being parked, its reservation shrinks by exactly what the claim gains"), 4.3.6.
 */
#include "arbiter/reclaim.h"
#include "model/action.h"

/* @entry's memory is taken back as @r says; the first step begins. NULL = there are too many plans. */
struct plan *plan_begin(struct world *world, struct entry *entry, uint32_t device, const struct reclaim *r,
                        const struct reason *why, struct actions *out);
/* What has settled goes to the claims, steps that are done are followed by the next, and who cannot go on ends. */
/* @by_time: nothing came in but the time; what changes then is said, for ticks without actions are not kept. */
void plans_advance(struct world *world, bool by_time, struct actions *out);
/* Its claim is gone, and the plan with it; whoever is on his way off the device arrives there. */
void plan_end(struct world *world, struct plan *plan);
/* All those of @entry: a gang has several. */
void plan_end_all(struct world *world, struct ref entry);
/* The same because @lease could not be taken off: what was parked for it comes back, the last one first. */
void plan_fail_of(struct world *world, const struct lease *lease, struct actions *out);
uint64_t plan_claimed_bytes(struct world *world, const struct plan *plan);
/* What its entry needs is another amount now. */
void plan_set_need(struct world *world, struct plan *plan, uint64_t bytes);
/* Would what @plan needs be there if nothing more were taken back? Who is on his way off the device counts in full until he is
 * off: he may still have to be brought back. */
bool plan_has_enough(struct world *world, const struct plan *plan);
/* The plan that @lease is a victim of; NULL = none. */
struct plan *plan_of_victim(struct world *world, const struct lease *lease);
