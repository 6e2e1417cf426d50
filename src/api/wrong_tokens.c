/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "api/wrong_tokens.h"
#include "base/number.h"

static struct wrong_tokens_row *row_of(struct wrong_tokens *w, const uint8_t key[WRONG_TOKENS_KEY], uint64_t now_ms)
{
        struct wrong_tokens_row *oldest = w->rows;

        for (uint32_t i = 0; i < w->n; i++) {
                struct wrong_tokens_row *row = &w->rows[i];
                if (row->at_ms < oldest->at_ms)
                        oldest = row;
                if (memcmp(row->key, key, WRONG_TOKENS_KEY) != 0)
                        continue;
                if (u64_sub0(now_ms, row->at_ms) > WRONG_TOKENS_FORGOTTEN_MS)
                        row->count = 0;
                return row;
        }
        struct wrong_tokens_row *row = w->n < WRONG_TOKENS_ROWS ? &w->rows[w->n++] : oldest;
        *row = (struct wrong_tokens_row){ 0 };
        memcpy(row->key, key, WRONG_TOKENS_KEY);
        return row;
}

static bool is_round(uint32_t n)
{
        while (n > 10 && n % 10 == 0)
                n /= 10;
        return n == 10;
}

uint64_t wrong_tokens_note(struct wrong_tokens *w, const uint8_t key[WRONG_TOKENS_KEY], uint64_t now_ms,
                           uint32_t *ret_log_count)
{
        struct wrong_tokens_row *row = row_of(w, key, now_ms);
        uint64_t late_ms = WRONG_TOKENS_FIRST_MS;

        row->count += row->count < UINT32_MAX;
        row->at_ms = now_ms;
        *ret_log_count = is_round(row->count) ? row->count : 0;
        if (row->count <= WRONG_TOKENS_FREE)
                return 0;
        for (uint32_t i = WRONG_TOKENS_FREE + 1; i < row->count && late_ms < WRONG_TOKENS_MOST_MS; i++)
                late_ms *= 2;
        return u64_min(late_ms, WRONG_TOKENS_MOST_MS);
}
