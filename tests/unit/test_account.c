/* SPDX-License-Identifier: Apache-2.0 */
/* Who had what for how long, as a journal says it: by hand, against what fairness counts, and against a sum of another kind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "desk.h"
#include "play_journal.h"
#include "scene_journal.h"
#include "scene_park.h"
#include "store/account.h"
#include "store/walk.h"

static void real_step(void *ctx, struct world *world, const struct input *input, struct actions *out)
{
        (void) ctx;
        arbiter_step(world, input, out);
}

static struct account read_account(struct journal *j, struct account_options options)
{
        struct account account;
        struct error err = { 0 };

        if (account_read(j, &options, real_step, NULL, &account, &err) < 0)
                fail_msg("%s", err.msg);
        journal_close(j);
        return account;
}

static struct account_row row_of(const struct account *account, uint32_t uid, const char *consumer)
{
        for (size_t i = 0; i < account->n_rows; i++)
                if (account->rows[i].uid == uid && strcmp(account->rows[i].consumer, consumer) == 0)
                        return account->rows[i];
        return (struct account_row){ 0 };
}

static void assert_row(const struct account_row *row, enum account_what what, uint64_t seconds, uint64_t bytes)
{
        if (row->ms[what] != SECONDS(seconds) || account_mib_s(row->byte_ms[what]) != (bytes >> 20) * seconds)
                fail_msg("%s: %llu ms, %llu MiB s instead of %llu s of %llu MiB", account_what_name(what),
                         (unsigned long long) row->ms[what], (unsigned long long) account_mib_s(row->byte_ms[what]),
                         (unsigned long long) seconds, (unsigned long long) (bytes >> 20));
}

/*
 * Second   0  ALICE's train gets 16 GiB
 *        100  BOB's chat wants 20 GiB and waits
 *        400  train says it is idle; 500 at work; 600 it ends, and chat starts
 *        700  chat ends
 */
static void begin_day(struct scene *s)
{
        scene_begin(s);
        (void) scene_device(s, GiB(24));
        scene_record(s);
        uint64_t train = scene_request(s, (struct ask){ .uid = ALICE, .bytes = GiB(16), .consumer = "train" });
        scene_uses(s, train, GiB(16));
        scene_tick_to_s(s, 100);
        uint64_t chat = scene_request(s, (struct ask){ .uid = BOB, .bytes = GiB(20), .consumer = "chat" });
        assert_waits(s, chat);
        scene_tick_to_s(s, 400);
        scene_says_as(s, train, PARK_CALL_IDLE, 0, ALICE);
        scene_segment(s);
        scene_tick_to_s(s, 500);
        scene_says_as(s, train, PARK_CALL_BUSY, 0, ALICE);
        scene_tick_to_s(s, 600);
        scene_process_ends(s, scene_owner(s, train));
        scene_owner_ended(s, train);
        scene_tick_to_s(s, 601);
        assert_runs(s, chat);
        scene_tick_to_s(s, 700);
        scene_release(s, chat);
}

static void what_each_had_is_summed_over_segments(void **state)
{
        struct scene s;

        (void) state;
        begin_day(&s);
        struct account account = read_account(scene_read_journal(&s), (struct account_options){ 0 });
        struct account_row train = row_of(&account, ALICE, "train"), chat = row_of(&account, BOB, "chat");
        assert_row(&train, ACCOUNT_HELD, 600, GiB(16));
        assert_row(&train, ACCOUNT_IDLE, 100, GiB(16));
        assert_row(&train, ACCOUNT_WAITED, 0, 0);
        assert_int_equal(train.n_leases, 1);
        uint64_t waited_s = chat.ms[ACCOUNT_WAITED] / 1000;
        assert_in_range(waited_s, 500, 501);
        assert_row(&chat, ACCOUNT_WAITED, waited_s, GiB(20));
        assert_row(&chat, ACCOUNT_HELD, 600 - waited_s, GiB(20));
        assert_int_equal(account.from_wall_ms, SCENE_WALL_MS);
        assert_int_equal(account.until_wall_ms, SCENE_WALL_MS + SECONDS(700));
        assert_true(account.same_core && account.n_damages == 0);
        account_fini(&account);
        scene_record_end(&s);
        scene_end(&s);
}

