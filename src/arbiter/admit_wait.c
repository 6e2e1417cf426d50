/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits: as head of which device, behind whom, for a look, and what is told of that. */
#include <string.h>
#include "arbiter/actions.h"
#include "arbiter/admit_pass.h"
#include "arbiter/booking.h"
#include "arbiter/ceiling.h"
#include "arbiter/park.h"
#include "arbiter/rank.h"
#include "base/number.h"

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
bool admit_must_tell(const struct pass *p, const struct entry *e, enum rule rule, bool start_changed)
{
        return e->wait_kind != wait_kind_of(rule) || start_changed || e->no_wait || is_newcomer(p, e);
}

/* Whoever does not wait is told no: by a look, or by there being nobody to look. */
static bool is_decided(const struct world *w, enum wait_kind kind)
{
        return kind != WAIT_READING || !w->eyes_answering;
}

void admit_tell_wait(struct pass *p, struct entry *e, const struct reason *why, bool start_changed)
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
static bool choose_head_lane(struct pass *p, const struct entry *e, struct projection starts[DEVICES_MAX],
                             uint64_t *ret_devices)
{
        struct world *w = p->world;
        struct projection best = { .finite = false };
        uint32_t device = NO_DEVICE;

        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!(e->devices & (UINT64_C(1) << d)))
                        continue;
                struct lane *lane = lane_of(p, d);
                bool is_here = entry_is_head_of(e, d);
                if (!lane->usable || (lane->head && lane->head != e) || (lane->pending && !is_here) ||
                    e->demand_bytes > lane->ceiling_bytes)
                        continue;

                struct projection start;
                project_start(w, d, &lane->now, e, &start);
                booking_push(w, d, &lane->now, e, &start);
                bool sooner = start.finite && (!best.finite || start.start_ms < best.start_ms);
                bool as_soon = start.finite == best.finite && start.start_ms == best.start_ms;
                if (device != NO_DEVICE && !sooner && !(is_here && as_soon))
                        continue;
                device = d;
                best = start;
        }
        if (device == NO_DEVICE)
                return false;
        starts[device] = best;
        *ret_devices = UINT64_C(1) << device;
        return true;
}

void admit_say_booking(struct pass *p, const struct entry *booking, struct reason *why)
{
        why->head_lease_id = admit_lease_id_of_entry(p->world, booking);
        why->start_ms = booking->due_ms;
}

struct reclaim_demand admit_demand_of(const struct world *w, const struct entry *e, uint32_t device)
{
        return (struct reclaim_demand){ .device = device,
                                        .bytes = e->demand_bytes,
                                        .priority = e->priority,
                                        .entry = world_entry_ref(w, e),
                                        .leaving_ledger_bytes = w->leases[e->lease.index].park.charged_bytes };
}

/* Why nobody's memory on @device is taken back for it; false: of that nothing is to be said. Worked out only where it is told. */
bool admit_say_nobody_gives_way(struct world *w, const struct entry *e, uint32_t device, struct reason *why)
{
        struct reason cannot = { 0 };
        struct reclaim found;

        if (device == NO_DEVICE)
                return false;
        struct reclaim_demand demand = admit_demand_of(w, e, device);
        reclaim_plan(w, &demand, &found, &cannot);
        if (cannot.n_blockers == 0)
                return false;
        why->n_blockers = cannot.n_blockers;
        memcpy(why->blockers, cannot.blockers, sizeof(why->blockers));
        why->earliest_ms = cannot.earliest_ms;
        return true;
}

void admit_leave_head(struct world *w, struct entry *e)
{
        e->is_head = false;
        e->start_ms = 0;
        if (e->n_more == 0)
                return; /* its claim goes when its device is settled */
        e->head_devices = 0;
        world_each_holder_of (w, i, HOLDER_CLAIM)
                if (w->holders[i].claim_kind == CLAIM_HEAD && ref_equal(w->holders[i].entry, world_entry_ref(w, e)))
                        world_holder_drop(w, &w->holders[i]);
}

