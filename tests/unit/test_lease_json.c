/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of POST /api/leases and its like: what is taken, and for each thing that is not, which field the words name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/change_json.h"
#include "api/json_text.h"
#include "api/lease_json.h"
#include "cm.h"
#include "model/lease.h"

#define MI (UINT64_C(1024) * 1024)

static void ask_with_size_alone_has_the_defaults(void **state)
{
        static const char body[] = "{\"bytes\":\"1500M\"}";
        struct lease_ask ask;
        struct problem p;
        (void) state;
        assert_int_equal(lease_json_parse(body, sizeof(body) - 1, &ask, &p), 0);
        assert_int_equal(ask.request.bytes, 1500 * MI);
        assert_int_equal(ask.request.priority, 3);
        assert_int_equal(ask.mode, LEASE_ASK_WAIT);
        assert_int_equal(ask.request.slot_ms, 0);
        assert_int_equal(ask.request.wait_ms, 0);
        assert_true(ask.request.collected);
        assert_false(ask.request.no_wait);
        assert_int_equal(ask.request.binding.kind, BINDING_PROCESS);
        assert_int_equal(ask.bind_pid, 0);
        assert_int_equal(ask.request.ways.named, 0);
        assert_string_equal(ask.request.device_uuid, "");
        assert_string_equal(ask.request.consumer, "");
}

static void ask_with_every_field_takes_each(void **state)
{
        static const char body[] =
                "{\"bytes\":\"90%\",\"priority\":\"batch\",\"for\":\"2h\",\"mode\":\"queue\",\"wait_ms\":5000,"
                "\"device\":\"GPU-1\",\"name\":\"n\",\"consumer\":\"c\",\"managed\":true,\"kill_at_end\":true,"
                "\"yield_by\":[\"cooperate\",\"restart\"],\"bind\":{\"to\":\"heartbeat\",\"ttl_ms\":1000}}";
        struct lease_ask ask;
        struct problem p;
        (void) state;
        assert_int_equal(lease_json_parse(body, sizeof(body) - 1, &ask, &p), 0);
        assert_int_equal(ask.request.bytes, 0);
        assert_int_equal(ask.request.percent_milli, 90000);
        assert_int_equal(ask.request.priority, 4);
        assert_int_equal(ask.request.slot_ms, 7200000);
        assert_int_equal(ask.mode, LEASE_ASK_QUEUE);
        assert_false(ask.request.collected);
        assert_int_equal(ask.request.wait_ms, 5000);
        assert_string_equal(ask.request.device_uuid, "GPU-1");
        assert_string_equal(ask.request.name, "n");
        assert_string_equal(ask.request.consumer, "c");
        assert_true(ask.request.managed && ask.request.kill_at_end);
        assert_int_equal(ask.request.ways.named, WAY_OUT_BIT(WAY_OUT_COOPERATE) | WAY_OUT_BIT(WAY_OUT_RESTART));
        assert_int_equal(ask.request.binding.kind, BINDING_HEARTBEAT);
        assert_int_equal(ask.request.binding.ttl_ms, 1000);
}

static void ask_with_nulls_is_as_if_they_were_left_out(void **state)
{
        static const char body[] =
                "{\"bytes\":1,\"device\":null,\"for\":null,\"wait_ms\":null,\"bind\":null,\"name\":null}";
        struct lease_ask ask;
        struct problem p;
        (void) state;
        assert_int_equal(lease_json_parse(body, sizeof(body) - 1, &ask, &p), 0);
        assert_int_equal(ask.request.bytes, 1);
        assert_int_equal(ask.request.binding.kind, BINDING_PROCESS);
}

#define LONG63 "123456789012345678901234567890123456789012345678901234567890123"

static void ask_for_later_waits_for_its_time_and_is_bound_to_nobody(void **state)
{
        static const char at[] =
                "{\"bytes\":1,\"start\":\"2026-12-01T22:00:00+01:00\",\"for\":\"3h\",\"every\":\"day\"}";
        static const char in[] = "{\"bytes\":1,\"in\":\"3s\",\"for_ms\":1000,\"mode\":\"queue\",\"bind\":null}";
        struct lease_ask ask;
        struct problem p;
        (void) state;
        assert_int_equal(lease_json_parse(at, sizeof(at) - 1, &ask, &p), 0);
        assert_true(ask.books && ask.request.daily);
        assert_int_equal(ask.start_wall_ms, UINT64_C(1796158800000));
        assert_int_equal(ask.start_in_ms, 0);
        assert_int_equal(ask.mode, LEASE_ASK_QUEUE);
        assert_false(ask.request.collected);
        assert_int_equal(plan_json_parse(in, sizeof(in) - 1, &ask, &p), 0);
        assert_true(ask.books && !ask.request.daily);
        assert_int_equal(ask.start_wall_ms, 0);
        assert_int_equal(ask.start_in_ms, 3000);
}

