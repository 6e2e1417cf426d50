/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/study.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "arbiter/arbiter.h"
#include "programs/lessord/paths.h"
#include "store/journal.h"

enum { BUSY_MS = 2000 };

struct study {
        uv_work_t work;
        char journal[sizeof(((struct paths *) 0)->journal)];
        struct study_moment now;
        struct api_studied studied;
        api_study_fn *done;
        void *ctx;
        uint64_t token;
};

static unsigned n_under_way; /* the loop's */

static void step(void *ctx, struct world *world, const struct input *input, struct actions *out)
{
        (void) ctx;
        arbiter_step(world, input, out);
}

/* On a thread of libuv's: nothing but this question is touched. */
static void read_journal(uv_work_t *work)
{
        const struct journal_options options = { .read_only = true, .busy_ms = BUSY_MS };
        struct study *s = work->data;
        struct api_studied *studied = &s->studied;
        struct journal *j = NULL;

        studied->r = journal_open(&j, s->journal, &options, &studied->err);
        if (studied->r == 0 && studied->study.kind == API_STUDY_USAGE) {
                const struct account_options since = { .since_wall_ms = studied->study.since_wall_ms,
                                                       .until_now_ms = s->now.now_ms,
                                                       .until_wall_ms = s->now.wall_ms };
                studied->r = account_read(j, &since, step, NULL, &studied->account, &studied->err);
        } else if (studied->r == 0 && studied->study.kind == API_STUDY_AUDIT) {
                studied->r = audited_read(j, &studied->study.look, &studied->audited, &studied->err);
        } else if (studied->r == 0) {
                studied->r = story_read(j, &studied->study.subject, &studied->story, &studied->err);
        }
        journal_close(j);
}

static void on_read(uv_work_t *work, int status)
{
        struct study *s = work->data;

        n_under_way--;
        if (status != 0)
                s->studied.r = error_set(&s->studied.err, ECANCELED, "lessord is being stopped");
        s->done(s->ctx, s->token, &s->studied);
        audited_fini(&s->studied.audited);
        story_fini(&s->studied.story);
        account_fini(&s->studied.account);
        free(s);
}

bool study_start(uv_loop_t *loop, const char *journal, const char *boot_id, const struct api_study *study,
                 const struct study_moment *now, api_study_fn *done, void *ctx, uint64_t token)
{
        struct study *s = n_under_way < STUDIES_MAX ? calloc(1, sizeof(*s)) : NULL;

        if (!s)
                return false;
        s->work.data = s;
        s->now = *now;
        s->studied.study = *study;
        (void) snprintf(s->studied.study.look.boot_id, sizeof(s->studied.study.look.boot_id), "%s", boot_id);
        s->done = done;
        s->ctx = ctx;
        s->token = token;
        (void) snprintf(s->journal, sizeof(s->journal), "%s", journal);
        if (uv_queue_work(loop, &s->work, read_journal, on_read) != 0) {
                free(s);
                return false;
        }
        n_under_way++;
        return true;
}