/* Between two looks: from the first that saw it rest to the first that saw it work. Unknown is at work. */
static void idleness_that_was_only_seen_is_idleness(void **state)
{
        static const struct {
                const char *name;
                uint32_t seen;
                uint64_t idle_s;
        } rows[] = {
                { "rested", ROW_RESTED, 100 },
                { "worked", ROW_WORKED, 0 },
                { "nobody knows", 0, 0 },
        };
        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                scene_record(&s);
                uint64_t id = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(16), .consumer = "train" });
                scene_uses(&s, id, GiB(16));
                struct scene_row *row = scene_row(&s, scene_owner(&s, id), card);
                scene_tick_to_s(&s, 200);
                row->flags = ROW_USED_KNOWN | ROW_COMPUTE | rows[i].seen;
                scene_look(&s);
                scene_tick_to_s(&s, 300);
                row->flags = ROW_USED_KNOWN | ROW_COMPUTE | ROW_WORKED;
                scene_look(&s);
                scene_tick_to_s(&s, 400);
                scene_release(&s, id);
                struct account account = read_account(scene_read_journal(&s), (struct account_options){ 0 });
                struct account_row train = row_of(&account, ALICE, "train");
                print_message("# %s\n", rows[i].name);
                assert_row(&train, ACCOUNT_HELD, 400, GiB(16));
                assert_row(&train, ACCOUNT_IDLE, rows[i].idle_s, GiB(16));
                account_fini(&account);
                scene_record_end(&s);
                scene_end(&s);
        }
}

static void lease_that_ends_in_the_moment_in_which_it_begins_is_counted(void **state)
{
        struct scene s;

        (void) state;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_record(&s);
        uint64_t id = scene_request(&s, (struct ask){ .uid = BOB, .bytes = GiB(4), .consumer = "blink" });
        assert_runs(&s, id);
        scene_release(&s, id);
        struct account account = read_account(scene_read_journal(&s), (struct account_options){ 0 });
        struct account_row blink = row_of(&account, BOB, "blink");
        assert_int_equal(blink.n_leases, 1);
        assert_int_equal(blink.ms[ACCOUNT_HELD], 0);
        account_fini(&account);
        scene_record_end(&s);
        scene_end(&s);
}

static void since_counts_from_that_moment_on_also_within_what_was_held_then(void **state)
{
        struct scene s;

        (void) state;
        begin_day(&s);
        struct account account = read_account(
                scene_read_journal(&s), (struct account_options){ .since_wall_ms = SCENE_WALL_MS + SECONDS(450) });
        struct account_row train = row_of(&account, ALICE, "train");
        assert_row(&train, ACCOUNT_HELD, 150, GiB(16));
        assert_row(&train, ACCOUNT_IDLE, 50, GiB(16));
        assert_int_equal(account.from_wall_ms, SCENE_WALL_MS + SECONDS(450));
        account_fini(&account);
        account = read_account(scene_read_journal(&s),
                               (struct account_options){ .since_wall_ms = SCENE_WALL_MS + HOURS(9) });
        assert_int_equal(account.n_rows, 0); /* nothing happened since */
        account_fini(&account);
        scene_record_end(&s);
        scene_end(&s);
}

static void lessord_that_runs_has_what_goes_on_counted_until_now(void **state)
{
        struct scene s;

        (void) state;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_record(&s);
        (void) scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(16), .consumer = "train" });
        struct account account = read_account(scene_read_journal(&s), (struct account_options){ 0 });
        struct account_row train = row_of(&account, ALICE, "train");
        assert_row(&train, ACCOUNT_HELD, 0, 0); /* its last record is its first */
        account_fini(&account);
        account = read_account(scene_read_journal(&s),
                               (struct account_options){ .until_now_ms = SCENE_START_MS + SECONDS(500),
                                                         .until_wall_ms = SCENE_WALL_MS + SECONDS(500) });
        train = row_of(&account, ALICE, "train");
        assert_row(&train, ACCOUNT_HELD, 500, GiB(16));
        account_fini(&account);
        scene_record_end(&s);
        scene_end(&s);
}

