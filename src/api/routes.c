/* SPDX-License-Identifier: Apache-2.0 */
/* The table of addresses, and what more than one of them needs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "api/routes.h"
#include "base/number.h"
#include "model/lease.h"

/* ---- the table ---- */

static const struct route routes[] = {
        { "GET", "/healthz", "", look_health, ROUTE_METRICS, 0 },
        { "GET", "/metrics", "", look_metrics, ROUTE_METRICS | ROUTE_HEAVY, 0 },
        { "GET", "/api/openapi.json", "", look_openapi, ROUTE_HEAVY, 0 },
        { "GET", "/api/status", "", look_status, ROUTE_HEAVY, 0 },
        { "GET", "/api/devices", "", look_devices, ROUTE_HEAVY, 0 },
        { "GET", "/api/processes", "", look_processes, ROUTE_HEAVY, 0 },
        { "GET", "/api/queue", "", look_queue, ROUTE_HEAVY, 0 },
        { "GET", "/api/leases", "", look_leases, ROUTE_HEAVY, 0 },
        { "POST", "/api/leases", "", ask_lease, ROUTE_CHANGES | ROUTE_KEYED, 1 },
        { "GET", "/api/leases/*", " after wait_ms ", look_lease, 0, 0 },
        { "PATCH", "/api/leases/*", "", ask_change, ROUTE_CHANGES, 1 },
        { "DELETE", "/api/leases/*", " failed ", ask_release, ROUTE_CHANGES, 1 },
        { "POST", "/api/leases/*/activate", "", ask_activate, ROUTE_CHANGES | ROUTE_KEYED, 1 },
        { "POST", "/api/leases/*/renew", "", ask_renew, ROUTE_CHANGES | ROUTE_KEYED, 1 },
        { "POST", "/api/leases/*/park", "", ask_park, ROUTE_CHANGES | ROUTE_KEYED, 1 },
        { "POST", "/api/leases/*/thaw", "", ask_thaw, ROUTE_CHANGES | ROUTE_KEYED, 1 },
        { "POST", "/api/leases/*/yielded", "", ask_yielded, ROUTE_CHANGES | ROUTE_KEYED, 1 },
        { "POST", "/api/leases/*/idle", "", ask_idle, ROUTE_CHANGES | ROUTE_KEYED, 1 },
        { "POST", "/api/leases/*/busy", "", ask_busy, ROUTE_CHANGES | ROUTE_KEYED, 1 },
        { "POST", "/api/leases/*/forgive", "", ask_forgive, ROUTE_CHANGES | ROUTE_KEYED, 1 },
        { "POST", "/api/adopt", "", ask_adopt, ROUTE_CHANGES | ROUTE_KEYED, 1 },
        { "POST", "/api/plan", "", plan_lease, ROUTE_HEAVY, 4 },
        { "GET", "/api/limits", " user ", look_limits, 0, 0 },
        { "GET", "/api/costs", "", look_costs, ROUTE_HEAVY, 0 },
        { "GET", "/api/enforce", "", look_enforce, ROUTE_HEAVY, 0 },
        { "POST", "/api/enforce", "", ask_enforce, ROUTE_CHANGES | ROUTE_KEYED, 1 },
        { "GET", "/api/approvals", "", look_approvals, ROUTE_HEAVY, 0 },
        { "POST", "/api/approve", "", ask_approve, ROUTE_CHANGES | ROUTE_KEYED, 1 },
        { "POST", "/api/unapprove", "", ask_unapprove, ROUTE_CHANGES | ROUTE_KEYED, 1 },
        { "GET", "/api/config", "", look_config, 0, 0 },
        { "GET", "/api/tenants", "", look_tenants, ROUTE_HEAVY, 0 },
        { "POST", "/api/reload", "", ask_reload, ROUTE_CHANGES | ROUTE_ADMIN, 1 },
        { "GET", "/api/events", " after lease limit ", story_events, ROUTE_HEAVY, 0 },
        { "GET", "/api/why/*", "", story_why, ROUTE_HEAVY, 0 },
        { "GET", "/api/why", " lease pid event ", study_why, ROUTE_HEAVY, 0 },
        { "GET", "/api/usage", " by since ", study_usage, ROUTE_HEAVY, 0 },
        { "GET", "/api/audit", " pid all before limit ", audit_list, ROUTE_HEAVY, 0 },
};

/* 1: it matches; 0: it does not; -1: it does, but '*' is no lease id. */
static int path_matches(const char *pattern, const char *path, uint64_t *ret_lease_id)
{
        const char *star = strchr(pattern, '*');
        size_t before = star ? (size_t) (star - pattern) : strlen(pattern);

        if (strncmp(pattern, path, before) != 0)
                return 0;
        if (!star)
                return path[before] == '\0';

        char id[LEASE_ID_TEXT_MAX];
        size_t n = strcspn(path + before, "/");
        if (strcmp(path + before + n, star + 1) != 0)
                return 0;
        if (n == 0 || n >= sizeof(id))
                return -1;
        memcpy(id, path + before, n);
        id[n] = '\0';
        return lease_id_parse(id, ret_lease_id) ? 1 : -1;
}

