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
        t->before = pages_new(WORLD_BYTES_MAX);
        t->after = pages_new(WORLD_BYTES_MAX);
        t->journal = pages_new(JOURNAL_MAX);
        t->scratch = pages_new(t->scratch_size);
}

void trial_free(struct trial *t)
{
        (void) munmap(t->world, sizeof(*t->world));
        (void) munmap(t->out, sizeof(*t->out));
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

/* The books apart from the time: ticks that said nothing moved that alone, and were not kept. */
size_t journal_encode_books(struct trial *t, uint8_t *to)
{
        uint64_t now_ms = t->world->now_ms;

        t->world->now_ms = 0;
        size_t n = journal_encode(t, t->world, to);
        t->world->now_ms = now_ms;
        return n;
}

void journal_begin(struct trial *t)
{
        t->n_snapshot = journal_encode(t, t->world, t->snapshot);
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

/* In which row the books of @t->before and of now differ first: for the person who reads it. */
void journal_difference(struct trial *t, char *words, size_t n)
{
        struct world *was = pages_new(sizeof(*was)), *is = t->world;
        uint8_t *bytes = t->after;
        struct error err = { 0 };

        (void) snprintf(words, n, "the rest");
        if (codec_world_decode(t->before, t->n_before, was, &err) < 0)
                (void) snprintf(words, n, "%s", err.msg);
        else if (memcmp(&was->config, &is->config, sizeof(is->config)) != 0)
                (void) snprintf(words, n, "the configuration");
        else if (was->next_action_id != is->next_action_id || was->next_lease_id != is->next_lease_id ||
                 was->next_entry_id != is->next_entry_id || was->next_plan_id != is->next_plan_id)
                (void) snprintf(words, n, "the numbers that come next (%" PRIu64 " and %" PRIu64 ")",
                                was->next_action_id, is->next_action_id);
        else if (was->n_leases != is->n_leases || was->n_holders != is->n_holders || was->n_entries != is->n_entries ||
                 was->n_processes != is->n_processes || was->n_plans != is->n_plans || was->n_habits != is->n_habits)
                (void) snprintf(words, n, "how many rows there are");
        else /* what does not travel is no difference: both as they are read */
                (void) (codec_world_decode(bytes, journal_encode_books(t, bytes), is = pages_new(sizeof(*is)), &err) <
                                0 ||
                        differs("device", was->devices, is->devices, sizeof(is->devices[0]), is->n_devices, words, n) ||
                        differs("lease", was->leases, is->leases, sizeof(is->leases[0]), is->n_leases, words, n) ||
                        differs("entry", was->entries, is->entries, sizeof(is->entries[0]), is->n_entries, words, n) ||
                        differs("holder", was->holders, is->holders, sizeof(is->holders[0]), is->n_holders, words, n) ||
                        differs("process", was->processes, is->processes, sizeof(is->processes[0]), is->n_processes,
                                words, n) ||
                        differs("plan", was->plans, is->plans, sizeof(is->plans[0]), is->n_plans, words, n) ||
                        differs("habit", was->habits, is->habits, sizeof(is->habits[0]), is->n_habits, words, n));
        if (is != t->world)
                (void) munmap(is, sizeof(*is));
        (void) munmap(was, sizeof(*was));
}

void journal_forget(struct trial *t)
{
        pages_zero(t->world, sizeof(*t->world));
}

/* The snapshot, and each input through the core once more. */
void journal_restore(struct trial *t)
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
