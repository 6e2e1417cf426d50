/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * arbiter_step - the whole decision
 * Same world and same input in, same actions out: no clock, no I/O, no globals, no allocation (design 3.1).
 * @input  one fact; input->now_ms may not go back (an earlier time counts as world->now_ms)
 * @out    at most ACTIONS_MAX, in the order to carry out; overwritten. out->more: step again with a TICK at the same time
 *
 * A TICK that changes anything but world->now_ms leaves at least one action, so that ticks without actions need not be
 * journalled. An action that is absent means "leave it as it is", never "undo it".
 */
#include "model/action.h"
#include "model/input.h"
#include "model/world.h"

void arbiter_step(struct world *world, const struct input *input, struct actions *out);
