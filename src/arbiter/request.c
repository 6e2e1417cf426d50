/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>
#include "arbiter/actions.h"
#include "arbiter/admit.h"
#include "arbiter/ceiling.h"
#include "arbiter/free.h"
#include "arbiter/request.h"
#include "base/number.h"

/* A look takes milliseconds. Where none comes that can be used (lists that are refused), "now" is over some time. */
enum { NO_WAIT_LOOK_MS = 5000 };

static void refuse(struct world *w, struct actions *out, const struct request *r, const struct reason *why)
{
        struct action *a = actions_add(w, out, ACTION_REFUSED);

        a->token = r->token;
        a->uid = r->uid;
        a->priority = r->priority;
        a->bytes = r->bytes;
        a->why = *why;
}

/* Bit mask of the devices the request may be on. "Any" stays any: a device that appears later serves it too. */
static bool find_devices(struct world *w, const struct request *r, uint64_t *ret_mask)
{
        uint32_t index;

        if (r->device_uuid[0] == '\0') {
                *ret_mask = UINT64_MAX;
                return true;
        }
        if (!world_device_by_uuid(w, r->device_uuid, &index))
                return false;
        *ret_mask = UINT64_C(1) << index;
        return true;
}

/* Whether somebody with these words may ask at all. */
static bool is_allowed(const struct world *w, const struct request *r, struct reason *why)
{
        uint32_t ceiling = r->is_admin ? w->config.ceiling_admin : w->config.ceiling_user;

        if (r->priority < ceiling) {
                *why = (struct reason){ .rule = RULE_PRIORITY_CEILING, .limit = ceiling };
                return false;
        }
        if (r->priority == PRIORITY_URGENT && (r->slot_ms == 0 || (r->ways.named == 0 && !r->kill_at_end))) {
                *why = (struct reason){ .rule = RULE_URGENT_NEEDS_SLOT, .limit = ceiling };
                return false;
        }
        return true;
}

/* The demand in bytes against the largest ceiling; devices that can never hold it are left out of the mask. */
static bool resolve_demand(const struct world *w, const struct request *r, uint64_t *mask, uint64_t *ret_bytes,
                           struct reason *why)
{
        uint64_t best_bytes = 0, fitting = 0;
        uint32_t best = NO_DEVICE;
        bool any_known = false;

        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!(*mask & (UINT64_C(1) << d)) || w->devices[d].health == DEVICE_PARENT)
                        continue;
                any_known = true;
                uint64_t ceiling = device_ceiling_bytes(w, d, NULL);
                if (best == NO_DEVICE || ceiling > best_bytes) {
                        best = d;
                        best_bytes = ceiling;
                }
        }
        if (!any_known) {
                *why = (struct reason){ .rule = RULE_NO_DEVICES, .need_bytes = r->bytes };
                return false;
        }

        uint64_t bytes = r->bytes;
        if (bytes == 0)
                bytes = (uint64_t) ((unsigned __int128) best_bytes * r->percent_milli / 100000);
        for (uint32_t d = 0; d < w->n_devices; d++)
                if ((*mask & (UINT64_C(1) << d)) && w->devices[d].health != DEVICE_PARENT && bytes != 0 &&
                    bytes <= device_ceiling_bytes(w, d, NULL))
                        fitting |= UINT64_C(1) << d;
        if (fitting == 0) {
                *why = (struct reason){ .rule = RULE_NEVER_FITS,
                                        .need_bytes = bytes,
                                        .free_bytes = device_free_bytes(w, best) };
                (void) device_ceiling_bytes(w, best, why);
                return false;
        }
        if (*mask != UINT64_MAX || r->bytes == 0)
                *mask = fitting;
        *ret_bytes = bytes;
        return true;
}

