/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store of the trial: bytes in memory, written and read by the real codec. A snapshot, and the inputs committed since.
 * Whoever comes back has nothing else.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "store/codec_action.h"
#include "store/codec_input.h"
#include "store/codec_world.h"
#include "trial/trial.h"

enum { SNAPSHOT_EVERY = 256, WORLD_BYTES_MAX = 4 << 20, JOURNAL_MAX = 16 << 20, LENGTH_SIZE = 8 };

/* Memory that nobody wrote to costs nothing, and begins as zeros. */
static void *pages_new(size_t size)
{
        void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED)
                abort();
        return pages;
}

static void pages_zero(void *pages, size_t size)
{
        if (madvise(pages, size, MADV_DONTNEED) != 0)
                abort();
}

void trial_alloc(struct trial *t)
{
        t->scratch_size = u64_max(CODEC_ACTIONS_MAX, WORLD_BYTES_MAX);
        t->world = pages_new(sizeof(*t->world));
        t->out = pages_new(sizeof(*t->out));
        t->snapshot = pages_new(WORLD_BYTES_MAX);
        t->kept = pages_new(sizeof(*t->kept));
        t->before = pages_new(WORLD_BYTES_MAX);
        t->after = pages_new(WORLD_BYTES_MAX);
        t->journal = pages_new(JOURNAL_MAX);
        t->scratch = pages_new(t->scratch_size);
}

void trial_free(struct trial *t)
{
        (void) munmap(t->world, sizeof(*t->world));
        (void) munmap(t->out, sizeof(*t->out));
        (void) munmap(t->kept, sizeof(*t->kept));
        (void) munmap(t->snapshot, WORLD_BYTES_MAX);
        (void) munmap(t->before, WORLD_BYTES_MAX);
        (void) munmap(t->after, WORLD_BYTES_MAX);
        (void) munmap(t->journal, JOURNAL_MAX);
        (void) munmap(t->scratch, t->scratch_size);
}

size_t journal_encode(struct trial *t, const struct world *world, uint8_t *to)
{
        struct error err = { 0 };
        size_t n = 0;

        if (codec_world_encode(world, to, WORLD_BYTES_MAX, &n, &err) < 0)
                trial_break(t, "the world cannot be stored: %s", err.msg);
        return n;
}

static bool differs(const char *what, const void *a, const void *b, size_t size, uint32_t n, char *words,
                    size_t n_words)
{
        const uint8_t *x = a, *y = b;

        for (size_t at = 0; at < size * n; at++)
                if (x[at] != y[at]) {
                        uint64_t was, is;
                        memcpy(&was, x + at / 8 * 8, 8);
                        memcpy(&is, y + at / 8 * 8, 8);
                        (void) snprintf(words, n_words, "%s %zu, byte %zu of its row (%" PRIu64 " and %" PRIu64 ")",
                                        what, at / size, at % size, was, is);
                        return true;
                }
        return false;
}

/* In which row @t->before and @t->after differ first, both as they are read: for the person who reads it. */
static void journal_difference(struct trial *t, size_t n_after, char *words, size_t n)
{
        struct world *was = pages_new(sizeof(*was)), *is = pages_new(sizeof(*is));
        struct error err = { 0 };

        (void) snprintf(words, n, "the rest");
        if (codec_world_decode(t->before, t->n_before, was, &err) < 0 ||
            codec_world_decode(t->after, n_after, is, &err) < 0)
                (void) snprintf(words, n, "%s", err.msg);
        else if (memcmp(&was->config, &is->config, sizeof(is->config)) != 0)
                (void) snprintf(words, n, "the configuration");
        else if (was->next_action_id != is->next_action_id || was->next_lease_id != is->next_lease_id ||
                 was->next_entry_id != is->next_entry_id || was->next_plan_id != is->next_plan_id)
                (void) snprintf(words, n, "the numbers that come next (%" PRIu64 " and %" PRIu64 ")",
                                was->next_action_id, is->next_action_id);
        else if (was->n_leases != is->n_leases || was->n_holders != is->n_holders || was->n_entries != is->n_entries ||
                 was->n_processes != is->n_processes || was->n_plans != is->n_plans || was->n_habits != is->n_habits ||
                 was->n_approvals != is->n_approvals || was->n_audits != is->n_audits)
                (void) snprintf(words, n, "how many rows there are");
        else
                (void) (differs("device", was->devices, is->devices, sizeof(is->devices[0]), is->n_devices, words, n) ||
                        differs("lease", was->leases, is->leases, sizeof(is->leases[0]), is->n_leases, words, n) ||
                        differs("entry", was->entries, is->entries, sizeof(is->entries[0]), is->n_entries, words, n) ||
                        differs("holder", was->holders, is->holders, sizeof(is->holders[0]), is->n_holders, words, n) ||
                        differs("process", was->processes, is->processes, sizeof(is->processes[0]), is->n_processes,
                                words, n) ||
                        differs("plan", was->plans, is->plans, sizeof(is->plans[0]), is->n_plans, words, n) ||
                        differs("habit", was->habits, is->habits, sizeof(is->habits[0]), is->n_habits, words, n) ||
                        differs("approval", was->approvals, is->approvals, sizeof(is->approvals[0]), is->n_approvals,
                                words, n) ||
                        differs("audit", was->audits, is->audits, sizeof(is->audits[0]), is->n_audits, words, n));
        (void) munmap(is, sizeof(*is));
        (void) munmap(was, sizeof(*was));
}

/* ---- the books as they were: kept row by row, written out only where a row looks different ---- */

