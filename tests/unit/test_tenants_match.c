/* SPDX-License-Identifier: Apache-2.0 */
/* Whose process is it? Over what is known of it, and what is not. */
#include "tenants/match.h"
#include <stdio.h>
#include <string.h>
#include "cm.h"
#include "tenants/glob.h"

static int rows_failed;

static void pattern_fits_the_whole_text(void **state)
{
        static const struct {
                const char *pattern, *text;
                bool fits;
        } rows[] = {
                { "", "", true },         { "", "a", false },         { "*", "", true },
                { "*", "/a/b", true },    { "a", "ab", false },       { "b", "ab", false },
                { "?b", "ab", true },     { "?", "", false },         { "*b", "abab", true },
                { "*ab*", "xabx", true }, { "a*b*c", "aXbYc", true }, { "a*b*c", "aXcYb", false },
                { "**", "x", true },      { "a\\*", "a\\b", true },   { "[ab]", "a", false },
                { "*/x", "x", false },
        };

        (void) state;
        rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                row_check(rows[i].pattern, glob_fits(rows[i].pattern, rows[i].text) == rows[i].fits);
        rows_end();
}

/* Any recursion per star would not come back from here. */
static void pattern_of_many_stars_is_answered(void **state)
{
        char text[511], pattern[512] = "";

        (void) state;
        memset(text, 'a', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        for (size_t i = 0; i < 255; i++)
                memcpy(pattern + 2 * i, "*a", 3);
        memcpy(pattern + 508, "*b", 3);
        assert_false(glob_fits(pattern, text));
}

/* ---- tenants of several kinds, and processes ---- */

static const char shipped[] =
        "{\"tenants\": {"
        "\"server\": {\"match\": [{\"program\": \"server\", \"arguments\": [\"serve\"]},"
        "  {\"role\": \"runner\", \"program\": \"runner\", \"ancestor\": {\"program\": \"server\"}}, {\"unit\": "
        "\"server*.service\"}]},"
        "\"alone\": {\"match\": [{\"program\": \"runner\"}]},"
        "\"images\": {\"match\": [{\"arguments\": [\"*/images/main.py\"]}, {\"compose_service\": \"images\"}, "
        "{\"image\": \"*/images:*\"}]},"
        "\"titled\": {\"match\": [{\"title\": \"titled::*\"}]},"
        "\"under\": {\"match\": [{\"ancestor\": {\"program\": \"launcher\", \"arguments\": [\"App*\"]}}]},"
        "\"off\": {\"disabled\": true, \"match\": [{\"program\": \"*\"}]}}}";
static const char admins[] = "{\"tenants\": {\"mine\": {\"match\": [{\"program\": \"/opt/mine/*\"}]},"
                             "\"pinned\": {\"match\": [{\"unit\": \"special.service\"}]}}}";

static const char *const argv_serve[] = { "server", "serve", "--port" };
static const char *const argv_plain[] = { "x" };
static const char *const argv_images[] = { "python3", "-u", "/srv/images/main.py" };
static const char *const argv_launcher[] = { "launcher", "App12" };
static const char *const argv_titled[] = { "titled::core" };

#define PROGRAM(path, argv)                                                                                            \
        {                                                                                                              \
                true, path, true, false, sizeof(argv) / sizeof((argv)[0]), argv                                        \
        }

static const struct match_program servers[] = { PROGRAM("/usr/bin/bash", argv_plain),
                                                PROGRAM("/usr/bin/server", argv_serve) };
static const struct match_program launchers[] = { PROGRAM("/usr/bin/launcher", argv_launcher) };
static const struct match_program unseen_parent[] = { { .program_known = false } };

static void load(struct tenants *set)
{
        struct error err = { 0 };

        *set = (struct tenants){ 0 };
        assert_int_equal(tenants_add_text(set, "shipped", shipped, sizeof(shipped) - 1, true, &err), 0);
        assert_int_equal(tenants_add_text(set, "admins", admins, sizeof(admins) - 1, false, &err), 0);
        assert_int_equal(tenants_settle(set, &err), 0);
}

static void process_is_whose_rule_fits_best(void **state)
{
        const struct {
                const char *name;
                struct match_subject s;
                const char *tenant, *role; /* NULL = nobody's */
                bool by_place;
                uint32_t n_others, n_unknown;
        } rows[] = {
                { "program and argument",
                  { .self = PROGRAM("/usr/bin/server", argv_serve), .place_known = true },
                  "server",
                  "main",
                  false,
                  0,
                  0 },
                { "the program alone will not do",
                  { .self = PROGRAM("/usr/bin/server", argv_plain), .place_known = true },
                  NULL,
                  NULL,
                  false,
                  0,
                  0 },
                { "a runner that stands alone",
                  { .self = PROGRAM("/x/runner", argv_plain), .place_known = true },
                  "alone",
                  "main",
                  false,
                  0,
                  0 },
                { "a runner of a server is the server's: more conditions",
                  { .self = PROGRAM("/x/runner", argv_plain),
                    .n_ancestors = 2,
                    .ancestors = servers,
                    .place_known = true },
                  "server",
                  "runner",
                  false,
                  1,
                  0 },
                { "a runner under what cannot be seen",
                  { .self = PROGRAM("/x/runner", argv_plain),
                    .n_ancestors = 1,
                    .ancestors = unseen_parent,
                    .place_known = true },
                  "alone",
                  "main",
                  false,
                  0,
                  2 },
                { "a path in an argument",
                  { .self = PROGRAM("/usr/bin/python3", argv_images), .place_known = true },
                  "images",
                  "main",
                  false,
                  0,
                  0 },
                { "a title",
                  { .self = PROGRAM("/usr/bin/python3", argv_titled), .place_known = true },
                  "titled",
                  "main",
                  false,
                  0,
                  0 },
                { "what an ancestor runs",
                  { .self = PROGRAM("/x/game", argv_plain),
                    .n_ancestors = 1,
                    .ancestors = launchers,
                    .place_known = true },
                  "under",
                  "main",
                  false,
                  0,
                  0 },
                { "its own properties before an ancestor's",
                  { .self = PROGRAM("/usr/bin/python3", argv_titled),
                    .n_ancestors = 1,
                    .ancestors = launchers,
                    .place_known = true },
                  "titled",
                  "main",
                  false,
                  1,
                  0 },
                { "a unit",
                  { .self = PROGRAM("/x/y", argv_plain), .place_known = true, .unit = "server-2.service" },
                  "server",
                  "main",
                  true,
                  0,
                  0 },
                { "a unit before a program",
                  { .self = PROGRAM("/x/runner", argv_plain), .place_known = true, .unit = "server.service" },
                  "server",
                  "main",
                  true,
                  1,
                  0 },
                { "an administrator's before a shipped unit",
                  { .self = PROGRAM("/opt/mine/a", argv_plain), .place_known = true, .unit = "server.service" },
                  "mine",
                  "main",
                  false,
                  1,
                  0 },
                { "an administrator's unit",
                  { .self = PROGRAM("/opt/mine/a", argv_plain), .place_known = true, .unit = "special.service" },
                  "pinned",
                  "main",
                  true,
                  1,
                  0 },
                { "a compose service",
                  { .self = PROGRAM("/x/y", argv_plain),
                    .place_known = true,
                    .in_container = true,
                    .container_known = true,
                    .compose_service = "images" },
                  "images",
                  "main",
                  true,
                  0,
                  0 },
                { "an image",
                  { .self = PROGRAM("/x/y", argv_plain),
                    .place_known = true,
                    .in_container = true,
                    .container_known = true,
                    .image = "ghcr.io/x/images:1" },
                  "images",
                  "main",
                  true,
                  0,
                  0 },
                { "a container without a service",
                  { .self = PROGRAM("/x/y", argv_plain),
                    .place_known = true,
                    .in_container = true,
                    .container_known = true },
                  NULL,
                  NULL,
                  false,
                  0,
                  0 },
                { "a container whose engine is silent",
                  { .self = PROGRAM("/x/y", argv_plain), .place_known = true, .in_container = true },
                  NULL,
                  NULL,
                  false,
                  0,
                  1 },
                { "a place that is not known", { .self = PROGRAM("/x/y", argv_plain) }, NULL, NULL, false, 0, 3 },
                { "nothing is known at all", { .place_known = true }, NULL, NULL, false, 0, 5 },
        };
        struct tenants set;

        (void) state;
        load(&set);
        rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct match m;
                match_find(&set, &rows[i].s, &m);
                row_check(rows[i].name, (m.tenant != NULL) == (rows[i].tenant != NULL));
                row_check(rows[i].name, m.n_others == rows[i].n_others);
                row_check(rows[i].name, m.n_unknown == rows[i].n_unknown);
                if (!m.tenant || !rows[i].tenant)
                        continue;
                row_check(rows[i].name, strcmp(m.tenant->name, rows[i].tenant) == 0);
                row_check(rows[i].name, strcmp(match_role(m.tenant, m.rule), rows[i].role) == 0);
                row_check(rows[i].name, m.by_place == rows[i].by_place);
        }
        tenants_fini(&set);
        rows_end();
}

