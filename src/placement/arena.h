/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Memory that the caller gave at the start, handed out piece by piece and never back. With none given it only counts: the
 * same code says how much it will need. Each piece is zeroed and lies on a line of the cache.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { ARENA_LINE_BYTES = 64 };

struct arena {
        uint8_t *memory; /* NULL: only count */
        size_t bytes, used;
};

/* NULL where nothing was given, or not enough: arena_full() tells afterwards. */
static inline void *arena_take(struct arena *arena, size_t n, size_t each_bytes)
{
        size_t at = (arena->used + ARENA_LINE_BYTES - 1) / ARENA_LINE_BYTES * ARENA_LINE_BYTES;

        if (__builtin_mul_overflow(n, each_bytes, &arena->used) ||
            __builtin_add_overflow(arena->used, at, &arena->used))
                arena->used = SIZE_MAX / 2;
        if (!arena->memory || arena->used > arena->bytes)
                return NULL;
        return memset(arena->memory + at, 0, n * each_bytes);
}

static inline int arena_full(const struct arena *arena)
{
        return arena->used > arena->bytes;
}
