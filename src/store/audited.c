/* SPDX-License-Identifier: Apache-2.0 */
#include "store/audited.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "model/limits.h"
#include "model/process.h"
#include "store/walk.h"

/* ---- rows ---- */

struct taking {
        const struct audited_look *look;
        struct audited *ret;
        size_t cap, max;
        uint64_t last_id; /* that was looked at */
        uint32_t n_page;
        bool failed;
};

static bool is_wanted(const struct audited_look *look, const struct journal_audit *audit)
{
        size_t lo = 0, hi = look->n_only;

        if (!look->only)
                return true;
        if (strcmp(look->boot_id, audit->boot_id) != 0)
                return false;
        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;
                int order = identity_compare(look->only[mid], (struct identity){ audit->pid, audit->start_ticks });
                if (order == 0)
                        return true;
                if (order < 0)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return false;
}

/* The newest come first: who had the pid before had it until then. */
static uint64_t until_of(const struct audited *a, const struct journal_audit *audit)
{
        for (size_t i = a->n_rows; i > 0; i--)
                if (a->rows[i - 1].audit.pid == audit->pid)
                        return a->rows[i - 1].audit.wall_ms;
        return 0;
}

static int take(void *ctx, const struct journal_audit *audit)
{
        struct taking *t = ctx;
        struct audited *a = t->ret;

        t->last_id = audit->id;
        t->n_page++;
        if (!is_wanted(t->look, audit))
                return 0;
        if (a->n_rows == t->max) {
                a->is_cut = true;
                return 1;
        }
        if (a->n_rows == t->cap) {
                size_t cap = t->cap ? 2 * t->cap : 16;
                struct audited_row *grown = reallocarray(a->rows, cap, sizeof(*grown));
                t->failed = !grown;
                if (!grown)
                        return 1;
                a->rows = grown;
                t->cap = cap;
        }
        char *facts = malloc(audit->n_facts + 1);
        t->failed = !facts;
        if (!facts)
                return 1;
        if (audit->n_facts > 0)
                memcpy(facts, audit->facts, audit->n_facts);
        facts[audit->n_facts] = '\0';
        a->rows[a->n_rows] = (struct audited_row){ .audit = *audit, .until_wall_ms = until_of(a, audit) };
        a->rows[a->n_rows++].audit.facts = facts;
        return 0;
}

static int take_rows(struct journal *j, struct taking *t, struct error *err)
{
        int r;

        t->last_id = t->look->before_id;
        do {
                const struct journal_audits_filter page = { .before_id = t->last_id, .pid = t->look->pid };
                t->n_page = 0;
                r = journal_audits(j, &page, take, t, err);
        } while (r == 0 && t->n_page == JOURNAL_AUDITS_LIMIT);
        if (t->failed)
                return error_set(err, ENOMEM, "no memory for the audits");
        return r < 0 ? r : 0;
}

/* ---- what it had, and who waited ---- */

/* What one of them has on one device; where its figure is not known it is no figure at all. */
struct had {
        char uuid[UUID_TEXT_MAX];
        bool known;
        uint64_t bytes;
};

struct follow {
        uint32_t pid;
        struct audited *ret;
        struct had had[AUDITED_SERIES_MAX][DEVICES_MAX]; /* of ret->series */
        uint32_t n_had[AUDITED_SERIES_MAX];
};

static struct audited_series *series_of(struct follow *f, struct identity who)
{
        struct audited *a = f->ret;

        for (uint32_t i = a->n_series; i > 0; i--)
                if (identity_equal(a->series[i - 1].identity, who))
                        return &a->series[i - 1];
        if (a->n_series == AUDITED_SERIES_MAX) {
                memmove(&a->series[0], &a->series[1], (AUDITED_SERIES_MAX - 1) * sizeof(a->series[0]));
                memmove(&f->had[0], &f->had[1], (AUDITED_SERIES_MAX - 1) * sizeof(f->had[0]));
                memmove(&f->n_had[0], &f->n_had[1], (AUDITED_SERIES_MAX - 1) * sizeof(f->n_had[0]));
                a->n_series--;
        }
        f->n_had[a->n_series] = 0;
        a->series[a->n_series] = (struct audited_series){ .identity = who };
        return &a->series[a->n_series++];
}

