/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `status --watch`: the same picture again and again, in place on a terminal. */
#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>
#include "programs/lessor/verb.h"

enum { LIVE_EVERY_MS = 1000, LIVE_EVERY_MIN_MS = 100, LIVE_EVERY_MAX_MS = 3600 * 1000 };

/*
 * GETs @path every @every_ms and has @print show its body on stdout, until Ctrl-C (0), or until lessord has not answered for
 * 60 s (69). On a terminal each picture takes the place of the last one; elsewhere each is a block with its time.
 */
int live_show(const struct verb *verb, const char *path, uint64_t every_ms, bool json,
              void (*print)(const json_t *body));
