/* SPDX-License-Identifier: Apache-2.0 */
#include "play_journal.h"

#include <errno.h>
#include <stdlib.h>
#include "arbiter/arbiter.h"
#include "books.h"
#include "play.h"
#include "store/journal.h"

#define WALL_MS UINT64_C(1700000000000)
enum { STEPS = 5000, SEGMENT_STEPS = 400 };

static const char boot_id[] = "6e2a0d5c-7b1f-4b7e-9d43-0c2f5a1b8e77";

struct writing {
        struct journal *j;
        struct world *world;
        struct actions out;
        struct play play;
};

static void real_step(void *ctx, struct world *world, const struct input *input, struct actions *out)
{
        (void) ctx;
        arbiter_step(world, input, out);
}

static bool begin(struct writing *w, const char *path, struct error *err)
{
        const struct journal_options options = { .keep_segments = 100 };
        struct journal_restored restored;
        struct config config;

        w->play.random = 20240229;
        w->play.now_ms = 1000;
        if (journal_open(&w->j, path, &options, err) < 0 ||
            journal_restore(w->j, w->world, real_step, NULL, &restored, err) < 0)
                return false;
        config_defaults(&config);
        world_init(w->world, &config);
        return journal_snapshot(w->j, w->world, boot_id, WALL_MS, err) == 0;
}

static bool step(struct writing *w, uint32_t n, struct error *err)
{
        struct input in;

        play_input(&w->play, n, &in);
        do {
                arbiter_step(w->world, &in, &w->out);
                if (in.kind != INPUT_TICK || w->out.n > 0)
                        if (journal_append(w->j, &in, &w->out, WALL_MS + w->play.now_ms, err) < 0)
                                return false;
                in = (struct input){ .kind = INPUT_TICK, .now_ms = in.now_ms };
        } while (w->out.more);
        if (play_pick(&w->play, SEGMENT_STEPS) != 0)
                return true;
        return journal_commit(w->j, err) == 0 &&
               journal_snapshot(w->j, w->world, boot_id, WALL_MS + w->play.now_ms, err) == 0;
}

bool play_journal_write(const char *path, struct error *err)
{
        struct writing *w = calloc(1, sizeof(*w));

        if (!w) {
                (void) error_set(err, ENOMEM, "no memory for a play");
                return false;
        }
        w->world = books_world_new();
        bool good = begin(w, path, err);
        for (uint32_t n = 0; good && n < STEPS; n++)
                good = step(w, n, err);
        good = good && journal_commit(w->j, err) == 0;
        journal_close(w->j);
        books_world_free(w->world);
        free(w);
        return good;
}