static void command_line_that_was_cut_denies_nothing(void **state)
{
        struct match_subject s = { .self = PROGRAM("/usr/bin/server", argv_plain), .place_known = true };
        struct tenants set;
        uint32_t rule = UINT32_MAX;

        (void) state;
        load(&set);
        s.self.arguments_cut = true;
        assert_int_equal(match_tenant(&set, tenants_find(&set, "server"), &s, &rule), MATCH_UNKNOWN);
        assert_int_equal(rule, 0);
        tenants_fini(&set);
}

struct heard {
        char text[1024];
        size_t n;
};

static void hear(void *ctx, const struct match_line *line)
{
        static const char *const words[] = { "no", "unknown", "yes" };
        struct heard *h = ctx;

        h->n += (size_t) snprintf(h->text + h->n, sizeof(h->text) - h->n, "%u %s %s %s %s %s\n", line->rule, line->key,
                                  line->wanted, line->had ? line->had : "-", words[line->verdict],
                                  line->why ? line->why : "");
}

static void explanation_tells_each_condition(void **state)
{
        const struct match_subject s = { .self = PROGRAM("/usr/bin/server", argv_plain),
                                         .n_ancestors = 1,
                                         .ancestors = unseen_parent };
        struct heard h = { .n = 0 };
        struct tenants set;

        (void) state;
        load(&set);
        const struct tenant *t = tenants_find(&set, "server");
        assert_int_equal(match_rule(t, 0, &s, hear, &h), MATCH_NO);
        assert_int_equal(match_rule(t, 1, &s, hear, &h), MATCH_NO);
        assert_int_equal(match_rule(t, 2, &s, hear, &h), MATCH_UNKNOWN);
        assert_string_equal(h.text, "0 program server /usr/bin/server yes \n"
                                    "0 arguments serve - no \n"
                                    "1 program runner /usr/bin/server no \n"
                                    "1 ancestor server - unknown what an ancestor of it runs is not ours to see\n"
                                    "2 unit server*.service - unknown its cgroup is not known\n");
        tenants_fini(&set);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pattern_fits_the_whole_text),
                cmocka_unit_test(pattern_of_many_stars_is_answered),
                cmocka_unit_test(process_is_whose_rule_fits_best),
                cmocka_unit_test(command_line_that_was_cut_denies_nothing),
                cmocka_unit_test(explanation_tells_each_condition),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
