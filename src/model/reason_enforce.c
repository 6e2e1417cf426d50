/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include "base/duration.h"
#include "base/size.h"
#include "model/enforce.h"
#include "model/hand.h"
#include "model/limits.h"
#include "model/reason.h"

#define SAY(...) (void) snprintf(buf, buf_size, __VA_ARGS__)

static const char *from_now(uint64_t then_ms, uint64_t now_ms, char span[DURATION_TEXT_MAX + 4])
{
        char duration[DURATION_TEXT_MAX];

        if (then_ms <= now_ms)
                return "now";
        (void) snprintf(span, DURATION_TEXT_MAX + 4, "in %s", duration_text(then_ms - now_ms, duration));
        return span;
}

static void say_stranger(const struct reason *r, uint64_t now_ms, char *buf, size_t buf_size)
{
        char size[SIZE_TEXT_MAX], span[DURATION_TEXT_MAX + 4];

        (void) size_text_short(r->used_bytes, size);
        switch ((unsigned) r->rule) {
        case RULE_WOULD_END:
                SAY("holds %s without a lease: enforcement would end it; only observing, nothing is done", size);
                break;
        case RULE_STRANGER_WARNED:
                SAY("holds %s without a lease (%s): its owner is told", size,
                    verdict_why_text((enum verdict_why) r->limit));
                break;
        case RULE_STRANGER_NOTICED:
                SAY("holds %s without a lease, and is to be ended: SIGTERM %s", size,
                    from_now(r->start_ms, now_ms, span));
                break;
        case RULE_STRANGER_ENDING:
                if (r->start_ms != 0)
                        SAY("holds %s without a lease: SIGTERM now, SIGKILL %s", size,
                            from_now(r->start_ms, now_ms, span));
                else
                        SAY("holds %s without a lease, and did not end by itself: SIGKILL", size);
                break;
        case RULE_STRANGER_SPARED:
                SAY("is not ended after all: %s", verdict_why_text((enum verdict_why) r->limit));
                break;
        case RULE_STRANGER_ENDED:
                SAY("ended: its %s are free again", size);
                break;
        case RULE_STRANGER_BLOCKED:
                SAY("could not be ended yet: %s; tried again", hand_why_text((enum hand_why) r->limit));
                break;
        case RULE_STRANGER_UNKILLABLE:
                SAY("does not end, not even by SIGKILL; its %s stay counted, and no more signals are sent", size);
                break;
        case RULE_STRANGER_RETURNS:
                SAY("was ended and is started again by its unit or container; nothing more is done with it: stop that, "
                    "or give it a lease (`lessor adopt`)");
                break;
        }
}

static void say_enforcer(const struct reason *r, uint64_t now_ms, char *buf, size_t buf_size)
{
        char span[DURATION_TEXT_MAX + 4];
        unsigned long long id = (unsigned long long) r->head_lease_id;

        switch ((unsigned) r->rule) {
        case RULE_ENFORCE_MODE:
                SAY("the enforcer's mode is %s from now on", enforce_mode_name((enum enforce_mode) r->limit));
                break;
        case RULE_ENFORCE_DOUBT:
                if (r->limit == DOUBT_NONE)
                        SAY("enforcement goes on");
                else if (r->limit >= DOUBT_BLIND)
                        SAY("enforcement does not see everything: %s",
                            enforce_doubt_text((enum enforce_doubt) r->limit));
                else
                        SAY("enforcement is off for now: %s", enforce_doubt_text((enum enforce_doubt) r->limit));
                break;
        case RULE_APPROVED:
                if (r->start_ms != 0)
                        SAY("approved (A%llu); that ends %s", id, from_now(r->start_ms, now_ms, span));
                else
                        SAY("approved (A%llu), until it is taken back", id);
                break;
        case RULE_UNAPPROVED:
                SAY("the approval A%llu is taken back", id);
                break;
        case RULE_APPROVAL_LAPSED:
                SAY("the approval A%llu has lapsed: whom it covered is warned for a day, then ended", id);
                break;
        case RULE_ADMIN_ONLY:
                SAY("only an administrator may do this");
                break;
        case RULE_MODE_CEILING:
                SAY("the configuration allows the mode %s at most (enforce_max)",
                    enforce_mode_name((enum enforce_mode) r->limit));
                break;
        case RULE_NOT_A_STRANGER:
                SAY("no such process has memory on a device; `lessor status` shows who has");
                break;
        case RULE_PROGRAM_UNKNOWN:
                SAY("which program it runs cannot be seen from here, and by its name alone nobody is approved");
                break;
        case RULE_SCRIPT_UNKNOWN:
                SAY("it is an interpreter, or may be one, and which script it runs cannot be seen: all of them would "
                    "be "
                    "approved");
                break;
        case RULE_PLACE_UNKNOWN:
                SAY("it runs in no unit or container that is known");
                break;
        case RULE_LIMIT_APPROVALS:
                SAY("there are %u approvals already; take some back (`lessor unapprove`)", r->limit);
                break;
        case RULE_NO_APPROVAL:
                SAY("there is no approval A%llu; `lessor approvals` shows them", id);
                break;
        }
}

const char *reason_enforce_text(const struct reason *r, uint64_t now_ms, char *buf, size_t buf_size)
{
        say_stranger(r, now_ms, buf, buf_size);
        say_enforcer(r, now_ms, buf, buf_size);
        return buf;
}
