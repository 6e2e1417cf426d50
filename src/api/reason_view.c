/* SPDX-License-Identifier: Apache-2.0 */
#include "api/view.h"
#include "model/hand.h"
#include "model/lease.h"
#include "model/reason.h"
#include "model/way_out.h"

static json_t *blocker(const struct blocker *b, uint64_t now_ms)
{
        const char *no = b->no != RECLAIM_MAY ? reclaim_no_name((enum reclaim_no) b->no) : NULL;

        return json_pack("{s:s, s:o, s:o, s:o, s:o, s:s?}", "kind", blocker_kind_name((enum blocker_kind) b->kind),
                         "lease", view_lease_id(b->lease_id), "pid", view_u64_or_null(b->pid != 0, b->pid), "bytes",
                         view_u64(b->bytes), "ends_in_ms",
                         view_u64_or_null(b->end_ms != 0, b->end_ms > now_ms ? b->end_ms - now_ms : 0), "why_not", no);
}

json_t *view_blockers(const struct reason *reason, uint64_t now_ms)
{
        json_t *list = json_array();
        for (uint32_t i = 0; list && i < reason->n_blockers && i < BLOCKERS_MAX; i++)
                (void) json_array_append_new(list, blocker(&reason->blockers[i], now_ms));
        return list;
}

/* What the number in `limit` stands for, by its name. */
static void limit_fields(struct fields *f, const struct reason *reason)
{
        switch ((unsigned) reason->rule) {
        case RULE_ASKED:
        case RULE_PARK_FAILED:
        case RULE_STRUCK_OUT:
        case RULE_WAY_OUT_UNFIT:
                fields_text(f, "way", way_out_name((enum way_out_kind) reason->limit));
                return;
        case RULE_END_BLOCKED:
        case RULE_PARK_BLOCKED:
        case RULE_THAW_BLOCKED:
        case RULE_THAW_FAILED:
        case RULE_STUCK:
                fields_text(f, "hands", hand_why_name((enum hand_why) reason->limit));
                return;
        case RULE_CANNOT_PARK:
                fields_text(f, "why_not", reclaim_no_name((enum reclaim_no) reason->limit));
                return;
        }
}

/* Figures that do not apply are 0 in the struct and left out here; which ones count is the rule's business. */
void reason_fields(struct fields *f, const struct reason *reason, uint64_t now_ms)
{
        const struct {
                const char *name;
                uint64_t value;
        } figures[] = {
                { "place", reason->place },
                { "n_waiting", reason->n_waiting },
                { "limit", reason->limit },
                { "lent_bytes", reason->lent_bytes },
                { "ceiling_bytes", reason->ceiling_bytes },
                { "total_bytes", reason->total_bytes },
                { "used_bytes", reason->used_bytes },
                { "reserved_bytes", reason->reserved_bytes },
                { "reading_age_ms", reason->reading_age_ms },
        };

        fields_text(f, "rule", rule_name((enum rule) reason->rule));
        if (reason->end != END_NONE)
                fields_text(f, "end", end_reason_name((enum end_reason) reason->end));
        limit_fields(f, reason);
        if (reason->need_bytes != 0) { /* free: 0 is an answer here */
                fields_u64(f, "need_bytes", reason->need_bytes);
                fields_u64(f, "free_bytes", reason->free_bytes);
        }
        for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
                if (figures[i].value != 0)
                        fields_u64(f, figures[i].name, figures[i].value);
        if (reason->head_lease_id != 0)
                fields_value(f, "head_lease", view_lease_id(reason->head_lease_id));
        if (reason->start_ms != 0)
                fields_u64(f, "starts_in_ms", reason->start_ms > now_ms ? reason->start_ms - now_ms : 0);
        if (reason->earliest_ms != 0)
                fields_u64(f, "earliest_in_ms", reason->earliest_ms > now_ms ? reason->earliest_ms - now_ms : 0);
        if (reason->n_blockers != 0) {
                fields_u64(f, "n_blockers", reason->n_blockers);
                fields_value(f, "blockers", view_blockers(reason, now_ms));
        }
}

json_t *view_reason(const struct reason *reason, uint64_t now_ms)
{
        struct fields f = { .object = json_object() };

        reason_fields(&f, reason, now_ms);
        return f.object;
}
