/* SPDX-License-Identifier: Apache-2.0 */
/* Asking for a lease, activate, renew, release: what is asked for becomes an input of the core. */
#include <stdio.h>
#include <string.h>
#include "api/booking.h"
#include "api/routes.h"
#include "api/unfit.h"
#include "model/lease.h"

/* A device may be named by the beginning of its UUID, where that is one device's only. What no device has is left to the
 * core, whose refusal says so. */
static int resolve_device(struct conn *c, struct request *request, struct problem *p)
{
        const struct world *w = route_world(c);
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

int ask_fill_request(struct conn *c, struct request *request, struct problem *p)
{
        if (resolve_device(c, request, p) < 0)
                return -1;
        request->uid = c->peer.uid;
        request->is_admin = c->peer.is_admin;
        request->quota = limits_row(c);
        if (request->consumer[0] == '\0')
                (void) snprintf(request->consumer, sizeof(request->consumer), "%s", c->peer.consumer);
        return 0;
}

static bool is_mig(const char *uuid)
{
        return strncmp(uuid, "MIG-", 4) == 0;
}

/* A device is named, or all that there are: is it on a MIG instance, wherever it lands? */
static bool only_mig(const struct world *w, const struct request *request)
{
        if (request->device_uuid[0] != '\0')
                return is_mig(request->device_uuid);
        for (uint32_t i = 0; i < w->n_devices; i++)
                if (!is_mig(w->devices[i].uuid))
                        return false;
        return w->n_devices > 0;
}

int ask_check_ways(struct conn *c, const struct request *request, bool heard, const char *unmanaged, struct problem *p)
{
        struct unfit_facts facts = { .only_mig = only_mig(route_world(c), request),
                                     .unmanaged = unmanaged,
                                     .heard = heard };
        struct unfit unfit;

        if (!unfit_find(request, &facts, &unfit))
                return 0;
        return problem_set(p, 422, "way-out-unfit", "the way out %s would not do: %s; %s",
                           way_out_name((enum way_out_kind) unfit.way), unfit.why, unfit.cure);
}

void ask_lease(struct conn *c)
{
        struct lease_ask ask;
        struct problem p;
        struct input input = { .kind = INPUT_REQUEST };

        if (lease_json_parse(strbuf_text(&c->body), c->body.len, &ask, &p) < 0) {
                conn_reply_problem(c, &p, NULL);
                return;
        }
        if (ask_fill_request(c, &ask.request, &p) < 0 || ask_check_ways(c, &ask.request, true, NULL, &p) < 0) {
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
        booking_fill(c, &ask);
        c->mode = ask.mode;
        c->gives_up = ask.mode != LEASE_ASK_QUEUE;
        c->binds_here = binding->kind == BINDING_CONNECTION;
        input.request = ask.request;
        route_submit(c, &input, &input.request.token, WANT_LEASE);
}

static void call_lease(struct conn *c, enum input_kind kind, const struct activate_ask *activate, bool failed)
{
        struct input input = { .kind = (uint8_t) kind };
        struct lease *lease = route_lease(c);
        struct problem p;
        struct view v;

        if (!lease)
                return;
        if (lease->state == LEASE_DRAINING && kind != INPUT_ACTIVATE) { /* over in the books: a second end is none */
                story_reply_gone(c);
                return;
        }
        input.call = (struct lease_call){
                .lease_id = lease->id,
                .uid = c->peer.uid,
                .is_admin = c->peer.is_admin,
                .end_reason = c->peer.uid == lease->uid ? END_RELEASED : END_RELEASED_ADMIN,
                .failed = failed,
        };
        if (activate && lease->booked_ms != 0 && identity_is_none(c->peer.identity)) {
                problem_set(&p, 409, "no-process",
                            "a booking is collected by the process that has it from then on; ask by the unix socket");
                conn_reply_problem(c, &p, NULL);
                return;
        }
        if (activate && lease->booked_ms != 0)
                input.call.owner = c->peer.identity; /* whose it is from now on: until now it was nobody's */
        if (activate) {
                input.call.cgroup_id = activate->cgroup_id;
                if (activate->pid != 0 &&
                    peer_process(&c->peer, &c->server->options.rules, activate->pid, "pid", &input.call.root, &p) < 0) {
                        conn_reply_problem(c, &p, NULL);
                        return;
                }
        }
        conn_view(c, &v);
        strbuf_init(&c->before, LEASE_TEXT_MAX);
        view_last_of_lease_begin(&v, lease, &c->before);
        route_submit(c, &input, &input.call.token, WANT_CALL);
}

void ask_activate(struct conn *c)
{
        struct activate_ask ask;
        struct problem p;

        if (activate_json_parse(strbuf_text(&c->body), c->body.len, &ask, &p) < 0)
                conn_reply_problem(c, &p, NULL);
        else
                call_lease(c, INPUT_ACTIVATE, &ask, false);
}

void ask_renew(struct conn *c)
{
        struct problem p;

        if (empty_json_parse(strbuf_text(&c->body), c->body.len, &p) < 0)
                conn_reply_problem(c, &p, NULL);
        else
                call_lease(c, INPUT_RENEW, NULL, false);
}

void ask_release(struct conn *c)
{
        uint64_t failed;
        struct problem p;

        if (route_query_u64(c, "failed", 0, 1, 0, &failed) < 0)
                return;
        if (empty_json_parse(strbuf_text(&c->body), c->body.len, &p) < 0)
                conn_reply_problem(c, &p, NULL);
        else
                call_lease(c, INPUT_RELEASE, NULL, failed == 1);
}
