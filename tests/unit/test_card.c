/* SPDX-License-Identifier: Apache-2.0 */
/* Who may be on one GPU together: the worked example 30 of cluster scheduling, and what never mixes. */
#include <stdlib.h>
#include "cm.h"
#include "placement/card.h"

enum { FREE_TENANT, PAID_TENANT };

static void example_30_memory_refuses_what_the_parts_would_allow(void **state)
{
        (void) state;
        struct card card = { .vram_mib = 24000 };
        struct share share = { .isolation = ISOLATION_TIMESLICE, .milli = 300, .vram_mib = 9000 };

        for (int i = 0; i < 2; i++) {
                assert_int_equal(card_judge(&card, &share), CARD_FITS);
                card_take(&card, &share);
        }
        assert_int_equal(card_judge(&card, &share), CARD_NO_MEMORY);
        card_give(&card, &share);
        assert_int_equal(card_judge(&card, &share), CARD_FITS);
}

static void card_mixes_neither_kinds_nor_tenants_unless_it_isolates(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                struct share first, second;
                enum card_verdict verdict;
        } rows[] = {
                { "MPS beside MPS", { ISOLATION_MPS, 0, 500, 100 }, { ISOLATION_MPS, 0, 500, 100 }, CARD_FITS },
                { "too many parts", { ISOLATION_MPS, 0, 500, 100 }, { ISOLATION_MPS, 0, 501, 100 }, CARD_NO_PART },
                { "MPS beside a time slice",
                  { ISOLATION_TIMESLICE, 0, 100, 100 },
                  { ISOLATION_MPS, 0, 100, 100 },
                  CARD_OTHER_KIND },
                { "alone beside MPS",
                  { ISOLATION_MPS, 0, 100, 100 },
                  { ISOLATION_EXCLUSIVE, 0, 100, 100 },
                  CARD_OTHER_KIND },
                { "alone twice",
                  { ISOLATION_EXCLUSIVE, 0, 100, 100 },
                  { ISOLATION_EXCLUSIVE, 0, 100, 100 },
                  CARD_NO_PART },
                { "free beside paid, MPS",
                  { ISOLATION_MPS, PAID_TENANT, 100, 100 },
                  { ISOLATION_MPS, FREE_TENANT, 100, 100 },
                  CARD_OTHER_TENANT },
                { "free beside paid, time slices",
                  { ISOLATION_TIMESLICE, PAID_TENANT, 100, 100 },
                  { ISOLATION_TIMESLICE, FREE_TENANT, 100, 100 },
                  CARD_OTHER_TENANT },
                { "free beside paid, MIG",
                  { ISOLATION_MIG, PAID_TENANT, 100, 100 },
                  { ISOLATION_MIG, FREE_TENANT, 100, 100 },
                  CARD_FITS },
                { "all memory and one",
                  { ISOLATION_MPS, 0, 100, 1 },
                  { ISOLATION_MPS, 0, 100, 24000 },
                  CARD_NO_MEMORY },
                { "more than any has",
                  { ISOLATION_MPS, 0, 100, 1 },
                  { ISOLATION_MPS, 0, 100, UINT32_MAX },
                  CARD_NO_MEMORY },
                { "more parts than any has",
                  { ISOLATION_MPS, 0, 100, 1 },
                  { ISOLATION_MPS, 0, UINT32_MAX, 1 },
                  CARD_NO_PART },
        };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct card card = { .vram_mib = 24000 };
                card_take(&card, &rows[i].first);
                row_check(rows[i].name, card_judge(&card, &rows[i].second) == rows[i].verdict);
                card_give(&card, &rows[i].first);
                row_check(rows[i].name, card.used_mib == 0 && card.used_milli == 0);
                /* empty, it may be anything again */
                if (rows[i].second.milli <= 1000 && rows[i].second.vram_mib <= 24000)
                        row_check(rows[i].name, card_judge(&card, &rows[i].second) == CARD_FITS);
        }
        rows_end();
}

static void every_verdict_has_its_words(void **state)
{
        (void) state;
        for (int v = CARD_FITS; v <= CARD_NO_MEMORY; v++)
                assert_non_null(card_verdict_words((enum card_verdict) v));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(example_30_memory_refuses_what_the_parts_would_allow),
                cmocka_unit_test(card_mixes_neither_kinds_nor_tenants_unless_it_isolates),
                cmocka_unit_test(every_verdict_has_its_words),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
