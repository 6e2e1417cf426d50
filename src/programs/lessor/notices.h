/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lines on stderr while a command runs that has the same stderr: a pipe nobody reads or a stopped terminal must not hold
 * up whoever says something. What cannot be written now is tried again, ever more seldom, and is given up at the end.
 */
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

enum { NOTICES_MAX = 4096 };

struct notices {
        const char *verb;
        char text[NOTICES_MAX]; /* not yet written */
        size_t len;
        uint64_t due_ms; /* when to try again; counts while there is text */
        uint64_t rest_ms;
};

void notices_init(struct notices *n, const char *verb);
/* One line, written at once where that is possible. Dropped when too many wait already. */
printf_like(2, 3) void notices_say(struct notices *n, const char *fmt, ...);
/* Another try when it is due. */
void notices_go_on(struct notices *n);
