/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hand.h"

const char *hand_verb_name(enum hand_verb verb)
{
        static const char *const names[HAND_VERB_N] = {
                [HAND_NONE] = "none",
                [HAND_SIGNAL] = "signal",
                [HAND_KILL_TREE] = "kill-tree",
                [HAND_FREEZE] = "freeze",
                [HAND_THAW] = "thaw",
                [HAND_LOCK] = "lock",
                [HAND_CHECKPOINT] = "checkpoint",
                [HAND_STOP] = "stop",
                [HAND_RESTORE] = "restore",
                [HAND_UNLOCK] = "unlock",
                [HAND_HOLD] = "hold",
        };
        return verb < HAND_VERB_N ? names[verb] : "?";
}

const char *outcome_name(enum outcome outcome)
{
        static const char *const names[OUTCOME_N] = {
                [OUTCOME_NONE] = "none",
                [OUTCOME_DONE] = "done",
                [OUTCOME_BLOCKED] = "blocked",
                [OUTCOME_FAILED] = "failed",
        };
        return outcome < OUTCOME_N ? names[outcome] : "?";
}

static const struct {
        const char *name;
        const char *text;
} whys[HAND_WHY_N] = {
        [HAND_WHY_NONE] = { "none", "nothing stood in the way" },
        [HAND_WHY_AWAY] = { "hands-away", "lessor-warden is not there; it is started again" },
        [HAND_WHY_GONE] = { "gone", "the process has ended" },
        [HAND_WHY_PROTECTED] = { "protected", "the program may never be a target" },
        [HAND_WHY_OWNER] = { "not-the-owners", "the process does not belong to the lease's owner" },
        [HAND_WHY_GRACE] = { "no-grace", "the process was not given its grace yet" },
        [HAND_WHY_RATE] = { "rate", "too many orders at once" },
        [HAND_WHY_KERNEL] = { "kernel", "this kernel cannot signal a process safely (pidfd)" },
        [HAND_WHY_UNKILLABLE] = { "unkillable", "the kernel does not end it (uninterruptible sleep)" },
        [HAND_WHY_OTHER] = { "other", "see the log of lessor-warden" },
        [HAND_WHY_LOCK_TIMEOUT] = { "lock-timeout", "work on the device did not end in time" },
        [HAND_WHY_HEADROOM] = { "headroom", "the last look at the device showed too little free memory" },
        [HAND_WHY_CANNOT] = { "cannot", "the driver, the program or the machine cannot do it" },
        [HAND_WHY_STATE] = { "state", "its record says that it is at another step" },
        [HAND_WHY_PARKED] = { "parked", "it is checkpointed, and has to be brought back first" },
        [HAND_WHY_MEMORY] = { "host-memory", "host memory would not do" },
        [HAND_WHY_DRIVER] = { "driver", "the driver said no; it cannot be tried again" },
        [HAND_WHY_LOST] = { "lost", "lessor-warden ended in the middle of it" },
        [HAND_WHY_MANAGER_AWAY] = { "manager-away", "its service manager or container engine does not answer" },
        [HAND_WHY_FORBIDDEN] = { "forbidden", "its service manager or container engine does not let lessord" },
        [HAND_WHY_NO_WAY_BACK] = { "no-way-back", "stopped, it could not be started again" },
        [HAND_WHY_MANAGER_FAILED] = { "manager-failed", "its service manager or container engine could not do it" },
        [HAND_WHY_RUNS_AGAIN] = { "runs-again", "it was stopped, and somebody started it again at once" },
};

const char *hand_why_name(enum hand_why why)
{
        return why < HAND_WHY_N ? whys[why].name : "?";
}

const char *hand_why_text(enum hand_why why)
{
        return why < HAND_WHY_N ? whys[why].text : "?";
}
