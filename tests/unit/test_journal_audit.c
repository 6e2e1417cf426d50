/* SPDX-License-Identifier: Apache-2.0 */
/* What is known in words of processes, beside the records (store/journal_audit.h). */
#include "desk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "store/journal_audit.h"

#define BOOT "0b7f1d3e-9f4a-4b0e-8f0e-3a1f6f2c9d10"

static struct journal_audit audit_of(uint32_t pid, const char *facts)
{
        return (struct journal_audit){
                .wall_ms = 1700000000000,
                .boot_id = BOOT,
                .pid = pid,
                .start_ticks = 1000 + pid,
                .uid_known = true,
                .uid = 1000,
                .facts = facts,
                .n_facts = strlen(facts),
        };
}

static void append(struct desk *d, uint32_t pid, const char *facts)
{
        struct journal_audit audit = audit_of(pid, facts);

        assert_int_equal(journal_append_audit(d->j, &audit, &d->err), 0);
}

/* Those that a question finds, as "id:pid:facts,…". */
static int each(void *ctx, const struct journal_audit *audit)
{
        char *text = ctx;
        size_t at = strlen(text);

        (void) snprintf(text + at, 400 - at, "%s%llu:%u:%.*s", at ? "," : "", (unsigned long long) audit->id,
                        audit->pid, (int) audit->n_facts, audit->facts);
        return 0;
}

static const char *found(struct desk *d, const struct journal_audits_filter *filter)
{
        static char text[400];

        text[0] = '\0';
        assert_int_equal(journal_audits(d->j, filter, each, text, &d->err), 0);
        return text;
}

static const char *all(struct desk *d)
{
        return found(d, &(struct journal_audits_filter){ 0 });
}

static void audit_is_in_the_file_with_the_batch_it_came_with(void **state)
{
        struct desk *d = *state;

        desk_start(d);
        append(d, 7, "{\"comm\":\"train\"}");
        assert_string_equal(all(d), "");
        desk_write(d, 3);
        assert_string_equal(all(d), "1:7:{\"comm\":\"train\"}");
        assert_int_equal(desk_sql_u64(d, "SELECT seq FROM audit"), 3);
        desk_assert_verifies(d);
        desk_close(d);
        desk_start(d);
        assert_string_equal(all(d), "1:7:{\"comm\":\"train\"}");
}

static void identity_that_is_told_again_keeps_its_first_row(void **state)
{
        struct desk *d = *state;

        desk_start(d);
        append(d, 7, "a");
        append(d, 7, "b"); /* in one batch, too */
        desk_write(d, 1);
        desk_close(d);
        desk_start(d); /* after a restart everything is told anew */
        append(d, 7, "c");
        append(d, 8, "d");
        desk_write(d, 1);
        assert_string_equal(all(d), "2:8:d,1:7:a");
        struct journal_audit again = audit_of(7, "e"); /* the pid, but somebody else */
        again.start_ticks++;
        assert_int_equal(journal_append_audit(d->j, &again, &d->err), 0);
        again.start_ticks--; /* in another life of the machine: somebody else */
        again.boot_id[0] = '1';
        assert_int_equal(journal_append_audit(d->j, &again, &d->err), 0);
        desk_write(d, 1);
        assert_string_equal(all(d), "4:7:e,3:7:e,2:8:d,1:7:a");
        desk_assert_verifies(d);
}

static void questions_are_answered_newest_first_and_bounded(void **state)
{
        struct desk *d = *state;

        desk_start(d);
        for (uint32_t i = 0; i < 6; i++)
                append(d, 10 + i % 3, "x"), append(d, 20 + i, "y");
        desk_write(d, 1);
        assert_string_equal(found(d, &(struct journal_audits_filter){ .limit = 2 }), "9:25:y,8:24:y");
        assert_string_equal(found(d, &(struct journal_audits_filter){ .limit = 2, .before_id = 8 }), "7:23:y,6:22:y");
        assert_string_equal(found(d, &(struct journal_audits_filter){ .pid = 11 }), "3:11:x");
        assert_string_equal(found(d, &(struct journal_audits_filter){ .pid = 11, .start_ticks = 1011 }), "3:11:x");
        assert_string_equal(found(d, &(struct journal_audits_filter){ .pid = 11, .start_ticks = 5 }), "");
        assert_string_equal(found(d, &(struct journal_audits_filter){ .pid = 11, .start_ticks = UINT64_MAX }), "");
}

static void batch_that_is_given_up_does_not_take_the_audits_with_it(void **state)
{
        struct desk *d = *state;

        desk_start(d);
        desk_append(d, 1);
        append(d, 7, "a");
        journal_discard(d->j);
        assert_int_equal(journal_commit(d->j, &d->err), 0); /* nothing to write: it waits for a record */
        assert_string_equal(all(d), "");
        desk_close(d);
        d->i = 0;
        desk_start(d); /* and one that never came to it is gone with the process, whose successor is told anew */
        append(d, 7, "b");
        desk_write(d, 1);
        assert_string_equal(all(d), "1:7:b");
}

