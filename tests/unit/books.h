/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Books for the tests of the store: worlds, inputs and actions with something in every field, and a core so small that it
 * can be seen to be right. Everything is made from a number, so that the same number is the same bytes everywhere.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/action.h"
#include "model/input.h"
#include "model/world.h"

/* A world of its own: zeroed memory that costs only what is touched. */
struct world *books_world_new(void);
void books_world_zero(struct world *world);
void books_world_free(struct world *world);

/* Some rows of every table, empty ones between them. @world is zeroed memory. */
void books_world_fill(struct world *world, uint32_t seed);
/* An input of @kind; @rows (ROWS_MAX) is what a reading's rows point at. */
void books_input(enum input_kind kind, uint32_t seed, struct input *ret, struct occupancy *rows);
void books_action(uint32_t seed, struct action *ret);

/*
 * The small core: every REQUEST opens a row in users and is granted (an ACTION_READ goes with it), RENEW adds usage, a TICK
 * says nothing. Fits journal_step_fn; @ctx: NULL, or the id of an action on which it decides otherwise.
 */
void books_step(void *ctx, struct world *world, const struct input *input, struct actions *out);
/* The @i-th input of a long story for it. */
void books_story(uint32_t i, struct input *ret);
