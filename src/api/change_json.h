/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Body of PATCH /api/leases/L17: what is to be changed. Pure, like lease_json.h. */
#include <stddef.h>
#include "api/problem.h"
#include "model/input.h"

/* Fills what, priority, slot_ms and pin_ms of @ret. A pin without a span ("pin": true) is CHANGE_PIN with pin_ms
 * CHANGE_PIN_LONGEST. */
int change_json_parse(const char *data, size_t n, struct change *ret, struct problem *reterr);
