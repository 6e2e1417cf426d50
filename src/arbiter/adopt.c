/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include "arbiter/actions.h"
#include "arbiter/adopt.h"
#include "arbiter/ceiling.h"
#include "arbiter/free.h"
#include "arbiter/lane.h"
#include "arbiter/life.h"
#include "arbiter/reading.h"
#include "arbiter/request.h"
#include "arbiter/usage.h"
#include "base/number.h"

#define MIB_BYTES (UINT64_C(1) << 20)

/* What would come under it, device by device. */
struct found {
        uint64_t devices; /* bit mask: where something of it is */
        uint64_t used_bytes[DEVICES_MAX];
        uint64_t leased_id; /* part of it is under this lease */
        bool foreign;       /* part of it belongs to somebody else */
};

static bool is_of(const struct request *r, const struct process *p)
{
        const struct binding *b = &r->binding;

        if (identity_equal(p->identity, b->root) || (b->cgroup_id != 0 && p->cgroup_id == b->cgroup_id))
                return true;
        for (uint32_t i = 0; i < p->n_ancestors; i++)
                if (identity_equal(p->ancestors[i], b->root))
                        return true;
        return false;
}

/* The process of a row, if it is what is adopted and nobody's yet. */
static struct process *free_process(struct world *w, const struct request *r, const struct occupancy *row)
{
        struct process *p = world_process_find(w, row->identity);
        const struct holder *h = world_holder_get(w, row->holder);

        return p && h && h->kind == HOLDER_STRANGER && p->uid == r->uid && is_of(r, p) ? p : NULL;
}

static void find(struct world *w, const struct request *r, struct found *ret)
{
        *ret = (struct found){ 0 };
        for (uint32_t i = 0; i < w->n_occupancies; i++) {
                const struct occupancy *row = &w->occupancies[i];
                const struct process *p = world_process_find(w, row->identity);
                const struct holder *h = world_holder_get(w, row->holder);
                if (!p || !h || !is_of(r, p))
                        continue;
                if (h->kind == HOLDER_LEASE)
                        ret->leased_id = w->leases[h->lease.index].id;
                else if (p->uid != r->uid)
                        ret->foreign = true;
                else if (h->kind == HOLDER_STRANGER) {
                        ret->devices |= UINT64_C(1) << row->device;
                        ret->used_bytes[row->device] += row->used_bytes;
                }
        }
}

static bool choose_device(struct world *w, const struct request *r, const struct found *found, uint32_t *ret,
                          struct reason *why)
{
        uint64_t named;

        if (!request_find_devices(w, r, &named)) {
                why->rule = RULE_UNKNOWN_DEVICE;
                return false;
        }
        uint64_t devices = found->devices & named;
        if (devices == 0 && (r->bytes != 0 || r->percent_milli != 0) && !found->foreign && found->leased_id == 0 &&
            w->n_devices > 0)
                devices = named & (w->n_devices < 64 ? (UINT64_C(1) << w->n_devices) - 1 : UINT64_MAX);
        if (devices == 0 && found->leased_id != 0)
                *why = (struct reason){ .rule = RULE_ADOPT_LEASED, .head_lease_id = found->leased_id };
        else if (devices == 0)
                why->rule = found->foreign ? RULE_ADOPT_NOT_YOURS : RULE_NOTHING_TO_ADOPT;
        else if (devices & (devices - 1))
                *why = (struct reason){ .rule = RULE_ADOPT_SEVERAL, .limit = (uint32_t) __builtin_popcountll(devices) };
        else
                *ret = (uint32_t) __builtin_ctzll(devices);
        return why->rule == RULE_NONE;
}

static uint64_t bytes_for(const struct world *w, const struct request *r, uint32_t device, uint64_t used_bytes)
{
        if (r->bytes != 0)
                return r->bytes;
        if (r->percent_milli != 0)
                return (uint64_t) ((unsigned __int128) device_ceiling_bytes(w, device, NULL) * r->percent_milli /
                                   100000);
        uint64_t whole = u64_add_sat(used_bytes, MIB_BYTES - 1) / MIB_BYTES * MIB_BYTES;
        return u64_max(whole, MIB_BYTES);
}

/* What it has it has; only what it wants beyond needs room, and a look young enough to promise by. */
static bool fits(struct world *w, const struct request *r, uint32_t device, uint64_t bytes, uint64_t used_bytes,
                 struct reason *why)
{
        struct sums sums;
        uint64_t exclusive_id = 0;

