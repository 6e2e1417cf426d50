/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>
#include "arbiter/actions.h"
#include "arbiter/admit.h"
#include "arbiter/booking.h"
#include "arbiter/ceiling.h"
#include "arbiter/cost.h"
#include "arbiter/free.h"
#include "arbiter/learn.h"
#include "arbiter/request.h"
#include "base/number.h"

/* A look takes milliseconds. Where none comes that can be used (lists that are refused), "now" is over some time. */
enum { NO_WAIT_LOOK_MS = 5000 };

void request_refuse(struct world *w, struct actions *out, const struct request *r, const struct reason *why)
{
        struct action *a = actions_add(w, out, ACTION_REFUSED);

        a->token = r->token;
        a->uid = r->uid;
        a->priority = r->priority;
        a->bytes = r->bytes;
        a->why = *why;
}

/* Bit mask of the devices the request may be on. "Any" stays any: a device that appears later serves it too. */
bool request_find_devices(struct world *w, const struct request *r, uint64_t *ret_mask)
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

uint32_t request_ceiling(const struct world *w, uint32_t quota, bool is_admin)
{
        return is_admin ? w->config.ceiling_admin : config_quota(&w->config, quota).priority_min;
}

bool request_slot_is_allowed(const struct world *w, uint32_t quota, bool is_admin, uint64_t slot_ms, struct reason *why)
{
        uint64_t max_ms = config_quota(&w->config, quota).slot_max_ms;

        if (is_admin || max_ms == 0 || (slot_ms != 0 && slot_ms <= max_ms))
                return true;
        *why = (struct reason){ .rule = RULE_LIMIT_SLOT, .start_ms = max_ms };
        return false;
}

/* Whether somebody with these words may ask at all. */
bool request_is_allowed(const struct world *w, const struct request *r, struct reason *why)
{
        uint32_t ceiling = request_ceiling(w, r->quota, r->is_admin);

        if (r->priority < ceiling) {
                *why = (struct reason){ .rule = RULE_PRIORITY_CEILING, .limit = ceiling };
                return false;
        }
        if (r->priority == PRIORITY_URGENT && (r->slot_ms == 0 || (r->ways.named == 0 && !r->kill_at_end))) {
                *why = (struct reason){ .rule = RULE_URGENT_NEEDS_SLOT, .limit = ceiling };
                return false;
        }
        return request_slot_is_allowed(w, r->quota, r->is_admin, r->slot_ms, why);
}

/* The most that this request can ever have there. */
static uint64_t can_give_bytes(struct world *w, const struct request *r, uint32_t device)
{
        if (!r->exclusive)
                return device_ceiling_now(w, device);
        return device_is_kept_for_ever(w, device) ? 0 : device_whole_bytes(w, device);
}

/* The demand in bytes against the largest ceiling; devices that can never hold it are left out of the mask. @learned_bytes:
 * what was learned of such runs, 0 = nothing. */
static bool resolve_demand(struct world *w, const struct request *r, uint64_t learned_bytes, uint64_t *mask,
                           uint64_t *ret_bytes, struct reason *why)
{
        uint64_t best_bytes = 0, fitting = 0, gives_bytes[DEVICES_MAX];
        uint32_t best = NO_DEVICE, of[DEVICES_MAX], n_known = 0;

        for (uint32_t d = 0; d < w->n_devices; d++) {
                if (!(*mask & (UINT64_C(1) << d)) || w->devices[d].health == DEVICE_PARENT)
                        continue;
                gives_bytes[d] = can_give_bytes(w, r, d);
                uint32_t at = n_known++;
                for (; at > 0 && gives_bytes[of[at - 1]] < gives_bytes[d]; at--)
                        of[at] = of[at - 1];
                of[at] = d;
        }
        if (n_known == 0) {
                *why = (struct reason){ .rule = RULE_NO_DEVICES, .need_bytes = r->bytes };
                return false;
        }
        if (n_known <= r->n_more) {
                *why = (struct reason){ .rule = RULE_TOO_FEW_DEVICES, .need_bytes = r->bytes, .limit = n_known };
                return false;
        }
        best = of[r->n_more]; /* the least of the largest that it is to be on */
        best_bytes = gives_bytes[best];

        uint64_t bytes = r->bytes;
        if (r->exclusive && best_bytes == 0 && bytes == 0)
                bytes = device_whole_bytes(w, best); /* for the answer: it is never alone there */
        else if (r->exclusive && bytes <= best_bytes)
                bytes = best_bytes; /* the whole of the largest: what nobody else can have a part of then */
        else if (learned_bytes != 0 && bytes <= best_bytes) /* one that names more than can be given is told so */
                bytes = u64_min(learned_bytes, best_bytes);
        else if (bytes == 0)
                bytes = (uint64_t) ((unsigned __int128) best_bytes * r->percent_milli / PERCENT_ALL);
        for (uint32_t d = 0; d < w->n_devices; d++)
                if ((*mask & (UINT64_C(1) << d)) && w->devices[d].health != DEVICE_PARENT && bytes != 0 &&
                    bytes <= gives_bytes[d])
                        fitting |= UINT64_C(1) << d;
        if ((uint32_t) __builtin_popcountll(fitting) <= r->n_more) {
                *why = (struct reason){ .rule = RULE_NEVER_FITS,
                                        .need_bytes = bytes,
                                        .free_bytes = device_free_bytes(w, best) };
                (void) device_ceiling_bytes(w, best, why);
                return false;
        }
        if (*mask != UINT64_MAX || r->bytes == 0 || r->exclusive)
                *mask = fitting;
        *ret_bytes = bytes;
        return true;
}

