/* SPDX-License-Identifier: Apache-2.0 */
/* What one user may have at once, by his own row of the configuration or everyone's. */
#include <stdio.h>
#include <string.h>
#include "scene.h"

#define RESTART WAY_OUT_BIT(WAY_OUT_RESTART)
#define COMPUTE (ROW_USED_KNOWN | ROW_COMPUTE)

/* Everyone: little. Row 1: nearly nothing. Row 2: much. */
static void configure(struct scene *s)
{
        scene_begin(s);
        s->config.leases_per_user_max = 4;
        s->config.waiting_per_user_max = 2;
        s->config.bytes_per_user_max = GiB(20);
        s->config.slot_max_ms = HOURS(2);
        s->config.n_quotas = 2;
        s->config.quotas[0] = (struct quota){ .priority_min = 4,
                                              .leases_max = 1,
                                              .waiting_max = 1,
                                              .pins_max = 0,
                                              .bytes_max = GiB(4),
                                              .slot_max_ms = HOURS(1),
                                              .pin_max_ms = HOURS(1) };
        s->config.quotas[1] = (struct quota){ .priority_min = 1, .leases_max = 100, .waiting_max = 50, .pins_max = 9 };
        scene_config(s);
}

static void request_is_judged_by_its_own_row(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                struct ask ask;
                enum rule rule;
                const char *words;
        } rows[] = {
                { "everyone", { .bytes = GiB(20), .slot_s = 7200 }, RULE_NONE, NULL },
                { "everyone, too much", { .bytes = GiB(20) + 1, .slot_s = 7200 }, RULE_LIMIT_BYTES_PER_USER, "20 GiB" },
                { "everyone, too long", { .bytes = GiB(1), .slot_s = 7201 }, RULE_LIMIT_SLOT, "2 h" },
                { "everyone, no end", { .bytes = GiB(1) }, RULE_LIMIT_SLOT, "--for" },
                { "everyone, urgent",
                  { .bytes = GiB(1), .slot_s = 60, .priority = 1, .named = RESTART },
                  RULE_PRIORITY_CEILING,
                  "2 (interactive)" },
                { "a student", { .quota = 1, .bytes = GiB(4), .slot_s = 3600, .priority = 4 }, RULE_NONE, NULL },
                { "a student, normal",
                  { .quota = 1, .bytes = GiB(1), .slot_s = 60, .priority = 3 },
                  RULE_PRIORITY_CEILING,
                  "4 (batch)" },
                { "a student, too much",
                  { .quota = 1, .bytes = GiB(4) + 1, .slot_s = 60, .priority = 4 },
                  RULE_LIMIT_BYTES_PER_USER,
                  "4 GiB" },
                { "a student, too long",
                  { .quota = 1, .bytes = GiB(1), .slot_s = 3601, .priority = 4 },
                  RULE_LIMIT_SLOT,
                  "1 h" },
                { "an operator", { .quota = 2, .bytes = GiB(24) }, RULE_NONE, NULL },
                { "an operator, urgent",
                  { .quota = 2, .bytes = GiB(24), .slot_s = 60, .priority = 1, .named = RESTART },
                  RULE_NONE,
                  NULL },
                { "an administrator in a student's row",
                  { .quota = 1, .admin = true, .bytes = GiB(24), .priority = 1, .slot_s = 99999, .named = RESTART },
                  RULE_NONE,
                  NULL },
                { "an administrator, no end", { .quota = 1, .admin = true, .bytes = GiB(24) }, RULE_NONE, NULL },
                { "a row that is not there is everyone's, too long",
                  { .quota = 3, .bytes = GiB(1), .slot_s = 7201 },
                  RULE_LIMIT_SLOT,
                  "2 h" },
                { "a row beyond the table is everyone's, too much",
                  { .quota = 4000000000U, .bytes = GiB(21), .slot_s = 60 },
                  RULE_LIMIT_BYTES_PER_USER,
                  "20 GiB" },
                { "the whole of a card is what it comes to",
                  { .exclusive = true, .slot_s = 60 },
                  RULE_LIMIT_BYTES_PER_USER,
                  "20 GiB" },
                { "all of a card too", { .percent_milli = 100000, .slot_s = 60 }, RULE_LIMIT_BYTES_PER_USER, "20 GiB" },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                char text[512];
                configure(&s);
                (void) scene_device(&s, GiB(24));
                uint64_t x = scene_request(&s, rows[i].ask);
                if (rows[i].rule == RULE_NONE) {
                        assert_runs(&s, x);
                } else {
                        assert_int_equal(x, 0);
                        assert_rule(s.answer, rows[i].rule);
                        (void) reason_text(&s.answer.why, s.now_ms, text, sizeof(text));
                        if (!strstr(text, rows[i].words))
                                fail_msg("\"%s\"", text);
                }
                scene_end(&s);
        }
}

