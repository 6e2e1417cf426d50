/* SPDX-License-Identifier: Apache-2.0 */
/* liblessor against a lessord that says anything: what is asked, what an answer means, what nobody should believe. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cm.h"
#include "base/clock.h"
#include "client/handle.h"
#include "fake_lessord.h"

static struct fake f;

static int start(void **state)
{
        (void) state;
        fake_start(&f);
        return 0;
}

static int stop(void **state)
{
        (void) state;
        fake_stop(&f);
        return 0;
}

#define QUEUED_L1                                                                                                      \
        "{\"id\":\"L1\",\"state\":\"queued\",\"rev\":5,\"place\":2,\"n_waiting\":3,\"expected_start_ms\":9000,"        \
        "\"expectation\":\"in about 9 s\",\"why\":\"waits: no room\",\"reason\":{\"rule\":\"no-room\"},"               \
        "\"binding\":{\"to\":\"process\",\"pid\":1}}"
#define GRANTED_L1 "{\"id\":\"L1\",\"state\":\"granted\",\"rev\":6,\"device\":\"GPU-1\",\"bytes\":1000,\"priority\":3}"
#define ACTIVE_L1                                                                                                      \
        "{\"id\":\"L1\",\"state\":\"active\",\"rev\":7,\"device\":\"GPU-1\",\"bytes\":1000,\"priority\":3,"            \
        "\"slot_left_ms\":5000,\"used_bytes\":null,\"binding\":{\"to\":\"process\",\"pid\":1}}"
#define PROBLEM(status, type, detail)                                                                                  \
        "{\"type\":\"urn:lessor:problem:" type "\",\"title\":\"A title\",\"status\":" #status ",\"detail\":\"" detail  \
        "\"}"

static struct lessor_request *some_request(void)
{
        struct lessor_request *q = NULL;
        assert_int_equal(lessor_request_new(&q), 0);
        assert_int_equal(lessor_request_set_size(q, "90%"), 0);
        return q;
}

static struct lessor_lease *begin(struct lessor_request *q)
{
        struct lessor_lease *lease = NULL;
        assert_int_equal(lessor_acquire_begin(f.l, q, &lease, NULL), 0);
        lessor_request_free(q);
        return lease;
}

static struct lessor_lease *begin_some(void)
{
        return begin(some_request());
}

static void expect_request(const char *line)
{
        fake_next_call(&f);
        if (strncmp(f.request, line, strlen(line)) != 0)
                fail_msg("asked %.*s instead of %s", (int) strcspn(f.request, "\r"), f.request, line);
}

static json_t *body_of_request(void)
{
        json_t *body = json_loads(fake_body(&f), JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(body);
        return body;
}

/* ---- what is asked ---- */

static void request_with_everything_says_everything(void **state)
{
        (void) state;
        struct lessor_request *q = some_request();
        assert_int_equal(lessor_request_set_priority(q, 2), 0);
        assert_int_equal(lessor_request_set_for_ms(q, 7200000), 0);
        assert_int_equal(lessor_request_set_wait_ms(q, 60000), 0);
        assert_int_equal(lessor_request_set_device(q, "GPU-1"), 0);
        assert_int_equal(lessor_request_set_gpus(q, 1), 0);
        assert_int_equal(lessor_request_set_name(q, "näme"), 0);
        assert_int_equal(lessor_request_set_consumer(q, "train.py"), 0);
        assert_int_equal(lessor_request_set_exclusive(q, true), 0);
        assert_int_equal(lessor_request_set_managed(q, true), 0);
        assert_int_equal(lessor_request_set_yield_by(q, "release,kill"), 0);
        assert_int_equal(lessor_request_set_kill_at_end(q, true), 0);
        assert_int_equal(lessor_request_set_kill_left(q, false), 0);
        assert_int_equal(lessor_request_set_field(q, "later", "[1,{}]"), 0);
        assert_int_equal(lessor_request_set_key(q, "key-1"), 0);
        struct lessor_lease *lease = begin(q);
        expect_request("POST /api/leases HTTP/1.1\r\n");

        char key[80];
        assert_string_equal(fake_header(&f, "Idempotency-Key", key, sizeof(key)), "key-1");
        json_t *got = body_of_request();
        json_t *wait_ms = json_incref(json_object_get(got, "wait_ms"));
        assert_in_range(json_integer_value(wait_ms), 50000, 60000);
        json_decref(wait_ms);
        (void) json_object_del(got, "wait_ms");
        json_t *wanted =
                json_pack("{s:s,s:i,s:i,s:s,s:i,s:s,s:s,s:b,s:b,s:s,s:b,s:b,s:[i,{}],s:s,s:{s:s,s:i}}", "bytes", "90%",
                          "priority", 2, "for_ms", 7200000, "device", "GPU-1", "gpus", 1, "name", "näme", "consumer",
                          "train.py", "exclusive", 1, "managed", 1, "yield_by", "release,kill", "kill_at_end", 1,
                          "kill_left", 0, "later", 1, "mode", "queue", "bind", "to", "process", "pid", (int) getpid());
        assert_true(json_equal(got, wanted));
        json_decref(got);
        json_decref(wanted);
        lessor_lease_free(lease);
}

