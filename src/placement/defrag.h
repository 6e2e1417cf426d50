/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Room for a gang that finds none although enough is free: which jobs would have to move where, and whether that is worth it.
 * For each domain that could hold the gang, movable jobs leave it, cheapest first, until the gang fits; then each must find
 * another place in the same trial. Of the domains the cheapest counts. A plan is reversible moves only; nobody is ended.
 *
 * That is a search with bounds: no plan does not mean that there is none.
 */
#include "placement/gang.h"

enum {
        DEFRAG_MARGIN_PERCENT = 150, /* what is gained must be more than so much of what is lost */
        DEFRAG_DOMAINS_MAX = 256,    /* looked at */
};

struct defrag_job {
        const struct gang *gang;
        const struct gang_member *members; /* where it is */
        uint32_t n;
        uint64_t loss_gpu_ms; /* of moving all of it; move.h */
        bool movable;         /* past its immunity, not moved lately, not pinned */
        /* out: */
        bool moves;
        struct gang_member *to; /* room for n: where to, once all that move have left and the gang is there */
};

struct defrag {
        struct cluster *cluster;
        const struct topology *topology;
        struct cluster trial;
        struct gang_placer placer; /* on trial */
        uint32_t *order;           /* of jobs, the cheapest for what it frees first */
        uint32_t jobs_max;
        bool *leaves;
};

/* For at most @jobs. False: the arena was too small, or only counts. */
bool defrag_init(struct defrag *defrag, struct cluster *cluster, const struct topology *topology, uint32_t jobs,
                 struct arena *arena);
/*
 * A plan for @gang: who moves, with where to in job->to, and the gang's own places in @members. Changes nothing. False: none was
 * found, or not worth it: @saved_ms is by how much earlier the gang would start. @loss_gpu_ms: of the cheapest plan there is, also
 * of one that is not worth it; UINT64_MAX: none.
 */
bool defrag_plan(struct defrag *defrag, const struct gang *gang, struct gang_member *members, uint64_t saved_ms,
                 struct defrag_job *jobs, uint32_t n, uint64_t *loss_gpu_ms);
