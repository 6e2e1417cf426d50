/* SPDX-License-Identifier: Apache-2.0 */
/* liblessor and a lease that is there: what becomes of it, and what is done to it. */
#include <errno.h>
#include <unistd.h>
#include "base/clock.h"
#include "liblessor_scene.h"

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

#define IN_STATE(state, rev, park)                                                                                     \
        "{\"id\":\"L1\",\"state\":\"" state "\",\"rev\":" #rev ",\"park\":" park                                       \
        ",\"binding\":{\"to\":\"process\",\"pid\":1}}"
#define NO_EVENTS(next) "{\"events\":[],\"next\":" #next "}"

/* Its program has to do something by two of the ways; by the others it only hears that something changed. */
static void followed_lease_is_asked_once_a_way_and_called_back(void **state)
{
        (void) state;
        static const struct {
                const char *answer, *events, *way;
                enum lessor_news news;
        } steps[] = {
                { IN_STATE("asking", 8, "{\"way\":\"checkpoint\",\"deadline_ms\":null}"), NO_EVENTS(8), "checkpoint",
                  LESSOR_NEWS_CHANGED },
                { IN_STATE("asking", 9, "{\"way\":\"cooperate\",\"deadline_ms\":30000}"), NO_EVENTS(9), "cooperate",
                  LESSOR_NEWS_ASKED },
                { IN_STATE("asking", 10, "{\"way\":\"cooperate\",\"deadline_ms\":29000}"), NO_EVENTS(10), "cooperate",
                  LESSOR_NEWS_CHANGED },
                { IN_STATE("asking", 11, "{\"way\":\"restart\",\"deadline_ms\":30000}"), NO_EVENTS(11), "restart",
                  LESSOR_NEWS_ASKED },
                { IN_STATE("parked", 12, "{\"way\":\"restart\",\"deadline_ms\":null}"), NO_EVENTS(12), "restart",
                  LESSOR_NEWS_CHANGED },
                { IN_STATE("thawing", 13, "{\"way\":\"restart\",\"deadline_ms\":null}"), NO_EVENTS(13), "restart",
                  LESSOR_NEWS_THAWING },
                { IN_STATE("active", 14, "null"), NO_EVENTS(14), "", LESSOR_NEWS_CHANGED },
                { IN_STATE("asking", 15, "{\"way\":\"restart\",\"deadline_ms\":30000}"), NO_EVENTS(15), "restart",
                  LESSOR_NEWS_ASKED },
                /* it was not needed after all, and went no further */
                { IN_STATE("active", 16, "null"), NO_EVENTS(16), "", LESSOR_NEWS_THAWING },
        };
        struct lessor_lease *lease = follow();
        uint64_t ms;
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
                if (i > 0)
                        expect_request("GET /api/leases/L1?");
                fake_answer(&f, 200, "", steps[i].answer);
                if (fake_news(&f) != steps[i].news)
                        fail_msg("step %zu", i);
                assert_string_equal(lessor_lease_park_way(lease), steps[i].way);
                if (i == 1)
                        assert_true(lessor_lease_park_deadline_ms(lease, &ms) && ms == 30000);
                expect_request("GET /api/events?");
                fake_answer(&f, 200, "", steps[i].events);
        }
        assert_false(lessor_lease_park_deadline_ms(lease, &ms));
        lessor_lease_free(lease);
}

/* It was parked and came back within milliseconds: the events are ahead of what was seen of the lease, or a call of ours is. */
static void followed_lease_that_comes_back_at_once_is_called_back_all_the_same(void **state)
{
        (void) state;
        struct lessor_lease *lease = follow();
        fake_answer(&f, 200, "", IN_STATE("asking", 8, "{\"way\":\"restart\",\"deadline_ms\":30000}"));
        assert_int_equal(fake_news(&f), LESSOR_NEWS_ASKED);
        expect_request("GET /api/events?lease=L1&after=7 ");
        fake_answer(&f, 200, "", NO_EVENTS(8));
        expect_request("GET /api/leases/L1?after=8&");
        fake_answer(&f, 200, "", IN_STATE("parked", 9, "{\"way\":\"restart\",\"deadline_ms\":null}"));
        assert_int_equal(fake_news(&f), LESSOR_NEWS_CHANGED);
        expect_request("GET /api/events?lease=L1&after=8 ");
        fake_answer(&f, 200, "", "{\"events\":[{\"id\":11,\"kind\":\"thawing\",\"text\":\"\"}],\"next\":11}");
        expect_request("GET /api/leases/L1?after=9&");
        fake_answer(&f, 200, "", IN_STATE("thawing", 11, "{\"way\":\"restart\",\"deadline_ms\":null}"));
        assert_int_equal(fake_news(&f), LESSOR_NEWS_THAWING);
        expect_request("GET /api/events?lease=L1&after=11 ");
        fake_answer(&f, 200, "", NO_EVENTS(11));
        expect_request("GET /api/leases/L1?after=11&");
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

static void what_its_program_says_goes_to_its_address(void **state)
{
        (void) state;
        static const char *const answers[] = {
                OK(29, "{\"id\":\"L1\",\"state\":\"asking\"}  "),
                OK(29, "{\"id\":\"L1\",\"state\":\"active\"}  "),
                OK(29, "{\"id\":\"L1\",\"state\":\"active\"}  "),
                OK(29, "{\"id\":\"L1\",\"state\":\"asking\"}  "),
                "HTTP/1.1 409 Conflict\r\nContent-Length: 40\r\n\r\n{\"type\":\"urn:lessor:problem:not-parked\"} ",
        };
        struct lessor_lease *lease = open_l1();
        int pid = fake_script(&f, answers, 5);
        assert_int_equal(lessor_lease_yielded(lease, NULL), 0);
        assert_int_equal(lessor_lease_state(lease), LESSOR_STATE_ASKING);
        assert_int_equal(lessor_lease_idle(lease, 300000, NULL), 0);
        assert_int_equal(lessor_lease_busy(lease, NULL), 0);
        assert_int_equal(lessor_lease_park(lease, "2h", NULL), 0);
        assert_int_equal(lessor_lease_thaw(lease, NULL), -EBADFD);
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
                T(followed_lease_tells_warnings_and_its_end_in_order),
                T(followed_lease_of_books_begun_anew_is_not_ours),
                T(follower_of_one_of_many_looks_now_and_then),
                T(release_that_was_heard_and_not_answered_is_done),
                T(second_release_says_that_it_is_over),
                T(extension_whose_answer_is_lost_is_not_made_twice),
                T(activation_that_was_heard_and_not_answered_is_done),
                T(addresses_are_made_of_nothing_but_addresses),
                T(what_its_program_says_goes_to_its_address),
                T(followed_lease_is_asked_once_a_way_and_called_back),
                T(followed_lease_that_comes_back_at_once_is_called_back_all_the_same),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