static void request_takes_no_text_that_json_cannot_carry(void **state)
{
        (void) state;
        struct lessor_request *q = some_request();
        assert_int_equal(lessor_request_set_name(q, "\xff"), -EINVAL);
        assert_int_equal(lessor_request_set_name(q, NULL), -EINVAL);
        assert_int_equal(lessor_request_set_field(q, "x", "{"), -EINVAL);
        assert_int_equal(lessor_request_set_bytes(q, UINT64_MAX), -EINVAL);
        assert_int_equal(lessor_request_set_key(q, "a b"), -EINVAL);
        assert_int_equal(lessor_request_set_key(q, "a\r\nX: y"), -EINVAL);
        assert_int_equal(lessor_request_set_key(q, ""), -EINVAL);
        assert_int_equal(lessor_request_bind_to_process(q, -1), -EINVAL);
        lessor_request_free(q);
}

static void modes_follow_from_binding_and_wait(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                int pid;
                bool connection, heartbeat;
                uint64_t wait_ms;
                const char *mode, *to;
        } rows[] = {
                { "own process", 0, false, false, LESSOR_FOR_EVER, "queue", "process" },
                { "own process, now", 0, false, false, 0, "now", "process" },
                { "another process", 1, false, false, LESSOR_FOR_EVER, "wait", "process" },
                { "connection", 0, true, false, LESSOR_FOR_EVER, "wait", "connection" },
                { "connection, now", 0, true, false, 0, "now", "connection" },
                { "heartbeat", 0, false, true, 1000, "wait", "heartbeat" },
        };
        int rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct lessor_request *q = some_request();
                if (rows[i].connection)
                        (void) lessor_request_bind_to_connection(q);
                else if (rows[i].heartbeat)
                        (void) lessor_request_bind_to_heartbeat(q, 0);
                else
                        (void) lessor_request_bind_to_process(q, rows[i].pid);
                (void) lessor_request_set_wait_ms(q, rows[i].wait_ms);
                struct lessor_lease *lease = begin(q);
                fake_next_call(&f);
                json_t *body = body_of_request();
                row_check(rows[i].name, strcmp(json_text(body, "mode", ""), rows[i].mode) == 0);
                row_check(rows[i].name, strcmp(json_text(json_object_get(body, "bind"), "to", ""), rows[i].to) == 0);
                row_check(rows[i].name, !strstr(f.request, "Connection: close") == rows[i].connection);
                json_decref(body);
                lessor_lease_free(lease);
        }
        rows_end();
}

/* ---- the way to a lease ---- */

