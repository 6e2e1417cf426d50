/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is parked, by the records alone (wire/record.h): found in the folders where lessord's hands write them, each compared with
 * the process that it speaks of. Nothing here changes anything.
 */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"
#include "wire/record.h"

enum { RESCUE_FOLDERS_MAX = 2, RESCUE_COMMAND_MAX = 128, RESCUE_WHY_MAX = 400 };

/* How a record and its process fit together. */
enum rescue_standing {
        RESCUE_PARKED,  /* its memory is away, or it is locked, or in between: it can be brought back */
        RESCUE_RUNS,    /* it runs: the record only notes that it was restored once */
        RESCUE_FINAL,   /* the driver failed on it for good */
        RESCUE_BOOT,    /* of another boot: its process ended with that */
        RESCUE_GONE,    /* its process ended */
        RESCUE_OTHER,   /* its pid is another process's by now */
        RESCUE_DAMAGED, /* cannot be read, or is not a file that the folder's owner wrote */
        RESCUE_FOREIGN, /* says it is of another user than it is, or than may write here */
        RESCUE_UNSEEN,  /* who the process is cannot be seen from here */
        RESCUE_STANDING_N,
};

/* Who brings back what is parked there, so that we need not. */
enum rescue_keeper { RESCUE_KEEPER_NONE, RESCUE_KEEPER_LESSORD, RESCUE_KEEPER_WARDEN };

struct rescue_folder {
        char run_dir[PATH_MAX / 2]; /* where lessord's socket is */
        char path[PATH_MAX];        /* run_dir/parked, with the records */
        int fd;                     /* -1: nothing was ever parked there */
        uid_t owner;
        enum rescue_keeper keeper;
        uint32_t warden_pid; /* 0 = none lives */
};

/* What came of bringing one back (rescue_back.h). */
enum rescue_end { RESCUE_NOT_TRIED, RESCUE_BACK, RESCUE_BLOCKED, RESCUE_FAILED, RESCUE_END_N };

struct rescue_item {
        const struct rescue_folder *folder;
        uint32_t pid;
        uint64_t start_ticks;
        struct record record; /* all zero where it cannot be read */
        enum rescue_standing standing;
        char why[RESCUE_WHY_MAX];         /* for people: what is wrong with it, and what to do; "" = nothing is */
        char command[RESCUE_COMMAND_MAX]; /* as ps(1) has it, secrets masked, safe to print; "" = not to be seen */

        bool wanted; /* to be brought back */
        enum rescue_end end;
        char end_words[RESCUE_WHY_MAX];
        uint64_t used_at_most_bytes; /* for its restore */
        uint64_t took_ms;
};

struct rescue {
        struct rescue_folder folders[RESCUE_FOLDERS_MAX];
        size_t n_folders, n_items;
        struct rescue_item *items; /* in the order in which they were parked; of one lease together */
};

/*
 * @dir: the folder that was given to lessord's --dir; NULL: that of LESSOR_SOCKET, else those of this user's session and of the
 * system. 0, also when nothing was ever parked; -EACCES: may not look. What was found is freed by rescue_free().
 */
int rescue_find(struct rescue *ret, const char *dir, struct error *err);
void rescue_free(struct rescue *rescue);

const char *rescue_standing_name(enum rescue_standing standing); /* "parked", "other_boot" … */
const char *rescue_end_name(enum rescue_end end);                /* "back" … */