static const struct {
        size_t at, row_size, n_at;
} tables[] = {
#define TABLE(table, n)                                                                                                \
        {                                                                                                              \
                offsetof(struct world, table), sizeof(((struct world *) 0)->table[0]), offsetof(struct world, n)       \
        }
        TABLE(devices, n_devices),         TABLE(lease_ids, n_leases),    TABLE(leases, n_leases),
        TABLE(entries, n_entries),         TABLE(holders, n_holders),     TABLE(users, n_users),
        TABLE(occupancies, n_occupancies), TABLE(processes, n_processes), TABLE(plans, n_plans),
        TABLE(habits, n_habits),           TABLE(approvals, n_approvals), TABLE(audits, n_audits),
#undef TABLE
};
enum { TABLES_N = sizeof(tables) / sizeof(*tables) };
#define TABLE_SIZE(table) sizeof(((struct world *) 0)->table)
_Static_assert(offsetof(struct world, devices) + TABLE_SIZE(devices) + TABLE_SIZE(lease_ids) + TABLE_SIZE(leases) +
                               TABLE_SIZE(entries) + TABLE_SIZE(holders) + TABLE_SIZE(users) + TABLE_SIZE(occupancies) +
                               TABLE_SIZE(processes) + TABLE_SIZE(plans) + TABLE_SIZE(habits) + TABLE_SIZE(approvals) +
                               TABLE_SIZE(audits) ==
                       offsetof(struct world, holders_on),
               "a table of the world that is missing in tables[] would never be compared");

static size_t table_size(const struct world *world, size_t i)
{
        uint32_t n;

        memcpy(&n, (const uint8_t *) world + tables[i].n_at, sizeof(n));
        return n * tables[i].row_size;
}

void journal_keep_books(struct trial *t)
{
        memcpy(t->kept, t->world, offsetof(struct world, devices));
        t->kept->now_ms = 0;
        for (size_t i = 0; i < TABLES_N; i++)
                memcpy((uint8_t *) t->kept + tables[i].at, (const uint8_t *) t->world + tables[i].at,
                       table_size(t->world, i));
}

static bool rows_as_kept(struct trial *t)
{
        const uint8_t *was = (const uint8_t *) t->kept, *is = (const uint8_t *) t->world;
        size_t before = offsetof(struct world, now_ms), after = before + sizeof(t->kept->now_ms);

        if (memcmp(was, is, before) != 0 ||
            memcmp(was + after, is + after, offsetof(struct world, devices) - after) != 0)
                return false;
        for (size_t i = 0; i < TABLES_N; i++)
                if (memcmp(was + tables[i].at, is + tables[i].at, table_size(t->world, i)) != 0)
                        return false;
        return true;
}

/* Equal but for the time, which silent ticks move and nobody keeps. Rows that differ in memory may be the same books: what
 * does not travel (padding, the rest of a text) is no difference, so only then both are written out. */
bool journal_books_as_kept(struct trial *t, char *words, size_t n_words)
{
        if (rows_as_kept(t))
                return true;
        uint64_t now_ms = t->world->now_ms;
        t->n_before = journal_encode(t, t->kept, t->before);
        t->world->now_ms = 0;
        size_t n = journal_encode(t, t->world, t->after);
        t->world->now_ms = now_ms;
        if (n == t->n_before && memcmp(t->before, t->after, n) == 0)
                return true;
        journal_difference(t, n, words, n_words);
        return false;
}

void journal_begin(struct trial *t)
{
        t->n_snapshot = journal_encode(t, t->world, t->snapshot);
        if (t->written)
                written_segment(t->written, t->world);
        t->n_journal = 0;
        t->n_journalled = 0;
}

void journal_add(struct trial *t, const uint8_t *input, size_t n)
{
        uint64_t length = n;

        if (t->n_journal + n + LENGTH_SIZE > JOURNAL_MAX)
                trial_break(t, "the trial itself: a journal of more than %d bytes", JOURNAL_MAX);
        memcpy(t->journal + t->n_journal, &length, LENGTH_SIZE);
        memcpy(t->journal + t->n_journal + LENGTH_SIZE, input, n);
        t->n_journal += LENGTH_SIZE + n;
        if (++t->n_journalled >= SNAPSHOT_EVERY)
                journal_begin(t);
}

void journal_forget(struct trial *t)
{
        pages_zero(t->world, sizeof(*t->world));
}

/* The snapshot, and each input through the core once more. */
void journal_come_back(struct trial *t)
{
        static struct occupancy rows[ROWS_MAX];
        struct error err = { 0 };
        struct input input;

        pages_zero(t->world, sizeof(*t->world));
        if (codec_world_decode(t->snapshot, t->n_snapshot, t->world, &err) < 0)
                trial_break(t, "I6: the snapshot cannot be read: %s", err.msg);
        const char *wrong = world_check(t->world);
        if (wrong)
                trial_break(t, "I6: the snapshot is no world: %s", wrong);
        for (size_t at = 0; at < t->n_journal;) {
                uint64_t length;
                memcpy(&length, t->journal + at, LENGTH_SIZE);
                at += LENGTH_SIZE;
                if (codec_input_decode(t->journal + at, length, &input, rows, &err) < 0)
                        trial_break(t, "I6: an input cannot be read: %s", err.msg);
                at += length;
                arbiter_step(t->world, &input, t->out);
                while (t->out->more) {
                        struct input tick = { .kind = INPUT_TICK, .now_ms = input.now_ms };
                        arbiter_step(t->world, &tick, t->out);
                }
                t->count.restored_steps++;
        }
}
