/* SPDX-License-Identifier: Apache-2.0 */
#include "client/sse.h"
#include <errno.h>
#include <string.h>

void sse_init(struct sse *sse)
{
        strbuf_init(&sse->line, SSE_EVENT_MAX);
        strbuf_init(&sse->data, SSE_EVENT_MAX);
}

void sse_fini(struct sse *sse)
{
        strbuf_fini(&sse->line);
        strbuf_fini(&sse->data);
}

static int take_line(struct sse *sse, int (*event)(const char *data, void *arg), void *arg)
{
        const char *line = strbuf_text(&sse->line);
        int r = 0;

        if (line[0] == '\0') { /* an empty line ends an event */
                if (sse->data.len > 0)
                        r = event(strbuf_text(&sse->data), arg);
                strbuf_reset(&sse->data);
        } else if (strncmp(line, "data:", 5) == 0) {
                if (sse->data.len > 0)
                        strbuf_puts(&sse->data, "\n");
                strbuf_puts(&sse->data, line[5] == ' ' ? line + 6 : line + 5);
        } /* id, event, retry and comments: all that is said there stands in the data as well */
        strbuf_reset(&sse->line);
        return r;
}

int sse_feed(struct sse *sse, const char *bytes, size_t n_bytes, int (*event)(const char *data, void *arg), void *arg,
             struct error *err)
{
        for (size_t at = 0; at < n_bytes;) {
                const char *end = memchr(bytes + at, '\n', n_bytes - at);
                size_t n = end ? (size_t) (end - bytes) - at : n_bytes - at;
                strbuf_append(&sse->line, bytes + at, n);
                if (sse->line.failed || sse->data.failed)
                        return error_set(err, EFBIG, "an event is larger than %d KiB", SSE_EVENT_MAX >> 10);
                at += n;
                if (!end)
                        break;
                at++;
                if (sse->line.len > 0 && sse->line.data[sse->line.len - 1] == '\r')
                        sse->line.data[--sse->line.len] = '\0';
                int r = take_line(sse, event, arg);
                if (r < 0)
                        return r;
        }
        return 0;
}
