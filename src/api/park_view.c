/* SPDX-License-Identifier: Apache-2.0 */
/* A lease on its way off its device, away or on its way back; what it could go by; and where the host stands in that. */
#include "api/view.h"
#include "arbiter/reclaim.h"
#include "base/number.h"
#include "model/host.h"
#include "model/park.h"
#include "model/way_out.h"

static json_t *way_object(const struct lease *l, enum way_out_kind way)
{
        const struct ways_out *ways = &l->ways;

        return json_pack("{s:s, s:b, s:b, s:o, s:o}", "way", way_out_name(way), "named",
                         (ways->named & WAY_OUT_BIT(way)) != 0, "proven", (ways->proven & WAY_OUT_BIT(way)) != 0,
                         "floor_bytes", view_u64(ways->floor_bytes[way]), "strikes", view_u64(l->park.strikes[way]));
}

json_t *view_ways(const struct lease *l)
{
        json_t *list = json_array();

        for (unsigned way = 0; list && way < WAY_OUT_N; way++)
                if (ways_out_usable(&l->ways) & WAY_OUT_BIT(way))
                        (void) json_array_append_new(list, way_object(l, (enum way_out_kind) way));
        return list;
}

/* When it may be back, as far as somebody has said so: a person, the queue, or the slot of whose memory it is now. */
static uint64_t back_ms(const struct view *v, const struct lease *l)
{
        const struct park *p = &l->park;
        const struct entry *entry = world_entry_get(v->world, l->entry);
        const struct lease *owner = p->for_lease_id != 0 ? world_lease_by_id(v->world, p->for_lease_id) : NULL;

        if (p->cause == PARK_BY_PERSON)
                return p->until_ms;
        if (entry && entry->start_ms != 0)
                return entry->start_ms;
        return owner ? owner->slot_end_ms : 0;
}

static uint64_t measured_back_ms(const struct view *v, const struct lease *l)
{
        const struct habit *h = world_habit_find(v->world, l->uid, l->consumer);

        return h && l->park.way < WAY_OUT_N ? h->costs[l->park.way].back_ms : 0;
}

/* Until when its client is to have done what it was asked for. The device has longer to show it. */
static uint64_t client_deadline_ms(const struct view *v, const struct park *p)
{
        if (p->step == PARK_ASKING && p->way == WAY_OUT_RESTART && p->deadline_ms != 0)
                return u64_min(p->deadline_ms, p->step_ms + v->world->config.yield_grace_ms);
        return p->deadline_ms;
}

void view_park(const struct view *v, struct fields *f, const struct lease *l)
{
        const struct park *p = &l->park;
        uint64_t expected = back_ms(v, l);
        bool away = p->step == PARK_OUT;

        if (p->step == PARK_NONE) {
                fields_value(f, "park", json_null());
                return;
        }
        const struct lease *owner = p->for_lease_id != 0 ? world_lease_by_id(v->world, p->for_lease_id) : NULL;
        struct fields inner = fields_open(f, "park");
        fields_text(&inner, "step", park_step_name((enum park_step) p->step));
        fields_text(&inner, "way", way_out_name((enum way_out_kind) p->way));
        fields_text(&inner, "cause", park_cause_name((enum park_cause) p->cause));
        fields_value(&inner, "for", view_lease_id(p->for_lease_id));
        fields_text(&inner, "for_user", owner ? user_names_get(v->names, owner->uid) : NULL);
        fields_text(&inner, "for_priority", owner ? priority_name(owner->priority) : NULL);
        fields_u64_or_null(&inner, "by_uid", p->cause == PARK_BY_PERSON || p->cause == PARK_REHEARSAL, p->by_uid);
        fields_value(&inner, "since", view_time(v, away && p->parked_ms != 0 ? p->parked_ms : p->started_ms));
        fields_value(&inner, "until", view_time(v, p->until_ms));
        uint64_t deadline_ms = client_deadline_ms(v, p);
        fields_u64_or_null(&inner, "deadline_ms", deadline_ms != 0, u64_sub0(deadline_ms, v->now_ms));
        fields_u64(&inner, "bytes", p->used_bytes);
        fields_u64(&inner, "host_bytes", p->charged_bytes);
        fields_u64_or_null(&inner, "expected_back_ms", expected != 0,
                           u64_sub0(expected, v->now_ms) + measured_back_ms(v, l));
        fields_close(f, &inner);
}

json_t *view_ledger(const struct view *v)
{
        const struct world *w = v->world;

        return json_pack("{s:o, s:o, s:o}", "cap_bytes", view_u64(w->config.ledger_cap_bytes), "charged_bytes",
                         view_u64(w->ledger_charged_bytes), "room_bytes", view_u64(reclaim_ledger_room_bytes(w)));
}

json_t *view_host(const struct view *v)
{
        const struct host *h = &v->world->host;
        const struct config *config = &v->world->config;
        bool known = h->total_bytes != 0;
        uint64_t share = h->total_bytes / 1000 * config->host_reserve_milli;
        enum checkpoint_cannot can = (enum checkpoint_cannot) h->checkpoint;

        return json_pack("{s:o, s:o, s:o, s:b, s:s, s:s}", "total_bytes", view_u64_or_null(known, h->total_bytes),
                         "available_bytes", view_u64_or_null(known, h->available_bytes), "reserve_bytes",
                         view_u64(u64_max(config->host_reserve_bytes, share)), "pressure", (int) h->pressure,
                         "checkpoint", checkpoint_cannot_name(can), "checkpoint_words", checkpoint_cannot_text(can));
}