        sums_of_device(w, device, &sums);
        for (uint32_t i = 0; i < w->n_holders; i++) {
                const struct holder *h = &w->holders[i];
                if (h->kind == HOLDER_LEASE && h->device == device && h->exclusive)
                        exclusive_id = w->leases[h->lease.index].id;
        }
        uint64_t free_bytes = device_is_usable(&w->devices[device]) ? sums_free_bytes(&sums) : 0;
        uint64_t more_bytes = u64_sub0(bytes, used_bytes);
        bool sums_hold = bytes <= sums.total_bytes && sums.reserved_bytes <= sums.total_bytes - bytes;
        bool promised = more_bytes <= MIB_BYTES || (device_is_fresh(w, device) && more_bytes <= free_bytes);
        bool alone = !r->exclusive || u64_sub0(sums.used_bytes, sums.driver_own_bytes) <= used_bytes;

        if (exclusive_id == 0 && sums_hold && promised && alone)
                return true;
        *why = (struct reason){ .rule = RULE_WOULD_WAIT,
                                .need_bytes = more_bytes,
                                .free_bytes = free_bytes,
                                .total_bytes = sums.total_bytes,
                                .used_bytes = sums.used_bytes,
                                .reserved_bytes = sums.reserved_bytes };
        reason_add_holders(why, w, device, (struct ref){ 0 });
        return false;
}

static void take_rows(struct world *w, const struct request *r, struct lease *lease, struct holder *h)
{
        for (uint32_t i = 0; i < w->n_occupancies; i++) {
                struct occupancy *row = &w->occupancies[i];
                struct process *p = free_process(w, r, row);
                if (!p || row->device != lease->device)
                        continue;
                world_holder_drop(w, world_holder_get(w, row->holder)); /* a stranger has a row of its own */
                row->holder = world_holder_ref(w, h);
                process_put_under(p, world_lease_ref(w, lease));
                h->n_processes++;
                h->used_bytes += row->used_bytes;
                if (!(row->flags & ROW_USED_KNOWN))
                        h->used_known = false;
        }
}

void adopt_step(struct world *w, const struct request *r, struct actions *out)
{
        struct reason why = { 0 };
        struct found found;
        uint32_t device = NO_DEVICE, user;
        uint64_t bytes = 0;

        find(w, r, &found);
        bool may = request_is_allowed(w, r, &why) && choose_device(w, r, &found, &device, &why);
        if (may) {
                bytes = bytes_for(w, r, device, found.used_bytes[device]);
                may = request_has_room(w, r, bytes, &user, &why) &&
                      fits(w, r, device, bytes, found.used_bytes[device], &why);
        }
        if (!may) {
                request_refuse(w, out, r, &why);
                if (why.rule == RULE_WOULD_WAIT && w->eyes_answering && !device_is_fresh(w, device))
                        actions_read(w, out, device); /* so that asking again helps */
                return;
        }

        struct lease *lease = request_make_lease(w, r, user, bytes, UINT64_C(1) << device);
        struct holder *h = world_holder_new(w, HOLDER_LEASE, device);
        assert(h); /* the table of holders is sized for every lease */
        h->reserved_bytes = bytes;
        h->used_known = true;
        h->managed = lease->managed;
        h->exclusive = lease->exclusive;
        h->ways = lease->ways;
        h->lease = world_lease_ref(w, lease);
        lease->adopted = true;
        lease->state = (uint8_t) lease_next((enum lease_state) lease->state, LEASE_EVENT_GRANT);
        lease->device = device;
        lease->holder = world_holder_ref(w, h);
        lease->granted_ms = w->now_ms;
        lease->kept_rank = lease->priority;
        lease->slot_end_ms = lease->slot_ms != 0 ? w->now_ms + lease->slot_ms : 0;
        lease->root_living = true;
        usage_set_held(&w->config, &w->users[user], w->users[user].held_bytes + bytes, w->now_ms);
        take_rows(w, r, lease, h);

        why = (struct reason){ .rule = RULE_ADOPTED, .need_bytes = bytes, .used_bytes = h->used_bytes };
        actions_add_lease(w, out, ACTION_GRANTED, lease, &why)->token = r->token;
        life_set_active(w, lease, r->token, out);
        reading_outdated(w, device, out);
}

void adopt_undo(struct world *w, struct lease *lease)
{
        struct holder *h = world_holder_get(w, lease->holder);
        assert(h);

        for (uint32_t i = 0; i < w->n_occupancies; i++) {
                struct occupancy *row = &w->occupancies[i];
                if (!ref_equal(row->holder, lease->holder))
                        continue;
                struct holder *stranger = world_holder_new(w, HOLDER_STRANGER, row->device);
                assert(stranger); /* the table is sized for every occupancy there can be */
                stranger->process = row->identity;
                stranger->used_bytes = row->used_bytes;
                stranger->used_known = (row->flags & ROW_USED_KNOWN) != 0;
                stranger->n_processes = 1;
                row->holder = world_holder_ref(w, stranger);
        }
        h->n_processes = 0;
        h->used_bytes = 0;
        h->used_known = true;
}