static const struct {
        const char *body;
        const char *field; /* NULL = accepted; "" = the JSON itself */
} edges[] = {
        { "{\"bytes\":1}", NULL },
        { "{\"bytes\":9223372036854775807}", NULL },
        { "{\"bytes\":0}", "bytes" },
        { "{\"bytes\":1,\"for\":\"20h\",\"in\":\"1s\",\"every\":\"day\"}", NULL },
        { "{\"bytes\":1,\"for\":\"20h1s\",\"in\":\"1s\",\"every\":\"day\"}", "for" },
        { "{\"bytes\":1,\"for_ms\":72000001,\"in\":\"1s\",\"every\":\"day\"}", "for_ms" },
        { "{\"bytes\":1,\"for\":\"1h\",\"every\":\"day\"}", "every" },
        { "{\"bytes\":1,\"for\":\"1h\",\"in\":\"1s\",\"every\":1}", "every" },
        { "{\"bytes\":1,\"in\":\"1s\"}", "for" },
        { "{\"bytes\":1,\"for\":\"1h\",\"in\":1000}", "in" },
        { "{\"bytes\":1,\"for\":\"1h\",\"in\":\"1s\",\"start\":\"2026-12-01T22:00:00Z\"}", "in" },
        { "{\"bytes\":1,\"for\":\"1h\",\"start\":\"2026-12-01T22:00:00\"}", "start" },
        { "{\"bytes\":1,\"for\":\"1h\",\"start\":\"22:00\"}", "start" },
        { "{\"bytes\":1,\"for\":\"1h\",\"in\":\"1s\",\"mode\":\"wait\"}", "mode" },
        { "{\"bytes\":1,\"for\":\"1h\",\"in\":\"1s\",\"mode\":\"now\"}", "mode" },
        { "{\"bytes\":1,\"for\":\"1h\",\"in\":\"1s\",\"wait_ms\":1}", "wait_ms" },
        { "{\"bytes\":1,\"for\":\"1h\",\"in\":\"1s\",\"bind\":{\"to\":\"process\"}}", "bind" },
        { "{\"bytes\":1,\"for\":\"1h\",\"in\":\"1s\",\"filler\":true}", "filler" },
        { "{\"bytes\":1,\"for\":\"1h\",\"in\":\"1s\",\"filler\":false}", NULL },
        { "{\"for\":\"1h\",\"in\":\"1s\",\"exclusive\":true}", "exclusive" },
        { "{\"bytes\":-1}", "bytes" },
        { "{\"bytes\":9223372036854775808}", "bytes" },
        { "{\"bytes\":18446744073709551616}", "bytes" },
        { "{\"bytes\":1e400}", "bytes" },
        { "{\"bytes\":1e3}", "bytes" },
        { "{\"bytes\":1.5}", "bytes" },
        { "{\"bytes\":NaN}", "bytes" },
        { "{\"bytes\":Infinity}", "bytes" },
        { "{\"bytes\":-Infinity}", "bytes" },
        { "{\"bytes\":0x10}", "bytes" },
        { "{\"bytes\":12G}", "bytes" },
        { "{\"bytes\":}", "" },
        { "{\"bytes\":null}", "bytes" },
        { "{\"bytes\":true}", "bytes" },
        { "{\"bytes\":[]}", "bytes" },
        { "{\"bytes\":\"\"}", "bytes" },
        { "{\"bytes\":\"12 G\"}", "bytes" },
        { "{\"bytes\":\" 12G\"}", "bytes" },
        { "{\"bytes\":\"-1\"}", "bytes" },
        { "{\"bytes\":\"0\"}", "bytes" },
        { "{\"bytes\":\"9223372036854775808\"}", "bytes" },
        { "{\"bytes\":\"18446744073709551616\"}", "bytes" },
        { "{\"bytes\":\"1e400\"}", "bytes" },
        { "{\"bytes\":\"NaN\"}", "bytes" },
        { "{\"bytes\":\"101%\"}", "bytes" },
        { "{\"bytes\":\"learned\"}", NULL },
        { "{\"bytes\":\"Learned\"}", "bytes" },
        { "{\"bytes\":\"learned\",\"exclusive\":true}", "bytes" },
        { "{\"exclusive\":true,\"bytes\":\"learned\"}", "bytes" },
        { "{\"bytes\":\"0%\"}", "bytes" },
        { "{}", "bytes" },
        { "{\"bytes\":1,\"priority\":1}", NULL },
        { "{\"bytes\":1,\"priority\":5}", NULL },
        { "{\"bytes\":1,\"priority\":\"5\"}", NULL },
        { "{\"bytes\":1,\"priority\":0}", "priority" },
        { "{\"bytes\":1,\"priority\":6}", "priority" },
        { "{\"bytes\":1,\"priority\":-1}", "priority" },
        { "{\"bytes\":1,\"priority\":9223372036854775808}", "priority" },
        { "{\"bytes\":1,\"priority\":4294967297}", "priority" },
        { "{\"bytes\":1,\"priority\":1.0}", "priority" },
        { "{\"bytes\":1,\"priority\":\"\"}", "priority" },
        { "{\"bytes\":1,\"priority\":\"highest\"}", "priority" },
        { "{\"bytes\":1,\"priority\":NaN}", "priority" },
        { "{\"bytes\":1,\"for\":\"500ms\"}", NULL },
        { "{\"bytes\":1,\"for\":\"365d\"}", NULL },
        { "{\"bytes\":1,\"for\":\"366d\"}", "for" },
        { "{\"bytes\":1,\"for\":\"0s\"}", "for" },
        { "{\"bytes\":1,\"for\":\"\"}", "for" },
        { "{\"bytes\":1,\"for\":\"-1s\"}", "for" },
        { "{\"bytes\":1,\"for\":\"2 h\"}", "for" },
        { "{\"bytes\":1,\"for\":3600}", "for" },
        { "{\"bytes\":1,\"for_ms\":1}", NULL },
        { "{\"bytes\":1,\"for_ms\":0}", "for_ms" },
        { "{\"bytes\":1,\"for_ms\":-1}", "for_ms" },
        { "{\"bytes\":1,\"for_ms\":31536000001}", "for_ms" },
        { "{\"bytes\":1,\"for_ms\":9223372036854775808}", "for_ms" },
        { "{\"bytes\":1,\"for_ms\":1,\"for\":\"1s\"}", "for_ms" },
        { "{\"bytes\":1,\"wait_ms\":1,\"wait\":\"1s\"}", "wait_ms" },
        { "{\"bytes\":1,\"wait\":\"1s\",\"mode\":\"now\"}", "wait" },
        { "{\"bytes\":1,\"wait_ms\":0}", "wait_ms" },
        { "{\"bytes\":1,\"mode\":\"later\"}", "mode" },
        { "{\"bytes\":1,\"mode\":1}", "mode" },
        { "{\"bytes\":1,\"name\":\"" LONG63 "\"}", NULL },
        { "{\"bytes\":1,\"name\":\"" LONG63 "4\"}", "name" },
        { "{\"bytes\":1,\"name\":\"\"}", "name" },
        { "{\"bytes\":1,\"name\":\"a\\nb\"}", "name" },
        { "{\"bytes\":1,\"name\":\"\\u001b[31m\"}", "name" },
        { "{\"bytes\":1,\"name\":\"\\u0085\"}", "name" },
        { "{\"bytes\":1,\"name\":\"gr\\u00fc\\u00df\"}", NULL },
        { "{\"bytes\":1,\"name\":\"a\\u0000b\"}", "" },
        { "{\"bytes\":1,\"name\":\"\\ud800\"}", "" },
        { "{\"bytes\":1,\"name\":\"\xff\"}", "" },
        { "{\"bytes\":1,\"consumer\":7}", "consumer" },
        { "{\"bytes\":1,\"device\":\"\"}", "device" },
        { "{\"bytes\":1,\"device\":0}", "device" },
        { "{\"bytes\":1,\"managed\":1}", "managed" },
        { "{\"bytes\":1,\"managed\":\"true\"}", "managed" },
        { "{\"bytes\":1,\"kill_at_end\":0}", "kill_at_end" },
        { "{\"bytes\":1,\"yield_by\":\"restart,kill\"}", NULL },
        { "{\"bytes\":1,\"yield_by\":[]}", NULL },
        { "{\"bytes\":1,\"yield_by\":\"\"}", "yield_by" },
        { "{\"bytes\":1,\"yield_by\":\"restart,\"}", "yield_by" },
        { "{\"bytes\":1,\"yield_by\":[\"restart,kill\"]}", "yield_by" },
        { "{\"bytes\":1,\"yield_by\":[\"sleep\"]}", "yield_by" },
        { "{\"bytes\":1,\"yield_by\":[1]}", "yield_by" },
        { "{\"bytes\":1,\"yield_by\":{}}", "yield_by" },
        { "{\"bytes\":1,\"bind\":{\"to\":\"connection\"}}", NULL },
        { "{\"bytes\":1,\"bind\":{\"to\":\"process\",\"pid\":null}}", NULL },
        { "{\"bytes\":1,\"bind\":{\"to\":\"process\",\"pid\":1}}", NULL },
        { "{\"bytes\":1,\"bind\":{\"to\":\"process\",\"pid\":0}}", "bind.pid" },
        { "{\"bytes\":1,\"bind\":{\"to\":\"process\",\"pid\":-1}}", "bind.pid" },
        { "{\"bytes\":1,\"bind\":{\"to\":\"process\",\"pid\":4294967297}}", "bind.pid" },
        { "{\"bytes\":1,\"bind\":{\"to\":\"process\",\"ttl_ms\":1000}}", "bind" },
        { "{\"bytes\":1,\"bind\":{\"to\":\"connection\",\"pid\":1}}", "bind" },
        { "{\"bytes\":1,\"bind\":{\"to\":\"heartbeat\"}}", NULL },
        { "{\"bytes\":1,\"bind\":{\"to\":\"heartbeat\",\"ttl_ms\":999}}", "bind.ttl_ms" },
        { "{\"bytes\":1,\"bind\":{\"to\":\"heartbeat\",\"ttl_ms\":86400001}}", "bind.ttl_ms" },
        { "{\"bytes\":1,\"bind\":{\"to\":\"cgroup\"}}", "bind" },
        { "{\"bytes\":1,\"bind\":{\"pid\":1}}", "bind" },
        { "{\"bytes\":1,\"bind\":{\"to\":\"process\",\"uid\":0}}", "bind" },
        { "{\"bytes\":1,\"bind\":\"process\"}", "bind" },
        { "{\"bytes\":1,\"bind\":{\"to\":\"connection\"},\"mode\":\"queue\"}", "bind" },
        { "{\"bytes\":1,\"uid\":0}", "uid" },
        { "{\"bytes\":1,\"Bytes\":2}", "Bytes" },
        { "{\"bytes\":1,\"\":2}", "bad" },
        { "{\"bytes\":1,\"bytes\":2}", "" },
        { "{\"bytes\":1} x", "" },
        { "{\"bytes\":1", "" },
        { "[{\"bytes\":1}]", "" },
        { "\"bytes\"", "" },
        { "", "" },
};

