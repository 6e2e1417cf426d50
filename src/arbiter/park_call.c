/* SPDX-License-Identifier: Apache-2.0 */
/* What people and programs say of a lease that is to give its device up, or did; and what records say of one that nobody here
 * remembers. */
#include <assert.h>
#include <string.h>
#include "arbiter/actions.h"
#include "arbiter/admit.h"
#include "arbiter/cost.h"
#include "arbiter/hold.h"
#include "arbiter/life.h"
#include "arbiter/manage.h"
#include "arbiter/member.h"
#include "arbiter/park.h"
#include "arbiter/reading.h"
#include "arbiter/reclaim.h"
#include "arbiter/usage.h"
#include "base/number.h"

static void refuse(struct world *w, const struct park_call *c, const struct lease *lease, enum rule rule,
                   uint32_t limit, struct actions *out)
{
        struct action *a = actions_add(w, out, ACTION_REFUSED);

        a->token = c->token;
        a->lease_id = c->lease_id;
        a->uid = c->uid; /* who tried, which is what the events are to say */
        if (lease)
                a->device = lease->device;
        a->why = (struct reason){ .rule = (uint16_t) rule, .limit = limit };
}

static void accept(struct world *w, const struct park_call *c, const struct lease *lease, enum rule rule,
                   struct actions *out)
{
        actions_add_lease(w, out, ACTION_CHANGED, lease,
                          &(struct reason){ .rule = (uint16_t) rule,
                                            .limit = lease->park.way,
                                            .head_lease_id = lease->park.for_lease_id,
                                            .used_bytes = lease->park.used_bytes,
                                            .need_bytes = lease->park.charged_bytes })
                ->token = c->token;
}

/* By a person, no matter how important it is and whether it works: its owner may. A way out that breaks work is used where
 * it was named, and where nothing gentler is to be had. */
static void call_park(struct world *w, const struct park_call *c, struct lease *lease, struct actions *out)
{
        bool rehearse = c->what == PARK_CALL_REHEARSE;
        uint8_t way = WAY_OUT_CHECKPOINT;
        enum reclaim_no no;

        if (lease->park.step == PARK_OUT) { /* parked already: from now on by the person's word */
                struct entry *e = world_entry_get(w, lease->entry);
                if (e)
                        admit_drop_entry(w, e);
                lease->park.undo_group = 0;
                lease->park.undo_order = 0;
                lease->park.cause = PARK_BY_PERSON;
                lease->park.by_uid = c->uid;
                lease->park.until_ms = c->for_ms != 0 ? w->now_ms + c->for_ms : 0;
                lease->park.wants_back = rehearse;
                accept(w, c, lease, RULE_PARKED, out);
                return;
        }
        if (lease->state != LEASE_ACTIVE || lease->ending || lease->park.step != PARK_NONE) {
                refuse(w, c, lease, RULE_WRONG_STATE, 0, out);
                return;
        }
        no = rehearse ? reclaim_may_rehearse(w, lease) : reclaim_may_park(w, lease, WAY_OUT_BIT(WAY_OUT_KILL), &way);
        if (no != RECLAIM_MAY) {
                refuse(w, c, lease, RULE_CANNOT_PARK, no, out);
                return;
        }
        lease->park.way = way;
        accept(w, c, lease, RULE_ASKED, out);
        park_begin(w, lease, (enum way_out_kind) way, rehearse ? PARK_REHEARSAL : PARK_BY_PERSON, 0, c->uid, out);
        lease->park.until_ms = c->for_ms != 0 ? w->now_ms + c->for_ms : 0;
}

static void call_thaw(struct world *w, const struct park_call *c, struct lease *lease, struct actions *out)
{
        if (lease->park.step != PARK_OUT && lease->state != LEASE_ASKING) {
                refuse(w, c, lease, RULE_NOT_PARKED, 0, out);
                return;
        }
        accept(w, c, lease, RULE_WANTS_BACK, out);
        struct entry *e = world_entry_get(w, lease->entry);
        if (e && lease->park.idle) /* asked for: as what it is, no longer as a filler */
                admit_drop_entry(w, e);
        lease->park.wants_back = true;
        lease->park.until_ms = 0;
        if (lease->park.cause == PARK_BY_PERSON)
                lease->park.cause = PARK_REHEARSAL; /* nobody keeps it away any more */
        if (lease->park.step == PARK_OUT)
                thaw_enqueue(w, lease);
}

