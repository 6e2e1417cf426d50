/* SPDX-License-Identifier: Apache-2.0 */
/* Processes with device memory as JSON: under which lease each is, by what, and how each step to its ancestors is known. */
#include <jansson.h>
#include "api/view.h"
#include "store/journal_audit.h"

static json_t *ancestors(const struct process *p)
{
        json_t *list = json_array();

        for (uint32_t i = 0; list && i < p->n_ancestors; i++)
                (void) json_array_append_new(list,
                                             json_pack("{s:I, s:s}", "pid", (json_int_t) p->ancestors[i].pid,
                                                       "known_by", process_link_name((enum process_link) p->links[i])));
        return list;
}

static json_t *devices(const struct view *v, const struct process *p)
{
        json_t *list = json_array();

        for (uint32_t d = 0; list && d < v->world->n_devices; d++) {
                const struct occupancy *o = world_occupancy_find(v->world, d, p->identity);
                if (o)
                        (void) json_array_append_new(
                                list, json_pack("{s:o, s:o}", "device", view_device_uuid(v->world, d), "used_bytes",
                                                view_u64_or_null((o->flags & ROW_USED_KNOWN) != 0, o->used_bytes)));
        }
        return list;
}

json_t *view_place(const struct view *v, const struct process *p)
{
        const struct journal_audit *known =
                p && view_shows_detail(v, p->uid) ? v->host->facts(v->host->ctx, p->identity.pid) : NULL;
        if (!known || known->start_ticks != p->identity.start_ticks)
                return json_null();

        json_t *facts = json_loadb(known->facts, known->n_facts, 0, NULL);
        json_t *place = json_object_get(facts, "place");
        json_t *ret = json_is_object(place) ? json_incref(place) : json_null();
        json_decref(facts);
        return ret;
}

static json_t *view_process(const struct view *v, const struct process *p)
{
        static const char *const states[] = {
                [PROCESS_LIVE] = "live", [PROCESS_UNCONFIRMED] = "unconfirmed", [PROCESS_ENDED] = "ended"
        };
        const struct lease *lease = world_lease_get(v->world, p->lease);
        bool known_uid = p->uid != UINT32_MAX, detail = view_shows_detail(v, p->uid);

        return json_pack(
                "{s:I, s:o, s:o, s:o, s:s, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "pid",
                (json_int_t) p->identity.pid, "uid", view_u64_or_null(known_uid, p->uid), "user",
                view_text_or_null(known_uid ? user_names_get(v->names, p->uid) : NULL), "comm",
                view_text_or_null(p->comm), "state", states[p->state], "lease", view_lease_id(lease ? lease->id : 0),
                "by", attributed_by_name(lease ? (enum attributed_by) p->attributed_by : ATTRIBUTED_NOT), "guard",
                process_guard_name((enum process_guard) p->guard), "runs",
                process_runs_name((enum process_runs) p->runs), "token", view_lease_id(detail ? p->token_id : 0),
                "ancestors", detail ? ancestors(p) : json_null(), "devices", devices(v, p), "place", view_place(v, p));
}

json_t *view_processes(const struct view *v)
{
        json_t *list = json_array();

        for (uint32_t i = 0; list && i < v->world->n_processes; i++)
                (void) json_array_append_new(list, view_process(v, &v->world->processes[i]));
        return list;
}
