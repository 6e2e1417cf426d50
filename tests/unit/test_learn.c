/* SPDX-License-Identifier: Apache-2.0 */
/* What earlier runs of a program came to sizes the next lease of it for which nobody named a size. */
#include <stdio.h>
#include <string.h>
#include "arbiter/learn.h"
#include "scene.h"

#define COMPUTE (ROW_USED_KNOWN | ROW_COMPUTE)

/* Runs under a lease of @bytes, is seen to use @peak_bytes, and ends by itself. */
static void run_of(struct scene *s, uint32_t uid, const char *consumer, uint64_t peak_bytes)
{
        uint64_t id = scene_request(s, (struct ask){ .uid = uid, .bytes = GiB(20), .consumer = consumer });

        assert_runs(s, id);
        scene_uses(s, id, peak_bytes / 2);
        scene_uses(s, id, peak_bytes);
        scene_process_ends(s, scene_owner(s, id));
        scene_owner_ended(s, id);
        assert_gone(s, id);
}

static uint64_t asks_learned(struct scene *s, uint32_t uid, const char *consumer)
{
        return scene_request(s, (struct ask){ .uid = uid, .consumer = consumer, .learned = true });
}

static void assert_sized(struct scene *s, uint64_t id, enum sized sized, uint32_t by, uint64_t bytes)
{
        const struct lease *lease = scene_lease(s, id);

        assert_non_null(lease);
        assert_string_equal(sized_name((enum sized) lease->sized), sized_name(sized));
        assert_int_equal(lease->sized_by, by);
        assert_bytes(lease->bytes, bytes);
}

