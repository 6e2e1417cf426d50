/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One device during one pass over the queue: what is free there for whom. The claims of heads are taken out of the sums and
 * lent to whoever may go ahead of the head (design 4.2: passing, backfill).
 */
#include "arbiter/free.h"
#include "arbiter/project.h"
#include "model/reason.h"
#include "model/world.h"

struct lane {
        bool looked;
        bool usable;
        bool fresh;
        uint64_t exclusive_id; /* of the exclusive lease that has it: nothing is granted beside; 0 = none */
        bool has_leases;       /* an exclusive one cannot start */
        bool pending; /* somebody would start here but for the reading: nobody else does, heads stay as they are */
        uint64_t ceiling_bytes; /* what it can ever give */
        struct sums now;        /* without the claims of heads: those are lent to whoever may go ahead */
        uint64_t free_bytes;    /* by these */
        struct entry *old_head;
        struct entry
                *head; /* of this pass: the first in line that cannot start here, or who was kept (lane_keep_head) */
        bool blocks;   /* it has no start in sight and has waited 30 min */
        unsigned head_rank;
        struct projection start;   /* of the head */
        uint64_t start_free_bytes; /* at its start, the head not there yet */
};

/* How an entry stands on one device. */
struct standing {
        bool starts;
        uint64_t room_bytes;
        uint16_t rule;               /* enum rule: why it starts, or waits */
        struct ref promise;          /* the booking for which it may be taken back; none */
        const struct entry *booking; /* RULE_BEFORE_BOOKING: which */
};

/* Fills a lane that is zeroed but for @old_head. */
void lane_look(struct world *world, uint32_t device, struct lane *lane);
/* The sums anew, after a plan changed who claims what there. */
void lane_refresh(struct world *world, uint32_t device, struct lane *lane);
void lane_set_head(struct lane *lane, struct entry *head, unsigned rank, bool blocks, const struct projection *start);
/* @holder was let in; @beside the head, if that may start as early as before. */
void lane_add(struct lane *lane, const struct holder *holder, bool beside);
/*
 * @entry is looked at so early because it is head of another device, or passes who is. Where it would not stand before this
 * device's head by its own right, that head is kept: @entry goes ahead of it only as backfill.
 */
void lane_keep_head(struct world *world, uint32_t device, struct lane *lane, const struct entry *entry);
/* Could @entry start there now, and by which rule, or why not. */
struct standing lane_stand(const struct world *world, const struct lane *lane, const struct entry *entry,
                           uint64_t ledger_room);
/* Will it still run at @start_ms, by its own word? */
bool entry_runs_beyond(const struct world *world, const struct entry *entry, uint64_t start_ms);
/* Is the last reading good for a grant: young, settled, and newer than the last change known? */
bool device_is_fresh(const struct world *world, uint32_t device);
