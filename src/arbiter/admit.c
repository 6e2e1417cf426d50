/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stddef.h>
#include <string.h>
#include "arbiter/actions.h"
#include "arbiter/booking.h"
#include "arbiter/admit.h"
#include "arbiter/ceiling.h"
#include "arbiter/lane.h"
#include "arbiter/life.h"
#include "arbiter/park.h"
#include "arbiter/plan.h"
#include "arbiter/queue.h"
#include "arbiter/rank.h"
#include "arbiter/request.h"
#include "arbiter/usage.h"
#include "base/number.h"
#include "placement/pick.h"

enum { UNSETTLED_AGAIN_MS = 100 };

struct pass {
        struct world *world;
        struct actions *out;
        struct newcomer *newcomer;
        bool by_time; /* nothing came in but the time */
        uint64_t ledger_room_bytes;
        uint32_t place; /* of the entry being looked at */
        uint32_t n_waiting;
        struct lane lanes[DEVICES_MAX]; /* zeroed for those devices there are */
};

static inline struct lane *lane_of(struct pass *p, uint32_t device)
{
        if (!p->lanes[device].looked)
                lane_look(p->world, device, &p->lanes[device]);
        return &p->lanes[device];
}

static uint64_t lease_id_of_entry(struct world *w, const struct entry *e)
{
        const struct lease *lease = e ? world_lease_get(w, e->lease) : NULL;
        return lease ? lease->id : 0;
}

static void fill_reason(struct pass *p, struct reason *why, uint32_t device, const struct entry *e,
                        const struct standing *s)
{
        struct world *w = p->world;
        const struct lane *lane = &p->lanes[device];
        const struct entry *head = lane->head ? lane->head : lane->old_head;
        struct sums booked;

        sums_now(w, device, &booked);
        *why = (struct reason){
                .rule = s->rule,
                .place = p->place,
                .n_waiting = p->n_waiting,
                .need_bytes = e->demand_bytes,
                .free_bytes = sums_free_bytes(&booked),
                .total_bytes = booked.total_bytes,
                .used_bytes = booked.used_bytes,
                .reserved_bytes = booked.reserved_bytes,
                .reading_age_ms = u64_sub0(w->now_ms, w->devices[device].reading_ms),
        };
        if (s->rule == RULE_EXCLUSIVE_HOLDS)
                why->head_lease_id = lane->exclusive_id;
        else if (head != e)
                why->head_lease_id = lease_id_of_entry(w, head);
        why->lent_bytes = s->starts ? u64_sub0(s->room_bytes, why->free_bytes) : 0;
}

void admit_drop_entry(struct world *w, struct entry *e)
{
        struct ref ref = world_entry_ref(w, e);
        struct plan *plan = world_plan_of(w, ref);

        if (plan)
                plan_end(w, plan);

        world_each_holder_of (w, i, HOLDER_CLAIM)
                if (ref_equal(w->holders[i].entry, ref))
                        world_holder_drop(w, &w->holders[i]);
        /* Who went ahead of it while it was head owes it nothing any more, and the ledger room kept for that is free again. */
        for (uint32_t i = 0; e->head_since_ms != 0 && i < w->n_leases; i++)
                if (w->lease_ids[i] != 0 && ref_equal(w->leases[i].backfill_for, ref)) {
                        w->leases[i].backfilled = false;
                        world_device_changed(w, w->leases[i].device);
                        w->leases[i].backfill_for = (struct ref){ 0 };
                        w->leases[i].ledger_set_aside_bytes = 0;
                        world_ledger_changed(w);
                }

        struct lease *lease = world_lease_get(w, e->lease);
        if (lease)
                lease->entry = (struct ref){ 0 };
        w->users[e->user].n_waiting--;
        world_entry_drop(w, e);
}

/* A head's claim gives way to what goes ahead on loan from it. */
static void shrink_claim(struct world *w, uint32_t device)
{
        world_each_holder_of (w, i, HOLDER_CLAIM) {
                struct holder *h = &w->holders[i];
                if (h->claim_kind != CLAIM_HEAD || h->device != device)
                        continue;

                struct sums sums;
                sums_now(w, device, &sums);
                uint64_t debt = u64_sub0(sums_committed_bytes(&sums), sums.total_bytes);
                if (debt != 0) {
                        world_holder_writing(w, h);
                        h->reserved_bytes = u64_sub0(h->reserved_bytes, debt);
                        world_holder_written(w, h);
                }
                if (h->reserved_bytes == 0)
                        world_holder_drop(w, h);
        }
}

/* It is head of no device any more, wherever it was. */
static void leave_heads(struct pass *p, const struct entry *e)
{
        for (uint32_t d = 0; d < p->world->n_devices; d++) {
                if (p->lanes[d].old_head == e)
                        p->lanes[d].old_head = NULL;
                if (p->lanes[d].head == e)
                        p->lanes[d].head = NULL;
        }
}

/* It went ahead of the head of its lane on a promise. */
static void note_backfill(struct pass *p, struct lease *lease, const struct lane *lane, const struct entry *e,
                          const struct standing *s)
{
        bool for_head = lane->head && s->rule >= RULE_ENDS_IN_TIME && s->rule <= RULE_LEDGER_SET_ASIDE;

        if (!for_head && ref_is_none(s->promise))
                return;
        /* What came back modestly, for it was idle, gives way as what it is. */
        if (for_head && e->kind == ENTRY_THAW && rank_passes(&p->world->config, lease->priority, lane->head_rank))
                return;
        lease->backfilled = true;
        lease->backfill_for = ref_is_none(s->promise) ? world_entry_ref(p->world, lane->head) : s->promise;
        lease->ledger_set_aside_bytes = s->rule == RULE_LEDGER_SET_ASIDE ? e->demand_bytes : 0;
        world_ledger_changed(p->world);
        p->ledger_room_bytes = u64_sub0(p->ledger_room_bytes, lease->ledger_set_aside_bytes);
}

