/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the verbs of `tenants` have in common: which files are read. */
#include "programs/lessor/verb.h"
#include "tenants/tenants.h"

/*
 * --json, --files DIR and up to @max words. -1: go on, with *ret_set the caller's (tenants_fini); else the exit code, words
 * are printed.
 */
struct tenants_asked {
        struct tenants set;
        const char *words[2];
        size_t n_words;
        bool json, all;
};
int tenants_options_read(const struct verb *verb, int argc, char **argv, size_t min, size_t max,
                         struct tenants_asked *ret);
enum { TENANTS_NOT_GOOD = 78 };
