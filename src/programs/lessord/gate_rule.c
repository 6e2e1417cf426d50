/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/gate_rule.h"

/*
 * As long as work of it may come to the device: also while it is off it (a restore opens the device again) and when only workers are
 * left. What is over, or was not collected, may not.
 */
static bool may_work(enum lease_state state)
{
        switch (state) {
        case LEASE_ACTIVE:
        case LEASE_ASKING:
        case LEASE_HELD:
        case LEASE_PARKED:
        case LEASE_THAWING:
        case LEASE_ORPHANED:
        case LEASE_STUCK:
        case LEASE_LOST:
                return true;
        case LEASE_NONE:
        case LEASE_QUEUED:
        case LEASE_GRANTED:
        case LEASE_DRAINING:
        case LEASE_ENDED:
        case LEASE_STATE_N:
                break;
        }
        return false;
}

bool gate_wants(const struct lease *lease, struct gate_allow *ret)
{
        struct identity who = !identity_is_none(lease->binding.root) ? lease->binding.root : lease->binding.owner;

        *ret = (struct gate_allow){ 0 };
        if (!may_work((enum lease_state) lease->state) || lease->uid == UINT32_MAX)
                return false;
        if (lease->binding.cgroup_id == 0 && identity_is_none(who))
                return false; /* a heartbeat by TCP: nobody here */
        *ret = (struct gate_allow){ .lease_id = lease->id,
                                    .cgroup_id = lease->binding.cgroup_id,
                                    .pid = who.pid,
                                    .start_ticks = who.pid ? who.start_ticks : 0,
                                    .owner_uid = lease->uid };
        return true;
}
