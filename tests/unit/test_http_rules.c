/* SPDX-License-Identifier: Apache-2.0 */
/* Header combinations of security S05 and S07, and the framings of failures F88. */
#include <string.h>
#include "api/http_rules.h"
#include "cm.h"

static const struct row {
        const char *name;
        int status; /* 0 = accepted */
        const char *headers[8][2];
        bool get;
        bool by_tcp;
} rows[] = {
        { "no headers at all", 0, { { 0 } }, true },
        { "localhost", 0, { { "Host", "localhost" } }, true },
        { "localhost with a port", 0, { { "Host", "localhost:80" } }, true },
        { "upper case", 0, { { "HOST", "LocalHost" } }, true },
        { "IPv4 loopback", 0, { { "Host", "127.0.0.1" } }, true },
        { "IPv6 loopback", 0, { { "Host", "[::1]:8080" } }, true },
        { "our name", 0, { { "Host", "lessor" } }, true },
        { "an empty Host", 0, { { "Host", "" } }, true },
        { "a rebinding name", 403, { { "Host", "evil.example" } }, true },
        { "a name that begins like ours", 403, { { "Host", "localhost.evil.example" } }, true },
        { "trailing dot", 403, { { "Host", "localhost." } }, true },
        { "another loopback address", 403, { { "Host", "127.0.0.2" } }, true },
        { "decimal address", 403, { { "Host", "2130706433" } }, true },
        { "IPv6 without brackets", 403, { { "Host", "::1" } }, true },
        { "port that is none", 403, { { "Host", "localhost:80a" } }, true },
        { "port 0", 403, { { "Host", "localhost:0" } }, true },
        { "user in the Host", 403, { { "Host", "a@localhost" } }, true },
        { "two Hosts", 403, { { "Host", "localhost" }, { "host", "localhost" } }, true },
        { "Origin", 403, { { "Origin", "https://evil.example" } }, true },
        { "Origin null", 403, { { "Origin", "null" } }, true },
        { "Origin that looks like ours", 403, { { "origin", "http://localhost" } }, true },
        { "an empty Origin", 403, { { "Origin", "" } }, true },
        { "cross-site", 403, { { "Sec-Fetch-Site", "cross-site" } }, true },
        { "same-site", 403, { { "Sec-Fetch-Site", "same-site" } }, true },
        { "a person's own address bar", 0, { { "Sec-Fetch-Site", "none" } }, true },
        { "upgrade", 400, { { "Connection", "Upgrade" }, { "Upgrade", "websocket" } }, true },
        { "JSON", 0, { { "Content-Type", "application/json" }, { "Content-Length", "2" } }, false },
        { "JSON with a charset",
          0,
          { { "Content-Type", "application/json; charset=UTF-8" }, { "Content-Length", "2" } },
          false },
        { "no type", 415, { { "Content-Length", "2" } }, false },
        { "a form",
          415,
          { { "Content-Type", "application/x-www-form-urlencoded" }, { "Content-Length", "2" } },
          false },
        { "plain text", 415, { { "Content-Type", "text/plain" }, { "Content-Length", "2" } }, false },
        { "JSON and more",
          415,
          { { "Content-Type", "application/json, text/plain" }, { "Content-Length", "2" } },
          false },
        { "two types",
          415,
          { { "Content-Type", "application/json" }, { "Content-Type", "application/json" }, { "Content-Length", "2" } },
          false },
        { "nothing, so no type", 0, { { "Content-Length", "0" } }, false },
        { "a body with GET", 400, { { "Content-Type", "application/json" }, { "Content-Length", "2" } }, true },
        { "length -1", 400, { { "Content-Type", "application/json" }, { "Content-Length", "-1" } }, false },
        { "length +1", 400, { { "Content-Type", "application/json" }, { "Content-Length", "+1" } }, false },
        { "length 2^64-1",
          400,
          { { "Content-Type", "application/json" }, { "Content-Length", "18446744073709551615" } },
          false },
        { "length with a blank", 400, { { "Content-Type", "application/json" }, { "Content-Length", "1 1" } }, false },
        { "length as a list", 400, { { "Content-Type", "application/json" }, { "Content-Length", "2, 2" } }, false },
        { "two lengths",
          400,
          { { "Content-Type", "application/json" }, { "Content-Length", "2" }, { "Content-Length", "3" } },
          false },
        { "two equal lengths",
          400,
          { { "Content-Type", "application/json" }, { "Content-Length", "2" }, { "Content-Length", "2" } },
          false },
        { "chunked", 0, { { "Content-Type", "application/json" }, { "Transfer-Encoding", "chunked" } }, false },
        { "chunked and a length",
          400,
          { { "Content-Type", "application/json" }, { "Transfer-Encoding", "chunked" }, { "Content-Length", "2" } },
          false },
        { "gzip, chunked",
          400,
          { { "Content-Type", "application/json" }, { "Transfer-Encoding", "gzip, chunked" } },
          false },
        { "chunked twice",
          400,
          { { "Content-Type", "application/json" },
            { "Transfer-Encoding", "chunked" },
            { "Transfer-Encoding", "chunked" } },
          false },
        { "identity", 400, { { "Content-Type", "application/json" }, { "Transfer-Encoding", "identity" } }, false },
        { "64 KiB", 0, { { "Content-Type", "application/json" }, { "Content-Length", "65536" } }, false },
        { "64 KiB and one", 413, { { "Content-Type", "application/json" }, { "Content-Length", "65537" } }, false },
};

