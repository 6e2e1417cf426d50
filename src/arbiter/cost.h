/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a way out of a lease is expected to cost, by what it came to for this user and program before (model/habit.h); and
 * whether it was ever seen to survive one (design 4.4: proven for user, consumer, program and driver).
 */
#include "model/input.h"
#include "model/world.h"

struct cost {
        uint64_t out_ms, back_ms;
        bool measured;
};

/* Measured, or where it never was: by its bytes, and what ending and starting a program mostly takes. */
struct cost cost_of(struct world *world, const struct lease *lease, enum way_out_kind way);
/* Out, back, and the work that would be lost: what the planner compares. */
uint64_t cost_in_all_ms(struct world *world, const struct lease *lease, enum way_out_kind way);

/* Its device showed that it was gone, after @out_ms; and that it was back, after @back_ms. */
void cost_learn_out(struct world *world, const struct lease *lease, enum way_out_kind way, uint64_t out_ms,
                    uint64_t bytes);
void cost_learn_back(struct world *world, const struct lease *lease, enum way_out_kind way, uint64_t back_ms);
/* It was asked to give way by itself, and did or did not (F15). */
void cost_learn_asked(struct world *world, const struct lease *lease, bool did);

/* The ways out that may be used for @lease: named, or proven where none is named. */
uint8_t ways_of_lease(struct world *world, const struct lease *lease);
/* It was checkpointed and is back at work: from now on that needs no word. */
void ways_prove(struct world *world, struct lease *lease);
/* What a new lease brings along: --filler is checkpoint where proven, else restart. */
struct ways_out ways_of_request(struct world *world, const struct request *request);