/* A parked lease comes back: the same admission, but it holds its row already. */
static void bring_back(struct pass *p, struct entry *e, uint32_t device, const struct standing *s)
{
        struct world *w = p->world;
        struct lane *lane = &p->lanes[device];
        struct lease *lease = world_lease_get(w, e->lease);
        struct holder *h = world_holder_get(w, lease->holder);
        bool beside = lane->head && s->rule == RULE_FITS_BESIDE;

        world_holder_writing(w, h);
        note_backfill(p, lease, lane, e, s);
        world_holder_written(w, h);
        lease->waited_ms = entry_waited_ms(e, w->now_ms);
        lease->kept_rank = (uint8_t) u64_min(entry_rank(&w->config, e, w->now_ms), lease->priority);
        lease->granted_ms = w->now_ms;
        leave_heads(p, e);
        admit_drop_entry(w, e);
        thaw_begin(w, lease, p->out);
        lane->has_leases = true;
        if (lease->exclusive)
                lane->exclusive_id = lease->id;
        lane_refresh(w, device, lane);
        if (beside) {
                struct holder more = { .kind = HOLDER_CLAIM, .used_known = true, .reserved_bytes = h->reserved_bytes };
                sums_add(&lane->start.at_start, &more);
                lane->start_free_bytes = sums_free_bytes(&lane->start.at_start);
        }
        shrink_claim(w, device);
}

static void grant(struct pass *p, struct entry *e, uint32_t device, const struct standing *s)
{
        struct world *w = p->world;
        struct lane *lane = &p->lanes[device];
        struct lease *lease = world_lease_get(w, e->lease);
        struct reason why;
        fill_reason(p, &why, device, e, s);

        struct holder *h = world_holder_new(w, HOLDER_LEASE, device);
        assert(h && lease); /* the table of holders is sized for every lease */
        h->reserved_bytes = e->demand_bytes;
        h->uncollected = true;
        h->managed = lease->managed;
        h->exclusive = lease->exclusive;
        h->ways = lease->ways;
        h->lease = world_lease_ref(w, lease);

        lease->state = (uint8_t) lease_next((enum lease_state) lease->state, LEASE_EVENT_GRANT);
        lease->device = device;
        lease->holder = world_holder_ref(w, h);
        lease->granted_ms = w->now_ms;
        lease->renewed_ms = w->now_ms;
        lease->waited_ms = entry_waited_ms(e, w->now_ms);
        /* A booking stands behind priority 1; what holds is what it is. */
        lease->kept_rank = (uint8_t) u64_min(entry_rank(&w->config, e, w->now_ms), lease->priority);
        lease->slot_end_ms = lease->slot_ms != 0 ? u64_max(w->now_ms, e->due_ms) + lease->slot_ms : 0;
        note_backfill(p, lease, lane, e, s);
        world_holder_written(w, h);
        bool beside = lane->head && s->rule == RULE_FITS_BESIDE;

        struct user *user = &w->users[lease->user];
        usage_set_held(&w->config, user, user->held_bytes + lease->bytes, w->now_ms);

        lane->has_leases = true;
        if (lease->exclusive)
                lane->exclusive_id = lease->id;

        bool collected = e->collected;
        struct newcomer *mine =
                p->newcomer && ref_equal(p->newcomer->entry, world_entry_ref(w, e)) ? p->newcomer : NULL;
        leave_heads(p, e);
        admit_drop_entry(w, e);

        struct action *a = actions_add_lease(w, p->out, ACTION_GRANTED, lease, &why);
        if (mine) {
                a->token = mine->token;
                mine->granted = true;
                mine->decided = true;
        }
        if (collected)
                life_set_active(w, lease, a->token, p->out);
        /* Only now is it known how it counts: managed memory is unknown from the moment it runs. */
        lane_add(lane, h, beside);
        shrink_claim(w, device);
}

static enum wait_kind wait_kind_of(enum rule rule)
{
        switch ((unsigned) rule) {
        case RULE_READING_STALE:
        case RULE_READING_UNSETTLED:
                return WAIT_READING;
        case RULE_BEHIND_HEAD:
                return WAIT_BEHIND;
        case RULE_NO_ROOM_BEHIND_HEAD:
                return WAIT_NO_ROOM_BEHIND;
        case RULE_HEAD_BLOCKS:
                return WAIT_BLOCKED;
        case RULE_ABOVE_CEILING:
                return WAIT_ABOVE_CEILING;
        case RULE_NO_USABLE_DEVICE:
                return WAIT_NO_DEVICE;
        case RULE_ON_HOLD:
                return WAIT_ON_HOLD;
        case RULE_EXCLUSIVE_HOLDS:
                return WAIT_EXCLUSIVE;
        case RULE_BOOKED:
                return WAIT_BOOKED;
        case RULE_BEFORE_BOOKING:
                return WAIT_BEFORE_BOOKING;
        case RULE_RECLAIMING:
                return WAIT_RECLAIMING;
        case RULE_RETURNS_LIMIT:
        case RULE_CARD_MOVES:
        case RULE_THAW_AGAIN:
        case RULE_UNDO_ORDER:
                return WAIT_BACK;
        }
        return WAIT_NO_ROOM;
}