static void answer_that_comes_byte_by_byte_is_understood(void **state)
{
        (void) state;
        static const char text[] = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
                                   "Transfer-Encoding: chunked\r\n\r\n";
        char whole[2048];
        struct lessor_lease *lease = begin_some();
        expect_request("POST /api/leases ");
        int n = snprintf(whole, sizeof(whole), "%s%zx\r\n%s\r\n0\r\n\r\n", text, strlen(ACTIVE_L1), ACTIVE_L1);
        for (int i = 0; i < n; i++) {
                assert_int_equal(lessor_process(f.l, NULL), LESSOR_NOTHING);
                fake_send(&f, whole + i, 1);
        }
        assert_int_equal(fake_news(&f), LESSOR_NEWS_GRANTED);
        assert_ptr_equal(f.lease, lease);
        assert_string_equal(lessor_lease_id(lease), "L1");
        assert_string_equal(lessor_lease_device(lease), "GPU-1");
        assert_int_equal(lessor_lease_bytes(lease), 1000);
        assert_int_equal(lessor_lease_state(lease), LESSOR_STATE_ACTIVE);
        uint64_t left_ms = 0, used_bytes = 77;
        assert_true(lessor_lease_slot_left_ms(lease, &left_ms));
        assert_int_equal(left_ms, 5000);
        assert_false(lessor_lease_used_bytes(lease, &used_bytes)); /* unknown is not 0 */
        assert_int_equal(used_bytes, 77);
        lessor_lease_free(lease);
}

static void wait_goes_by_long_polls_and_the_grant_is_collected(void **state)
{
        (void) state;
        uint64_t place = 0, n_waiting = 0, start_ms = 0;
        struct lessor_lease *lease = begin_some();
        expect_request("POST /api/leases ");
        fake_answer(&f, 202, "", QUEUED_L1);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_QUEUED);
        assert_int_equal(lessor_lease_state(lease), LESSOR_STATE_QUEUED);
        assert_true(lessor_lease_place(lease, &place, &n_waiting));
        assert_int_equal(place, 2);
        assert_int_equal(n_waiting, 3);
        assert_true(lessor_lease_expected_start_ms(lease, &start_ms));
        assert_int_equal(start_ms, 9000);
        assert_string_equal(lessor_lease_expectation(lease), "in about 9 s");
        assert_string_equal(lessor_lease_text(lease), "waits: no room");
        assert_string_equal(lessor_lease_rule(lease), "no-room");
        expect_request("GET /api/leases/L1?after=5&wait_ms=30000 ");
        fake_answer(&f, 200, "", GRANTED_L1);
        expect_request("POST /api/leases/L1/activate ");
        fake_answer(&f, 200, "", ACTIVE_L1);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_GRANTED);
        assert_int_equal(lessor_lease_state(lease), LESSOR_STATE_ACTIVE);
        lessor_lease_free(lease);
}

static void grant_is_left_uncollected_when_told_so(void **state)
{
        (void) state;
        struct lessor_request *q = some_request();
        assert_int_equal(lessor_request_set_collect(q, false), 0);
        struct lessor_lease *lease = begin(q);
        expect_request("POST /api/leases ");
        fake_answer(&f, 201, "", GRANTED_L1);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_GRANTED);
        assert_int_equal(lessor_lease_state(lease), LESSOR_STATE_GRANTED);
        lessor_lease_free(lease);
}

static void lost_answer_is_asked_for_with_the_same_key_and_words(void **state)
{
        (void) state;
        char key[80], again[80], first[FAKE_REQUEST_MAX];
        struct lessor_request *q = some_request();
        assert_int_equal(lessor_request_set_wait_ms(q, 100000), 0);
        struct lessor_lease *lease = begin(q);
        expect_request("POST /api/leases ");
        assert_int_equal(strlen(fake_header(&f, "Idempotency-Key", key, sizeof(key))), 32);
        (void) snprintf(first, sizeof(first), "%s", fake_body(&f));
        fake_hang_up(&f);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_AWAY);
        assert_int_equal(lessor_error_errno(lessor_lease_error(lease)), EHOSTDOWN);
        expect_request("POST /api/leases ");
        assert_string_equal(fake_header(&f, "Idempotency-Key", again, sizeof(again)), key);
        assert_string_equal(fake_body(&f), first);
        fake_answer(&f, 201, "", ACTIVE_L1);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_BACK);
        assert_null(lessor_lease_error(lease));
        assert_int_equal(fake_news(&f), LESSOR_NEWS_GRANTED);
        lessor_lease_free(lease);
}

