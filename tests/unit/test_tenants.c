/* SPDX-License-Identifier: Apache-2.0 */
/* tenants.json: what is taken, what is refused and in which words, and how files are laid over each other. */
#include "tenants/tenants.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cm.h"
#include "tenants/line.h"

static int rows_failed;

static int add(struct tenants *set, const char *name, const char *text, bool shipped, struct error *err)
{
        *err = (struct error){ 0 };
        return tenants_add_text(set, name, text, strlen(text), shipped, err);
}

static int load_one(struct tenants *set, const char *text, struct error *err)
{
        *set = (struct tenants){ 0 };
        int r = add(set, "t.json", text, false, err);
        return r < 0 ? r : tenants_settle(set, err);
}

/* ---- one file ---- */

static void full_definition_is_read_whole(void **state)
{
        static const char text[] =
                "{\"$schema\": \"x\", \"_remark\": [1], \"tenants\": {\"_more\": 1, \"server\": {\n"
                " \"title\": \"A server\", \"_why\": null,\n"
                " \"match\": [{\"program\": \"server\", \"arguments\": [\"serve\"]},\n"
                "  {\"role\": \"runner\", \"program\": \"*/runner\", \"ancestor\": {\"program\": \"server\"}},\n"
                "  {\"unit\": \"server*.service\"}, {\"compose_service\": \"server\", \"image\": \"x/server:*\"}],\n"
                " \"priority\": \"batch\", \"need\": {\"per_request\": [{\"path\": \"/api/chat\", \"model\": "
                "\"/model\"}]},\n"
                " \"reserve\": \"1G\",\n"
                " \"busy\": [{\"from\": \"slots\", \"role\": \"runner\", \"path\": \"/slots\", \"pointer\": \"/busy\", "
                "\"equals\": true},\n"
                "  {\"from\": \"http\", \"path\": \"/q\", \"pointer\": \"/n\", \"above\": 0, \"stale_after\": "
                "\"30s\"},\n"
                "  {\"from\": \"metrics\", \"path\": \"/metrics\", \"lines\": [\"a:b\"], \"above\": 0},\n"
                "  {\"from\": \"memory\", \"above_bytes\": \"2G\"}, {\"from\": \"memory-change\"},\n"
                "  {\"from\": \"exec\", \"argv\": [\"/usr/bin/ask\", \"-q\"], \"user\": \"ann\", \"busy_code\": 3}],\n"
                " \"ways_out\": [{\"by\": \"http\", \"when\": \"any\", \"floor\": \"0\", \"deadline\": \"90s\", "
                "\"documented\": \"README\",\n"
                "   \"calls\": [{\"method\": \"POST\", \"path\": \"/unload\", \"body\": {\"m\": \"{item}\"},\n"
                "     \"expect\": {\"status\": [200, 204], \"pointer\": \"/ok\", \"equals\": true},\n"
                "     \"for_each\": {\"path\": \"/ps\", \"items\": \"/models\", \"pointer\": \"/name\", \"where\": "
                "\"/on\", \"equals\": true}}],\n"
                "   \"back\": [{\"method\": \"POST\", \"path\": \"/load\", \"expect\": {\"status\": [200]}}]},\n"
                "  {\"by\": \"exec\", \"argv\": [\"/bin/x\"], \"user\": \"ann\", \"drops\": \"results\", "
                "\"documented\": \"man\"},\n"
                "  {\"by\": \"restart\", \"floor\": \"400M\"}, {\"by\": \"checkpoint\"}],\n"
                " \"linger\": \"60s\", \"idle_release_after\": \"10m\", \"quiet_window\": \"2m\",\n"
                " \"demand_on_start\": {\"leave_within\": \"1s\", \"return_after\": \"60s\"}, \"clock_profile\": "
                "\"quiet\",\n"
                " \"events\": {\"from\": \"websocket\", \"path\": \"/ws\"},\n"
                " \"proxy\": {\"listen\": \"[::1]:8080\", \"hold\": [\"/api/chat\"]},\n"
                " \"headers_from\": \"/etc/lessor/key\", \"protected\": false, \"disabled\": false,\n"
                " \"checked_against\": \"1.2\", \"cannot\": [\"its context\"], \"source\": [\"its README\"]}}}";
        struct tenants set;
        struct error err;

        (void) state;
        assert_int_equal(load_one(&set, text, &err), 0);
        const struct tenant *t = tenants_find(&set, "server");
        assert_non_null(t);
        assert_int_equal(t->given, (1U << TENANT_KEY_N) - 1);
        assert_int_equal(t->n_rules, 4);
        assert_string_equal(t->rules[1].ancestor.program, "server");
        assert_int_equal(t->priority, 4);
        assert_int_equal(t->need.flat_bytes, 0);
        assert_string_equal(t->need.requests[0].model, "/model");
        assert_int_equal(t->reserve_bytes, 1ULL << 30);
        assert_int_equal(t->busy.n, 6);
        assert_int_equal(t->busy.items[0].test, TENANT_TEST_EQUALS);
        assert_int_equal(t->busy.items[1].stale_after_ms, 30000);
        assert_int_equal(t->busy.items[3].above_bytes, 2ULL << 30);
        assert_int_equal(t->busy.items[5].busy_code, 3);
        const struct tenant_way *way = t->ways.items;
        assert_int_equal(t->ways.n, 4);
        assert_true(way[0].floor_known && way[0].floor_bytes == 0 && way[0].when == TENANT_WHEN_ANY);
        assert_int_equal(way[0].calls.items[0].expect.n_status, 2);
        assert_string_equal(way[0].calls.items[0].each.items, "/models");
        assert_true(tenant_way_is_on(&way[0]));
        assert_false(tenant_way_is_on(&way[1])); /* something is lost by it */
        assert_false(tenant_way_is_on(&way[2]));
        assert_false(tenant_way_is_on(&way[3]));
        assert_true(!way[1].floor_known && way[2].floor_known && way[3].to_ram);
        assert_int_equal(t->demand_on_start.return_after_ms, 60000);
        assert_string_equal(t->cannot.items[0], "its context");
        json_t *again = tenants_definition(&set, t);
        assert_int_equal(json_object_size(again), TENANT_KEY_N);
        json_decref(again);
        tenants_fini(&set);
        tenants_fini(&set);
}