static void ask_at_each_edge_is_taken_or_names_its_field(void **state)
{
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
                struct lease_ask ask;
                struct problem p = { 0 };
                int r = lease_json_parse(edges[i].body, strlen(edges[i].body), &ask, &p);
                if (!edges[i].field) {
                        row_check(edges[i].body, r == 0);
                        continue;
                }
                row_check(edges[i].body, r == -1 && p.status == 400 && p.detail[0]);
                if (edges[i].field[0] == '\0') {
                        row_check(edges[i].body, strcmp(p.type, "bad-json") == 0);
                        continue;
                }
                row_check(edges[i].body, strcmp(p.type, "bad-field") == 0 && p.allowed[0] && p.cure[0]);
                if (strcmp(edges[i].field, "bad") != 0)
                        row_check(edges[i].body, strcmp(p.field, edges[i].field) == 0);
        }
        rows_end();
}

static void refusal_repeats_what_was_given(void **state)
{
        static const struct {
                const char *body, *given;
        } rows[] = {
                { "{\"bytes\":-1}", "-1" },
                { "{\"bytes\":1e400}", "1e400" },
                { "{\"bytes\":NaN}", "NaN" },
                { "{\"bytes\":18446744073709551616}", "18446744073709551616" },
                { "{\"bytes\":\"12 G\"}", "\"12 G\"" },
                { "{\"bytes\":1,\"priority\":9}", "9" },
        };
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct lease_ask ask;
                struct problem p = { 0 };
                row_check(rows[i].body, lease_json_parse(rows[i].body, strlen(rows[i].body), &ask, &p) == -1);
                row_check(rows[i].body, strcmp(p.given, rows[i].given) == 0);
        }
        rows_end();
}