#define TCP true, true
/* By TCP, at a door that is also called gpu.example, box:8443 and [fd00::7]. */
static const struct row tcp_rows[] = {
        { "S05 localhost", 0, { { "Host", "localhost:8787" } }, TCP },
        { "S05 IPv4 loopback", 0, { { "Host", "127.0.0.1:8787" } }, TCP },
        { "S05 IPv6 loopback", 0, { { "Host", "[::1]:8787" } }, TCP },
        { "S05 another port, as through ssh -L", 0, { { "Host", "localhost:9999" } }, TCP },
        { "S05 a name of ours", 0, { { "Host", "gpu.example" } }, TCP },
        { "S05 a name of ours with any port", 0, { { "Host", "GPU.Example:1" } }, TCP },
        { "S05 a name that goes with its port", 0, { { "Host", "box:8443" } }, TCP },
        { "S05 the same with another port", 403, { { "Host", "box:8444" } }, TCP },
        { "S05 the same without one", 403, { { "Host", "box" } }, TCP },
        { "S05 an IPv6 name of ours", 0, { { "Host", "[fd00::7]:8443" } }, TCP },
        { "S05 no Host", 403, { { "Accept", "*/*" } }, TCP },
        { "S05 an empty Host", 403, { { "Host", "" } }, TCP },
        { "S05 a name server's own", 403, { { "Host", "lessor" } }, TCP },
        { "S05 a rebinding name", 403, { { "Host", "evil.example:8787" } }, TCP },
        { "S05 a name that ends like ours", 403, { { "Host", "evil.gpu.example" } }, TCP },
        { "S05 a name that begins like ours", 403, { { "Host", "gpu.example.evil" } }, TCP },
        { "S05 a part of ours", 403, { { "Host", "gpu" } }, TCP },
        { "S05 trailing dot", 403, { { "Host", "localhost.:8787" } }, TCP },
        { "S05 trailing dot of ours", 403, { { "Host", "gpu.example." } }, TCP },
        { "S05 the list itself", 403, { { "Host", "gpu.example box:8443" } }, TCP },
        { "S05 another loopback address", 403, { { "Host", "127.0.0.2:8787" } }, TCP },
        { "S05 every address", 403, { { "Host", "0.0.0.0:8787" } }, TCP },
        { "S05 decimal address", 403, { { "Host", "2130706433" } }, TCP },
        { "S05 IPv4 in IPv6", 403, { { "Host", "[::ffff:127.0.0.1]" } }, TCP },
        { "S05 IPv6 without brackets", 403, { { "Host", "::1" } }, TCP },
        { "S05 two Hosts", 403, { { "Host", "localhost" }, { "Host", "localhost" } }, TCP },
        { "S05 our Host and another", 403, { { "Host", "localhost" }, { "host", "evil.example" } }, TCP },
        { "S05 Origin null", 403, { { "Host", "localhost" }, { "Origin", "null" } }, TCP },
        { "S05 Origin of another", 403, { { "Host", "localhost" }, { "Origin", "https://evil.example" } }, TCP },
        { "S05 Origin that looks like ours",
          403,
          { { "Host", "localhost" }, { "Origin", "http://localhost:8787" } },
          TCP },
        { "S05 cross-site", 403, { { "Host", "localhost" }, { "Sec-Fetch-Site", "cross-site" } }, TCP },
        { "S05 same-site", 403, { { "Host", "localhost" }, { "Sec-Fetch-Site", "same-site" } }, TCP },
        { "S05 upgrade", 400, { { "Host", "localhost" }, { "Upgrade", "h2c" } }, TCP },
        { "S04 a token", 0, { { "Host", "localhost" }, { "Authorization", "Bearer abc" } }, TCP },
        { "S04 two tokens",
          400,
          { { "Host", "localhost" }, { "Authorization", "Bearer a" }, { "Authorization", "Bearer b" } },
          TCP },
        { "two keys", 400, { { "Host", "localhost" }, { "Idempotency-Key", "a" }, { "Idempotency-Key", "a" } }, TCP },
};