static bool is_newcomer(const struct pass *p, const struct entry *e)
{
        return p->newcomer && ref_equal(p->newcomer->entry, world_entry_ref(p->world, e));
}

/* Is there anybody to tell why it waits: its asker, or the events because that changed (@start_changed: its computed start
 * came, went or moved)? The reason is only made then. */
static bool must_tell(const struct pass *p, const struct entry *e, enum rule rule, bool start_changed)
{
        return e->wait_kind != wait_kind_of(rule) || start_changed || e->no_wait || is_newcomer(p, e);
}

/* Whoever does not wait is told no: by a look, or by there being nobody to look. */
static bool is_decided(const struct world *w, enum wait_kind kind)
{
        return kind != WAIT_READING || !w->eyes_answering;
}

static void tell_wait(struct pass *p, struct entry *e, const struct reason *why, bool start_changed)
{
        struct world *w = p->world;
        enum wait_kind kind = wait_kind_of((enum rule) why->rule);
        bool changed = e->wait_kind != kind || start_changed;

        e->wait_kind = (uint8_t) kind;
        if (p->newcomer && ref_equal(p->newcomer->entry, world_entry_ref(w, e))) {
                p->newcomer->why = *why;
                p->newcomer->decided = is_decided(w, kind);
                return;
        }
        if (e->no_wait && is_decided(w, kind)) {
                /* It was only waiting for a good look, and this was one, or there will be none. */
                struct lease *lease = world_lease_get(w, e->lease);
                struct reason over = *why;
                over.rule = RULE_WOULD_WAIT;
                over.end = END_WAIT_OVER;
                actions_add_lease(w, p->out, ACTION_ENDED, lease, &over);
                w->users[lease->user].n_leases--;
                admit_drop_entry(w, e);
                world_lease_drop(w, lease);
                return;
        }
        if (changed)
                actions_add_lease(w, p->out, ACTION_WAITING, world_lease_get(w, e->lease), why);
}

/* The 30-minute rule: a head without a start in sight blocks for as long as it had waited when that began. Returns false
 * when it has stepped aside. */
static bool keep_blocking(struct pass *p, struct entry *e, bool *ret_blocks)
{
        struct world *w = p->world;
        uint64_t waited_ms = entry_waited_ms(e, w->now_ms);

        *ret_blocks = false;
        if (e->stepped_aside)
                return false;
        if (waited_ms < w->config.block_after_ms)
                return true;

        struct lease *lease = world_lease_get(w, e->lease);
        if (e->block_since_ms == 0) {
                e->block_since_ms = w->now_ms != 0 ? w->now_ms : 1;
                e->block_until_ms = w->now_ms + u64_min(waited_ms, w->config.block_max_ms);
                actions_add_lease(w, p->out, ACTION_WARNING, lease,
                                  &(struct reason){ .rule = RULE_BLOCKING_BEGAN, .start_ms = e->block_until_ms });
        }
        if (w->now_ms >= e->block_until_ms) {
                e->stepped_aside = true;
                e->head_is_finite = false;
                actions_add_lease(w, p->out, ACTION_WARNING, lease, &(struct reason){ .rule = RULE_STEPPED_ASIDE });
                return false;
        }
        *ret_blocks = true;
        return true;
}

/* Which of its devices is it head of: where it can start first; where it already is, if that is no later; else the lowest.
 * A device that waits for a look changes no head, but keeps the one it has. */
static bool choose_head_lane(struct pass *p, const struct entry *e, uint32_t *ret_device, struct projection *ret_start)
{
        struct world *w = p->world;
        bool found = false;

        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!(e->devices & (UINT64_C(1) << d)))
                        continue;
                struct lane *lane = lane_of(p, d);
                bool is_here = e->is_head && e->head_device == d;
                if (!lane->usable || (lane->head && lane->head != e) || (lane->pending && !is_here) ||
                    e->demand_bytes > lane->ceiling_bytes)
                        continue;

                struct projection start;
                project_start(w, d, &lane->now, e, &start);
                booking_push(w, d, &lane->now, e, &start);
                bool sooner = start.finite && (!ret_start->finite || start.start_ms < ret_start->start_ms);
                bool as_soon = start.finite == ret_start->finite && start.start_ms == ret_start->start_ms;
                if (found && !sooner && !(is_here && as_soon))
                        continue;
                *ret_device = d;
                *ret_start = start;
                found = true;
        }
        return found;
}

/* @e cannot start: if one of its devices has no head yet, it is that head. */
static void say_booking(struct pass *p, const struct entry *booking, struct reason *why)
{
        why->head_lease_id = lease_id_of_entry(p->world, booking);
        why->start_ms = booking->due_ms;
}

static struct reclaim_demand demand_of(const struct world *w, const struct entry *e, uint32_t device)
{
        return (struct reclaim_demand){ .device = device,
                                        .bytes = e->demand_bytes,
                                        .priority = e->priority,
                                        .entry = world_entry_ref(w, e),
                                        .leaving_ledger_bytes = w->leases[e->lease.index].park.charged_bytes };
}

/* Why nobody's memory on @device is taken back for it; false: of that nothing is to be said. Worked out only where it is told. */
static bool say_nobody_gives_way(struct world *w, const struct entry *e, uint32_t device, struct reason *why)
{
        struct reason cannot = { 0 };
        struct reclaim found;

        if (device == NO_DEVICE)
                return false;
        struct reclaim_demand demand = demand_of(w, e, device);
        reclaim_plan(w, &demand, &found, &cannot);
        if (cannot.n_blockers == 0)
                return false;
        why->n_blockers = cannot.n_blockers;
        memcpy(why->blockers, cannot.blockers, sizeof(why->blockers));
        why->earliest_ms = cannot.earliest_ms;
        return true;
}

