/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A line on a person's terminals. Only on character devices below @folder that belong to @uid, are pseudo-terminals, and take messages
 * (mesg(1): group-writable); never waiting for a terminal that does not read. @line has no control characters: what it quotes was
 * escaped.
 */
#include <stdint.h>

enum { TERMINALS_MOST = 16, TERMINAL_LINE_MAX = 512 };

/* How many took it. */
unsigned terminals_tell(const char *folder, uint32_t uid, const char *line);
