/* SPDX-License-Identifier: Apache-2.0 */
/* What is known in words of a process: as it is written down, and as it is shown. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/audit_facts.h"
#include "api/audit_json.h"
#include "cm.h"

static struct audit_ancestor ancestors[ANCESTORS_MAX];

static void words(struct eyes_process *p, const char *bytes, size_t n)
{
        memcpy(p->cmdline, bytes, n);
        p->n_cmdline = (uint32_t) n;
}

static struct eyes_process *told_new(void)
{
        struct eyes_process *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        *p = (struct eyes_process){
                .pid = 4711, .start_ticks = 9000, .uid_known = true, .uid = 1000, .exe_known = true
        };
        (void) snprintf(p->comm, sizeof(p->comm), "python3");
        (void) snprintf(p->exe_path, sizeof(p->exe_path), "/usr/bin/python3.11");
        words(p, "python3\0train.py\0--api-key=*****", 32);
        return p;
}

static json_t *facts_of(const struct eyes_process *p, const struct process *settled)
{
        size_t n = 0;
        char *text = audit_facts_text(p, settled, ancestors, UINT64_C(1700000000000), &n);

        assert_non_null(text);
        assert_int_equal(n, strlen(text));
        assert_in_range(n, 2, JOURNAL_AUDIT_FACTS_MAX - 1);
        json_t *json = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(json);
        free(text);
        return json;
}

static const char *text_at(const json_t *json, const char *key, const char *inner)
{
        return json_string_value(json_object_get(json_object_get(json, key), inner));
}

static void facts_have_program_script_words_place_and_parents(void **state)
{
        struct eyes_process *p = told_new();
        struct process settled = { .n_ancestors = 2, .ancestors = { { 10, 1 }, { 5, 1 } }, .links = { LINK_SESSION } };

        (void) state;
        p->cgroup_known = true;
        (void) snprintf(p->cgroup_path, sizeof(p->cgroup_path), "/system.slice/trainer.service");
        memset(ancestors, 0, sizeof(ancestors));
        ancestors[0].is_gone = true;
        (void) snprintf(ancestors[1].comm, sizeof(ancestors[1].comm), "systemd");
        json_t *json = facts_of(p, &settled);
        assert_string_equal(text_at(json, "program", "path"), "/usr/bin/python3.11");
        assert_string_equal(text_at(json, "script", "path"), "train.py");
        assert_string_equal(text_at(json, "place", "unit"), "trainer.service");
        assert_int_equal(json_array_size(json_object_get(json, "command")), 3);
        const json_t *parents = json_object_get(json, "parents");
        assert_true(json_is_true(json_object_get(json_array_get(parents, 0), "gone")));
        assert_true(json_is_null(json_object_get(json_array_get(parents, 0), "comm")));
        assert_string_equal(json_string_value(json_object_get(json_array_get(parents, 0), "link")), "session");
        assert_string_equal(json_string_value(json_object_get(json_array_get(parents, 1), "comm")), "systemd");
        json_decref(json);
        free(p);
}

static void engine_adds_the_name_image_and_service_of_a_container(void **state)
{
        static const char *const labels[] = { "com.docker.compose.servicex=no", "com.docker.compose.service=web",
                                              "com.docker.compose.project=shop" };
        const struct container_facts facts = {
                .name = "shop-web-1", .image = "x/web:2", .labels = labels, .n_labels = 3
        };
        const struct process settled = { 0 };
        struct eyes_process *p = told_new();
        size_t n = 0;

        (void) state;
        p->cgroup_known = true;
        (void) snprintf(p->cgroup_path, sizeof(p->cgroup_path), "/system.slice/docker-%064d.scope", 7);
        char *text = audit_facts_text(p, &settled, ancestors, 0, &n);
        char *more = audit_facts_add_container(text, n, &facts, &n);
        assert_non_null(more);
        json_t *json = json_loadb(more, n, JSON_REJECT_DUPLICATES, NULL);
        assert_string_equal(text_at(json, "place", "kind"), "container");
        assert_string_equal(text_at(json, "place", "name"), "shop-web-1");
        assert_string_equal(text_at(json, "place", "image"), "x/web:2");
        assert_string_equal(text_at(json, "place", "service"), "web");
        assert_string_equal(text_at(json, "place", "project"), "shop");
        json_decref(json);
        free(more);
        free(text);
        assert_null(audit_facts_add_container("{}", 2, &facts, &n));
        assert_null(audit_facts_add_container("no JSON", 7, &facts, &n));
        free(p);
}

/* Another user's program: the eyes have no rights to see it. */
static void hands_add_the_program_and_its_script(void **state)
{
        const struct audit_program seen = { "/usr/bin/python3.11 (deleted)", 8, 77, 9, 78 },
                                   longer = { "", 8, 77, 0, 0 };
        const struct process settled = { 0 };
        struct eyes_process *p = told_new();
        size_t n = 0, n_more = 0;
        char path[64];

        (void) state;
        char *known = audit_facts_text(p, &settled, ancestors, 0, &n);
        assert_null(audit_facts_add_program(known, n, &seen, &n_more));
        free(known);
        p->exe_known = false;
        p->exe_path[0] = '\0';
        char *text = audit_facts_text(p, &settled, ancestors, 0, &n);
        assert_int_equal(audit_facts_script(text, n, "/usr/bin/python3.11", path, sizeof(path)), SCRIPT_FILE);
        assert_string_equal(path, "train.py");
        assert_int_equal(audit_facts_script(text, n, "/opt/x/bench", path, sizeof(path)), SCRIPT_FILE);
        assert_int_equal(audit_facts_script(text, n, "", path, sizeof(path)), SCRIPT_UNSEEN);
        assert_int_equal(audit_facts_script("no JSON", 7, "python3", path, sizeof(path)), SCRIPT_UNSEEN);
        char *more = audit_facts_add_program(text, n, &seen, &n_more);
        assert_non_null(more);
        json_t *json = json_loadb(more, n_more, JSON_REJECT_DUPLICATES, NULL);
        assert_string_equal(text_at(json, "program", "path"), "/usr/bin/python3.11");
        assert_true(json_is_true(json_object_get(json_object_get(json, "program"), "deleted")));
        assert_string_equal(text_at(json, "script", "path"), "train.py");
        assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "script"), "inode")), 78);
        json_decref(json);
        free(more);
        more = audit_facts_add_program(text, n, &longer, &n_more);
        json = json_loadb(more, n_more, JSON_REJECT_DUPLICATES, NULL);
        assert_true(json_is_null(json_object_get(json_object_get(json, "program"), "path")));
        assert_true(json_is_null(json_object_get(json, "script")));
        json_decref(json);
        free(more);
        free(text);
        assert_null(audit_facts_add_program("no JSON", 7, &seen, &n_more));
        free(p);
}

