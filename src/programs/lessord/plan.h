/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What would come of a request: the core asked on a copy of the world, with the last look taken for a new one. */
#include <stdbool.h>
#include "api/host.h"
#include "model/input.h"
#include "model/world.h"

/* False: no memory for the copy. */
bool plan_request(const struct world *world, uint64_t now_ms, const struct request *request, struct api_planned *ret);
