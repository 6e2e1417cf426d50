/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Private to src/api: the addresses of docs/api.md. routes.c has the table; the functions it names are in
 *
 *   look.c    what is: health, status, the lists, one lease and the wait for it to change
 *   story.c   what was: events, the story of a lease, and what is said about one that is gone
 *   study.c   what only the whole journal knows, read on another thread: what led to what, who had what for how long
 *   audit.c   who had device memory without a lease, in words
 *   ask.c     what is asked for becomes an input of the core
 *   change.c, adopt.c  the same for what lives, and for what runs already
 *   park.c    off its device and back: what a person wants, what its program says
 *   plan.c    what would happen: the core asked without telling it
 *   enforce.c what becomes of who has memory and no lease: mode, approvals
 *   limits.c  what a user may have; costs.c: what his ways out came to
 *   answer.c  what the core decided becomes the answer (route_on_action)
 *
 * Each answers by conn_reply() or conn_reply_problem(), or puts the connection to sleep until somebody does.
 */
#include "api/conn.h"

enum {
        ROUTE_CHANGES = 1 << 0, /* counts against what its user may do a second (cost); never for who only reads */
        ROUTE_ADMIN =
                1 << 1, /* for administrators alone, by the door; where it is kept who else tried, the core refuses */
        ROUTE_METRICS = 1 << 2, /* may be asked at the metrics door as well */
        ROUTE_HEAVY = 1 << 3,   /* its answer is long: users take turns (turns.h) */
        ROUTE_KEYED = 1 << 4,   /* takes an Idempotency-Key */
};

struct route {
        const char *method;
        const char *path;    /* '*' stands for a lease id, which is in conn->lease_id then */
        const char *queries; /* names of its query parameters, with blanks around each */
        void (*run)(struct conn *c);
        unsigned flags; /* ROUTE_… */
        uint32_t cost;  /* tokens of the user's bucket, with ROUTE_CHANGES */
};

/* NULL with a problem: 404, or 405 with the methods that the address does take in @allowed. */
const struct route *route_find(const char *method, const char *path, uint64_t *ret_lease_id,
                               char allowed[ROUTE_ALLOWED_SIZE], struct problem *reterr);
bool route_takes_query(const struct route *route, const char *name);
/* The answer to who is no administrator, with the cure: -1. */
int route_not_admin(const struct conn *c, struct problem *reterr);
/* An action that answers this connection's input, or is about the lease it waits for. */
void route_on_action(struct conn *c, const struct action *action);

/* ---- what more than one address needs ---- */
struct world *route_world(struct conn *c);
/* A number in the query; absent: @otherwise. -1 with the problem answered. */
int route_query_u64(struct conn *c, const char *name, uint64_t min, uint64_t max, uint64_t otherwise, uint64_t *ret);
/* The lease in the address, while it is not over; else NULL and the client was told. */
struct lease *route_lease(struct conn *c);
void route_reply_lease(struct conn *c, unsigned status, const struct lease *lease);
/* Puts an input on its way and lets the connection sleep until its actions are there. */
void route_submit(struct conn *c, struct input *input, uint64_t *token, enum conn_want want);

/* ---- look.c ---- */
void look_health(struct conn *c);
void look_metrics(struct conn *c);
void look_openapi(struct conn *c);
void look_status(struct conn *c);
void look_devices(struct conn *c);
void look_queue(struct conn *c);
void look_leases(struct conn *c);
void look_lease(struct conn *c);

/* ---- story.c ---- */
void story_events(struct conn *c);
void story_why(struct conn *c);
/* About the lease of the connection: 410 with how it ended, or 404. */
void story_reply_gone(struct conn *c);

/* ---- ask.c ---- */
/* What of a request comes from who asks, and what a text in it stands for. -1 with the problem. */
int ask_fill_request(struct conn *c, struct request *request, struct problem *p);
/* Is every way out that is named one that its program can survive? @heard, @unmanaged: struct unfit_facts. -1 with the problem. */
int ask_check_ways(struct conn *c, const struct request *request, bool heard, const char *unmanaged, struct problem *p);
void ask_lease(struct conn *c);
void ask_activate(struct conn *c);
void ask_renew(struct conn *c);
void ask_release(struct conn *c);

/* ---- park.c ---- */
void ask_park(struct conn *c);
void ask_thaw(struct conn *c);
void ask_yielded(struct conn *c);
void ask_idle(struct conn *c);
void ask_busy(struct conn *c);
void ask_forgive(struct conn *c);

/* ---- change.c, adopt.c, plan.c, limits.c, costs.c ---- */
void ask_change(struct conn *c);
void ask_adopt(struct conn *c);
void plan_lease(struct conn *c);
void look_limits(struct conn *c);
void look_costs(struct conn *c);
/* ---- enforce.c ---- */
void look_processes(struct conn *c);
void look_enforce(struct conn *c);
void look_approvals(struct conn *c);
void ask_enforce(struct conn *c);
void ask_approve(struct conn *c);
void ask_unapprove(struct conn *c);
void enforce_reply(struct conn *c, const struct action *action);
/* ---- config.c ---- */
void look_config(struct conn *c);
/* ---- tenants.c ---- */
void look_tenants(struct conn *c);
void ask_reload(struct conn *c);
/* Which row of model/quota.h counts for the caller. */
uint32_t limits_row(struct conn *c);
/* ---- study.c ---- */
void study_why(struct conn *c);
void study_usage(struct conn *c);
void study_reply_late(struct conn *c); /* it takes too long */
/* Has the journal read for it, and lets it sleep until it was. False: it may not just now, and was told. */
bool study_begin(struct conn *c, const struct api_study *what);
/* ---- audit.c ---- */
void audit_list(struct conn *c);
/* @c NULL: who asked is gone. */
void audit_studied(struct conn *c, struct api_studied *studied);
/* Who was asked about is not known in time. */
void limits_reply_unknown(struct conn *c);
