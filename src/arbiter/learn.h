/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What runs of a program came to is remembered by who ran it and under which name (model/habit.h), and says how large a
 * lease is for which nobody named a size.
 */
#include "model/input.h"
#include "model/world.h"

/* A look at the device of @lease is in the books: the most it was known to use. */
void learn_use(struct lease *lease, const struct holder *holder);
/* @lease ends: what it came to, if that is known. Once for each lease. */
void learn_end(struct world *world, const struct lease *lease, enum end_reason end);
/* What 95 of 100 of its kept runs stayed within; 0 = none is kept. */
uint64_t learn_p95_bytes(const struct habit *habit);
/* How large a lease for @request is by what is remembered, and by how many runs; 0 by 0: nothing is, or what it names will do. */
uint64_t learn_size_bytes(struct world *world, const struct request *request, uint8_t *ret_n_runs);