/* It was parked because it had nothing to do, and now it has: it wants back as what it is. */
static void has_work_again(struct world *w, struct lease *lease)
{
        struct entry *e = world_entry_get(w, lease->entry);

        lease->park.idle = false;
        if (e)
                admit_drop_entry(w, e);
        if (thaw_is_wanted(w, lease))
                thaw_enqueue(w, lease);
}

static void call_idle(struct world *w, const struct park_call *c, struct lease *lease, struct actions *out)
{
        bool idle = c->what == PARK_CALL_IDLE;
        struct holder *h;

        if (lease_n_parts(lease) == 0 || lease->state == LEASE_DRAINING) {
                refuse(w, c, lease, RULE_WRONG_STATE, 0, out);
                return;
        }
        each_part (w, lease, h) {
                world_holder_writing(w, h);
                h->idle_since_ms = !idle ? 0 : h->idle_since_ms != 0 ? h->idle_since_ms : u64_max(w->now_ms, 1);
                h->idle_bytes = h->used_bytes;
                h->tells_idle = true;
                h->keep_alive_ms = idle ? c->keep_alive_ms : h->keep_alive_ms;
                world_holder_written(w, h);
        }
        if (!idle && lease->park.step == PARK_OUT && lease->park.idle)
                has_work_again(w, lease); /* not before: it asks for sums */
        accept(w, c, lease, idle ? RULE_IDLE : RULE_BUSY, out);
}

static void call_forgive(struct world *w, const struct park_call *c, struct lease *lease, struct actions *out)
{
        if (lease->park.lost_one) { /* the driver's failures are final: nobody's word brings that process back */
                refuse(w, c, lease, RULE_STUCK, HAND_WHY_DRIVER, out);
                return;
        }
        memset(lease->park.strikes, 0, sizeof(lease->park.strikes));
        lease->park.not_before_ms = 0;
        if (lease->state == LEASE_STUCK) /* what nobody was there to answer for */
                lease->park.again_ms = u64_max(w->now_ms, 1);
        accept(w, c, lease, RULE_FORGIVEN, out);
        manage_forgive(w, lease, out);
}

void park_step(struct world *w, const struct park_call *c, struct actions *out)
{
        struct lease *lease = world_lease_by_id(w, c->lease_id);

        if (!lease) {
                refuse(w, c, NULL, RULE_NOT_FOUND, 0, out);
                return;
        }
        if (!c->is_admin && lease->uid != c->uid) {
                refuse(w, c, lease, RULE_NOT_OWNER, 0, out);
                return;
        }
        switch ((enum park_call_what) c->what) {
        case PARK_CALL_PARK:
        case PARK_CALL_REHEARSE:
                call_park(w, c, lease, out);
                return;
        case PARK_CALL_THAW:
                call_thaw(w, c, lease, out);
                return;
        case PARK_CALL_YIELDED:
                if (lease->park.step != PARK_ASKING) {
                        refuse(w, c, lease, RULE_WRONG_STATE, 0, out);
                        return;
                }
                lease->park.yielded = true;
                lease->park.step_ms = w->now_ms; /* only what is seen from now on counts */
                accept(w, c, lease, RULE_ASKED, out);
                reading_outdated_of(w, lease, out);
                return;
        case PARK_CALL_IDLE:
        case PARK_CALL_BUSY:
                call_idle(w, c, lease, out);
                return;
        case PARK_CALL_FORGIVE:
                call_forgive(w, c, lease, out);
                return;
        case PARK_CALL_NONE:
        case PARK_CALL_N:
                break;
        }
        refuse(w, c, lease, RULE_WRONG_STATE, 0, out);
}

/* ---- records ---- */

/* A process that books do not know of, and that somebody parked: a lease over it, parked, that comes back when it fits. */
static struct lease *lease_for_record(struct world *w, const struct park_record *r, uint32_t device)
{
        struct lease *lease;
        struct holder *h;
        uint32_t user;

