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
        uint64_t unknown; /* bit mask: where the driver does not say how much */
        uint64_t used_bytes[DEVICES_MAX];
        uint64_t leased_id; /* part of it is under this lease */
        bool foreign;       /* part of it belongs to somebody else */
};

static bool is_of(const struct request *r, const struct process *p)
{
        const struct binding *b = &r->binding;

        if (p->state == PROCESS_ENDED)
                return false;
        if (identity_equal(p->identity, b->root) || (b->cgroup_id != 0 && p->cgroup_id == b->cgroup_id))
                return true;
        for (uint32_t i = 0; i < p->n_ancestors; i++)
                if (identity_equal(p->ancestors[i], b->root))
                        return true;
        return false;
}

/* A stranger's, or what a lease left that has ended: who asks again has it under the new one. */
static bool is_nobodys(const struct world *w, const struct holder *h)
{
        return h->kind == HOLDER_STRANGER ||
               (h->kind == HOLDER_LEASE && w->leases[h->lease.index].state == LEASE_DRAINING);
}

/* The process of a row, if it is what is adopted and nobody's yet. */
static struct process *free_process(struct world *w, const struct request *r, const struct occupancy *row)
{
        struct process *p = world_process_find(w, row->identity);
        const struct holder *h = world_holder_get(w, row->holder);

        return p && h && is_nobodys(w, h) && p->uid == r->uid && is_of(r, p) ? p : NULL;
}

static void find(struct world *w, const struct request *r, struct found *ret)
{
        *ret = (struct found){ 0 };
        for (uint32_t i = 0; i < w->n_leases; i++) { /* under one that has nothing on a device yet */
                const struct lease *lease = &w->leases[i];
                if (w->lease_ids[i] != 0 && lease_state_holds((enum lease_state) lease->state) &&
                    lease->state != LEASE_DRAINING &&
                    (identity_equal(lease->binding.root, r->binding.root) ||
                     identity_equal(lease->binding.owner, r->binding.root)))
                        ret->leased_id = lease->id;
        }
        for (uint32_t i = 0; i < w->n_occupancies; i++) {
                const struct occupancy *row = &w->occupancies[i];
                const struct process *p = world_process_find(w, row->identity);
                const struct holder *h = world_holder_get(w, row->holder);
                if (!p || !h || !is_of(r, p) || w->devices[row->device].health == DEVICE_PARENT)
                        continue;
                if (free_process(w, r, row)) {
                        ret->devices |= UINT64_C(1) << row->device;
                        ret->used_bytes[row->device] += row->used_bytes;
                        if (!(row->flags & ROW_USED_KNOWN))
                                ret->unknown |= UINT64_C(1) << row->device;
                } else if (h->kind == HOLDER_LEASE && !is_nobodys(w, h)) {
                        ret->leased_id = w->leases[h->lease.index].id;
                } else if (p->uid != r->uid) {
                        ret->foreign = true;
                }
        }
}

static uint64_t devices_there(const struct world *w)
{
        uint64_t mask = 0;

        for (uint32_t d = 0; d < w->n_devices; d++)
                if (w->devices[d].health != DEVICE_PARENT)
                        mask |= UINT64_C(1) << d;
        return mask;
}

static bool choose_device(struct world *w, const struct request *r, const struct found *found, uint32_t *ret,
                          struct reason *why)
{
        uint64_t named;

        if (!request_find_devices(w, r, &named)) {
                why->rule = RULE_UNKNOWN_DEVICE;
                return false;
        }
        bool says_how_much = r->bytes != 0 || r->percent_milli != 0 || r->exclusive;
        const struct process *root = world_process_find(w, r->binding.root);
        if (root && root->uid != r->uid) { /* whatever of his own descends from it: the lease would be over that */
                why->rule = RULE_ADOPT_NOT_YOURS;
                return false;
        }
        uint64_t devices = found->devices & named;
        if (devices == 0 && says_how_much && !found->foreign && found->leased_id == 0)
                devices = named & devices_there(w);
        if (devices == 0 && found->leased_id != 0)
                *why = (struct reason){ .rule = RULE_ADOPT_LEASED, .head_lease_id = found->leased_id };
        else if (devices == 0)
                why->rule = found->foreign ? RULE_ADOPT_NOT_YOURS : RULE_NOTHING_TO_ADOPT;
        else if (devices & (devices - 1))
                *why = (struct reason){ .rule = RULE_ADOPT_SEVERAL, .limit = (uint32_t) __builtin_popcountll(devices) };
        else if (!says_how_much && (found->unknown & devices))
                why->rule = RULE_NOTHING_TO_ADOPT; /* unknown is not nothing: its size has to be named */
        else
                *ret = (uint32_t) __builtin_ctzll(devices);
        return why->rule == RULE_NONE;
}

