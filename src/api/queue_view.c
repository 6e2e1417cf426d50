/* SPDX-License-Identifier: Apache-2.0 */
#include "api/view.h"
#include "arbiter/rank.h"
#include "base/size.h"
#include "model/entry.h"
#include "model/lease.h"
#include "model/reason.h"

/* The device an entry is bound to; null when it may be on several. */
static json_t *only_device(const struct world *world, uint64_t devices)
{
        if (devices == 0 || (devices & (devices - 1)) != 0)
                return json_null();
        return view_device_uuid(world, (uint32_t) __builtin_ctzll(devices));
}

static json_t *entry_object(struct view *v, uint32_t row)
{
        const struct entry *e = &v->world->entries[row];
        const struct lease *lease = world_lease_get(v->world, e->lease);
        struct api_told told = { 0 };
        bool is_told = lease && v->host->told(v->host->ctx, lease->id, &told);
        uint64_t start_ms = e->is_head && e->start_ms != 0 ? e->start_ms : told.why.start_ms;
        char size[SIZE_TEXT_MAX], why[REASON_TEXT_MAX];

        return json_pack(
                "{s:o, s:s, s:o, s:o, s:o, s:i, s:i, s:o, s:s, s:o, s:o, s:b, s:o, s:s, s:o}", "place",
                view_u64(v->place[row]), "kind", entry_kind_name((enum entry_kind) e->kind), "lease",
                view_lease_id(lease ? lease->id : 0), "uid", view_u64_or_null(lease != NULL, lease ? lease->uid : 0),
                "user", view_text_or_null(lease ? user_names_get(v->names, lease->uid) : NULL), "priority",
                (int) e->priority, "rank", (int) entry_rank(&v->world->config, e, v->now_ms), "bytes",
                view_u64(e->demand_bytes), "size", size_text(e->demand_bytes, size), "device",
                only_device(v->world, e->devices), "waited_ms", view_u64(entry_waited_ms(e, v->now_ms)), "is_head",
                (int) e->is_head, "expected_start_ms",
                view_u64_or_null(start_ms != 0, start_ms > v->now_ms ? start_ms - v->now_ms : 0), "wait",
                wait_kind_name((enum wait_kind) e->wait_kind), "why",
                is_told ? view_text_or_null(reason_text(&told.why, v->now_ms, why, sizeof(why))) : json_null());
}

json_t *view_queue(struct view *v)
{
        json_t *list = json_array();

        view_order_queue(v);
        for (uint32_t i = 0; list && i < v->n_order; i++)
                (void) json_array_append_new(list, entry_object(v, v->order[i]));
        return list;
}