/* @asked: the device on which others were looked for who could give way to it; NO_DEVICE = none. */
static bool become_head(struct pass *p, struct entry *e, const struct standing *standings, uint32_t asked)
{
        struct world *w = p->world;
        uint32_t device = NO_DEVICE;
        struct projection start;
        start.finite = false;
        start.start_ms = 0;
        if (e->no_wait || !choose_head_lane(p, e, &device, &start))
                return false;

        bool blocks = e->kind == ENTRY_BOOKING; /* it was promised: new work that would stay waits */
        if (!start.finite && !blocks && !keep_blocking(p, e, &blocks)) {
                for (uint32_t d = 0; d < w->n_devices; d++)
                        if (p->lanes[d].head == e)
                                p->lanes[d].head = NULL;
                return false;
        }

        const struct standing *s = standings ? &standings[device] : NULL;
        struct lane *lane = &p->lanes[device];
        bool start_changed =
                !e->is_head || e->head_device != device || e->start_ms != (start.finite ? start.start_ms : 0);
        lane_set_head(lane, e, entry_rank(&w->config, e, w->now_ms), blocks, &start);

        if (!e->is_head || e->head_device != device) {
                world_each_holder_of (w, i, HOLDER_CLAIM) /* a claim left on another device */
                        if (w->holders[i].device != device && ref_equal(w->holders[i].entry, world_entry_ref(w, e)))
                                world_holder_drop(w, &w->holders[i]);
                if (lane->old_head && lane->old_head != e && lane->old_head->head_device == device) {
                        lane->old_head->is_head = false;
                        lane->old_head->start_ms = 0;
                }
        }
        e->is_head = true;
        e->head_device = device;
        if (e->head_since_ms == 0)
                e->head_since_ms = w->now_ms != 0 ? w->now_ms : 1;
        e->head_is_finite = e->head_is_finite || start.finite;
        e->start_ms = start.finite ? start.start_ms : 0;

        enum rule rule = lane->exclusive_id != 0 ? RULE_EXCLUSIVE_HOLDS
                         : s && s->booking       ? RULE_BEFORE_BOOKING
                                                 : RULE_NO_ROOM;
        if (!must_tell(p, e, rule, start_changed))
                return true;
        struct reason why;
        fill_reason(p, &why, device, e, &(struct standing){ .rule = (uint16_t) rule });
        why.start_ms = e->start_ms;
        if (rule == RULE_BEFORE_BOOKING)
                say_booking(p, s->booking, &why);
        if (!say_nobody_gives_way(w, e, asked, &why))
                reason_add_holders(&why, w, device, world_entry_ref(w, e));
        tell_wait(p, e, &why, start_changed);
        return true;
}

/* Behind the heads of all its devices: which of them it would come closest on. */
static void stay_behind(struct pass *p, struct entry *e, uint32_t device, const struct standing *s)
{
        struct reason why;

        if (!must_tell(p, e, (enum rule) s->rule, false))
                return;
        fill_reason(p, &why, device, e, s);
        if (why.rule == RULE_BEFORE_BOOKING)
                say_booking(p, s->booking, &why);
        if (why.rule == RULE_NO_ROOM || why.rule == RULE_EXCLUSIVE_HOLDS)
                reason_add_holders(&why, p->world, device, world_entry_ref(p->world, e));
        tell_wait(p, e, &why, false);
}

/* After a look that cannot be used: at once for whoever comes newly, else soon. Where lists are refused, or a card never
 * comes to rest, looking would be all that anybody does. The eyes tell of a change by themselves meanwhile. */
static bool wants_look(const struct pass *p, const struct device *dev, const struct entry *e)
{
        const struct world *w = p->world;
        bool was_just_looked_at = dev->reading_ms != 0 && dev->reading_ms >= dev->changed_ms && !dev->settled &&
                                  u64_sub0(w->now_ms, dev->reading_ms) < UNSETTLED_AGAIN_MS;

        return w->eyes_answering && (!was_just_looked_at || is_newcomer(p, e));
}

/* Each of @devices is looked at: one that cannot be read may not keep it from another. */
static void order_looks(struct pass *p, struct entry *e, uint64_t devices, bool *ret_others_wait)
{
        struct world *w = p->world;

        *ret_others_wait = false;
        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!(devices & (UINT64_C(1) << d)))
                        continue;
                *ret_others_wait = *ret_others_wait || p->lanes[d].pending;
                p->lanes[d].pending = true;
                if (wants_look(p, &w->devices[d], e))
                        actions_read(w, p->out, d);
        }
}

static void wait_for_reading(struct pass *p, struct entry *e, uint64_t devices, const struct standing *standings)
{
        struct world *w = p->world;
        bool others_wait;

        order_looks(p, e, devices, &others_wait);
        /* A look takes milliseconds. Where it does not come, the other devices have a head in it meanwhile. */
        if (entry_waited_ms(e, w->now_ms) > w->config.reading_max_age_ms && become_head(p, e, NULL, NO_DEVICE))
                return;

        uint32_t first = (uint32_t) __builtin_ctzll(devices);
        const struct device *dev = &w->devices[first];
        struct standing wait = standings[first];
        wait.starts = false;
        wait.rule = dev->settled || dev->reading_ms == 0 ? RULE_READING_STALE : RULE_READING_UNSETTLED;
        if (others_wait && !is_newcomer(p, e) && !e->no_wait)
                return; /* it waits behind somebody who waits for the look, which is nothing to tell */
        if (!must_tell(p, e, (enum rule) wait.rule, false))
                return;

        struct reason why;
        fill_reason(p, &why, first, e, &wait);
        tell_wait(p, e, &why, false);
}

