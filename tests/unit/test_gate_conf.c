/* SPDX-License-Identifier: Apache-2.0 */
/* What the gate reads: its section of lessord.conf, /proc/devices, patterns of cgroups, logind's words; and its table of who passes. */
#include "gate/conf.h"
#include <errno.h>
#include <string.h>
#include "cm.h"
#include "gate/always.h"
#include "gate/fence.h"
#include "gate/table.h"

static int rows_failed;

static void line_of_the_section_is_taken_or_refused_with_its_cure(void **state)
{
        const struct {
                const char *key, *value, *words; /* NULL: taken */
        } rows[] = {
                { "mode", "on", NULL },
                { "mode", "log", NULL },
                { "mode", "maybe", "mode: maybe is not allowed; allowed: off, log, on" },
                { "mode", "", "allowed: off, log, on" },
                { "cgroups", "user.slice", NULL },
                { "cgroups", " /user.slice/  machine.slice/x ", NULL },
                { "cgroups", "/", "write a folder below the root" },
                { "cgroups", "a/../b", "write a folder below the root" },
                { "cgroups", "a//b", "write a folder below the root" },
                { "cgroups", "./a", "write a folder below the root" },
                { "cgroups", "1 2 3 4 5 6 7 8", NULL },
                { "cgroups", "1 2 3 4 5 6 7 8 9", "cgroups: at most 8" },
                { "cgroups", "a\033b", "no plain text" },
                { "always", "", NULL },
                { "always", "a/*/b", NULL },
                { "devices", "nvidia-uvm 195", NULL },
                { "devices", "", "leave the line out" },
                { "devices", "a-name-of-thirty-two-letters-is-32", "is longer than 31 bytes" },
                { "users_from", "0", NULL },
                { "users_from", "2147483647", NULL },
                { "users_from", "2147483648", "users_from" },
                { "users_from", "-1", "users_from" },
                { "moode", "on", "moode is no key of [gate]; allowed: mode cgroups devices always users_from" },
        };

        (void) state;
        rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct gate_conf conf;
                struct error err = { 0 };
                gate_conf_defaults(&conf);
                int r = gate_conf_line(&conf, rows[i].key, rows[i].value, &err);
                row_check(rows[i].value, (r == 0) == (rows[i].words == NULL));
                row_check(rows[i].value, r == 0 || strstr(err.msg, rows[i].words));
        }
        rows_end();
}

static void section_is_off_by_default_and_cannot_gate_nothing(void **state)
{
        struct gate_conf conf;
        struct error err = { 0 };

        (void) state;
        gate_conf_defaults(&conf);
        assert_int_equal(conf.mode, GATE_OFF);
        assert_int_equal(conf.users_from, 1000);
        assert_int_equal(gate_conf_end(&conf, &err), 0);
        assert_int_equal(gate_conf_line(&conf, "mode", "on", &err), 0);
        assert_int_equal(gate_conf_end(&conf, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "such as cgroups = user.slice"));
        assert_int_equal(gate_conf_line(&conf, "cgroups", "/user.slice/", &err), 0);
        assert_int_equal(gate_conf_end(&conf, &err), 0);
        assert_string_equal(conf.cgroups[0], "user.slice");
        assert_int_equal(gate_conf_line(&conf, "mode", "off", &err), -EINVAL);
        assert_string_equal(err.msg, "mode stands in [gate] a second time");
}

static void majors_are_those_of_named_character_devices(void **state)
{
        static const char devices[] = "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n195 nvidia-modeset\n"
                                      "235 nvidia-caps\n510 nvidia-uvm\n511 nvidiana and more\nx nvidia\n\n"
                                      "Block devices:\n  7 nvidia\n";
        uint32_t majors[GATE_MAJORS_MAX];
        struct gate_conf conf;

        (void) state;
        gate_conf_defaults(&conf);
        assert_int_equal(gate_conf_majors(&conf, devices, sizeof(devices) - 1, majors, GATE_MAJORS_MAX), 4);
        const uint32_t all[] = { 195, 235, 510, 511 };
        assert_memory_equal(majors, all, sizeof(all));
        assert_int_equal(gate_conf_majors(&conf, devices, sizeof(devices) - 1, majors, 2), 2);
        assert_int_equal(gate_conf_majors(&conf, "", 0, majors, GATE_MAJORS_MAX), 1); /* its number is registered */
        assert_int_equal(gate_conf_line(&conf, "devices", "nvidia-uvm", NULL), 0);
        assert_int_equal(gate_conf_majors(&conf, devices, sizeof(devices) - 1, majors, GATE_MAJORS_MAX), 1);
        assert_int_equal(majors[0], 510);
        assert_int_equal(gate_conf_majors(&conf, "Character devices:\n  1 mem\n", 25, majors, GATE_MAJORS_MAX), 0);
}

static void folder_is_covered_where_it_is_a_gated_one_or_below(void **state)
{
        struct gate_conf conf;

        (void) state;
        gate_conf_defaults(&conf);
        assert_int_equal(gate_conf_line(&conf, "cgroups", "user.slice a/b", NULL), 0);
        assert_true(gate_conf_covers(&conf, "user.slice"));
        assert_true(gate_conf_covers(&conf, "user.slice/x"));
        assert_true(gate_conf_covers(&conf, "a/b/c"));
        assert_false(gate_conf_covers(&conf, "user.slice2"));
        assert_false(gate_conf_covers(&conf, "a"));
        assert_false(gate_conf_covers(&conf, ""));
}