const struct route *route_find(const char *method, const char *path, uint64_t *ret_lease_id,
                               char allowed[ROUTE_ALLOWED_SIZE], struct problem *p)
{
        bool bad_id = false;

        allowed[0] = '\0';
        if (strcmp(method, "HEAD") == 0)
                method = "GET";
        for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
                int match = path_matches(routes[i].path, path, ret_lease_id);
                bad_id = bad_id || match < 0;
                if (match <= 0)
                        continue;
                if (strcmp(routes[i].method, method) == 0)
                        return &routes[i];
                size_t n = strlen(allowed);
                (void) snprintf(allowed + n, ROUTE_ALLOWED_SIZE - n, "%s%s", n ? ", " : "", routes[i].method);
        }
        if (allowed[0])
                problem_set(p, 405, "method-not-allowed", "this address takes %s", allowed);
        else if (bad_id)
                problem_set(p, 404, "not-found", "a lease id looks like L17; see /api/leases");
        else
                problem_set(p, 404, "not-found",
                            "there is nothing at this address; see /api/status, /api/leases, "
                            "/api/devices, /api/queue, /api/events, /healthz");
        return NULL;
}

bool route_takes_query(const struct route *route, const char *name)
{
        size_t n = strlen(name);

        if (n == 0) /* also "%00": found everywhere, and behind the end too */
                return false;
        for (const char *at = route->queries; (at = strstr(at, name)); at++)
                if (at > route->queries && at[-1] == ' ' && at[n] == ' ')
                        return true;
        return false;
}

/* ---- what more than one address needs ---- */

struct world *route_world(struct conn *c)
{
        return c->server->host.world(c->server->host.ctx);
}

int route_query_u64(struct conn *c, const char *name, uint64_t min, uint64_t max, uint64_t otherwise, uint64_t *ret)
{
        const char *text = conn_query(c, name);
        char allowed[64];
        struct problem p;

        *ret = otherwise;
        if (!text || parse_u64(name, text, min, max, ret, NULL) == 0)
                return 0;
        (void) snprintf(allowed, sizeof(allowed), "a whole number, %" PRIu64 " … %" PRIu64, min, max);
        problem_field(&p, name, text, strlen(text), allowed, "correct it, or leave it out");
        conn_reply_problem(c, &p, NULL);
        return -1;
}

/* What depends on the caller alone; everything else is for the core to say. */
static bool may_submit(struct conn *c, const struct input *input, enum conn_want want)
{
        struct problem p = { 0 };
        bool waits = want == WANT_LEASE && c->mode == LEASE_ASK_WAIT;
        bool gives_up = c->gives_up, binds_here = c->binds_here;

        c->gives_up = c->binds_here = false;
        if (input->kind == INPUT_REQUEST)
                (void) peer_may_ask(&c->peer, &input->request, &p);
        else if (input->kind == INPUT_CHANGE && (input->change.what & CHANGE_PRIORITY))
                (void) peer_may_have_priority(&c->peer, input->change.priority, &p);
        if (p.status != 0) {
                conn_reply_problem(c, &p, NULL);
                return false;
        }
        if (waits && !conn_may_wait(c))
                return false;
        c->gives_up = gives_up;
        c->binds_here = binds_here;
        return true;
}

void route_submit(struct conn *c, struct input *input, uint64_t *token, enum conn_want want)
{
        struct api_server *s = c->server;
        struct error err = { 0 };
        struct problem p;

        if (!may_submit(c, input, want))
                return;
        if (input->kind == INPUT_REQUEST && c->has_key)
                input->request.idempotency = c->key;
        *token = c->token = server_next_token(s, c);
        input->now_ms = s->host.now_ms(s->host.ctx);
        int r = s->host.submit(s->host.ctx, input, &err);
        if (r < 0) {
                c->gives_up = c->binds_here = false;
                if (r == -ENOSPC)
                        problem_set(&p, 507, "store-full", "nothing was changed: %s; make room and try again", err.msg);
                else
                        problem_set(&p, 503, "store-unavailable", "nothing was changed: %s; try again", err.msg);
                conn_reply_problem(c, &p, NULL);
                return;
        }
        c->want = want;
        conn_sleep(c, CONN_STEPPING);
}

struct lease *route_lease(struct conn *c)
{
        struct lease *lease = world_lease_by_id(route_world(c), c->lease_id);

        if (!lease)
                story_reply_gone(c);
        return lease;
}

void route_reply_lease(struct conn *c, unsigned status, const struct lease *lease)
{
        struct strbuf text;
        struct view v;

        conn_view(c, &v);
        strbuf_init(&text, LEASE_TEXT_MAX);
        view_lease_text(&v, lease, &text);
        conn_reply_strbuf(c, status, &text);
}
