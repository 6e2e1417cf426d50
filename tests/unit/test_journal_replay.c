/* SPDX-License-Identifier: Apache-2.0 */
/* A journal is decided again: what stands there, what a changed record or another core says, and another configuration. */
#include "cm.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "arbiter/arbiter.h"
#include "desk.h"
#include "play_journal.h"
#include "programs/lessor/replay_twin.h"
#include "store/codec_action.h"
#include "store/replay.h"

struct seen {
        struct replay_result result;
        struct replay_difference first; /* its actions copied below */
        struct action was, is;
        uint32_t n_told;
        char snapshot[200];
        char damage[400]; /* the first */
};

static void on_difference(void *ctx, const struct replay_difference *d)
{
        struct seen *seen = ctx;

        if (seen->n_told++ > 0)
                return;
        seen->first = *d;
        if (d->was)
                seen->was = *d->was;
        if (d->is)
                seen->is = *d->is;
}

static void on_snapshot(void *ctx, uint64_t segment, uint64_t wall_ms, const char *words)
{
        struct seen *seen = ctx;

        (void) wall_ms;
        if (!seen->snapshot[0])
                (void) snprintf(seen->snapshot, sizeof(seen->snapshot), "%llu: %.150s", (unsigned long long) segment,
                                words);
}

static void on_damage(void *ctx, const char *words)
{
        struct seen *seen = ctx;

        if (!seen->damage[0])
                (void) snprintf(seen->damage, sizeof(seen->damage), "%s", words);
}

static struct journal *open_to_read(const char *path)
{
        const struct journal_options options = { .read_only = true };
        struct journal *j = NULL;
        struct error err;

        if (journal_open(&j, path, &options, &err) < 0)
                fail_msg("%s", err.msg);
        return j;
}

static int replay(const char *path, const struct walk_since *since, journal_step_fn *step, void *ctx, struct seen *seen)
{
        const struct replay_visitor visitor = {
                .ctx = seen, .difference = on_difference, .snapshot = on_snapshot, .damage = on_damage
        };
        struct journal *j = open_to_read(path);
        struct error err;

        memset(seen, 0, sizeof(*seen));
        int r = journal_replay(j, since, step, ctx, &visitor, &seen->result, &err);
        journal_close(j);
        return r;
}

static const struct walk_since all = { .kind = WALK_ALL };

/* Three segments of 60, 60 and 30 records; the last began with a restart. */
static void story(struct desk *d)
{
        desk_start(d);
        desk_write(d, 60);
        desk_snapshot(d);
        desk_write(d, 60);
        desk_close(d);
        desk_start(d);
        desk_write(d, 30);
}

static void replay_of_what_was_decided_is_equal_over_segments_and_a_restart_while_it_is_written(void **state)
{
        struct desk *d = *state;
        struct seen seen;

        story(d);
        assert_int_equal(replay(d->path, &all, books_step, NULL, &seen), 0);
        if (!replay_is_equal(&seen.result))
                fail_msg("%u differences; %s; %s", seen.n_told, seen.snapshot, seen.damage);
        assert_true(seen.result.same_core);
        assert_int_equal(seen.result.n_segments, 3);
        assert_int_equal(seen.result.n_records, 150);
        assert_int_equal(seen.result.n_inputs[INPUT_REQUEST], 50);
        assert_int_equal(seen.result.n_actions, 50 * 2 + 100);
        assert_int_equal(seen.result.n_snapshots, 2);
        desk_write(d, 10); /* whoever writes was not disturbed */
        desk_assert_verifies(d);
}

static void replay_by_a_core_that_decides_otherwise_names_the_record_and_both_actions(void **state)
{
        struct desk *d = *state;
        uint64_t other = 42;
        struct seen seen;

        story(d);
        assert_int_equal(replay(d->path, &all, books_step, &other, &seen), 0);
        assert_false(replay_is_equal(&seen.result));
        assert_int_equal(seen.result.n_differences, 1);
        assert_int_equal(seen.was.id, 42);
        assert_int_equal(seen.is.id, 42);
        assert_int_equal(seen.is.why.free_bytes, seen.was.why.free_bytes + 1);
        assert_int_equal(seen.result.n_other_snapshots, 0);
        assert_string_equal(seen.damage, "");
}

