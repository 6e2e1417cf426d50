/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is to be done with one process that has device memory and no lease (design 4.7): a pure function of what is known of it.
 * In every doubt it is spared; the first reason is named. What the verdict leads to, and when, is enforce.h's.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/world.h"

/* A process and what it has, on all devices together. */
struct stranger {
        const struct process *process; /* NULL = nothing is known of it but its memory */
        uint64_t bytes;
        uint32_t device; /* where it has most */
        uint32_t n_devices;
        uint32_t flags; /* enum row_flags of any of them */
        bool known;     /* every figure of it is known */
        bool fresh;     /* every device it is on was looked at a moment ago, and has settled */
};

struct judgement {
        enum verdict verdict;
        enum verdict_why why;
};

void stranger_look(struct world *world, struct identity identity, struct stranger *ret);

/* @audit: what is remembered of it; NULL = nothing. */
struct judgement enforce_judge(const struct world *world, const struct stranger *stranger, const struct audit *audit);

/* Why nobody is ended just now. */
enum enforce_doubt enforce_doubt_of(const struct world *world);
/* The mode that counts: a person's word, and what the configuration allows. */
enum enforce_mode enforce_mode_of(const struct world *world);
/* The approval that covers it, also one that lapsed within the last day; NULL = none. Of several the best. */
const struct approval *enforce_approval_of(const struct world *world, const struct process *process);
bool approval_has_lapsed(const struct world *world, const struct approval *approval);
/* From SIGTERM to SIGKILL. */
uint64_t enforce_grace_ms(const struct world *world, const struct audit *audit);
enum { APPROVAL_WARNS_MS = 24 * 3600 * 1000, AUDIT_KEPT_MS = 24 * 3600 * 1000, RETURNS_ALLOWED = 1 };
