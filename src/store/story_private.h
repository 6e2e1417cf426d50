/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of a story share: story.c (a lease, an event), story_process.c (a pid), story_cause.c (what led to what). */
#include "store/journal_private.h"
#include "store/story.h"

/* A step while it is made. */
struct telling_step {
        struct story_step step;
        struct action action; /* of an event */
        uint64_t order_id;    /* its record is what came of this order; 0 = it is not */
        bool is_kept;         /* of an event's story: belongs to it */
};

struct telling {
        struct journal *j;
        struct story *story;
        struct telling_step *steps;
        size_t n, cap;
        bool failed; /* no memory */
};

/* A step that stays the caller's until the next; NULL: it is there already, or there is no memory. */
struct telling_step *telling_add_event(struct telling *t, const struct journal_event *event);
struct telling_step *telling_add_seen(struct telling *t, uint64_t seq, uint64_t wall_ms, uint64_t now_ms, uint32_t pid);

/* All about a lease, and what it is linked with: whose memory it was, for whom, by which plan. @around: an event that has
 * to be in it; 0 = none. */
int telling_lease(struct telling *t, uint64_t lease_id, uint64_t around, struct error *err);
/* Whose lease it was, and all that was seen of it (story_process.c). */
int telling_process(struct telling *t, uint32_t pid, struct error *err);

/* ---- story_cause.c: pure ---- */
void telling_sort(struct telling *t); /* by record, then by event */
void telling_find_causes(struct telling *t);
/* Only what led to @event_id, itself, and what it led to. */
void telling_keep_chain(struct telling *t, uint64_t event_id);
void telling_find_rhythms(struct telling *t);