#define T(inside) "{\"tenants\": {\n\"a\": {\"match\": [{\"unit\": \"a\"}],\n" inside "}}}"

static void faulty_file_is_refused_with_line_field_and_cure(void **state)
{
        static const struct {
                const char *text, *words;
        } rows[] = {
                { "", "t.json:1: no JSON" },
                { "[]", "t.json:1: the file: given: a list; allowed: an object" },
                { "{}", "a file of tenants needs tenants: add it" },
                { "{\"tenants\": {}, \"tenants\": {}}", "duplicate" },
                { "{\n\n\"tenant\": {}}",
                  "t.json:3: tenant: given: an object; allowed: tenants; there is no such key" },
                { "{\"tenants\": 3}", "tenants: given: 3; allowed: an object" },
                { "{\"tenants\": {\"A\": {}}}", "tenants/A: given: an object; allowed: a name" },
                { "{\"tenants\": {\"a\": {}}}",
                  "tenants/a: given: nothing that tells how its processes are recognised" },
                { "{\"tenants\": {\"a\": {\"match\": []}}}",
                  "tenants/a/match: given: a list; allowed: a list of 1 … 16" },
                { "{\"tenants\": {\"a\": {\"match\": [{}]}}}", "a rule without a condition would fit every process" },
                { "{\"tenants\": {\"a\": {\"match\": [{\"role\": \"x\"}]}}}", "a rule without a condition" },
                { "{\"tenants\": {\"a\": {\"match\": [{\"ancestor\": {}}]}}}",
                  "say by what an ancestor is recognised" },
                { T("\"priority\": \"high\""),
                  "t.json:3: tenants/a/priority: given: \"high\"; allowed: urgent, interactive" },
                { T("\"priority\": 6"), "given: 6; allowed: urgent" },
                { T("\"\\u0041\": 1"), "tenants/a/A: given: 1" },
                { T("\"linger\": 60"), "tenants/a/linger: given: 60; allowed: a span as text" },
                { T("\"reserve\": \"90%\""), "tenants/a/reserve: given: \"90%\"; allowed: a size as text" },
                { T("\"need\": {}"), "allowed: either flat or per_request" },
                { T("\"need\": {\"flat\": \"1G\", \"per_request\": [{\"path\": \"/\", \"model\": \"\"}]}"),
                  "either flat or" },
                { T("\"busy\": [{}]"), "tenants/a/busy/0: given: an object; allowed: from, role" },
                { T("\"busy\": [{\"from\": \"guess\"}]"),
                  "busy/0/from: given: \"guess\"; allowed: http, metrics, slots" },
                { T("\"busy\": [{\"from\": \"memory\"}]"), "a probe from memory needs above_bytes: add it" },
                { T("\"busy\": [{\"from\": \"memory-change\", \"path\": \"/\"}]"),
                  "a probe from memory-change takes no path" },
                { T("\"busy\": [{\"from\": \"http\", \"path\": \"/\", \"pointer\": \"/x\"}]"),
                  "one of above, equals, not_empty" },
                { T("\"busy\": [{\"from\": \"http\", \"path\": \"/\", \"pointer\": \"/x\", \"above\": 1, \"equals\": "
                    "1}]"),
                  "one of above" },
                { T("\"busy\": [{\"from\": \"http\", \"path\": \"http://evil/\", \"pointer\": \"\", \"above\": 1}]"),
                  "write what stands behind host and port" },
                { T("\"busy\": [{\"from\": \"http\", \"path\": \"//evil/\", \"pointer\": \"\", \"above\": 1}]"),
                  "behind host" },
                { T("\"busy\": [{\"from\": \"http\", \"path\": \"/a b\", \"pointer\": \"\", \"above\": 1}]"),
                  "behind host" },
                { T("\"busy\": [{\"from\": \"http\", \"path\": \"/a\", \"pointer\": \"x\", \"above\": 1}]"),
                  "RFC 6901" },
                { T("\"busy\": [{\"from\": \"http\", \"path\": \"/a\", \"pointer\": \"/~2\", \"above\": 1}]"),
                  "RFC 6901" },
                { T("\"busy\": [{\"from\": \"http\", \"path\": \"/a\", \"pointer\": \"/x\", \"above\": -1}]"),
                  "a whole number" },
                { T("\"busy\": [{\"from\": \"exec\", \"argv\": [\"sh\"], \"user\": \"a\", \"busy_code\": 0}]"),
                  "no shell is asked" },
                { T("\"busy\": [{\"from\": \"exec\", \"argv\": [\"/x\"], \"user\": \"a:b\", \"busy_code\": 0}]"),
                  "name of a user" },
                { T("\"ways_out\": [{\"by\": \"kill\"}]"),
                  "ways_out/0/by: given: \"kill\"; allowed: http, exec, restart" },
                { T("\"ways_out\": [{\"by\": \"http\"}]"), "a way out by http needs calls" },
                { T("\"ways_out\": [{\"by\": \"restart\", \"to_ram\": true}]"),
                  "a way out by restart takes no to_ram" },
                { T("\"ways_out\": [{\"by\": \"http\", \"calls\": [{\"method\": \"POST\", \"path\": \"/\"}]}]"),
                  "a call needs expect" },
                { T("\"ways_out\": [{\"by\": \"http\", \"calls\": [{\"method\": \"post\", \"path\": \"/\", \"expect\": "
                    "{\"status\": [200]}}]}]"),
                  "calls/0/method: given: \"post\"; allowed: GET, POST" },
                { T("\"ways_out\": [{\"by\": \"http\", \"calls\": [{\"method\": \"GET\", \"path\": \"/\", \"expect\": "
                    "{\"status\": [99]}}]}]"),
                  "expect/status/0: given: 99; allowed: a status" },
                { T("\"ways_out\": [{\"by\": \"http\", \"calls\": [{\"method\": \"GET\", \"path\": \"/\", \"expect\": "
                    "{\"status\": [200], \"equals\": 1}}]}]"),
                  "what is expected needs pointer" },
                { T("\"ways_out\": [{\"by\": \"restart\", \"floor\": \"\"}]"), "ways_out/0/floor: given: \"\"" },
                { T("\"busy\": [{\"from\": \"memory-change\", \"role\": \"x\"}]"),
                  "t.json: tenants/a/busy: given: role \"x\"" },
                { T("\"events\": {\"from\": \"none\", \"path\": \"/\"}"), "leave events out" },
                { T("\"proxy\": {\"listen\": \"localhost:80\"}"),
                  "proxy/listen: given: \"localhost:80\"; allowed: address and port" },
                { T("\"proxy\": {\"listen\": \"127.0.0.1\"}"), "address and port" },
                { T("\"proxy\": {\"listen\": \"[::1:80\"}"), "address and port" },
                { T("\"proxy\": {\"listen\": \"1:0\"}"), "address and port" },
                { T("\"headers_from\": \"key\""), "allowed: an absolute path" },
                { T("\"title\": \"a\\u001bb\""), "without control characters" },
                { T("\"title\": \"a\\u0000b\""), "no JSON" },
                { T("\"busy\": [{\"from\": \"http\", \"port\": 0, \"path\": \"/\", \"pointer\": \"\", \"above\": 1}]"),
                  "busy/0/port: given: 0; allowed: a port" },
                { T("\"ways_out\": [{\"by\": \"http\", \"calls\": [{\"method\": \"GET\", \"path\": \"/{item}\", "
                    "\"expect\": {\"status\": [200]}, \"for_each\": {\"path\": \"/\", \"items\": \"\", \"pointer\": "
                    "\"\", \"where\": \"/x\"}}]}]"),
                  "for_each needs equals" },
                { T("\"protected\": \"yes\""), "given: \"yes\"; allowed: true or false" },
                { T("\"cannot\": \"x\""), "tenants/a/cannot: given: \"x\"; allowed: a list" },
                { T("\"demand_on_start\": {\"leave_within\": \"1s\"}"), "demand_on_start needs return_after" },
        };

        (void) state;
        rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct tenants set;
                struct error err = { 0 };
                int r = load_one(&set, rows[i].text, &err);
                row_check(rows[i].text, r == -EINVAL);
                row_check(err.msg, strstr(err.msg, rows[i].words));
                tenants_fini(&set);
        }
        rows_end();
}

