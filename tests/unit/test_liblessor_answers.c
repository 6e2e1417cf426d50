/* SPDX-License-Identifier: Apache-2.0 */
/* liblessor and answers that are no lease: not now, no, and what nobody should believe. */
#include <errno.h>
#include <unistd.h>
#include "base/clock.h"
#include "liblessor_scene.h"

/* ---- not now ---- */

static void too_many_connections_are_waited_for_and_not_final(void **state)
{
        (void) state;
        struct lessor_lease *lease = begin_some();
        expect_request("POST /api/leases ");
        fake_answer(&f, 429, "", PROBLEM(429, "limit-connections", "256 at once"));
        assert_int_equal(fake_news(&f), LESSOR_NEWS_AWAY);
        assert_string_equal(lessor_error_text(lessor_lease_error(lease)), "256 at once");
        lease->away_since_ms = clock_now_ms() - 100 * 1000; /* longer than a lessord that is away would be waited for */
        expect_request("POST /api/leases ");
        fake_answer(&f, 429, "", PROBLEM(429, "limit-connections", "256 at once"));
        expect_request("POST /api/leases ");
        fake_answer(&f, 201, "", ACTIVE_L1);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_BACK);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_GRANTED);
        lessor_lease_free(lease);
}

static void lost_question_that_is_still_under_way_is_waited_for(void **state)
{
        (void) state;
        struct lessor_lease *lease = begin_some();
        fake_next_call(&f);
        fake_hang_up(&f);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_AWAY);
        fake_next_call(&f);
        fake_answer(&f, 409, "", PROBLEM(409, "idempotency-key-busy", "has no answer yet"));
        fake_next_call(&f);
        fake_answer(&f, 201, "", ACTIVE_L1);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_BACK);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_GRANTED);
        lessor_lease_free(lease);
}

static void retry_after_is_obeyed_within_reason(void **state)
{
        (void) state;
        static const struct {
                const char *name, *header;
                int status;
                uint64_t min_ms, max_ms;
        } rows[] = {
                { "503", "", 503, 0, REST_FIRST_MS },
                { "503, 2 s", "Retry-After: 2\r\n", 503, 1900, 2000 },
                { "429, 2 s", "retry-after:2\r\n", 429, 1900, 2000 },
                { "an hour", "Retry-After: 3600\r\n", 503, 9900, RETRY_AFTER_MOST_MS },
                { "a date", "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n", 503, 0, REST_FIRST_MS },
                { "negative", "Retry-After: -1\r\n", 503, 0, REST_FIRST_MS },
                { "more than there is", "Retry-After: 99999999999999999999\r\n", 503, 0, REST_FIRST_MS },
        };
        int rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct lessor_lease *lease = begin_some();
                fake_next_call(&f);
                fake_answer(&f, rows[i].status, rows[i].header, PROBLEM(503, "busy", "not now"));
                uint64_t before_ms = clock_now_ms();
                row_check(rows[i].name, fake_news(&f) == LESSOR_NEWS_AWAY);
                row_check(rows[i].name, lease->due_ms >= before_ms + rows[i].min_ms);
                row_check(rows[i].name, lease->due_ms <= clock_now_ms() + rows[i].max_ms);
                lessor_lease_free(lease);
        }
        rows_end();
}

static void away_is_waited_for_so_long_and_then_refused(void **state)
{
        (void) state;
        struct lessor_lease *lease = begin_some();
        assert_int_equal(lessor_set_if_down(f.l, LESSOR_IF_DOWN_WAIT, 1000), 0);
        fake_next_call(&f);
        fake_hang_up(&f);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_AWAY);
        lease->away_since_ms -= 1001;
        fake_next_call(&f);
        fake_hang_up(&f);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_REFUSED);
        assert_int_equal(lessor_error_errno(lessor_lease_error(lease)), EHOSTDOWN);
        assert_non_null(strstr(lessor_error_text(lessor_lease_error(lease)), f.path));
        assert_int_equal(lessor_process(f.l, NULL), LESSOR_NOTHING);
        lessor_lease_free(lease);
}

