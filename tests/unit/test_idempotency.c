/* SPDX-License-Identifier: Apache-2.0 */
/* The table of idempotency keys: what is repeated, what is new, and what makes room. */
#include <stdio.h>
#include <string.h>
#include "api/idempotency.h"
#include "cm.h"

static struct idempotency_table t;

static int empty(void **state)
{
        (void) state;
        memset(&t, 0, sizeof(t));
        return 0;
}

static struct idempotency key_of(uint32_t uid, const char *key, const char *body)
{
        struct idempotency k;
        idempotency_hash(uid, "POST", "/api/leases", 0, key, body, strlen(body), &k);
        return k;
}

static enum idempotency_verdict ask(uint32_t uid, const char *key, const char *body, uint64_t now_ms, uint32_t *row)
{
        struct idempotency k = key_of(uid, key, body);
        return idempotency_begin(&t, &k, uid, now_ms, row);
}

static void key_is_one_to_64_printable_characters(void **state)
{
        char text[66] = "";
        (void) state;
        assert_false(idempotency_key_is_wellformed(""));
        memset(text, 'x', 64);
        assert_true(idempotency_key_is_wellformed(text));
        text[64] = 'x';
        assert_false(idempotency_key_is_wellformed(text));
        assert_true(idempotency_key_is_wellformed("a b~!"));
        assert_false(idempotency_key_is_wellformed("a\tb"));
        assert_false(idempotency_key_is_wellformed("\xc3\xa4"));
        assert_false(idempotency_key_is_wellformed("a\x7f"));
}

static void hash_tells_users_methods_addresses_leases_and_keys_apart(void **state)
{
        struct idempotency base = key_of(1, "k", "{}"), other;
        static const struct {
                const char *name;
                uint32_t uid;
                const char *method, *path;
                uint64_t lease;
                const char *key;
        } rows[] = {
                { "another user", 2, "POST", "/api/leases", 0, "k" },
                { "another method", 1, "PATCH", "/api/leases", 0, "k" },
                { "another address", 1, "POST", "/api/adopt", 0, "k" },
                { "another lease", 1, "POST", "/api/leases", 7, "k" },
                { "another key", 1, "POST", "/api/leases", 0, "l" },
                { "the border between two texts", 1, "POST", "/api/lease", 0, "sk" },
        };
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                idempotency_hash(rows[i].uid, rows[i].method, rows[i].path, rows[i].lease, rows[i].key, "{}", 2,
                                 &other);
                row_check(rows[i].name, memcmp(base.key, other.key, sizeof(base.key)) != 0);
                row_check(rows[i].name, base.body == other.body);
        }
        other = key_of(1, "k", "{ }");
        row_check("another body", memcmp(base.key, other.key, sizeof(base.key)) == 0 && base.body != other.body);
        row_check("none is told from some", !idempotency_is_none(&base));
        rows_end();
}

static void repetition_is_the_first_ones_lease(void **state)
{
        uint32_t row, again;
        (void) state;
        assert_int_equal(ask(1, "k", "{}", 0, &row), IDEMPOTENCY_NEW);
        assert_int_equal(ask(1, "k", "{}", 0, &again), IDEMPOTENCY_BUSY);
        idempotency_done(&t, row, 17, 201, 5);
        assert_int_equal(ask(1, "k", "{}", 10, &again), IDEMPOTENCY_REPEATED);
        assert_int_equal(t.rows[again].lease_id, 17);
        assert_int_equal(t.rows[again].status, 201);
        assert_int_equal(ask(1, "k", "{\"bytes\":1}", 10, &again), IDEMPOTENCY_OTHER_ASK);
        assert_int_equal(ask(2, "k", "{}", 10, &again), IDEMPOTENCY_NEW);
}

static void what_made_nothing_may_be_asked_again(void **state)
{
        uint32_t row;
        struct idempotency k = key_of(1, "k", "{}");
        (void) state;
        assert_int_equal(ask(1, "k", "{}", 0, &row), IDEMPOTENCY_NEW);
        idempotency_forget(&t, row);
        assert_int_equal(ask(1, "k", "{}", 0, &row), IDEMPOTENCY_NEW);
        idempotency_done(&t, row, 3, 201, 0);
        idempotency_forget_key(&t, &k);
        assert_int_equal(ask(1, "k", "{\"other\":1}", 0, &row), IDEMPOTENCY_NEW);
        assert_int_equal(t.n, 1);
}

