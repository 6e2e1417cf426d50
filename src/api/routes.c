/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses of docs/api.md, one function each; what an action means to the connection that waits for it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "api/conn.h"
#include "api/refusal.h"
#include "base/number.h"
#include "model/lease.h"

enum { EVENTS_LIMIT_DEFAULT = 100, EVENTS_LIMIT_MAX = 1000, WHY_EVENTS = 100 };

/* ---- small helpers ---- */

static struct world *world_of(struct conn *c)
{
        return c->server->host.world(c->server->host.ctx);
}

/* A number in the query; absent: @otherwise. -1 with the problem answered. */
static int query_u64(struct conn *c, const char *name, uint64_t min, uint64_t max, uint64_t otherwise, uint64_t *ret)
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

/* Puts an input on its way and lets the connection sleep until its actions are there. */
static void submit(struct conn *c, struct input *input, uint64_t *token, enum conn_want want)
{
        struct api_server *s = c->server;
        struct error err = { 0 };
        struct problem p;

        *token = c->token = s->next_token++ * API_CONNECTIONS_MAX + c->slot;
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

/* ---- a lease that is not there any more ---- */

struct fate {
        bool ended, seen;
        struct api_event last;
};

static bool note_fate(void *cls, const struct api_event *event)
{
        struct fate *fate = cls;

        fate->seen = true;
        fate->last = *event;
        fate->ended = event->action.kind == ACTION_ENDED || event->action.kind == ACTION_REFUSED;
        return true;
}

/* 410 with how it ended, or 404. */
static void reply_gone(struct conn *c)
{
        struct api_host *host = &c->server->host;
        struct api_event_query query = { .lease_id = c->lease_id, .limit = 1, .newest = true };
        struct fate fate = { 0 };
        struct problem p;
        struct error err = { 0 };

        if (host->events(host->ctx, &query, note_fate, &fate, &err) < 0) {
                problem_set(&p, 503, "store-unavailable", "the journal cannot be read: %s; try again", err.msg);
                conn_reply_problem(c, &p, NULL);
                return;
        }
        if (!fate.seen && c->lease_id >= world_of(c)->next_lease_id) {
                problem_set(&p, 404, "not-found", "there is no lease L%" PRIu64 " and never was one; see /api/leases",
                            c->lease_id);
                conn_reply_problem(c, &p, NULL);
                return;
        }
        refusal_of_end(&p, c->lease_id, fate.seen ? &fate.last.action : NULL);
        conn_reply_problem(c, &p, refusal_extra(fate.seen ? &fate.last.action : NULL, host->now_ms(host->ctx)));
}

/* The lease in the address, while it is not over; else NULL and the client was told. */
static struct lease *lease_in_address(struct conn *c)
{
        struct lease *lease = world_lease_by_id(world_of(c), c->lease_id);

        if (!lease)
                reply_gone(c);
        return lease;
}

static void reply_lease(struct conn *c, unsigned status, const struct lease *lease)
{
        struct view v;

        conn_view(c, &v);
        conn_reply(c, status, view_lease(&v, lease));
}

/* ---- reading ---- */

static void add_health(struct conn *c, json_t *object)
{
        struct api_host *host = &c->server->host;
        struct api_health h = { 0 };

        host->health(host->ctx, &h);
        (void) json_object_set_new(object, "version", json_string(h.version));
        (void) json_object_set_new(object, "gpu", json_string(h.gpu));
        (void) json_object_set_new(object, "gpu_age_ms", view_u64_or_null(h.gpu_age_known, h.gpu_age_ms));
        (void) json_object_set_new(object, "host_pids", h.host_pids_known ? json_boolean(h.host_pids) : json_null());
        (void) json_object_set_new(object, "degraded", view_text_or_null(h.degraded));
}

static void get_health(struct conn *c)
{
        json_t *object = json_pack("{s:s}", "status", "ok");

        if (object)
                add_health(c, object);
        conn_reply(c, MHD_HTTP_OK, object);
}

static void get_status(struct conn *c)
{
        struct api_host *host = &c->server->host;
        struct api_health h = { 0 };
        struct view v;

        conn_view(c, &v);
        host->health(host->ctx, &h);
        json_t *object =
                json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "started", view_wall_time(h.started_wall_ms),
                          "read_only_reason", view_text_or_null(h.read_only_reason), "devices", view_devices(&v),
                          "leases", view_leases(&v), "queue", view_queue(&v), "strangers", view_strangers(&v));
        if (object)
                add_health(c, object);
        conn_reply(c, MHD_HTTP_OK, object);
}

