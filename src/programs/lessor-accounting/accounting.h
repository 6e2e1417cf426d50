/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kernel's process accounting (acct(2)), written for lessor-eyes: who was whose child, also of those that ended before
 * anybody looked (failures F54). Optional: it is on while this program runs.
 *
 * A process of its own keeps it, with CAP_SYS_PACCT and nothing else. It ends when whoever started it does, by SIGKILL too, and switches
 * the accounting off: nothing is left that writes and that nobody empties.
 *
 *      FOLDER/records     what the kernel writes to, root's, to be read by one group
 *      FOLDER/records.1   what it wrote to before: records follows it without a gap
 *
 * There is one file for the whole machine (for a pid namespace), so accounting that somebody else keeps is left alone: not begun
 * beside it, not taken back when somebody takes it over.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/error.h"

enum {
        ACCOUNTING_FILE_MAX = 4 * 1024 * 1024, /* 65,536 processes; then the next file is begun */
        ACCOUNTING_LOOK_MS = 10000,
};

struct accounting_options {
        const char *folder;      /* made if need be */
        gid_t readers;           /* -1: nobody but us */
        uint32_t file_max_bytes; /* 0: ACCOUNTING_FILE_MAX */
        uint32_t look_ms;        /* 0: ACCOUNTING_LOOK_MS */
};

struct accounting {
        int alive; /* whose closing ends it, also by the end of this process */
        int gone;  /* readable (its end) once it has ended */
};

/*
 * With one thread, and all rights of root. Returns once it is known whether it is on. -EBUSY: somebody else keeps accounting, in a file that is named. -EPERM, -ENOSYS: the
 * kernel does not let us.
 */
int accounting_start(const struct accounting_options *options, struct accounting *ret, struct error *err);
