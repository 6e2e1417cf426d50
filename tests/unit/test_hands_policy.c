/* SPDX-License-Identifier: Apache-2.0 */
#include "hands/policy.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "cm.h"

static int rows_failed;

enum { NOW_MS = 100000, PID = 4711, START = 1234, INODE = 88, CGROUP = 55, OWNER = 1000 };

/* Everything right: each test breaks one thing. */
static struct settings settings;
static struct warden_order order;
static struct target target;
static struct protect_list protect;
static struct grace_table grace;
static uint32_t kin[] = { 100, 200 };

static int right(void **state)
{
        (void) state;
        settings_system(&settings);
        order = (struct warden_order){ .order_id = 1,
                                       .verb = WARDEN_SIGNAL,
                                       .signal = SIGTERM,
                                       .pid = PID,
                                       .start_ticks = START,
                                       .pidfd_inode = INODE,
                                       .owner_uid = OWNER };
        target = (struct target){ .seen = true,
                                  .pid = PID,
                                  .state = 'S',
                                  .start_ticks = START,
                                  .pidfd_inode = INODE,
                                  .real_uid = OWNER,
                                  .program_known = true,
                                  .program = { 8, 1000 } };
        protect = (struct protect_list){ .n = 2, .n_own = 1, .programs = { { 8, 1 }, { 8, 2 } } };
        memset(&grace, 0, sizeof(grace));
        return 0;
}

static enum warden_why check(void)
{
        const struct policy_facts facts = { &order, &target, &protect, kin, 2, &grace, NOW_MS };
        return policy_check(&settings, &facts);
}

static void order_on_ones_own_process_is_allowed(void **state)
{
        (void) state;
        assert_int_equal(check(), WARDEN_WHY_NONE);
        order.pidfd_inode = 0; /* not known: older kernels */
        assert_int_equal(check(), WARDEN_WHY_NONE);
}

