/* SPDX-License-Identifier: Apache-2.0 */
/* What ways out came to, measured: a user sees his own programs', an administrator everybody's. */
#include "api/routes.h"
#include "model/habit.h"

static json_t *view_cost(const struct view *v, const struct habit *h, enum way_out_kind way)
{
        const struct way_cost *cost = &h->costs[way];

        return json_pack(
                "{s:I, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:o}", "uid", (json_int_t) h->uid, "user",
                view_text_or_null(user_names_get(v->names, h->uid)), "consumer", view_text(h->consumer), "way",
                way_out_name(way), "runs", view_u64(cost->n), "out_ms", view_u64_or_null(cost->n > 0, cost->out_ms),
                "back_ms", view_u64_or_null(cost->back_ms > 0, cost->back_ms), "spread_ms",
                view_u64_or_null(cost->n > 0, cost->spread_ms), "bytes", view_u64_or_null(cost->n > 0, cost->bytes),
                "proven", (int) (way == WAY_OUT_CHECKPOINT && h->proven), "last", view_time(v, h->last_ms));
}

void look_costs(struct conn *c)
{
        json_t *list = json_array();
        struct view v;

        conn_view(c, &v);
        for (uint32_t i = 0; list && i < v.world->n_habits; i++) {
                const struct habit *h = &v.world->habits[i];
                if (habit_is_none(h) || !view_shows_detail(&v, h->uid))
                        continue;
                for (unsigned way = 0; way < WAY_OUT_N; way++)
                        if (h->costs[way].n > 0 || (way == WAY_OUT_CHECKPOINT && h->proven))
                                (void) json_array_append_new(list, view_cost(&v, h, (enum way_out_kind) way));
        }
        conn_reply(c, MHD_HTTP_OK, json_pack("{s:o}", "costs", list));
}