/* What the leases of a user come to, also of those that wait. What drains is not his any more. */
static uint64_t asked_bytes(const struct world *w, uint32_t user)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < w->n_leases; i++)
                if (w->lease_ids[i] != 0 && w->leases[i].user == user && w->leases[i].state != LEASE_DRAINING)
                        sum = u64_add_sat(sum, lease_whole_bytes(&w->leases[i]));
        return sum;
}

/* Is there a row for a gang on each of its devices? Of all gangs together there are only so many. */
static bool has_gang_room(const struct world *w, const struct request *r)
{
        uint32_t n = r->n_more;

        for (uint32_t i = 0; r->n_more != 0 && i < w->n_leases; i++)
                if (w->lease_ids[i] != 0)
                        n += w->leases[i].n_more;
        return n <= GANGS_MORE_MAX;
}

bool request_has_room(struct world *w, const struct request *r, uint64_t bytes, uint32_t *ret_user, struct reason *why)
{
        struct user *user = world_user(w, r->uid, ret_user);
        struct quota quota = config_quota(&w->config, r->quota);
        uint64_t asked = 0;

        bytes = u64_mul_sat(bytes, 1U + r->n_more);
        if (user && quota.bytes_max != 0 && !r->is_admin)
                asked = asked_bytes(w, *ret_user);
        if (!user)
                *why = (struct reason){ .rule = RULE_LIMIT_USERS, .limit = USERS_MAX };
        else if (!r->adopt && user->n_waiting >= quota.waiting_max)
                *why = (struct reason){ .rule = RULE_LIMIT_WAITING_PER_USER, .limit = quota.waiting_max };
        else if (user->n_leases >= quota.leases_max)
                *why = (struct reason){ .rule = RULE_LIMIT_LEASES_PER_USER, .limit = quota.leases_max };
        else if (quota.bytes_max != 0 && !r->is_admin && u64_add_sat(asked, bytes) > quota.bytes_max)
                *why = (struct reason){ .rule = RULE_LIMIT_BYTES_PER_USER,
                                        .need_bytes = bytes,
                                        .reserved_bytes = asked,
                                        .ceiling_bytes = quota.bytes_max };
        else if (!world_has_lease_room(w) || !has_gang_room(w, r))
                *why = (struct reason){ .rule = RULE_LIMIT_LEASES, .limit = w->config.leases_max };
        else if (!r->adopt && !world_has_entry_room(w))
                *why = (struct reason){ .rule = RULE_LIMIT_ENTRIES, .limit = w->config.entries_max };
        return why->rule == RULE_NONE;
}

struct lease *request_make_lease(struct world *w, const struct request *r, uint32_t user, uint64_t bytes,
                                 uint64_t devices)
{
        struct lease *lease = world_lease_new(w);

        assert(lease); /* room was checked */
        lease->priority = r->priority;
        lease->managed = r->managed;
        lease->kill_at_end = r->kill_at_end;
        lease->kill_left = r->kill_left;
        lease->exclusive = r->exclusive;
        lease->n_more = r->adopt ? 0 : r->n_more;
        lease->idempotency = r->idempotency;
        lease->uid = r->uid;
        lease->user = user;
        lease->bytes = bytes;
        lease->devices = devices;
        lease->slot_ms = r->slot_ms;
        lease->arrived_ms = w->now_ms;
        lease->renewed_ms = w->now_ms;
        lease->binding = r->binding;
        lease->ways = ways_of_request(w, r);
        lease->filler = r->filler;
        lease->no_stop = r->no_stop;
        memcpy(lease->name, r->name, sizeof(lease->name));
        memcpy(lease->consumer, r->consumer, sizeof(lease->consumer));
        lease->name[sizeof(lease->name) - 1] = '\0';
        lease->consumer[sizeof(lease->consumer) - 1] = '\0';
        w->users[user].n_leases++;
        return lease;
}

