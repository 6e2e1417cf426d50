/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include "api/view.h"
#include "arbiter/queue.h"
#include "arbiter/rank.h"
#include "base/duration.h"
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

static json_t *binding(const struct binding *b)
{
        return json_pack("{s:s, s:o, s:o}", "to", binding_kind_name((enum binding_kind) b->kind), "pid",
                         view_u64_or_null(!identity_is_none(b->owner), b->owner.pid), "ttl_ms",
                         view_u64_or_null(b->kind == BINDING_HEARTBEAT, b->ttl_ms));
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

static void add_queue_fields(struct view *v, json_t *object, const struct entry *entry, const struct reason *why)
{
        uint64_t start_ms = entry->is_head && entry->start_ms != 0 ? entry->start_ms : why->start_ms;
        uint64_t start_in = start_ms > v->now_ms ? start_ms - v->now_ms : 0;
        char text[160];

        view_order_queue(v);
        expectation_text(why, start_ms, v->now_ms, text, sizeof(text));
        (void) json_object_set_new(object, "place", view_u64(v->place[entry - v->world->entries]));
        (void) json_object_set_new(object, "n_waiting", view_u64(v->n_order));
        (void) json_object_set_new(object, "expected_start_ms", view_u64_or_null(start_ms != 0, start_in));
        (void) json_object_set_new(object, "expectation", json_string(text));
}

static uint64_t lease_waited_ms(const struct view *v, const struct lease *l, const struct entry *entry)
{
        return entry ? entry_waited_ms(entry, v->now_ms) : l->waited_ms;
}

/* Keys are words of ours: nothing to check in them. */
static void put(json_t *object, const char *key, json_t *value)
{
        (void) json_object_set_new_nocheck(object, key, value);
}

/* What it holds, and where. */
static void add_what(const struct view *v, json_t *object, const struct lease *l, const struct holder *holder)
{
        char size[SIZE_TEXT_MAX];

        put(object, "id", view_lease_id(l->id));
        put(object, "uid", view_u64(l->uid));
        put(object, "user", view_text_or_null(user_names_get(v->names, l->uid)));
        put(object, "state", json_string(lease_state_name((enum lease_state) l->state)));
        put(object, "priority", json_integer(l->priority));
        put(object, "priority_name", json_string(priority_name(l->priority)));
        put(object, "bytes", view_u64(l->bytes));
        put(object, "size", json_string(size_text(l->bytes, size)));
        put(object, "device", view_device_uuid(v->world, holder ? holder->device : UINT32_MAX));
        put(object, "reserved_bytes", view_u64(holder ? holder->reserved_bytes : 0));
        put(object, "used_bytes", holder ? view_u64_or_null(holder->used_known, holder->used_bytes) : view_u64(0));
        put(object, "managed", json_boolean(l->managed));
        put(object, "yield_by", yield_by(l->ways.named));
}

/* When, and why it is as it is. */
static void add_life(const struct view *v, json_t *object, const struct lease *l, const struct entry *entry,
                     const struct api_told *told)
{
        uint64_t left = l->slot_end_ms > v->now_ms ? l->slot_end_ms - v->now_ms : 0;
        char why[REASON_TEXT_MAX];

        put(object, "arrived", view_time(v, l->arrived_ms));
        put(object, "granted", view_time(v, l->granted_ms));
        put(object, "waited_ms", view_u64(lease_waited_ms(v, l, entry)));
        put(object, "slot_end", view_time(v, l->slot_end_ms));
        put(object, "slot_left_ms", view_u64_or_null(l->slot_end_ms != 0, left));
        put(object, "over_time", json_boolean(l->over_time));
        put(object, "rev", view_u64(told ? told->rev : 0));
        put(object, "why",
            told ? view_text_or_null(reason_text(&told->why, v->now_ms, why, sizeof(why))) : json_null());
        put(object, "reason", told ? view_reason(&told->why, v->now_ms) : json_null());
}

/* On which terms it stands. */
static void add_terms(const struct view *v, json_t *object, const struct lease *l, const struct holder *holder)
{
        bool pinned = holder && holder->pinned;
        uint64_t pin_left = pinned && holder->pin_end_ms > v->now_ms ? holder->pin_end_ms - v->now_ms : 0;

        put(object, "exclusive", json_boolean(l->exclusive));
        put(object, "adopted", json_boolean(l->adopted));
        put(object, "kill_at_end", json_boolean(l->kill_at_end));
        put(object, "kill_left", json_boolean(l->kill_left));
        put(object, "pinned", json_boolean(pinned));
        put(object, "pin_left_ms", view_u64_or_null(pinned && holder->pin_end_ms != 0, pin_left));
        put(object, "ending", json_boolean(l->ending));
}

json_t *view_lease(struct view *v, const struct lease *l)
{
        const struct holder *holder = world_holder_get(v->world, l->holder);
        const struct entry *entry = world_entry_get(v->world, l->entry);
        struct api_told told = { 0 };
        bool is_told = v->host->told(v->host->ctx, l->id, &told);
        json_t *object = json_object();

        if (!object)
                return NULL;
        add_what(v, object, l, holder);
        add_life(v, object, l, entry, is_told ? &told : NULL);
        add_terms(v, object, l, holder);
        if (view_shows_detail(v, l->uid)) {
                put(object, "name", view_text_or_null(l->name));
                put(object, "consumer", view_text_or_null(l->consumer));
                put(object, "binding", binding(&l->binding));
        }
        if (entry)
                add_queue_fields(v, object, entry, &told.why);
        return object;
}

json_t *view_leases(struct view *v)
{
        json_t *list = json_array();

        for (uint32_t i = 0; list && i < v->world->n_leases; i++)
                if (v->world->lease_ids[i] != 0)
                        (void) json_array_append_new(list, view_lease(v, &v->world->leases[i]));
        return list;
}
