/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A failure in words: a negative errno for the program, one sentence for the person.
 * Lives on the caller's stack, needs no memory and no freeing.
 */
#include <stddef.h>

#define printf_like(fmt_at, args_at) __attribute__((__format__(__printf__, fmt_at, args_at)))

struct error {
        int code;      /* positive errno, 0 = no error */
        char msg[400]; /* one sentence, with the cure where there is one; cut at the end when too long */
};

/* Fill @err (may be NULL) and return -code. An empty format gives strerror's words alone. */
printf_like(3, 4) int error_set(struct error *err, int code, const char *fmt, ...);
/* The same, followed by ": " and strerror(code): for a system call that failed. */
printf_like(3, 4) int error_errno(struct error *err, int code, const char *fmt, ...);
/* Put "context: " before what is there; returns @r, so that a failing call reads `return error_wrap(err, r, "…")`. */
printf_like(3, 4) int error_wrap(struct error *err, int r, const char *fmt, ...);