static void parked_time_is_no_time_that_it_held_and_a_booking_waits_from_its_hour_on(void **state)
{
        struct scene s;

        (void) state;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_hands(&s);
        scene_record(&s);
        uint64_t f = scene_request(&s, (struct ask){ .uid = ALICE,
                                                     .bytes = GiB(20),
                                                     .priority = 4,
                                                     .consumer = "filler",
                                                     .named = WAY_OUT_BIT(WAY_OUT_CHECKPOINT) });
        scene_uses(&s, f, GiB(20));
        (void) scene_request(
                &s, (struct ask){ .uid = CAROL, .bytes = GiB(8), .consumer = "booked", .start_s = 1000, .slot_s = 60 });
        scene_tick_to_s(&s, 50);
        uint64_t p2 =
                scene_request(&s, (struct ask){ .uid = BOB, .bytes = GiB(14), .priority = 2, .consumer = "chat" });
        assert_state(&s, f, LEASE_PARKED);
        scene_tick_to_s(&s, 350);
        scene_release(&s, p2);
        scene_tick_to_s(&s, 450);
        assert_state(&s, f, LEASE_ACTIVE);
        scene_release(&s, f);
        struct account account = read_account(scene_read_journal(&s), (struct account_options){ 0 });
        struct account_row filler = row_of(&account, ALICE, "filler"), booked = row_of(&account, CAROL, "booked");
        assert_row(&filler, ACCOUNT_PARKED, 300, GiB(20));
        assert_row(&filler, ACCOUNT_HELD, 150, GiB(20));
        assert_row(&booked, ACCOUNT_WAITED, 0, 0);
        account_fini(&account);
        scene_record_end(&s);
        scene_end(&s);
}

/* What fairness counts by is kept by the core itself, lease by lease as they change: the same sum by another way. */
struct fairness {
        struct world *world;
        struct actions out;
        unsigned __int128 held_byte_ms;
        bool begun;
};

static void fairness_pass(struct fairness *f, uint64_t now_ms)
{
        for (uint32_t i = 0; i < f->world->n_users; i++)
                if (f->world->users[i].in_use && now_ms > f->world->now_ms)
                        f->held_byte_ms +=
                                (unsigned __int128) f->world->users[i].held_bytes * (now_ms - f->world->now_ms);
}

static int fairness_segment(void *ctx, const struct walk_segment *segment, struct error *err)
{
        struct fairness *f = ctx;

        (void) err;
        if (f->begun)
                fairness_pass(f, segment->world->now_ms);
        f->begun = true;
        walk_world_zero(f->world);
        world_copy(f->world, segment->world);
        return 0;
}

static int fairness_record(void *ctx, const struct walk_record *record, struct error *err)
{
        struct fairness *f = ctx;

        (void) err;
        if (record->input->kind != INPUT_RESTART || !record->input->restart.rebooted)
                fairness_pass(f, record->input->now_ms);
        arbiter_step(f->world, record->input, &f->out);
        return 0;
}

static void no_damage(void *ctx, const char *words)
{
        (void) ctx;
        fail_msg("%s", words);
}

static void sum_of_a_day_of_chance_is_what_fairness_counted(void **state)
{
        struct desk *d = *state;
        const struct journal_options options = { .read_only = true };
        const struct walk_since all = { .kind = WALK_ALL };
        struct fairness *f = calloc(1, sizeof(*f));
        const struct walk_visitor visitor = { f, fairness_segment, fairness_record, no_damage };
        struct journal *j = NULL;
        unsigned __int128 held = 0;
        uint64_t waited_ms = 0;

        assert_non_null(f);
        f->world = walk_world_new();
        if (!play_journal_write(d->path, &d->err) || journal_open(&j, d->path, &options, &d->err) < 0 ||
            journal_walk(j, &all, &visitor, &d->err) < 0)
                fail_msg("%s", d->err.msg);
        struct account account = read_account(j, (struct account_options){ 0 });
        for (size_t i = 0; i < account.n_rows; i++) {
                held += account.rows[i].byte_ms[ACCOUNT_HELD];
                waited_ms += account.rows[i].ms[ACCOUNT_WAITED];
                assert_true(account.rows[i].ms[ACCOUNT_IDLE] <= account.rows[i].ms[ACCOUNT_HELD]);
        }
        assert_true(account.n_rows == 4 && held > 0 && waited_ms > 0);
        if (held != f->held_byte_ms)
                fail_msg("%llu MiB s, and fairness counted %llu", (unsigned long long) account_mib_s(held),
                         (unsigned long long) account_mib_s(f->held_byte_ms));

        account_fini(&account);
        walk_world_free(f->world);
        free(f);
}