static void size_is_the_p95_of_what_earlier_runs_came_to(void **state)
{
        (void) state;
        int rows_failed = 0;
        static const struct {
                const char *name;
                uint32_t n_runs, by;
                uint64_t gib[25], expected_gib;
        } rows[] = {
                { "one run", 1, 1, { 3 }, 3 },
                { "two: the larger", 2, 2, { 5, 3 }, 5 },
                { "19: the largest", 19, 19, { 1, 1, 1, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, 9 },
                { "20: the second largest", 20, 20, { 1, 1, 1, 9, 1, 1, 1, 1, 1, 1, 7, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, 7 },
                { "the last 20 only", 22, 20, { 9, 8, 4, 5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, 4 },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                for (uint32_t k = 0; k < rows[i].n_runs; k++)
                        run_of(&s, ALICE, "train.py", GiB(rows[i].gib[k]));
                uint64_t id = asks_learned(&s, ALICE, "train.py");
                row_check(rows[i].name, id != 0 && scene_lease(&s, id)->bytes == GiB(rows[i].expected_gib));
                assert_sized(&s, id, SIZED_LEARNED, rows[i].by, GiB(rows[i].expected_gib));
                scene_end(&s);
        }
        rows_end();
}

/* A run under a lease of @bytes that names it, whose wrapper says how it ended. */
static void run_that_ended(struct scene *s, uint64_t bytes, uint64_t peak_bytes, bool failed)
{
        uint64_t id = scene_request(s, (struct ask){ .uid = ALICE, .bytes = bytes, .consumer = "train.py" });

        assert_runs(s, id);
        scene_uses(s, id, peak_bytes);
        scene_process_ends(s, scene_owner(s, id));
        struct input input = { .kind = INPUT_RELEASE,
                               .call = { .lease_id = id, .uid = ALICE, .end_reason = END_RELEASED, .failed = failed } };
        scene_step(s, &input);
        assert_gone(s, id);
}

static uint64_t asks_for(struct scene *s, uint64_t bytes)
{
        return scene_request(s, (struct ask){ .uid = ALICE, .bytes = bytes, .consumer = "train.py" });
}

static void F39_size_that_was_too_small_is_what_earlier_runs_came_to(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        run_that_ended(&s, MiB(14930), MiB(16200), false);
        uint64_t id = asks_for(&s, MiB(14930));
        assert_sized(&s, id, SIZED_RAISED, 1, MiB(16200));
        scene_release(&s, id);
        run_that_ended(&s, MiB(15000), MiB(15256), false); /* within what a lease may use beyond its reservation */
        id = asks_for(&s, MiB(15000));
        assert_sized(&s, id, SIZED_ASKED, 0, MiB(15000));
        scene_release(&s, id);
        run_of(&s, BOB, "train.py", GiB(2));
        id = scene_request(&s, (struct ask){ .uid = BOB, .bytes = GiB(4), .consumer = "train.py" });
        assert_sized(&s, id, SIZED_ASKED, 0, GiB(4)); /* nobody learns from what somebody else's program does */
        scene_end(&s);
}

/* The same program with much data and with little: each run used what it had named. */
static void F39_run_with_less_data_is_not_raised_to_what_the_large_one_used(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        run_that_ended(&s, GiB(20), GiB(20), false);
        uint64_t id = asks_for(&s, GiB(2));
        assert_sized(&s, id, SIZED_ASKED, 0, GiB(2));
        scene_release(&s, id);
        for (int i = 0; i < 3; i++)
                run_that_ended(&s, GiB(2), GiB(3), false);
        id = asks_for(&s, GiB(2));
        assert_sized(&s, id, SIZED_RAISED, 3, GiB(3));
        scene_release(&s, id);
        run_that_ended(&s, GiB(2), GiB(3), false); /* it is given more by now, and is still one that named 2 GiB */
        id = asks_for(&s, GiB(2));
        assert_sized(&s, id, SIZED_RAISED, 4, GiB(3));
        scene_end(&s);
}

static void size_is_never_raised_beyond_what_can_be_given(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        run_that_ended(&s, GiB(10), GiB(20), false);
        const char *small = scene_uuid(&s, scene_device(&s, GiB(16)));
        struct ask ask = { .uid = ALICE, .bytes = GiB(10), .consumer = "train.py", .uuid = small };
        uint64_t id = scene_request(&s, ask);
        assert_sized(&s, id, SIZED_RAISED, 1, GiB(16));
        scene_release(&s, id);
        ask.bytes = GiB(18);
        assert_int_equal(scene_request(&s, ask), 0); /* what is too much is refused as it was named */
        scene_end(&s);
}

static void sizes_are_not_corrected_where_that_is_switched_off(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        run_that_ended(&s, GiB(10), GiB(20), false);
        s.world->config.correct_sizes = false;
        uint64_t id = asks_for(&s, GiB(10));
        assert_sized(&s, id, SIZED_ASKED, 0, GiB(10));
        scene_end(&s);
}

static void F39_run_that_ended_badly_lowers_nothing_and_may_raise(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        run_that_ended(&s, GiB(20), GiB(1), true); /* nothing is known yet, and nothing is by that */
        uint64_t id = asks_learned(&s, ALICE, "train.py");
        assert_sized(&s, id, SIZED_WHOLE, 0, GiB(24));
        scene_release(&s, id);
        run_that_ended(&s, GiB(20), GiB(8), false);
        for (int i = 0; i < 25; i++)
                run_that_ended(&s, GiB(20), GiB(1), true);
        id = asks_learned(&s, ALICE, "train.py");
        assert_sized(&s, id, SIZED_LEARNED, 1, GiB(8));
        scene_release(&s, id);
        run_that_ended(&s, GiB(20), GiB(12), true);
        id = asks_learned(&s, ALICE, "train.py");
        assert_sized(&s, id, SIZED_LEARNED, 2, GiB(12));
        scene_end(&s);
}

static void without_a_run_that_is_known_it_is_the_whole_device(void **state)
{
        (void) state;
        int rows_failed = 0;
        struct scene s;

        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        run_of(&s, ALICE, "train.py", GiB(3));
        static const struct {
                const char *name, *consumer;
                uint32_t uid;
        } rows[] = {
                { "another program", "chat.py", ALICE },
                { "somebody else's run of it", "train.py", BOB },
                { "a program without a name", NULL, ALICE },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                uint64_t id = asks_learned(&s, rows[i].uid, rows[i].consumer);
                row_check(rows[i].name, id != 0);
                assert_sized(&s, id, SIZED_WHOLE, 0, GiB(24));
                scene_release(&s, id);
        }
        uint64_t id = scene_request(&s, (struct ask){ .uid = ALICE, .consumer = "train.py", .bytes = GiB(7) });
        assert_sized(&s, id, SIZED_ASKED, 0, GiB(7));
        scene_end(&s);
        rows_end();
}

static void what_is_not_known_for_sure_teaches_nothing(void **state)
{
        (void) state;
        int rows_failed = 0;
        static const struct {
                const char *name;
                bool managed, no_figure, no_list, uncollected, idle, teaches;
        } rows[] = {
                { "nothing of that", .teaches = true },
                { "managed memory", .managed = true },
                { "a process without a figure", .no_figure = true },
                { "a driver without figures", .no_list = true },
                { "a grant that nobody collected", .uncollected = true },
                { "a run that never took memory", .idle = true },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                s.cards[card].rows_unknown = rows[i].no_list;
                uint64_t id = scene_request(&s, (struct ask){ .consumer = "train.py",
                                                              .bytes = GiB(8),
                                                              .managed = rows[i].managed,
                                                              .uncollected = rows[i].uncollected });
                uint32_t pid = scene_process(&s, scene_owner(&s, id), 0, 0), child = 0;
                if (rows[i].no_figure) { /* beside one that has */
                        child = scene_process(&s, 0, pid, 0);
                        scene_process_uses(&s, child, card, GiB(1), ROW_COMPUTE);
                }
                if (!rows[i].idle)
                        scene_process_uses(&s, pid, card, GiB(3), COMPUTE);
                scene_process_ends(&s, pid);
                scene_owner_ended(&s, id);
                if (child != 0)
                        scene_process_ends(&s, child);
                scene_tick_to_s(&s, 120);
                row_check(rows[i].name, scene_lease(&s, id) == NULL && s.world->n_habits == (rows[i].teaches ? 1 : 0));
                scene_end(&s);
        }
        rows_end();
}

static void look_that_is_incomplete_leaves_what_was_known_before(void **state)
{
        (void) state;
        struct scene s;

        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t id = scene_request(&s, (struct ask){ .consumer = "train.py", .bytes = GiB(8) });
        scene_uses(&s, id, GiB(3));
        assert_bytes(scene_lease(&s, id)->peak_bytes, GiB(3));
        scene_process_uses(&s, scene_owner(&s, id), card, GiB(5), ROW_COMPUTE);
        assert_bytes(scene_lease(&s, id)->peak_bytes, GiB(3));
        scene_process_ends(&s, scene_owner(&s, id));
        scene_owner_ended(&s, id);
        assert_sized(&s, asks_learned(&s, 0, "train.py"), SIZED_LEARNED, 1, GiB(3));
        scene_end(&s);
}

/* With managed memory today, what the driver showed of it without says nothing. */
static void request_for_managed_memory_is_not_sized_by_runs_without(void **state)
{
        (void) state;
        struct scene s;

        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        run_of(&s, ALICE, "train.py", GiB(3));
        uint64_t id = scene_request(
                &s, (struct ask){ .uid = ALICE, .consumer = "train.py", .learned = true, .managed = true });
        assert_sized(&s, id, SIZED_WHOLE, 0, GiB(24));
        scene_end(&s);
}

static void what_was_let_go_is_no_run_that_is_over(void **state)
{
        (void) state;
        struct scene s;

        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t pid = scene_process_of(&s, ALICE, 0, 0, 0);
        scene_process_uses(&s, pid, card, GiB(3), COMPUTE);
        uint64_t id = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid, .consumer = "train.py" });
        scene_look(&s);
        assert_bytes(scene_lease(&s, id)->peak_bytes, GiB(3));
        scene_release(&s, id);
        assert_int_equal(s.world->n_habits, 0);

        id = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid, .consumer = "train.py" });
        scene_look(&s);
        scene_process_ends(&s, pid);
        scene_owner_ended(&s, id);
        assert_sized(&s, asks_learned(&s, ALICE, "train.py"), SIZED_LEARNED, 1, GiB(3));
        scene_end(&s);
}

