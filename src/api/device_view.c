/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "api/view.h"
#include "arbiter/ceiling.h"
#include "arbiter/free.h"

static json_t *holder_object(const struct view *v, const struct holder *h)
{
        const struct lease *lease = h->kind == HOLDER_LEASE ? world_lease_get(v->world, h->lease) : NULL;

        return json_pack("{s:s, s:o, s:o, s:o, s:o, s:b}", "kind", holder_kind_name((enum holder_kind) h->kind),
                         "lease", view_lease_id(lease ? lease->id : 0), "pid",
                         view_u64_or_null(!identity_is_none(h->process), h->process.pid), "reserved_bytes",
                         view_u64(h->reserved_bytes), "used_bytes", view_u64_or_null(h->used_known, h->used_bytes),
                         "managed", (int) h->managed);
}

static json_t *holders(const struct view *v, uint32_t device)
{
        json_t *list = json_array();

        for (uint32_t i = 0; list && i < v->world->n_holders; i++) {
                const struct holder *h = &v->world->holders[i];
                if (h->kind != HOLDER_NONE && h->device == device)
                        (void) json_array_append_new(list, holder_object(v, h));
        }
        return list;
}

/* The core hears of readings that changed something; a look that confirmed the old figures makes them younger too. */
static json_t *reading_age(const struct view *v, uint32_t device)
{
        const struct device *d = &v->world->devices[device];
        uint64_t age = 0;

        if (v->host->looked_ms(v->host->ctx, device, &age))
                return view_u64(age);
        return view_u64_or_null(d->reading_ms != 0, v->now_ms > d->reading_ms ? v->now_ms - d->reading_ms : 0);
}

json_t *view_device(const struct view *v, uint32_t device)
{
        const struct world *w = v->world;
        const struct device *d = &w->devices[device];
        struct sums sums;

        sums_of_device(w, device, &sums);
        return json_pack(
                "{s:o, s:o, s:o, s:I, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o}",
                "uuid", view_text_or_null(d->uuid), "name", view_text_or_null(d->name), "pci_bus_id",
                view_text_or_null(d->pci_bus_id), "minor", (json_int_t) d->minor, "health",
                device_health_name((enum device_health) d->health), "usable", (int) device_is_usable(d), "total_bytes",
                view_u64_or_null(d->total_bytes != 0, d->total_bytes), "used_bytes",
                view_u64_or_null(d->used_known, d->used_bytes), "reserved_bytes", view_u64(sums.reserved_bytes),
                "committed_bytes", view_u64(device_committed_bytes(w, device)), "free_bytes",
                view_u64(device_free_bytes(w, device)), "display_bytes", view_u64(device_display_bytes(w, device)),
                "unattributed_bytes",
                view_u64_or_null(d->used_known, d->used_known ? device_unattributed_bytes(w, device) : 0),
                "driver_bytes", view_u64_or_null(d->driver_own_known, d->driver_own_bytes), "ceiling_bytes",
                view_u64(device_ceiling_bytes(w, device, NULL)), "reading_age_ms", reading_age(v, device), "settled",
                (int) d->settled, "per_process_known", (int) d->per_process_known, "holders", holders(v, device));
}

json_t *view_devices(const struct view *v)
{
        json_t *list = json_array();

        for (uint32_t i = 0; list && i < v->world->n_devices; i++)
                if (v->world->devices[i].health != DEVICE_ABSENT)
                        (void) json_array_append_new(list, view_device(v, i));
        return list;
}

/* A row that no process was found for has no start time (model/process.h). */
static bool is_ghost(const struct holder *stranger)
{
        return !identity_is_none(stranger->process) && stranger->process.start_ticks == 0;
}

json_t *view_strangers(const struct view *v)
{
        json_t *list = json_array();

        for (uint32_t i = 0; list && i < v->world->n_holders; i++) {
                const struct holder *h = &v->world->holders[i];
                if (h->kind != HOLDER_STRANGER)
                        continue;

                const struct process *p = world_process_find(v->world, h->process);
                json_t *object = json_pack("{s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "place", view_place(v, p), "pid",
                                           view_u64_or_null(!identity_is_none(h->process), h->process.pid), "ghost",
                                           (int) is_ghost(h), "uid", view_u64_or_null(p != NULL, p ? p->uid : 0),
                                           "user", view_text_or_null(p ? user_names_get(v->names, p->uid) : NULL),
                                           "comm", view_text_or_null(p ? p->comm : NULL), "device",
                                           view_device_uuid(v->world, h->device), "used_bytes",
                                           view_u64_or_null(h->used_known, h->used_bytes));
                (void) json_array_append_new(list, object);
        }
        return list;
}
