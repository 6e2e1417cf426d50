/* SPDX-License-Identifier: Apache-2.0 */
#include "api/bucket.h"
#include "base/number.h"

/* The row of @uid as it is now. */
static struct bucket *row_of(struct buckets *b, uint32_t uid, uint64_t now_ms)
{
        const uint64_t full = (uint64_t) b->burst * 1000;
        struct bucket *oldest = b->rows;

        for (uint32_t i = 0; i < b->n; i++) {
                struct bucket *row = &b->rows[i];
                if (row->at_ms < oldest->at_ms)
                        oldest = row;
                if (row->uid != uid)
                        continue;
                uint64_t gained = u64_min(u64_sub0(now_ms, row->at_ms), UINT32_MAX) * b->per_s;
                row->level_milli = u64_min(row->level_milli + gained, full);
                row->at_ms = u64_max(row->at_ms, now_ms);
                return row;
        }
        struct bucket *row = b->n < BUCKETS_MAX ? &b->rows[b->n++] : oldest;
        *row = (struct bucket){ .uid = uid, .level_milli = full, .at_ms = now_ms };
        return row;
}

static uint64_t missing_ms(const struct buckets *b, const struct bucket *row, uint32_t cost)
{
        uint64_t missing = u64_sub0((uint64_t) cost * 1000, row->level_milli);
        return (missing + b->per_s - 1) / b->per_s;
}

uint64_t buckets_wait_ms(struct buckets *b, uint32_t uid, uint32_t cost, uint64_t now_ms)
{
        return b->per_s == 0 ? 0 : missing_ms(b, row_of(b, uid, now_ms), cost);
}

void buckets_charge(struct buckets *b, uint32_t uid, uint32_t cost, uint64_t now_ms)
{
        if (b->per_s == 0)
                return;
        struct bucket *row = row_of(b, uid, now_ms);
        row->level_milli = u64_sub0(row->level_milli, (uint64_t) cost * 1000);
}

uint64_t buckets_take(struct buckets *b, uint32_t uid, uint32_t cost, uint64_t now_ms)
{
        uint64_t wait_ms = buckets_wait_ms(b, uid, cost, now_ms);

        if (wait_ms == 0)
                buckets_charge(b, uid, cost, now_ms);
        return wait_ms;
}