/* F87: nesting is refused before anything is parsed. */
static void F87_body_nested_deeper_than_its_limit_is_refused(void **state)
{
        char text[2 * JSON_DEPTH_MAX + 3];
        (void) state;
        memset(text, '[', JSON_DEPTH_MAX);
        memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
        assert_true(json_text_depth_is_fine(text, 2 * JSON_DEPTH_MAX, JSON_DEPTH_MAX));
        memset(text, '[', JSON_DEPTH_MAX + 1);
        assert_false(json_text_depth_is_fine(text, JSON_DEPTH_MAX + 1, JSON_DEPTH_MAX));
        assert_true(json_text_depth_is_fine("\"[[[[\\\"[[[[\"", 13, 1));

        enum { MILLION = 1000000 };
        char *brackets = malloc(MILLION);
        struct lease_ask ask;
        struct problem p = { 0 };
        assert_non_null(brackets);
        memset(brackets, '[', MILLION);
        assert_int_equal(lease_json_parse(brackets, MILLION, &ask, &p), -1);
        assert_int_equal(p.status, 400);
        free(brackets);
}

static void F87_body_with_a_number_of_5000_digits_names_its_field(void **state)
{
        char body[5100];
        struct lease_ask ask;
        struct problem p = { 0 };
        (void) state;
        int n = snprintf(body, sizeof(body), "{\"bytes\":");
        memset(body + n, '9', 5000);
        body[n + 5000] = '}';
        assert_int_equal(lease_json_parse(body, (size_t) n + 5001, &ask, &p), -1);
        assert_string_equal(p.field, "bytes");
}

