/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Another program asked for what it knows: a list of words and no shell, nothing on its stdin, bounded in time and size. */
#include <stdint.h>
#include "base/error.h"
#include "base/strbuf.h"

enum { CAPTURE_OUT_MAX = 64 * 1024, CAPTURE_ERR_MAX = 4096 };

struct capture {
        int exit_status; /* -1: a signal ended it */
        struct strbuf out, err;
};

/*
 * 0 when it ran and ended, whatever it said; @ret is to be ended by capture_fini() in any case. -ENOENT: there is no such
 * program; -ETIMEDOUT: it was ended, because it took too long; -EFBIG: because it said too much.
 * @argv  ends with NULL; argv[0] is looked for in PATH
 */
int capture_run(const char *const *argv, uint64_t timeout_ms, struct capture *ret, struct error *err);
void capture_fini(struct capture *c);
/* The first line of what it said there, escaped for a person; "" = nothing. Returns @buf. */
const char *capture_line(const struct strbuf *said, char *buf, size_t buf_size);
