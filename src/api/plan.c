/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dry run: the core is asked on a copy of the world and nothing is told to anybody. What it rests on is the last look at
 * the devices, however old: a plan may rest on that, a grant may not, and the answer says how old.
 */
#include "api/booking.h"
#include "api/refusal.h"
#include "api/routes.h"
#include "base/number.h"

static const char *outcome_of(const struct action *a)
{
        switch ((unsigned) a->kind) {
        case ACTION_GRANTED:
                return "start";
        case ACTION_QUEUED:
                return "wait";
        }
        return "refused";
}

static uint64_t oldest_look_ms(struct conn *c, const struct world *w, bool *ret_known)
{
        const struct api_host *host = &c->server->host;
        uint64_t oldest = 0, age;

        *ret_known = w->n_devices > 0;
        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!host->looked_ms(host->ctx, d, &age))
                        *ret_known = false;
                else if (age > oldest)
                        oldest = age;
        }
        return oldest;
}

/* The victims of a plan on a copy of the world: the real ones' rows, which nothing has touched since. */
static json_t *view_victim(const struct view *v, const struct victim *victim, uint64_t *out_ms, bool *known)
{
        enum way_out_kind way = (enum way_out_kind) victim->way;
        const struct lease *lease = world_lease_get(v->world, victim->lease);
        if (!lease)
                return NULL;
        const struct holder *holder = world_holder_get(v->world, lease->holder);
        const struct habit *habit = world_habit_find(v->world, lease->uid, lease->consumer);
        const struct way_cost *cost = habit && way < WAY_OUT_N ? &habit->costs[way] : NULL;
        uint64_t floor = way < WAY_OUT_N ? lease->ways.floor_bytes[way] : 0;
        bool measured = cost && cost->n > 0;

        *out_ms = u64_add_sat(*out_ms, measured ? cost->out_ms : 0);
        *known = *known && measured;
        return json_pack(
                "{s:o, s:o, s:i, s:s, s:o, s:o, s:o}", "lease", view_lease_id(lease->id), "user",
                view_text_or_null(user_names_get(v->names, lease->uid)), "priority", (int) lease->priority, "way",
                way_out_name(way), "bytes",
                view_u64_or_null(holder && holder->used_known, holder ? u64_sub0(holder->used_bytes, floor) : 0),
                "out_ms", view_u64_or_null(measured, measured ? cost->out_ms : 0), "back_ms",
                view_u64_or_null(measured && cost->back_ms > 0, measured ? cost->back_ms : 0));
}

/* What would be taken back; null: nothing has to be, or it would not do. */
static json_t *view_plan(const struct view *v, const struct plan *plan)
{
        json_t *victims = json_array();
        uint64_t out_ms = 0;
        bool known = true;

        if (plan->n_victims == 0) {
                json_decref(victims);
                return json_null();
        }
        for (uint32_t i = 0; victims && i < plan->n_victims && i < VICTIMS_MAX; i++) {
                json_t *victim = view_victim(v, &plan->victims[i], &out_ms, &known);
                if (victim)
                        (void) json_array_append_new(victims, victim);
        }
        return json_pack("{s:o, s:o, s:o}", "victims", victims, "need_bytes", view_u64(plan->need_bytes), "out_ms",
                         view_u64_or_null(known, out_ms));
}

void plan_lease(struct conn *c)
{
        struct api_host *host = &c->server->host;
        struct api_planned planned;
        struct lease_ask ask;
        struct problem p;
        char text[REASON_TEXT_MAX];
        bool age_known;

        if (plan_json_parse(strbuf_text(&c->body), c->body.len, &ask, &p) < 0 ||
            ask_fill_request(c, &ask.request, &p) < 0 || ask_check_ways(c, &ask.request, true, NULL, &p) < 0 ||
            peer_may_have_priority(&c->peer, ask.request.priority, &p) < 0) {
                conn_reply_problem(c, &p, NULL);
                return;
        }
        ask.request.binding.owner = c->peer.identity;
        booking_fill(c, &ask);
        ask.request.no_wait = false; /* the question is what would happen to it, not whether to let it */
        if (!host->plan(host->ctx, &ask.request, &planned)) {
                problem_set(&p, 503, "busy", "there is no memory for a plan just now; try again");
                conn_reply_problem(c, &p, NULL);
                return;
        }

        const struct action *a = &planned.answer;
        uint64_t now_ms = host->now_ms(host->ctx), age_ms = oldest_look_ms(c, route_world(c), &age_known);
        uint64_t start_ms = a->why.start_ms;
        bool refused = a->kind == ACTION_REFUSED;
        struct view v;
        conn_view(c, &v);
        if (refused)
                refusal_of_action(&p, a, now_ms);
        conn_reply(c, MHD_HTTP_OK,
                   json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "outcome",
                             outcome_of(a), "device", view_device_uuid(route_world(c), a->device), "bytes",
                             view_u64(planned.bytes), "sized", sized_name((enum sized) planned.sized), "sized_by_runs",
                             view_u64(planned.sized_by), "place",
                             view_u64_or_null(a->kind == ACTION_QUEUED, a->why.place), "n_waiting",
                             view_u64_or_null(a->kind == ACTION_QUEUED, a->why.n_waiting), "expected_start_ms",
                             a->kind == ACTION_GRANTED ? view_u64(0)
                                                       : view_u64_or_null(!refused && start_ms != 0,
                                                                          start_ms > now_ms ? start_ms - now_ms : 0),
                             "text", refused ? p.detail : reason_text(&a->why, now_ms, text, sizeof(text)), "reason",
                             view_reason(&a->why, now_ms), "type", refused ? view_text_or_null(p.type) : json_null(),
                             "as_of_ms", view_u64_or_null(age_known, age_ms), "plan", view_plan(&v, &planned.plan)));
}