static void what_is_too_much_or_no_identity_is_refused(void **state)
{
        struct desk *d = *state;
        struct journal_audit audit = audit_of(7, "a");

        desk_start(d);
        audit.n_facts = JOURNAL_AUDIT_FACTS_MAX + 1;
        assert_int_equal(journal_append_audit(d->j, &audit, &d->err), -EMSGSIZE);
        audit = audit_of(0, "a");
        assert_int_equal(journal_append_audit(d->j, &audit, &d->err), -EINVAL);
        audit = audit_of(7, "a");
        audit.start_ticks = UINT64_MAX;
        assert_int_equal(journal_append_audit(d->j, &audit, &d->err), -EINVAL);
        for (uint32_t i = 0; i < JOURNAL_AUDITS_PENDING_MAX; i++)
                append(d, 1 + i, "x");
        audit = audit_of(99999, "a");
        assert_int_equal(journal_append_audit(d->j, &audit, &d->err), -ENOBUFS);
        desk_write(d, 1);
        assert_int_equal(journal_append_audit(d->j, &audit, &d->err), 0);
        assert_int_equal(desk_sql_u64(d, "SELECT count(*) FROM audit"), JOURNAL_AUDITS_PENDING_MAX);
}

static void old_audits_are_pruned_and_what_stays_verifies(void **state)
{
        struct desk *d = *state;
        struct journal_verified v;

        d->options = (struct journal_options){ .keep_audits = 4 };
        desk_start(d);
        for (uint32_t round = 0; round < 5; round++) {
                for (uint32_t i = 0; i < 3; i++)
                        append(d, 100 + 10 * round + i, "x");
                desk_write(d, 2);
                desk_snapshot(d);
                assert_int_equal(journal_verify(d->j, &v, &d->err), 0);
                assert_true(v.ok);
                assert_int_equal(v.n_audits, round == 0 ? 3 : 4);
        }
        assert_string_equal(all(d), "15:142:x,14:141:x,13:140:x,12:132:x");
        desk_close(d);
        desk_start(d);
        append(d, 500, "y");
        desk_write(d, 1);
        desk_assert_verifies(d);
}

static void S27_audit_that_was_edited_or_taken_out_is_named(void **state)
{
        struct desk *d = *state;
        int rows_failed = 0;
        static const struct {
                const char *name;
                const char *sql;
                uint64_t at;
        } rows[] = {
                { "a word", "UPDATE audit SET facts = CAST('innocent' AS BLOB) WHERE id = 2", 2 },
                { "whose it was", "UPDATE audit SET uid = 0 WHERE id = 3", 3 },
                { "nobody's any more", "UPDATE audit SET uid = NULL WHERE id = 3", 3 },
                { "a pid", "UPDATE audit SET pid = 99 WHERE id = 1", 1 },
                { "a time", "UPDATE audit SET wall_ms = wall_ms + 1 WHERE id = 4", 4 },
                { "the batch", "UPDATE audit SET seq = 9 WHERE id = 4", 4 },
                { "a start", "UPDATE audit SET start_ticks = 5 WHERE id = 4", 4 },
                { "a life of the machine", "UPDATE audit SET boot_id = 'b' WHERE id = 4", 4 },
                { "one in the middle gone", "DELETE FROM audit WHERE id = 3", 4 },
                { "the first gone", "DELETE FROM audit WHERE id = 1", 2 },
                { "what pruning kept", "UPDATE keep SET audit_hash = randomblob(32)", 1 },
        };

        desk_start(d);
        for (uint32_t i = 0; i < 5; i++)
                append(d, 11 + i, "guilty");
        desk_write(d, 2);
        desk_close(d);

        size_t n;
        uint8_t *good = desk_read(d->path, &n);
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct journal_verified v;
                desk_write_file(d->path, good, n);
                desk_sql(d, rows[i].sql);
                assert_int_equal(journal_open(&d->j, d->path, NULL, &d->err), 0);
                assert_int_equal(journal_verify(d->j, &v, &d->err), 0);
                desk_close(d);
                row_check(rows[i].name, !v.ok && v.bad_audit == rows[i].at && strncmp(v.words, "audit ", 6) == 0);
        }
        free(good);
        rows_end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, desk_begin, desk_end)
                TEST(audit_is_in_the_file_with_the_batch_it_came_with),
                TEST(identity_that_is_told_again_keeps_its_first_row),
                TEST(questions_are_answered_newest_first_and_bounded),
                TEST(batch_that_is_given_up_does_not_take_the_audits_with_it),
                TEST(what_is_too_much_or_no_identity_is_refused),
                TEST(old_audits_are_pruned_and_what_stays_verifies),
                TEST(S27_audit_that_was_edited_or_taken_out_is_named),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
