/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The body of a request as one JSON object, read strictly: nesting bounded before anything is parsed (failures F87),
 * duplicate keys, NUL and broken UTF-8 refused, and where a number cannot be kept (1e400, NaN, 2^64) the words name the
 * field it stands at instead of a byte position.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include "api/problem.h"

enum { JSON_DEPTH_MAX = 64 };

/* Nesting that stays within @depth_max everywhere; text in strings does not count. Works on any bytes. */
bool json_text_depth_is_fine(const char *data, size_t n, unsigned depth_max);
/* NULL and *reterr, or an object: the caller's (json_decref). */
json_t *json_text_object(const char *data, size_t n, struct problem *reterr);