static void two_questions_have_two_keys(void **state)
{
        (void) state;
        char key[80], other[80];
        struct lessor_lease *lease = begin_some();
        expect_request("POST /api/leases ");
        (void) fake_header(&f, "Idempotency-Key", key, sizeof(key));
        lessor_lease_free(lease);
        lease = begin_some();
        expect_request("POST /api/leases ");
        assert_string_not_equal(fake_header(&f, "Idempotency-Key", other, sizeof(other)), key);
        lessor_lease_free(lease);
}

static void place_that_was_lost_is_asked_for_anew_under_a_new_key(void **state)
{
        (void) state;
        char key[80], again[80];
        struct lessor_lease *lease = begin_some();
        expect_request("POST /api/leases ");
        (void) fake_header(&f, "Idempotency-Key", key, sizeof(key));
        fake_answer(&f, 202, "", QUEUED_L1);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_QUEUED);
        expect_request("GET /api/leases/L1?");
        fake_answer(
                &f, 410, "",
                "{\"type\":\"urn:lessor:problem:ended\",\"status\":410,\"detail\":\"gone\",\"end\":\"not-collected\"}");
        assert_int_equal(fake_news(&f), LESSOR_NEWS_AGAIN);
        assert_string_equal(lessor_lease_id(lease), "L1");
        expect_request("POST /api/leases ");
        assert_string_not_equal(fake_header(&f, "Idempotency-Key", again, sizeof(again)), key);
        lessor_lease_free(lease);
}

static void wait_that_is_over_gives_up_the_place(void **state)
{
        (void) state;
        struct lessor_request *q = some_request();
        assert_int_equal(lessor_request_set_wait_ms(q, 1), 0);
        struct lessor_lease *lease = begin(q);
        expect_request("POST /api/leases ");
        fake_answer(&f, 202, "", QUEUED_L1);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_QUEUED);
        fake_next_call(&f); /* never answered: nobody tells us that the wait is over */
        lease->deadline_ms = clock_now_ms() - 10000;
        expect_request("DELETE /api/leases/L1 ");
        fake_answer(&f, 200, "", "{\"id\":\"L1\",\"state\":\"ended\"}");
        assert_int_equal(fake_news(&f), LESSOR_NEWS_REFUSED);
        assert_int_equal(lessor_error_errno(lessor_lease_error(lease)), ETIMEDOUT);
        lessor_lease_free(lease);
}

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

/* S06-like: words from elsewhere reach a terminal escaped. */
static void words_of_an_error_cannot_speak_to_the_terminal(void **state)
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

static void json_of_a_thousand_levels_does_not_end_us(void **state)
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

/* ---- followed ---- */

static struct lessor_lease *follow(void)
{
        struct lessor_lease *lease = begin_some();
        fake_next_call(&f);
        fake_answer(&f, 201, "", ACTIVE_L1);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_GRANTED);
        assert_int_equal(lessor_lease_follow(lease), 0);
        expect_request("GET /api/devices ");
        fake_answer(&f, 200, "", "{\"devices\":[]}");
        expect_request("GET /api/leases/L1?after=7&wait_ms=600000 ");
        return lease;
}

static void followed_lease_tells_warnings_and_its_end_in_order(void **state)
{
        (void) state;
        struct lessor_lease *lease = follow();
        fake_answer(&f, 200, "",
                    "{\"id\":\"L1\",\"state\":\"active\",\"rev\":9,\"why\":\"ends in 5 "
                    "s\",\"reason\":{\"rule\":\"slot-ends\"},"
                    "\"binding\":{\"to\":\"process\",\"pid\":1}}");
        assert_int_equal(fake_news(&f), LESSOR_NEWS_CHANGED);
        expect_request("GET /api/events?lease=L1&after=7 ");
        fake_answer(&f, 200, "",
                    "{\"events\":[{\"id\":8,\"kind\":\"warning\",\"rule\":\"over-use\",\"text\":\"uses too much\"},"
                    "{\"id\":9,\"kind\":\"warning\",\"rule\":\"slot-ends\",\"text\":\"ends in 9 s\"}],\"next\":9}");
        assert_int_equal(fake_news(&f), LESSOR_NEWS_WARNING);
        assert_string_equal(lessor_lease_text(lease), "uses too much");
        assert_string_equal(lessor_lease_rule(lease), "over-use");
        assert_int_equal(fake_news(&f), LESSOR_NEWS_WARNING);
        assert_string_equal(lessor_lease_text(lease), "ends in 5 s"); /* as seen from now */
        expect_request("GET /api/leases/L1?after=9&");
        fake_answer(&f, 410, "", PROBLEM(410, "ended", "over"));
        expect_request("GET /api/events?lease=L1&after=9 ");
        fake_answer(&f, 200, "",
                    "{\"events\":[{\"id\":12,\"kind\":\"ended\",\"rule\":\"ended\",\"text\":\"released by "
                    "alice\"}],\"next\":12}");
        assert_int_equal(fake_news(&f), LESSOR_NEWS_ENDED);
        assert_string_equal(lessor_lease_text(lease), "released by alice");
        assert_int_equal(lessor_lease_state(lease), LESSOR_STATE_ENDED);
        assert_int_equal(lessor_process(f.l, NULL), LESSOR_NOTHING);
        lessor_lease_free(lease);
}

