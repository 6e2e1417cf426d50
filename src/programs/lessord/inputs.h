/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The facts and requests of one turn of the loop, in the order they came. Copies everything, rows of readings too. */
#include <stdbool.h>
#include <stddef.h>
#include "model/input.h"

struct inputs {
        struct input *items;
        size_t n, cap;
};

/* A client's words may be refused; a fact (a reading, an exit, a client that left) may not and is tried again. */
bool input_is_refusable(const struct input *input);
int inputs_add(struct inputs *q, const struct input *input); /* -ENOMEM */
/* Moves all of @from behind what is in @q; @from is empty then. */
int inputs_move(struct inputs *q, struct inputs *from);
void inputs_clear(struct inputs *q); /* keeps a little memory for the next turn */
void inputs_fini(struct inputs *q);
void input_fini(struct input *input);
