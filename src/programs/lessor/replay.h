/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What `replay` was asked for, and what its two halves share. */
#include <jansson.h>
#include <limits.h>
#include "store/journal.h"
#include "store/walk.h"

enum { REPLAY_LIMIT = 20, REPLAY_DAMAGES_MAX = 5 };

struct replay_job {
        char path[PATH_MAX]; /* of the journal, as it may be shown */
        struct journal *journal;
        struct walk_since since;
        const char *with; /* another configuration; NULL: as it was */
        uint64_t limit;   /* differences that are listed */
        bool json;
};

int replay_failed(const struct error *err); /* says it, and returns the exit code */
/* Damage is told as it is found, on stderr or in the object that is made. */
struct replay_damages {
        uint64_t n;
        json_t *words; /* NULL: for people */
};
void replay_damage(void *ctx, const char *words);

/* `replay --with` (replay_with.c). The exit code. */
int replay_with(struct replay_job *job);
