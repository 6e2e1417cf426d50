/* SPDX-License-Identifier: Apache-2.0 */
#include "hands/protect.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const own_names[] = { "lessor-warden", "lessord", "lessor-eyes", "lessor-checkpoint" };

/* Where Debian, Fedora, Arch and SUSE have them. */
/* clang-format off */
static const char *const always[] = {
#include "hands/protected_way_in.inc"
#include "hands/protected.inc"
};
/* clang-format on */
enum { ALWAYS_N = sizeof(always) / sizeof(always[0]), OWN_N = sizeof(own_names) / sizeof(own_names[0]) };
_Static_assert(ALWAYS_N + OWN_N + PROTECT_EXTRA_MAX <= PROTECT_MAX, "the list holds all that may be protected");

static void add(struct protect_list *list, const char *path, bool whoever_owns_it)
{
        struct stat st;

        if (list->n == PROTECT_MAX || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
                return;
        if (!whoever_owns_it && (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0))
                return;
        list->programs[list->n++] = (struct program_id){ st.st_dev, st.st_ino };
}

void protect_look(struct protect_list *list, const char *own_folder, const struct protect_extra *extra)
{
        char path[4096];

        list->n = 0;
        list->extra = extra;
        add(list, "/proc/self/exe", true); /* also when our own file was replaced by an upgrade */
        for (size_t i = 0; i < OWN_N; i++)
                if (snprintf(path, sizeof(path), "%s/%s", own_folder, own_names[i]) < (int) sizeof(path))
                        add(list, path, true);
        list->n_own = list->n;
        for (size_t i = 0; i < ALWAYS_N; i++)
                add(list, always[i], false);
        for (size_t i = 0; extra && i < extra->n; i++)
                add(list, extra->paths[i], false);
}

static bool is_path_of(const struct protect_list *list, const char *path, size_t n)
{
        for (size_t i = 0; i < ALWAYS_N; i++)
                if (strlen(always[i]) == n && memcmp(always[i], path, n) == 0)
                        return true;
        for (size_t i = 0; list->extra && i < list->extra->n; i++)
                if (strlen(list->extra->paths[i]) == n && memcmp(list->extra->paths[i], path, n) == 0)
                        return true;
        return false;
}

/*
 * An upgrade took the file away while the program runs on: no path leads to its inode any more. The kernel still says what
 * it was called, and that it was root's: only root can have put a file of root's there and removed it.
 */
static bool was_removed(const struct protect_list *list, const struct target *t)
{
        static const char suffix[] = " (deleted)";
        size_t n = strlen(t->program_path), n_suffix = sizeof(suffix) - 1;

        return t->program_removed && n > n_suffix && strcmp(t->program_path + n - n_suffix, suffix) == 0 &&
               is_path_of(list, t->program_path, n - n_suffix);
}

bool protect_covers(const struct protect_list *list, const struct target *t, bool *ret_own)
{
        *ret_own = false;
        if (!t->program_known)
                return false;
        for (size_t i = 0; i < list->n; i++) {
                bool any = t->program.inode == 0 && t->program.dev == list->programs[i].dev;
                if (!any && !program_id_equal(list->programs[i], t->program))
                        continue;
                *ret_own = i < list->n_own;
                return true;
        }
        return was_removed(list, t);
}
