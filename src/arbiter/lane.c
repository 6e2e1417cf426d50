/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/lane.h"
#include "arbiter/ceiling.h"
#include "arbiter/queue.h"
#include "arbiter/rank.h"
#include "base/number.h"

bool device_is_fresh(const struct world *w, uint32_t device)
{
        const struct device *dev = &w->devices[device];

        if (!w->eyes_answering)
                return false;
        if (!dev->used_known)
                return dev->budget_bytes != 0; /* an administrator's budget is all there is */
        return dev->settled && dev->reading_ms != 0 && dev->reading_ms >= dev->changed_ms &&
               u64_sub0(w->now_ms, dev->reading_ms) <= w->config.reading_max_age_ms;
}

void lane_refresh(struct world *w, uint32_t device, struct lane *lane)
{
        sums_now(w, device, &lane->now);
        world_each_holder_of (w, i, HOLDER_CLAIM) {
                const struct holder *h = &w->holders[i];
                if (h->claim_kind == CLAIM_HEAD && h->device == device)
                        sums_take_out(&lane->now, h);
        }
        lane->free_bytes = sums_free_bytes(&lane->now);
}

void lane_look(struct world *w, uint32_t device, struct lane *lane)
{
        lane->looked = true;
        lane->usable = device_is_usable(&w->devices[device]);
        lane->fresh = device_is_fresh(w, device);
        lane->ceiling_bytes = device_ceiling_now(w, device);
        lane->exclusive_id = world_tally(w, device)->exclusive_id;
        lane->has_leases = world_tally(w, device)->n_there != 0;
        lane_refresh(w, device, lane);
}

void lane_set_head(struct lane *lane, struct entry *head, unsigned rank, bool blocks, const struct projection *start)
{
        lane->head = head;
        lane->head_rank = rank;
        lane->blocks = blocks;
        lane->start = *start;
        lane->start_free_bytes = sums_free_bytes(&start->at_start);
}

void lane_add(struct lane *lane, const struct holder *h, bool beside)
{
        sums_add(&lane->now, h);
        lane->free_bytes = sums_free_bytes(&lane->now);
        if (!beside)
                return;
        sums_add(&lane->start.at_start, h);
        lane->start_free_bytes = sums_free_bytes(&lane->start.at_start);
}

bool entry_runs_beyond(const struct world *w, const struct entry *e, uint64_t start_ms)
{
        return e->limit_ms == 0 || w->now_ms + e->limit_ms > start_ms;
}

/* May @e go ahead of the head of this lane, and why? RULE_BEHIND_HEAD or RULE_HEAD_BLOCKS: it may not. */
static enum rule rule_ahead_of_head(const struct world *w, const struct lane *lane, const struct entry *e,
                                    uint64_t ledger_room)
{
        if (rank_passes(&w->config, e->priority, lane->head_rank))
                return RULE_PASSES_HEAD;
        if (!lane->start.finite && !lane->blocks)
                return RULE_FITS; /* such a head claims nothing */
        if (lane->start.finite) {
                if (!entry_runs_beyond(w, e, lane->start.start_ms))
                        return RULE_ENDS_IN_TIME;
                if (u64_add_sat(e->demand_bytes, lane->head->demand_bytes) <= lane->start_free_bytes)
                        return RULE_FITS_BESIDE;
        }
        /* It could start now, if those that went ahead gave way: nobody else goes ahead of it on that promise. */
        if (lane->start.finite && lane->start.start_ms <= w->now_ms)
                return RULE_BEHIND_HEAD;
        if (ways_out_without_ledger(&e->ways))
                return RULE_RECLAIMABLE;
        if ((ways_out_usable(&e->ways) & WAY_OUT_BIT(WAY_OUT_CHECKPOINT)) && e->demand_bytes <= ledger_room)
                return RULE_LEDGER_SET_ASIDE;
        return lane->blocks ? RULE_HEAD_BLOCKS : RULE_BEHIND_HEAD;
}

/* A start that was in sight stays so; to whose plan has failed one was as well, and he stands before who became head meanwhile. */
static bool is_promised_before(const struct entry *head, const struct entry *e)
{
        bool had_plan = e->head_is_finite && !e->is_head;

        return head->head_is_finite && !had_plan;
}

void lane_keep_head(struct world *w, uint32_t device, struct lane *lane, const struct entry *e)
{
        struct entry *head = lane->old_head;

        if (lane->head || !head || head == e || head->held_since_ms != 0 || entry_is_head_of(e, device))
                return;

        unsigned rank = entry_rank(&w->config, head, w->now_ms);
        if (rank_passes(&w->config, e->priority, rank) || (!is_promised_before(head, e) && queue_before(w, e, head)))
                return;
        bool blocks = head->block_since_ms != 0 && !head->stepped_aside && w->now_ms < head->block_until_ms;
        struct projection start;
        project_start(w, device, &lane->now, head, &start);
        lane_set_head(lane, head, rank, blocks, &start);
}

struct standing lane_stand(const struct world *w, const struct lane *lane, const struct entry *e, uint64_t ledger_room)
{
        struct standing s = { 0 };
        s.room_bytes = lane->free_bytes;
        bool fits = e->demand_bytes <= s.room_bytes && !(e->least_bytes != 0 && lane->has_leases);

        if (lane->exclusive_id != 0) {
                s.rule = RULE_EXCLUSIVE_HOLDS;
                return s;
        }
        if (!lane->head || lane->head == e) {
                bool passes = fits && lane->old_head && lane->old_head != e &&
                              rank_passes(&w->config, e->priority, entry_rank(&w->config, lane->old_head, w->now_ms));
                s.rule = !fits ? RULE_NO_ROOM : passes ? RULE_PASSES_HEAD : RULE_FITS;
                s.starts = fits;
                return s;
        }

        if (!fits && !lane->blocks) { /* whoever it may go ahead of */
                s.rule = RULE_NO_ROOM_BEHIND_HEAD;
                return s;
        }
        enum rule rule = rule_ahead_of_head(w, lane, e, ledger_room);
        bool may = rule != RULE_BEHIND_HEAD && rule != RULE_HEAD_BLOCKS;
        s.starts = may && fits;
        s.rule = (uint16_t) (fits || rule == RULE_HEAD_BLOCKS ? rule : RULE_NO_ROOM_BEHIND_HEAD);
        return s;
}