static void nesting_without_end_is_refused(void **state)
{
        enum { DEEP = 100000 };
        char *text = malloc(DEEP);
        struct tenants set = { 0 };
        struct error err = { 0 };

        (void) state;
        assert_non_null(text);
        memset(text, '[', DEEP);
        assert_int_equal(tenants_add_text(&set, "t.json", text, DEEP, false, &err), -EINVAL);
        tenants_fini(&set);
        free(text);
}

/* ---- several files ---- */

static void later_file_wins_key_by_key_and_may_switch_off(void **state)
{
        struct tenants set = { 0 };
        struct error err;

        (void) state;
        assert_int_equal(
                add(&set, "shipped",
                    "{\"tenants\": {\"b\": {\"match\": [{\"unit\": \"b\"}], \"title\": \"B\", \"priority\": 2}}}", true,
                    &err),
                0);
        assert_int_equal(
                add(&set, "mine",
                    "{\"tenants\": {\"b\": {\"priority\": \"filler\"}, \"a\": {\"match\": [{\"unit\": \"a\"}]}}}",
                    false, &err),
                0);
        assert_int_equal(add(&set, "last", "{\"tenants\": {\"a\": {\"disabled\": true}}}", false, &err), 0);
        assert_int_equal(tenants_settle(&set, &err), 0);
        assert_int_equal(set.n, 2);
        assert_string_equal(set.list[0].name, "a");
        assert_true(set.list[0].disabled);
        const struct tenant *b = &set.list[1];
        assert_int_equal(b->priority, 5);
        assert_string_equal(b->title, "B");
        assert_string_equal(set.files[b->from[TENANT_PRIORITY]].name, "mine");
        assert_string_equal(set.files[b->from[TENANT_TITLE]].name, "shipped");
        json_t *whole = tenants_definition(&set, b);
        assert_string_equal(json_string_value(json_object_get(whole, "priority")), "filler");
        assert_string_equal(json_string_value(json_object_get(whole, "title")), "B");
        json_decref(whole);
        tenants_fini(&set);
}