static struct entry *make_entry(struct world *w, const struct request *r, struct lease *lease)
{
        struct entry *e = world_entry_new(w, r->start_ms != 0 ? ENTRY_BOOKING : ENTRY_REQUEST);

        assert(e);
        e->priority = r->priority;
        e->no_wait = r->no_wait;
        e->collected = r->collected;
        e->lease = world_lease_ref(w, lease);
        e->user = lease->user;
        e->n_more = lease->n_more;
        e->demand_bytes = lease->bytes;
        if (r->exclusive)
                e->least_bytes = u64_max(r->bytes, 1);
        else if (r->bytes == 0) /* one that is learned, too, is never more than can be given */
                e->percent_milli = lease->sized == SIZED_LEARNED ? PERCENT_ALL : r->percent_milli;
        e->devices = lease->devices;
        e->limit_ms = r->slot_ms;
        e->due_ms = r->start_ms;
        e->arrived_ms = w->now_ms;
        if (r->wait_ms != 0)
                e->give_up_ms = w->now_ms + r->wait_ms;
        else if (r->no_wait)
                e->give_up_ms = w->now_ms + NO_WAIT_LOOK_MS;
        e->ways = lease->ways;
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
        uint64_t devices, bytes, learned_bytes;
        uint32_t user;
        uint8_t n_runs;

        if (!request_find_devices(w, r, &devices)) {
                request_refuse(w, out, r, &(struct reason){ .rule = RULE_UNKNOWN_DEVICE, .need_bytes = r->bytes });
                return;
        }
        learned_bytes = learn_size_bytes(w, r, &n_runs);
        if (!request_is_allowed(w, r, &why) || !resolve_demand(w, r, learned_bytes, &devices, &bytes, &why) ||
            !request_has_room(w, r, bytes, &user, &why)) {
                request_refuse(w, out, r, &why);
                return;
        }

        /* Whoever is `daily` is to be made again; that this one does so is one step with its no longer being it. */
        struct lease *before = r->follows_id != 0 ? world_lease_by_id(w, r->follows_id) : NULL;
        if (r->follows_id != 0 && (!before || !before->daily)) {
                request_refuse(w, out, r, &(struct reason){ .rule = before ? RULE_WRONG_STATE : RULE_NOT_FOUND });
                return;
        }

        uint32_t device = NO_DEVICE;
        if (r->start_ms != 0 && r->n_more != 0) { /* it would have to be kept free on all of them */
                request_refuse(w, out, r, &(struct reason){ .rule = RULE_BOOKING_OF_GANG });
                return;
        }
        if (r->start_ms != 0 && !booking_is_possible(w, r, bytes, devices, user, &device, &why)) {
                request_refuse(w, out, r, &why);
                return;
        }

        struct lease *lease = request_make_lease(w, r, user, bytes, devices);
        lease->asked_bytes = r->bytes;
        lease->booked_ms = r->start_ms;
        lease->booked_wall_ms = r->start_wall_ms;
        lease->daily = r->daily;
        lease->day_s = r->day_s;
        if (before)
                before->daily = false;
        lease->sized = !r->learned   ? (n_runs != 0 && bytes > r->bytes ? SIZED_RAISED : SIZED_ASKED)
                       : n_runs != 0 ? SIZED_LEARNED
                                     : SIZED_WHOLE;
        lease->sized_by = lease->sized == SIZED_LEARNED || lease->sized == SIZED_RAISED ? n_runs : 0;
        struct entry *e = make_entry(w, r, lease);
        if (device != NO_DEVICE) /* promised there; the lease goes on to say where it might have been */
                e->devices = UINT64_C(1) << device;

        struct newcomer newcomer = { .entry = lease->entry, .token = r->token };
        admit_pass(w, out, &newcomer, false);
        if (newcomer.granted)
                return;

        if (r->no_wait && newcomer.decided) {
                newcomer.why.rule = RULE_WOULD_WAIT;
                drop_newcomer(w, lease, e);
                request_refuse(w, out, r, &newcomer.why);
                return;
        }
        struct action *a = actions_add_lease(w, out, ACTION_QUEUED, lease, &newcomer.why);
        a->token = r->token;
}
