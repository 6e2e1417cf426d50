/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Server-sent events out of a stream of bytes that may be cut anywhere. */
#include <stddef.h>
#include "base/error.h"
#include "base/strbuf.h"

enum { SSE_EVENT_MAX = 256 * 1024 };

struct sse {
        struct strbuf line;
        struct strbuf data; /* lines of `data:` of the event that is being read */
};

void sse_init(struct sse *sse);
void sse_fini(struct sse *sse);
/* Calls @event with the data of each event that is complete; stops at its first negative answer and returns that. */
int sse_feed(struct sse *sse, const char *bytes, size_t n_bytes, int (*event)(const char *data, void *arg), void *arg,
             struct error *err);
