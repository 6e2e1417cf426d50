/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How important something is (design 4.2). Priorities 1 and 5 keep theirs; the others gain one level per 600 s of waiting,
 * but never reach 1: ⌈e⌉ = max(2, priority − ⌊waited / 600 s⌋), in whole numbers.
 */
#include <stdbool.h>
#include "model/world.h"

unsigned rank_of(const struct config *config, unsigned priority, uint64_t waited_ms);
/* Time on hold does not count. */
uint64_t entry_waited_ms(const struct entry *entry, uint64_t now_ms);
unsigned entry_rank(const struct config *config, const struct entry *entry, uint64_t now_ms);
/* A holder keeps the ⌈e⌉ of its grant for 30 min, or its slot if shorter, then its base; over time it ranks as a filler. */
unsigned lease_rank(const struct config *config, const struct lease *lease, uint64_t now_ms);
/* May something of base @priority go past, or interrupt, something of this rank? */
bool rank_passes(const struct config *config, unsigned priority, unsigned rank);
