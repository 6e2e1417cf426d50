/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the hands must still know after they were restarted: a folder of their own with two files of fixed size.
 *
 *   helpers   the orders that helpers carry out, or have carried out and the brain has not settled
 *   grace     whom a SIGTERM was sent to, and when (hands/policy.h)
 *
 * Both are of one boot: what another boot left is dropped. Everything read from them is checked like a message of a stranger,
 * and proven again (start time, pidfd) before anything is done with it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "hands/policy.h"
#include "wire/warden.h"

enum { BOOK_HELPERS_MAX = 16, BOOK_SLOT_SIZE = 256 };

/* PREPARED: its processes were checkpointed, and it can be carried out now. */
enum book_state { BOOK_FREE, BOOK_RUNNING, BOOK_ENDED, BOOK_PREPARED, BOOK_STATE_N };

/* Written in two: by the warden before the helper may begin, by the helper when it has ended. */
struct book_slot {
        uint32_t state; /* enum book_state */
        uint32_t helper_pid;
        uint64_t helper_start_ticks;
        struct warden_order order;
        struct warden_answer answer; /* when ended */
};
_Static_assert(sizeof(struct book_slot) <= BOOK_SLOT_SIZE, "a slot has its place in the file");

struct book {
        int folder, helpers_fd, grace_fd, lock_fd;
        struct book_slot slots[BOOK_HELPERS_MAX];
        struct grace_table grace;
};

/*
 * Makes the folder (0700) where it is not there. -EPERM: somebody else's, or open to others. -EBUSY: another lessor-warden
 * works in it. The lock goes with this process, not with its helpers.
 */
int book_open(struct book *book, const char *folder, struct error *err);
/* Stores one slot; what cannot be stored is a negative errno, and the order must not be begun. */
int book_store(const struct book *book, size_t i);
/* Reads one slot again: its helper may have ended. */
void book_reread(struct book *book, size_t i);
/* Failing to store only means that after a restart the process has to be asked again. */
void book_store_grace(const struct book *book, const struct grace_entry *entry);