/* The next run may follow at once, while the memory of the last one is still on its way out. */
static void run_that_ended_counts_before_its_memory_is_gone_and_only_once(void **state)
{
        (void) state;
        struct scene s;

        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t id = scene_request(&s, (struct ask){ .consumer = "train.py", .bytes = GiB(8) });
        scene_uses(&s, id, GiB(3));
        scene_release(&s, id);
        assert_state(&s, id, LEASE_DRAINING);
        uint64_t next = asks_learned(&s, 0, "train.py");
        assert_sized(&s, next, SIZED_LEARNED, 1, GiB(3));
        scene_process_ends(&s, 1); /* nobody's */
        scene_restart(&s, (struct restart_facts){ .rebooted = true });
        assert_gone(&s, id);
        assert_sized(&s, asks_learned(&s, 0, "train.py"), SIZED_LEARNED, 1, GiB(3));
        scene_end(&s);
}

static void workers_that_outlive_their_owner_are_of_the_run(void **state)
{
        (void) state;
        struct scene s;

        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t id = scene_request(&s, (struct ask){ .consumer = "train.py", .bytes = GiB(8) });
        uint32_t worker = scene_process(&s, 0, scene_owner(&s, id), 0);
        scene_process_uses(&s, worker, card, GiB(2), COMPUTE);
        scene_owner_ended(&s, id);
        assert_state(&s, id, LEASE_ORPHANED);
        scene_process_uses(&s, worker, card, GiB(5), COMPUTE);
        scene_process_ends(&s, worker);
        scene_tick_to_s(&s, 30);
        assert_gone(&s, id);
        assert_sized(&s, asks_learned(&s, 0, "train.py"), SIZED_LEARNED, 1, GiB(5));
        scene_end(&s);
}

