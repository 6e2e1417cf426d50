/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/project.h"
#include "base/number.h"

uint64_t settle_ms(uint64_t bytes)
{
        return bytes / 2000000 + 30000; /* 2 GB/s is 2,000,000 bytes a millisecond */
}

bool holder_is_lease_there(const struct world *w, const struct holder *h)
{
        if (h->kind != HOLDER_LEASE || h->lease.index >= w->n_leases)
                return false;

        enum lease_state state = (enum lease_state) w->leases[h->lease.index].state;
        return state != LEASE_DRAINING && state != LEASE_PARKED;
}

bool sums_fit(const struct sums *s, uint64_t bytes)
{
        uint64_t committed = sums_committed_bytes(s);
        return committed <= s->total_bytes && bytes <= s->total_bytes - committed;
}

/* When this holder leaves by its own word; 0 = nobody knows. */
static uint64_t end_of(const struct world *w, const struct holder *h)
{
        if (h->kind != HOLDER_LEASE || h->pinned || h->lease.index >= w->n_leases)
                return 0;

        const struct lease *lease = &w->leases[h->lease.index];
        if (lease->state == LEASE_DRAINING) {
                uint64_t end_ms = lease->ended_ms + settle_ms(h->used_bytes);
                return end_ms > w->now_ms ? end_ms : 0;
        }
        if (lease->slot_end_ms == 0)
                return 0;
        if (lease->kill_at_end) { /* to this it is held, with the grace it has */
                uint64_t end_ms = lease->slot_end_ms + w->config.end_grace_ms;
                return end_ms > w->now_ms ? end_ms : 0;
        }
        /* A passed end without a usable way out is no end. */
        if (lease->slot_end_ms <= w->now_ms && ways_out_usable(&lease->ways) == 0)
                return 0;
        return lease->slot_end_ms;
}

static bool gives_way_to(const struct world *w, const struct holder *h, struct ref head)
{
        if (h->kind != HOLDER_LEASE || h->lease.index >= w->n_leases)
                return false;

        const struct lease *lease = &w->leases[h->lease.index];
        return lease->backfilled && ref_equal(lease->backfill_for, head) && ways_out_usable(&lease->ways) != 0;
}

/*
 * Beside whom @head can never be, whatever is free: an exclusive lease, and, where it wants to be exclusive itself, any.
 * Returns whether there is one; *ret_ms is when the last of them has left, 0 = nobody knows.
 */
static bool waits_for_leases(const struct world *w, uint32_t device, const struct entry *head, uint64_t *ret_ms)
{
        bool any = false, known = true;

        *ret_ms = 0;
        world_each_holder_on (w, i, device) {
                const struct holder *h = &w->holders[i];
                bool keeps_out = h->exclusive || (head->least_bytes != 0 && holder_is_lease_there(w, h));
                if (!keeps_out || gives_way_to(w, h, world_entry_ref(w, head)))
                        continue;
                uint64_t end_ms = end_of(w, h);
                any = true;
                known = known && end_ms != 0;
                *ret_ms = u64_max(*ret_ms, end_ms);
        }
        if (!known)
                *ret_ms = 0;
        return any;
}

/* Who leaves a device, soonest first: a binary heap, since mostly only the first few are asked for. Ties go by row. */
struct leaving {
        uint64_t end_ms;
        uint32_t holder;
};

struct leavings {
        uint32_t n;
        struct leaving heap[LEASES_MAX];
};

static bool leaves_before(struct leaving a, struct leaving b)
{
        return a.end_ms != b.end_ms ? a.end_ms < b.end_ms : a.holder < b.holder;
}

/* Lets what stands @at sink to where it belongs; all below is in order. */
static void leavings_sink(struct leavings *l, uint32_t at)
{
        struct leaving one = l->heap[at];

        for (;;) {
                uint32_t child = 2 * at + 1;
                if (child + 1 < l->n && leaves_before(l->heap[child + 1], l->heap[child]))
                        child++;
                if (child >= l->n || !leaves_before(l->heap[child], one))
                        break;
                l->heap[at] = l->heap[child];
                at = child;
        }
        l->heap[at] = one;
}

static void leavings_drop_first(struct leavings *l)
{
        l->heap[0] = l->heap[--l->n];
        leavings_sink(l, 0);
}

/* Those on @device that say when they leave; who gives way to @head is taken out of @s at once. */
static void leavings_find(const struct world *w, uint32_t device, struct ref head, struct sums *s, struct leavings *ret)
{
        ret->n = 0;
        world_each_holder_on (w, i, device) {
                const struct holder *h = &w->holders[i];
                if (h->kind != HOLDER_LEASE)
                        continue;
                if (gives_way_to(w, h, head)) {
                        sums_take_out(s, h);
                        continue;
                }
                uint64_t end_ms = end_of(w, h);
                if (end_ms != 0)
                        ret->heap[ret->n++] = (struct leaving){ .end_ms = end_ms, .holder = i };
        }
        for (uint32_t at = ret->n / 2; at > 0; at--)
                leavings_sink(ret, at - 1);
}

void project_start(const struct world *w, uint32_t device, const struct sums *now, const struct entry *head,
                   struct projection *ret)
{
        struct leavings leavings;

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

        leavings_find(w, device, world_entry_ref(w, head), &ret->at_start, &leavings);
        while (!sums_fit(&ret->at_start, head->demand_bytes) || ret->start_ms < not_before_ms) {
                if (leavings.n == 0) {
                        ret->start_ms = 0;
                        return;
                }
                sums_take_out(&ret->at_start, &w->holders[leavings.heap[0].holder]);
                ret->start_ms = leavings.heap[0].end_ms;
                leavings_drop_first(&leavings);
        }
        ret->finite = true;
        ret->start_ms = ret->start_ms != 0 ? ret->start_ms : 1;

        /* Whatever else ends by then is gone too: "beside" is judged at that moment. */
        while (leavings.n != 0 && leavings.heap[0].end_ms <= ret->start_ms) {
                sums_take_out(&ret->at_start, &w->holders[leavings.heap[0].holder]);
                leavings_drop_first(&leavings);
        }
}
