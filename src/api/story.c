/* SPDX-License-Identifier: Apache-2.0 */
/* What was: events, the story of a lease, and what is said about one that is gone. */
#include <inttypes.h>
#include <string.h>
#include "api/refusal.h"
#include "api/routes.h"
#include "base/number.h"
#include "model/lease.h"

enum { EVENTS_LIMIT_DEFAULT = 100, EVENTS_LIMIT_MAX = 1000, WHY_EVENTS = 100 };

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

void story_reply_gone(struct conn *c)
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
        if (!fate.seen && c->lease_id >= route_world(c)->next_lease_id) {
                problem_set(&p, 404, "not-found", "there is no lease L%" PRIu64 " and never was one; see /api/leases",
                            c->lease_id);
                conn_reply_problem(c, &p, NULL);
                return;
        }
        refusal_of_end(&p, c->lease_id, fate.seen ? &fate.last.action : NULL);
        conn_reply_problem(c, &p, refusal_extra(fate.seen ? &fate.last.action : NULL, host->now_ms(host->ctx)));
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

void story_events(struct conn *c)
{
        struct api_host *host = &c->server->host;
        const char *lease = conn_query(c, "lease");
        uint64_t after, limit, lease_id = 0;
        struct problem p;
        struct error err = { 0 };
        struct view v;

        if (route_query_u64(c, "after", 0, INT64_MAX, 0, &after) < 0 ||
            route_query_u64(c, "limit", 1, EVENTS_LIMIT_MAX, EVENTS_LIMIT_DEFAULT, &limit) < 0)
                return;
        if (lease && !lease_id_parse(lease, &lease_id)) {
                problem_field(&p, "lease", lease, strlen(lease), "a lease id such as L17",
                              "correct it, or leave it out");
                conn_reply_problem(c, &p, NULL);
                return;
        }
        /* Not to a HEAD: libmicrohttpd would write the end of the chunks, which is no part of its answer. */
        if (wants_stream(c) && !c->is_head) {
                /* What the client says itself counts before what its library remembers. */
                const char *last = conn_query(c, "after")
                                           ? NULL
                                           : MHD_lookup_connection_value(c->mhd, MHD_HEADER_KIND, "Last-Event-ID");
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
void story_why(struct conn *c)
{
        struct api_host *host = &c->server->host;
        struct lease *lease = world_lease_by_id(route_world(c), c->lease_id);
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
                story_reply_gone(c);
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
