/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A world as bytes: the snapshot that opens a segment. Errors as in codec_action.h.
 *
 * Of each table the rows [0, n_…) travel, empty ones as their generation alone, so a small world is small. A decoded
 * snapshot is the world again byte by byte where rows were zeroed before they were filled (the tails of texts behind their
 * NUL and padding do not travel). Values are checked one by one; how rows hang together is world_check()'s business.
 */
#include <stddef.h>
#include "base/error.h"
#include "model/world.h"

size_t codec_world_size_max(const struct world *world); /* never too small for its encoding */
int codec_world_encode(const struct world *world, void *buf, size_t buf_size, size_t *ret_n, struct error *err);
/* @ret must be zeroed memory; after a failure it is half-filled and has to be zeroed again. */
int codec_world_decode(const void *data, size_t n_data, struct world *ret, struct error *err);
