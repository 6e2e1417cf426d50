/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/writer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

enum { STACK_BYTES = 256 * 1024 };

enum place {
        PLACE_NONE,    /* no order */
        PLACE_GIVEN,   /* the thread's */
        PLACE_WRITTEN, /* its result waits for the loop */
};

struct writer {
        struct journal *journal;
        writer_done_fn *done;
        void *ctx;
        uv_thread_t thread;
        uv_async_t answered;
        bool busy; /* the loop's own note: an order was given and not yet answered */

        uv_mutex_t lock; /* what follows is shared */
        uv_cond_t changed;
        enum place place;
        enum writer_order order;
        bool ends;
        int r;
        struct error err;
};

static int carry_out(struct writer *w, enum writer_order order, struct error *err)
{
        switch (order) {
        case WRITER_COMMIT:
                return journal_commit(w->journal, err);
        case WRITER_SNAPSHOT:
                return journal_snapshot_write(w->journal, err);
        case WRITER_TIDY:
                return journal_tidy(w->journal, err);
        }
        return error_set(err, EINVAL, "no such order");
}

static void run(void *arg)
{
        struct writer *w = arg;

        uv_mutex_lock(&w->lock);
        for (;;) {
                while (w->place != PLACE_GIVEN && !w->ends)
                        uv_cond_wait(&w->changed, &w->lock);
                if (w->place != PLACE_GIVEN)
                        break;
                enum writer_order order = w->order;
                uv_mutex_unlock(&w->lock);

                struct error err = { 0 };
                int r = carry_out(w, order, &err);

                uv_mutex_lock(&w->lock);
                w->r = r;
                w->err = err;
                w->place = PLACE_WRITTEN;
                uv_mutex_unlock(&w->lock);      /* before anybody is woken, who would find it locked */
                uv_cond_broadcast(&w->changed); /* writer_finish() */
                (void) uv_async_send(&w->answered);
                uv_mutex_lock(&w->lock);
        }
        uv_mutex_unlock(&w->lock);
}

/* Tells the loop, if there is something to tell. */
static void answer(struct writer *w)
{
        uv_mutex_lock(&w->lock);
        if (w->place != PLACE_WRITTEN) { /* told already, by writer_finish() */
                uv_mutex_unlock(&w->lock);
                return;
        }
        enum writer_order order = w->order;
        int r = w->r;
        struct error err = w->err;
        w->place = PLACE_NONE;
        uv_mutex_unlock(&w->lock);

        w->busy = false;
        w->done(w->ctx, order, r, &err);
}

static void on_answered(uv_async_t *async)
{
        answer(async->data);
}

/* Signals are the loop's. */
static int start_thread(struct writer *w)
{
        const uv_thread_options_t options = { .flags = UV_THREAD_HAS_STACK_SIZE, .stack_size = STACK_BYTES };
        sigset_t all, before;

        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &before);
        int r = uv_thread_create_ex(&w->thread, &options, run, w);
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
        return r;
}

int writer_new(struct writer **ret, uv_loop_t *loop, struct journal *journal, writer_done_fn *done, void *ctx,
               struct error *err)
{
        struct writer *w = calloc(1, sizeof(*w));
        if (!w)
                return error_set(err, ENOMEM, "no memory for the journal's writer");

        w->journal = journal;
        w->done = done;
        w->ctx = ctx;
        w->answered.data = w;
        if (uv_mutex_init(&w->lock) != 0) {
                free(w);
                return error_set(err, ENOMEM, "no memory for the journal's writer");
        }
        (void) uv_cond_init(&w->changed);
        int r = uv_async_init(loop, &w->answered, on_answered);
        if (r == 0) {
                uv_unref((uv_handle_t *) &w->answered);
                r = start_thread(w);
                if (r != 0)
                        uv_close((uv_handle_t *) &w->answered, NULL);
        }
        if (r != 0) /* the handle may still be closing: what little there is stays, the daemon ends */
                return error_set(err, -r, "starting the journal's writer: %s", uv_strerror(r));
        *ret = w;
        return 0;
}

void writer_order(struct writer *w, enum writer_order order)
{
        w->busy = true;
        uv_mutex_lock(&w->lock);
        w->order = order;
        w->place = PLACE_GIVEN;
        uv_mutex_unlock(&w->lock);
        uv_cond_broadcast(&w->changed);
}

bool writer_is_busy(const struct writer *w)
{
        return w && w->busy;
}

void writer_finish(struct writer *w)
{
        if (!writer_is_busy(w))
                return;
        uv_mutex_lock(&w->lock);
        while (w->place == PLACE_GIVEN)
                uv_cond_wait(&w->changed, &w->lock);
        uv_mutex_unlock(&w->lock);
        answer(w);
}

void writer_stop(struct writer *w)
{
        if (!w)
                return;
        uv_mutex_lock(&w->lock);
        w->ends = true;
        uv_cond_broadcast(&w->changed);
        uv_mutex_unlock(&w->lock);
        (void) uv_thread_join(&w->thread);
        uv_close((uv_handle_t *) &w->answered, NULL);
}

void writer_free(struct writer *w)
{
        if (!w)
                return;
        uv_cond_destroy(&w->changed);
        uv_mutex_destroy(&w->lock);
        free(w);
}