/* What is asked for, or what it uses: to the next MiB where there is room for that. */
static uint64_t bytes_for(const struct world *w, const struct request *r, uint32_t device, uint64_t used_bytes,
                          uint64_t room_bytes)
{
        if (r->exclusive)
                return u64_max(r->bytes, device_whole_bytes(w, device));
        if (r->bytes != 0)
                return r->bytes;
        if (r->percent_milli != 0)
                return (uint64_t) ((unsigned __int128) device_ceiling_bytes(w, device, NULL) * r->percent_milli /
                                   100000);
        uint64_t whole = u64_max(u64_add_sat(used_bytes, MIB_BYTES - 1) / MIB_BYTES * MIB_BYTES, MIB_BYTES);
        return whole <= room_bytes ? whole : used_bytes;
}

/* What could be promised to it there: what it has it has; what is beyond has to be free, by a look that is young enough. */
static uint64_t room_for(const struct world *w, uint32_t device, const struct sums *sums, uint64_t used_bytes)
{
        uint64_t free_bytes =
                device_is_usable(&w->devices[device]) && device_is_fresh(w, device) ? sums_free_bytes(sums) : 0;

        return u64_min(u64_add_sat(used_bytes, free_bytes), u64_sub0(sums->total_bytes, sums->reserved_bytes));
}

/* Is nobody else there, or promised anything? A display is, as it is beside any exclusive lease. */
static bool is_alone(const struct world *w, uint32_t device, const struct sums *sums, uint64_t used_bytes)
{
        uint64_t known_bytes = u64_add_sat(sums->driver_own_bytes, used_bytes), nobodys_bytes = 0;

        world_each_holder_on (w, i, device) {
                const struct holder *h = &w->holders[i];
                if (h->kind == HOLDER_CLAIM)
                        continue;
                if (h->kind == HOLDER_DISPLAY)
                        known_bytes = u64_add_sat(known_bytes, h->used_bytes);
                else if (is_nobodys(w, h))
                        nobodys_bytes = u64_add_sat(nobodys_bytes, h->used_bytes);
                else
                        return false;
        }
        return nobodys_bytes <= used_bytes && (!w->devices[device].driver_own_known || sums->used_bytes <= known_bytes);
}

static bool fits(struct world *w, const struct request *r, uint32_t device, const struct found *found,
                 uint64_t *ret_bytes, struct reason *why)
{
        uint64_t used_bytes = found->used_bytes[device];
        struct sums sums;
        bool beside = false;

        sums_of_device(w, device, &sums);
        world_each_holder_on (w, i, device) {
                const struct holder *h = &w->holders[i];
                beside = beside || (h->kind == HOLDER_LEASE && h->exclusive);
        }
        uint64_t room_bytes = room_for(w, device, &sums, used_bytes);
        *ret_bytes = bytes_for(w, r, device, used_bytes, room_bytes);
        if (!beside && *ret_bytes != 0 && *ret_bytes <= room_bytes &&
            (!r->exclusive || is_alone(w, device, &sums, used_bytes)))
                return true;
        *why = (struct reason){ .rule = RULE_WOULD_WAIT,
                                .need_bytes = *ret_bytes,
                                .free_bytes = room_bytes,
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
                struct holder *before = world_holder_get(w, row->holder);
                if (before->kind == HOLDER_STRANGER) {
                        world_holder_drop(w, before); /* a stranger has a row of its own */
                } else {
                        before->n_processes--;
                        before->used_bytes = u64_sub0(before->used_bytes, row->used_bytes);
                }
                row->holder = world_holder_ref(w, h);
                process_put_under(p, world_lease_ref(w, lease), ATTRIBUTED_ADOPTED);
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
        may = may && fits(w, r, device, &found, &bytes, &why) && request_has_room(w, r, bytes, &user, &why);
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
        world_device_changed(w, h->device);

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
        world_device_changed(w, h->device);
}