static void away_ends_at_once_where_it_shall(void **state)
{
        (void) state;
        struct lessor_lease *lease = NULL;
        struct lessor_error *error = NULL;
        (void) unlink(f.path);
        assert_int_equal(lessor_set_if_down(f.l, LESSOR_IF_DOWN_FAIL, 0), 0);
        struct lessor_request *q = some_request();
        assert_int_equal(lessor_acquire(f.l, q, NULL, NULL, &lease, &error), -EHOSTDOWN);
        assert_null(lease);
        assert_int_equal(lessor_error_status(error), 0);
        lessor_error_free(error);
        assert_int_equal(lessor_set_if_down(f.l, LESSOR_IF_DOWN_RUN, 0), 0);
        assert_int_equal(lessor_acquire(f.l, q, NULL, NULL, &lease, NULL), 1);
        assert_int_equal(lessor_lease_state(lease), LESSOR_STATE_WITHOUT);
        assert_int_equal(lessor_lease_renew(lease, NULL), 0);
        assert_int_equal(lessor_lease_follow(lease), 0);
        assert_int_equal(lessor_lease_release(lease, NULL), 0);
        lessor_lease_free(lease);
        lessor_request_free(q);
}

/* ---- no ---- */

static void refusals_become_errors_with_type_and_words(void **state)
{
        (void) state;
        static const struct {
                const char *name, *body;
                int status, code;
        } rows[] = {
                { "bad field", PROBLEM(400, "bad-field", "bytes: x is not allowed"), 400, EINVAL },
                { "ceiling", PROBLEM(403, "priority-ceiling", "a"), 403, EPERM },
                { "device", PROBLEM(404, "unknown-device", "a"), 404, ENOENT },
                { "would wait", PROBLEM(409, "would-wait", "a"), 409, EAGAIN },
                { "wait over", PROBLEM(409, "wait-over", "a"), 409, ETIMEDOUT },
                { "state", PROBLEM(409, "wrong-state", "a"), 409, EBADFD },
                { "never fits", PROBLEM(422, "never-fits", "a"), 422, E2BIG },
                { "no devices", PROBLEM(422, "no-devices", "a"), 422, EINVAL },
                { "limit", PROBLEM(429, "limit-waiting-per-user", "a"), 429, EDQUOT },
                { "disk", PROBLEM(507, "store-full", "a"), 507, ENOSPC },
                { "method", PROBLEM(405, "method-not-allowed", "a"), 405, EOPNOTSUPP },
                { "a status nobody knows", PROBLEM(418, "teapot", "a"), 418, EPROTO },
        };
        int rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct lessor_lease *lease = begin_some();
                fake_next_call(&f);
                fake_answer(&f, rows[i].status, "", rows[i].body);
                row_check(rows[i].name, fake_news(&f) == LESSOR_NEWS_REFUSED);
                const struct lessor_error *e = lessor_lease_error(lease);
                row_check(rows[i].name, lessor_error_errno(e) == rows[i].code);
                row_check(rows[i].name, lessor_error_status(e) == rows[i].status);
                row_check(rows[i].name, strncmp(lessor_error_type(e), "urn:lessor:problem:", 19) == 0);
                row_check(rows[i].name, lessor_error_text(e)[0] != '\0');
                row_check(rows[i].name, strcmp(lessor_error_title(e), "A title") == 0);
                row_check(rows[i].name, lessor_error_json(e)[0] == '{');
                row_check(rows[i].name, lessor_lease_state(lease) == LESSOR_STATE_REFUSED);
                lessor_lease_free(lease);
        }
        rows_end();
}

/* S18: words from elsewhere reach a terminal escaped. */
static void S18_words_of_an_error_cannot_speak_to_the_terminal(void **state)
{
        (void) state;
        struct lessor_lease *lease = begin_some();
        fake_next_call(&f);
        fake_answer(&f, 400, "", PROBLEM(400, "bad-field", "\\u001b]0;x\\u0007"));
        assert_int_equal(fake_news(&f), LESSOR_NEWS_REFUSED);
        assert_null(strchr(lessor_error_text(lessor_lease_error(lease)), 0x1b));
        lessor_lease_free(lease);
}

/* ---- what nobody should believe ---- */

