/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The processes of a lease that are taken off its device by a checkpoint, each by orders to the hands. What is true of all of
 * them together is counted; what to do then is the lease's (arbiter/park.h).
 */
#include "model/action.h"
#include "model/world.h"

/* Each process of @lease that is a member, or that its device lists. */
struct process *member_next(struct world *world, const struct lease *lease, uint32_t *at);
#define each_member(w, lease, p) for (uint32_t p##_at = 0; (p = member_next((w), (lease), &p##_at));)

struct members {
        uint32_t n;
        uint32_t at[MEMBER_STEP_N];
        uint32_t n_busy; /* an order is out */
        uint32_t n_away;
};

void members_count(struct world *world, const struct lease *lease, struct members *ret);
/* Order @verb for @p, which is at @step from now on; @limit_bytes and @wait_ms as in struct action. */
void member_order(struct world *world, const struct lease *lease, struct process *p, enum hand_verb verb,
                  enum member_step step, uint64_t limit_bytes, uint64_t wait_ms, struct actions *out);
/* What it has on each device of its lease, as was last seen: it is about to be locked. */
void member_note_memory(struct world *world, const struct lease *lease, struct process *p);
/* It has what it has; that is read of its devices. */
void member_forget_memory(struct process *p);
/* It turns out to have had so much: by what it had more, it may have grown on any device on which it was seen, or on any at all. */
void member_grew_to(const struct lease *lease, struct process *p, uint64_t bytes);
/* It is not a member any more; what it had in the ledger is given back. */
void member_leave(struct world *world, struct lease *lease, struct process *p);
void member_charge(struct world *world, struct lease *lease, struct process *p, uint64_t bytes);
