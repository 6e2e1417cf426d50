/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Inputs as bytes: what the journal keeps of a fact, and what replay feeds again. Errors as in codec_action.h.
 *
 * Texts are as they came (names of programs may hold any bytes): whoever prints them uses text_escape().
 */
#include <stddef.h>
#include "base/error.h"
#include "model/input.h"

enum { CODEC_INPUT_MAX = 256 + ROWS_MAX * 48 }; /* the longest is a reading; a test holds the largest against it */

int codec_input_encode(const struct input *input, void *buf, size_t buf_size, size_t *ret_n, struct error *err);
/* @rows receives the rows of a reading and must have room for ROWS_MAX; ret->reading.rows then points at it. */
int codec_input_decode(const void *data, size_t n_data, struct input *ret, struct occupancy *rows, struct error *err);