static void answers_that_are_not_lessords_are_refused_with_eproto(void **state)
{
        (void) state;
        static const struct {
                const char *name, *answer;
        } rows[] = {
                { "another protocol", "SSH-2.0-OpenSSH_9.2\r\n\r\n" },
                { "no JSON", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" },
                { "a list", "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n[]" },
                { "nothing", "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n" },
                { "no id", "HTTP/1.1 201 Created\r\nContent-Length: 18\r\n\r\n{\"state\":\"active\"}" },
                { "an id that is a number",
                  "HTTP/1.1 201 Created\r\nContent-Length: 25\r\n\r\n{\"id\":1,\"state\":\"active\"}" },
                { "an id that leads elsewhere",
                  "HTTP/1.1 201 Created\r\nContent-Length: 33\r\n\r\n{\"id\":\"L1/../x\",\"state\":\"queued\"}" },
                { "an id with a line end",
                  "HTTP/1.1 201 Created\r\nContent-Length: 34\r\n\r\n{\"id\":\"L1\\r\\nX: y\",\"state\":\"queued\"" },
                { "a state nobody knows",
                  "HTTP/1.1 201 Created\r\nContent-Length: 26\r\n\r\n{\"id\":\"L1\",\"state\":\"happy\"}" },
                { "keys twice", "HTTP/1.1 201 Created\r\nContent-Length: "
                                "35\r\n\r\n{\"id\":\"L1\",\"id\":\"L2\",\"state\":\"active\"}" },
                { "a length of 2^64", "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n" },
                { "a length of 60 MiB", "HTTP/1.1 200 OK\r\nContent-Length: 62914560\r\n\r\n" },
                { "a refusal that is none", "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n" },
        };
        int rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct lessor_lease *lease = begin_some();
                fake_next_call(&f);
                fake_send(&f, rows[i].answer, strlen(rows[i].answer));
                row_check(rows[i].name, fake_news(&f) == LESSOR_NEWS_REFUSED);
                row_check(rows[i].name, lessor_error_errno(lessor_lease_error(lease)) == EPROTO);
                lessor_lease_free(lease);
        }
        rows_end();
}

static void answer_without_end_is_given_up_at_a_mebibyte(void **state)
{
        (void) state;
        static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        static char chunk[4096 + 8];
        struct lessor_lease *lease = begin_some();
        enum lessor_news news = LESSOR_NOTHING;
        size_t sent = 0;

        int n = snprintf(chunk, sizeof(chunk), "1000\r\n");
        memset(chunk + n, ' ', 4096);
        memcpy(chunk + n + 4096, "\r\n", 2);
        fake_next_call(&f);
        fake_send(&f, head, strlen(head));
        while (news == LESSOR_NOTHING && sent < 8 * (size_t) ANSWER_MAX) {
                fake_send(&f, chunk, sizeof(chunk));
                sent += 4096;
                news = (enum lessor_news) lessor_process(f.l, NULL);
        }
        assert_int_equal(news, LESSOR_NEWS_REFUSED);
        assert_in_range(sent, ANSWER_MAX, ANSWER_MAX + 65536);
        assert_int_equal(lessor_error_errno(lessor_lease_error(lease)), EPROTO);
        lessor_lease_free(lease);
}

static void F87_json_of_a_thousand_levels_does_not_end_us(void **state)
{
        (void) state;
        static char body[12001];
        memset(body, '[', 6000);
        memset(body + 6000, ']', 6000);
        struct lessor_lease *lease = begin_some();
        fake_next_call(&f);
        fake_answer(&f, 201, "", body);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_REFUSED);
        lessor_lease_free(lease);
}

/* One that answers long polls at once and with nothing new. */
static void eager_answers_do_not_spin_us(void **state)
{
        (void) state;
        struct lessor_lease *lease = begin_some();
        fake_next_call(&f);
        fake_answer(&f, 202, "", QUEUED_L1);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_QUEUED);
        fake_next_call(&f);
        fake_answer(&f, 200, "", QUEUED_L1);
        uint64_t before_ms = clock_now_ms();
        assert_int_equal(fake_news(&f), LESSOR_NEWS_QUEUED);
        assert_true(lease->rests && lease->due_ms >= before_ms + 100);
        lessor_lease_free(lease);
}

static void answer_about_another_lease_is_not_taken_for_ours(void **state)
{
        (void) state;
        struct lessor_lease *lease = begin_some();
        fake_next_call(&f);
        fake_answer(&f, 202, "", QUEUED_L1);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_QUEUED);
        fake_next_call(&f);
        fake_answer(&f, 200, "", "{\"id\":\"L2\",\"state\":\"active\",\"rev\":9}");
        assert_int_equal(fake_news(&f), LESSOR_NEWS_REFUSED);
        lessor_lease_free(lease);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
                T(too_many_connections_are_waited_for_and_not_final),
                T(lost_question_that_is_still_under_way_is_waited_for),
                T(retry_after_is_obeyed_within_reason),
                T(away_is_waited_for_so_long_and_then_refused),
                T(away_ends_at_once_where_it_shall),
                T(refusals_become_errors_with_type_and_words),
                T(S18_words_of_an_error_cannot_speak_to_the_terminal),
                T(answers_that_are_not_lessords_are_refused_with_eproto),
                T(answer_without_end_is_given_up_at_a_mebibyte),
                T(F87_json_of_a_thousand_levels_does_not_end_us),
                T(eager_answers_do_not_spin_us),
                T(answer_about_another_lease_is_not_taken_for_ours),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