/* It fitted when it came, and now what can ever be given is less on each of its devices: told, and it waits on, for what
 * takes it away may end. */
static bool is_too_large(struct pass *p, struct entry *e)
{
        struct world *w = p->world;
        uint32_t best = NO_DEVICE;
        uint64_t best_bytes = 0;

        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!(e->devices & (UINT64_C(1) << d)) || !lane_of(p, d)->usable)
                        continue;
                uint64_t bytes = p->lanes[d].ceiling_bytes;
                if (e->demand_bytes <= bytes)
                        return false;
                if (best == NO_DEVICE || bytes > best_bytes) {
                        best = d;
                        best_bytes = bytes;
                }
        }
        if (best == NO_DEVICE)
                return false;
        if (!must_tell(p, e, RULE_ABOVE_CEILING, false))
                return true;

        struct reason why = {
                .rule = RULE_ABOVE_CEILING, .place = p->place, .n_waiting = p->n_waiting, .need_bytes = e->demand_bytes
        };
        (void) device_ceiling_bytes(w, best, &why);
        tell_wait(p, e, &why, false);
        return true;
}

static void set_demand(struct pass *p, struct entry *e, struct lease *lease, uint64_t bytes)
{
        struct world *w = p->world;

        e->demand_bytes = lease->bytes = bytes;
        world_each_holder_of (w, i, HOLDER_CLAIM)
                if (ref_equal(w->holders[i].entry, world_entry_ref(w, e)) && w->holders[i].reserved_bytes > bytes) {
                        world_holder_writing(w, &w->holders[i]);
                        w->holders[i].reserved_bytes = bytes;
                        world_holder_written(w, &w->holders[i]);
                }
}

/*
 * The whole of a device was asked for, and what that comes to shows late: what the driver keeps only when the device is
 * empty, a display when it is switched on. Without following it would wait on an empty device for ever; without following
 * upwards the more that can be had would be somebody else's, beside it.
 */
static void follow_whole(struct pass *p, struct entry *e)
{
        struct world *w = p->world;
        struct lease *lease = e->least_bytes == 0 || e->kind != ENTRY_REQUEST ? NULL : world_lease_get(w, e->lease);
        uint64_t whole_bytes = 0;

        if (!lease)
                return;
        for (uint32_t d = 0; d < w->n_devices; d++)
                if ((e->devices & (UINT64_C(1) << d)) && lane_of(p, d)->usable)
                        whole_bytes = u64_max(whole_bytes, device_whole_bytes(w, d));
        if (whole_bytes < e->least_bytes)
                return;
        set_demand(p, e, lease, whole_bytes);
}

/* The same for a share of a device, but downwards only: "all" of what can be given is less when less can be given (the
 * driver's own shows when the device is empty), and nobody waits on an empty device for what it never gives. */
static void follow_share(struct pass *p, struct entry *e)
{
        struct world *w = p->world;
        struct lease *lease = e->percent_milli == 0 ? NULL : world_lease_get(w, e->lease);
        uint64_t ceiling_bytes = 0;

        if (!lease)
                return;
        for (uint32_t d = 0; d < w->n_devices; d++)
                if ((e->devices & (UINT64_C(1) << d)) && lane_of(p, d)->usable)
                        ceiling_bytes = u64_max(ceiling_bytes, lane_of(p, d)->ceiling_bytes);
        uint64_t share = (uint64_t) ((unsigned __int128) ceiling_bytes * e->percent_milli / PERCENT_ALL);
        if (share != 0 && share < e->demand_bytes)
                set_demand(p, e, lease, share);
}

static void start(struct pass *p, struct entry *e, uint32_t device, const struct standing *s)
{
        if (e->kind == ENTRY_THAW)
                bring_back(p, e, device, s);
        else
                grant(p, e, device, s);
}

/* What a return needs moves with what the device can give. */
static void follow_need(struct pass *p, struct entry *e)
{
        struct lease *lease = e->kind == ENTRY_THAW ? world_lease_get(p->world, e->lease) : NULL;

        if (lease)
                e->demand_bytes = thaw_demand_bytes(p->world, lease);
}

/* What comes back makes room where it was. */
static uint64_t ledger_room_for(const struct pass *p, const struct entry *e)
{
        struct lease *lease = e->kind == ENTRY_THAW ? world_lease_get(p->world, e->lease) : NULL;

        return lease ? u64_add_sat(p->ledger_room_bytes, lease->park.charged_bytes) : p->ledger_room_bytes;
}

static bool last_look_allows(const struct pass *p, const struct entry *e)
{
        struct lease *lease = world_lease_get(p->world, e->lease);

        return !lease || thaw_keeps_waiting(p->world, lease, NULL) == RULE_NONE;
}