static void learned_size_is_never_more_than_can_be_given(void **state)
{
        (void) state;
        struct scene s;

        scene_begin(&s);
        uint32_t big = scene_device(&s, GiB(24)), small = scene_device(&s, GiB(8));
        run_of(&s, ALICE, "train.py", GiB(20));

        /* Only on the small one: all of that. */
        uint64_t id = scene_request(
                &s,
                (struct ask){ .uid = ALICE, .consumer = "train.py", .learned = true, .uuid = scene_uuid(&s, small) });
        assert_sized(&s, id, SIZED_LEARNED, 1, GiB(8));
        scene_release(&s, id);

        /* Anywhere: where it fits, and it waits for that rather than take what is too small for it. */
        uint64_t holds = scene_request(&s, (struct ask){ .bytes = GiB(10), .uuid = scene_uuid(&s, big) });
        id = asks_learned(&s, ALICE, "train.py");
        assert_waits(&s, id);
        assert_sized(&s, id, SIZED_LEARNED, 1, GiB(20));

        /* While it waits less can be given there: nobody waits for what no device ever gives. */
        scene_pin(&s, holds, 0);
        scene_tick_to_s(&s, 5);
        scene_look(&s);
        assert_runs(&s, id);
        assert_sized(&s, id, SIZED_LEARNED, 1, GiB(14));
        scene_end(&s);
}

/* ---- the table ---- */

static struct lease run_named(uint32_t uid, uint32_t i, uint64_t peak_bytes)
{
        struct lease lease = { .uid = uid, .active_ms = 1, .peak_bytes = peak_bytes };

        (void) snprintf(lease.consumer, sizeof(lease.consumer), "program-%u", i);
        return lease;
}

static void teach(struct world *w, uint32_t uid, uint32_t i)
{
        struct lease lease = run_named(uid, i, GiB(1));

        w->now_ms++;
        learn_end(w, &lease, END_OWNER_EXITED);
}

static bool is_known(struct world *w, uint32_t uid, uint32_t i)
{
        struct lease lease = run_named(uid, i, 0);

        return world_habit_find(w, uid, lease.consumer) != NULL;
}

static void lease_that_was_never_taken_into_use_is_no_run(void **state)
{
        (void) state;
        struct scene s;
        struct lease lease = run_named(ALICE, 0, GiB(1));

        scene_begin(&s);
        lease.active_ms = 0;
        learn_end(s.world, &lease, END_NOT_COLLECTED);
        assert_int_equal(s.world->n_habits, 0);
        scene_end(&s);
}

