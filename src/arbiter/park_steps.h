/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Private to the files that take a lease off its device and back: park.c (off, and undone), thaw.c (back), park_hands.c (what the hands
 * say of its processes), park_watch.c (what the device and the time say).
 */
#include "arbiter/free.h"
#include "arbiter/park.h"

/* AGAIN: what could not be tried is tried again; HANDS_LATE: an order is answered by then, or is late; a tree is given so many
 * orders at once. */
enum { AGAIN_MS = 1000, HANDS_LATE_MS = 20000, ACTIONS_PER_TREE = 64 };

/* It gave way by its own word, or by its manager's: nothing but that keeps it from taking its memory again. */
static inline bool park_is_a_promise(const struct lease *lease)
{
        return lease->park.way == WAY_OUT_COOPERATE ||
               (lease->park.way == WAY_OUT_RESTART && binding_is_managed(&lease->binding));
}

static inline struct holder *park_holder_of(struct world *w, const struct lease *lease)
{
        return world_holder_get(w, lease->holder);
}

/* It is at @step now, for so long at most; 0 = for as long as it takes. */
void park_enter(struct world *w, struct lease *lease, enum park_step step, uint64_t for_ms);
/* What is not there has nobody beside it. */
void park_set_exclusive(struct world *w, struct lease *lease, bool exclusive);
/* Its owner's usage grows by it, or does no more. */
/* So much room in the ledger is kept for it on its way there. */
void park_plan_room(struct world *world, struct lease *lease, uint64_t bytes);
void park_count_as_held(struct world *w, struct lease *lease, bool held);
uint64_t park_slack_bytes(const struct world *w, uint32_t device);
/* How much may be used on the device of that part of its lease before @p is restored. */
uint64_t park_member_limit_bytes(const struct world *w, const struct lease *lease, const struct process *p,
                                 uint32_t part);
void park_forget_moved(struct world *w, struct lease *lease);
void park_note_used(struct world *w, struct lease *lease);

/* ---- park.c ---- */
void park_begin_way(struct world *w, struct lease *lease, enum way_out_kind way, struct actions *out);
void park_go_on_out(struct world *w, struct lease *lease, struct actions *out);
void park_is_out(struct world *w, struct lease *lease, struct actions *out);
bool park_is_still_wanted(struct world *w, const struct lease *lease);
void park_undo(struct world *w, struct lease *lease, enum hand_why why, struct actions *out);
void park_undo_members(struct world *w, struct lease *lease, struct actions *out);
void park_back_to_work(struct world *w, struct lease *lease);
/* It had given way, broke its promise, and could not be taken off by another way out: it is away in the books, as it was. */
void park_stays_out(struct world *w, struct lease *lease, struct actions *out);
void park_stick(struct world *w, struct lease *lease, enum hand_why why, struct actions *out);

/* ---- park_watch.c ---- */
/* Its way out was tried in vain: a strike where it may be tried again, and the next one that it has. */
void park_way_failed(struct world *w, struct lease *lease, struct actions *out);
/* Does a look since its step began show that it is off its device? */
bool park_is_off(struct world *w, const struct lease *lease);

/* ---- thaw.c ---- */
void thaw_restore_next(struct world *w, struct lease *lease, struct actions *out);
void thaw_is_back(struct world *w, struct lease *lease, struct actions *out);
void thaw_blocked(struct world *w, struct lease *lease, enum hand_why why, struct actions *out);
/* Its manager was asked to start it, and did not: a strike; it stays parked. */
void thaw_failed(struct world *w, struct lease *lease, enum hand_why why, struct actions *out);
