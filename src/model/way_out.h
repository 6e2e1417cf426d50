/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Means to get memory back (design 2): named by the person, or proven by an earlier success, each with the memory that
 * stays behind (its floor). Parking is the reversible ones only.
 */
#include <stdbool.h>
#include <stdint.h>

enum way_out_kind {
        WAY_OUT_COOPERATE,
        WAY_OUT_CHECKPOINT,
        WAY_OUT_RELEASE,
        WAY_OUT_RESTART,
        WAY_OUT_KILL,
        WAY_OUT_N,
};

/* Sets of ways out are bit masks: WAY_OUT_BIT(WAY_OUT_RESTART) | … */
#define WAY_OUT_BIT(kind) ((uint8_t) (1U << (kind)))

struct ways_out {
        uint8_t named;  /* given with --yield-by or by a tenant's declaration: needs no proof */
        uint8_t proven; /* checkpoint: by an earlier success or a rehearsal */
        uint32_t
                declared; /* the named ones in the order they were named in: kind + 1, three bits each, the first lowest;
                              0 = in no order of their own */
        uint64_t floor_bytes[WAY_OUT_N];
};

/* What may be used at all: named or proven. */
static inline uint8_t ways_out_usable(const struct ways_out *w)
{
        return (uint8_t) (w->named | w->proven);
}

/* A usable way out that moves nothing to host memory, so that it needs no room in the ledger. */
static inline bool ways_out_without_ledger(const struct ways_out *w)
{
        return (ways_out_usable(w) & (uint8_t) ~WAY_OUT_BIT(WAY_OUT_CHECKPOINT)) != 0;
}

/* One more is named, after those that were. */
void ways_out_declare(struct ways_out *w, enum way_out_kind kind);
/* All of @mask in the order in which they are to be tried: who does not break running work first, then as they were declared,
 * then as they stand in the enum. Returns how many. */
unsigned ways_out_in_order(const struct ways_out *w, uint8_t mask, uint8_t ret[WAY_OUT_N]);
/* Ends running work, or the program that does it. */
bool way_out_breaks_work(enum way_out_kind kind);

const char *way_out_name(enum way_out_kind kind); /* "cooperate" … ; never NULL */
/* "cooperate,restart" → mask. Returns false at an unknown or empty word; *ret_bad_at is its offset. */
bool ways_out_parse(const char *text, uint8_t *ret_mask, uint32_t *ret_bad_at);
/* The same, each declared in @ways in the order of the text. */
bool ways_out_parse_declared(const char *text, struct ways_out *ways, uint32_t *ret_bad_at);
