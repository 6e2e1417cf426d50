/* SPDX-License-Identifier: Apache-2.0 */
#include "trial/written.h"

#include <errno.h>
#include <stdlib.h>
#include "store/journal.h"
#include "store/walk.h"

#define WRITTEN_WALL_MS UINT64_C(1700000000000) /* of world time 0: the same life is the same file */

struct written {
        struct journal *j;
        struct error err; /* the first one; nothing is written after it */
        bool failed;
};

static const char boot_id[] = "3d1c5b0e-9f1a-4c55-8a54-5e2f0d6b7a11";

/* Nothing is there to be decided again. */
static void no_step(void *ctx, struct world *world, const struct input *input, struct actions *out)
{
        (void) ctx;
        (void) world;
        (void) input;
        out->n = 0;
}

struct written *written_new(const char *path, struct error *err)
{
        const struct journal_options options = { .keep_segments = 1000000, .keep_events = 1000000 };
        struct written *w = calloc(1, sizeof(*w));
        struct world *nobody = walk_world_new();
        struct journal_restored restored = { 0 };
        int r = -1;

        if (!w || !nobody)
                (void) error_set(err, ENOMEM, "no memory for a journal");
        else
                r = journal_open(&w->j, path, &options, err);
        if (r == 0)
                r = journal_restore(w->j, nobody, no_step, NULL, &restored, err);
        if (r == 0 && !restored.fresh)
                r = error_set(err, EEXIST, "%s is there already", path);
        walk_world_free(nobody);
        if (r == 0)
                return w;
        if (w)
                journal_close(w->j);
        free(w);
        return NULL;
}

void written_segment(struct written *w, const struct world *world)
{
        if (!w->failed && (journal_commit(w->j, &w->err) < 0 ||
                           journal_snapshot(w->j, world, boot_id, WRITTEN_WALL_MS + world->now_ms, &w->err) < 0))
                w->failed = true;
}

void written_record(struct written *w, const struct input *input, const struct actions *actions)
{
        if (!w->failed && journal_append(w->j, input, actions, WRITTEN_WALL_MS + input->now_ms, &w->err) < 0)
                w->failed = true;
}

bool written_end(struct written *w, struct error *err)
{
        if (!w)
                return true;
        if (!w->failed)
                w->failed = journal_commit(w->j, &w->err) < 0;
        bool good = !w->failed;
        if (!good && err)
                *err = w->err;
        journal_close(w->j);
        free(w);
        return good;
}
