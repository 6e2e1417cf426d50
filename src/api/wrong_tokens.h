/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Wrong tokens by address (security S04): the tenth in a row within ten minutes and each after it is answered late, ever
 * later. Only wrong ones: who has the right token is served at once, also from the same address, so nobody is locked out by
 * others. Pure: time is an argument.
 */
#include <stdbool.h>
#include <stdint.h>

enum {
        WRONG_TOKENS_FREE = 9, /* answered at once */
        WRONG_TOKENS_FIRST_MS = 100,
        WRONG_TOKENS_MOST_MS = 10 * 1000,
        WRONG_TOKENS_FORGOTTEN_MS = 10 * 60 * 1000,
        WRONG_TOKENS_ROWS = 64,
        WRONG_TOKENS_KEY = 17, /* number of the door, address (of IPv6 its first half) */
};

struct wrong_tokens {
        uint32_t n;
        struct wrong_tokens_row {
                uint8_t key[WRONG_TOKENS_KEY];
                uint32_t count;
                uint64_t at_ms;
        } rows[WRONG_TOKENS_ROWS];
};

/* One more. Returns how late it is to be answered; *ret_log_count: worth a line in the log with this count, or 0: said for
 * the 10th, 100th, 1000th … */
uint64_t wrong_tokens_note(struct wrong_tokens *w, const uint8_t key[WRONG_TOKENS_KEY], uint64_t now_ms,
                           uint32_t *ret_log_count);
