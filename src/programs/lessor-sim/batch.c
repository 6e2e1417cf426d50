/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-sim/batch.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 256, BAR_COLUMNS = 30, SHOW_EVERY_MS = 100 };

struct crew {
        const struct batch *batch;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        size_t next, done;
        size_t failed_piece; /* the lowest that failed */
        int failed;          /* its code; 0: none has */
        struct error err;
};

static void *worker(void *argument)
{
        struct crew *c = argument;

        (void) pthread_mutex_lock(&c->lock);
        while (c->next < c->batch->n && c->failed == 0) {
                size_t piece = c->next++;
                struct error err = { 0 };
                (void) pthread_mutex_unlock(&c->lock);
                int r = c->batch->work(c->batch->context, piece, &err);
                (void) pthread_mutex_lock(&c->lock);
                c->done++;
                if (r < 0 && (c->failed == 0 || piece < c->failed_piece)) {
                        c->failed = r;
                        c->failed_piece = piece;
                        c->err = err;
                }
                (void) pthread_cond_signal(&c->changed);
        }
        (void) pthread_mutex_unlock(&c->lock);
        return NULL;
}

static unsigned cpus(void)
{
        cpu_set_t set;

        if (sched_getaffinity(0, sizeof(set), &set) == 0)
                return (unsigned) CPU_COUNT(&set);
        return 1;
}

static bool shows_progress(const struct batch *batch)
{
        const char *term = getenv("TERM");
        return batch->progress && isatty(STDERR_FILENO) == 1 && term && strcmp(term, "dumb") != 0;
}

static void show(const struct batch *batch, size_t done)
{
        char bar[BAR_COLUMNS + 1];
        size_t full = batch->n == 0 ? BAR_COLUMNS : done * BAR_COLUMNS / batch->n;

        memset(bar, '.', BAR_COLUMNS);
        memset(bar, '#', full);
        bar[BAR_COLUMNS] = '\0';
        (void) fprintf(stderr, "\r%s: [%s] %zu of %zu\033[K", batch->progress, bar, done, batch->n);
}

static void wait_and_show(struct crew *c, bool shown)
{
        size_t last = SIZE_MAX;

        (void) pthread_mutex_lock(&c->lock);
        while (c->done < c->batch->n && c->failed == 0) {
                struct timespec until;
                if (shown && c->done != last)
                        show(c->batch, last = c->done);
                (void) clock_gettime(CLOCK_REALTIME, &until);
                until.tv_nsec += SHOW_EVERY_MS * 1000000L;
                if (until.tv_nsec >= 1000000000L) {
                        until.tv_nsec -= 1000000000L;
                        until.tv_sec++;
                }
                if (shown)
                        (void) pthread_cond_timedwait(&c->changed, &c->lock, &until);
                else
                        (void) pthread_cond_wait(&c->changed, &c->lock);
        }
        (void) pthread_mutex_unlock(&c->lock);
        if (shown)
                (void) fputs("\r\033[K", stderr);
}

int batch_run(const struct batch *batch, struct error *err)
{
        struct crew c = { .batch = batch, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
        pthread_t threads[THREADS_MAX];
        unsigned wanted = batch->threads == 0 ? cpus() : batch->threads, n = 0;

        if (wanted > THREADS_MAX)
                wanted = THREADS_MAX;
        if (wanted > batch->n)
                wanted = (unsigned) batch->n;
        while (n < wanted && pthread_create(&threads[n], NULL, worker, &c) == 0)
                n++;
        if (n == 0)
                (void) worker(&c); /* no thread to be had: then by ourselves */
        wait_and_show(&c, shows_progress(batch));
        for (unsigned i = 0; i < n; i++)
                (void) pthread_join(threads[i], NULL);
        if (c.failed < 0 && err)
                *err = c.err;
        return c.failed;
}