static void pattern_names_folders_step_by_step(void **state)
{
        const struct {
                const char *pattern, *path;
                bool matches, deeper;
        } rows[] = {
                { "a", "a", true, false },
                { "a", "a/b", false, false },
                { "a/*", "a/b", true, false },
                { "a/*", "a", false, true },
                { "*", "a/b", false, false },
                { "user-*.slice/x", "user-7.slice", false, true },
                { "user-*.slice/x", "user-7.slice/x", true, false },
                { "user-*.slice/x", "user-7/y.slice/x", false, false },
                { "a/b/c", "", false, true },
                { "a", "b", false, false },
        };

        (void) state;
        rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                bool deeper;
                row_check(rows[i].path,
                          gate_pattern_matches(rows[i].pattern, rows[i].path, &deeper) == rows[i].matches);
                row_check(rows[i].path, deeper == rows[i].deeper);
        }
        rows_end();
}

static void session_has_a_seat_when_logind_says_so_and_is_in_doubt_before(void **state)
{
        (void) state;
        assert_int_equal(always_session_has_seat(""), -1);
        assert_int_equal(always_session_has_seat("# private\nUID=1000\n"), -1);
        assert_int_equal(always_session_has_seat("UID=1000\nACTIVE=1\nTYPE=tty\n"), 0);
        assert_int_equal(always_session_has_seat("UID=1000\nACTIVE=1\nTYPE=tty\nSEAT=seat0\n"), 1);
        assert_int_equal(always_session_has_seat("ACTIVE=1\nSEAT=\n"), 0);
        assert_int_equal(always_session_has_seat("ACTIVE=1\nNOSEAT=seat0\n"), 0);
        assert_int_equal(always_session_has_seat("SEAT=seat0"), 1);
}

static void table_full_of_folders_that_always_pass_still_takes_every_lease(void **state)
{
        static struct table t;
        uint64_t old, n = 0;

        (void) state;
        t = (struct table){ 0 };
        while (n < TABLE_ROWS_MAX && table_put(&t, 0, 100000 + n, FENCE_BELOW, &old))
                n++;
        assert_int_equal(n, TABLE_ALWAYS_MAX);
        for (uint64_t lease = 1; lease <= TABLE_ROWS_MAX - TABLE_ALWAYS_MAX; lease++)
                assert_true(table_put(&t, lease, lease, FENCE_EXACT, &old));
        assert_false(table_put(&t, 9999, 9999, FENCE_EXACT, &old));
        (void) table_drop_at(&t, 0);
        assert_true(table_put(&t, 0, 99999, FENCE_BELOW, &old));
}

static void table_lets_a_cgroup_pass_as_long_as_one_row_does(void **state)
{
        static struct table t;
        uint64_t old;

        (void) state;
        assert_true(table_put(&t, 1, 70, FENCE_EXACT, &old));
        assert_true(table_put(&t, 2, 70, FENCE_EXACT | FENCE_BELOW, &old));
        assert_true(table_put(&t, 0, 80, FENCE_EXACT | FENCE_BELOW, &old));
        assert_true(table_put(&t, 0, 90, FENCE_EXACT, &old));
        assert_int_equal(old, 0);
        assert_int_equal(table_how(&t, 70), FENCE_EXACT | FENCE_BELOW);
        assert_int_equal(table_drop(&t, 2), 70);
        assert_int_equal(table_how(&t, 70), FENCE_EXACT);
        assert_true(table_put(&t, 1, 71, FENCE_EXACT, &old)); /* begins again elsewhere */
        assert_int_equal(old, 70);
        assert_int_equal(table_how(&t, 70), 0);
        assert_int_equal(table_count_leases(&t), 1);
        assert_int_equal(table_drop(&t, 1), 71);
        assert_int_equal(table_drop(&t, 1), 0);
        assert_int_equal(table_drop(&t, 0), 0); /* no lease: never those that always pass */
        assert_int_equal(table_how(&t, 80), FENCE_EXACT | FENCE_BELOW);
        assert_int_equal(table_how(&t, 0), 0);
}

static void table_that_is_full_takes_no_more_and_keeps_what_it_has(void **state)
{
        static struct table t;
        uint64_t old;

        (void) state;
        for (uint64_t i = 1; i <= TABLE_ROWS_MAX; i++)
                assert_true(table_put(&t, i, 1000 + i % 7, FENCE_EXACT, &old));
        assert_false(table_put(&t, TABLE_ROWS_MAX + 1, 5, FENCE_EXACT, &old));
        assert_true(table_put(&t, 9, 5, FENCE_EXACT, &old));
        assert_int_equal(table_drop(&t, 8), 1001);
        assert_true(table_put(&t, TABLE_ROWS_MAX + 1, 5, FENCE_EXACT, &old));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(line_of_the_section_is_taken_or_refused_with_its_cure),
                cmocka_unit_test(section_is_off_by_default_and_cannot_gate_nothing),
                cmocka_unit_test(majors_are_those_of_named_character_devices),
                cmocka_unit_test(folder_is_covered_where_it_is_a_gated_one_or_below),
                cmocka_unit_test(pattern_names_folders_step_by_step),
                cmocka_unit_test(session_has_a_seat_when_logind_says_so_and_is_in_doubt_before),
                cmocka_unit_test(table_full_of_folders_that_always_pass_still_takes_every_lease),
                cmocka_unit_test(table_lets_a_cgroup_pass_as_long_as_one_row_does),
                cmocka_unit_test(table_that_is_full_takes_no_more_and_keeps_what_it_has),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
