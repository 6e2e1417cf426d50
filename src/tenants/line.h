/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* In which line of a JSON text a value stands, which the parser does not tell of what it took. */
#include <stddef.h>

/*
 * The line, counted from 1, at which the value begins that the JSON pointer @pointer leads to ("/a/0/b"); of a value that is not
 * there, the last one on the way to it. Works on any bytes.
 */
unsigned line_of_pointer(const char *text, size_t n, const char *pointer);
