/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/guards.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "base/number.h"

/* clang-format off */
static const char *const way_in[] = {
#include "hands/protected_way_in.inc"
};
/* clang-format on */
enum { WAY_IN_N = sizeof(way_in) / sizeof(way_in[0]) };
_Static_assert((size_t) WAY_IN_N <= GUARDS_WAY_IN_MAX, "there is room for all of them");

void guards_look(struct guards *guards, const char *helper, uint64_t now_ms)
{
        char folder[PATH_MAX];

        if (guards->looked && u64_sub0(now_ms, guards->looked_ms) < GUARDS_KEPT_MS)
                return;
        const char *slash = strrchr(helper, '/');
        size_t n = slash ? (size_t) (slash - helper) : 0;
        if (n >= sizeof(folder))
                n = 0;
        (void) snprintf(folder, sizeof(folder), "%.*s", (int) n, helper);
        protect_look(&guards->list, folder, NULL);
        guards->n_way_in = 0;
        for (size_t i = 0; i < WAY_IN_N; i++) {
                struct stat st;
                if (stat(way_in[i], &st) == 0)
                        guards->way_in[guards->n_way_in++] = (struct program_id){ st.st_dev, st.st_ino };
        }
        guards->looked = true;
        guards->looked_ms = now_ms;
}

enum process_guard guards_of(const struct guards *guards, const struct eyes_process *process, enum process_guard known)
{
        const struct program_id program = { process->exe_dev, process->exe_inode };
        const struct protect_list *list = &guards->list;
        size_t at = 0;

        if (known != GUARD_NONE || !process->exe_known || program.inode == 0)
                return known;
        while (at < list->n && !program_id_equal(list->programs[at], program))
                at++;
        if (at == list->n)
                return GUARD_NONE;
        if (at < list->n_own)
                return GUARD_LESSOR;
        for (size_t i = 0; i < guards->n_way_in; i++)
                if (program_id_equal(guards->way_in[i], program))
                        return GUARD_SSHD;
        return GUARD_DISPLAY;
}