static void followed_lease_of_books_begun_anew_is_not_ours(void **state)
{
        (void) state;
        struct lessor_lease *lease = follow();
        fake_answer(&f, 200, "",
                    "{\"id\":\"L1\",\"state\":\"active\",\"rev\":9,\"binding\":{\"to\":\"process\",\"pid\":2}}");
        assert_int_equal(fake_news(&f), LESSOR_NEWS_ENDED);
        lessor_lease_free(lease);
}

static void follower_of_one_of_many_looks_now_and_then(void **state)
{
        (void) state;
        static char devices[8192];
        struct lessor_lease *lease = begin_some();
        size_t n = 0;
        fake_next_call(&f);
        fake_answer(&f, 201, "", ACTIVE_L1);
        assert_int_equal(fake_news(&f), LESSOR_NEWS_GRANTED);
        assert_int_equal(lessor_lease_follow(lease), 0);
        fake_next_call(&f);
        n += (size_t) snprintf(devices, sizeof(devices), "{\"devices\":[{\"holders\":[{\"lease\":\"L1\"}");
        for (int i = 0; i < 64; i++)
                n += (size_t) snprintf(devices + n, sizeof(devices) - n, ",{\"lease\":\"L%d\"}", i + 2);
        (void) snprintf(devices + n, sizeof(devices) - n, "]}]}");
        fake_answer(&f, 200, "", devices);
        expect_request("GET /api/leases/L1?after=7&wait_ms=0 ");
        fake_answer(&f, 200, "", ACTIVE_L1);
        assert_int_equal(lessor_process(f.l, NULL), LESSOR_NOTHING);
        assert_true(lease->rests && lease->due_ms > clock_now_ms() + 10000);
        lessor_lease_free(lease);
}

/* ---- questions that wait ---- */

#define OK(body_length, body) "HTTP/1.1 200 OK\r\nContent-Length: " #body_length "\r\n\r\n" body

static struct lessor_lease *open_l1(void)
{
        static const char *const answers[] = { OK(29, "{\"id\":\"L1\",\"state\":\"active\"}  ") };
        struct lessor_lease *lease = NULL;
        int pid = fake_script(&f, answers, 1);
        assert_int_equal(lessor_lease_open(f.l, "L1", &lease, NULL), 0);
        fake_script_end(pid);
        return lease;
}

static void release_that_was_heard_and_not_answered_is_done(void **state)
{
        (void) state;
        static const char *const answers[] = {
                "", "HTTP/1.1 410 Gone\r\nContent-Length: 35\r\n\r\n{\"type\":\"urn:lessor:problem:ended\"}  "
        };
        struct lessor_lease *lease = open_l1();
        int pid = fake_script(&f, answers, 2);
        assert_int_equal(lessor_lease_release(lease, NULL), 0);
        fake_script_end(pid);
        lessor_lease_free(lease);
}