static void bytes_of_what_waits_count_and_of_what_drains_do_not(void **state)
{
        (void) state;
        struct scene s;
        char text[512];
        configure(&s);
        uint32_t card = scene_device(&s, GiB(24));
        (void) scene_stranger(&s, card, GiB(12));
        uint64_t runs = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(10), .slot_s = 60 });
        assert_runs(&s, runs);
        uint64_t waits = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(8), .slot_s = 60 });
        assert_waits(&s, waits);
        assert_int_equal(scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(3), .slot_s = 60 }), 0);
        assert_rule(s.answer, RULE_LIMIT_BYTES_PER_USER);
        assert_bytes(s.answer.why.need_bytes, GiB(3));
        assert_bytes(s.answer.why.reserved_bytes, GiB(18));
        assert_bytes(s.answer.why.ceiling_bytes, GiB(20));
        (void) reason_text(&s.answer.why, s.now_ms, text, sizeof(text));
        assert_string_equal(text, "this user's leases may come to 20 GiB together; they have 18 GiB, and this asks for "
                                  "3 GiB: release some first "
                                  "(`lessor limits`)");
        assert_int_not_equal(scene_request(&s, (struct ask){ .uid = BOB, .bytes = GiB(20), .slot_s = 60 }), 0);
        assert_int_not_equal(scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(2), .slot_s = 60 }), 0);

        scene_uses(&s, runs, GiB(10));
        scene_release(&s, runs);
        assert_state(&s, runs, LEASE_DRAINING); /* he cannot make it go faster */
        assert_int_not_equal(scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(1), .slot_s = 60 }), 0);
        scene_end(&s);
}

static void adopting_counts_like_asking(void **state)
{
        (void) state;
        struct scene s;
        configure(&s);
        uint32_t card = scene_device(&s, GiB(48));
        uint32_t pid = scene_process_of(&s, ALICE, 0, 0, 0);
        scene_process_uses(&s, pid, card, GiB(21), COMPUTE);
        assert_int_equal(scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid, .slot_s = 60 }), 0);
        assert_rule(s.answer, RULE_LIMIT_BYTES_PER_USER);
        assert_int_equal(scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid }), 0);
        assert_rule(s.answer, RULE_LIMIT_SLOT);
        /* An administrator may, for that user; then that user has it. */
        uint64_t x = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid, .admin = true });
        assert_runs(&s, x);
        assert_int_equal(scene_request(&s, (struct ask){ .uid = ALICE, .bytes = 1, .slot_s = 60 }), 0);
        assert_rule(s.answer, RULE_LIMIT_BYTES_PER_USER);
        scene_end(&s);
}

/* Numbers of rows in tables: an administrator's too, else one script of his fills what all share. */
static void leases_and_places_in_the_queue_are_limited_for_everybody(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint32_t quota;
                bool admin;
                uint32_t waiting_max, leases_max;
        } rows[] = {
                { "everyone", 0, false, 2, 4 },
                { "a student", 1, false, 1, 1 },
                { "an administrator", 0, true, 2, 4 },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                configure(&s);
                uint32_t card = scene_device(&s, GiB(24));
                struct ask ask = {
                        .quota = rows[i].quota, .admin = rows[i].admin, .priority = 4, .bytes = MiB(1), .slot_s = 60
                };
                uint32_t n = 0;
                while (scene_request(&s, ask) != 0)
                        n++;
                assert_int_equal(n, rows[i].leases_max);
                assert_rule(s.answer, RULE_LIMIT_LEASES_PER_USER);
                assert_int_equal(s.answer.why.limit, rows[i].leases_max);
                scene_end(&s);

                configure(&s);
                card = scene_device(&s, GiB(24));
                (void) scene_stranger(&s, card, GiB(24));
                n = 0;
                while (scene_request(&s, ask) != 0)
                        n++;
                assert_int_equal(n, rows[i].waiting_max);
                assert_rule(s.answer, RULE_LIMIT_WAITING_PER_USER);
                assert_int_equal(s.answer.why.limit, rows[i].waiting_max);
                scene_end(&s);
        }
}

static void reload_judges_what_comes_and_leaves_what_is_there(void **state)
{
        (void) state;
        struct scene s;
        configure(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .quota = 2, .bytes = GiB(22) });
        assert_runs(&s, x);
        s.config.n_quotas = 1; /* the operators' row is gone: they are everyone */
        scene_config(&s);
        assert_runs(&s, x);
        assert_int_equal(scene_request(&s, (struct ask){ .quota = 2, .bytes = MiB(1), .slot_s = 60 }), 0);
        assert_rule(s.answer, RULE_LIMIT_BYTES_PER_USER);
        assert_bytes(s.answer.why.reserved_bytes, GiB(22));
        s.config.n_quotas = 2;
        scene_config(&s);
        assert_runs(&s, scene_request(&s, (struct ask){ .quota = 2, .bytes = MiB(1) }));
        s.config.n_quotas = QUOTAS_MAX + 5; /* no configuration has it; a damaged one might */
        scene_config(&s);
        struct quota q = config_quota(&s.world->config, QUOTAS_MAX + 3);
        assert_bytes(q.bytes_max, GiB(20));
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(request_is_judged_by_its_own_row),
                cmocka_unit_test(bytes_of_what_waits_count_and_of_what_drains_do_not),
                cmocka_unit_test(adopting_counts_like_asking),
                cmocka_unit_test(leases_and_places_in_the_queue_are_limited_for_everybody),
                cmocka_unit_test(reload_judges_what_comes_and_leaves_what_is_there),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