#define BROKEN(what, expected)                                                                                         \
        do {                                                                                                           \
                (void) right(NULL);                                                                                    \
                what;                                                                                                  \
                row_check(#what, check() == (expected));                                                               \
        } while (0)

static void one_thing_wrong_is_refused_by_its_name(void **state)
{
        (void) state;
        rows_failed = 0;
        BROKEN(target.gone = true, WARDEN_WHY_GONE);
        BROKEN(target.no_pidfd = true, WARDEN_WHY_KERNEL_TOO_OLD);
        BROKEN(target.error = 24, WARDEN_WHY_SYSTEM);
        BROKEN(target.seen = false, WARDEN_WHY_UNSEEN);
        BROKEN(target.program_known = false, WARDEN_WHY_UNSEEN);
        BROKEN(target.pid = PID + 1, WARDEN_WHY_UNSEEN);
        BROKEN(target.start_ticks++, WARDEN_WHY_RECYCLED);
        BROKEN(order.start_ticks = 0, WARDEN_WHY_RECYCLED);
        BROKEN(target.pidfd_inode++, WARDEN_WHY_RECYCLED);
        BROKEN(target.kernel_thread = true, WARDEN_WHY_PROTECTED_KERNEL);
        BROKEN(target.program.inode = 1, WARDEN_WHY_PROTECTED_LESSOR);
        BROKEN(target.program.inode = 2, WARDEN_WHY_PROTECTED_PROGRAM);
        BROKEN(kin[0] = PID, WARDEN_WHY_PROTECTED_LESSOR);
        kin[0] = 100;
        BROKEN(order.pid = target.pid = 1, WARDEN_WHY_PROTECTED_INIT);
        BROKEN(order.owner_uid++, WARDEN_WHY_OTHER_OWNER);
        BROKEN(target.real_uid = 0, WARDEN_WHY_OTHER_OWNER);
        BROKEN(order.owner_uid = target.real_uid = 0, WARDEN_WHY_UID_NOT_ALLOWED);
        BROKEN(order.owner_uid = target.real_uid = 999, WARDEN_WHY_UID_NOT_ALLOWED);
        BROKEN(order.owner_uid = target.real_uid = 59999, WARDEN_WHY_NONE);
        BROKEN(order.owner_uid = target.real_uid = 60000, WARDEN_WHY_UID_NOT_ALLOWED);
        /* Whom this user namespace does not know is one number, whatever root's file says of it (S01). */
        BROKEN((order.owner_uid = target.real_uid = 65534, settings.uid_ranges[0].last = 70000),
               WARDEN_WHY_UID_NOT_ALLOWED);
        /* Of its file the device alone is known: it may be any of that device. */
        BROKEN((target.program.dev = 9, target.program.inode = 0), WARDEN_WHY_NONE);
        BROKEN(target.program.inode = 0, WARDEN_WHY_PROTECTED_LESSOR);
        BROKEN(order.signal = SIGKILL, WARDEN_WHY_NO_GRACE);
        BROKEN(order.signal = SIGSEGV, WARDEN_WHY_SIGNAL);
        BROKEN(order.signal = 0, WARDEN_WHY_SIGNAL);
        BROKEN(order.verb = WARDEN_VERB_N, WARDEN_WHY_VERB);
        BROKEN(order.verb = WARDEN_VERB_NONE, WARDEN_WHY_VERB);
        for (int verb = WARDEN_LOCK; verb < WARDEN_VERB_N; verb++) { /* parking: every check but the grace */
                BROKEN(order.verb = (enum warden_verb) verb, WARDEN_WHY_NONE);
                BROKEN((order.verb = (enum warden_verb) verb, target.real_uid++), WARDEN_WHY_OTHER_OWNER);
        }
        /* On its way out its program is gone: not a reason against it, but every other one still is. */
        BROKEN((target.program_known = false, target.exiting = true), WARDEN_WHY_NONE);
        BROKEN((target.program_known = false, target.exiting = true, target.real_uid++), WARDEN_WHY_OTHER_OWNER);
        rows_end();
}

static void grace_is_of_one_identity_and_one_lease(void **state)
{
        const uint64_t long_ago = NOW_MS - SETTINGS_GRACE_DEFAULT_MS;

        (void) state;
        rows_failed = 0;
        BROKEN((order.signal = SIGKILL, grace_note(&grace, &target, 0, long_ago)), WARDEN_WHY_NONE);
        BROKEN((order.signal = SIGKILL, grace_note(&grace, &target, 0, long_ago + 1)), WARDEN_WHY_NO_GRACE);
        BROKEN((order.signal = SIGKILL, grace_note(&grace, &target, 0, NOW_MS + 1)), WARDEN_WHY_NO_GRACE);
        /* asking again does not begin the grace anew */
        BROKEN((order.signal = SIGKILL, grace_note(&grace, &target, 0, long_ago),
                grace_note(&grace, &target, 0, NOW_MS)),
               WARDEN_WHY_NONE);
        struct target other = target;
        other.pid++;
        BROKEN((order.signal = SIGKILL, grace_note(&grace, &other, CGROUP, long_ago)), WARDEN_WHY_NO_GRACE);
        other = target;
        other.start_ticks++;
        BROKEN((order.signal = SIGKILL, grace_note(&grace, &other, 0, long_ago)), WARDEN_WHY_NO_GRACE);
        other = target;
        other.pidfd_inode++;
        BROKEN((order.signal = SIGKILL, grace_note(&grace, &other, 0, long_ago)), WARDEN_WHY_NO_GRACE);
        /* a member of the same lease speaks for all of it, where all of it is ended */
        BROKEN((order.signal = SIGKILL, order.cgroup_id = CGROUP, grace_note(&grace, &other, CGROUP, long_ago)),
               WARDEN_WHY_NO_GRACE);
        BROKEN((order.verb = WARDEN_KILL_TREE, order.cgroup_id = CGROUP, grace_note(&grace, &other, CGROUP, long_ago)),
               WARDEN_WHY_NONE);
        BROKEN((order.verb = WARDEN_KILL_TREE, order.cgroup_id = CGROUP,
                grace_note(&grace, &other, CGROUP + 1, long_ago)),
               WARDEN_WHY_NO_GRACE);
        BROKEN((order.verb = WARDEN_KILL_TREE, order.cgroup_id = 0, grace_note(&grace, &other, 0, long_ago)),
               WARDEN_WHY_NO_GRACE);
        /* What was asked alone, or as part of another tree, was not asked for this one. */
        BROKEN((order.verb = WARDEN_KILL_TREE, order.cgroup_id = CGROUP, grace_note(&grace, &target, 0, long_ago)),
               WARDEN_WHY_NO_GRACE);
        BROKEN((order.verb = WARDEN_KILL_TREE, order.cgroup_id = CGROUP,
                grace_note(&grace, &target, CGROUP + 1, long_ago), grace_note(&grace, &target, CGROUP, NOW_MS)),
               WARDEN_WHY_NO_GRACE);
        BROKEN(order.verb = WARDEN_FREEZE, WARDEN_WHY_NONE);
        rows_end();
}

static void grace_of_an_owner_whose_process_was_stopped_begins_anew(void **state)
{
        const uint64_t long_ago = NOW_MS - SETTINGS_GRACE_DEFAULT_MS;
        struct target other = target;

        (void) state;
        (void) grace_note(&grace, &target, 0, long_ago);
        (void) grace_note(&grace, &target, CGROUP, long_ago);
        other.pid++;
        other.real_uid++;
        const struct grace_entry *others = grace_note(&grace, &other, 0, long_ago);
        assert_ptr_equal(grace_forget(&grace, OWNER, 0), &grace.entries[0]);
        assert_ptr_equal(grace_forget(&grace, OWNER, 0), &grace.entries[1]);
        assert_null(grace_forget(&grace, OWNER, 0));
        assert_int_equal(others->pid, other.pid);
        order.signal = SIGKILL;
        assert_int_equal(check(), WARDEN_WHY_NO_GRACE);
}

static void grace_of_a_process_that_is_parked_begins_anew_and_no_other(void **state)
{
        const uint64_t long_ago = NOW_MS - SETTINGS_GRACE_DEFAULT_MS;
        struct target other = target;

        (void) state;
        (void) grace_note(&grace, &target, 0, long_ago);
        other.pid++;
        (void) grace_note(&grace, &other, 0, long_ago);
        assert_ptr_equal(grace_forget(&grace, OWNER, other.pid), &grace.entries[1]);
        assert_null(grace_forget(&grace, OWNER, other.pid));
        order.signal = SIGKILL;
        assert_int_equal(check(), WARDEN_WHY_NONE);
}

static void full_grace_table_forgets_the_oldest(void **state)
{
        (void) state;
        for (uint32_t i = 0; i < GRACE_MAX; i++) {
                target.pid = 1000 + i;
                assert_non_null(grace_note(&grace, &target, 0, 10 + i));
        }
        target.pid = 5;
        const struct grace_entry *last = grace_note(&grace, &target, 0, 9999);
        assert_ptr_equal(last, &grace.entries[0]);
        assert_int_equal(last->pid, 5);
        assert_int_equal(grace.entries[1].pid, 1001);
}

static void rate_is_a_bucket_that_fills(void **state)
{
        struct rate rate = { 0 };
        unsigned n = 0;

        (void) state;
        for (int i = 0; i < 1000; i++)
                n += rate_take(&rate, 20, 64, 5000);
        assert_int_equal(n, 64);
        assert_false(rate_take(&rate, 20, 64, 5049));
        assert_true(rate_take(&rate, 20, 64, 5050));
        assert_false(rate_take(&rate, 20, 64, 5050));
        n = 0;
        for (int i = 0; i < 1000; i++)
                n += rate_take(&rate, 20, 64, UINT64_MAX);
        assert_int_equal(n, 64);                   /* full again, not fuller */
        assert_false(rate_take(&rate, 20, 64, 3)); /* a clock that goes back gives nothing */
        struct rate one = { 0 };
        assert_true(rate_take(&one, 1, 1, 0));
        assert_false(rate_take(&one, 1, 1, 999));
        assert_true(rate_take(&one, 1, 1, 1999));
}

/* xorshift64: the same on every machine */
static uint64_t roll(uint64_t *seed)
{
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        return *seed;
}

static bool one_in(uint64_t *seed, uint64_t n)
{
        return roll(seed) % n == 0;
}

static void F49_protected_process_is_never_chosen_in_100000_random_tables(void **state)
{
        uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);
        unsigned n_allowed = 0, n_protected = 0;

        (void) state;
        for (int i = 0; i < 100000; i++) {
                (void) right(NULL);
                order.verb = (enum warden_verb)(roll(&seed) % WARDEN_VERB_N);
                order.signal = (uint32_t) (roll(&seed) % 20);
                order.pid = target.pid = (uint32_t) (1 + roll(&seed) % 8);
                kin[0] = (uint32_t) (2 + roll(&seed) % 3);
                target.program.inode = (ino_t) (1 + roll(&seed) % 12);
                protect.n = (size_t) (1 + roll(&seed) % 8);
                protect.n_own = one_in(&seed, 2) ? 0 : 1;
                for (size_t k = 0; k < protect.n; k++)
                        protect.programs[k] = (struct program_id){ 8, (ino_t) (1 + roll(&seed) % 12) };
                target.kernel_thread = one_in(&seed, 8);
                target.program_known = !one_in(&seed, 8);
                target.exiting = one_in(&seed, 16);
                order.owner_uid = one_in(&seed, 4) ? 0 : OWNER;
                target.real_uid = one_in(&seed, 4) ? 0 : OWNER;
                if (one_in(&seed, 2))
                        (void) grace_note(&grace, &target, 0, roll(&seed) % NOW_MS);

                bool is_protected =
                        order.pid == 1 || order.pid == kin[0] || target.kernel_thread || target.real_uid == 0;
                for (size_t k = 0; k < protect.n && target.program_known; k++)
                        is_protected |= protect.programs[k].inode == target.program.inode;
                bool allowed = check() == WARDEN_WHY_NONE;
                if (is_protected && allowed && order.verb != WARDEN_LOOK) /* a look does nothing to anybody */
                        fail_msg("table %d: a protected process was chosen", i);
                n_allowed += allowed;
                n_protected += is_protected;
        }
        kin[0] = 100;
        assert_true(n_allowed > 1000 && n_protected > 1000); /* the tables hold both */
}

