/* SPDX-License-Identifier: Apache-2.0 */
/* liblessor against a lessord that says anything: what is asked, and the way to a lease. */
#include <errno.h>
#include <unistd.h>
#include "base/clock.h"
#include "liblessor_scene.h"

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
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
