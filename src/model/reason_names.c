/* SPDX-License-Identifier: Apache-2.0 */
#include "model/reason.h"

static const char *const rule_names[RULE_N] = {
        [RULE_NONE] = "none",
        [RULE_FITS] = "fits",
        [RULE_PASSES_HEAD] = "passes-head",
        [RULE_ENDS_IN_TIME] = "ends-in-time",
        [RULE_FITS_BESIDE] = "fits-beside",
        [RULE_RECLAIMABLE] = "reclaimable",
        [RULE_LEDGER_SET_ASIDE] = "ledger-set-aside",
        [RULE_NO_ROOM] = "no-room",
        [RULE_BEHIND_HEAD] = "behind-head",
        [RULE_NO_ROOM_BEHIND_HEAD] = "no-room-behind-head",
        [RULE_HEAD_BLOCKS] = "head-blocks",
        [RULE_READING_STALE] = "reading-stale",
        [RULE_READING_UNSETTLED] = "reading-unsettled",
        [RULE_NO_USABLE_DEVICE] = "no-usable-device",
        [RULE_ABOVE_CEILING] = "above-ceiling",
        [RULE_ON_HOLD] = "on-hold",
        [RULE_STEPPED_ASIDE] = "stepped-aside",
        [RULE_BLOCKING_BEGAN] = "blocking-began",
        [RULE_CLAIM_CHANGED] = "claim-changed",
        [RULE_NEVER_FITS] = "never-fits",
        [RULE_WOULD_WAIT] = "would-wait",
        [RULE_PRIORITY_CEILING] = "priority-ceiling",
        [RULE_URGENT_NEEDS_SLOT] = "urgent-needs-slot",
        [RULE_UNKNOWN_DEVICE] = "unknown-device",
        [RULE_LIMIT_LEASES] = "limit-leases",
        [RULE_LIMIT_ENTRIES] = "limit-entries",
        [RULE_LIMIT_WAITING_PER_USER] = "limit-waiting-per-user",
        [RULE_LIMIT_LEASES_PER_USER] = "limit-leases-per-user",
        [RULE_LIMIT_USERS] = "limit-users",
        [RULE_NO_DEVICES] = "no-devices",
        [RULE_NOT_FOUND] = "not-found",
        [RULE_NOT_OWNER] = "not-owner",
        [RULE_WRONG_STATE] = "wrong-state",
        [RULE_ENDED] = "ended",
        [RULE_DRAINING] = "draining",
        [RULE_DRAINED] = "drained",
        [RULE_ORPHANED] = "orphaned",
        [RULE_ACTIVATED] = "activated",
        [RULE_RENEWED] = "renewed",
        [RULE_SLOT_WARNING] = "slot-warning",
        [RULE_SLOT_OVER] = "slot-over",
        [RULE_OTHER_DEVICE] = "other-device",
        [RULE_OVER_USE] = "over-use",
        [RULE_DEVICE_FOUND] = "device-found",
        [RULE_DEVICE_CHANGED] = "device-changed",
        [RULE_STRANGER_SEEN] = "stranger-seen",
        [RULE_STRANGER_GONE] = "stranger-gone",
        [RULE_EYES_STALE] = "eyes-stale",
        [RULE_EYES_BACK] = "eyes-back",
        [RULE_RESTARTED] = "restarted",
        [RULE_EXCLUSIVE_HOLDS] = "exclusive-holds",
        [RULE_ADOPTED] = "adopted",
        [RULE_NOTHING_TO_ADOPT] = "nothing-to-adopt",
        [RULE_ADOPT_LEASED] = "already-leased",
        [RULE_ADOPT_SEVERAL] = "several-devices",
        [RULE_ADOPT_NOT_YOURS] = "not-your-process",
        [RULE_LIMIT_BYTES_PER_USER] = "limit-bytes-per-user",
        [RULE_LIMIT_SLOT] = "limit-slot",
        [RULE_LIMIT_PINS] = "limit-pins",
        [RULE_LIMIT_PIN_TIME] = "limit-pin-time",
        [RULE_NO_SLOT] = "no-slot",
        [RULE_BACKFILL_KEEPS_SLOT] = "backfill-keeps-slot",
        [RULE_CHANGED] = "changed",
        [RULE_END_ORDERED] = "end-ordered",
        [RULE_END_BLOCKED] = "end-blocked",
        [RULE_UNKILLABLE] = "unkillable",
        [RULE_PIN_OVER] = "pin-over",
        [RULE_RECLAIMED] = "reclaimed",
        [RULE_RECLAIMING] = "reclaiming",
        [RULE_RETURNS_LIMIT] = "returns-limit",
        [RULE_CARD_MOVES] = "card-moves",
        [RULE_THAW_AGAIN] = "thaw-again",
        [RULE_UNDO_ORDER] = "undo-order",
        [RULE_PLAN_BEGAN] = "plan-began",
        [RULE_PLAN_FAILED] = "plan-failed",
        [RULE_PLAN_OVER] = "plan-over",
        [RULE_ASKED] = "asked",
        [RULE_PARKED] = "parked",
        [RULE_PARK_BLOCKED] = "park-blocked",
        [RULE_PARK_FAILED] = "park-failed",
        [RULE_PARK_UNDONE] = "park-undone",
        [RULE_STUCK] = "stuck",
        [RULE_THAW_BEGAN] = "thaw-began",
        [RULE_THAW_BLOCKED] = "thaw-blocked",
        [RULE_THAWED] = "thawed",
        [RULE_HELD] = "held",
        [RULE_LET_GO] = "let-go",
        [RULE_BROKE_PROMISE] = "broke-promise",
        [RULE_STRUCK_OUT] = "struck-out",
        [RULE_IDLE] = "idle",
        [RULE_BUSY] = "busy",
        [RULE_CANNOT_PARK] = "cannot-park",
        [RULE_NOT_PARKED] = "not-parked",
        [RULE_IS_PARKED] = "is-parked",
        [RULE_BOOKED] = "booked",
        [RULE_BEFORE_BOOKING] = "before-booking",
        [RULE_BOOKING_PAST] = "booking-past",
        [RULE_BOOKING_TAKEN] = "booking-taken",
        [RULE_LIMIT_BOOKINGS] = "limit-bookings",
        [RULE_FORGIVEN] = "forgiven",
        [RULE_WANTS_BACK] = "wants-back",
        [RULE_WAY_OUT_UNFIT] = "way-out-unfit",
        [RULE_IDLE_BEGAN] = "idle-began",
        [RULE_IDLE_OVER] = "idle-over",
        [RULE_IDLE_NOTICE] = "idle-notice",
        [RULE_IDLE_RECLAIMABLE] = "idle-reclaimable",
        [RULE_IDLE_LISTED] = "idle-listed",
        [RULE_STILL_DRAINING] = "still-draining",
        [RULE_STILL_ORPHANED] = "still-orphaned",
};

