/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What became of each request, twice: as it was, and as it would have been under another configuration (replay_twin.h). Pure
 * over actions; in which the two differ is found when both are told to the end.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "model/action.h"
#include "model/lease.h"
#include "model/world.h"

enum { AS_WAS, WOULD_BE, SIDES_N };

/* Of one request on one side. */
struct fate {
        uint64_t lease_id; /* there: the two may number differently; 0: it got none */
        bool refused;
        bool granted;
        bool ended;
        uint8_t end;     /* enum end_reason */
        uint32_t device; /* where it was granted */
        uint64_t granted_ms, granted_wall_ms;
        uint64_t ended_ms;
        uint64_t why_ms;   /* world time of: */
        struct reason why; /* why granted, refused, or the last word on its waiting */
};

struct story {
        uint64_t asked_wall_ms; /* 0: it was there before */
        uint64_t bytes;         /* as asked for */
        uint32_t uid;
        uint8_t priority;
        bool counts;               /* something of it was decided where it counts */
        char name[NAME_MAX_BYTES]; /* as it came */
        struct fate fates[SIDES_N];
};

enum story_change {
        STORY_SAME,
        STORY_EARLIER,
        STORY_LATER,
        STORY_NEVER,         /* it was granted, and would not have been */
        STORY_ALSO,          /* it was not granted, and would have been */
        STORY_REFUSED,       /* it would have been refused */
        STORY_NOT_REFUSED,   /* it was refused, and would not have been */
        STORY_OTHER_REFUSAL, /* for another reason */
        STORY_ELSEWHERE,     /* at the same time, on another device */
        STORY_ENDS,          /* the same until its end */
        STORY_CHANGE_N,
};

enum story_change story_change(const struct story *story);
const char *story_change_name(enum story_change change); /* "earlier" */
const char *story_change_text(enum story_change change); /* "would have been granted earlier" */

struct stories {
        size_t n, cap;
        struct story *items; /* in the order of asking */
        struct story_of_lease {
                uint64_t lease_id;
                size_t story;
        } * of_lease[SIDES_N]; /* by lease_id, ascending */
        size_t n_of_lease[SIDES_N], cap_of_lease[SIDES_N];
        bool failed; /* no memory: nothing here is good any more */
};

void stories_fini(struct stories *s);
/* Both sides begin (again) as this world: its leases are the same on both. */
void stories_begin(struct stories *s, const struct world *world);
/* A request, and the id of the lease that each side made for it (0: none). */
struct story *stories_add(struct stories *s, const uint64_t lease_ids[SIDES_N]);
/* The newest request got no lease after all: its number goes to the next. */
void stories_forget_lease(struct stories *s, int side, uint64_t lease_id);
struct story *stories_of_lease(struct stories *s, int side, uint64_t lease_id); /* NULL */

struct story_moment {
        uint64_t now_ms;
        uint64_t wall_ms;
        bool counts;
};
/* One decision about a lease, or (with @request, the story of the request that is being answered) a refusal. */
void stories_tell(struct stories *s, int side, const struct action *action, struct story *request,
                  const struct story_moment *at);