/* Its ids run ahead: all that follows in this segment differs, and the next begins right again. */
static void step_that_counts_twice(void *ctx, struct world *world, const struct input *input, struct actions *out)
{
        uint32_t *at = ctx;

        books_step(NULL, world, input, out);
        if ((*at)++ == 100)
                world->next_action_id++;
}

static void replay_begins_anew_from_each_snapshot_so_that_a_difference_ends_with_its_segment(void **state)
{
        struct desk *d = *state;
        struct seen seen;
        uint32_t at = 0;

        story(d);
        assert_int_equal(replay(d->path, &all, step_that_counts_twice, &at, &seen), 0);
        assert_int_equal(seen.first.seq, 102);
        assert_int_equal(seen.result.n_differences, 120 - 101);
        assert_int_equal(seen.result.n_other_snapshots, 1);
        assert_string_equal(seen.snapshot, "3: other numbers come next");
}

static void change_action(const char *path, unsigned seq)
{
        sqlite3 *db = NULL;
        sqlite3_stmt *get = NULL, *set = NULL;
        struct actions *actions = calloc(1, sizeof(*actions));
        uint8_t *bytes = malloc(CODEC_ACTIONS_MAX);
        size_t n = 0;

        assert_true(actions && bytes);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_prepare_v2(db, "SELECT actions FROM record WHERE seq = ?1", -1, &get, NULL),
                         SQLITE_OK);
        (void) sqlite3_bind_int64(get, 1, seq);
        assert_int_equal(sqlite3_step(get), SQLITE_ROW);
        assert_int_equal(
                codec_actions_decode(sqlite3_column_blob(get, 0), (size_t) sqlite3_column_bytes(get, 0), actions, NULL),
                0);
        (void) sqlite3_finalize(get);
        actions->items[actions->n - 1].bytes += 4711;
        assert_int_equal(codec_actions_encode(actions, bytes, CODEC_ACTIONS_MAX, &n, NULL), 0);
        assert_int_equal(sqlite3_prepare_v2(db, "UPDATE record SET actions = ?1 WHERE seq = ?2", -1, &set, NULL),
                         SQLITE_OK);
        (void) sqlite3_bind_blob(set, 1, bytes, (int) n, SQLITE_TRANSIENT);
        (void) sqlite3_bind_int64(set, 2, seq);
        assert_int_equal(sqlite3_step(set), SQLITE_DONE);
        (void) sqlite3_finalize(set);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        free(actions);
        free(bytes);
}

static void S27_replay_names_the_action_that_was_changed_in_its_record(void **state)
{
        struct desk *d = *state;
        struct seen seen;

        story(d);
        desk_close(d);
        change_action(d->path, 70);
        assert_int_equal(replay(d->path, &all, books_step, NULL, &seen), 0);
        assert_int_equal(seen.result.n_differences, 1);
        assert_int_equal(seen.first.seq, 70);
        assert_int_equal(seen.was.bytes, seen.is.bytes + 4711);
        assert_int_equal(seen.result.n_damages, 1);
        assert_string_equal(seen.damage, "record 70 is not what was written");
}

static void replay_passes_over_what_cannot_be_read_and_says_so(void **state)
{
        static const struct {
                const char *name, *sql, *words;
                uint64_t n_records;
        } rows[] = {
                { "a record is missing", "DELETE FROM record WHERE seq = 30", "record 30 is missing", 29 + 60 + 30 },
                { "the last of a segment is missing", "DELETE FROM record WHERE seq = 60", "record 60 is missing",
                  149 },
                { "an input is garbage", "UPDATE record SET input = x'00' WHERE seq = 70",
                  "record 70 is not what was written", 60 + 9 + 30 },
                { "a snapshot is garbage", "UPDATE segment SET snapshot = x'0400' WHERE id = 2",
                  "the snapshot of segment 2 is not what was written", 90 },
        };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct desk *d;
                struct seen seen;

                (void) state;
                assert_int_equal(desk_begin((void **) &d), 0);
                story(d);
                desk_close(d);
                desk_sql(d, rows[i].sql);
                row_check(rows[i].name, replay(d->path, &all, books_step, NULL, &seen) == 0);
                row_check(rows[i].name, strcmp(seen.damage, rows[i].words) == 0);
                row_check(rows[i].name, seen.result.n_records == rows[i].n_records);
                row_check(rows[i].name, seen.result.n_differences == 0 && !replay_is_equal(&seen.result));
                assert_int_equal(desk_end((void **) &d), 0);
        }
        rows_end();
}