static void activate_takes_nothing_or_pid_and_cgroup(void **state)
{
        struct activate_ask ask;
        struct problem p = { 0 };
        (void) state;
        assert_int_equal(activate_json_parse("", 0, &ask, &p), 0);
        assert_int_equal(ask.pid, 0);
        static const char both[] = "{\"pid\":7,\"cgroup_id\":9}";
        assert_int_equal(activate_json_parse(both, sizeof(both) - 1, &ask, &p), 0);
        assert_int_equal(ask.pid, 7);
        assert_int_equal(ask.cgroup_id, 9);
        static const char wrong[] = "{\"pid\":\"7\"}";
        assert_int_equal(activate_json_parse(wrong, sizeof(wrong) - 1, &ask, &p), -1);
        assert_string_equal(p.field, "pid");
        static const char unknown[] = "{\"Pid\":7}";
        assert_int_equal(activate_json_parse(unknown, sizeof(unknown) - 1, &ask, &p), -1);
        assert_string_equal(p.field, "Pid");
        assert_int_equal(empty_json_parse("{}", 2, &p), 0);
        assert_int_equal(empty_json_parse(both, sizeof(both) - 1, &p), -1);
}

static void exclusive_needs_no_size_and_anything_else_does(void **state)
{
        static const char body[] = "{\"exclusive\":true,\"kill_left\":true,\"gpus\":1}";
        static const char none[] = "{\"exclusive\":false}", share[] = "{\"exclusive\":true,\"bytes\":\"90%\"}";
        struct lease_ask ask;
        struct problem p;
        (void) state;
        assert_int_equal(lease_json_parse(body, sizeof(body) - 1, &ask, &p), 0);
        assert_true(ask.request.exclusive && ask.request.kill_left && !ask.request.adopt);
        assert_int_equal(ask.request.bytes, 0);
        assert_int_equal(plan_json_parse(body, sizeof(body) - 1, &ask, &p), 0);
        assert_int_equal(lease_json_parse(share, sizeof(share) - 1, &ask, &p), -1);
        assert_string_equal(p.field, "bytes");
        assert_int_equal(lease_json_parse(none, sizeof(none) - 1, &ask, &p), -1);
        assert_string_equal(p.field, "bytes");
}

static void devices_are_counted_from_one_and_are_eight_at_most(void **state)
{
        static const char two[] = "{\"bytes\":\"1G\",\"gpus\":2}", none[] = "{\"bytes\":\"1G\",\"gpus\":0}";
        static const char nine[] = "{\"bytes\":\"1G\",\"gpus\":9}";
        struct lease_ask ask;
        struct problem p;
        (void) state;
        assert_int_equal(lease_json_parse(two, sizeof(two) - 1, &ask, &p), 0);
        assert_int_equal(ask.request.n_more, 1);
        assert_int_equal(lease_json_parse(none, sizeof(none) - 1, &ask, &p), -1);
        assert_string_equal(p.field, "gpus");
        assert_int_equal(lease_json_parse(nine, sizeof(nine) - 1, &ask, &p), -1);
        assert_string_equal(p.field, "gpus");
}