static bool has_room_in_tables(struct world *w, const struct request *r, uint32_t *ret_user, struct reason *why)
{
        struct user *user = world_user(w, r->uid, ret_user);

        if (!user)
                *why = (struct reason){ .rule = RULE_LIMIT_USERS, .limit = USERS_MAX };
        else if (user->n_waiting >= w->config.waiting_per_user_max)
                *why = (struct reason){ .rule = RULE_LIMIT_WAITING_PER_USER, .limit = w->config.waiting_per_user_max };
        else if (user->n_leases >= w->config.leases_per_user_max)
                *why = (struct reason){ .rule = RULE_LIMIT_LEASES_PER_USER, .limit = w->config.leases_per_user_max };
        else if (!world_has_lease_room(w))
                *why = (struct reason){ .rule = RULE_LIMIT_LEASES, .limit = w->config.leases_max };
        else if (!world_has_entry_room(w))
                *why = (struct reason){ .rule = RULE_LIMIT_ENTRIES, .limit = w->config.entries_max };
        return why->rule == RULE_NONE;
}

static struct lease *make_lease(struct world *w, const struct request *r, uint32_t user, uint64_t bytes,
                                uint64_t devices)
{
        struct lease *lease = world_lease_new(w);

        assert(lease); /* room was checked */
        lease->priority = r->priority;
        lease->managed = r->managed;
        lease->kill_at_end = r->kill_at_end;
        lease->uid = r->uid;
        lease->user = user;
        lease->bytes = bytes;
        lease->devices = devices;
        lease->slot_ms = r->slot_ms;
        lease->arrived_ms = w->now_ms;
        lease->renewed_ms = w->now_ms;
        lease->binding = r->binding;
        lease->ways = r->ways;
        memcpy(lease->name, r->name, sizeof(lease->name));
        memcpy(lease->consumer, r->consumer, sizeof(lease->consumer));
        lease->name[sizeof(lease->name) - 1] = '\0';
        lease->consumer[sizeof(lease->consumer) - 1] = '\0';
        w->users[user].n_leases++;
        return lease;
}

static struct entry *make_entry(struct world *w, const struct request *r, struct lease *lease)
{
        struct entry *e = world_entry_new(w, ENTRY_REQUEST);

        assert(e);
        e->priority = r->priority;
        e->no_wait = r->no_wait;
        e->collected = r->collected;
        e->lease = world_lease_ref(w, lease);
        e->user = lease->user;
        e->demand_bytes = lease->bytes;
        e->devices = lease->devices;
        e->limit_ms = r->slot_ms;
        e->arrived_ms = w->now_ms;
        if (r->wait_ms != 0)
                e->give_up_ms = w->now_ms + r->wait_ms;
        else if (r->no_wait)
                e->give_up_ms = w->now_ms + NO_WAIT_LOOK_MS;
        e->ways = r->ways;
        lease->entry = world_entry_ref(w, e);
        w->users[lease->user].n_waiting++;
        return e;
}

static void drop_newcomer(struct world *w, struct lease *lease, struct entry *e)
{
        admit_drop_entry(w, e);
        w->users[lease->user].n_leases--;
        world_lease_drop(w, lease);
}

void request_step(struct world *w, const struct request *r, struct actions *out)
{
        struct reason why = { 0 };
        uint64_t devices, bytes;
        uint32_t user;

        if (!find_devices(w, r, &devices)) {
                refuse(w, out, r, &(struct reason){ .rule = RULE_UNKNOWN_DEVICE, .need_bytes = r->bytes });
                return;
        }
        if (!is_allowed(w, r, &why) || !resolve_demand(w, r, &devices, &bytes, &why) ||
            !has_room_in_tables(w, r, &user, &why)) {
                refuse(w, out, r, &why);
                return;
        }

        struct lease *lease = make_lease(w, r, user, bytes, devices);
        struct entry *e = make_entry(w, r, lease);

        struct newcomer newcomer = { .entry = lease->entry, .token = r->token };
        admit_pass(w, out, &newcomer, false);
        if (newcomer.granted)
                return;

        if (r->no_wait && newcomer.decided) {
                newcomer.why.rule = RULE_WOULD_WAIT;
                drop_newcomer(w, lease, e);
                refuse(w, out, r, &newcomer.why);
                return;
        }
        struct action *a = actions_add_lease(w, out, ACTION_QUEUED, lease, &newcomer.why);
        a->token = r->token;
}