        if (!world_user(w, r->uid, &user) || !world_has_lease_room(w) || !(lease = world_lease_new(w)))
                return NULL;
        lease->priority = PRIORITY_NORMAL;
        lease->kept_rank = PRIORITY_NORMAL;
        lease->adopted = true;
        lease->no_stop = r->no_stop;
        lease->uid = r->uid;
        lease->user = user;
        lease->bytes = u64_max(r->bytes, 1);
        lease->devices = UINT64_C(1) << device;
        lease->device = device;
        lease->arrived_ms = lease->granted_ms = lease->active_ms = lease->renewed_ms = w->now_ms;
        lease->binding.kind = BINDING_PROCESS;
        lease->binding.owner = lease->binding.root = r->process;
        lease->root_living = true;
        lease->state = LEASE_PARKED;
        w->users[user].n_leases++;

        h = world_holder_new(w, HOLDER_LEASE, device);
        assert(h); /* the table is sized for every lease */
        h->used_known = true;
        h->began_used_bytes = r->bytes;
        h->lease = world_lease_ref(w, lease);
        lease->holder = world_holder_ref(w, h);
        world_holder_written(w, h);
        lease->park = (struct park){ .step = PARK_OUT,
                                     .way = WAY_OUT_CHECKPOINT,
                                     .cause = PARK_FOR_PLAN,
                                     .used_bytes = r->bytes,
                                     .started_ms = w->now_ms,
                                     .parked_ms = w->now_ms };
        return lease;
}

static struct process *process_for_record(struct world *w, const struct park_record *r)
{
        struct process *p = world_process_find(w, r->process);

        return p ? p
                 : world_process_put(w,
                                     &(struct process){ .identity = r->process, .uid = r->uid, .seen_ms = w->now_ms });
}

/* Somebody else brought it back (`lessor rescue`), or the hands let it go because nobody was there: it runs. */
static void found_running(struct world *w, struct lease *lease, struct process *p, struct actions *out)
{
        member_leave(w, lease, p);
        if (lease->state == LEASE_PARKED && !park_has_away(w, lease)) {
                struct entry *e = world_entry_get(w, lease->entry);
                if (e)
                        admit_drop_entry(w, e);
                thaw_begin(w, lease, out);
        } else if (lease->state == LEASE_HELD && lease->park.step == PARK_HELD_HERE) {
                hold_let_go(w, lease, out); /* the others of it too: it is held as a whole, or not */
        }
        reading_outdated_of(w, lease, out);
}

/* Not off its device, only locked: it is let go at once, whatever is free. */
static void let_go(struct world *w, struct lease *lease)
{
        life_change_state(w, lease, LEASE_EVENT_THAW);
        park_reserve(w, lease, lease->bytes);
        usage_set_held(&w->config, &w->users[lease->user],
                       u64_add_sat(w->users[lease->user].held_bytes, lease_whole_bytes(lease)), w->now_ms);
        lease->park.step = PARK_UNLOCKING;
        lease->park.again_ms = u64_max(w->now_ms, 1);
}

void park_record(struct world *w, const struct park_record *r, struct actions *out)
{
        struct process *p = r->member == MEMBER_RUNNING ? world_process_find(w, r->process) : process_for_record(w, r);
        struct lease *lease = p ? world_lease_get(w, p->lease) : NULL;
        bool locked = r->member == MEMBER_LOCKED || r->member == MEMBER_RESTORED;
        uint32_t device;

        if (!p || p->order_id != 0)
                return; /* an order's outcome says the rest */
        if (r->member == MEMBER_RUNNING) {
                if (lease && p->member != MEMBER_RUNNING)
                        found_running(w, lease, p, out);
                return;
        }
        if (p->member != MEMBER_RUNNING || (!locked && !member_is_away(r->member) && r->member != MEMBER_FAILED))
                return; /* remembered */
        if (lease && lease->state != LEASE_PARKED)
                return; /* under a lease that is at work: who locked it lets it go */
        if (!lease && (!world_device_by_uuid(w, r->uuid, &device) || !(lease = lease_for_record(w, r, device))))
                return;

        process_put_under(p, world_lease_ref(w, lease), ATTRIBUTED_RECORD);
        p->member = (uint8_t) (locked                                                           ? MEMBER_RESTORED
                               : r->member == MEMBER_CHECKPOINTED || r->member == MEMBER_FAILED ? r->member
                                                                                                : MEMBER_STOPPED);
        p->device_bytes = r->bytes;
        member_charge(w, lease, p, member_is_away(p->member) ? r->host_bytes : 0);
        park_say(w, lease, ACTION_PARKED, RULE_PARKED, WAY_OUT_CHECKPOINT, out);
        if (locked)
                let_go(w, lease);
        else
                thaw_enqueue(w, lease);
}
