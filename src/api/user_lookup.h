/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who a user is and in which groups, asked of this machine's name services (NSS). They may take as long as they like (a
 * directory server that is away), so a thread of libuv's asks them and the loop goes on. For the few questions that cannot
 * do without: everything else is shown from /etc/passwd (user_names.h), and who asks has his groups from the kernel.
 */
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum { USER_LOOKUP_NAME_MAX = 64, USER_LOOKUP_GROUPS_MAX = 256, USER_LOOKUPS_MAX = 4 /* at a time */ };

struct user_found {
        bool known; /* a number always is */
        uint32_t uid;
        uint32_t n_groups; /* the first ones, where there are more */
        uint32_t groups[USER_LOOKUP_GROUPS_MAX];
};

/* @found is good until it returns. On the loop. */
typedef void user_lookup_fn(void *ctx, uint64_t token, const struct user_found *found);

/* @name: a name or a uid, at most USER_LOOKUP_NAME_MAX bytes. False: no memory, or so many are under way. The loop does not
 * end before it was answered. */
bool user_lookup_start(uv_loop_t *loop, const char *name, user_lookup_fn *done, void *ctx, uint64_t token);
