/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/writer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { STACK_BYTES = 256 * 1024 };

/* Whose the order and its result are. */
enum place {
        PLACE_NONE,    /* the loop's: there is no order */
        PLACE_GIVEN,   /* the thread's */
        PLACE_WRITTEN, /* the loop's: there is a result */
};

struct writer {
        struct journal *journal;
        writer_done_fn *done;
        void *ctx;
        uv_thread_t thread;
        bool busy; /* the loop's own note: an order was given and not yet answered */

        _Atomic enum place place;
        enum writer_order order;
        int r;
        struct error err;

        uv_sem_t orders; /* to the thread: one for each order, one for the end */
        /* To the loop: an eventfd. A uv_async_t is marked after the loop was woken by it, and the loop spins until it is:
         * where both threads share a CPU, for as long as the thread does not run. */
        int answered_fd;
        uv_poll_t answered;
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

        for (;;) {
                uv_sem_wait(&w->orders);
                if (w->place != PLACE_GIVEN)
                        return; /* the end */
                w->err = (struct error){ 0 };
                w->r = carry_out(w, w->order, &w->err);
                w->place = PLACE_WRITTEN;
                (void) eventfd_write(w->answered_fd, 1);
        }
}

/* Tells the loop, if there is something to tell. */
static void answer(struct writer *w)
{
        if (w->place != PLACE_WRITTEN) /* told already, by writer_finish() */
                return;
        struct error err = w->err;
        w->place = PLACE_NONE;
        w->busy = false;
        w->done(w->ctx, w->order, w->r, &err);
}

static void forget_wakeup(struct writer *w)
{
        eventfd_t n;
        (void) eventfd_read(w->answered_fd, &n);
}

static void on_answered(uv_poll_t *handle, int status, int events)
{
        struct writer *w = handle->data;

        (void) status;
        (void) events;
        forget_wakeup(w);
        answer(w);
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

static int listen_to_thread(struct writer *w, uv_loop_t *loop)
{
        w->answered_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (w->answered_fd < 0)
                return -errno;
        w->answered.data = w;
        int r = uv_poll_init(loop, &w->answered, w->answered_fd);
        if (r == 0)
                r = uv_poll_start(&w->answered, UV_READABLE, on_answered);
        if (r == 0)
                uv_unref((uv_handle_t *) &w->answered);
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
        if (uv_sem_init(&w->orders, 0) != 0) {
                free(w);
                return error_set(err, ENOMEM, "no memory for the journal's writer");
        }
        int r = listen_to_thread(w, loop);
        if (r == 0)
                r = start_thread(w);
        if (r != 0) /* the loop may know the handle: what little there is stays, the daemon ends */
                return error_set(err, -r, "starting the journal's writer: %s", uv_strerror(r));
        *ret = w;
        return 0;
}

void writer_order(struct writer *w, enum writer_order order)
{
        w->busy = true;
        w->order = order;
        w->place = PLACE_GIVEN;
        uv_sem_post(&w->orders);
}

bool writer_is_busy(const struct writer *w)
{
        return w && w->busy;
}

void writer_finish(struct writer *w)
{
        if (!writer_is_busy(w))
                return;
        struct pollfd answered = { .fd = w->answered_fd, .events = POLLIN };
        while (w->place == PLACE_GIVEN) {
                (void) poll(&answered, 1, -1);
                forget_wakeup(w);
        }
        answer(w);
}

void writer_stop(struct writer *w)
{
        if (!w)
                return;
        uv_sem_post(&w->orders);
        (void) uv_thread_join(&w->thread);
        uv_close((uv_handle_t *) &w->answered, NULL);
}

void writer_free(struct writer *w)
{
        if (!w)
                return;
        (void) close(w->answered_fd);
        uv_sem_destroy(&w->orders);
        free(w);
}
