/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/project.h"
#include "base/number.h"

/* When it leaves by its own word; 0 = nobody knows (any more). */
static uint64_t end_of(const struct world *w, const struct leaving *leaving)
{
        return leaving->lapses && leaving->end_ms <= w->now_ms ? 0 : leaving->end_ms;
}

static bool gives_way_to(const struct world *w, const struct holder *h, struct ref head)
{
        if (h->kind != HOLDER_LEASE || h->lease.index >= w->n_leases)
                return false;

        const struct lease *lease = &w->leases[h->lease.index];
        return lease->backfilled && ref_equal(lease->backfill_for, head) && ways_out_usable(&lease->ways) != 0;
}

/* Can @head never be beside this one? */
static bool keeps_out(const struct world *w, const struct holder *h, const struct entry *head)
{
        return (h->exclusive || (head->least_bytes != 0 && holder_is_lease_there(w, h))) &&
               !gives_way_to(w, h, world_entry_ref(w, head));
}

/*
 * Beside whom @head can never be, whatever is free: an exclusive lease, and, where it wants to be exclusive itself, any.
 * Returns whether there is one; *ret_ms is when the last of them has left, 0 = nobody knows.
 */
static bool waits_for_leases(struct world *w, uint32_t device, const struct entry *head, uint64_t *ret_ms)
{
        uint32_t n_in_the_way = 0, n_leaving = 0;

        *ret_ms = 0;
        if (head->least_bytes == 0 && world_tally(w, device)->exclusive_id == 0)
                return false;
        world_each_holder_on (w, i, device)
                n_in_the_way += keeps_out(w, &w->holders[i], head);
        const struct leavings *leavings = world_leavings(w, device);
        for (uint32_t i = 0; i < leavings->n; i++) {
                uint64_t end_ms = end_of(w, &leavings->of[i]);
                if (end_ms == 0 || !keeps_out(w, &w->holders[leavings->of[i].holder], head))
                        continue;
                n_leaving++;
                *ret_ms = u64_max(*ret_ms, end_ms);
        }
        if (n_leaving != n_in_the_way)
                *ret_ms = 0;
        return n_in_the_way != 0;
}

/* Who gives way to @head is out of the sums at once. */
static void take_out_yielding(struct world *w, uint32_t device, struct ref head, struct sums *s)
{
        if (world_tally(w, device)->n_yielding == 0)
                return;
        world_each_holder_on (w, i, device)
                if (gives_way_to(w, &w->holders[i], head))
                        sums_take_out(s, &w->holders[i]);
}

/* The next who leaves, from *at on, that has not given way; NULL: no more. */
static const struct leaving *next_leaving(const struct world *w, const struct leavings *leavings, struct ref head,
                                          uint32_t *at)
{
        for (; *at < leavings->n; (*at)++) {
                const struct leaving *leaving = &leavings->of[*at];
                if (end_of(w, leaving) != 0 && !gives_way_to(w, &w->holders[leaving->holder], head))
                        return leaving;
        }
        return NULL;
}

void project_start(struct world *w, uint32_t device, const struct sums *now, const struct entry *head,
                   struct projection *ret)
{
        struct ref head_ref = world_entry_ref(w, head);

        *ret = (struct projection){ .at_start = *now, .start_ms = head->arrived_ms };
        uint64_t not_before_ms;
        bool waits = waits_for_leases(w, device, head, &not_before_ms);
        if (waits && not_before_ms == 0) {
                ret->start_ms = 0;
                return;
        }
        if (!waits && sums_fit(now, head->demand_bytes)) {
                ret->finite = true;
                ret->start_ms = ret->start_ms != 0 ? ret->start_ms : 1; /* 0 means unknown */
                return;
        }

        take_out_yielding(w, device, head_ref, &ret->at_start);
        const struct leavings *leavings = world_leavings(w, device);
        uint32_t at = 0;
        const struct leaving *next = next_leaving(w, leavings, head_ref, &at);
        while (!sums_fit(&ret->at_start, head->demand_bytes) || ret->start_ms < not_before_ms) {
                if (!next) {
                        ret->start_ms = 0;
                        return;
                }
                sums_take_out(&ret->at_start, &w->holders[next->holder]);
                ret->start_ms = next->end_ms;
                at++;
                next = next_leaving(w, leavings, head_ref, &at);
        }
        ret->finite = true;
        ret->start_ms = ret->start_ms != 0 ? ret->start_ms : 1;

        /* Whatever else ends by then is gone too: "beside" is judged at that moment. */
        while (next && next->end_ms <= ret->start_ms) {
                sums_take_out(&ret->at_start, &w->holders[next->holder]);
                at++;
                next = next_leaving(w, leavings, head_ref, &at);
        }
}