static void other_users_programs_are_one_row_for_who_may_not_see_them(void **state)
{
        static const struct account_row rows[] = {
                { .uid = ALICE, .consumer = "a", .n_leases = 1, .ms = { 1 }, .byte_ms = { 10 } },
                { .uid = ALICE, .consumer = "b", .n_leases = 2, .ms = { 2 }, .byte_ms = { 20 } },
                { .uid = BOB, .consumer = "secret", .n_leases = 4, .ms = { 4 }, .byte_ms = { 40 } },
                { .uid = BOB, .consumer = "secrets", .n_leases = 8, .ms = { 8 }, .byte_ms = { 80 } },
                { .uid = CAROL, .is_rest = true, .n_leases = 16, .ms = { 16 }, .byte_ms = { 160 } },
        };
        struct account account = { .n_rows = sizeof(rows) / sizeof(rows[0]) };

        (void) state;
        account.rows = malloc(sizeof(rows));
        assert_non_null(account.rows);
        memcpy(account.rows, rows, sizeof(rows));
        account_fold_for(&account, ALICE);
        assert_int_equal(account.n_rows, 4);
        assert_string_equal(account.rows[1].consumer, "b");
        assert_string_equal(account.rows[2].consumer, "");
        assert_true(account.rows[2].uid == BOB && account.rows[2].n_leases == 12 && account.rows[2].ms[0] == 12);
        account_fold_by_user(&account);
        assert_int_equal(account.n_rows, 3);
        assert_true(account.rows[0].byte_ms[0] == 30 && account.rows[1].byte_ms[0] == 120);
        assert_true(account.rows[2].is_rest && account.rows[2].byte_ms[0] == 160);
        account_fini(&account);
}

static void sums_pass_over_a_damaged_segment_and_say_so(void **state)
{
        struct desk *d = *state;
        const struct journal_options options = { .read_only = true };
        struct journal *j = NULL;

        if (!play_journal_write(d->path, &d->err) || journal_open(&j, d->path, &options, &d->err) < 0)
                fail_msg("%s", d->err.msg);
        struct account whole = read_account(j, (struct account_options){ 0 });
        desk_sql(d, "UPDATE segment SET snapshot = x'00' WHERE id = 3");
        if (journal_open(&j, d->path, &options, &d->err) < 0)
                fail_msg("%s", d->err.msg);
        struct account account = read_account(j, (struct account_options){ 0 });
        assert_true(account.n_damages > 0);
        assert_non_null(strstr(account.damage, "segment 3"));
        assert_true(account.n_records > 0 && account.n_records < whole.n_records);
        unsigned __int128 a = 0, b = 0;
        for (size_t i = 0; i < account.n_rows; i++)
                a += account.rows[i].byte_ms[ACCOUNT_HELD];
        for (size_t i = 0; i < whole.n_rows; i++)
                b += whole.rows[i].byte_ms[ACCOUNT_HELD];
        assert_true(a > 0 && a < b);
        account_fini(&account);
        account_fini(&whole);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_each_had_is_summed_over_segments),
                cmocka_unit_test(idleness_that_was_only_seen_is_idleness),
                cmocka_unit_test(lease_that_ends_in_the_moment_in_which_it_begins_is_counted),
                cmocka_unit_test(since_counts_from_that_moment_on_also_within_what_was_held_then),
                cmocka_unit_test(lessord_that_runs_has_what_goes_on_counted_until_now),
                cmocka_unit_test(parked_time_is_no_time_that_it_held_and_a_booking_waits_from_its_hour_on),
                cmocka_unit_test_setup_teardown(sum_of_a_day_of_chance_is_what_fairness_counted, desk_begin, desk_end),
                cmocka_unit_test(other_users_programs_are_one_row_for_who_may_not_see_them),
                cmocka_unit_test_setup_teardown(sums_pass_over_a_damaged_segment_and_say_so, desk_begin, desk_end),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