static void set_had(struct follow *f, const struct audited_series *s, const char *uuid, bool known, uint64_t bytes)
{
        size_t at = (size_t) (s - f->ret->series);
        struct had *had = NULL;

        for (uint32_t i = 0; i < f->n_had[at] && !had; i++)
                if (strcmp(f->had[at][i].uuid, uuid) == 0)
                        had = &f->had[at][i];
        if (!had && f->n_had[at] < DEVICES_MAX) {
                had = &f->had[at][f->n_had[at]++];
                (void) snprintf(had->uuid, sizeof(had->uuid), "%s", uuid);
        }
        if (!had)
                return;
        had->known = known;
        had->bytes = bytes;
}

/* A point of its hour from what it has now. */
static void sample(struct follow *f, struct audited_series *s, uint64_t wall_ms)
{
        size_t at = (size_t) (s - f->ret->series);
        uint64_t bytes = 0, hour_ms = wall_ms - wall_ms % AUDITED_HOUR_MS;
        struct audited_point *last = s->n_points > 0 ? &s->points[s->n_points - 1] : NULL;

        for (uint32_t i = 0; i < f->n_had[at]; i++) {
                if (!f->had[at][i].known)
                        return;
                bytes = u64_add_sat(bytes, f->had[at][i].bytes);
        }
        if (last && last->hour_ms >= hour_ms) { /* a clock that was set back stays in its hour */
                last->min_bytes = u64_min(last->min_bytes, bytes);
                last->max_bytes = u64_max(last->max_bytes, bytes);
                last->last_bytes = bytes;
                return;
        }
        struct audited_point point = {
                .hour_ms = hour_ms, .min_bytes = bytes, .max_bytes = bytes, .last_bytes = bytes
        };
        if (last) { /* it began with what the one before ended with */
                point.min_bytes = u64_min(bytes, last->last_bytes);
                point.max_bytes = u64_max(bytes, last->last_bytes);
        }
        if (s->n_points == AUDITED_POINTS_MAX) {
                memmove(&s->points[0], &s->points[1], (AUDITED_POINTS_MAX - 1) * sizeof(s->points[0]));
                s->n_points--;
        }
        s->points[s->n_points++] = point;
}

static void on_reading(struct follow *f, const struct reading *r, uint64_t wall_ms)
{
        struct audited *a = f->ret;

        if (!r->per_process_known)
                return;
        for (uint32_t i = 0; i < r->n_rows; i++) {
                const struct occupancy *row = &r->rows[i];
                if (row->identity.pid != f->pid || row->identity.start_ticks == 0)
                        continue;
                struct audited_series *s = series_of(f, row->identity);
                set_had(f, s, r->uuid, (row->flags & ROW_USED_KNOWN) != 0, row->used_bytes);
                sample(f, s, wall_ms);
        }
        for (uint32_t i = 0; i < a->n_series; i++) { /* who is not listed has nothing there; its end is no point */
                bool is_listed = false;
                for (uint32_t k = 0; k < r->n_rows && !is_listed; k++)
                        is_listed = identity_equal(r->rows[k].identity, a->series[i].identity);
                if (!is_listed)
                        set_had(f, &a->series[i], r->uuid, true, 0);
        }
}

static struct audited_displaced *displaced_of(struct audited_series *s, uint64_t lease_id)
{
        for (uint32_t i = 0; i < s->n_displaced; i++)
                if (s->displaced[i].lease_id == lease_id)
                        return &s->displaced[i];
        return NULL;
}

static void on_blocker(struct follow *f, uint64_t lease_id, uint64_t bytes, uint64_t wall_ms)
{
        if (f->ret->n_series == 0)
                return;
        struct audited_series *s = &f->ret->series[f->ret->n_series - 1]; /* who had the pid then */
        struct audited_displaced *d = displaced_of(s, lease_id);
        if (!d && s->n_displaced == AUDITED_DISPLACED_MAX)
                return;
        if (!d) {
                d = &s->displaced[s->n_displaced++];
                *d = (struct audited_displaced){ .lease_id = lease_id, .first_wall_ms = wall_ms };
        }
        d->last_wall_ms = wall_ms;
        d->bytes = bytes;
}

