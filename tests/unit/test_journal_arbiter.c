/* SPDX-License-Identifier: Apache-2.0 */
/* The real core and the journal: what was decided is decided again, byte by byte, wherever the daemon died. */
#include "cm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "arbiter/arbiter.h"
#include "books.h"
#include "play.h"
#include "store/codec_world.h"
#include "store/journal.h"

static const char boot_id[] = "6e2a0d5c-7b1f-4b7e-9d43-0c2f5a1b8e77";
enum { STEPS = 6000 };

static void real_step(void *ctx, struct world *world, const struct input *input, struct actions *out)
{
        (void) ctx;
        arbiter_step(world, input, out);
}

static struct journal *open_and_restore(const char *path, struct world *world, struct journal_restored *restored)
{
        struct journal *j = NULL;
        struct error err;

        if (journal_open(&j, path, NULL, &err) < 0)
                fail_msg("%s", err.msg);
        if (journal_restore(j, world, real_step, NULL, restored, &err) < 0)
                fail_msg("%s", err.msg);
        if (restored->degraded || !restored->agreed)
                fail_msg("differs at record %llu; %s", (unsigned long long) restored->differs_at_seq,
                         journal_degraded(j) ? journal_degraded(j) : "not degraded");
        return j;
}

static void assert_same_books(const struct world *a, const struct world *b)
{
        size_t n_a = 0, n_b = 0, size = codec_world_size_max(a) + codec_world_size_max(b);
        uint8_t *bytes_a = malloc(size), *bytes_b = malloc(size);
        struct error err;

        assert_true(bytes_a && bytes_b);
        if (codec_world_encode(a, bytes_a, size, &n_a, &err) < 0 ||
            codec_world_encode(b, bytes_b, size, &n_b, &err) < 0)
                fail_msg("%s", err.msg);
        assert_int_equal(n_a, n_b);
        assert_memory_equal(bytes_a, bytes_b, n_a);
        free(bytes_a);
        free(bytes_b);
}

static void real_core_decides_the_same_again_after_each_restart(void **state)
{
        (void) state;
        char dir[] = "/tmp/lessor-journal-XXXXXX", path[64];
        struct play *p = calloc(1, sizeof(*p));
        struct actions *out = calloc(1, sizeof(*out));
        struct world *world = books_world_new(), *again = books_world_new();
        struct journal_restored restored;
        struct config config;
        struct error err;
        uint64_t n_records = 0, n_restarts = 0;

        assert_true(p && out && mkdtemp(dir));
        (void) snprintf(path, sizeof(path), "%s/journal.db", dir);
        p->random = 20240229;
        p->now_ms = 1000;
        struct journal *j = open_and_restore(path, world, &restored);
        config_defaults(&config);
        world_init(world, &config);
        assert_int_equal(journal_snapshot(j, world, boot_id, 1700000000000, &err), 0);

        for (uint32_t step = 0; step < STEPS; step++) {
                struct input in;
                play_input(p, step, &in);
                do {
                        arbiter_step(world, &in, out);
                        if (in.kind != INPUT_TICK || out->n > 0) /* the rule for ticks, from arbiter.h */
                                if (journal_append(j, &in, out, 1700000000000 + p->now_ms, &err) < 0)
                                        fail_msg("step %u: %s", step, err.msg);
                        in = (struct input){ .kind = INPUT_TICK, .now_ms = in.now_ms };
                } while (out->more);
                if (play_pick(p, 8) == 0 && journal_commit(j, &err) < 0)
                        fail_msg("step %u: %s", step, err.msg);
                if (play_pick(p, 400) != 0)
                        continue;
                if (journal_commit(j, &err) < 0)
                        fail_msg("step %u: %s", step, err.msg);
                journal_close(j);
                books_world_zero(again);
                j = open_and_restore(path, again, &restored);
                /* A tick that said nothing may have moved the clock alone, and is not in the journal. */
                assert_true(again->now_ms <= world->now_ms);
                again->now_ms = world->now_ms;
                assert_same_books(world, again);
                struct world *kept = world;
                world = again; /* and it goes on from there */
                again = kept;
                assert_int_equal(journal_snapshot(j, world, boot_id, 1700000000000 + p->now_ms, &err), 0);
                n_records += restored.n_records;
                n_restarts++;
        }
        struct journal_verified v;
        assert_int_equal(journal_verify(j, &v, &err), 0);
        assert_true(v.ok);
        print_message("# %llu records decided again over %llu restarts, %llu events\n", (unsigned long long) n_records,
                      (unsigned long long) n_restarts, (unsigned long long) v.n_events);
        assert_true(n_restarts > 5 && n_records > 2000);

        journal_close(j);
        (void) unlink(path);
        (void) rmdir(dir);
        books_world_free(world);
        books_world_free(again);
        free(p);
        free(out);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(real_core_decides_the_same_again_after_each_restart),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
