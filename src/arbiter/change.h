/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What its owner or an administrator may change of a lease that lives: priority, slot, pin. All of it or nothing. */
#include "model/action.h"
#include "model/input.h"
#include "model/world.h"

void change_step(struct world *world, const struct change *change, struct actions *out);
/* Its pin has run out. */
void change_tick(struct world *world, struct lease *lease, struct actions *out);
