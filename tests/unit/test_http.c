/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "cm.h"
#include "client/http.h"

static void call_init(struct http_call *call)
{
        *call = (struct http_call){ .fd = -1, .stage = HTTP_HEAD };
        strbuf_init(&call->out, HTTP_BODY_MAX);
        strbuf_init(&call->in, HTTP_BODY_MAX);
        strbuf_init(&call->body, HTTP_BODY_MAX);
}

/* Feeds @answer in pieces of @step bytes, then the end of the connection unless it was complete before. */
static int feed(struct http_call *call, const char *answer, size_t n, size_t step)
{
        int r = 0;
        call_init(call);
        for (size_t at = 0; at < n && r == 0 && call->stage != HTTP_DONE; at += step) {
                strbuf_append(&call->in, answer + at, n - at < step ? n - at : step);
                r = http_call_understand(call, false, NULL);
        }
        if (r == 0 && call->stage != HTTP_DONE)
                r = http_call_understand(call, true, NULL);
        return r;
}

static const struct answer {
        const char *name, *text;
        int result, status;
        const char *body;
} answers[] = {
        { "by length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 0, 200, "hello" },
        { "header in small letters", "HTTP/1.1 201 Created\r\ncontent-length:5\r\n\r\nhello", 0, 201, "hello" },
        { "length 0", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0, 200, "" },
        { "no reason phrase", "HTTP/1.1 410\r\nContent-Length: 1\r\n\r\nx", 0, 410, "x" },
        { "until close", "HTTP/1.0 200 OK\r\n\r\nhello", 0, 200, "hello" },
        { "until close, empty", "HTTP/1.1 200 OK\r\n\r\n", 0, 200, "" },
        { "204 has no body", "HTTP/1.1 204 No Content\r\n\r\n", 0, 204, "" },
        { "100 first", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 0, 200, "ok" },
        { "chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", 0, 200,
          "hello" },
        { "chunk in hexadecimal with an extension",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n", 0, 200,
          "0123456789" },
        { "chunked with a trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n",
          0, 200, "a" },
        { "cut in the head", "HTTP/1.1 200 OK\r\nContent-Le", -ECONNRESET, 0, NULL },
        { "cut in the body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", -ECONNRESET, 200, NULL },
        { "cut in a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nh", -ECONNRESET, 200, NULL },
        { "cut before the last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n", -ECONNRESET,
          200, NULL },
        { "nothing", "", -ECONNRESET, 0, NULL },
        { "another protocol", "SSH-2.0-OpenSSH_9.2\r\n\r\n", -EPROTO, 0, NULL },
        { "status of letters", "HTTP/1.1 abc OK\r\n\r\n", -EPROTO, 0, NULL },
        { "status 99", "HTTP/1.1 099 OK\r\n\r\n", -EPROTO, 0, NULL },
        { "status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", -EPROTO, 0, NULL },
        { "negative length", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", -EPROTO, 0, NULL },
        { "length of 2^64", "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n", -EPROTO, 0, NULL },
        { "length said twice", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", -EPROTO, 0,
          NULL },
        { "length and chunks", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", -EPROTO, 0,
          NULL },
        { "chunks and length", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", -EPROTO, 0,
          NULL },
        { "unknown encoding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", -EPROTO, 0, NULL },
        { "chunk without a length", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", -EPROTO, 200, NULL },
        { "chunk of letters", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", -EPROTO, 200, NULL },
        { "chunk of a terabyte", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000\r\n", -EPROTO, 200,
          NULL },
        { "chunk longer than it says", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n", -EPROTO,
          200, NULL },
};

static void answer_in_pieces_of_any_size_is_read_alike(void **state)
{
        (void) state;
        int rows_failed = 0;
        for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
                const struct answer *row = &answers[i];
                size_t n = strlen(row->text);
                for (size_t step = 1; step <= n + 1; step++) {
                        struct http_call call;
                        int r = feed(&call, row->text, n, step);
                        row_check(row->name, r == row->result);
                        row_check(row->name, r < 0 || (call.stage == HTTP_DONE && call.status == row->status));
                        row_check(row->name, r < 0 || strcmp(strbuf_text(&call.body), row->body) == 0);
                        http_call_end(&call);
                }
        }
        rows_end();
}

static void answer_with_a_nul_in_its_head_is_no_http(void **state)
{
        (void) state;
        struct http_call call;
        static const char text[] = "HTTP/1.1 200 OK\0\r\nContent-Length: 0\r\n\r\n";
        assert_int_equal(feed(&call, text, sizeof(text) - 1, sizeof(text)), -EPROTO);
        http_call_end(&call);
}

static void head_that_does_not_end_is_given_up(void **state)
{
        (void) state;
        struct http_call call;
        call_init(&call);
        int r = 0;
        size_t fed = 0;
        strbuf_puts(&call.in, "HTTP/1.1 200 OK\r\n");
        while (r == 0 && fed < 4 * HTTP_HEAD_MAX) {
                strbuf_puts(&call.in, "X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n");
                fed = call.in.len;
                r = http_call_understand(&call, false, NULL);
        }
        assert_int_equal(r, -EPROTO);
        assert_true(fed <= HTTP_HEAD_MAX + 128);
        http_call_end(&call);
}

static void binary_body_keeps_its_bytes(void **state)
{
        (void) state;
        struct http_call call;
        static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na\0b\0";
        assert_int_equal(feed(&call, text, sizeof(text) - 1, 1), 0);
        assert_int_equal(call.body.len, 4);
        assert_memory_equal(call.body.data, "a\0b\0", 4);
        http_call_end(&call);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(answer_in_pieces_of_any_size_is_read_alike),
                cmocka_unit_test(answer_with_a_nul_in_its_head_is_no_http),
                cmocka_unit_test(head_that_does_not_end_is_given_up),
                cmocka_unit_test(binary_body_keeps_its_bytes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
