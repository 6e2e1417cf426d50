/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/booking.h"
#include "arbiter/actions.h"
#include "arbiter/ceiling.h"
#include "base/number.h"

static bool is_booking(const struct entry *e)
{
        return e->kind == ENTRY_BOOKING;
}

static uint64_t end_of(const struct entry *e)
{
        return e->due_ms + e->limit_ms;
}

bool booking_is_due(const struct world *w, const struct entry *e)
{
        return !is_booking(e) || w->now_ms + w->config.booking_lead_ms >= e->due_ms;
}

bool booking_is_over(const struct world *w, const struct entry *e)
{
        return is_booking(e) && w->now_ms >= end_of(e);
}

static bool overlap(uint64_t a, uint64_t a_end, uint64_t b, uint64_t b_end)
{
        return a < b_end && b < a_end;
}

/* The most that is booked on a device at one moment of [from, to): it is reached where one of them begins. */
static uint64_t booked_bytes(const struct world *w, uint32_t device, uint64_t from_ms, uint64_t to_ms)
{
        uint64_t most = 0;

        for (uint32_t i = 0; i < w->n_entries; i++) {
                const struct entry *at = &w->entries[i];
                uint64_t sum = 0;
                if (!is_booking(at) || !(at->devices & (UINT64_C(1) << device)) ||
                    !overlap(at->due_ms, end_of(at), from_ms, to_ms))
                        continue;
                uint64_t moment_ms = u64_max(at->due_ms, from_ms);
                for (uint32_t k = 0; k < w->n_entries; k++) {
                        const struct entry *b = &w->entries[k];
                        if (is_booking(b) && (b->devices & (UINT64_C(1) << device)) &&
                            overlap(b->due_ms, end_of(b), moment_ms, moment_ms + 1))
                                sum = u64_add_sat(sum, b->demand_bytes);
                }
                most = u64_max(most, sum);
        }
        return most;
}

bool booking_is_possible(struct world *w, const struct request *r, uint64_t bytes, uint64_t devices, uint32_t user,
                         uint32_t *ret_device, struct reason *why)
{
        uint32_t n = 0;
        bool found = false;

        if (r->start_ms <= w->now_ms || r->slot_ms == 0 || r->slot_ms > w->config.booking_ahead_ms ||
            r->start_ms - w->now_ms > w->config.booking_ahead_ms) {
                bool far = r->start_ms > w->now_ms && r->slot_ms != 0;
                *why = (struct reason){ .rule = RULE_BOOKING_PAST, .start_ms = far ? w->config.booking_ahead_ms : 0 };
                return false;
        }
        for (uint32_t i = 0; i < w->n_entries; i++)
                n += is_booking(&w->entries[i]) && w->entries[i].user == user;
        if (!r->is_admin && n >= w->config.bookings_per_user_max) {
                *why = (struct reason){ .rule = RULE_LIMIT_BOOKINGS, .limit = w->config.bookings_per_user_max };
                return false;
        }
        *why = (struct reason){ .rule = RULE_BOOKING_TAKEN, .need_bytes = bytes };
        for (uint32_t d = 0; d < w->n_devices && !found; d++) {
                if (!(devices & (UINT64_C(1) << d)) || w->devices[d].health == DEVICE_PARENT)
                        continue;
                uint64_t ceiling_bytes = device_ceiling_now(w, d);
                uint64_t left_bytes =
                        u64_sub0(ceiling_bytes, booked_bytes(w, d, r->start_ms, r->start_ms + r->slot_ms));
                if (left_bytes >= why->free_bytes) {
                        why->free_bytes = left_bytes;
                        why->ceiling_bytes = ceiling_bytes;
                }
                if (left_bytes >= bytes) {
                        *ret_device = d;
                        found = true;
                }
        }
        return found;
}

static bool is_victim(const struct reclaim *plan, uint32_t holder)
{
        for (uint32_t i = 0; plan && i < plan->n; i++)
                if (plan->steps[i].holder == holder)
                        return true;
        return false;
}

/* It went ahead of that one, and can be taken back: who went ahead beside it, or because he ends in time, need not be. */
static bool gives_way_to(const struct lease *lease, struct ref booking)
{
        return lease && lease->backfilled && ref_equal(lease->backfill_for, booking) &&
               (ways_out_usable(&lease->ways) != 0 || lease->filler);
}

