/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/project.h"

uint64_t settle_ms(uint64_t bytes)
{
        return bytes / 2000000 + 30000; /* 2 GB/s is 2,000,000 bytes a millisecond */
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

/* The next end after (@end_ms, @after); ties go by row, so that each holder is met once. */
static const struct holder *next_to_leave(const struct world *w, uint32_t device, struct ref head, uint64_t *end_ms,
                                          uint32_t *at)
{
        const struct holder *best = NULL;
        uint64_t best_ms = 0;
        uint32_t best_at = 0;

        for (uint32_t i = 0; i < w->n_holders; i++) {
                const struct holder *h = &w->holders[i];
                if (h->kind != HOLDER_LEASE || h->device != device || gives_way_to(w, h, head))
                        continue;

                uint64_t ms = end_of(w, h);
                if (ms == 0 || ms < *end_ms || (ms == *end_ms && i < *at))
                        continue;
                if (!best || ms < best_ms) {
                        best = h;
                        best_ms = ms;
                        best_at = i;
                }
        }
        if (best) {
                *end_ms = best_ms;
                *at = best_at + 1;
        }
        return best;
}

void project_start(const struct world *w, uint32_t device, const struct sums *now, const struct entry *head,
                   struct projection *ret)
{
        struct ref head_ref = world_entry_ref(w, head);
        uint64_t end_ms = 0;
        uint32_t at = 0;

        *ret = (struct projection){ .at_start = *now, .start_ms = head->arrived_ms };
        for (uint32_t i = 0; i < w->n_holders; i++)
                if (w->holders[i].kind == HOLDER_LEASE && w->holders[i].device == device &&
                    gives_way_to(w, &w->holders[i], head_ref))
                        sums_take_out(&ret->at_start, &w->holders[i]);

        while (!sums_fit(&ret->at_start, head->demand_bytes)) {
                const struct holder *leaving = next_to_leave(w, device, head_ref, &end_ms, &at);
                if (!leaving) {
                        ret->start_ms = 0;
                        return;
                }
                sums_take_out(&ret->at_start, leaving);
                ret->start_ms = end_ms;
        }
        ret->finite = true;

        /* Whatever else ends by then is gone too: "beside" is judged at that moment. */
        for (;;) {
                uint64_t peek_ms = end_ms;
                uint32_t peek_at = at;
                const struct holder *leaving = next_to_leave(w, device, head_ref, &peek_ms, &peek_at);
                if (!leaving || peek_ms > ret->start_ms)
                        break;
                sums_take_out(&ret->at_start, leaving);
                end_ms = peek_ms;
                at = peek_at;
        }
        if (ret->start_ms == 0)
                ret->start_ms = 1; /* 0 means unknown */
}