static void more_tenants_than_there_is_room_for_are_refused(void **state)
{
        struct tenants set = { 0 };
        struct error err = { 0 };
        char text[96];
        int r = 0, i;

        (void) state;
        for (i = 0; r == 0 && i < TENANTS_MAX + 1; i++) {
                (void) snprintf(text, sizeof(text), "{\"tenants\": {\"t%d\": {\"match\": [{\"unit\": \"u\"}]}}}", i);
                r = add(&set, "many", text, false, &err);
        }
        assert_int_equal(r, -E2BIG);
        assert_int_equal(i, TENANTS_MAX + 1);
        tenants_fini(&set);
}

static void write_file(const char *folder, const char *name, const char *text)
{
        char path[512];

        (void) snprintf(path, sizeof(path), "%s/%s", folder, name);
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

static void folders_are_read_in_order_and_a_fault_takes_nothing(void **state)
{
        char dir[] = "/tmp/test-tenants-XXXXXX", name[64];
        struct tenants_places places = { 0 };
        struct tenants set;
        struct error err = { 0 };

        (void) state;
        assert_non_null(mkdtemp(dir));
        (void) snprintf(places.folder, sizeof(places.folder), "%s", dir);
        (void) snprintf(places.file, sizeof(places.file), "%s/none/tenants.json", dir);
        (void) snprintf(places.shipped, sizeof(places.shipped), "%s/none", dir);
        assert_int_equal(tenants_load(&places, &set, &err), 0);
        assert_int_equal(set.n, 0);
        assert_int_equal(err.code, 0);

        write_file(dir, "20.json", "{\"tenants\": {\"a\": {\"title\": \"later\"}}}");
        write_file(dir, "10.json", "{\"tenants\": {\"a\": {\"title\": \"earlier\", \"match\": [{\"unit\": \"a\"}]}}}");
        write_file(dir, ".hidden.json", "{");
        write_file(dir, "10.json.bak", "{");
        assert_int_equal(tenants_load(&places, &set, &err), 0);
        assert_string_equal(set.list[0].title, "later");
        tenants_fini(&set);

        write_file(dir, "30.json", "{\"tenants\": {\"b\": {\"titel\": 1}}}");
        assert_int_equal(tenants_load(&places, &set, &err), -EINVAL);
        assert_int_equal(set.n, 0);
        (void) snprintf(name, sizeof(name), "%s/30.json:1: tenants/b/titel", dir);
        assert_non_null(strstr(err.msg, name));

        (void) snprintf(name, sizeof(name), "%s/30.json", dir);
        assert_int_equal(unlink(name), 0);
        assert_int_equal(mkfifo(name, 0600), 0); /* nobody will ever write there */
        assert_int_equal(tenants_load(&places, &set, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "no regular file"));
        static const char *const made[] = { "10.json", "20.json", "30.json", ".hidden.json", "10.json.bak" };
        for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
                (void) snprintf(name, sizeof(name), "%s/%s", dir, made[i]);
                assert_int_equal(unlink(name), 0);
        }
        assert_int_equal(rmdir(dir), 0);
}

