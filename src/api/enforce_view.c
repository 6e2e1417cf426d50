/* SPDX-License-Identifier: Apache-2.0 */
/* The enforcer as JSON: its mode, whom it judged within the last day, whom approvals cover. */
#include "api/enforce_view.h"
#include <inttypes.h>
#include <stdio.h>
#include "arbiter/enforce.h"
#include "arbiter/enforce_judge.h"

enum { APPROVAL_ID_MAX = 24 };

static json_t *approval_id(uint64_t id)
{
        char text[APPROVAL_ID_MAX];

        (void) snprintf(text, sizeof(text), "A%" PRIu64, id);
        return json_string(text);
}

/* As of now; of one that is gone what had become of it. */
static void judged(const struct view *v, const struct audit *a, const char **ret_verdict, const char **ret_why)
{
        struct stranger s;

        stranger_look(v->world, a->identity, &s);
        struct judgement j = enforce_judge(v->world, &s, a);
        *ret_verdict = a->gone_ms != 0 ? (a->term_ms != 0 ? "ended" : "gone") : verdict_name(j.verdict);
        *ret_why = verdict_why_name(a->gone_ms != 0                   ? VERDICT_WHY_NONE
                                    : a->told & AUDIT_TOLD_UNKILLABLE ? VERDICT_WHY_UNKILLABLE
                                                                      : j.why);
}

static json_t *view_audit(const struct view *v, const struct audit *a)
{
        const char *verdict, *why;

        judged(v, a, &verdict, &why);
        return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:s, s:s, s:b, s:b, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "pid",
                         (json_int_t) a->identity.pid, "uid", (json_int_t) a->uid, "user",
                         view_text_or_null(user_names_get(v->names, a->uid)), "comm", view_text_or_null(a->comm),
                         "device", view_device_uuid(v->world, a->device), "used_bytes", view_u64(a->bytes), "verdict",
                         verdict, "why", why, "would_end", (a->told & AUDIT_TOLD_WOULD) != 0, "unkillable",
                         (a->told & AUDIT_TOLD_UNKILLABLE) != 0, "signals", (int) a->n_signals, "audited",
                         view_time(v, a->audited_ms), "warned", view_time(v, a->warned_ms), "noticed",
                         view_time(v, a->noticed_ms), "sigterm", view_time(v, a->term_ms), "sigkill",
                         view_time(v, a->kill_ms), "gone", view_time(v, a->gone_ms));
}

static json_t *audits(const struct view *v)
{
        json_t *list = json_array();

        for (uint32_t i = 0; list && i < v->world->n_audits; i++) {
                const struct audit *a = &v->world->audits[i];
                if (a->audited_ms != 0 && view_shows_detail(v, a->uid))
                        (void) json_array_append_new(list, view_audit(v, a));
        }
        return list;
}

json_t *view_enforce(const struct view *v)
{
        const struct world *w = v->world;
        const struct enforce *e = &w->enforce;
        const struct config *c = &w->config;
        uint32_t n_would_end = 0;

        for (uint32_t i = 0; i < w->n_audits; i++)
                n_would_end += (w->audits[i].told & AUDIT_TOLD_WOULD) != 0;
        return json_pack(
                "{s:s, s:s, s:s, s:o, s:o, s:o, s:s, s:I, s:I, s:I, s:{s:I, s:I, s:I}, s:i, s:i, s:o}", "mode",
                enforce_mode_name(enforce_mode_of(w)), "asked_mode", enforce_mode_name((enum enforce_mode) e->mode),
                "mode_max", enforce_mode_name((enum enforce_mode) c->enforce_ceiling), "since",
                view_time(v, e->mode_ms), "by_uid", view_u64_or_null(e->mode_ms != 0, e->mode_by_uid), "by_user",
                view_text_or_null(e->mode_ms != 0 ? user_names_get(v->names, e->mode_by_uid) : NULL), "doubt",
                enforce_doubt_name(enforce_doubt_shown(v->world)), "min_bytes", (json_int_t) c->enforce_min_bytes,
                "stay_ms", (json_int_t) c->enforce_stay_ms, "notice_ms", (json_int_t) c->enforce_notice_ms, "grace_ms",
                "program", (json_int_t) c->enforce_grace_ms[GRACE_PROGRAM], "script",
                (json_int_t) c->enforce_grace_ms[GRACE_SCRIPT], "place", (json_int_t) c->enforce_grace_ms[GRACE_PLACE],
                "approvals", (int) w->n_approvals, "would_end", (int) n_would_end, "last_day", audits(v));
}

json_t *view_approval(const struct view *v, const struct approval *a)
{
        return json_pack("{s:o, s:I, s:o, s:o, s:s, s:b, s:b, s:b, s:o, s:o, s:o}", "id", approval_id(a->id), "uid",
                         (json_int_t) a->uid, "user", view_text_or_null(user_names_get(v->names, a->uid)), "comm",
                         view_text_or_null(a->comm), "runs", process_runs_name((enum process_runs) a->runs), "script",
                         a->script != 0, "here", a->place != 0, "lapsed", approval_has_lapsed(v->world, a), "by_user",
                         view_text_or_null(user_names_get(v->names, a->by_uid)), "since", view_time(v, a->since_ms),
                         "until", view_time(v, a->until_ms));
}

json_t *view_approvals(const struct view *v)
{
        json_t *list = json_array();

        for (uint32_t i = 0; list && i < v->world->n_approvals; i++)
                if (view_shows_detail(v, v->world->approvals[i].uid))
                        (void) json_array_append_new(list, view_approval(v, &v->world->approvals[i]));
        return list;
}