/* Its memory is being taken back: it starts when all of it is there, and claims what is there already. */
static void serve_plan(struct pass *p, struct entry *e, struct plan *plan)
{
        struct world *w = p->world;
        uint32_t device = plan->device;
        struct lane *lane = lane_of(p, device);
        const struct holder *claim = world_holder_get(w, plan->claim);
        struct standing s = { .rule = RULE_RECLAIMING, .room_bytes = lane->free_bytes + plan_claimed_bytes(w, plan) };
        struct sums sums = lane->now;

        if (claim)
                sums_take_out(&sums, claim);
        bool there = plan_has_enough(w, plan) && !(e->least_bytes != 0 && lane->has_leases) && lane->exclusive_id == 0;
        if (there && lane->fresh && !lane->pending) {
                s.booking = booking_in_the_way(w, device, &sums, e, ledger_room_for(p, e), NULL, &s.promise);
                if (s.booking) { /* made since the plan began: it waits, and who gave way comes back */
                        plan_end(w, plan);
                        lane_refresh(w, device, lane);
                        return;
                }
                s.rule = RULE_RECLAIMED;
                s.starts = true;
                lane->now = sums;
                lane->free_bytes = sums_free_bytes(&sums);
                plan_end(w, plan);
                start(p, e, device, &s);
                return;
        }
        if (there) {
                bool others_wait;
                order_looks(p, e, UINT64_C(1) << device, &others_wait);
        }
        if (!must_tell(p, e, RULE_RECLAIMING, false))
                return;
        struct reason why;
        fill_reason(p, &why, device, e, &s);
        why.reserved_bytes = plan_claimed_bytes(w, plan);
        for (uint32_t v = 0; v < plan->n_victims; v++) {
                const struct lease *lease = world_lease_get(w, plan->victims[v].lease);
                if (lease)
                        reason_add_blocker(&why, &(struct blocker){ .kind = BLOCKER_LEASE,
                                                                    .lease_id = lease->id,
                                                                    .bytes = lease->bytes });
        }
        tell_wait(p, e, &why, false);
}

static bool is_of_leases(const struct world *w, const struct reclaim *r)
{
        for (uint32_t i = 0; i < r->n; i++)
                if (w->holders[r->steps[i].holder].kind != HOLDER_LEASE)
                        return false;
        return true;
}

/*
 * It cannot start: could others give way to it? Only who is first on a device, or more important than who is, asks that. One
 * reading that is unsettled or old may delay it; nothing is begun by it. Where it does not suffice, *ret_device is where that was
 * found.
 */
static bool reclaim_for(struct pass *p, struct entry *e, uint32_t *ret_device)
{
        struct world *w = p->world;
        const struct lease *lease = world_lease_get(w, e->lease);
        struct reclaim best;
        uint64_t unread = 0;
        bool others_wait;

        *ret_device = NO_DEVICE;
        if (e->no_wait || w->degraded || !lease)
                return false;
        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!(e->devices & (UINT64_C(1) << d)))
                        continue;
                struct lane *lane = lane_of(p, d);
                if (!lane->usable || lane->pending || e->demand_bytes > lane->ceiling_bytes ||
                    world_tally(w, d)->n_giving == 0)
                        continue;
                if (lane->head && lane->head != e && !rank_passes(&w->config, e->priority, lane->head_rank))
                        continue;

                struct reclaim_demand demand = demand_of(w, e, d);
                struct reclaim r;
                reclaim_plan(w, &demand, &r, NULL);
                struct ref promise;
                if (r.suffices && booking_in_the_way(w, d, &lane->now, e, ledger_room_for(p, e), &r, &promise))
                        continue; /* nobody gives way in vain */
                bool better = *ret_device == NO_DEVICE || (r.suffices && !best.suffices) ||
                              (r.suffices && best.suffices && r.n < best.n);
                if (r.suffices && r.n != 0 && !lane->fresh) {
                        unread |= UINT64_C(1) << d;
                        continue;
                }
                if (!better || !is_of_leases(w, &r))
                        continue;
                best = r;
                *ret_device = d;
        }
        if (unread != 0 && !(*ret_device != NO_DEVICE && best.suffices))
                order_looks(p, e, unread, &others_wait);
        if (*ret_device == NO_DEVICE)
                return false;
        if (!best.suffices || best.n == 0)
                return false;
        struct reason why = { .rule = RULE_PLAN_BEGAN,
                              .need_bytes = e->demand_bytes,
                              .free_bytes = p->lanes[*ret_device].free_bytes,
                              .total_bytes = p->lanes[*ret_device].now.total_bytes };
        reclaim_name_victims(w, &best, &why);
        struct plan *plan = plan_begin(w, e, *ret_device, &best, &why, p->out);
        if (!plan)
                return false;
        lane_refresh(w, *ret_device, &p->lanes[*ret_device]);
        leave_heads(p, e);
        e->is_head = false;
        e->head_is_finite = true; /* a plan is as good as a start: should it fail, nobody came before it meanwhile */
        e->start_ms = 0;
        serve_plan(p, e, plan);
        return true;
}

/* Parked, it fits, and yet it does not come back now: told once, and nobody behind it waits for that. */
static bool stays_parked(struct pass *p, struct entry *e)
{
        struct world *w = p->world;
        const struct lease *lease = e->kind == ENTRY_THAW ? world_lease_get(w, e->lease) : NULL;

        if (!lease)
                return false;
        enum rule rule = thaw_keeps_waiting(w, lease, NULL);
        if (rule == RULE_NONE || rule == RULE_NO_ROOM)
                return false;
        if (!must_tell(p, e, rule, false))
                return true;
        struct reason why = {
                .rule = (uint16_t) rule, .place = p->place, .n_waiting = p->n_waiting, .need_bytes = e->demand_bytes
        };
        (void) thaw_keeps_waiting(w, lease, &why);
        tell_wait(p, e, &why, false);
        return true;
}

