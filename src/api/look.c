/* SPDX-License-Identifier: Apache-2.0 */
/* What is: health, status, the lists, one lease and the wait for it to change. */
#include <string.h>
#include "api/openapi.h"
#include "api/routes.h"

enum { METRICS_MAX_BYTES = 1024 * 1024 };

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

void look_health(struct conn *c)
{
        json_t *object = json_pack("{s:s}", "status", "ok");

        if (object)
                add_health(c, object);
        conn_reply(c, MHD_HTTP_OK, object);
}

void look_metrics(struct conn *c)
{
        struct api_host *host = &c->server->host;
        struct api_health h = { 0 };
        struct strbuf out;
        struct view v;

        conn_view(c, &v);
        host->health(host->ctx, &h);
        strbuf_init(&out, METRICS_MAX_BYTES);
        metrics_write(&out, &c->server->metrics, &v, &h, c->server->n_conns);
        conn_reply_text(c, MHD_HTTP_OK, METRICS_CONTENT_TYPE, strbuf_steal(&out));
        strbuf_fini(&out);
}

void look_openapi(struct conn *c)
{
        conn_reply_text(c, MHD_HTTP_OK, "application/json", strdup(openapi_text));
}

/* null where none is configured. */
static json_t *view_gate(const struct api_health *h)
{
        if (!h->gate_mode)
                return json_null();
        return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "mode", h->gate_mode, "state", h->gate_state, "words",
                         view_text_or_null(h->gate_words), "leases",
                         h->gate_known ? json_integer(h->gate_leases) : json_null(), "refused",
                         h->gate_known ? json_integer((json_int_t) h->gate_refused) : json_null(), "last_refused_uid",
                         h->gate_known && h->gate_refused > 0 ? json_integer(h->gate_last_uid) : json_null());
}

void look_status(struct conn *c)
{
        struct api_host *host = &c->server->host;
        struct api_health h = { 0 };
        struct view v;

        conn_view(c, &v);
        host->health(host->ctx, &h);
        json_t *object =
                json_pack("{s:s?, s:o, s:o, s:o, s:o, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                          "process_events", h.process_events, "process_events_errno",
                          view_u64_or_null(h.process_events_errno > 0, (uint64_t) h.process_events_errno), "accounting",
                          h.accounting_known ? json_boolean(h.accounting) : json_null(), "started",
                          view_wall_time(h.started_wall_ms), "config_error", view_text_or_null(h.config_error), "hands",
                          h.hands, "hands_words", view_text_or_null(h.hands_words), "units_words",
                          view_text_or_null(h.units_words), "sleep_words", view_text_or_null(h.sleep_words),
                          "read_only_reason", view_text_or_null(h.read_only_reason), "devices", view_devices(&v),
                          "leases", view_leases(&v), "queue", view_queue(&v), "strangers", view_strangers(&v), "ledger",
                          view_ledger(&v), "host", view_host(&v), "gate", view_gate(&h));
        if (object)
                add_health(c, object);
        conn_reply(c, MHD_HTTP_OK, object);
}

void look_devices(struct conn *c)
{
        struct view v;
        conn_view(c, &v);
        conn_reply(c, MHD_HTTP_OK, json_pack("{s:o}", "devices", view_devices(&v)));
}

void look_processes(struct conn *c)
{
        struct view v;
        conn_view(c, &v);
        conn_reply(c, MHD_HTTP_OK, json_pack("{s:o}", "processes", view_processes(&v)));
}

void look_queue(struct conn *c)
{
        struct view v;
        conn_view(c, &v);
        conn_reply(c, MHD_HTTP_OK, json_pack("{s:o}", "queue", view_queue(&v)));
}

void look_leases(struct conn *c)
{
        struct view v;
        conn_view(c, &v);
        conn_reply(c, MHD_HTTP_OK, json_pack("{s:o}", "leases", view_leases(&v)));
}

void look_lease(struct conn *c)
{
        struct api_host *host = &c->server->host;
        struct api_told told = { 0 };
        uint64_t after, wait_ms;
        struct problem p;

        if (route_query_u64(c, "after", 0, INT64_MAX, 0, &after) < 0 ||
            route_query_u64(c, "wait_ms", 0, API_POLL_MAX_MS, 0, &wait_ms) < 0)
                return;
        if (wait_ms != 0 && !conn_query(c, "after")) {
                problem_field(&p, "after", "", 0, "the rev of the lease as it was last seen",
                              "say after=REV with wait_ms");
                conn_reply_problem(c, &p, NULL);
                return;
        }
        struct lease *lease = route_lease(c);
        if (!lease)
                return;
        (void) host->told(host->ctx, lease->id, &told);
        if (wait_ms == 0 || told.rev > after) {
                route_reply_lease(c, MHD_HTTP_OK, lease);
                return;
        }

        if (!conn_may_wait(c))
                return;
        c->want = WANT_CHANGE;
        c->rev = after;
        conn_await(c, lease->id);
        conn_sleep(c, CONN_WAITING);
        conn_limit_wait(c, wait_ms);
}
