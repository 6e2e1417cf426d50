/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * All tenants that are known: files laid over each other in the order in which they are added, key by key, the later one wins.
 * What of a set failed is no set: it is to be thrown away (tenants_fini).
 */
#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"
#include "tenants/tenant.h"

enum { TENANTS_FILES_MAX = 200, TENANTS_FILE_BYTES_MAX = 1024 * 1024, TENANTS_PATH_MAX = 320 };

struct tenants_file {
        char name[TENANTS_PATH_MAX]; /* as it is named to people */
        bool shipped;                /* came with lessor */
        json_t *document;
};

struct tenants {
        uint32_t n, cap;
        struct tenant *list; /* by name, once settled */
        uint32_t n_files;
        struct tenants_file *files;
};

void tenants_fini(struct tenants *set); /* fine on a zeroed one, and twice */
/* One file: {"tenants": {NAME: {…}}}. -EINVAL with file, line, path of the field, what was given, what is allowed, the cure. */
int tenants_add_text(struct tenants *set, const char *name, const char *text, size_t n, bool shipped,
                     struct error *err);
/* What only the whole shows: each has rules, and each role that is named is one of them. */
int tenants_settle(struct tenants *set, struct error *err);
const struct tenant *tenants_find(const struct tenants *set, const char *name);
/* A tenant as a file would have it: what each key says, whichever file that is from. NULL: no memory. */
json_t *tenants_definition(const struct tenants *set, const struct tenant *t);

/* ---- load.c ---- */

/* Where files lie; each may be missing, or "". Folders: what ends with .json, in the order of the names. */
struct tenants_places {
        char shipped[TENANTS_PATH_MAX]; /* folder */
        char folder[TENANTS_PATH_MAX];  /* tenants.d of an administrator */
        char file[TENANTS_PATH_MAX];    /* tenants.json of an administrator: the last word */
};

/* The folder that came with the program that runs, beside it: "" when there is none. */
void tenants_find_shipped(char ret[TENANTS_PATH_MAX]);
/* All of them, settled, or nothing (@ret is empty then). */
int tenants_load(const struct tenants_places *places, struct tenants *ret, struct error *err);
/* One file, added; -ENOENT when it is not there. */
int tenants_add_file(struct tenants *set, const char *path, bool shipped, struct error *err);
