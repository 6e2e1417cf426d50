/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the core was told, in a few words with its figures: what `lessor why` names as the cause of a decision. Nothing in it is
 * anybody's secret: no names, no programs, no command lines. Pure.
 */
#include <stddef.h>
#include "model/input.h"

enum { INPUT_TEXT_MAX = 256 };

/* Returns @buf. */
const char *input_text(const struct input *input, char buf[INPUT_TEXT_MAX]);
