/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A lease over what runs already: the process named, what descends from it, and with a cgroup everything in that. It never
 * waits: the memory is taken. Letting it go gives the processes back as they were, to nobody.
 */
#include "model/action.h"
#include "model/input.h"
#include "model/world.h"

void adopt_step(struct world *world, const struct request *request, struct actions *out);
/* The opposite: afterwards the lease's holder has nothing, and its processes are strangers. */
void adopt_undo(struct world *world, struct lease *lease);
