/* SPDX-License-Identifier: Apache-2.0 */
#include "api/user_lookup.h"
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/number.h"

enum { PASSWD_BYTES = 16 * 1024 };

struct user_lookup {
        uv_work_t work;
        user_lookup_fn *done;
        void *ctx;
        uint64_t token;
        char name[USER_LOOKUP_NAME_MAX + 1];
        struct user_found found;
};

static unsigned n_under_way; /* the loop's */

/* On a thread of libuv's: nothing but this question is touched. */
static void look(uv_work_t *work)
{
        struct user_lookup *q = work->data;
        struct user_found *found = &q->found;
        struct passwd entry, *pw = NULL;
        char text[PASSWD_BYTES];
        uint64_t uid;
        int n = USER_LOOKUP_GROUPS_MAX;

        if (parse_u64("user", q->name, 0, UINT32_MAX - 1, &uid, NULL) == 0) {
                found->known = true;
                found->uid = (uint32_t) uid;
                (void) getpwuid_r(found->uid, &entry, text, sizeof(text), &pw);
        } else {
                (void) getpwnam_r(q->name, &entry, text, sizeof(text), &pw);
        }
        if (!pw)
                return;
        found->known = true;
        found->uid = pw->pw_uid;
        if (getgrouplist(pw->pw_name, pw->pw_gid, found->groups, &n) < 0)
                n = USER_LOOKUP_GROUPS_MAX;
        found->n_groups = (uint32_t) n;
}

static void on_looked(uv_work_t *work, int status)
{
        struct user_lookup *q = work->data;

        (void) status;
        n_under_way--;
        q->done(q->ctx, q->token, &q->found);
        free(q);
}

bool user_lookup_start(uv_loop_t *loop, const char *name, user_lookup_fn *done, void *ctx, uint64_t token)
{
        struct user_lookup *q = n_under_way < USER_LOOKUPS_MAX ? calloc(1, sizeof(*q)) : NULL;

        if (!q)
                return false;
        q->work.data = q;
        q->done = done;
        q->ctx = ctx;
        q->token = token;
        (void) snprintf(q->name, sizeof(q->name), "%s", name);
        if (uv_queue_work(loop, &q->work, look, on_looked) != 0) {
                free(q);
                return false;
        }
        n_under_way++;
        return true;
}
