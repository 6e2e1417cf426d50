/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "model/tally.h"
#include "base/number.h"
#include "model/world.h"

uint64_t settle_ms(uint64_t bytes)
{
        return bytes / 2000000 + 30000; /* 2 GB/s is 2,000,000 bytes a millisecond */
}

static inline bool lease_is_there(const struct lease *lease)
{
        return lease->state != LEASE_DRAINING && lease->state != LEASE_PARKED;
}

bool holder_is_lease_there(const struct world *w, const struct holder *h)
{
        if (h->kind != HOLDER_LEASE || h->lease.index >= w->n_leases)
                return false;

        return lease_is_there(&w->leases[h->lease.index]);
}

static void grow(uint64_t *sum, uint64_t bytes)
{
        *sum = u64_add_sat(*sum, bytes);
}

/* Inline, so that the sums of a whole device stay in registers. */
static inline void add_to_sums(struct sums *s, const struct holder *h)
{
        grow(&s->reserved_bytes, h->reserved_bytes);
        if (holder_is_promise(h))
                grow(&s->promised_bytes, h->reserved_bytes);
        if (holder_reading_is_known(h)) {
                grow(&s->known_used_bytes, h->used_bytes);
                grow(&s->known_untaken_bytes, u64_sub0(h->reserved_bytes, h->used_bytes));
        } else {
                grow(&s->unknown_reserved_bytes, h->reserved_bytes);
        }
}

void sums_add(struct sums *s, const struct holder *h)
{
        add_to_sums(s, h);
}

static bool yields(const struct lease *lease)
{
        return lease->backfilled && ways_out_usable(&lease->ways) != 0;
}

/* Tenants are asked what they can do, fillers what is proven of them. */
static bool may_give(const struct lease *lease)
{
        return lease->filler || ways_out_usable(&lease->ways) != 0;
}

static inline __attribute__((always_inline)) void add(struct tally *t, const struct world *w, const struct holder *h)
{
        add_to_sums(&t->sums, h);
        grow(&t->listed_bytes, h->used_bytes);
        t->n_keepers += holder_may_keep_back(h);
        t->n_idle += (h->idle_since_ms != 0 || h->rests_since_ms != 0) &&
                     (h->kind == HOLDER_LEASE || h->kind == HOLDER_TENANT);
        t->n_giving += h->kind == HOLDER_TENANT;
        if (h->kind != HOLDER_LEASE || h->lease.index >= w->n_leases)
                return;

        const struct lease *lease = &w->leases[h->lease.index];
        t->n_leases++;
        t->n_there += lease_is_there(lease);
        t->n_yielding += yields(lease);
        t->n_giving += may_give(lease);
        t->n_asking += lease->state == LEASE_ASKING;
        if (h->exclusive)
                t->exclusive_id = lease->id;
}

void tally_make(const struct world *w, uint32_t device, struct tally *ret)
{
        struct tally tally = { .kept = true };

        world_each_holder_on (w, i, device)
                add(&tally, w, &w->holders[i]);
        *ret = tally;
}

void ledger_tally_make(const struct world *w, struct ledger_tally *ret)
{
        struct ledger_tally tally = { .kept = true };

        for (uint32_t i = 0; i < w->n_leases; i++) {
                if (w->lease_ids[i] == 0)
                        continue;
                grow(&tally.planned_bytes, w->leases[i].park.planned_bytes);
                grow(&tally.set_aside_bytes, w->leases[i].ledger_set_aside_bytes);
        }
        *ret = tally;
}

void tally_add(struct tally *t, const struct world *w, const struct holder *h)
{
        add(t, w, h);
}

