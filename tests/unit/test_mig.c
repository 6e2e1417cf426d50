/* SPDX-License-Identifier: Apache-2.0 */
/* Instances of a divided GPU: the worked examples 12 to 14 of cluster scheduling, and the tables against NVIDIA's own counts. */
#include <string.h>
#include "cm.h"
#include "placement/mig.h"

enum { BASE = 5, SETS_MAX = 1024 }; /* profiles of the table without the one of double memory */

static const struct mig_profile *profile(const char *name)
{
        const struct mig_profile *found = mig_profile_find(&mig_a100, name);

        assert_non_null(found);
        return found;
}

/* All base profiles alike, growth in fifths of a slice. */
static int32_t growth(const char *name, unsigned start)
{
        struct mig_fragment fragment;
        static const uint32_t weights[MIG_PROFILES_MAX] = { 1, 1, 1, 1, 1 };

        mig_fragment_build(&fragment, &mig_a100, weights);
        return fragment.of[mig_slices(profile(name), start)] - fragment.of[0];
}

static unsigned chosen(const char *name)
{
        struct mig_fragment fragment;
        static const uint32_t weights[MIG_PROFILES_MAX] = { 1, 1, 1, 1, 1 };
        uint8_t mask = 0;
        size_t gpu;
        unsigned start;

        mig_fragment_build(&fragment, &mig_a100, weights);
        assert_true(mig_choose(&fragment, profile(name), &mask, 1, &gpu, &start));
        assert_int_equal(gpu, 0);
        return start;
}

static void example_12_one_small_instance_goes_to_the_end(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                unsigned at_0, at_6;
        } rows[] = { { "1g", 6, 6 }, { "2g", 2, 3 }, { "3g", 1, 1 }, { "4g", 0, 1 } };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                row_check(rows[i].name, mig_fit(profile(rows[i].name), 1 << 0) == rows[i].at_0);
                row_check(rows[i].name, mig_fit(profile(rows[i].name), 1 << 6) == rows[i].at_6);
        }
        for (unsigned start = 0; start < 7; start++)
                assert_int_equal(growth("1g", start), start < 4 ? 14 : start < 6 ? 10 : 8);
        assert_int_equal(chosen("1g"), 6);
        rows_end();
}

static void example_13_larger_ones_leave_the_half_that_takes_more(void **state)
{
        (void) state;
        uint8_t at_0 = mig_slices(profile("3g"), 0), at_4 = mig_slices(profile("3g"), 4);

        assert_int_equal(mig_fit(profile("1g"), at_0), 3);
        assert_int_equal(mig_fit(profile("2g"), at_0), 1);
        assert_int_equal(mig_fit(profile("4g"), at_0), 0);
        assert_int_equal(mig_fit(profile("1g"), at_4), 4);
        assert_int_equal(mig_fit(profile("2g"), at_4), 2);
        assert_int_equal(mig_fit(profile("4g"), at_4), 1);
        assert_int_equal(growth("3g", 0), 4);
        assert_int_equal(growth("3g", 4), -3);
        assert_int_equal(chosen("3g"), 4);
        assert_int_equal(growth("2g", 0), 10);
        assert_int_equal(growth("2g", 2), 10);
        assert_int_equal(growth("2g", 4), 6);
        assert_int_equal(chosen("2g"), 4);
}

static void example_14_side_by_side_is_not_enough(void **state)
{
        (void) state;
        uint8_t all_but_3_4 = (uint8_t) ~(1U << 3 | 1U << 4), all_but_4_5 = (uint8_t) ~(1U << 4 | 1U << 5);
        uint8_t two_3g = mig_slices(profile("3g"), 0) | mig_slices(profile("3g"), 4);
        uint8_t seven_1g = 0x7f, doubles = 0, mixed;

        assert_int_equal(mig_fit(profile("2g"), all_but_3_4), 0);
        assert_int_equal(mig_fit(profile("1g"), all_but_3_4), 2);
        assert_int_equal(mig_fit(profile("2g"), all_but_4_5), 1);
        assert_int_equal(mig_fit(profile("1g"), two_3g), 0);
        assert_int_equal(mig_fit(profile("1g"), seven_1g), 0);
        for (unsigned start = 0; start < 8; start += 2) {
                assert_false(doubles & mig_slices(profile("1g-double"), start));
                doubles |= mig_slices(profile("1g-double"), start);
        }
        assert_int_equal(doubles, 0xff);
        mixed = mig_slices(profile("4g"), 0) | mig_slices(profile("2g"), 4);
        assert_int_equal(mig_fit(profile("1g"), mixed), 1);
        assert_int_equal(mig_fit(profile("4g"), mig_slices(profile("4g"), 0)), 0);
        assert_int_equal(mig_fit(profile("3g"), mig_slices(profile("4g"), 0)), 1);
}

