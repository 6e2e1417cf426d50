/* SPDX-License-Identifier: Apache-2.0 */
#include "api/view.h"
#include "base/size.h"
#include "model/reason.h"

/* Is somebody in it: whose lease or process, or who said it? */
static bool has_uid(const struct action *a)
{
        bool was_said = a->kind == ACTION_ENFORCE && a->why.rule != RULE_ENFORCE_DOUBT;

        return a->lease_id != 0 || a->priority != 0 || !identity_is_none(a->process) || was_said ||
               a->why.rule == RULE_ADMIN_ONLY;
}

json_t *view_event(const struct view *v, const struct api_event *event)
{
        const struct action *a = &event->action;
        char size[SIZE_TEXT_MAX], text[REASON_TEXT_MAX];

        return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:o}", "id", view_u64(a->id),
                         "time", view_wall_time(event->wall_ms), "kind", action_kind_name((enum action_kind) a->kind),
                         "lease", view_lease_id(a->lease_id), "device", view_device_uuid(v->world, a->device), "uid",
                         view_u64_or_null(has_uid(a), a->uid), "pid",
                         view_u64_or_null(!identity_is_none(a->process), a->process.pid), "bytes",
                         view_u64_or_null(a->bytes != 0, a->bytes), "size",
                         a->bytes != 0 ? json_string(size_text(a->bytes, size)) : json_null(), "priority",
                         view_u64_or_null(a->priority != 0, a->priority), "rule", rule_name((enum rule) a->why.rule),
                         "text", reason_text(&a->why, event->now_ms, text, sizeof(text)), "reason",
                         view_reason(&a->why, event->now_ms));
}