/* It could start, but for what was promised to others for later. */
static void mind_bookings(struct pass *p, const struct entry *e, uint32_t device, struct standing *s)
{
        s->booking = booking_in_the_way(p->world, device, &p->lanes[device].now, e, ledger_room_for(p, e), NULL,
                                        &s->promise);
        if (!s->booking)
                return;
        s->starts = false;
        s->rule = RULE_BEFORE_BOOKING;
}

/* One of its other devices has become free meanwhile: it starts there, and nobody else is taken from for it. */
static bool start_elsewhere(struct pass *p, struct entry *e, struct plan *plan)
{
        struct world *w = p->world;

        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!(e->devices & (UINT64_C(1) << d)) || d == plan->device)
                        continue;
                struct lane *lane = lane_of(p, d);
                if (!lane->usable || !lane->fresh || lane->pending)
                        continue;
                lane_keep_head(w, d, lane, e);
                struct standing s = lane_stand(w, lane, e, ledger_room_for(p, e));
                if (s.starts)
                        mind_bookings(p, e, d, &s);
                if (!s.starts || (e->kind == ENTRY_THAW && !last_look_allows(p, e)))
                        continue;
                uint32_t planned = plan->device;
                plan_end(w, plan);
                if (p->lanes[planned].looked)
                        lane_refresh(w, planned, &p->lanes[planned]);
                start(p, e, d, &s);
                return true;
        }
        return false;
}

static void look_at(struct pass *p, struct entry *e)
{
        struct world *w = p->world;
        struct pick picks[DEVICES_MAX];
        struct standing standings[DEVICES_MAX];
        size_t n_picks = 0;
        uint64_t unread = 0; /* devices it would start on, but for the reading */
        uint32_t nearest = NO_DEVICE;

        struct plan *plan = world_plan_of(w, world_entry_ref(w, e));
        if (plan && !lane_of(p, plan->device)->usable) {
                uint32_t device = plan->device;
                plan_end(w, plan); /* nothing will come back there: another device may do */
                lane_refresh(w, device, &p->lanes[device]);
                plan = NULL;
        }
        if (plan && start_elsewhere(p, e, plan))
                return;
        if (plan) {
                follow_need(p, e);
                if (plan->need_bytes != e->demand_bytes) {
                        plan_set_need(w, plan, e->demand_bytes);
                        lane_refresh(w, plan->device, lane_of(p, plan->device));
                }
                serve_plan(p, e, plan);
                return;
        }
        if (stays_parked(p, e))
                return;
        follow_whole(p, e);
        follow_share(p, e);
        follow_need(p, e);
        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!(e->devices & (UINT64_C(1) << d)))
                        continue;
                struct lane *lane = lane_of(p, d);
                if (!lane->usable)
                        continue;

                lane_keep_head(w, d, lane, e);
                standings[d] = lane_stand(w, lane, e, ledger_room_for(p, e));
                if (standings[d].starts)
                        mind_bookings(p, e, d, &standings[d]);
                if (e->kind == ENTRY_THAW && standings[d].starts && !last_look_allows(p, e)) {
                        standings[d].starts = false;
                        standings[d].rule = RULE_NO_ROOM;
                }
                if (nearest == NO_DEVICE || standings[d].room_bytes > standings[nearest].room_bytes)
                        nearest = d;
                if (!standings[d].starts && !(e->no_wait && !lane->fresh))
                        continue;
                if (!lane->fresh || lane->pending) {
                        unread |= UINT64_C(1) << d;
                        continue;
                }
                picks[n_picks++] = (struct pick){ .device = d, .free_bytes = standings[d].room_bytes };
        }

        if (nearest == NO_DEVICE) {
                struct reason why = { .rule = RULE_NO_USABLE_DEVICE,
                                      .place = p->place,
                                      .n_waiting = p->n_waiting,
                                      .need_bytes = e->demand_bytes };
                tell_wait(p, e, &why, false);
                return;
        }
        if (n_picks != 0) {
                uint32_t device = picks[pick_best_fit(picks, n_picks)].device;
                start(p, e, device, &standings[device]);
                return;
        }
        if (unread != 0) {
                wait_for_reading(p, e, unread, standings);
                return;
        }
        uint32_t asked;
        if (reclaim_for(p, e, &asked))
                return;
        if (!become_head(p, e, standings, asked) && !is_too_large(p, e))
                stay_behind(p, e, nearest, &standings[nearest]);
}

/* On @devices it stands here, before others that are looked at now: it starts there, or nothing becomes of it yet. */
static bool look_early(struct pass *p, struct entry *e, uint64_t devices)
{
        struct world *w = p->world;
        struct pick picks[DEVICES_MAX];
        struct standing standings[DEVICES_MAX];
        size_t n_picks = 0;
        uint64_t unread = 0;

        if (e->held_since_ms != 0 || e->kind == ENTRY_BOOKING || (e->kind == ENTRY_THAW && !last_look_allows(p, e)))
                return false;
        follow_whole(p, e);
        follow_share(p, e);
        follow_need(p, e);
        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!(devices & (UINT64_C(1) << d)) || !lane_of(p, d)->usable)
                        continue;
                struct lane *lane = &p->lanes[d];
                lane_keep_head(w, d, lane, e);
                standings[d] = lane_stand(w, lane, e, ledger_room_for(p, e));
                if (standings[d].starts)
                        mind_bookings(p, e, d, &standings[d]);
                if (!standings[d].starts)
                        continue;
                if (lane->fresh && !lane->pending)
                        picks[n_picks++] = (struct pick){ .device = d, .free_bytes = standings[d].room_bytes };
                else
                        unread |= UINT64_C(1) << d;
        }
        if (n_picks != 0) {
                uint32_t device = picks[pick_best_fit(picks, n_picks)].device;
                start(p, e, device, &standings[device]);
                return true;
        }
        bool others_wait;
        if (unread != 0)
                order_looks(p, e, unread, &others_wait);
        return false;
}