static void key_is_forgotten_after_a_day(void **state)
{
        uint32_t row;
        (void) state;
        assert_int_equal(ask(1, "k", "{}", 0, &row), IDEMPOTENCY_NEW);
        idempotency_done(&t, row, 3, 201, 1000);
        assert_int_equal(ask(1, "k", "{}", 1000 + IDEMPOTENCY_KEPT_MS, &row), IDEMPOTENCY_REPEATED);
        assert_int_equal(ask(1, "k", "{}", 1001 + IDEMPOTENCY_KEPT_MS, &row), IDEMPOTENCY_NEW);
}

static void S19_one_users_keys_push_out_his_own_oldest_only(void **state)
{
        uint32_t row;
        char key[16];
        (void) state;
        assert_int_equal(ask(2, "theirs", "{}", 0, &row), IDEMPOTENCY_NEW);
        idempotency_done(&t, row, 1, 201, 0);
        for (unsigned i = 0; i < 3 * IDEMPOTENCY_PER_UID_MAX; i++) {
                (void) snprintf(key, sizeof(key), "%u", i);
                assert_int_equal(ask(1, key, "{}", 10 + i, &row), IDEMPOTENCY_NEW);
                idempotency_done(&t, row, i + 2, 201, 10 + i);
        }
        assert_int_equal(t.n, IDEMPOTENCY_PER_UID_MAX + 1);
        assert_int_equal(ask(2, "theirs", "{}", 1000, &row), IDEMPOTENCY_REPEATED);
        assert_int_equal(ask(1, "767", "{}", 1000, &row), IDEMPOTENCY_REPEATED);
        assert_int_equal(ask(1, "512", "{}", 1000, &row), IDEMPOTENCY_REPEATED);
        assert_int_equal(ask(1, "511", "{}", 1000, &row), IDEMPOTENCY_NEW);
}

static void what_is_under_way_is_never_pushed_out(void **state)
{
        uint32_t row;
        char key[16];
        (void) state;
        for (unsigned i = 0; i < IDEMPOTENCY_PER_UID_MAX; i++) {
                (void) snprintf(key, sizeof(key), "%u", i);
                assert_int_equal(ask(1, key, "{}", i, &row), IDEMPOTENCY_NEW);
        }
        assert_int_equal(ask(1, "more", "{}", 1000, &row), IDEMPOTENCY_NO_ROOM);
        assert_int_equal(ask(1, "0", "{}", 1000, &row), IDEMPOTENCY_BUSY);
        assert_int_equal(ask(2, "more", "{}", 1000, &row), IDEMPOTENCY_NEW);
}

static void many_users_push_out_the_oldest_of_all(void **state)
{
        uint32_t row;
        char key[16];
        (void) state;
        for (uint32_t i = 0; i < IDEMPOTENCY_ROWS + 5; i++) {
                (void) snprintf(key, sizeof(key), "%u", i);
                assert_int_equal(ask(i / 100, key, "{}", i, &row), IDEMPOTENCY_NEW);
                idempotency_done(&t, row, i + 1, 202, i);
        }
        assert_int_equal(t.n, IDEMPOTENCY_ROWS);
        assert_int_equal(ask(0, "5", "{}", 9999, &row), IDEMPOTENCY_REPEATED);
        assert_int_equal(ask(0, "4", "{}", 9999, &row), IDEMPOTENCY_NEW);
}

static void lease_of_before_a_restart_is_known(void **state)
{
        struct idempotency k = key_of(1, "k", "{}"), none = { 0 };
        uint32_t row;
        (void) state;
        idempotency_restore(&t, &k, 1, 9, 100);
        idempotency_restore(&t, &none, 1, 10, 100);
        assert_int_equal(t.n, 1);
        assert_int_equal(ask(1, "k", "{}", 200, &row), IDEMPOTENCY_REPEATED);
        assert_int_equal(t.rows[row].lease_id, 9);
        assert_int_equal(ask(1, "k", "{\"a\":1}", 200, &row), IDEMPOTENCY_OTHER_ASK);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(key_is_one_to_64_printable_characters),
                cmocka_unit_test(hash_tells_users_methods_addresses_leases_and_keys_apart),
                cmocka_unit_test_setup(repetition_is_the_first_ones_lease, empty),
                cmocka_unit_test_setup(what_made_nothing_may_be_asked_again, empty),
                cmocka_unit_test_setup(key_is_forgotten_after_a_day, empty),
                cmocka_unit_test_setup(S19_one_users_keys_push_out_his_own_oldest_only, empty),
                cmocka_unit_test_setup(what_is_under_way_is_never_pushed_out, empty),
                cmocka_unit_test_setup(many_users_push_out_the_oldest_of_all, empty),
                cmocka_unit_test_setup(lease_of_before_a_restart_is_known, empty),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
