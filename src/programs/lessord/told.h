/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What was last said about each living lease: the id of its last action (its `rev`) and the reason. A cache of the
 * journal, in a table beside the world's leases; never ahead of a commit.
 */
#include "api/host.h"
#include "model/limits.h"

struct told {
        uint64_t lease_id[LEASES_MAX]; /* by row of the world's lease table */
        struct api_told what[LEASES_MAX];
};

void told_action(struct told *t, const struct world *world, const struct action *action);
/* A lease found in the journal at the start. */
void told_put(struct told *t, const struct world *world, uint64_t lease_id, const struct api_told *what);
bool told_get(const struct told *t, const struct world *world, uint64_t lease_id, struct api_told *ret);
