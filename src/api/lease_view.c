/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include "api/fields.h"
#include "api/view.h"
#include "arbiter/idle.h"
#include "arbiter/learn.h"
#include "arbiter/queue.h"
#include "arbiter/rank.h"
#include "base/duration.h"
#include "base/number.h"
#include "base/size.h"
#include "model/lease.h"
#include "model/reason.h"
#include "model/way_out.h"

void view_order_queue(struct view *v)
{
        if (v->ordered)
                return;

        v->n_order = queue_order(v->world, v->order);
        for (uint32_t i = 0; i < v->n_order; i++)
                v->place[v->order[i]] = i + 1;
        v->ordered = true;
}

static json_t *yield_by(uint8_t mask)
{
        json_t *list = json_array();
        for (unsigned kind = 0; list && kind < WAY_OUT_N; kind++)
                if (mask & WAY_OUT_BIT(kind))
                        (void) json_array_append_new(list, json_string(way_out_name((enum way_out_kind) kind)));
        return list;
}

static void add_binding(struct fields *f, const struct binding *b)
{
        struct fields inner = fields_open(f, "binding");

        fields_text(&inner, "to", binding_kind_name((enum binding_kind) b->kind));
        fields_u64_or_null(&inner, "pid", !identity_is_none(b->owner), b->owner.pid);
        fields_u64_or_null(&inner, "ttl_ms", b->kind == BINDING_HEARTBEAT, b->ttl_ms);
        fields_close(f, &inner);
}

/* When it may start, in words that do not promise more than is known. */
static void expectation_text(const struct reason *why, uint64_t start_ms, uint64_t now_ms, char *buf, size_t size)
{
        char span[DURATION_TEXT_MAX];

        if (start_ms > now_ms) {
                (void) snprintf(buf, size, "in about %s", duration_text(start_ms - now_ms, span));
                return;
        }
        if (start_ms != 0) {
                (void) snprintf(buf, size, "as soon as the memory that is due comes back");
                return;
        }
        for (uint32_t i = 0; i < why->n_blockers && i < BLOCKERS_MAX; i++) {
                const struct blocker *b = &why->blockers[i];
                if (b->kind == BLOCKER_LEASE && b->end_ms == 0) {
                        (void) snprintf(buf, size, "unknown: L%llu gave no limit", (unsigned long long) b->lease_id);
                        return;
                }
                if (b->kind == BLOCKER_STRANGER) {
                        (void) snprintf(buf, size, "unknown: a program without a lease (pid %u) is in the way", b->pid);
                        return;
                }
        }
        (void) snprintf(buf, size, "unknown");
}

static void add_queue_fields(struct view *v, struct fields *f, const struct entry *entry, const struct reason *why)
{
        uint64_t start_ms = entry->is_head && entry->start_ms != 0 ? entry->start_ms : why->start_ms;
        uint64_t start_in = start_ms > v->now_ms ? start_ms - v->now_ms : 0;
        char text[160];

        view_order_queue(v);
        expectation_text(why, start_ms, v->now_ms, text, sizeof(text));
        fields_u64(f, "place", v->place[entry - v->world->entries]);
        fields_u64(f, "n_waiting", v->n_order);
        fields_u64_or_null(f, "expected_start_ms", start_ms != 0, start_in);
        fields_text(f, "expectation", text);
}

static uint64_t lease_waited_ms(const struct view *v, const struct lease *l, const struct entry *entry)
{
        return entry ? entry_waited_ms(entry, v->now_ms) : l->waited_ms;
}

/* What its earlier runs came to; null = nothing is known of them. */
static json_t *view_usual(const struct view *v, const struct lease *l)
{
        const struct habit *h = world_habit_find((struct world *) (uintptr_t) v->world, l->uid, l->consumer);
        uint32_t n = h ? habit_n_peaks(h) : 0;
        uint64_t peak_bytes = 0;

        if (n == 0)
                return json_null();
        for (uint32_t i = 0; i < n; i++)
                peak_bytes = u64_max(peak_bytes, h->peak_bytes[i]);
        return json_pack("{s:o, s:o, s:o}", "runs", view_u64(n), "p95_bytes", view_u64(learn_p95_bytes(h)),
                         "peak_bytes", view_u64(peak_bytes));
}

