/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/manage.h"
#include "arbiter/actions.h"
#include "arbiter/attribute.h"
#include "arbiter/life.h"
#include "arbiter/park_steps.h"
#include "arbiter/reading.h"
#include "base/number.h"

/* A manager answers by then, or is late: systemd gives a unit 90 s for its stop, and as much for its start, unless it says
 * otherwise. */
enum { MANAGER_LATE_MS = 150000 };

static void order(struct world *w, struct lease *lease, enum manager_verb verb, struct actions *out)
{
        if (!actions_have_room(out, 1)) {
                lease->park.again_ms = u64_max(w->now_ms, 1);
                return;
        }
        struct action *a = actions_add_lease(w, out, ACTION_MANAGER, lease,
                                             &(struct reason){ .rule = RULE_ASKED,
                                                               .limit = lease->park.way,
                                                               .head_lease_id = lease->park.for_lease_id });
        a->manage = (uint8_t) verb;
        a->wait_ms = verb == MANAGER_STOP ? w->config.yield_grace_ms : 0;
        lease->park.order_id = a->id;
        lease->park.again_ms = 0;
}

void manage_stop(struct world *w, struct lease *lease, struct actions *out)
{
        park_enter(w, lease, PARK_ASKING, MANAGER_LATE_MS);
        lease->park.may_be_done = false;
        order(w, lease, MANAGER_STOP, out);
}

void manage_start(struct world *w, struct lease *lease, struct actions *out)
{
        park_enter(w, lease, PARK_RETURNING, MANAGER_LATE_MS);
        order(w, lease, MANAGER_START, out);
}

/* It runs, as somebody else: what it has on a device counts under its lease from the next look on. */
static void runs_as(struct world *w, struct lease *lease, const struct manager_outcome *o, struct actions *out)
{
        struct binding *b = &lease->binding;

        if (identity_equal(b->root, o->root) && (o->cgroup_id == 0 || o->cgroup_id == b->cgroup_id) &&
            lease->root_living)
                return;
        b->root = b->owner = o->root;
        if (o->cgroup_id != 0)
                b->cgroup_id = o->cgroup_id;
        lease->root_living = true;
        lease->owner_gone = false;
        if (attribute_take(w, lease))
                reading_outdated_of(w, lease, out);
}

/* Its manager is through with it, whatever it says: whether its memory is gone the device tells. */
static void settle(struct world *w, struct lease *lease, struct actions *out)
{
        lease->park.yielded = true;
        park_enter(w, lease, PARK_SETTLING, settle_ms(lease->park.used_bytes));
        reading_outdated_of(w, lease, out);
        actions_read_soon_of(w, out, lease);
}

static bool is_lost(const struct manager_outcome *o)
{
        return o->outcome != OUTCOME_DONE && o->why == HAND_WHY_LOST;
}

static void on_stop(struct world *w, struct lease *lease, const struct manager_outcome *o, struct actions *out)
{
        if (is_lost(o))
                lease->park.may_be_done = true;
        if (lease->state == LEASE_ASKING && lease->park.may_be_done && o->outcome != OUTCOME_DONE &&
            identity_is_none(o->root)) {
                lease->park.again_ms = w->now_ms + AGAIN_MS; /* until somebody knows, or its time is over */
                return;
        }
        switch ((enum outcome) o->outcome) {
        case OUTCOME_DONE:
                if (lease->state == LEASE_STUCK)
                        life_change_state(w, lease, LEASE_EVENT_ASK); /* it came late, and it came */
                settle(w, lease, out);
                return;
        case OUTCOME_BLOCKED:
                if (lease->state == LEASE_ASKING)
                        park_undo(w, lease, (enum hand_why) o->why, out);
                return;
        case OUTCOME_FAILED:
                if (lease->state != LEASE_ASKING)
                        return;
                if (!identity_is_none(o->root)) { /* it goes on, as another process than before */
                        park_way_failed(w, lease, out);
                        return;
                }
                settle(w, lease, out); /* what it had may come back all the same */
                park_stick(w, lease, (enum hand_why) o->why, out);
                return;
        case OUTCOME_NONE:
        case OUTCOME_N:
                return;
        }
}

