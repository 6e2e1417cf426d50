/* SPDX-License-Identifier: Apache-2.0 */
/* Off its device and back: what a person wants of a lease, and what its program says. */
#include "api/park_json.h"
#include "api/routes.h"

static void submit(struct conn *c, const struct park_call *call)
{
        struct input input = { .kind = INPUT_PARK, .park = *call };
        struct lease *lease = route_lease(c);
        struct view v;

        if (!lease)
                return;
        input.park.lease_id = lease->id;
        input.park.uid = c->peer.uid;
        input.park.is_admin = c->peer.is_admin;
        conn_view(c, &v);
        strbuf_init(&c->before, LEASE_TEXT_MAX);
        view_last_of_lease_begin(&v, lease, &c->before);
        route_submit(c, &input, &input.park.token, WANT_CALL);
}

static void submit_parsed(struct conn *c, int (*parse)(const char *, size_t, struct park_call *, struct problem *))
{
        struct park_call call;
        struct problem p;

        if (parse(strbuf_text(&c->body), c->body.len, &call, &p) < 0)
                conn_reply_problem(c, &p, NULL);
        else
                submit(c, &call);
}

static void submit_plain(struct conn *c, enum park_call_what what)
{
        struct park_call call = { .what = (uint8_t) what };
        struct problem p;

        if (empty_json_parse(strbuf_text(&c->body), c->body.len, &p) < 0)
                conn_reply_problem(c, &p, NULL);
        else
                submit(c, &call);
}

void ask_park(struct conn *c)
{
        submit_parsed(c, park_json_parse);
}

void ask_idle(struct conn *c)
{
        submit_parsed(c, idle_json_parse);
}

void ask_thaw(struct conn *c)
{
        submit_plain(c, PARK_CALL_THAW);
}

void ask_yielded(struct conn *c)
{
        submit_plain(c, PARK_CALL_YIELDED);
}

void ask_busy(struct conn *c)
{
        submit_plain(c, PARK_CALL_BUSY);
}

void ask_forgive(struct conn *c)
{
        submit_plain(c, PARK_CALL_FORGIVE);
}