static void replay_since_a_moment_or_an_event_counts_from_there_and_begins_at_the_snapshot_before(void **state)
{
        struct desk *d = *state;
        const struct walk_since wall = { .kind = WALK_SINCE_WALL_MS, .value = 1700000000000 + 99 };
        const struct walk_since event = { .kind = WALK_SINCE_EVENT, .value = 191 };
        const struct walk_since never = { .kind = WALK_SINCE_EVENT, .value = 4711 };
        const struct walk_since later = { .kind = WALK_SINCE_WALL_MS, .value = 1800000000000 };
        struct seen seen;

        story(d);
        assert_int_equal(replay(d->path, &wall, books_step, NULL, &seen), 0);
        assert_int_equal(seen.result.first_seq, 100);
        assert_int_equal(seen.result.n_records, 51);
        assert_int_equal(seen.result.n_before, 39);
        assert_int_equal(seen.result.n_segments, 2);
        assert_true(replay_is_equal(&seen.result));
        assert_int_equal(replay(d->path, &event, books_step, NULL, &seen), 0);
        assert_int_equal(seen.result.n_before + seen.result.n_records, 30);
        assert_int_equal(seen.result.last_seq, 150);
        assert_true(seen.result.first_seq > 120);
        assert_int_equal(replay(d->path, &never, books_step, NULL, &seen), -ENOENT);
        assert_int_equal(replay(d->path, &later, books_step, NULL, &seen), -ENOENT);
}

static void replay_of_a_journal_of_another_version_says_which(void **state)
{
        struct desk *d = *state;
        struct seen seen;

        d->options.core_version = "0.0.7";
        desk_start(d);
        desk_write(d, 9);
        assert_int_equal(replay(d->path, &all, books_step, NULL, &seen), 0);
        assert_true(replay_is_equal(&seen.result));
        assert_false(seen.result.same_core);
        assert_string_equal(seen.result.core_version, "0.0.7");
}

/* ---- the real core ---- */

static void play_write(struct desk *d)
{
        if (!play_journal_write(d->path, &d->err))
                fail_msg("%s", d->err.msg);
}

static void real_step(void *ctx, struct world *world, const struct input *input, struct actions *out)
{
        (void) ctx;
        arbiter_step(world, input, out);
}

static void replay_of_the_real_core_is_equal_over_a_long_play(void **state)
{
        struct desk *d = *state;
        struct seen seen;

        play_write(d);
        assert_int_equal(replay(d->path, &all, real_step, NULL, &seen), 0);
        if (!replay_is_equal(&seen.result))
                fail_msg("%u differences; %s; %s", seen.n_told, seen.snapshot, seen.damage);
        assert_true(seen.result.n_records > 3000 && seen.result.n_snapshots > 3);
        print_message("# %llu records, %llu snapshots\n", (unsigned long long) seen.result.n_records,
                      (unsigned long long) seen.result.n_snapshots);
}

/* A core with one fault, as the mutants of the tests have: it believes that half of what is used is free. */
static void mutated_step(void *ctx, struct world *world, const struct input *input, struct actions *out)
{
        struct input other = *input;

        (void) ctx;
        if (other.kind == INPUT_READING)
                other.reading.used_bytes /= 2;
        arbiter_step(world, &other, out);
}

static void replay_by_a_mutated_core_reports_differences(void **state)
{
        struct desk *d = *state;
        struct seen seen;

        play_write(d);
        assert_int_equal(replay(d->path, &all, mutated_step, NULL, &seen), 0);
        assert_true(seen.result.n_differences > 0 && seen.result.n_other_snapshots > 0);
        assert_string_equal(seen.damage, "");
}

/* ---- another configuration ---- */

static uint32_t everyone(void *ctx, uint32_t uid)
{
        (void) ctx;
        (void) uid;
        return QUOTA_EVERYONE;
}

static void count_answer(void *ctx, const struct action *was, const struct action *would, const struct story_moment *at)
{
        struct seen *seen = ctx;

        (void) was;
        (void) would;
        (void) at;
        seen->n_told++;
}