/* It can start when the last of its devices is ready; without a start on each it claims nothing on any. Returns that device. */
static uint32_t join_starts(uint64_t devices, struct projection *starts, bool *ret_finite)
{
        uint32_t last = (uint32_t) __builtin_ctzll(devices);

        for (uint64_t rest = devices; rest != 0; rest &= rest - 1) {
                uint32_t d = (uint32_t) __builtin_ctzll(rest);
                if (starts[last].finite && (!starts[d].finite || starts[d].start_ms > starts[last].start_ms))
                        last = d;
        }
        *ret_finite = starts[last].finite;
        for (uint64_t rest = devices; rest != 0 && !*ret_finite; rest &= rest - 1)
                starts[__builtin_ctzll(rest)].finite = false;
        return last;
}

/* It is head of @devices now; who was before it there is so no more. */
static void take_head(struct pass *p, struct entry *e, uint64_t devices)
{
        struct world *w = p->world;

        if (entry_head_devices(e) != devices) {
                world_each_holder_of (w, i, HOLDER_CLAIM) /* a claim left on another device */
                        if ((devices >> w->holders[i].device & 1) == 0 &&
                            ref_equal(w->holders[i].entry, world_entry_ref(w, e)))
                                world_holder_drop(w, &w->holders[i]);
                for (uint64_t rest = devices; rest != 0; rest &= rest - 1) {
                        uint32_t d = (uint32_t) __builtin_ctzll(rest);
                        struct entry *old = p->lanes[d].old_head;
                        if (old && old != e && entry_is_head_of(old, d))
                                admit_leave_head(w, old);
                }
        }
        e->is_head = true;
        e->head_device = (uint32_t) __builtin_ctzll(devices);
        e->head_devices = e->n_more != 0 ? devices : 0;
        if (e->head_since_ms == 0)
                e->head_since_ms = w->now_ms != 0 ? w->now_ms : 1;
}

/* @e cannot start: if one of its devices has no head yet, it is that head. @asked: the device on which others were looked for
 * who could give way to it; NO_DEVICE = none. */
bool admit_become_head(struct pass *p, struct entry *e, const struct standing *standings, uint32_t asked)
{
        struct world *w = p->world;
        struct projection starts[DEVICES_MAX]; /* of the chosen ones */
        uint64_t devices = 0;
        bool finite;

        if (e->no_wait ||
            !(e->n_more != 0 ? admit_choose_heads(p, e, starts, &devices) : choose_head_lane(p, e, starts, &devices)))
                return false;
        uint32_t device = join_starts(devices, starts, &finite);
        uint64_t start_ms = finite ? starts[device].start_ms : 0;

        bool blocks = e->kind == ENTRY_BOOKING; /* it was promised: new work that would stay waits */
        if (!finite && !blocks && !keep_blocking(p, e, &blocks)) {
                for (uint32_t d = 0; d < w->n_devices; d++)
                        if (p->lanes[d].head == e)
                                p->lanes[d].head = NULL;
                return false;
        }

        const struct standing *s = standings ? &standings[device] : NULL;
        struct lane *lane = &p->lanes[device];
        bool start_changed = entry_head_devices(e) != devices || e->start_ms != start_ms;
        for (uint64_t rest = devices; rest != 0; rest &= rest - 1) {
                uint32_t d = (uint32_t) __builtin_ctzll(rest);
                lane_set_head(&p->lanes[d], e, entry_rank(&w->config, e, w->now_ms), blocks, &starts[d]);
        }
        take_head(p, e, devices);
        e->head_is_finite = e->head_is_finite || finite;
        e->start_ms = start_ms;

        enum rule rule = lane->exclusive_id != 0 ? RULE_EXCLUSIVE_HOLDS
                         : s && s->booking       ? RULE_BEFORE_BOOKING
                                                 : RULE_NO_ROOM;
        if (!admit_must_tell(p, e, rule, start_changed))
                return true;
        struct reason why;
        admit_fill_reason(p, &why, device, e, &(struct standing){ .rule = (uint16_t) rule });
        why.start_ms = e->start_ms;
        if (rule == RULE_BEFORE_BOOKING)
                admit_say_booking(p, s->booking, &why);
        if (!admit_say_nobody_gives_way(w, e, asked, &why))
                reason_add_holders(&why, w, device, world_entry_ref(w, e));
        admit_tell_wait(p, e, &why, start_changed);
        return true;
}

