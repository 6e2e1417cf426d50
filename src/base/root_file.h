/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A text file by which root alone decides: it and its folder are root's, and nobody else's to change. */
#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"

/*
 * The whole text and a NUL into @text. -ENOENT: no such file. -EPERM: somebody else could change it, or take it away. -EINVAL: no regular
 * file (also a link), no text, or longer than @size - 1 bytes.
 */
int root_file_read(const char *path, char *text, size_t size, struct error *err);

/* The number of the first line of @text with more than @max bytes, comments aside unless @comments; 0: none. A reader with a buffer of its own would
 * take the rest of it for a line. */
int root_file_long_line(const char *text, size_t max, bool comments);
