/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/engine.h"
#include "api/engine_json.h"
#include "base/strbuf.h"

struct engine_question {
        uv_pipe_t pipe;
        uv_timer_t timer;
        uv_connect_t connecting;
        uv_write_t writing;
        int n_handles;
        bool sent; /* all of it, perhaps */
        char request[256];
        char chunk[16 * 1024];
        struct strbuf answer;
        engine_reply_fn *on_reply; /* NULL: cancelled, or answered */
        void *ctx;
        engine_answer_fn *on_answer; /* of engine_ask() */
        void *answer_ctx;
};

/* ---- asking ---- */

static void on_closed(uv_handle_t *handle)
{
        struct engine_question *q = handle->data;

        if (--q->n_handles > 0)
                return;
        strbuf_fini(&q->answer);
        free(q);
}

static void close_question(struct engine_question *q)
{
        if (!uv_is_closing((uv_handle_t *) &q->pipe))
                uv_close((uv_handle_t *) &q->pipe, on_closed);
        if (!uv_is_closing((uv_handle_t *) &q->timer))
                uv_close((uv_handle_t *) &q->timer, on_closed);
}

static void reply(struct engine_question *q, const struct engine_reply *r)
{
        engine_reply_fn *tell = q->on_reply;

        q->on_reply = NULL;
        close_question(q);
        if (tell)
                tell(q->ctx, r);
}

static void no_reply(struct engine_question *q, const char *why)
{
        reply(q, &(struct engine_reply){ .why = why, .sent = q->sent });
}

void engine_cancel(struct engine_question *q)
{
        q->on_reply = NULL;
        close_question(q);
}

/* The end of HTTP/1.0: everything up to the end of the connection. */
static void understand(struct engine_question *q)
{
        const char *text = strbuf_text(&q->answer);
        const char *body = strstr(text, "\r\n\r\n");
        int status = 0;

        if (body && strncmp(text, "HTTP/1.", 7) == 0 && strlen(text) >= 12 && text[8] == ' ' && text[12] <= ' ')
                for (size_t i = 9; i < 12; i++)
                        status = text[i] >= '0' && text[i] <= '9' ? status * 10 + (text[i] - '0') : -1000;
        if (status < 100) {
                no_reply(q, "what is at engine_socket answers like no engine");
                return;
        }
        body += 4;
        reply(q,
              &(struct engine_reply){
                      .status = status, .body = body, .n_body = q->answer.len - (size_t) (body - text), .sent = true });
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
        struct engine_question *q = handle->data;

        (void) suggested;
        *buf = uv_buf_init(q->chunk, sizeof(q->chunk));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
        struct engine_question *q = stream->data;

        if (n > 0)
                strbuf_append(&q->answer, buf->base, (size_t) n);
        if (q->answer.failed)
                no_reply(q, "the engine's answer is too long");
        else if (n == UV_EOF)
                understand(q);
        else if (n < 0)
                no_reply(q, "the engine at engine_socket broke off");
}

static void on_written(uv_write_t *writing, int status)
{
        struct engine_question *q = writing->data;

        if (status != 0 && status != UV_ECANCELED)
                no_reply(q, "the engine at engine_socket takes no question");
}

static void on_connected(uv_connect_t *connecting, int status)
{
        struct engine_question *q = connecting->data;
        uv_buf_t buf = uv_buf_init(q->request, (unsigned) strlen(q->request));

        if (status == UV_ECANCELED)
                return;
        q->writing.data = q;
        q->sent = status == 0;
        if (status != 0)
                no_reply(q, "nobody answers at engine_socket");
        else if (uv_write(&q->writing, (uv_stream_t *) &q->pipe, &buf, 1, on_written) != 0 ||
                 uv_read_start((uv_stream_t *) &q->pipe, on_alloc, on_read) != 0)
                no_reply(q, "the engine at engine_socket takes no question");
}

static void on_deadline(uv_timer_t *timer)
{
        no_reply(timer->data, "the engine at engine_socket did not answer in time");
}

struct engine_question *engine_call(uv_loop_t *loop, const char *socket, const char *method, const char *path,
                                    uint64_t deadline_ms, engine_reply_fn *on_reply, void *ctx)
{
        struct engine_question *q = calloc(1, sizeof(*q));
        if (!q)
                return NULL;

        int n = snprintf(q->request, sizeof(q->request),
                         "%s %s HTTP/1.0\r\nHost: localhost\r\nAccept: application/json\r\n%s\r\n", method, path,
                         strcmp(method, "POST") == 0 ? "Content-Length: 0\r\n" : "");
        if (n < 0 || (size_t) n >= sizeof(q->request)) {
                free(q);
                return NULL;
        }
        q->on_reply = on_reply;
        q->ctx = ctx;
        strbuf_init(&q->answer, ENGINE_ANSWER_MAX_BYTES);
        (void) uv_pipe_init(loop, &q->pipe, 0);
        (void) uv_timer_init(loop, &q->timer);
        q->n_handles = 2;
        q->pipe.data = q->timer.data = q->connecting.data = q;
        (void) uv_timer_start(&q->timer, on_deadline, deadline_ms, 0);
        uv_pipe_connect(&q->connecting, &q->pipe, socket, on_connected); /* its length: conf */
        return q;
}

/* ---- what is known of a container ---- */

static void on_facts(void *ctx, const struct engine_reply *r)
{
        struct engine_question *q = ctx;
        struct container_facts facts = { 0 };

        if (r->status == 0) {
                q->on_answer(q->answer_ctx, NULL, r->why);
        } else if (r->status == 404) {
                q->on_answer(q->answer_ctx, NULL, "its engine is not the one at engine_socket, which does not know it");
        } else if (r->status != 200) {
                q->on_answer(q->answer_ctx, NULL, "the engine at engine_socket does not tell about it");
        } else {
                bool fine = engine_parse(r->body, r->n_body, &facts);
                q->on_answer(q->answer_ctx, fine ? &facts : NULL,
                             fine ? NULL : "the engine's answer is not understood");
                engine_facts_free(&facts);
        }
}

struct engine_question *engine_ask(uv_loop_t *loop, const char *socket, const char *container_id,
                                   engine_answer_fn *on_answer, void *ctx)
{
        char path[128];

        (void) snprintf(path, sizeof(path), "/containers/%s/json", container_id);
        struct engine_question *q = engine_call(loop, socket, "GET", path, ENGINE_DEADLINE_MS, on_facts, NULL);
        if (!q)
                return NULL;
        q->ctx = q; /* it lives until its handles are closed, which is after this answer */
        q->on_answer = on_answer;
        q->answer_ctx = ctx;
        return q;
}