/* Behind the heads of all its devices: which of them it would come closest on. */
void admit_stay_behind(struct pass *p, struct entry *e, uint32_t device, const struct standing *s)
{
        struct reason why;

        if (!admit_must_tell(p, e, (enum rule) s->rule, false))
                return;
        admit_fill_reason(p, &why, device, e, s);
        if (why.rule == RULE_BEFORE_BOOKING)
                admit_say_booking(p, s->booking, &why);
        if (why.rule == RULE_NO_ROOM || why.rule == RULE_EXCLUSIVE_HOLDS)
                reason_add_holders(&why, p->world, device, world_entry_ref(p->world, e));
        admit_tell_wait(p, e, &why, false);
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
void admit_order_looks(struct pass *p, struct entry *e, uint64_t devices, bool *ret_others_wait)
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

void admit_wait_for_reading(struct pass *p, struct entry *e, uint64_t devices, const struct standing *standings)
{
        struct world *w = p->world;
        bool others_wait;

        admit_order_looks(p, e, devices, &others_wait);
        /* A look takes milliseconds. Where it does not come, the other devices have a head in it meanwhile. */
        if (entry_waited_ms(e, w->now_ms) > w->config.reading_max_age_ms && admit_become_head(p, e, NULL, NO_DEVICE))
                return;

        uint32_t first = (uint32_t) __builtin_ctzll(devices);
        const struct device *dev = &w->devices[first];
        struct standing wait = standings[first];
        wait.starts = false;
        wait.rule = dev->settled || dev->reading_ms == 0 ? RULE_READING_STALE : RULE_READING_UNSETTLED;
        if (others_wait && !is_newcomer(p, e) && !e->no_wait)
                return; /* it waits behind somebody who waits for the look, which is nothing to tell */
        if (!admit_must_tell(p, e, (enum rule) wait.rule, false))
                return;

        struct reason why;
        admit_fill_reason(p, &why, first, e, &wait);
        admit_tell_wait(p, e, &why, false);
}

/* It fitted when it came, and now what can ever be given is less on each of its devices: told, and it waits on, for what
 * takes it away may end. */
bool admit_is_too_large(struct pass *p, struct entry *e)
{
        struct world *w = p->world;
        uint32_t best = NO_DEVICE, n_fitting = 0;
        uint64_t best_bytes = 0;

        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!(e->devices & (UINT64_C(1) << d)) || !lane_of(p, d)->usable)
                        continue;
                uint64_t bytes = p->lanes[d].ceiling_bytes;
                if (e->demand_bytes <= bytes) {
                        if (++n_fitting > e->n_more)
                                return false;
                        continue;
                }
                if (best == NO_DEVICE || bytes > best_bytes) {
                        best = d;
                        best_bytes = bytes;
                }
        }
        if (best == NO_DEVICE)
                return false;
        if (!admit_must_tell(p, e, RULE_ABOVE_CEILING, false))
                return true;

        struct reason why = {
                .rule = RULE_ABOVE_CEILING, .place = p->place, .n_waiting = p->n_waiting, .need_bytes = e->demand_bytes
        };
        (void) device_ceiling_bytes(w, best, &why);
        admit_tell_wait(p, e, &why, false);
        return true;
}

/* Parked, it fits, and yet it does not come back now: told once, and nobody behind it waits for that. */
bool admit_stays_parked(struct pass *p, struct entry *e)
{
        struct world *w = p->world;
        const struct lease *lease = e->kind == ENTRY_THAW ? world_lease_get(w, e->lease) : NULL;

        if (!lease)
                return false;
        enum rule rule = thaw_keeps_waiting(w, lease, NULL);
        if (rule == RULE_NONE || rule == RULE_NO_ROOM)
                return false;
        if (!admit_must_tell(p, e, rule, false))
                return true;
        struct reason why = {
                .rule = (uint16_t) rule, .place = p->place, .n_waiting = p->n_waiting, .need_bytes = e->demand_bytes
        };
        (void) thaw_keeps_waiting(w, lease, &why);
        admit_tell_wait(p, e, &why, false);
        return true;
}