static void get_devices(struct conn *c)
{
        struct view v;
        conn_view(c, &v);
        conn_reply(c, MHD_HTTP_OK, json_pack("{s:o}", "devices", view_devices(&v)));
}

static void get_queue(struct conn *c)
{
        struct view v;
        conn_view(c, &v);
        conn_reply(c, MHD_HTTP_OK, json_pack("{s:o}", "queue", view_queue(&v)));
}

static void get_leases(struct conn *c)
{
        struct view v;
        conn_view(c, &v);
        conn_reply(c, MHD_HTTP_OK, json_pack("{s:o}", "leases", view_leases(&v)));
}

static void get_lease(struct conn *c)
{
        struct api_host *host = &c->server->host;
        struct api_told told = { 0 };
        uint64_t after, wait_ms;
        struct problem p;

        if (query_u64(c, "after", 0, INT64_MAX, 0, &after) < 0 ||
            query_u64(c, "wait_ms", 0, API_POLL_MAX_MS, 0, &wait_ms) < 0)
                return;
        if (wait_ms != 0 && !conn_query(c, "after")) {
                problem_field(&p, "after", "", 0, "the rev of the lease as it was last seen",
                              "say after=REV with wait_ms");
                conn_reply_problem(c, &p, NULL);
                return;
        }
        struct lease *lease = lease_in_address(c);
        if (!lease)
                return;
        (void) host->told(host->ctx, lease->id, &told);
        if (wait_ms == 0 || told.rev > after) {
                reply_lease(c, MHD_HTTP_OK, lease);
                return;
        }

        c->want = WANT_CHANGE;
        c->rev = after;
        conn_await(c, lease->id);
        conn_sleep(c, CONN_WAITING);
        conn_limit_wait(c, wait_ms);
}

/* ---- events ---- */

struct event_list {
        struct view *view;
        json_t *list;
        uint64_t next;
};

static bool list_event(void *cls, const struct api_event *event)
{
        struct event_list *l = cls;

        l->next = event->action.id;
        return json_array_append_new(l->list, view_event(l->view, event)) == 0;
}