static json_t *devices_of(const struct view *v, const struct lease *l)
{
        json_t *list = json_array();

        for (uint32_t i = 0; list && i < lease_n_parts(l); i++)
                (void) json_array_append_new(list, view_device_uuid(v->world, lease_part(l, i).device));
        return list;
}

/* On all its devices. */
static uint64_t reserved_bytes_of(const struct world *w, const struct lease *l)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < lease_n_parts(l); i++)
                bytes = u64_add_sat(bytes, w->holders[lease_part(l, i).holder.index].reserved_bytes);
        return bytes;
}

/* What it uses on all of them; false: of one at least the driver gave no figure. */
static bool used_bytes_of(const struct world *w, const struct lease *l, uint64_t *ret_bytes)
{
        bool known = true;

        *ret_bytes = 0;
        for (uint32_t i = 0; i < lease_n_parts(l); i++) {
                const struct holder *h = &w->holders[lease_part(l, i).holder.index];
                known = known && h->used_known;
                *ret_bytes = u64_add_sat(*ret_bytes, h->used_bytes);
        }
        return known;
}

/* What it holds, and where. */
static void add_what(const struct view *v, struct fields *f, const struct lease *l, const struct holder *holder)
{
        uint64_t used_bytes;
        bool used_known = used_bytes_of(v->world, l, &used_bytes);
        const struct device *device =
                holder && holder->device < v->world->n_devices ? &v->world->devices[holder->device] : NULL;
        char id[LEASE_ID_TEXT_MAX], size[SIZE_TEXT_MAX];

        fields_text(f, "id", lease_id_text(l->id, id));
        fields_u64(f, "uid", l->uid);
        fields_text(f, "user", user_names_get(v->names, l->uid));
        fields_u64(f, "priority", l->priority);
        fields_text(f, "priority_name", priority_name(l->priority));
        fields_u64(f, "bytes", l->bytes);
        fields_text(f, "size", size_text(l->bytes, size));
        fields_text(f, "sized", sized_name((enum sized) l->sized));
        fields_u64(f, "sized_by_runs", l->sized_by);
        fields_text(f, "device", device ? device->uuid : NULL);
        fields_u64(f, "gpus", 1U + l->n_more);
        fields_value(f, "devices", devices_of(v, l));
        fields_u64_or_null(f, "used_bytes", used_known, used_bytes);
        fields_bool(f, "managed", l->managed);
        fields_value(f, "yield_by", yield_by(l->ways.named));
        fields_value(f, "ways", view_ways(l));
        fields_bool(f, "filler", l->filler);
        fields_bool(f, "no_stop", l->no_stop);
        if (!view_shows_detail(v, l->uid))
                return;
        fields_text(f, "name", l->name);
        fields_text(f, "consumer", l->consumer);
        fields_value(f, "usual", view_usual(v, l));
        add_binding(f, &l->binding);
}

static void add_time(const struct view *v, struct fields *f, const char *key, uint64_t world_ms)
{
        char text[VIEW_TIME_MAX];

        fields_text(f, key, world_ms != 0 ? view_time_text(v->host->wall_of_ms(v->host->ctx, world_ms), text) : NULL);
}

/* That it holds and does nothing: since when, who says so, and what follows. */
static void add_idle(const struct view *v, struct fields *f, const struct holder *holder)
{
        uint64_t since_ms = holder ? idle_since_ms(v->world, holder) : 0, from_ms = 0;
        bool counts = since_ms != 0 && idle_reclaimable_since_ms(v->world, holder, &from_ms) != 0;

        fields_text(f, "activity", holder_activity_name(holder ? holder->activity : HOLDER_ACTIVITY_UNKNOWN));
        fields_u64_or_null(f, "idle_ms", since_ms != 0, u64_sub0(v->now_ms, since_ms));
        fields_text(f, "idle_by", since_ms == 0 ? NULL : holder->tells_idle ? "itself" : "seen");
        fields_u64_or_null(f, "idle_counts_in_ms", counts || from_ms != 0, u64_sub0(from_ms, v->now_ms));
        fields_bool(f, "idle_listed", holder && idle_is_listed(v->world, holder));
}