static void adopting_takes_a_pid_and_no_size(void **state)
{
        static const struct {
                const char *body, *field;
        } wrong[] = { { "{}", "pid" },
                      { "{\"pid\":0}", "pid" },
                      { "{\"pid\":4194305}", "pid" },
                      { "{\"pid\":1.0}", "pid" },
                      { "{\"pid\":1,\"mode\":\"now\"}", "mode" },
                      { "{\"pid\":1,\"bind\":{\"to\":\"process\"}}", "bind" },
                      { "{\"pid\":1,\"bytes\":\"learned\"}", "bytes" },
                      { "{\"pid\":1,\"cgroup\":1}", "cgroup" } };
        static const char body[] = "{\"pid\":4711,\"cgroup\":true,\"priority\":4}";
        struct lease_ask ask;
        struct problem p;
        (void) state;
        assert_int_equal(adopt_json_parse(body, sizeof(body) - 1, &ask, &p), 0);
        assert_true(ask.request.adopt && ask.adopt_cgroup);
        assert_int_equal(ask.adopt_pid, 4711);
        assert_int_equal(ask.request.bytes + ask.request.percent_milli, 0);
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                assert_int_equal(adopt_json_parse(wrong[i].body, strlen(wrong[i].body), &ask, &p), -1);
                assert_string_equal(p.field, wrong[i].field);
        }
}

static void change_takes_what_it_names_and_no_contradictions(void **state)
{
        static const struct {
                const char *body, *field;
        } wrong[] = { { "{}", "priority" },
                      { "{\"priority\":0}", "priority" },
                      { "{\"extend\":\"1h\",\"for\":null}", "extend" },
                      { "{\"for\":\"1h\",\"for_ms\":1}", "extend" },
                      { "{\"pin\":1}", "pin" },
                      { "{\"bytes\":1}", "bytes" } };
        static const char body[] = "{\"priority\":\"batch\",\"extend\":\"30m\",\"pin\":\"2h\"}";
        struct change c;
        struct problem p;
        (void) state;
        assert_int_equal(change_json_parse(body, sizeof(body) - 1, &c, &p), 0);
        assert_int_equal(c.what, CHANGE_PRIORITY | CHANGE_EXTEND | CHANGE_PIN);
        assert_int_equal(c.priority, 4);
        assert_int_equal(c.slot_ms, 1800000);
        assert_int_equal(c.pin_ms, 7200000);
        assert_int_equal(change_json_parse("{\"pin\":true}", 12, &c, &p), 0);
        assert_true(c.what == CHANGE_PIN && c.pin_ms == CHANGE_PIN_LONGEST);
        assert_int_equal(change_json_parse("{\"pin\":false}", 13, &c, &p), 0);
        assert_int_equal(c.what, CHANGE_UNPIN);
        assert_int_equal(change_json_parse("{\"for\":null}", 12, &c, &p), 0);
        assert_true(c.what == CHANGE_SLOT && c.slot_ms == 0);
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                assert_int_equal(change_json_parse(wrong[i].body, strlen(wrong[i].body), &c, &p), -1);
                assert_string_equal(p.field, wrong[i].field);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(exclusive_needs_no_size_and_anything_else_does),
                cmocka_unit_test(devices_are_counted_from_one_and_are_eight_at_most),
                cmocka_unit_test(adopting_takes_a_pid_and_no_size),
                cmocka_unit_test(change_takes_what_it_names_and_no_contradictions),
                cmocka_unit_test(ask_with_size_alone_has_the_defaults),
                cmocka_unit_test(ask_with_every_field_takes_each),
                cmocka_unit_test(ask_for_later_waits_for_its_time_and_is_bound_to_nobody),
                cmocka_unit_test(ask_with_nulls_is_as_if_they_were_left_out),
                cmocka_unit_test(ask_at_each_edge_is_taken_or_names_its_field),
                cmocka_unit_test(refusal_repeats_what_was_given),
                cmocka_unit_test(F87_body_nested_deeper_than_its_limit_is_refused),
                cmocka_unit_test(F87_body_with_a_number_of_5000_digits_names_its_field),
                cmocka_unit_test(activate_takes_nothing_or_pid_and_cgroup),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