/* Only what is whole names a file: the last word of a command line that is cut may go on. */
static void script_of_a_command_line_that_is_cut_is_not_seen(void **state)
{
        const struct process settled = { 0 };
        struct eyes_process *p = told_new();
        size_t n = 0;
        char path[64];

        (void) state;
        p->exe_known = false;
        p->exe_path[0] = '\0';
        p->cmdline_cut = true;
        words(p, "python3\0-u\0train.py", 19);
        char *text = audit_facts_text(p, &settled, ancestors, 0, &n);
        assert_int_equal(audit_facts_script(text, n, "python3", path, sizeof(path)), SCRIPT_UNSEEN);
        free(text);
        words(p, "python3\0train.py\0--x", 20);
        text = audit_facts_text(p, &settled, ancestors, 0, &n);
        assert_int_equal(audit_facts_script(text, n, "python3", path, sizeof(path)), SCRIPT_FILE);
        free(text);
        free(p);
}

static void what_is_not_known_is_null(void **state)
{
        struct eyes_process *p = calloc(1, sizeof(*p));
        const struct process settled = { 0 };

        (void) state;
        json_t *json = facts_of(p, &settled);
        static const char *const keys[] = { "comm", "program", "script", "command", "cgroup", "place" };
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
                assert_true(json_is_null(json_object_get(json, keys[i])));
        json_decref(json);
        free(p);
}

