/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Somebody asks for a lease: refused with the reason, or a place in the queue, or granted at once. */
#include "model/action.h"
#include "model/input.h"
#include "model/world.h"

void request_step(struct world *world, const struct request *request, struct actions *out);
