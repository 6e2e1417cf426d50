/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Patterns with * (any bytes, also none and also a slash) and ? (one byte); everything else stands for itself. */
#include <stdbool.h>

/* The whole of @text. Takes at most the product of both lengths, whatever they are: fnmatch(3) does not promise that. */
bool glob_fits(const char *pattern, const char *text);
