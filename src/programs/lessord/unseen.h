/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which program other users' processes run, asked of the hands: the eyes have no rights to see it, and a process of which it is not known
 * can be neither judged nor approved (design 3.2, 4.7). Of an interpreter they are asked once more, which file its script is, by the
 * command line that the eyes saw. Only what the kernel names comes back, a file's device, inode and path; the core is told of the
 * process once more, with that. The system's lessord only: in one's own session there is nobody else's.
 */
#include <uv.h>
#include "model/process.h"
#include "wire/warden.h"

enum {
        UNSEEN_MAX = 256,         /* that are remembered; of more than that, some are asked about again */
        UNSEEN_AT_ONCE = 32,      /* orders that are out */
        UNSEEN_SOON_MS = 20,      /* the core is to know of it first */
        UNSEEN_AGAIN_MS = 2000,   /* the hands are away, or were asked too often */
        UNSEEN_LATER_MS = 600000, /* they cannot see it either */
};

struct daemon;

struct unseen_one {
        struct identity who; /* pid 0 = free */
        uint64_t order_id;   /* it is asked about; 0 = not now */
        uint64_t again_ms;   /* not before; CLOCK_MONOTONIC */
        bool of_script;      /* and about its script */
};

struct unseen {
        struct unseen_one items[UNSEEN_MAX];
        uint64_t n_orders;
        uv_timer_t timer;
        bool started;
};

void unseen_start(struct daemon *d);
void unseen_stop(struct daemon *d);
/* Somebody may have come of whom the program is not known, or the hands are there again. */
void unseen_wake(struct daemon *d);
/* Will the hands be asked about it? */
bool unseen_asks(const struct daemon *d, const struct process *process);
/* Was this asked by us? Then it is done with. @path: what the program is called. */
bool unseen_answer(struct daemon *d, const struct warden_answer *answer, const char *path);
