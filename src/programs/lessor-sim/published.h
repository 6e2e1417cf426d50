/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The figures that the authors published for their runs (Weng and others, USENIX ATC 2023), as a table of means over their ten
 * seeds: trace,policy,arrived_pct,n,alloc_mean,…
 */
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

enum { PUBLISHED_NAME_MAX = 32, PUBLISHED_TRACES_MAX = 64, PUBLISHED_POLICIES = 6 };

struct published_mean {
        char trace[PUBLISHED_NAME_MAX];
        size_t policy; /* of published_policies */
        uint32_t arrived_pct;
        double alloc_pct;
};

struct published {
        struct published_mean *means;
        size_t n;
        char traces[PUBLISHED_TRACES_MAX][PUBLISHED_NAME_MAX];
        size_t n_traces;
};

struct published_policy {
        const char *theirs, *ours;
        double tolerance; /* points that our mean may be off */
};
extern const struct published_policy published_policies[PUBLISHED_POLICIES];

/* Policies and columns that are not known are passed over. The caller calls published_fini(). */
int published_read(struct published *published, const char *path, struct error *err);
void published_fini(struct published *published);
/* NULL: nothing was published for that. */
const struct published_mean *published_find(const struct published *published, const char *trace, size_t policy,
                                            uint32_t arrived_pct);
