/* SPDX-License-Identifier: Apache-2.0 */
#include "model/park.h"

const char *park_step_name(enum park_step step)
{
        static const char *const names[PARK_STEP_N] = {
                [PARK_NONE] = "none",
                [PARK_ASKING] = "asking",
                [PARK_LOCKING] = "locking",
                [PARK_CHECKPOINTING] = "checkpointing",
                [PARK_STOPPING] = "stopping",
                [PARK_SETTLING] = "settling",
                [PARK_OUT] = "out",
                [PARK_RESTORING] = "restoring",
                [PARK_UNLOCKING] = "unlocking",
                [PARK_RETURNING] = "returning",
                [PARK_UNDOING] = "undoing",
                [PARK_HOLDING] = "holding",
                [PARK_HELD_HERE] = "held",
        };
        return step < PARK_STEP_N ? names[step] : "?";
}

const char *park_cause_name(enum park_cause cause)
{
        static const char *const names[PARK_CAUSE_N] = {
                [PARK_FOR_NOBODY] = "none",
                [PARK_FOR_PLAN] = "plan",
                [PARK_BY_PERSON] = "person",
                [PARK_REHEARSAL] = "rehearsal",
        };
        return cause < PARK_CAUSE_N ? names[cause] : "?";
}

const char *member_step_name(enum member_step step)
{
        static const char *const names[MEMBER_STEP_N] = {
                [MEMBER_RUNNING] = "running",
                [MEMBER_LOCKING] = "locking",
                [MEMBER_LOCKED] = "locked",
                [MEMBER_CHECKPOINTING] = "checkpointing",
                [MEMBER_CHECKPOINTED] = "checkpointed",
                [MEMBER_STOPPING] = "stopping",
                [MEMBER_STOPPED] = "stopped",
                [MEMBER_RESTORING] = "restoring",
                [MEMBER_RESTORED] = "restored",
                [MEMBER_UNLOCKING] = "unlocking",
                [MEMBER_FAILED] = "failed",
        };
        return step < MEMBER_STEP_N ? names[step] : "?";
}
