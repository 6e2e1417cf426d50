/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the core refused or ended, as a problem: rule → status and type, and the figures behind it. */
#include <jansson.h>
#include "api/problem.h"
#include "model/action.h"

void refusal_of_action(struct problem *ret, const struct action *action, uint64_t now_ms);
/* A lease that is over; @last may be NULL where its events were pruned. */
void refusal_of_end(struct problem *ret, uint64_t lease_id, const struct action *last);
/* `reason` and the fields that docs/api.md names beside it; NULL without an action. */
json_t *refusal_extra(const struct action *action, uint64_t now_ms);