static void on_start(struct world *w, struct lease *lease, const struct manager_outcome *o, struct actions *out)
{
        if (is_lost(o)) {
                lease->park.again_ms = w->now_ms + AGAIN_MS;
                return;
        }
        switch ((enum outcome) o->outcome) {
        case OUTCOME_DONE:
                if (identity_is_none(o->root)) /* started, and nothing runs */
                        thaw_failed(w, lease, HAND_WHY_MANAGER_FAILED, out);
                else
                        thaw_is_back(w, lease, out);
                return;
        case OUTCOME_BLOCKED:
                thaw_blocked(w, lease, (enum hand_why) o->why, out);
                return;
        case OUTCOME_FAILED:
                thaw_failed(w, lease, (enum hand_why) o->why, out);
                return;
        case OUTCOME_NONE:
        case OUTCOME_N:
                return;
        }
}

void manage_outcome(struct world *w, const struct manager_outcome *o, struct actions *out)
{
        struct lease *lease = world_lease_by_id(w, o->lease_id);

        if (!lease || !manage_has_it_away(lease) || lease->state == LEASE_DRAINING)
                return;
        if (!identity_is_none(o->root))
                runs_as(w, lease, o, out);
        if (o->order_id == 0 || o->order_id != lease->park.order_id)
                return; /* unasked, or late */
        lease->park.order_id = 0;
        if (lease->park.step == PARK_ASKING || (lease->park.step == PARK_SETTLING && lease->state == LEASE_STUCK))
                on_stop(w, lease, o, out);
        else if (lease->park.step == PARK_RETURNING)
                on_start(w, lease, o, out);
}

void manage_again(struct world *w, struct lease *lease, struct actions *out)
{
        if (lease->park.order_id != 0 || !manage_has_it_away(lease))
                return;
        if (lease->park.step == PARK_ASKING && lease->state == LEASE_ASKING)
                order(w, lease, MANAGER_STOP, out);
        else if (lease->park.step == PARK_RETURNING && lease->state == LEASE_THAWING)
                order(w, lease, MANAGER_START, out);
}

void manage_deadline(struct world *w, struct lease *lease, struct actions *out)
{
        bool was_ordered = lease->park.order_id != 0;

        if (lease->park.step == PARK_RETURNING) {
                if (was_ordered)
                        thaw_failed(w, lease, HAND_WHY_MANAGER_AWAY, out);
                else
                        thaw_blocked(w, lease, HAND_WHY_MANAGER_AWAY, out);
                lease->park.order_id = 0;
                return;
        }
        /* It may be stopped any moment, or never: only a device that shows it gone makes it parked. */
        settle(w, lease, out);
        park_stick(w, lease, HAND_WHY_MANAGER_AWAY, out);
}

void manage_forgive(struct world *w, struct lease *lease, struct actions *out)
{
        if (lease->state != LEASE_STUCK || !manage_has_it_away(lease) || lease->park.step != PARK_SETTLING)
                return;
        life_change_state(w, lease, LEASE_EVENT_ASK);
        lease->park.yielded = false;
        manage_stop(w, lease, out);
}

void manage_was_away(struct world *w)
{
        for (uint32_t i = 0; i < w->n_leases; i++) {
                struct lease *lease = &w->leases[i];
                if (w->lease_ids[i] == 0 || lease->park.order_id == 0)
                        continue;
                lease->park.order_id = 0;
                lease->park.may_be_done = lease->park.step == PARK_ASKING;
                lease->park.again_ms = u64_max(w->now_ms, 1);
        }
}

void manage_tick(struct world *w, struct lease *lease, struct actions *out)
{
        if (!binding_is_managed(&lease->binding) || lease->state != LEASE_ACTIVE || lease->park.step != PARK_NONE ||
            lease->root_living || lease->owner_gone)
                return;
        struct lease_call call = { .lease_id = lease->id, .by_system = true, .end_reason = END_OWNER_EXITED };
        life_owner_ended(w, &call, out);
}
