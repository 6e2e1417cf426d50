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
/* The same, quicker where little changed since the last time: the world remembers how they stood. */
uint32_t queue_order_now(struct world *world, uint32_t order[ENTRIES_MAX]);
/* Does @a stand before @b by rank, usage and arrival alone, whoever is head? */
bool queue_before(const struct world *world, const struct entry *a, const struct entry *b);
/* 1 = first; 0 when it is not in the queue. */
uint32_t queue_place(const struct world *world, const struct entry *entry);
