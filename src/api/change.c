/* SPDX-License-Identifier: Apache-2.0 */
/* PATCH of a lease: another priority, slot or pin. */
#include "api/change_json.h"
#include "api/routes.h"

void ask_change(struct conn *c)
{
        struct input input = { .kind = INPUT_CHANGE };
        struct change change;
        struct problem p;
        struct view v;

        if (change_json_parse(strbuf_text(&c->body), c->body.len, &change, &p) < 0) {
                conn_reply_problem(c, &p, NULL);
                return;
        }
        struct lease *lease = route_lease(c);
        if (!lease)
                return;
        change.lease_id = lease->id;
        change.uid = c->peer.uid;
        change.is_admin = c->peer.is_admin;
        change.quota = limits_row(c);
        conn_view(c, &v);
        strbuf_init(&c->before, LEASE_TEXT_MAX);
        view_last_of_lease_begin(&v, lease, &c->before);
        input.change = change;
        route_submit(c, &input, &input.change.token, WANT_CALL);
}
