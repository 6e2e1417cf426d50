/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-sent events. The journal is the buffer: a stream keeps the id it has sent last and reads on from there when its
 * client has taken what it had. So a slow reader costs one small buffer, misses nothing while it keeps up with the
 * journal's own pruning, and is dropped when it takes nothing at all between two beats.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "api/conn.h"
#include "api/json_memory.h"
#include "base/cleanup.h"
#include "base/log.h"

enum { EVENTS_AT_ONCE = 32, STREAM_BUFFER_MAX = 256 * 1024 };

static bool write_event(void *cls, const struct api_event *event)
{
        struct conn *c = cls;
        struct view v;

        conn_view(c, &v);
        json_t *object = view_event(&v, event);
        auto_free char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
        json_decref(object);
        if (json_memory_take_failed() || !text)
                return false; /* the stream reads on from here the next time */
        strbuf_printf(&c->out, "id: %" PRIu64 "\nevent: %s\ndata: ", event->action.id,
                      action_kind_name((enum action_kind) event->action.kind));
        strbuf_puts(&c->out, text);
        strbuf_puts(&c->out, "\n\n");
        c->cursor = event->action.id;
        return !c->out.failed;
}

static void fill(struct conn *c)
{
        struct api_host *host = &c->server->host;
        struct api_event_query query = { .after = c->cursor, .lease_id = c->lease_id, .limit = EVENTS_AT_ONCE };
        struct error err = { 0 };

        if (c->out.len > 0) {
                strbuf_reset(&c->out);
                c->out_at = 0;
        }
        if (c->beat_due)
                strbuf_puts(&c->out, ": beat\n\n");
        c->beat_due = false;
        if (host->events(host->ctx, &query, write_event, c, &err) < 0) {
                log_warning("event=stream-failed words=\"%s\"", err.msg);
                c->dead = true;
        }
}

static ssize_t on_read(void *cls, uint64_t pos, char *buf, size_t max)
{
        struct conn *c = cls;

        (void) pos;
        if (c->dead)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        if (c->out_at == c->out.len && server_is_settled(c->server))
                fill(c);
        else
                c->wants_settled = c->out_at == c->out.len;
        if (c->dead || c->out.failed)
                return MHD_CONTENT_READER_END_WITH_ERROR;

        size_t n = c->out.len - c->out_at;
        if (n == 0) {
                conn_sleep(c, CONN_STREAMING);
                return 0;
        }
        n = n < max ? n : max;
        memcpy(buf, c->out.data + c->out_at, n);
        c->out_at += n;
        return (ssize_t) n;
}

static bool note_id(void *cls, const struct api_event *event)
{
        *(uint64_t *) cls = event->action.id;
        return true;
}

/* It is behind what is kept, or ahead of everything that ever was: the books were begun anew meanwhile. */
static bool is_cut_off(struct conn *c, uint64_t *ret_next)
{
        struct api_host *host = &c->server->host;
        struct api_event_query oldest = { .limit = 1 };
        struct error err;

        *ret_next = 0;
        if (c->cursor == 0 || host->events(host->ctx, &oldest, note_id, ret_next, &err) < 0)
                return false;
        if (c->cursor >= host->world(host->ctx)->next_action_id)
                return true;
        return *ret_next > c->cursor + 1;
}

/* An event without an id, so that the client's last one stays what it was; its data look like an event's. */
static void tell_gap(struct conn *c)
{
        uint64_t next;

        if (!is_cut_off(c, &next))
                return;
        bool anew = next <= c->cursor;
        strbuf_printf(&c->out,
                      "event: gap\ndata: {\"id\":null,\"kind\":\"gap\",\"after\":%" PRIu64 ",\"next\":%" PRIu64
                      ",\"text\":\"%s\"}\n\n",
                      c->cursor, next,
                      anew ? "the books were begun anew: this is another row of ids, from its beginning"
                           : "what was between these two ids is no longer kept");
        if (anew)
                c->cursor = 0;
}

void stream_begin(struct conn *c, uint64_t after, uint64_t lease_id)
{
        if (!conn_may_wait(c))
                return;
        c->cursor = after;
        c->lease_id = lease_id;
        c->streams = true;
        strbuf_init(&c->out, STREAM_BUFFER_MAX);
        strbuf_puts(&c->out, "retry: 1000\n\n"); /* also lets the client see at once that it is connected */
        tell_gap(c);
        c->out_at = 0;
        c->beat_due = false;

        c->reply = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, on_read, c, NULL);
        if (!c->reply) {
                conn_drop(c);
                return;
        }
        c->reply_status = MHD_HTTP_OK;
        (void) MHD_add_response_header(c->reply, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
        (void) MHD_add_response_header(c->reply, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        conn_wake(c);
}

void stream_wake(struct conn *c)
{
        conn_wake(c);
}

void stream_on_beat(struct conn *c)
{
        if (c->beat_due) { /* the last one was never fetched: the client does not read */
                log_debug("event=stream-dropped why=slow-reader");
                conn_drop(c);
                return;
        }
        c->beat_due = true;
        conn_wake(c);
}