static void line_is_that_of_the_value(void **state)
{
        static const char text[] = "{\n\"a\\\"b\": [1,\n {\"c\": \"}\",\n\"d/e\": 2}],\n\"f\": {}}";
        static const struct {
                const char *pointer;
                unsigned line;
        } rows[] = {
                { "", 1 },
                { "/f", 5 },
                { "/a\\\"b", 2 },
                { "/a\\\"b/1", 3 },
                { "/a\\\"b/1/d~1e", 4 },
                { "/a\\\"b/1/x", 3 },
                { "/a\\\"b/7", 2 },
                { "/f/x", 5 },
                { "/none", 1 },
        };

        (void) state;
        rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                row_check(rows[i].pointer, line_of_pointer(text, sizeof(text) - 1, rows[i].pointer) == rows[i].line);
        rows_end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(full_definition_is_read_whole),
                cmocka_unit_test(faulty_file_is_refused_with_line_field_and_cure),
                cmocka_unit_test(nesting_without_end_is_refused),
                cmocka_unit_test(later_file_wins_key_by_key_and_may_switch_off),
                cmocka_unit_test(more_tenants_than_there_is_room_for_are_refused),
                cmocka_unit_test(folders_are_read_in_order_and_a_fault_takes_nothing),
                cmocka_unit_test(line_is_that_of_the_value),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