void tally_take_out(struct tally *t, const struct world *w, const struct holder *h)
{
        struct tally part = { 0 };
        const uint64_t full = UINT64_MAX; /* a sum that came to more than can be told is not known any more */

        add(&part, w, h);
        if (part.exclusive_id != 0 || t->listed_bytes == full || t->sums.reserved_bytes == full ||
            t->sums.known_used_bytes == full)
                t->kept = false;
        t->n_leases -= part.n_leases;
        t->n_there -= part.n_there;
        t->n_keepers -= part.n_keepers;
        t->n_yielding -= part.n_yielding;
        t->n_giving -= part.n_giving;
        t->n_idle -= part.n_idle;
        t->n_asking -= part.n_asking;
        t->listed_bytes -= part.listed_bytes;
        t->sums.reserved_bytes -= part.sums.reserved_bytes;
        t->sums.promised_bytes -= part.sums.promised_bytes;
        t->sums.known_used_bytes -= part.sums.known_used_bytes;
        t->sums.known_untaken_bytes -= part.sums.known_untaken_bytes;
        t->sums.unknown_reserved_bytes -= part.sums.unknown_reserved_bytes;
}

/* When this holder leaves by its own word. Returns false when it says nothing of it. */
static bool find_leaving(const struct world *w, uint32_t row, struct leaving *ret)
{
        const struct holder *h = &w->holders[row];
        if (h->kind != HOLDER_LEASE || h->pinned || h->lease.index >= w->n_leases)
                return false;

        const struct lease *lease = &w->leases[h->lease.index];
        ret->holder = row;
        ret->lapses = true;
        if (lease->state == LEASE_DRAINING) {
                ret->end_ms = lease->ended_ms + settle_ms(h->used_bytes);
        } else if (lease->slot_end_ms == 0) {
                return false;
        } else if (lease->kill_at_end) {
                ret->end_ms =
                        lease->slot_end_ms + w->config.end_grace_ms; /* to this it is held, with the grace it has */
        } else {
                ret->end_ms = lease->slot_end_ms;
                ret->lapses = ways_out_usable(&lease->ways) == 0; /* a passed end without a usable way out is no end */
        }
        return true;
}

static bool leaves_before(const struct leaving *a, const struct leaving *b)
{
        return a->end_ms != b->end_ms ? a->end_ms < b->end_ms : a->holder < b->holder;
}

/* Shell's sort: no memory beside, and quick for the few there mostly are. */
static void sort_leavings(struct leaving *l, uint32_t n)
{
        static const uint32_t gaps[] = { 1750, 701, 301, 132, 57, 23, 10, 4, 1 };

        for (size_t g = 0; g < sizeof(gaps) / sizeof(gaps[0]); g++)
                for (uint32_t i = gaps[g]; i < n; i++) {
                        struct leaving one = l[i];
                        uint32_t at = i;
                        for (; at >= gaps[g] && leaves_before(&one, &l[at - gaps[g]]); at -= gaps[g])
                                l[at] = l[at - gaps[g]];
                        l[at] = one;
                }
}

void leavings_make(const struct world *w, uint32_t device, struct leavings *ret)
{
        ret->n = 0;
        world_each_holder_on (w, i, device)
                ret->n += find_leaving(w, i, &ret->of[ret->n]);
        sort_leavings(ret->of, ret->n);
        ret->kept = true;
}

void leavings_add(struct leavings *l, const struct world *w, const struct holder *h)
{
        struct leaving one;
        if (!find_leaving(w, (uint32_t) (h - w->holders), &one))
                return;

        uint32_t at = l->n++;
        for (; at > 0 && leaves_before(&one, &l->of[at - 1]); at--)
                l->of[at] = l->of[at - 1];
        l->of[at] = one;
}

/* By its row, whatever has become of the lease since it was added. */
void leavings_take_out(struct leavings *l, const struct world *w, const struct holder *h)
{
        uint32_t row = (uint32_t) (h - w->holders), at = 0;

        while (at < l->n && l->of[at].holder != row)
                at++;
        if (at == l->n)
                return; /* it said nothing of leaving */
        l->n--;
        memmove(&l->of[at], &l->of[at + 1], (l->n - at) * sizeof(l->of[0]));
}
