/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The pass over the queue (design 4.2): who starts now, who is head of which device, who may go ahead of a head and why.
 * Checking and reserving are one step.
 */
#include "model/action.h"
#include "model/world.h"

/* The request of this very step, if there is one: its answer carries the token, and comes even when nothing changed. */
struct newcomer {
        struct ref entry;
        uint64_t token;
        bool granted;      /* out: */
        bool decided;      /* out: looked at with a good reading */
        struct reason why; /* out: why it waits */
};

/* @newcomer may be NULL. @by_time: this step is a tick, nothing else came in. */
void admit_pass(struct world *world, struct actions *out, struct newcomer *newcomer, bool by_time);

/* Take an entry out of the queue (granted, cancelled, over), with its claim. */
void admit_drop_entry(struct world *world, struct entry *entry);
