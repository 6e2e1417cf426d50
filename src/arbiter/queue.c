/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "arbiter/queue.h"
#include "arbiter/booking.h"
#include "arbiter/rank.h"
#include "arbiter/usage.h"

struct key {
        uint64_t usage_mib_s;
        uint64_t arrived_ms; /* first of all: who is parked stands where it stood */
        uint64_t arrival;
        uint32_t entry;
        uint32_t rank; /* twice the rank: bookings stand between two; on hold: behind everything */
};

enum { RANK_BOOKING = 2 * PRIORITY_URGENT + 1, RANK_BOOKED = 99, RANK_ON_HOLD = 100 };

static bool key_before(const struct key *a, const struct key *b)
{
        if (a->rank != b->rank)
                return a->rank < b->rank;
        if (a->usage_mib_s != b->usage_mib_s)
                return a->usage_mib_s < b->usage_mib_s;
        return a->arrived_ms != b->arrived_ms ? a->arrived_ms < b->arrived_ms : a->arrival < b->arrival;
}

/* @memos: where what users have used is remembered, the world itself; NULL: it is worked out. */
static struct key key_of(const struct world *w, uint32_t i, struct world *memos)
{
        const struct entry *e = &w->entries[i];
        uint64_t waited_ms = entry_waited_ms(e, w->now_ms);
        struct key key = { .arrived_ms = e->arrived_ms,
                           .arrival = e->id,
                           .entry = i,
                           .rank = 2 * rank_of(&w->config, e->priority, waited_ms) };

        if (e->kind == ENTRY_BOOKING)
                key.rank = booking_is_due(w, e) ? RANK_BOOKING : RANK_BOOKED;
        if (e->held_since_ms != 0)
                key.rank = RANK_ON_HOLD;
        if (waited_ms < w->config.usage_forgiven_ms && e->kind != ENTRY_BOOKING)
                key.usage_mib_s =
                        memos ? usage_now(memos, e->user) : usage_mib_s(&w->config, &w->users[e->user], w->now_ms);
        return key;
}

/* Each goes in where it belongs, for as long as that takes no more than a few steps each. False: they are not in order yet. */
static bool sort_nearly_sorted(struct key *keys, uint32_t n)
{
        uint32_t steps = 4 * n;

        for (uint32_t i = 1; i < n; i++) {
                if (!key_before(&keys[i], &keys[i - 1]))
                        continue;
                struct key key = keys[i];
                uint32_t at = i;
                for (; at > 0 && key_before(&key, &keys[at - 1]); at--)
                        keys[at] = keys[at - 1];
                keys[at] = key;
                if (i - at > steps)
                        return false;
                steps -= i - at;
        }
        return true;
}

enum { SHORT_RUN = 8 };

/* Each goes in where it belongs: the quickest way for the few that mostly wait. */
static void sort_short_runs(struct key *keys, uint32_t n)
{
        for (uint32_t i = 1; i < n; i++) {
                struct key key = keys[i];
                uint32_t at = i;
                for (; at % SHORT_RUN != 0 && key_before(&key, &keys[at - 1]); at--)
                        keys[at] = keys[at - 1];
                keys[at] = key;
        }
}

/* Merge runs of growing length, from one array into the other and back: no recursion, no memory, stable. */
static void sort_keys(struct key *keys, struct key *spare, uint32_t n)
{
        struct key *from = keys, *to = spare;

        if (sort_nearly_sorted(keys, n))
                return;
        sort_short_runs(keys, n);
        for (uint32_t run = SHORT_RUN; run < n; run *= 2) {
                for (uint32_t start = 0; start < n; start += 2 * run) {
                        uint32_t a = start, a_end = start + run < n ? start + run : n;
                        uint32_t b = a_end, b_end = start + 2 * run < n ? start + 2 * run : n;
                        for (uint32_t k = start; k < b_end; k++)
                                to[k] = b >= b_end || (a < a_end && !key_before(&from[b], &from[a])) ? from[a++]
                                                                                                     : from[b++];
                }
                struct key *swap = from;
                from = to;
                to = swap;
        }
        if (from != keys)
                memcpy(keys, from, n * sizeof(*keys));
}

/* Where it keeps its place: on the devices that it is head of, or that memory is taken back on for it; else wherever it may go. */
static uint64_t kept_devices(const struct world *w, const struct entry *head)
{
        uint64_t planned = 0;

        if (head->is_head)
                return entry_head_devices(head);
        for (uint32_t i = 0; i < w->n_plans; i++)
                if (w->plans[i].id != 0 && ref_equal(w->plans[i].entry, world_entry_ref(w, head)))
                        planned |= UINT64_C(1) << w->plans[i].device;
        return planned != 0 ? planned : head->devices;
}

/* A head with a finite start moves before everything that does not pass it by base priority, and that it is in the way of.
 * @behind: by entry, the devices on which it stands behind such heads; NULL where nobody asks. */