static void S05_head_by_tcp_is_answered_as_each_row_says(void **state)
{
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(tcp_rows) / sizeof(tcp_rows[0]); i++) {
                const struct row *row = &tcp_rows[i];
                struct http_head head = { .by_tcp = true, .hosts = "gpu.example box:8443,\t[fd00::7]" };
                struct problem p = { 0 };
                struct http_facts facts;
                for (; head.n_headers < 8 && row->headers[head.n_headers][0]; head.n_headers++)
                        head.headers[head.n_headers] = (struct http_header){ row->headers[head.n_headers][0],
                                                                             row->headers[head.n_headers][1] };
                int r = http_head_check(&head, &facts, &p);
                row_check(row->name, r == (row->status ? -1 : 0) && p.status == row->status);
        }
        rows_end();
}

static void token_is_found_behind_its_scheme_and_nowhere_else(void **state)
{
        static const char *const values[][2] = {
                { "Bearer abc", "abc" }, { "bearer   abc", "abc" }, { "Bearer ", "" },       { "Bearer", NULL },
                { "Bearerabc", NULL },   { "Basic abc", NULL },     { " Bearer abc", NULL }, { "", NULL },
        };
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
                struct http_head head = { .n_headers = 1, .headers = { { "authorization", values[i][0] } } };
                struct http_facts facts;
                struct problem p;
                row_check(values[i][0], http_head_check(&head, &facts, &p) == 0);
                row_check(values[i][0], values[i][1] ? facts.bearer && strcmp(facts.bearer, values[i][1]) == 0
                                                     : facts.bearer == NULL);
        }
        rows_end();
}

static void F88_head_of_each_row_is_answered_as_written(void **state)
{
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct http_head head = { .may_have_body = !rows[i].get };
                struct problem p = { 0 };
                struct http_facts facts;
                while (head.n_headers < 8 && rows[i].headers[head.n_headers][0]) {
                        head.headers[head.n_headers] = (struct http_header){ rows[i].headers[head.n_headers][0],
                                                                             rows[i].headers[head.n_headers][1] };
                        head.n_headers++;
                }
                int r = http_head_check(&head, &facts, &p);
                row_check(rows[i].name, r == (rows[i].status ? -1 : 0));
                row_check(rows[i].name, p.status == rows[i].status);
        }
        rows_end();
}

static void S07_head_one_byte_or_line_above_its_limit_is_refused(void **state)
{
        static struct http_head head = { .n_bytes = HTTP_HEAD_MAX_BYTES, .n_headers = HTTP_HEADERS_MAX };
        struct problem p = { 0 };
        struct http_facts facts;
        (void) state;
        for (size_t i = 0; i < HTTP_HEADERS_MAX; i++)
                head.headers[i] = (struct http_header){ "X", "" };
        assert_int_equal(http_head_check(&head, &facts, &p), 0);
        head.n_bytes++;
        assert_int_equal(http_head_check(&head, &facts, &p), -1);
        assert_int_equal(p.status, 431);
        head.n_bytes--;
        head.n_headers++;
        assert_int_equal(http_head_check(&head, &facts, &p), -1);
        assert_int_equal(p.status, 431);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(F88_head_of_each_row_is_answered_as_written),
                cmocka_unit_test(S05_head_by_tcp_is_answered_as_each_row_says),
                cmocka_unit_test(token_is_found_behind_its_scheme_and_nowhere_else),
                cmocka_unit_test(S07_head_one_byte_or_line_above_its_limit_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
