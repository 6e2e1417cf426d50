/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "cm.h"
#include "client/sse.h"

static int note(const char *data, void *arg)
{
        strbuf_printf(arg, "[%s]", data);
        return strcmp(data, "stop") == 0 ? -ECANCELED : 0;
}

static const struct row {
        const char *name, *text, *events;
        int result;
} rows[] = {
        { "one", "data: a\n\n", "[a]", 0 },
        { "with id and event", "id: 7\nevent: granted\ndata: {\"x\":1}\n\n", "[{\"x\":1}]", 0 },
        { "two", "data: a\n\ndata: b\n\n", "[a][b]", 0 },
        { "two lines", "data: a\ndata: b\n\n", "[a\nb]", 0 },
        { "line ends of Windows", "data: a\r\n\r\n", "[a]", 0 },
        { "no blank behind the colon", "data:a\n\n", "[a]", 0 },
        { "only one blank is eaten", "data:  a\n\n", "[ a]", 0 },
        { "comment as heartbeat", ": alive\n\n: alive\n\ndata: a\n\n", "[a]", 0 },
        { "not complete", "data: a\n", "", 0 },
        { "the reader stops", "data: stop\n\ndata: b\n\n", "[stop]", -ECANCELED },
};

static void stream_cut_anywhere_gives_the_same_events(void **state)
{
        (void) state;
        int rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                for (size_t step = 1, n = strlen(rows[i].text); step <= n; step++) {
                        struct sse sse;
                        struct strbuf seen;
                        int r = 0;
                        sse_init(&sse);
                        strbuf_init(&seen, 4096);
                        for (size_t at = 0; at < n && r == 0; at += step)
                                r = sse_feed(&sse, rows[i].text + at, n - at < step ? n - at : step, note, &seen, NULL);
                        row_check(rows[i].name, r == rows[i].result);
                        row_check(rows[i].name, strcmp(strbuf_text(&seen), rows[i].events) == 0);
                        strbuf_fini(&seen);
                        sse_fini(&sse);
                }
        rows_end();
}

static void line_without_end_is_given_up(void **state)
{
        (void) state;
        struct sse sse;
        char junk[4096];
        int r = 0;
        sse_init(&sse);
        memset(junk, 'x', sizeof(junk));
        for (size_t fed = 0; fed <= 2 * SSE_EVENT_MAX && r == 0; fed += sizeof(junk))
                r = sse_feed(&sse, junk, sizeof(junk), note, NULL, NULL);
        assert_int_equal(r, -EFBIG);
        sse_fini(&sse);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(stream_cut_anywhere_gives_the_same_events),
                cmocka_unit_test(line_without_end_is_given_up),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