/* When, and on which terms. */
static void add_terms(const struct view *v, struct fields *f, const struct lease *l, const struct holder *holder,
                      const struct entry *entry)
{
        uint64_t left = l->slot_end_ms > v->now_ms ? l->slot_end_ms - v->now_ms : 0;
        bool pinned = holder && holder->pinned;
        uint64_t pin_left = pinned && holder->pin_end_ms > v->now_ms ? holder->pin_end_ms - v->now_ms : 0;

        add_time(v, f, "arrived", l->arrived_ms);
        add_time(v, f, "granted", l->granted_ms);
        fields_u64(f, "waited_ms", lease_waited_ms(v, l, entry));
        add_time(v, f, "slot_end", l->slot_end_ms);
        fields_u64_or_null(f, "slot_left_ms", l->slot_end_ms != 0, left);
        fields_bool(f, "over_time", l->over_time);
        fields_bool(f, "exclusive", l->exclusive);
        fields_bool(f, "adopted", l->adopted);
        fields_bool(f, "kill_at_end", l->kill_at_end);
        fields_bool(f, "kill_left", l->kill_left);
        fields_bool(f, "pinned", pinned);
        fields_u64_or_null(f, "pin_left_ms", pinned && holder->pin_end_ms != 0, pin_left);
        fields_bool(f, "ending", l->ending);
        add_idle(v, f, holder);
        fields_u64_or_null(f, "over_use_ms", l->over_use_since_ms != 0, u64_sub0(v->now_ms, l->over_use_since_ms));
        view_booking(v, f, l);
        view_park(v, f, l);
}

/* What changes with its end, and why it is so. */
static void add_state(struct fields *f, enum lease_state state, uint64_t reserved_bytes, const struct api_told *told,
                      uint64_t now_ms)
{
        char why[REASON_TEXT_MAX];

        fields_text(f, "state", lease_state_name(state));
        fields_u64(f, "reserved_bytes", reserved_bytes);
        fields_u64(f, "rev", told ? told->rev : 0);
        fields_text(f, "why", told ? reason_text(&told->why, now_ms, why, sizeof(why)) : NULL);
        if (!told) {
                fields_value(f, "reason", json_null());
                return;
        }
        struct fields reason = fields_open(f, "reason");
        reason_fields(&reason, &told->why, now_ms);
        fields_close(f, &reason);
}

static void add_all(struct view *v, struct fields *f, const struct lease *l)
{
        const struct holder *holder = world_holder_get(v->world, l->holder);
        const struct entry *entry = world_entry_get(v->world, l->entry);
        struct api_told told = { 0 };
        bool is_told = v->host->told(v->host->ctx, l->id, &told);

        add_what(v, f, l, holder);
        add_terms(v, f, l, holder, entry);
        if (entry)
                add_queue_fields(v, f, entry, &told.why);
        add_state(f, (enum lease_state) l->state, reserved_bytes_of(v->world, l), is_told ? &told : NULL, v->now_ms);
}

json_t *view_lease(struct view *v, const struct lease *l)
{
        struct fields f = { .object = json_object() };

        if (f.object)
                add_all(v, &f, l);
        return f.object;
}

void view_lease_text(struct view *v, const struct lease *l, struct strbuf *ret)
{
        struct fields f = { .text = ret };

        fields_begin(&f);
        add_all(v, &f, l);
        fields_end(&f);
}

void view_last_of_lease_begin(struct view *v, const struct lease *l, struct strbuf *ret)
{
        const struct holder *holder = world_holder_get(v->world, l->holder);
        const struct entry *entry = world_entry_get(v->world, l->entry);
        struct api_told told = { 0 };
        struct fields f = { .text = ret };

        (void) v->host->told(v->host->ctx, l->id, &told);
        fields_begin(&f);
        add_what(v, &f, l, holder);
        add_terms(v, &f, l, holder, entry);
        if (entry)
                add_queue_fields(v, &f, entry, &told.why);
}

void view_last_of_lease_end(const struct action *a, uint64_t now_ms, struct strbuf *text)
{
        const struct api_told told = { .rev = a->id, .kind = a->kind, .why = a->why };
        struct fields f = { .text = text };

        add_state(&f, LEASE_ENDED, 0, &told, now_ms);
        fields_end(&f);
}

json_t *view_leases(struct view *v)
{
        json_t *list = json_array();

        for (uint32_t i = 0; list && i < v->world->n_leases; i++)
                if (v->world->lease_ids[i] != 0)
                        (void) json_array_append_new(list, view_lease(v, &v->world->leases[i]));
        return list;
}
