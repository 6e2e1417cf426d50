/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * uid → name for people, from /etc/passwd alone, read again when that file changed. Never NSS: a name service may hang,
 * and this thread may not. A uid that is not there is shown as its number.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { USER_NAME_MAX = 33 };

struct user_name {
        uint32_t uid;
        char name[USER_NAME_MAX];
};

struct user_names {
        struct user_name *names; /* sorted by uid */
        size_t n;
        struct timespec changed;
        bool looked;
        uint64_t looked_ms;
        char number[USER_NAME_MAX];
};

void user_names_fini(struct user_names *u);
/* Look whether the file changed, at most once a second: an answer needs no look of its own. */
void user_names_refresh(struct user_names *u, uint64_t now_ms);
/* Good until the next call. */
const char *user_names_get(struct user_names *u, uint32_t uid);
