/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include "api/refusal.h"
#include "api/view.h"
#include "model/lease.h"
#include "model/reason.h"

static const struct {
        enum rule rule;
        int status;
        const char *type;
        const char *cure;
} refusals[] = {
        { RULE_NEVER_FITS, 422, "never-fits", "ask for less" },
        { RULE_WOULD_WAIT, 409, "would-wait", "let it wait, or try again later" },
        { RULE_PRIORITY_CEILING, 403, "priority-ceiling", "ask for a larger priority number" },
        { RULE_URGENT_NEEDS_SLOT, 403, "urgent-needs-slot",
          "say for how long (for) and how it may be taken back "
          "(yield_by or kill_at_end)" },
        { RULE_UNKNOWN_DEVICE, 404, "unknown-device", "see /api/devices" },
        { RULE_LIMIT_LEASES, 429, "limit-leases", "release some, or try again later" },
        { RULE_LIMIT_ENTRIES, 429, "limit-entries", "try again later" },
        { RULE_LIMIT_WAITING_PER_USER, 429, "limit-waiting-per-user", "cancel some that wait, or try again later" },
        { RULE_LIMIT_LEASES_PER_USER, 429, "limit-leases-per-user", "release some, or try again later" },
        { RULE_LIMIT_USERS, 429, "limit-users", "try again later" },
        { RULE_NO_DEVICES, 422, "no-devices", "check the driver (/healthz says what is seen of it)" },
        { RULE_NOT_FOUND, 404, "not-found", "see /api/leases" },
        { RULE_NOT_OWNER, 403, "not-owner", "only its owner and administrators may do this" },
        { RULE_WRONG_STATE, 409, "wrong-state", "look at its state first" },
        { RULE_CANNOT_PARK, 409, "cannot-park", "try again when that has changed" },
        { RULE_NOT_PARKED, 409, "not-parked", "look at its state first" },
        { RULE_IS_PARKED, 409, "is-parked", "then try again" },
        { RULE_STUCK, 409, "stuck", "end its program, which gives the memory back, and start it again" },
        { RULE_WAY_OUT_UNFIT, 422, "way-out-unfit", "name another (yield_by)" },
        { RULE_NOTHING_TO_ADOPT, 409, "nothing-to-adopt", "see /api/status for what holds memory" },
        { RULE_ADOPT_LEASED, 409, "already-leased", "look at that lease" },
        { RULE_ADOPT_SEVERAL, 409, "several-devices", "name one of them (device)" },
        { RULE_ADOPT_NOT_YOURS, 403, "not-yours", "its owner can adopt it" },
        { RULE_LIMIT_BYTES_PER_USER, 429, "limit-bytes-per-user", "or ask for less" },
        { RULE_LIMIT_SLOT, 403, "limit-slot", "see /api/limits" },
        { RULE_LIMIT_PINS, 429, "limit-pins", "see /api/limits" },
        { RULE_LIMIT_PIN_TIME, 403, "limit-pin-time", "name a shorter time" },
        { RULE_NO_SLOT, 409, "no-slot", "give it one with for" },
        { RULE_BOOKING_PAST, 422, "booking-past", "name another start (start, in) or length (for)" },
        { RULE_BOOKING_TAKEN, 409, "booking-taken", "take less, or another time" },
        { RULE_TOO_FEW_DEVICES, 422, "too-few-devices", "ask for fewer (gpus), or name no device" },
        { RULE_BOOKING_OF_GANG, 422, "booking-of-gang", "leave gpus out" },
        { RULE_LIMIT_BOOKINGS, 429, "limit-bookings", "see /api/limits" },
        { RULE_ADMIN_ONLY, 403, "admin-only", "ask one" },
        { RULE_MODE_CEILING, 409, "mode-ceiling", "change it, reload, and try again" },
        { RULE_NOT_A_STRANGER, 404, "not-a-stranger", "name one of those" },
        { RULE_PROGRAM_UNKNOWN, 409, "program-unknown", "give it a lease instead (/api/adopt)" },
        { RULE_SCRIPT_UNKNOWN, 409, "script-unknown",
          "approve it in its unit or container alone (here), or give it a lease (/api/adopt)" },
        { RULE_PLACE_UNKNOWN, 409, "place-unknown",
          "leave here out; whose script cannot be seen needs a lease (/api/adopt)" },
        { RULE_LIMIT_APPROVALS, 429, "limit-approvals", "then try again" },
        { RULE_NO_APPROVAL, 404, "no-approval", "name one of those" },
        { RULE_BACKFILL_KEEPS_SLOT, 409, "backfill-keeps-slot", "an administrator can extend it" },
};

void refusal_of_end(struct problem *ret, uint64_t lease_id, const struct action *last)
{
        enum end_reason end = last ? (enum end_reason) last->why.end : END_NONE;

        if (end == END_WAIT_OVER)
                problem_set(ret, 409, "wait-over",
                            "L%" PRIu64 " waited as long as it was willing to and was not granted; "
                            "ask again, or with a longer wait",
                            lease_id);
        else if (end != END_NONE)
                problem_set(ret, 410, "ended", "L%" PRIu64 " has ended: %s; /api/why/L%" PRIu64 " tells its story",
                            lease_id, end_reason_text(end), lease_id);
        else
                problem_set(ret, 410, "ended", "L%" PRIu64 " is over; how it ended is no longer kept", lease_id);
}

void refusal_of_action(struct problem *ret, const struct action *action, uint64_t now_ms)
{
        char text[REASON_TEXT_MAX];

        reason_text(&action->why, now_ms, text, sizeof(text));
        for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
                if (refusals[i].rule == (enum rule) action->why.rule) {
                        problem_set(ret, refusals[i].status, refusals[i].type, "%s; %s", text, refusals[i].cure);
                        return;
                }
        }
        if (action->kind == ACTION_ENDED || action->kind == ACTION_DRAINING || action->why.end != END_NONE) {
                refusal_of_end(ret, action->lease_id, action);
                return;
        }
        problem_set(ret, 409, rule_name((enum rule) action->why.rule), "%s", text);
}

json_t *refusal_extra(const struct action *action, uint64_t now_ms)
{
        if (!action)
                return NULL;

        const struct reason *why = &action->why;
        json_t *extra = json_object();
        if (!extra)
                return NULL;
        (void) json_object_set_new(extra, "reason", view_reason(why, now_ms));
        if (action->lease_id != 0)
                (void) json_object_set_new(extra, "lease", view_lease_id(action->lease_id));
        if (why->rule == RULE_NEVER_FITS) {
                (void) json_object_set_new(extra, "ceiling_bytes", view_u64(why->ceiling_bytes));
                (void) json_object_set_new(extra, "blockers", view_blockers(why, now_ms));
        }
        if (why->rule == RULE_CANNOT_PARK)
                (void) json_object_set_new(extra, "why_not",
                                           json_string(reclaim_no_name((enum reclaim_no) why->limit)));
        if (why->limit != 0)
                (void) json_object_set_new(extra, "limit", view_u64(why->limit));
        if (why->end != END_NONE)
                (void) json_object_set_new(extra, "end", json_string(end_reason_name((enum end_reason) why->end)));
        return extra;
}