/* A path and a command line of one byte over and over, in each way in which that can be long in JSON. */
static void F57_longest_and_strangest_names_fit_and_are_text(void **state)
{
        static const char bytes[] = { 'a', '\\', '"', '\n', '\x01', '\x7f', '\xff', '\xc3' };
        struct process settled = { .n_ancestors = ANCESTORS_MAX };
        struct eyes_process *p = told_new();

        (void) state;
        for (size_t i = 0; i < sizeof(bytes); i++) {
                memset(p->comm, bytes[i], sizeof(p->comm) - 1);
                memset(p->exe_path, bytes[i], sizeof(p->exe_path) - 1);
                memset(p->cgroup_path, bytes[i], sizeof(p->cgroup_path) - 1);
                memcpy(p->exe_path + sizeof(p->exe_path) - 9, "/python3", 9);
                p->cgroup_known = p->script_known = true;
                p->script_inode = UINT64_MAX;
                memset(p->cmdline, bytes[i], sizeof(p->cmdline));
                p->cmdline[1] = '\0';
                p->n_cmdline = sizeof(p->cmdline);
                for (size_t k = 0; k < ANCESTORS_MAX; k++) {
                        settled.ancestors[k] = (struct identity){ UINT32_MAX, UINT64_MAX };
                        memset(ancestors[k].comm, bytes[i], sizeof(ancestors[k].comm) - 1);
                }
                json_decref(facts_of(p, &settled));
        }
        memset(p->cmdline, 0, sizeof(p->cmdline)); /* words of nothing */
        json_t *json = facts_of(p, &settled);
        assert_int_equal(json_array_size(json_object_get(json, "command")), sizeof(p->cmdline));
        json_decref(json);
        free(p);
}

/* ---- shown ---- */

static const char *name_of(void *ctx, uint32_t uid)
{
        (void) ctx;
        return uid == 1000 ? "alice" : NULL;
}

static bool shows_nothing(void *ctx, const struct journal_audit *audit)
{
        (void) ctx;
        (void) audit;
        return false;
}

static json_t *shown(const char *facts, size_t n, bool (*shows)(void *, const struct journal_audit *))
{
        const struct told_audit_host host = { .name = name_of, .shows = shows };
        struct audited_row row = { .audit = { .id = 3,
                                              .pid = 4711,
                                              .start_ticks = 9,
                                              .wall_ms = UINT64_C(1700000000000),
                                              .uid_known = true,
                                              .uid = 1000,
                                              .facts = facts,
                                              .n_facts = n } };
        const struct audited audited = { .rows = &row, .n_rows = 1 };
        json_t *whole = told_audited(&audited, &host);

        assert_non_null(whole);
        json_t *one = json_incref(json_array_get(json_object_get(whole, "audits"), 0));
        json_decref(whole);
        return one;
}

static void others_see_who_and_since_when_and_no_facts(void **state)
{
        static const char facts[] = "{\"comm\":\"python3\",\"command\":[\"python3\",\"my-project.py\"]}";

        (void) state;
        json_t *row = shown(facts, strlen(facts), shows_nothing);
        char *text = json_dumps(row, 0);
        assert_null(strstr(text, "my-project"));
        assert_true(json_is_null(json_object_get(row, "facts")));
        assert_string_equal(json_string_value(json_object_get(row, "comm")), "python3");
        assert_string_equal(json_string_value(json_object_get(row, "user")), "alice");
        assert_string_equal(json_string_value(json_object_get(row, "first_seen")), "2023-11-14T22:13:20.000Z");
        assert_true(json_is_null(json_object_get(row, "live")));
        free(text);
        json_decref(row);
        row = shown(facts, strlen(facts), NULL);
        assert_int_equal(json_array_size(json_object_get(json_object_get(row, "facts"), "command")), 2);
        json_decref(row);
}