struct sets {
        unsigned n, maximal, kinds;
        uint32_t seen[SETS_MAX]; /* how many of each profile, of maximal sets */
};

/* Each set of instances once: by profile, then by start. */
static void enumerate(const struct mig_geometry *geometry, unsigned profiles, unsigned p, unsigned i, uint8_t mask,
                      uint32_t counts, unsigned compute, struct sets *sets)
{
        if (p == profiles) {
                bool maximal = true;
                assert_true(compute <= 7);
                sets->n += mask != 0;
                for (unsigned other = 0; other < profiles; other++)
                        maximal = maximal && mig_fit(&geometry->profiles[other], mask) == 0;
                if (!maximal)
                        return;
                sets->maximal++;
                for (unsigned s = 0; s < sets->kinds; s++)
                        if (sets->seen[s] == counts)
                                return;
                sets->seen[sets->kinds++] = counts;
                return;
        }
        const struct mig_profile *of = &geometry->profiles[p];
        if (i == of->n_starts) {
                enumerate(geometry, profiles, p + 1, 0, mask, counts, compute, sets);
                return;
        }
        enumerate(geometry, profiles, p, i + 1, mask, counts, compute, sets);
        uint8_t slices = mig_slices(of, of->starts[i]);
        if (!(mask & slices))
                enumerate(geometry, profiles, p, i + 1, mask | slices, counts + (1U << 4 * p), compute + of->compute,
                          sets);
}

static void table_has_as_many_sets_as_the_hardware(void **state)
{
        (void) state;
        struct sets base = { 0 }, all = { 0 };

        enumerate(&mig_a100, BASE, 0, 0, 0, 0, 0, &base);
        assert_int_equal(base.n, 297);
        assert_int_equal(base.maximal, 19);
        assert_int_equal(base.kinds, 14);
        enumerate(&mig_a100, mig_a100.n_profiles, 0, 0, 0, 0, 0, &all);
        assert_int_equal(all.n, 722);
        assert_int_equal(all.maximal, 78);
}

static void fuller_gpu_wins_a_tie_and_a_full_one_is_left_out(void **state)
{
        (void) state;
        struct mig_fragment fragment;
        size_t gpu;
        unsigned start;
        const struct mig_profile *whole = mig_profile_find(&mig_a30, "4g"), *half = mig_profile_find(&mig_a30, "2g");
        static const uint8_t full[2] = { 0xf, 0x1 }, empty[3] = { 0xf, 0, 0 }, half_used[3] = { 0, 0x3, 0x3 };

        mig_fragment_build(&fragment, &mig_a30, NULL);
        assert_false(mig_choose(&fragment, whole, full, 2, &gpu, &start));
        assert_true(mig_choose(&fragment, whole, empty, 3, &gpu, &start));
        assert_int_equal(gpu, 1);
        assert_true(mig_choose(&fragment, half, half_used, 3, &gpu, &start));
        assert_int_equal(gpu, 1);
        assert_int_equal(start, 2);
        assert_null(mig_profile_find(&mig_a30, "7g"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(example_12_one_small_instance_goes_to_the_end),
                cmocka_unit_test(example_13_larger_ones_leave_the_half_that_takes_more),
                cmocka_unit_test(example_14_side_by_side_is_not_enough),
                cmocka_unit_test(table_has_as_many_sets_as_the_hardware),
                cmocka_unit_test(fuller_gpu_wins_a_tie_and_a_full_one_is_left_out),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