static void say_claim(struct pass *p, uint32_t device, uint64_t bytes)
{
        struct action *a = actions_add(p->world, p->out, ACTION_WAITING);

        a->device = device;
        a->bytes = bytes;
        a->why = (struct reason){ .rule = RULE_CLAIM_CHANGED, .reserved_bytes = bytes };
}

/* Heads that are heads no longer, and what each head claims: what is free, up to its demand, never more than 4.1 leaves. */
static void settle_lane(struct pass *p, uint32_t device)
{
        struct world *w = p->world;
        struct lane *lane = &p->lanes[device];
        struct entry *head = lane->head;
        struct holder *claim = NULL;
        uint64_t had_bytes = 0;
        bool changed = false;

        if (!lane->looked || (lane->pending && !lane->head))
                return;
        if (lane->old_head && lane->old_head->kind != ENTRY_NONE && lane->old_head != lane->head &&
            lane->old_head->is_head && lane->old_head->head_device == device) {
                lane->old_head->is_head = false;
                lane->old_head->start_ms = 0;
                changed = true;
        }

        if (head && (!head->is_head || head->head_device != device))
                head = NULL; /* it was kept, and became head elsewhere */
        bool claims = head && (lane->start.finite || lane->blocks);
        uint64_t want = claims ? u64_min(head->demand_bytes, sums_free_bytes(&lane->now)) : 0;
        world_each_holder_of (w, i, HOLDER_CLAIM) {
                struct holder *h = &w->holders[i];
                if (h->claim_kind != CLAIM_HEAD || h->device != device)
                        continue;
                had_bytes += h->reserved_bytes;
                if (want != 0 && !claim && ref_equal(h->entry, world_entry_ref(w, head)))
                        claim = h;
                else
                        world_holder_drop(w, h);
        }
        if (want != 0 && (!claim || claim->reserved_bytes != want)) {
                if (claim)
                        world_holder_writing(w, claim);
                else
                        claim = world_holder_new(w, HOLDER_CLAIM, device);
                assert(claim);
                claim->claim_kind = CLAIM_HEAD;
                claim->entry = world_entry_ref(w, head);
                claim->reserved_bytes = want;
                world_holder_written(w, claim);
        }
        /* What only time made change is said: ticks without actions are not kept. */
        if (p->by_time && (changed || want != had_bytes) && p->out->n == 0)
                say_claim(p, device, want);
}

static bool anyone_may_use_ledger(const struct world *w, const uint32_t *order, uint32_t n)
{
        for (uint32_t i = 0; i < n; i++)
                if (ways_out_usable(&w->entries[order[i]].ways) & WAY_OUT_BIT(WAY_OUT_CHECKPOINT))
                        return true;
        return false;
}

static bool has_started(const struct early *early, uint32_t entry)
{
        for (uint32_t k = 0; k < early->n; k++)
                if (early->of[k].entry == entry)
                        return early->of[k].started;
        return false;
}

void admit_pass(struct world *w, struct actions *out, struct newcomer *newcomer, bool by_time)
{
        uint32_t order[ENTRIES_MAX];
        struct early early;

        plans_advance(w, by_time, out);
        uint32_t n = queue_order_now(w, order, &early);
        if (n == 0)
                return;

        struct pass p;
        memset(&p, 0, offsetof(struct pass, lanes) + w->n_devices * sizeof(p.lanes[0]));
        p.world = w;
        p.out = out;
        p.newcomer = newcomer;
        p.by_time = by_time;
        p.n_waiting = n;
        if (anyone_may_use_ledger(w, order, n))
                p.ledger_room_bytes = reclaim_ledger_room_now(w);
        for (uint32_t i = 0; i < n; i++) { /* so that a head that stopped being one is noticed */
                struct entry *e = &w->entries[order[i]];
                if (!e->is_head)
                        continue;
                p.lanes[e->head_device].old_head = e;
                (void) lane_of(&p, e->head_device);
        }
        for (uint32_t i = 0, k = 0; i < n; i++) {
                struct entry *e = &w->entries[order[i]];
                if (!actions_have_room(out, 8))
                        return;

                p.place = i + 1;
                for (; k < early.n && early.of[k].at == i && actions_have_room(out, 8); k++)
                        early.of[k].started = look_early(&p, &w->entries[early.of[k].entry], early.of[k].devices);
                if (has_started(&early, order[i]))
                        continue;
                if (e->held_since_ms != 0) {
                        struct reason why = {
                                .rule = RULE_ON_HOLD, .place = p.place, .n_waiting = n, .need_bytes = e->demand_bytes
                        };
                        tell_wait(&p, e, &why, false);
                        continue;
                }
                if (!booking_is_due(w, e)) {
                        struct reason why = {
                                .rule = RULE_BOOKED, .place = p.place, .n_waiting = n, .need_bytes = e->demand_bytes
                        };
                        why.start_ms = e->due_ms;
                        tell_wait(&p, e, &why, false);
                        continue;
                }
                if (booking_is_over(w, e))
                        continue; /* the next tick says so */
                look_at(&p, e);
        }
        for (uint32_t d = 0; d < w->n_devices; d++)
                settle_lane(&p, d);
}