static void row_that_somebody_wrote_into_is_shown_without_facts(void **state)
{
        int rows_failed = 0;
        static const struct {
                const char *name, *facts;
        } rows[] = {
                { "nothing", "" },
                { "no JSON", "comm=x" },
                { "a list", "[1,2]" },
                { "cut off", "{\"comm\":\"x" },
                { "a key twice", "{\"comm\":\"x\",\"comm\":\"y\"}" },
                { "no UTF-8", "{\"comm\":\"\xff\"}" },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                json_t *row = shown(rows[i].facts, strlen(rows[i].facts), NULL);
                row_check(rows[i].name, json_is_null(json_object_get(row, "facts")) &&
                                                json_is_null(json_object_get(row, "comm")) &&
                                                json_integer_value(json_object_get(row, "pid")) == 4711);
                json_decref(row);
        }
        rows_end();
}

/* After a reboot a pid and a start come again: what is told of one row is not told of the other. */
static void points_and_waits_go_to_the_row_of_their_time(void **state)
{
        const uint64_t hour = UINT64_C(1699999200000), boot = hour + 2 * (uint64_t) AUDITED_HOUR_MS;
        struct audited_series series = {
                .identity = { 7, 9 },
                .n_points = 2,
                .points = { { .hour_ms = hour, .max_bytes = 1 }, { .hour_ms = boot, .max_bytes = 2 } },
                .n_displaced = 2,
                .displaced = { { .lease_id = 1, .first_wall_ms = hour + 10, .last_wall_ms = hour + 20 },
                               { .lease_id = 2, .first_wall_ms = boot + 10, .last_wall_ms = boot + 20 } },
        };
        struct audited_row rows[] = {
                { .audit = { .id = 2, .pid = 7, .start_ticks = 9, .wall_ms = boot + 5, .facts = "{}", .n_facts = 2 } },
                { .audit = { .id = 1, .pid = 7, .start_ticks = 9, .wall_ms = hour + 5, .facts = "{}", .n_facts = 2 },
                  .until_wall_ms = boot + 5 },
        };
        const struct audited audited = { .rows = rows, .n_rows = 2, .series = &series, .n_series = 1 };
        const struct told_audit_host host = { 0 };

        (void) state;
        json_t *whole = told_audited(&audited, &host);
        for (size_t i = 0; i < 2; i++) {
                const json_t *row = json_array_get(json_object_get(whole, "audits"), i);
                const json_t *waits = json_object_get(row, "displaced");
                assert_int_equal(json_array_size(waits), 1);
                assert_string_equal(json_string_value(json_object_get(json_array_get(waits, 0), "lease")),
                                    i == 0 ? "L2" : "L1");
                const json_t *memory = json_object_get(row, "memory"),
                             *last = json_array_get(memory, json_array_size(memory) - 1);
                assert_true(json_array_size(memory) >= 1);
                assert_true(i == 1 || json_integer_value(json_object_get(last, "max_bytes")) == 2);
        }
        json_decref(whole);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(facts_have_program_script_words_place_and_parents),
                cmocka_unit_test(engine_adds_the_name_image_and_service_of_a_container),
                cmocka_unit_test(hands_add_the_program_and_its_script),
                cmocka_unit_test(script_of_a_command_line_that_is_cut_is_not_seen),
                cmocka_unit_test(what_is_not_known_is_null),
                cmocka_unit_test(F57_longest_and_strangest_names_fit_and_are_text),
                cmocka_unit_test(others_see_who_and_since_when_and_no_facts),
                cmocka_unit_test(row_that_somebody_wrote_into_is_shown_without_facts),
                cmocka_unit_test(points_and_waits_go_to_the_row_of_their_time),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
