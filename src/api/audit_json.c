/* SPDX-License-Identifier: Apache-2.0 */
#include "api/audit_json.h"
#include <string.h>
#include "model/lease.h"

static json_t *number(uint64_t n)
{
        return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t) n);
}

static json_t *number_or_null(bool known, uint64_t n)
{
        return known ? number(n) : json_null();
}

static json_t *lease_or_null(uint64_t lease_id)
{
        char text[LEASE_ID_TEXT_MAX];
        return lease_id == 0 ? json_null() : json_string(lease_id_text(lease_id, text));
}

static json_t *name_or_null(const struct told_audit_host *host, const struct journal_audit *audit)
{
        const char *name = audit->uid_known && host->name ? host->name(host->ctx, audit->uid) : NULL;
        json_t *text = name && name[0] != '\0' ? json_string(name) : NULL;

        return text ? text : json_null();
}

/* Null: what stands there is no facts. */
static json_t *facts_of(const struct journal_audit *audit)
{
        json_t *facts = json_loadb(audit->facts, audit->n_facts, JSON_REJECT_DUPLICATES, NULL);

        if (json_is_object(facts))
                return facts;
        json_decref(facts);
        return json_null();
}

/* Points and waits are of a pid and a start, which may come again behind a reboot. */
static bool is_of_row(const struct audited_row *row, uint64_t from_ms, uint64_t to_ms)
{
        return to_ms >= row->audit.wall_ms && (row->until_wall_ms == 0 || from_ms < row->until_wall_ms);
}

static json_t *memory_json(const struct audited_row *row, const struct audited_series *series)
{
        json_t *list = series ? json_array() : json_null();

        for (uint32_t i = 0; series && i < series->n_points; i++) {
                const struct audited_point *p = &series->points[i];
                if (!is_of_row(row, p->hour_ms, p->hour_ms + AUDITED_HOUR_MS))
                        continue;
                json_t *one = json_pack("{s:o, s:o, s:o, s:o}", "hour", told_time(p->hour_ms), "min_bytes",
                                        number(p->min_bytes), "max_bytes", number(p->max_bytes), "last_bytes",
                                        number(p->last_bytes));
                if (json_array_append_new(list, one) < 0) {
                        json_decref(list);
                        return NULL;
                }
        }
        return list;
}

static json_t *displaced_json(const struct audited_row *row, const struct audited_series *series)
{
        json_t *list = series ? json_array() : json_null();

        for (uint32_t i = 0; series && i < series->n_displaced; i++) {
                const struct audited_displaced *d = &series->displaced[i];
                if (!is_of_row(row, d->first_wall_ms, d->last_wall_ms))
                        continue;
                json_t *one = json_pack("{s:o, s:o, s:o, s:o}", "lease", lease_or_null(d->lease_id), "first",
                                        told_time(d->first_wall_ms), "last", told_time(d->last_wall_ms), "bytes",
                                        number(d->bytes));
                if (json_array_append_new(list, one) < 0) {
                        json_decref(list);
                        return NULL;
                }
        }
        return list;
}

static json_t *row_json(const struct audited *audited, const struct audited_row *row,
                        const struct told_audit_host *host)
{
        const struct journal_audit *a = &row->audit;
        const struct audited_series *series = audited_series_of(audited, (struct identity){ a->pid, a->start_ticks });
        struct told_now now = { 0 };
        json_t *facts = facts_of(a);
        json_t *comm = json_object_get(facts, "comm");

        if (host->now)
                host->now(host->ctx, a, &now);
        json_t *one = json_pack("{s:o, s:o, s:o, s:o, s:o, s:O, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "id",
                                number_or_null(a->id != 0, a->id), "pid", number(a->pid), "start_ticks",
                                number(a->start_ticks), "uid", number_or_null(a->uid_known, a->uid), "user",
                                name_or_null(host, a), "comm", json_is_string(comm) ? comm : json_null(), "first_seen",
                                told_time(a->wall_ms), "live", now.known ? json_boolean(now.is_live) : json_null(),
                                "used_bytes", number_or_null(now.known && now.used_known, now.used_bytes), "lease",
                                lease_or_null(now.lease_id), "facts",
                                !host->shows || host->shows(host->ctx, a) ? json_incref(facts) : json_null(), "memory",
                                memory_json(row, series), "displaced", displaced_json(row, series));
        json_decref(facts);
        return one;
}

json_t *told_audited(const struct audited *audited, const struct told_audit_host *host)
{
        const struct journal_audit *last = audited->n_rows > 0 ? &audited->rows[audited->n_rows - 1].audit : NULL;
        json_t *list = json_array();
        int wrong = !list;

        for (size_t i = 0; !wrong && i < audited->n_rows; i++)
                wrong |= json_array_append_new(list, row_json(audited, &audited->rows[i], host));
        json_t *whole = json_pack("{s:o, s:o, s:o}", "audits", list, "next",
                                  number_or_null(audited->is_cut && last && last->id != 0, last ? last->id : 0),
                                  "damages", number(audited->n_damages));
        if (!wrong)
                return whole;
        json_decref(whole);
        return NULL;
}