static void full_table_forgets_who_was_not_heard_of_for_the_longest(void **state)
{
        (void) state;
        struct scene s;

        scene_begin(&s);
        for (uint32_t i = 0; i < HABITS_MAX; i++)
                teach(s.world, 2000 + i, i);
        teach(s.world, 2000, 0); /* the oldest is heard of again */
        assert_int_equal(s.world->n_habits, HABITS_MAX);
        teach(s.world, ALICE, 7);
        assert_int_equal(s.world->n_habits, HABITS_MAX);
        assert_true(is_known(s.world, ALICE, 7) && is_known(s.world, 2000, 0) && !is_known(s.world, 2001, 1));
        assert_null(world_check(s.world));
        scene_end(&s);
}

static void user_with_ever_new_names_makes_only_his_own_forgotten(void **state)
{
        (void) state;
        struct scene s;

        scene_begin(&s);
        teach(s.world, ALICE, 0);
        for (uint32_t i = 0; i < 3 * HABITS_MAX; i++)
                teach(s.world, BOB, i);
        assert_true(is_known(s.world, ALICE, 0));
        assert_true(is_known(s.world, BOB, 3 * HABITS_MAX - 1) && is_known(s.world, BOB, 3 * HABITS_MAX - 256));
        assert_false(is_known(s.world, BOB, 3 * HABITS_MAX - 257));
        assert_int_equal(s.world->n_habits, 1 + HABITS_PER_USER_MAX);
        assert_null(world_check(s.world));
        scene_end(&s);
}

static void table_that_cannot_be_is_found(void **state)
{
        (void) state;
        struct scene s;

        scene_begin(&s);
        teach(s.world, ALICE, 0);
        teach(s.world, ALICE, 1);
        assert_null(world_check(s.world));
        struct habit *h = &s.world->habits[0], kept = *h;
        h->peak_bytes[1] = 1; /* of a run that was none */
        assert_non_null(world_check(s.world));
        *h = kept;
        h->peak_bytes[0] = 0;
        assert_non_null(world_check(s.world));
        *h = kept;
        h->last_ms = s.world->now_ms + 1;
        assert_non_null(world_check(s.world));
        *h = kept;
        memcpy(h->consumer, s.world->habits[1].consumer, sizeof(h->consumer));
        assert_non_null(world_check(s.world));
        *h = kept;
        memset(h->consumer, 0, sizeof(h->consumer));
        assert_non_null(world_check(s.world));
        *h = kept;
        assert_null(world_check(s.world));
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(size_is_the_p95_of_what_earlier_runs_came_to),
                cmocka_unit_test(F39_size_that_was_too_small_is_what_earlier_runs_came_to),
                cmocka_unit_test(F39_run_with_less_data_is_not_raised_to_what_the_large_one_used),
                cmocka_unit_test(size_is_never_raised_beyond_what_can_be_given),
                cmocka_unit_test(sizes_are_not_corrected_where_that_is_switched_off),
                cmocka_unit_test(F39_run_that_ended_badly_lowers_nothing_and_may_raise),
                cmocka_unit_test(without_a_run_that_is_known_it_is_the_whole_device),
                cmocka_unit_test(what_is_not_known_for_sure_teaches_nothing),
                cmocka_unit_test(look_that_is_incomplete_leaves_what_was_known_before),
                cmocka_unit_test(request_for_managed_memory_is_not_sized_by_runs_without),
                cmocka_unit_test(what_was_let_go_is_no_run_that_is_over),
                cmocka_unit_test(run_that_ended_counts_before_its_memory_is_gone_and_only_once),
                cmocka_unit_test(workers_that_outlive_their_owner_are_of_the_run),
                cmocka_unit_test(learned_size_is_never_more_than_can_be_given),
                cmocka_unit_test(lease_that_was_never_taken_into_use_is_no_run),
                cmocka_unit_test(full_table_forgets_who_was_not_heard_of_for_the_longest),
                cmocka_unit_test(user_with_ever_new_names_makes_only_his_own_forgotten),
                cmocka_unit_test(table_that_cannot_be_is_found),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