static void look_asks_for_the_owner_and_the_identity_and_no_more(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                bool protected, other_owner, recycled, init;
                enum warden_why why;
        } rows[] = {
                { "any process", false, false, false, false, WARDEN_WHY_NONE },
                { "one that is protected", true, false, false, false, WARDEN_WHY_NONE },
                { "somebody else's", false, true, false, false, WARDEN_WHY_OTHER_OWNER },
                { "another one by now", false, false, true, false, WARDEN_WHY_RECYCLED },
                { "pid 1", false, false, false, true, WARDEN_WHY_PROTECTED_INIT },
        };
        rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                (void) right(NULL);
                settings.n_uid_ranges = 0;
                order.verb = WARDEN_LOOK;
                order.signal = 0;
                target.program.inode = rows[i].protected ? 2 : 1000;
                target.real_uid = rows[i].other_owner ? OWNER + 1 : OWNER;
                target.start_ticks = rows[i].recycled ? START + 1 : START;
                order.pid = target.pid = rows[i].init ? 1 : PID;
                row_check(rows[i].name, check() == rows[i].why);
        }
        rows_end();
}

static void F57_name_of_a_process_shifts_no_field(void **state)
{
        static const char *const names[] = { "sh",       "a) R 1 1", ")))))))))))))))", "a\nb",  "",     "x) S 99 (",
                                             "\x80\xff", " ",        "a b c d e f g h", ") Z 0", "(((((" };
        struct target t;
        char text[400];

        (void) state;
        rows_failed = 0;
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                int n = snprintf(text, sizeof(text),
                                 "4711 (%s) S 17 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 8888 1 2 3\n", names[i]);
                row_check(names[i], target_parse_stat(text, (size_t) n, &t));
                row_check(names[i], t.ppid == 17 && t.start_ticks == 8888 && t.state == 'S');
                row_check(names[i], !t.kernel_thread && !t.exiting);
                for (int cut = 0; cut < 40; cut++)
                        (void) target_parse_stat(text, (size_t) cut, &t);
        }
        const char *thread = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0";
        row_check("kernel thread", target_parse_stat(thread, strlen(thread), &t) && t.kernel_thread);
        const char *dying = "9 (sh) R 1 9 9 0 -1 4228100 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0";
        row_check("on its way out", target_parse_stat(dying, strlen(dying), &t) && t.exiting);
        static const char *const bad[] = { "",
                                           "1",
                                           "1 (a",
                                           "1 (a)",
                                           "1 (a) S",
                                           "1 (a) S x 1 1",
                                           "1 (a) S 1 1 1",
                                           "1 (a) S 1 1 1 0 -1 99999999999999999999999 0",
                                           "1 (a) S 99999999999 1 1 0 -1 0 0" };
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                row_check(bad[i], !target_parse_stat(bad[i], strlen(bad[i]), &t));
        rows_end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(order_on_ones_own_process_is_allowed, right),
                cmocka_unit_test_setup(one_thing_wrong_is_refused_by_its_name, right),
                cmocka_unit_test_setup(grace_is_of_one_identity_and_one_lease, right),
                cmocka_unit_test_setup(grace_of_an_owner_whose_process_was_stopped_begins_anew, right),
                cmocka_unit_test_setup(grace_of_a_process_that_is_parked_begins_anew_and_no_other, right),
                cmocka_unit_test_setup(full_grace_table_forgets_the_oldest, right),
                cmocka_unit_test_setup(rate_is_a_bucket_that_fills, right),
                cmocka_unit_test_setup(F49_protected_process_is_never_chosen_in_100000_random_tables, right),
                cmocka_unit_test(look_asks_for_the_owner_and_the_identity_and_no_more),
                cmocka_unit_test(F57_name_of_a_process_shifts_no_field),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
