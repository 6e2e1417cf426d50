/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * World → JSON as docs/api.md has it, one noun a file (<noun>_view.c). All of these return a new reference, or NULL
 * without memory. Unknown is null, never 0; amounts are …_bytes, spans …_ms, times RFC 3339 in UTC.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "api/fields.h"
#include "api/host.h"
#include "api/problem.h"
#include "api/user_names.h"
#include "model/world.h"

enum { VIEW_TIME_MAX = 64, LEASE_TEXT_MAX = 64 * 1024 };

/* What stays the same while one answer is written. */
struct view {
        const struct api_host *host;
        struct world *world; /* read only */
        uint64_t now_ms;
        struct user_names *names;
        uint32_t viewer_uid;
        bool viewer_is_admin;
        bool ordered; /* places are known */
        uint32_t n_order;
        uint32_t order[ENTRIES_MAX]; /* entry rows, first in line first */
        uint32_t place[ENTRIES_MAX]; /* of an entry row, 1 = first */
};

/* What the owner and administrators see, and others do not: name, consumer, binding (security S02). */
bool view_shows_detail(const struct view *v, uint32_t owner_uid);

json_t *view_u64(uint64_t n); /* above 2^63-1: that */
json_t *view_u64_or_null(bool known, uint64_t n);
json_t *view_text(const char *text);                        /* not UTF-8 (a path may be anything) → escaped */
json_t *view_text_or_null(const char *text);                /* the same; NULL or "" → null */
json_t *view_time(const struct view *v, uint64_t world_ms); /* 0 → null */
json_t *view_wall_time(uint64_t wall_ms);
const char *view_time_text(uint64_t wall_ms, char buf[VIEW_TIME_MAX]); /* NULL: no such date */
json_t *view_lease_id(uint64_t lease_id);                              /* 0 → null */
json_t *view_device_uuid(const struct world *world, uint32_t device);  /* UINT32_MAX → null */
json_t *view_reason(const struct reason *reason, uint64_t now_ms);
void reason_fields(struct fields *f, const struct reason *reason, uint64_t now_ms);
json_t *view_blockers(const struct reason *reason, uint64_t now_ms);

json_t *view_device(const struct view *v, uint32_t device);
json_t *view_devices(const struct view *v);
json_t *view_strangers(const struct view *v);
json_t *view_processes(const struct view *v);
/* The unit or container that @p runs in, in words (api/audit_facts.h); null: none, not known, or not for this caller. @p may be NULL. */
json_t *view_place(const struct view *v, const struct process *p);
/* The order of the queue is computed once a view, when first needed. */
void view_order_queue(struct view *v);
json_t *view_lease(struct view *v, const struct lease *lease);
/* The same as an answer of its own. @ret was initialised by the caller, and says failed without memory. */
void view_lease_text(struct view *v, const struct lease *lease, struct strbuf *ret);
/* A lease that will not be there any more when its end is answered: all but what changes with the end, then that. */
void view_last_of_lease_begin(struct view *v, const struct lease *lease, struct strbuf *ret);
void view_last_of_lease_end(const struct action *action, uint64_t now_ms, struct strbuf *text);
json_t *view_leases(struct view *v);
/* ---- park_view.c: ways out, a lease's field "park", host memory for parked work, the host ---- */
json_t *view_ways(const struct lease *lease);
void view_park(const struct view *v, struct fields *f, const struct lease *lease);
/* ---- booking_view.c: a lease's field "booking" ---- */
void view_booking(const struct view *v, struct fields *f, const struct lease *lease);
json_t *view_ledger(const struct view *v);
json_t *view_host(const struct view *v);
json_t *view_queue(struct view *v);
json_t *view_event(const struct view *v, const struct api_event *event);
json_t *view_problem(const struct problem *problem);
