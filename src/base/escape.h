/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Text of strangers (process names, command lines, consumers) made safe for a log line or a terminal:
 * C0, DEL, C1 and bytes that are not valid UTF-8 become \xNN, a backslash becomes \\, cut at the buffer with "…".
 */
#include <stdbool.h>
#include <stddef.h>

/* @n_in bytes of @in (may contain NUL). @buf gets at most @buf_size bytes with the NUL. Returns @buf. */
const char *text_escape(const char *in, size_t n_in, char *buf, size_t buf_size);
/* True when @in is valid UTF-8 without C0, DEL and C1: what may go out unescaped. */
bool text_is_plain(const char *in, size_t n_in);
