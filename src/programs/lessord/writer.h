/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The thread that waits for the disk, so that the loop never does (a commit can take 75 ms, a held lock seconds).
 *
 * The journal is lent: while writer_is_busy() it is the thread's, and nobody else may touch it; otherwise it is the loop's,
 * and the thread sleeps. One order at a time, each answered once by @done on the loop. What an order needs is in the
 * journal's memory before it is given (journal_append, journal_snapshot_prepare), so no world is read over there.
 *
 *              writer_order()                        the disk has answered
 *         IDLE ---------------> BUSY (the thread's) ------------------------> IDLE, then done(order, r, err)
 *
 * After a failure the journal is the loop's again, and turn.c decides: throw the batch away, read the world again, ask with
 * a snapshot whether the disk is back. Here nothing is tried twice.
 */
#include <stdbool.h>
#include <uv.h>
#include "base/error.h"
#include "store/journal.h"

enum writer_order {
        WRITER_COMMIT,   /* journal_commit() */
        WRITER_SNAPSHOT, /* journal_snapshot_write() */
        WRITER_TIDY,     /* journal_tidy() */
};

struct writer;

typedef void writer_done_fn(void *ctx, enum writer_order order, int r, const struct error *err);

/* @journal stays the caller's and must outlive the writer. */
int writer_new(struct writer **ret, uv_loop_t *loop, struct journal *journal, writer_done_fn *done, void *ctx,
               struct error *err);
/* Not while busy. */
void writer_order(struct writer *w, enum writer_order order);
bool writer_is_busy(const struct writer *w); /* false for NULL */
/* Waits for what is in flight and answers it: for the end, when the loop runs no more. */
void writer_finish(struct writer *w);
/* Ends the thread and closes its handle; run the loop once more, then writer_free(). Not while busy. NULL is fine. */
void writer_stop(struct writer *w);
void writer_free(struct writer *w);