static void second_release_says_that_it_is_over(void **state)
{
        (void) state;
        static const char *const answers[] = {
                "HTTP/1.1 410 Gone\r\nContent-Length: 35\r\n\r\n{\"type\":\"urn:lessor:problem:ended\"}  "
        };
        struct lessor_error *error = NULL;
        struct lessor_lease *lease = open_l1();
        int pid = fake_script(&f, answers, 1);
        assert_int_equal(lessor_lease_release(lease, &error), -EIDRM);
        assert_int_equal(lessor_error_status(error), 410);
        lessor_error_free(error);
        fake_script_end(pid);
        lessor_lease_free(lease);
}

static void extension_whose_answer_is_lost_is_not_made_twice(void **state)
{
        (void) state;
        static const char *const answers[] = { "" };
        struct lessor_lease *lease = open_l1();
        int pid = fake_script(&f, answers, 1);
        assert_int_equal(lessor_lease_extend(lease, "30m", NULL), -ENOTRECOVERABLE);
        fake_script_end(pid);
        lessor_lease_free(lease);
}

static void activation_that_was_heard_and_not_answered_is_done(void **state)
{
        (void) state;
        static const char *const answers[] = {
                "",
                "HTTP/1.1 409 Conflict\r\nContent-Length: 41\r\n\r\n{\"type\":\"urn:lessor:problem:wrong-state\"}  ",
                OK(29, "{\"id\":\"L1\",\"state\":\"active\"}  ")
        };
        struct lessor_lease *lease = open_l1();
        int pid = fake_script(&f, answers, 3);
        assert_int_equal(lessor_lease_activate(lease, (int) getpid(), 0, NULL), 0);
        fake_script_end(pid);
        lessor_lease_free(lease);
}

static void addresses_are_made_of_nothing_but_addresses(void **state)
{
        (void) state;
        struct lessor_lease *lease = NULL;
        static const char *const ids[] = { "",           "L1/activate", "L1 HTTP/1.1",
                                           "L1\r\nX: y", "../x",        "L11111111111111111111111" };
        for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
                assert_int_equal(lessor_lease_open(f.l, ids[i], &lease, NULL), -EINVAL);
        assert_int_equal(lessor_call(f.l, "GET", "/x y", NULL, NULL, NULL, NULL), -EINVAL);
        assert_int_equal(lessor_call(f.l, "GET /x", "/", NULL, NULL, NULL, NULL), -EINVAL);
        assert_int_equal(lessor_call(f.l, "GET", "http://x/", NULL, NULL, NULL, NULL), -EINVAL);
        assert_int_equal(lessor_call(f.l, "POST", "/", "{", NULL, NULL, NULL), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, start, stop)
                T(request_with_everything_says_everything),
                T(request_takes_no_text_that_json_cannot_carry),
                T(modes_follow_from_binding_and_wait),
                T(answer_that_comes_byte_by_byte_is_understood),
                T(wait_goes_by_long_polls_and_the_grant_is_collected),
                T(grant_is_left_uncollected_when_told_so),
                T(lost_answer_is_asked_for_with_the_same_key_and_words),
                T(two_questions_have_two_keys),
                T(place_that_was_lost_is_asked_for_anew_under_a_new_key),
                T(wait_that_is_over_gives_up_the_place),
                T(too_many_connections_are_waited_for_and_not_final),
                T(retry_after_is_obeyed_within_reason),
                T(away_is_waited_for_so_long_and_then_refused),
                T(away_ends_at_once_where_it_shall),
                T(refusals_become_errors_with_type_and_words),
                T(words_of_an_error_cannot_speak_to_the_terminal),
                T(answers_that_are_not_lessords_are_refused_with_eproto),
                T(answer_without_end_is_given_up_at_a_mebibyte),
                T(json_of_a_thousand_levels_does_not_end_us),
                T(eager_answers_do_not_spin_us),
                T(answer_about_another_lease_is_not_taken_for_ours),
                T(followed_lease_tells_warnings_and_its_end_in_order),
                T(followed_lease_of_books_begun_anew_is_not_ours),
                T(follower_of_one_of_many_looks_now_and_then),
                T(release_that_was_heard_and_not_answered_is_done),
                T(second_release_says_that_it_is_over),
                T(extension_whose_answer_is_lost_is_not_made_twice),
                T(activation_that_was_heard_and_not_answered_is_done),
                T(addresses_are_made_of_nothing_but_addresses),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
