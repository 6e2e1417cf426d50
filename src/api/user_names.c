/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "api/user_names.h"
#include "base/escape.h"

enum {
        USER_NAMES_MAX = 65536, /* a bigger passwd is somebody's mistake; the rest shows as numbers */
        LOOK_MS = 1000,
};

static int by_uid(const void *a, const void *b)
{
        uint32_t x = ((const struct user_name *) a)->uid, y = ((const struct user_name *) b)->uid;
        return x < y ? -1 : x > y;
}

static void forget(struct user_names *u)
{
        free(u->names);
        u->names = NULL;
        u->n = 0;
}

void user_names_fini(struct user_names *u)
{
        forget(u);
        *u = (struct user_names){ 0 };
}

void user_names_refresh(struct user_names *u, uint64_t now_ms)
{
        struct stat st;

        if (u->looked && now_ms - u->looked_ms < LOOK_MS)
                return;
        u->looked = true;
        u->looked_ms = now_ms;
        if (stat("/etc/passwd", &st) < 0)
                return;
        if (u->changed.tv_sec == st.st_mtim.tv_sec && u->changed.tv_nsec == st.st_mtim.tv_nsec)
                return;

        FILE *f = fopen("/etc/passwd", "re");
        if (!f)
                return;
        forget(u);
        u->changed = st.st_mtim;

        size_t cap = 0;
        for (struct passwd *p; u->n < USER_NAMES_MAX && (p = fgetpwent(f));) {
                if (u->n == cap) {
                        size_t more = cap ? cap * 2 : 64;
                        void *grown = reallocarray(u->names, more, sizeof(*u->names));
                        if (!grown)
                                break;
                        u->names = grown;
                        cap = more;
                }
                struct user_name *row = &u->names[u->n++];
                row->uid = p->pw_uid;
                text_escape(p->pw_name, strlen(p->pw_name), row->name, sizeof(row->name));
        }
        (void) fclose(f);
        if (u->n > 0)
                qsort(u->names, u->n, sizeof(*u->names), by_uid);
}

const char *user_names_get(struct user_names *u, uint32_t uid)
{
        struct user_name key = { .uid = uid };
        const struct user_name *found = u->n ? bsearch(&key, u->names, u->n, sizeof(key), by_uid) : NULL;

        if (found)
                return found->name;
        (void) snprintf(u->number, sizeof(u->number), "%" PRIu32, uid);
        return u->number;
}
