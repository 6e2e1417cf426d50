/* SPDX-License-Identifier: Apache-2.0 */
#include "model/action.h"

const char *action_kind_name(enum action_kind kind)
{
        static const char *const names[ACTION_KIND_N] = {
                [ACTION_NONE] = "none",           [ACTION_READ] = "read",         [ACTION_QUEUED] = "queued",
                [ACTION_GRANTED] = "granted",     [ACTION_REFUSED] = "refused",   [ACTION_ACTIVE] = "active",
                [ACTION_RENEWED] = "renewed",     [ACTION_WAITING] = "waiting",   [ACTION_DRAINING] = "draining",
                [ACTION_ORPHANED] = "orphaned",   [ACTION_ENDED] = "ended",       [ACTION_WARNING] = "warning",
                [ACTION_DEVICE] = "device",       [ACTION_STRANGER] = "stranger", [ACTION_EYES] = "eyes",
                [ACTION_RESTARTED] = "restarted", [ACTION_CHANGED] = "changed",   [ACTION_HAND] = "hand",
                [ACTION_ASKED] = "asked",         [ACTION_PARKED] = "parked",     [ACTION_THAWING] = "thawing",
                [ACTION_THAWED] = "thawed",       [ACTION_STUCK] = "stuck",       [ACTION_PLAN] = "plan",
                [ACTION_IDLE] = "idle",           [ACTION_MANAGER] = "manager",   [ACTION_ENFORCE] = "enforce",
        };
        return kind < ACTION_KIND_N ? names[kind] : "?";
}
