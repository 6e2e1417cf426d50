/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The order of the one queue (design 4.2): ⌈e⌉, then what the owner has used lately (0 for an entry that has waited
 * 30 min), then arrival. A head with a finite start stays head: only those that pass it stand before it.
 */
#include <stdbool.h>
#include "model/world.h"

/* Fills @order with entry indices, first in line first. Returns how many (all entries, those on hold last). */
uint32_t queue_order(const struct world *world, uint32_t order[ENTRIES_MAX]);
/*
 * The head of one device is no head on another: whom it stands before, by that alone, has the place there that it has by right.
 * So it is looked at twice: for @devices before whoever is at @at in the order, and for all of them at its own place.
 */
struct early_look {
        uint32_t entry, at;
        uint64_t devices;
        bool started;
};

enum { EARLY_MAX = 64 }; /* the first of them: whom others could go before at all */

struct early {
        uint32_t n;
        struct early_look of[EARLY_MAX]; /* in the order in which they are looked at */
};

/* The same, quicker where little changed since the last time: the world remembers how they stood. */
uint32_t queue_order_now(struct world *world, uint32_t order[ENTRIES_MAX], struct early *ret_early);
/* Does @a stand before @b by rank, usage and arrival alone, whoever is head? */
bool queue_before(const struct world *world, const struct entry *a, const struct entry *b);
/* 1 = first; 0 when it is not in the queue. */
uint32_t queue_place(const struct world *world, const struct entry *entry);
