/* SPDX-License-Identifier: Apache-2.0 */
#include "scene_journal.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "books.h"

struct scene_record {
        char dir[48], path[64];
        struct journal *j;
};

static const char boot_id[] = "6e2a0d5c-7b1f-4b7e-9d43-0c2f5a1b8e77";

static uint64_t wall_ms(const struct scene *s)
{
        return SCENE_WALL_MS + s->now_ms - SCENE_START_MS;
}

static void recorded(struct scene *s, const struct input *input)
{
        struct scene_record *r = s->record;
        struct error err = { 0 };

        if (input->kind == INPUT_TICK && s->out->n == 0)
                return;
        if (journal_append(r->j, input, s->out, wall_ms(s), &err) < 0)
                fail_msg("%s", err.msg);
}

void scene_segment(struct scene *s)
{
        struct scene_record *r = s->record;
        struct error err = { 0 };

        if (journal_commit(r->j, &err) < 0 || journal_snapshot(r->j, s->world, boot_id, wall_ms(s), &err) < 0)
                fail_msg("%s", err.msg);
}

static void real_step(void *ctx, struct world *world, const struct input *input, struct actions *out)
{
        (void) ctx;
        arbiter_step(world, input, out);
}

void scene_record(struct scene *s)
{
        const struct journal_options options = { .keep_segments = 100 };
        struct scene_record *r = calloc(1, sizeof(*r));
        struct world *nobody = books_world_new();
        struct journal_restored restored;
        struct error err = { 0 };

        assert_non_null(r);
        (void) snprintf(r->dir, sizeof(r->dir), "/tmp/lessor-scene-XXXXXX");
        assert_non_null(mkdtemp(r->dir));
        (void) snprintf(r->path, sizeof(r->path), "%s/journal.db", r->dir);
        if (journal_open(&r->j, r->path, &options, &err) < 0 ||
            journal_restore(r->j, nobody, real_step, NULL, &restored, &err) < 0)
                fail_msg("%s", err.msg);
        books_world_free(nobody);
        s->record = r;
        scene_segment(s);
        s->recorded = recorded;
}

const char *scene_journal_path(const struct scene *s)
{
        return ((const struct scene_record *) s->record)->path;
}

struct journal *scene_read_journal(struct scene *s)
{
        const struct journal_options options = { .read_only = true };
        struct scene_record *r = s->record;
        struct journal *j = NULL;
        struct error err = { 0 };

        if (journal_commit(r->j, &err) < 0 || journal_open(&j, r->path, &options, &err) < 0)
                fail_msg("%s", err.msg);
        return j;
}

void scene_record_end(struct scene *s)
{
        static const char *const suffixes[] = { "", "-wal", "-shm" };
        struct scene_record *r = s->record;
        char path[80];

        journal_close(r->j);
        for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
                (void) snprintf(path, sizeof(path), "%s%s", r->path, suffixes[i]);
                (void) unlink(path);
        }
        (void) rmdir(r->dir);
        free(r);
        s->record = NULL;
        s->recorded = NULL;
}
