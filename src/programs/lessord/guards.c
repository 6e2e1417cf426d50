/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/guards.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "base/number.h"

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
        guards->looked = true;
        guards->looked_ms = now_ms;
}

enum process_guard guards_of(const struct guards *guards, const struct eyes_process *process, enum process_guard known)
{
        static const enum process_guard of_kind[] = { [PROTECT_KIND_NONE] = GUARD_NONE,
                                                      [PROTECT_KIND_OWN] = GUARD_LESSOR,
                                                      [PROTECT_KIND_WAY_IN] = GUARD_SSHD,
                                                      [PROTECT_KIND_OTHER] = GUARD_DISPLAY };

        if (known != GUARD_NONE || !process->exe_known)
                return known;
        return of_kind[protect_kind_of(&guards->list, (struct program_id){ process->exe_dev, process->exe_inode })];
}
