/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A growing text or byte buffer with a cap given at birth ("what is the most this may ever be?").
 * Past the cap, or without memory, it keeps what it had, sets `failed` and refuses everything after: check once at the end.
 */
#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"

struct strbuf {
        char *data; /* NUL-terminated once anything was written; NULL before */
        size_t len; /* bytes, without the NUL */
        size_t cap;
        size_t max_bytes;
        bool failed;
};

void strbuf_init(struct strbuf *sb, size_t max_bytes);
void strbuf_fini(struct strbuf *sb);  /* fine on a zeroed one, and twice */
void strbuf_reset(struct strbuf *sb); /* empties, keeps the memory, clears failed */
void strbuf_append(struct strbuf *sb, const void *data, size_t n_bytes);
void strbuf_puts(struct strbuf *sb, const char *text);
printf_like(2, 3) void strbuf_printf(struct strbuf *sb, const char *fmt, ...);
const char *strbuf_text(const struct strbuf *sb); /* "" when empty; never NULL */
char *strbuf_steal(struct strbuf *sb);            /* caller frees; NULL when failed or out of memory */