static bool wants_stream(struct conn *c)
{
        const char *accept = MHD_lookup_connection_value(c->mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
        return accept && strstr(accept, "text/event-stream") != NULL;
}

static void get_events(struct conn *c)
{
        struct api_host *host = &c->server->host;
        const char *lease = conn_query(c, "lease");
        uint64_t after, limit, lease_id = 0;
        struct problem p;
        struct error err = { 0 };
        struct view v;

        if (query_u64(c, "after", 0, INT64_MAX, 0, &after) < 0 ||
            query_u64(c, "limit", 1, EVENTS_LIMIT_MAX, EVENTS_LIMIT_DEFAULT, &limit) < 0)
                return;
        if (lease && !lease_id_parse(lease, &lease_id)) {
                problem_field(&p, "lease", lease, strlen(lease), "a lease id such as L17",
                              "correct it, or leave it out");
                conn_reply_problem(c, &p, NULL);
                return;
        }
        if (wants_stream(c)) {
                const char *last = MHD_lookup_connection_value(c->mhd, MHD_HEADER_KIND, "Last-Event-ID");
                if (last && parse_u64("Last-Event-ID", last, 0, INT64_MAX, &after, &err) < 0) {
                        problem_field(&p, "Last-Event-ID", last, strlen(last), "the id of an event", "leave it out");
                        conn_reply_problem(c, &p, NULL);
                        return;
                }
                stream_begin(c, after, lease_id);
                return;
        }

        conn_view(c, &v);
        struct event_list l = { .view = &v, .list = json_array(), .next = after };
        struct api_event_query query = { .after = after, .lease_id = lease_id, .limit = (uint32_t) limit };
        if (!l.list || host->events(host->ctx, &query, list_event, &l, &err) < 0) {
                json_decref(l.list);
                problem_set(&p, 503, "store-unavailable", "the journal cannot be read: %s; try again", err.msg);
                conn_reply_problem(c, &p, NULL);
                return;
        }
        conn_reply(c, MHD_HTTP_OK, json_pack("{s:o, s:o}", "events", l.list, "next", view_u64(l.next)));
}

/* The story of a lease, told by its events; the last one in words. */
static void get_why(struct conn *c)
{
        struct api_host *host = &c->server->host;
        struct lease *lease = world_lease_by_id(world_of(c), c->lease_id);
        struct api_event_query query = { .lease_id = c->lease_id, .limit = WHY_EVENTS, .newest = true };
        struct fate fate = { 0 };
        struct error err = { 0 };
        struct problem p;
        struct view v;

        conn_view(c, &v);
        struct event_list l = { .view = &v, .list = json_array() };
        if (!l.list || host->events(host->ctx, &query, list_event, &l, &err) < 0) {
                json_decref(l.list);
                problem_set(&p, 503, "store-unavailable", "the journal cannot be read: %s; try again", err.msg);
                conn_reply_problem(c, &p, NULL);
                return;
        }
        if (!lease && json_array_size(l.list) == 0) {
                json_decref(l.list);
                reply_gone(c);
                return;
        }
        query.limit = 1;
        char text[REASON_TEXT_MAX] = "";
        struct api_told told = { 0 };
        if (lease && host->told(host->ctx, lease->id, &told))
                reason_text(&told.why, v.now_ms, text, sizeof(text));
        else if (host->events(host->ctx, &query, note_fate, &fate, &err) >= 0 && fate.seen)
                reason_text(&fate.last.action.why, fate.last.now_ms, text, sizeof(text));
        conn_reply(c, MHD_HTTP_OK,
                   json_pack("{s:o, s:o, s:o}", "lease", lease ? view_lease(&v, lease) : json_null(), "events", l.list,
                             "text", view_text_or_null(text)));
}

/* ---- asking ---- */

/* A device may be named by the beginning of its UUID, where that is one device's only. What no device has is left to the
 * core, whose refusal says so. */
static int resolve_device(struct conn *c, struct request *request, struct problem *p)
{
        const struct world *w = world_of(c);
        const char *given = request->device_uuid, *found = NULL;
        size_t n = strlen(given);

        for (uint32_t i = 0; n > 0 && i < w->n_devices; i++) {
                const char *uuid = w->devices[i].uuid;
                if (strcmp(uuid, given) == 0)
                        return 0;
                if (strncmp(uuid, given, n) != 0)
                        continue;
                if (found)
                        return problem_field(p, "device", given, n, "the UUID of one device",
                                             "several begin like this: write more of it (see /api/devices)");
                found = uuid;
        }
        if (found)
                (void) snprintf(request->device_uuid, sizeof(request->device_uuid), "%s", found);
        return 0;
}

static void post_lease(struct conn *c)
{
        struct lease_ask ask;
        struct problem p;
        struct input input = { .kind = INPUT_REQUEST };

        if (lease_json_parse(strbuf_text(&c->body), c->body.len, &ask, &p) < 0) {
                conn_reply_problem(c, &p, NULL);
                return;
        }
        if (resolve_device(c, &ask.request, &p) < 0) {
                conn_reply_problem(c, &p, NULL);
                return;
        }
        struct binding *binding = &ask.request.binding;
        binding->owner = c->peer.identity;
        if (ask.bind_pid != 0 &&
            peer_process(&c->peer, &c->server->options.rules, ask.bind_pid, "bind.pid", &binding->owner, &p) < 0) {
                conn_reply_problem(c, &p, NULL);
                return;
        }
        ask.request.uid = c->peer.uid;
        ask.request.is_admin = c->peer.is_admin;
        if (ask.request.consumer[0] == '\0')
                (void) snprintf(ask.request.consumer, sizeof(ask.request.consumer), "%s", c->peer.consumer);
        c->mode = ask.mode;
        c->gives_up = ask.mode != LEASE_ASK_QUEUE;
        c->binds_here = binding->kind == BINDING_CONNECTION;
        input.request = ask.request;
        submit(c, &input, &input.request.token, WANT_LEASE);
}

static void call_lease(struct conn *c, enum input_kind kind, const struct activate_ask *activate)
{
        struct input input = { .kind = (uint8_t) kind };
        struct lease *lease = lease_in_address(c);
        struct problem p;
        struct view v;

        if (!lease)
                return;
        if (lease->state == LEASE_DRAINING && kind != INPUT_ACTIVATE) { /* over in the books: a second end is none */
                reply_gone(c);
                return;
        }
        input.call = (struct lease_call){
                .lease_id = lease->id,
                .uid = c->peer.uid,
                .is_admin = c->peer.is_admin,
                .end_reason = c->peer.uid == lease->uid ? END_RELEASED : END_RELEASED_ADMIN,
        };
        if (activate) {
                input.call.cgroup_id = activate->cgroup_id;
                if (activate->pid != 0 &&
                    peer_process(&c->peer, &c->server->options.rules, activate->pid, "pid", &input.call.root, &p) < 0) {
                        conn_reply_problem(c, &p, NULL);
                        return;
                }
        }
        conn_view(c, &v);
        c->before = view_lease(&v, lease);
        submit(c, &input, &input.call.token, WANT_CALL);
}

static void post_activate(struct conn *c)
{
        struct activate_ask ask;
        struct problem p;

        if (activate_json_parse(strbuf_text(&c->body), c->body.len, &ask, &p) < 0)
                conn_reply_problem(c, &p, NULL);
        else
                call_lease(c, INPUT_ACTIVATE, &ask);
}

static void post_renew(struct conn *c)
{
        struct problem p;

        if (empty_json_parse(strbuf_text(&c->body), c->body.len, &p) < 0)
                conn_reply_problem(c, &p, NULL);
        else
                call_lease(c, INPUT_RENEW, NULL);
}

static void delete_lease(struct conn *c)
{
        struct problem p;

        if (empty_json_parse(strbuf_text(&c->body), c->body.len, &p) < 0)
                conn_reply_problem(c, &p, NULL);
        else
                call_lease(c, INPUT_RELEASE, NULL);
}

/* ---- answers ---- */

static void reply_refused(struct conn *c, const struct action *a)
{
        struct problem p;

        c->gives_up = c->binds_here = false;
        refusal_of_action(&p, a, c->server->host.now_ms(c->server->host.ctx));
        conn_reply_problem(c, &p, refusal_extra(a, c->server->host.now_ms(c->server->host.ctx)));
}

static void reply_granted(struct conn *c)
{
        struct lease *lease = world_lease_by_id(world_of(c), c->lease_id);

        if (!lease) { /* granted and ended in one turn */
                c->gives_up = c->binds_here = false;
                reply_gone(c);
                return;
        }
        reply_lease(c, MHD_HTTP_CREATED, lease);
}

/* A grant for a client that waits is collected for it, in its name, before it is answered. */
static void on_grant(struct conn *c)
{
        struct api_server *s = c->server;
        struct lease *lease = world_lease_by_id(world_of(c), c->lease_id);

        if (!lease || lease->state != LEASE_GRANTED || c->mode == LEASE_ASK_QUEUE) {
                reply_granted(c);
                return;
        }
        c->want = WANT_COLLECT;
        c->token = s->next_token++ * API_CONNECTIONS_MAX + c->slot;
        conn_submit_fact(c, INPUT_ACTIVATE, c->lease_id, END_NONE, c->token);
}

static void on_lease_action(struct conn *c, const struct action *a)
{
        struct lease *lease;

        switch ((enum action_kind) a->kind) {
        case ACTION_REFUSED:
                reply_refused(c, a);
                return;
        case ACTION_GRANTED:
                c->lease_id = a->lease_id;
                on_grant(c);
                return;
        case ACTION_ACTIVE:
                reply_granted(c);
                return;
        case ACTION_ENDED:
        case ACTION_DRAINING:
                c->gives_up = c->binds_here = false;
                reply_refused(c, a);
                return;
        case ACTION_QUEUED:
                c->lease_id = a->lease_id;
                lease = world_lease_by_id(world_of(c), a->lease_id);
                if (c->mode == LEASE_ASK_QUEUE && lease)
                        reply_lease(c, MHD_HTTP_ACCEPTED, lease);
                else if (!lease)
                        reply_granted(c);
                else if (c->state == CONN_STEPPING) {
                        c->token = 0;
                        conn_await(c, a->lease_id);
                        conn_sleep(c, CONN_WAITING);
                }
                return;
        case ACTION_NONE:
        case ACTION_READ:
        case ACTION_RENEWED:
        case ACTION_WAITING:
        case ACTION_ORPHANED:
        case ACTION_WARNING:
        case ACTION_DEVICE:
        case ACTION_STRANGER:
        case ACTION_EYES:
        case ACTION_RESTARTED:
        case ACTION_KIND_N:
                return;
        }
}

/* Activate, renew, release: the first action that answers it. */
static void on_call_action(struct conn *c, const struct action *a)
{
        struct lease *lease = world_lease_by_id(world_of(c), a->lease_id);
        char text[REASON_TEXT_MAX];

        if (a->kind == ACTION_REFUSED) {
                if (a->why.rule == RULE_NOT_FOUND || a->why.rule == RULE_ENDED)
                        reply_gone(c);
                else
                        reply_refused(c, a);
                return;
        }
        if (lease) {
                reply_lease(c, MHD_HTTP_OK, lease);
                return;
        }
        /* It is gone with this very step: as it was, with its new state. */
        json_t *last = c->before;
        uint64_t now_ms = c->server->host.now_ms(c->server->host.ctx);
        c->before = NULL;
        if (last) {
                (void) json_object_set_new(last, "state", json_string(lease_state_name(LEASE_ENDED)));
                (void) json_object_set_new(last, "rev", view_u64(a->id));
                (void) json_object_set_new(last, "reserved_bytes", view_u64(0));
                (void) json_object_set_new(last, "reason", view_reason(&a->why, now_ms));
                (void) json_object_set_new(last, "why",
                                           view_text_or_null(reason_text(&a->why, now_ms, text, sizeof(text))));
        }
        conn_reply(c, MHD_HTTP_OK, last);
}

static void on_change(struct conn *c)
{
        struct lease *lease = lease_in_address(c);

        if (lease)
                reply_lease(c, MHD_HTTP_OK, lease);
}

void route_on_action(struct conn *c, const struct action *a)
{
        if (c->dead || c->reply || !c->asleep)
                return;
        switch (c->want) {
        case WANT_LEASE:
        case WANT_COLLECT:
                on_lease_action(c, a);
                break;
        case WANT_CALL:
                on_call_action(c, a);
                break;
        case WANT_CHANGE:
                on_change(c);
                break;
        case WANT_NOTHING:
                break;
        }
}

/* ---- the table ---- */

static const struct route routes[] = {
        { "GET", "/healthz", "", get_health },
        { "GET", "/api/status", "", get_status },
        { "GET", "/api/devices", "", get_devices },
        { "GET", "/api/queue", "", get_queue },
        { "GET", "/api/leases", "", get_leases },
        { "POST", "/api/leases", "", post_lease },
        { "GET", "/api/leases/*", " after wait_ms ", get_lease },
        { "DELETE", "/api/leases/*", "", delete_lease },
        { "POST", "/api/leases/*/activate", "", post_activate },
        { "POST", "/api/leases/*/renew", "", post_renew },
        { "GET", "/api/events", " after lease limit ", get_events },
        { "GET", "/api/why/*", "", get_why },
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

const struct route *route_find(const char *method, const char *path, uint64_t *ret_lease_id, struct problem *p)
{
        char allowed[64] = "";
        bool bad_id = false;

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
                (void) snprintf(allowed + n, sizeof(allowed) - n, "%s%s", n ? ", " : "", routes[i].method);
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