static void keep_head(const struct world *w, uint32_t *order, uint32_t head_at, uint64_t *behind)
{
        const struct entry *head = &w->entries[order[head_at]];
        uint64_t devices = kept_devices(w, head);
        uint32_t head_index = order[head_at];
        unsigned rank = entry_rank(&w->config, head, w->now_ms);
        uint32_t kept[ENTRIES_MAX];
        uint32_t n_passing = 0, n_kept = 0;

        for (uint32_t i = 0; i < head_at; i++) {
                const struct entry *e = &w->entries[order[i]];
                if (!(e->devices & devices) || rank_passes(&w->config, e->priority, rank) || e->head_is_finite)
                        order[n_passing++] = order[i];
                else
                        kept[n_kept++] = order[i];
        }
        for (uint32_t i = 0; behind && i < n_kept; i++)
                behind[kept[i]] |= devices;
        order[n_passing] = head_index;
        memcpy(&order[n_passing + 1], kept, n_kept * sizeof(kept[0]));
}

static void order_by_keys(const struct world *w, uint32_t *order, uint32_t n, struct world *memos, struct key *keys,
                          struct key *spare)
{
        for (uint32_t i = 0; i < n; i++)
                keys[i] = key_of(w, order[i], memos);
        sort_keys(keys, spare, n);
        for (uint32_t i = 0; i < n; i++)
                order[i] = keys[i].entry;
}

/* The room that many need is a dozen pages of stack, each of them touched; few need one, and mostly there are few. */
enum { FEW = 64 };

static __attribute__((noinline)) void order_few(const struct world *w, uint32_t *order, uint32_t n, struct world *memos)
{
        struct key keys[FEW], spare[FEW];

        order_by_keys(w, order, n, memos, keys, spare);
}

static __attribute__((noinline)) void order_many(const struct world *w, uint32_t *order, uint32_t n,
                                                 struct world *memos)
{
        struct key keys[ENTRIES_MAX], spare[ENTRIES_MAX];

        order_by_keys(w, order, n, memos, keys, spare);
}

static void put_in_order(const struct world *w, uint32_t *order, uint32_t n, struct world *memos)
{
        if (n < 2)
                return; /* nobody to compare with */
        if (n <= FEW)
                order_few(w, order, n, memos);
        else
                order_many(w, order, n, memos);
}

static void keep_heads(const struct world *w, uint32_t *order, uint32_t n, uint64_t *behind)
{
        for (uint32_t i = 1; i < n; i++) {
                const struct entry *e = &w->entries[order[i]];
                if (e->head_is_finite && e->held_since_ms == 0)
                        keep_head(w, order, i, behind);
        }
}

/* Who stands behind a head by that alone has its own place on the devices that have nothing to do with it. */
static __attribute__((noinline)) void find_early(const struct world *w, const uint32_t *order, uint32_t n,
                                                 const uint64_t *behind, struct early *ret)
{
        uint32_t by_right[ENTRIES_MAX]; /* by entry */

        ret->n = 0;
        for (uint32_t i = 0; i < n; i++)
                by_right[w->line.entries[i]] = i;
        for (uint32_t i = 0; i < n && ret->n < EARLY_MAX; i++) {
                uint32_t entry = w->line.entries[i], at = 0;
                uint64_t devices = w->entries[entry].devices & ~behind[entry];
                if (behind[entry] == 0 || devices == 0)
                        continue;
                while (by_right[order[at]] < i)
                        at++;
                ret->of[ret->n++] = (struct early_look){ .entry = entry, .at = at, .devices = devices };
        }
}

uint32_t queue_order(const struct world *w, uint32_t order[ENTRIES_MAX])
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < w->n_entries; i++)
                if (w->entries[i].kind != ENTRY_NONE)
                        order[n++] = i;
        put_in_order(w, order, n, NULL);
        keep_heads(w, order, n, NULL);
        return n;
}

static bool has_kept_heads(const struct world *w, const uint32_t *order, uint32_t n)
{
        for (uint32_t i = 1; i < n; i++)
                if (w->entries[order[i]].head_is_finite)
                        return true;
        return false;
}

static __attribute__((noinline)) void keep_heads_and_rights(const struct world *w, uint32_t *order, uint32_t n,
                                                            struct early *ret)
{
        uint64_t behind[ENTRIES_MAX];

        for (uint32_t i = 0; i < n; i++)
                behind[order[i]] = 0;
        keep_heads(w, order, n, behind);
        for (uint32_t i = 0; i < n; i++)
                if (w->entries[order[i]].devices & ~behind[order[i]] && behind[order[i]] != 0) {
                        find_early(w, order, n, behind, ret);
                        return;
                }
}

uint32_t queue_order_now(struct world *w, uint32_t order[ENTRIES_MAX], struct early *ret_early)
{
        uint32_t n = w->line.n;

        ret_early->n = 0;
        put_in_order(w, w->line.entries, n, w);
        memcpy(order, w->line.entries, n * sizeof(order[0]));
        if (has_kept_heads(w, order, n))
                keep_heads_and_rights(w, order, n, ret_early);
        return n;
}

uint32_t queue_place(const struct world *w, const struct entry *entry)
{
        uint32_t order[ENTRIES_MAX];
        uint32_t n = queue_order(w, order);

        for (uint32_t i = 0; i < n; i++)
                if (&w->entries[order[i]] == entry)
                        return i + 1;
        return 0;
}

bool queue_before(const struct world *w, const struct entry *a, const struct entry *b)
{
        struct key key_a = key_of(w, (uint32_t) (a - w->entries), NULL);
        struct key key_b = key_of(w, (uint32_t) (b - w->entries), NULL);
        return key_before(&key_a, &key_b);
}
