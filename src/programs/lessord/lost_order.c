/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/lost_order.h"

enum member_step lost_order_member(enum record_step at)
{
        switch (at) {
        case RECORD_LOCKING:
                return MEMBER_LOCKING;
        case RECORD_LOCKED:
        case RECORD_HELD:
                return MEMBER_LOCKED;
        case RECORD_CHECKPOINTING:
                return MEMBER_CHECKPOINTING;
        case RECORD_CHECKPOINTED:
                return MEMBER_CHECKPOINTED;
        case RECORD_STOPPED:
                return MEMBER_STOPPED;
        case RECORD_RESTORING:
                return MEMBER_RESTORING;
        case RECORD_UNLOCKING:
                return MEMBER_UNLOCKING;
        case RECORD_FAILED:
                return MEMBER_FAILED;
        case RECORD_NO_STEP:
        case RECORD_RESTORED:
        case RECORD_STEP_N:
                break;
        }
        return MEMBER_RUNNING;
}

enum hand_verb lost_order_verb(enum member_step step)
{
        switch (step) {
        case MEMBER_LOCKING:
                return HAND_LOCK;
        case MEMBER_CHECKPOINTING:
                return HAND_CHECKPOINT;
        case MEMBER_STOPPING:
                return HAND_STOP;
        case MEMBER_RESTORING:
                return HAND_RESTORE;
        case MEMBER_UNLOCKING:
                return HAND_UNLOCK;
        case MEMBER_RUNNING:
        case MEMBER_LOCKED:
        case MEMBER_CHECKPOINTED:
        case MEMBER_STOPPED:
        case MEMBER_RESTORED:
        case MEMBER_FAILED:
        case MEMBER_STEP_N:
                break;
        }
        return HAND_NONE;
}

static void say(struct hand_outcome *ret, enum outcome outcome, enum hand_why why)
{
        ret->outcome = (uint8_t) outcome;
        ret->why = (uint8_t) why;
}

/* Begun, and not said how it ended: the driver may have done it or not. */
static bool in_the_middle(enum hand_verb verb, enum member_step at)
{
        return lost_order_verb(at) == verb;
}

static bool came_of_it(enum hand_verb verb, enum member_step at)
{
        switch (verb) {
        case HAND_LOCK:
        case HAND_HOLD: /* it may be locked: only who is taken for that is let go, and the hands ask the driver first */
                return at == MEMBER_LOCKED || at == MEMBER_LOCKING;
        case HAND_CHECKPOINT:
                return at == MEMBER_CHECKPOINTED || at == MEMBER_STOPPED;
        case HAND_STOP:
                return at == MEMBER_STOPPED;
        case HAND_RESTORE: /* no record: brought back by somebody else, all the way */
                return at == MEMBER_LOCKED || at == MEMBER_RUNNING;
        case HAND_UNLOCK:
                return at == MEMBER_RUNNING;
        case HAND_NONE:
        case HAND_SIGNAL:
        case HAND_KILL_TREE:
        case HAND_FREEZE:
        case HAND_THAW:
        case HAND_VERB_N:
                break;
        }
        return false;
}

/* It was not begun where the process still stands at the step before. */
static bool nothing_came_of_it(enum hand_verb verb, enum member_step at)
{
        switch (verb) {
        case HAND_LOCK:
        case HAND_HOLD:
                return at == MEMBER_RUNNING;
        case HAND_CHECKPOINT:
        case HAND_UNLOCK:
                return at == MEMBER_LOCKED;
        case HAND_STOP:
                return at == MEMBER_CHECKPOINTED;
        case HAND_RESTORE:
                return at == MEMBER_CHECKPOINTED || at == MEMBER_STOPPED;
        case HAND_NONE:
        case HAND_SIGNAL:
        case HAND_KILL_TREE:
        case HAND_FREEZE:
        case HAND_THAW:
        case HAND_VERB_N:
                break;
        }
        return false;
}

void lost_order_judge(enum hand_verb verb, const struct record *record, struct hand_outcome *ret)
{
        enum member_step at = record ? lost_order_member(record->step) : MEMBER_RUNNING;

        ret->host_bytes = 0;
        if (came_of_it(verb, at)) {
                say(ret, OUTCOME_DONE, HAND_WHY_NONE);
                if (verb == HAND_CHECKPOINT)
                        ret->host_bytes = record->host_bytes;
        } else if (at == MEMBER_FAILED) {
                say(ret, OUTCOME_FAILED, HAND_WHY_DRIVER);
        } else if (in_the_middle(verb, at)) {
                say(ret, OUTCOME_FAILED, HAND_WHY_LOST);
        } else {
                say(ret, OUTCOME_BLOCKED, nothing_came_of_it(verb, at) ? HAND_WHY_AWAY : HAND_WHY_STATE);
        }
}