/* The device at a later time: who says that he has left by then is out, and so is who gives way to @booking, or to @plan. */
static struct sums sums_at(struct world *w, uint32_t device, const struct sums *now, uint64_t at_ms,
                           const struct entry *booking, const struct reclaim *plan)
{
        struct sums s = *now;
        struct ref ref = booking ? world_entry_ref(w, booking) : (struct ref){ 0 };

        world_each_holder_on (w, i, device) {
                const struct holder *h = &w->holders[i];
                const struct lease *lease = h->kind == HOLDER_LEASE ? world_lease_get(w, h->lease) : NULL;
                bool gives_way = booking && gives_way_to(lease, ref);
                if (gives_way || is_victim(plan, i))
                        sums_take_out(&s, h);
        }
        const struct leavings *leavings = world_leavings(w, device);
        for (uint32_t i = 0; i < leavings->n && leavings->of[i].end_ms <= at_ms; i++) {
                const struct holder *h = &w->holders[leavings->of[i].holder];
                const struct lease *lease = world_lease_get(w, h->lease);
                bool gives_way = booking && gives_way_to(lease, ref);
                bool lapsed = leavings->of[i].lapses && leavings->of[i].end_ms <= w->now_ms;
                if (!gives_way && !lapsed && !is_victim(plan, leavings->of[i].holder))
                        sums_take_out(&s, h);
        }
        return s;
}

/* Is there room for @more beside @booking when it begins, and beside what else is booked then? */
static bool fits_beside(struct world *w, uint32_t device, const struct sums *now, const struct entry *booking,
                        const struct reclaim *plan, uint64_t more_bytes)
{
        struct sums s = sums_at(w, device, now, booking->due_ms, booking, plan);
        uint64_t booked = booked_bytes(w, device, booking->due_ms, booking->due_ms + 1);

        return sums_fit(&s, u64_add_sat(booked, more_bytes));
}

const struct entry *booking_in_the_way(struct world *w, uint32_t device, const struct sums *now, const struct entry *e,
                                       uint64_t ledger_room, const struct reclaim *plan, struct ref *ret_promise)
{
        *ret_promise = (struct ref){ 0 };
        if (e->priority <= PRIORITY_URGENT)
                return NULL;
        for (uint32_t i = 0; i < w->n_entries; i++) {
                const struct entry *b = &w->entries[i];
                if (!is_booking(b) || b == e || !(b->devices & (UINT64_C(1) << device)))
                        continue;
                uint64_t begins_ms = u64_max(b->due_ms, w->now_ms);
                if (is_booking(e) ? !overlap(e->due_ms, end_of(e), b->due_ms, end_of(b))
                                  : !entry_runs_beyond(w, e, begins_ms))
                        continue;
                if (is_booking(e) || fits_beside(w, device, now, b, plan, e->demand_bytes))
                        continue; /* bookings were found to fit together when they were made */
                bool checkpoint =
                        (ways_out_usable(&e->ways) & WAY_OUT_BIT(WAY_OUT_CHECKPOINT)) && e->demand_bytes <= ledger_room;
                if (!ways_out_without_ledger(&e->ways) && !checkpoint)
                        return b;
                if (ref_is_none(*ret_promise))
                        *ret_promise = world_entry_ref(w, b);
        }
        return NULL;
}

void booking_push(struct world *w, uint32_t device, const struct sums *now, const struct entry *head,
                  struct projection *start)
{
        bool moved = true;

        if (!start->finite || head->priority <= PRIORITY_URGENT || is_booking(head))
                return;
        for (uint32_t round = 0; moved && round < w->n_entries; round++) {
                uint64_t begins_ms = u64_max(start->start_ms, w->now_ms);
                uint64_t ends_ms = head->limit_ms != 0 ? u64_add_sat(begins_ms, head->limit_ms) : UINT64_MAX;
                moved = false;
                for (uint32_t i = 0; i < w->n_entries; i++) {
                        const struct entry *b = &w->entries[i];
                        if (!is_booking(b) || !(b->devices & (UINT64_C(1) << device)) ||
                            !overlap(b->due_ms, end_of(b), begins_ms, ends_ms) ||
                            fits_beside(w, device, now, b, NULL, head->demand_bytes))
                                continue;
                        begins_ms = end_of(b);
                        moved = true;
                        break;
                }
                if (moved) {
                        start->start_ms = begins_ms;
                        start->at_start = sums_at(w, device, now, begins_ms, NULL, NULL);
                }
        }
}
