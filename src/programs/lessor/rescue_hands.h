/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The calls of the driver that park and thaw, made without a daemon by the same program that makes them for lessor-warden:
 * lessor-checkpoint (hands/checkpointer.h), with this user's own rights. Each order is carried out by a helper that outlives us:
 * a call of the driver is never interrupted.
 */
#include "base/error.h"
#include "hands/book.h"
#include "wire/warden.h"

struct rescue_hands {
        struct book book; /* in memory only: nobody takes up what we leave, the records say how things stand */
        int sock;         /* to lessor-checkpoint; -1 = closed */
        int helpers[BOOK_HELPERS_MAX]; /* pidfds; -1 = none */
        uint64_t last_id;
};

/* @parked: the folder of records (wire/parked.h), still the caller's. -ENOENT: there is no lessor-checkpoint. */
int rescue_hands_open(struct rescue_hands *h, int parked, struct error *err);
/* What is still being done goes on. */
void rescue_hands_close(struct rescue_hands *h);

/* Begins an order whose verb parks; its id is given here. Who may be touched was checked by the caller, and is again by the helper. */
int rescue_hands_begin(struct rescue_hands *h, const struct warden_order *order, size_t *ret_slot, struct error *err);
/* What came of it; -ETIMEDOUT: not yet. @wait_ms < 0: as long as it takes. */
int rescue_hands_wait(struct rescue_hands *h, size_t slot, int wait_ms, struct warden_answer *ret);
