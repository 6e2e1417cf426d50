/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Carrying orders out: hold the target, check, act; what takes time goes to a helper process that outlives this one. The helper
 * begins only after its record is stored, so there is never a helper that no record knows.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "hands/book.h"
#include "hands/policy.h"
#include "wire/warden.h"

struct carry {
        const struct settings *settings;
        struct book book;
        char own_folder[4096];               /* where our program lies, with those of the brain and the eyes */
        uint32_t brain_pid;                  /* of the peer; 0 = nobody */
        int cgroup_root;                     /* -1 = no cgroup v2 */
        int parked;                          /* the folder of records (wire/parked.h); -1 = none */
        int checkpointer;                    /* hands/checkpointer.h; -1 = cannot park */
        int helper_pidfds[BOOK_HELPERS_MAX]; /* -1 = none running in that slot */
        /* The caller's; here so that helpers let go of them: a dead warden must look dead. -1 = none */
        int peer, listener;
        struct rate rate, park_rate;
        uint32_t n_refused_for_rate; /* not logged one by one */
        struct protect_list protect;
        char path[WARDEN_PATH_SIZE]; /* of the message that is being answered, and of its answer */
};

enum carry_said { CARRY_ANSWERED, CARRY_HELD };

struct carry_where {
        const char *folder; /* hands/book.h */
        const char *parked; /* wire/parked.h */
        gid_t reader;       /* whose records are to read; -1 = ours */
        bool system;
};

/*
 * Opens the folders, starts the checkpointer where there is one, and takes up the helpers of before: what ended without a word is lost,
 * and said so. A folder of records that is not safe is a failure; one that cannot be there (its parent is missing) is not.
 */
int carry_open(struct carry *c, const struct settings *settings, const struct carry_where *where, struct error *err);
/* HELD: a helper does it, and the answer comes with carry_helper_ended(). */
enum carry_said carry_order(struct carry *c, const struct warden_order *order, struct warden_answer *ret);
/* The pidfd of slot @i became readable, or nobody works on it any more. The slot is ENDED afterwards, its answer in it, or FREE: another
 * helper goes on with it. */
void carry_helper_ended(struct carry *c, size_t i);
/* Nobody is there who knows about those that are held. */
void carry_let_go(struct carry *c);
/* The brain has written it down. */
void carry_settled(struct carry *c, uint64_t order_id);
void carry_state(const struct carry *c, struct warden_state *ret);