static void twin(const struct desk *d, const struct config *config, const struct walk_since *since,
                 uint32_t n_of[STORY_CHANGE_N])
{
        struct seen seen = { 0 };
        const struct twin_host host = {
                .ctx = &seen, .quota_row = everyone, .answer = count_answer, .damage = on_damage
        };
        struct journal *j = open_to_read(d->path);
        struct twin *t = NULL;
        uint64_t n_records = 0;
        struct error err;

        memset(n_of, 0, STORY_CHANGE_N * sizeof(*n_of));

        assert_int_equal(twin_new(&t, config, 0, &host, &err), 0);
        if (twin_run(t, j, since, &n_records, &err) < 0)
                fail_msg("%s", err.msg);
        for (size_t i = 0; i < twin_stories(t)->n; i++)
                if (twin_stories(t)->items[i].counts)
                        n_of[story_change(&twin_stories(t)->items[i])]++;
        assert_string_equal(seen.damage, "");
        twin_free(t);
        journal_close(j);
}

static void same_configuration_changes_nothing_whatever_happened(void **state)
{
        struct desk *d = *state;
        uint32_t n_of[STORY_CHANGE_N];
        struct config config;

        play_write(d);
        config_defaults(&config);
        twin(d, &config, &all, n_of);
        assert_true(n_of[STORY_SAME] > 500);
        for (int change = STORY_SAME + 1; change < STORY_CHANGE_N; change++)
                assert_int_equal(n_of[change], 0);
}

static uint32_t changes(const uint32_t n_of[STORY_CHANGE_N])
{
        uint32_t n = 0;

        for (int change = STORY_SAME + 1; change < STORY_CHANGE_N; change++)
                n += n_of[change];
        return n;
}

static void another_configuration_says_who_would_have_been_decided_otherwise(void **state)
{
        struct desk *d = *state;
        uint32_t n_of[STORY_CHANGE_N];
        struct config defaults, config;
        int rows_failed = 0;

        play_write(d);
        config_defaults(&defaults);

        config = defaults;
        config.ceiling_user = 4;
        twin(d, &config, &all, n_of);
        row_check("ceiling of users", n_of[STORY_REFUSED] > 0 && n_of[STORY_NOT_REFUSED] == 0);

        config = defaults;
        config.leases_per_user_max = 1;
        twin(d, &config, &all, n_of);
        row_check("one lease a user", n_of[STORY_REFUSED] > 0);

        config = defaults;
        config.aging_ms = 1000;
        twin(d, &config, &all, n_of);
        row_check("aging", changes(n_of) > 0 && n_of[STORY_REFUSED] == 0);

        config = defaults;
        config.margin = 4;
        twin(d, &config, &all, n_of);
        row_check("margin", changes(n_of) > 0 && n_of[STORY_REFUSED] == 0);

        config = defaults;
        config.collect_ms = 1;
        twin(d, &config, &all, n_of);
        row_check("collect", n_of[STORY_ENDS] > 0);

        const struct walk_since late = { .kind = WALK_SINCE_WALL_MS, .value = 1700000000000 + 900000 };
        uint32_t n_late[STORY_CHANGE_N];
        twin(d, &config, &late, n_late);
        row_check("the last of it", changes(n_late) > 0 && changes(n_late) < changes(n_of));
        rows_end();
}

int main(void)
{
#define desk_test(f) cmocka_unit_test_setup_teardown(f, desk_begin, desk_end)
        const struct CMUnitTest tests[] = {
                desk_test(replay_of_what_was_decided_is_equal_over_segments_and_a_restart_while_it_is_written),
                desk_test(replay_by_a_core_that_decides_otherwise_names_the_record_and_both_actions),
                desk_test(replay_begins_anew_from_each_snapshot_so_that_a_difference_ends_with_its_segment),
                desk_test(S27_replay_names_the_action_that_was_changed_in_its_record),
                cmocka_unit_test(replay_passes_over_what_cannot_be_read_and_says_so),
                desk_test(replay_since_a_moment_or_an_event_counts_from_there_and_begins_at_the_snapshot_before),
                desk_test(replay_of_a_journal_of_another_version_says_which),
                desk_test(replay_of_the_real_core_is_equal_over_a_long_play),
                desk_test(replay_by_a_mutated_core_reports_differences),
                desk_test(same_configuration_changes_nothing_whatever_happened),
                desk_test(another_configuration_says_who_would_have_been_decided_otherwise),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
