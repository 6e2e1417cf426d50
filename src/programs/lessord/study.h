/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The whole journal, read while lessord goes on: on a thread of libuv's, over a connection that is read_only. Seconds of
 * somebody's curiosity cost nobody else a millisecond.
 */
#include <stdbool.h>
#include <uv.h>
#include "api/host.h"

enum { STUDIES_MAX = 2 }; /* at a time */

struct study_moment {
        uint64_t now_ms, wall_ms;
};

/* What goes on is counted until @now. False: so many are under way, or there is no memory. */
bool study_start(uv_loop_t *loop, const char *journal, const char *boot_id, const struct api_study *study,
                 const struct study_moment *now, api_study_fn *done, void *ctx, uint64_t token);
