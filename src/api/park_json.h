/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Bodies of POST …/park and …/idle, JSON → struct; as strict as lease_json.h. */
#include <stddef.h>
#include "api/problem.h"
#include "model/input.h"

/* Fills in what, for_ms, keep_alive_ms; the rest of @ret is 0. No body at all is fine. 0, or -1 with *reterr. */
int park_json_parse(const char *data, size_t n, struct park_call *ret, struct problem *reterr);
int idle_json_parse(const char *data, size_t n, struct park_call *ret, struct problem *reterr);
