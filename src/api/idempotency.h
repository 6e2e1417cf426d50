/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Idempotency keys: what a client asks again under the same key, because it does not know what became of the first time, is
 * answered with the lease of the first time and never makes a second one.
 *
 * Remembered is which lease came of it, not the text of the answer: a repetition shows the lease as it is. What was refused
 * made nothing, so its key is free again. A row lives a day; a user's oldest rows make room for newer ones. Pure: time is
 * an argument. Hashes, not keys: a row has one size, and what a client wrote into its key is not kept.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/lease.h"

enum {
        IDEMPOTENCY_KEY_MAX = 64,
        IDEMPOTENCY_ROWS = 4096,
        IDEMPOTENCY_PER_UID_MAX = 256,
        IDEMPOTENCY_KEPT_MS = 24 * 3600 * 1000,
};

enum idempotency_state { IDEMPOTENCY_FREE, IDEMPOTENCY_UNDER_WAY, IDEMPOTENCY_DONE };

struct idempotency_row {
        struct idempotency key;
        uint32_t uid;
        uint16_t status; /* HTTP, of the first answer */
        uint8_t state;
        uint64_t at_ms;
        uint64_t lease_id;
};

struct idempotency_table {
        uint32_t n; /* rows beyond were never used */
        struct idempotency_row rows[IDEMPOTENCY_ROWS];
};

enum idempotency_verdict {
        IDEMPOTENCY_NEW,       /* *ret_row is its own and under way: done or forget it */
        IDEMPOTENCY_REPEATED,  /* *ret_row tells lease and status */
        IDEMPOTENCY_BUSY,      /* the first one has no answer yet */
        IDEMPOTENCY_OTHER_ASK, /* the same key, another body */
        IDEMPOTENCY_NO_ROOM,   /* all of the user's rows are under way */
};

/* 1 … 64 printable ASCII characters. */
bool idempotency_key_is_wellformed(const char *key);
/* key: of uid, method, address and key; body: of the body. Never the zeros of "none". */
void idempotency_hash(uint32_t uid, const char *method, const char *path, uint64_t lease_id, const char *key,
                      const void *body, size_t n_body, struct idempotency *ret);
bool idempotency_is_none(const struct idempotency *key);

enum idempotency_verdict idempotency_begin(struct idempotency_table *t, const struct idempotency *key, uint32_t uid,
                                           uint64_t now_ms, uint32_t *ret_row);
void idempotency_done(struct idempotency_table *t, uint32_t row, uint64_t lease_id, unsigned status, uint64_t now_ms);
void idempotency_forget(struct idempotency_table *t, uint32_t row);
void idempotency_forget_key(struct idempotency_table *t, const struct idempotency *key);
/* A lease that the journal still knows, when the daemon starts. */
void idempotency_restore(struct idempotency_table *t, const struct idempotency *key, uint32_t uid, uint64_t lease_id,
                         uint64_t at_ms);
