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
        char request[192];
        char chunk[16 * 1024];
        struct strbuf answer;
        engine_answer_fn *on_answer; /* NULL: cancelled, or answered */
        void *ctx;
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

static void answer(struct engine_question *q, const struct container_facts *facts, const char *why)
{
        engine_answer_fn *tell = q->on_answer;

        q->on_answer = NULL;
        close_question(q);
        if (tell)
                tell(q->ctx, facts, why);
}

void engine_cancel(struct engine_question *q)
{
        q->on_answer = NULL;
        close_question(q);
}

/* The end of HTTP/1.0: everything up to the end of the connection. */
static void understand(struct engine_question *q)
{
        const char *text = strbuf_text(&q->answer);
        const char *body = strstr(text, "\r\n\r\n");
        struct container_facts facts = { 0 };

        if (!body || strncmp(text, "HTTP/1.", 7) != 0 || strlen(text) < 12) {
                answer(q, NULL, "what is at engine_socket answers like no engine");
        } else if (strncmp(text + 8, " 404", 4) == 0) {
                answer(q, NULL, "its engine is not the one at engine_socket, which does not know it");
        } else if (strncmp(text + 8, " 200", 4) != 0) {
                answer(q, NULL, "the engine at engine_socket does not tell about it");
        } else {
                body += 4;
                bool fine = engine_parse(body, q->answer.len - (size_t) (body - text), &facts);
                answer(q, fine ? &facts : NULL, fine ? NULL : "the engine's answer is not understood");
                engine_facts_free(&facts);
        }
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
                answer(q, NULL, "the engine's answer is too long");
        else if (n == UV_EOF)
                understand(q);
        else if (n < 0)
                answer(q, NULL, "the engine at engine_socket broke off");
}

static void on_written(uv_write_t *writing, int status)
{
        struct engine_question *q = writing->data;

        if (status != 0 && status != UV_ECANCELED)
                answer(q, NULL, "the engine at engine_socket takes no question");
}

static void on_connected(uv_connect_t *connecting, int status)
{
        struct engine_question *q = connecting->data;
        uv_buf_t buf = uv_buf_init(q->request, (unsigned) strlen(q->request));

        if (status == UV_ECANCELED)
                return;
        q->writing.data = q;
        if (status != 0)
                answer(q, NULL, "nobody answers at engine_socket");
        else if (uv_write(&q->writing, (uv_stream_t *) &q->pipe, &buf, 1, on_written) != 0 ||
                 uv_read_start((uv_stream_t *) &q->pipe, on_alloc, on_read) != 0)
                answer(q, NULL, "the engine at engine_socket takes no question");
}

static void on_deadline(uv_timer_t *timer)
{
        answer(timer->data, NULL, "the engine at engine_socket did not answer in time");
}

struct engine_question *engine_ask(uv_loop_t *loop, const char *socket, const char *container_id,
                                   engine_answer_fn *on_answer, void *ctx)
{
        struct engine_question *q = calloc(1, sizeof(*q));
        if (!q)
                return NULL;

        q->on_answer = on_answer;
        q->ctx = ctx;
        strbuf_init(&q->answer, ENGINE_ANSWER_MAX_BYTES);
        (void) snprintf(q->request, sizeof(q->request),
                        "GET /containers/%s/json HTTP/1.0\r\nHost: localhost\r\nAccept: application/json\r\n\r\n",
                        container_id);
        (void) uv_pipe_init(loop, &q->pipe, 0);
        (void) uv_timer_init(loop, &q->timer);
        q->n_handles = 2;
        q->pipe.data = q->timer.data = q->connecting.data = q;
        (void) uv_timer_start(&q->timer, on_deadline, ENGINE_DEADLINE_MS, 0);
        uv_pipe_connect(&q->connecting, &q->pipe, socket, on_connected); /* its length: conf */
        return q;
}
