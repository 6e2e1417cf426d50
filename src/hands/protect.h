/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The programs that are never signalled: lessor's own, what a person logs in with, what their screen hangs on. A program is a
 * file (device and inode) behind one of these paths, and the file must be root's alone to change; what a process calls itself is
 * nobody's proof (security S10): a renamed trainer is not protected, and a renamed Xorg still is.
 */
#include <stdbool.h>
#include <stddef.h>
#include "hands/target.h"

enum {
        PROTECT_MAX = 192,
        PROTECT_EXTRA_MAX = 64, /* of the configuration */
        PROTECT_PATH_SIZE = 256,
};

struct protect_extra {
        size_t n;
        char paths[PROTECT_EXTRA_MAX][PROTECT_PATH_SIZE]; /* absolute */
};

struct protect_list {
        size_t n;
        struct program_id programs[PROTECT_MAX];
        const struct protect_extra *extra; /* borrowed; may be NULL */
        size_t n_own;                      /* how many of the first are lessor's own */
};

/*
 * Looks at all paths now; what is not there, or not a file that only root can change, protects nothing. @own_folder:
 * lessord, lessor-eyes and lessor-warden in it are lessor's own, whoever owns them. Cheap (some 50 stats), so it is done
 * before each decision: an upgraded Xorg is another file from one moment to the next.
 */
void protect_look(struct protect_list *list, const char *own_folder, const struct protect_extra *extra);

/* Is this process one of them? @ret_own: one of lessor's own. */
bool protect_covers(const struct protect_list *list, const struct target *t, bool *ret_own);
