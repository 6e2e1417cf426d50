/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept free on every card, whoever asks (F33: under WSL, residency fails with about 2 GB still shown free). */
#include <string.h>
#include "arbiter/ceiling.h"
#include "scene.h"

static void begin_with(struct scene *s, uint64_t kept_free_bytes)
{
        struct config config;

        memset(&config, 0, sizeof(config)); /* padding too: configurations are compared as bytes */
        config_defaults(&config);
        config.kept_free_bytes = kept_free_bytes;
        scene_begin_with(s, &config);
}

static void F33_nothing_is_kept_free_by_default(void **state)
{
        (void) state;
        struct config config;

        config_defaults(&config);
        assert_bytes(config.kept_free_bytes, 0);
}

static void F33_margin_is_never_granted_whoever_uses_the_rest(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint64_t total, margin, reserved, used, stranger, free;
        } rows[] = {
                { "empty", GiB(16), GiB(2), 0, 0, 0, GiB(14) },
                { "a promise", GiB(16), GiB(2), GiB(10), 0, 0, GiB(4) },
                { "a stranger beside a promise", GiB(16), GiB(2), GiB(6), GiB(1), GiB(4), GiB(4) },
                { "over-use", GiB(16), GiB(2), GiB(6), GiB(8), 0, GiB(6) },
                { "all but the margin", GiB(16), GiB(2), GiB(14), 0, 0, 0 },
                { "a stranger inside the margin", GiB(16), GiB(2), 0, 0, GiB(15), 0 },
                { "no margin", GiB(16), 0, GiB(10), 0, 0, GiB(6) },
                { "more than there is", GiB(1), GiB(2), 0, 0, 0, 0 },
                { "absurd", GiB(16), UINT64_MAX, GiB(0), 0, GiB(4), 0 },
        };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;

                begin_with(&s, rows[i].margin);
                uint32_t card = scene_device(&s, rows[i].total);
                if (rows[i].reserved != 0) {
                        uint64_t a = scene_request(&s, (struct ask){ .bytes = rows[i].reserved });
                        assert_runs(&s, a);
                        if (rows[i].used != 0)
                                scene_uses(&s, a, rows[i].used);
                }
                if (rows[i].stranger != 0)
                        (void) scene_stranger(&s, card, rows[i].stranger);
                row_check(rows[i].name, scene_free(&s, card) == rows[i].free);
                if (rows[i].free != 0) {
                        row_check(rows[i].name,
                                  scene_request(&s, (struct ask){ .bytes = rows[i].free + 1, .no_wait = true }) == 0);
                        uint64_t rest = scene_request(&s, (struct ask){ .bytes = rows[i].free });
                        row_check(rows[i].name, strcmp(scene_state(&s, rest), "active") == 0);
                        row_check(rows[i].name, scene_free(&s, card) == 0);
                }
                scene_end(&s);
        }
        rows_end();
}

static void F33_request_into_the_margin_fails_at_once_and_names_it(void **state)
{
        (void) state;
        struct scene s;

        begin_with(&s, GiB(2));
        (void) scene_device(&s, GiB(16));
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = GiB(14) + 1 }), 0);
        assert_rule(s.answer, RULE_NEVER_FITS);
        assert_bytes(s.answer.why.ceiling_bytes, GiB(14));
        assert_bytes(s.answer.why.total_bytes, GiB(16));
        assert_int_equal(s.answer.why.n_blockers, 1);
        assert_int_equal(s.answer.why.blockers[0].kind, BLOCKER_KEPT_FREE);
        assert_bytes(s.answer.why.blockers[0].bytes, GiB(2));
        assert_string_equal(blocker_kind_name(BLOCKER_KEPT_FREE), "kept-free");

        uint64_t all = scene_request(&s, (struct ask){ .percent_milli = 100000 }); /* "all" is all that can be had */
        assert_runs(&s, all);
        assert_bytes(scene_lease(&s, all)->bytes, GiB(14));
        scene_end(&s);
}

static void F33_who_waits_is_told_of_the_margin_among_those_in_the_way(void **state)
{
        (void) state;
        struct scene s;
        bool told = false;

        begin_with(&s, GiB(2));
        (void) scene_device(&s, GiB(16));
        assert_runs(&s, scene_request(&s, (struct ask){ .bytes = GiB(10) }));
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(5) });
        assert_waits(&s, b);
        for (uint32_t i = 0; i < s.answer.why.n_blockers; i++)
                told = told ||
                       (s.answer.why.blockers[i].kind == BLOCKER_KEPT_FREE && s.answer.why.blockers[i].bytes == GiB(2));
        assert_true(told);
        scene_end(&s);
}

/* An administrator who gives a budget has said what may be given. */
static void F33_margin_does_not_lower_a_budget(void **state)
{
        (void) state;
        struct scene s;

        begin_with(&s, GiB(2));
        uint32_t card = scene_device(&s, GiB(16));
        s.world->devices[card].budget_bytes = GiB(8);
        assert_bytes(device_ceiling_bytes(s.world, card, NULL), GiB(8));
        assert_bytes(scene_free(&s, card), GiB(8));
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(F33_nothing_is_kept_free_by_default),
                cmocka_unit_test(F33_margin_is_never_granted_whoever_uses_the_rest),
                cmocka_unit_test(F33_request_into_the_margin_fails_at_once_and_names_it),
                cmocka_unit_test(F33_who_waits_is_told_of_the_margin_among_those_in_the_way),
                cmocka_unit_test(F33_margin_does_not_lower_a_budget),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