static int on_segment(void *ctx, const struct walk_segment *segment, struct error *err)
{
        struct follow *f = ctx;
        const struct world *w = segment->world;

        (void) err;
        for (uint32_t i = 0; i < w->n_occupancies; i++) {
                const struct occupancy *row = &w->occupancies[i];
                if (row->identity.pid != f->pid || row->identity.start_ticks == 0 || row->device >= w->n_devices)
                        continue;
                struct audited_series *s = series_of(f, row->identity);
                set_had(f, s, w->devices[row->device].uuid, (row->flags & ROW_USED_KNOWN) != 0, row->used_bytes);
        }
        for (uint32_t i = 0; i < w->n_occupancies; i++)
                if (w->occupancies[i].identity.pid == f->pid && w->occupancies[i].identity.start_ticks != 0)
                        sample(f, series_of(f, w->occupancies[i].identity), segment->wall_ms);
        return 0;
}

static int on_record(void *ctx, const struct walk_record *record, struct error *err)
{
        struct follow *f = ctx;

        (void) err;
        if (record->input->kind == INPUT_READING)
                on_reading(f, &record->input->reading, record->wall_ms);
        for (uint32_t i = 0; i < record->actions->n; i++) {
                const struct action *a = &record->actions->items[i];
                uint32_t n = a->why.n_blockers < BLOCKERS_MAX ? a->why.n_blockers : BLOCKERS_MAX;
                for (uint32_t b = 0; b < n && a->lease_id != 0; b++)
                        if (a->why.blockers[b].kind == BLOCKER_STRANGER && a->why.blockers[b].pid == f->pid)
                                on_blocker(f, a->lease_id, a->why.blockers[b].bytes, record->wall_ms);
        }
        return 0;
}

static void on_damage(void *ctx, const char *words)
{
        struct follow *f = ctx;

        (void) words;
        f->ret->n_damages++;
}

static int follow_pid(struct journal *j, uint32_t pid, struct audited *ret, struct error *err)
{
        const struct walk_since all = { .kind = WALK_ALL };
        struct follow *f = calloc(1, sizeof(*f));

        ret->series = calloc(AUDITED_SERIES_MAX, sizeof(*ret->series));
        if (!f || !ret->series) {
                free(f);
                return error_set(err, ENOMEM, "no memory for the audits");
        }
        f->pid = pid;
        f->ret = ret;
        const struct walk_visitor visitor = {
                .ctx = f, .segment = on_segment, .record = on_record, .damage = on_damage
        };
        int r = journal_walk(j, &all, &visitor, err);
        free(f);
        return r == -ENOENT ? 0 : r; /* nothing was written yet */
}

/* ---- the whole ---- */

int audited_read(struct journal *j, const struct audited_look *look, struct audited *ret, struct error *err)
{
        struct taking t = {
                .look = look,
                .ret = ret,
                .max = look->limit > 0 && look->limit < JOURNAL_AUDITS_LIMIT ? look->limit : JOURNAL_AUDITS_LIMIT,
        };

        *ret = (struct audited){ 0 };
        int r = take_rows(j, &t, err);
        if (r == 0 && look->pid != 0)
                r = follow_pid(j, look->pid, ret, err);
        return r;
}

void audited_fini(struct audited *audited)
{
        for (size_t i = 0; i < audited->n_rows; i++)
                free((void *) (uintptr_t) audited->rows[i].audit.facts);
        free(audited->rows);
        free(audited->series);
        *audited = (struct audited){ 0 };
}

int audited_add(struct audited *audited, const struct journal_audit *audit)
{
        for (size_t i = 0; i < audited->n_rows; i++) {
                const struct journal_audit *a = &audited->rows[i].audit;
                if (a->pid == audit->pid && a->start_ticks == audit->start_ticks &&
                    strcmp(a->boot_id, audit->boot_id) == 0)
                        return 0;
        }
        struct audited_row *rows = reallocarray(audited->rows, audited->n_rows + 1, sizeof(*rows));
        if (!rows)
                return -ENOMEM;
        audited->rows = rows;
        char *facts = strndup(audit->facts, audit->n_facts);
        if (!facts)
                return -ENOMEM;
        memmove(&rows[1], &rows[0], audited->n_rows * sizeof(*rows));
        rows[0] = (struct audited_row){ .audit = *audit };
        rows[0].audit.facts = facts;
        audited->n_rows++;
        return 0;
}

const struct audited_series *audited_series_of(const struct audited *audited, struct identity who)
{
        for (uint32_t i = 0; i < audited->n_series; i++)
                if (identity_equal(audited->series[i].identity, who))
                        return &audited->series[i];
        return NULL;
}