const char *rule_name(enum rule rule)
{
        return rule < RULE_N ? rule_names[rule] : "?";
}

const char *blocker_kind_name(enum blocker_kind kind)
{
        static const char *const names[BLOCKER_KIND_N] = {
                [BLOCKER_NONE] = "none",           [BLOCKER_DRIVER] = "driver",
                [BLOCKER_DISPLAY] = "display",     [BLOCKER_LEASE] = "lease",
                [BLOCKER_TENANT] = "tenant",       [BLOCKER_CLAIM] = "claim",
                [BLOCKER_STRANGER] = "stranger",   [BLOCKER_UNATTRIBUTED] = "unattributed",
                [BLOCKER_PINNED] = "pinned",       [BLOCKER_PROTECTED] = "protected",
                [BLOCKER_KEPT_FREE] = "kept-free", [BLOCKER_EXCLUSIVE] = "exclusive",
        };
        return kind < BLOCKER_KIND_N ? names[kind] : "?";
}

static const struct {
        const char *name;
        const char *text;
} reclaim_nos[RECLAIM_NO_N] = {
        [RECLAIM_MAY] = { "may", "may be taken back" },
        [RECLAIM_NO_WAY_OUT] = { "no-way-out", "named no way out, and none is proven" },
        [RECLAIM_AT_WORK] = { "at-work", "is at work, and not less important" },
        [RECLAIM_KEEPS_RANK] = { "keeps-rank", "is at work, and keeps the rank of its grant" },
        [RECLAIM_LINGER] = { "linger", "is not idle for long enough" },
        [RECLAIM_IMMUNE] = { "immune", "came back a moment ago" },
        [RECLAIM_PINNED] = { "pinned", "is pinned" },
        [RECLAIM_PROTECTED] = { "protected", "is protected" },
        [RECLAIM_IN_TRANSIT] = { "in-transit", "is on its way already" },
        [RECLAIM_NOT_THERE] = { "not-there", "has nothing on the device yet" },
        [RECLAIM_UNKNOWN] = { "unknown-reading", "nobody knows what would come back" },
        [RECLAIM_LEDGER_FULL] = { "ledger-full", "the ledger of parked work is full" },
        [RECLAIM_HOST_MEMORY] = { "host-memory", "host memory is too short for it" },
        [RECLAIM_CGROUP_LIMIT] = { "cgroup-limit", "the limit of its cgroup is too small for it" },
        [RECLAIM_PRESSURE] = { "memory-pressure", "host memory is under pressure" },
        [RECLAIM_CANNOT] = { "cannot-checkpoint", "this machine cannot checkpoint it" },
        [RECLAIM_STRIKES] = { "strikes", "did not give way too often" },
        [RECLAIM_BACK_OFF] = { "back-off", "could not be tried a moment ago" },
        [RECLAIM_NOT_A_LEASE] = { "not-a-lease", "is under no lease" },
};

const char *reclaim_no_name(enum reclaim_no no)
{
        return no < RECLAIM_NO_N ? reclaim_nos[no].name : "?";
}

const char *reclaim_no_text(enum reclaim_no no)
{
        return no < RECLAIM_NO_N ? reclaim_nos[no].text : "?";
}
