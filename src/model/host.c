/* SPDX-License-Identifier: Apache-2.0 */
#include "model/host.h"

static const struct {
        const char *name;
        const char *text;
} cannot[CHECKPOINT_CANNOT_N] = {
        [CHECKPOINT_UNKNOWN] = { "unknown", "nobody has looked yet whether the driver can" },
        [CHECKPOINT_CAN] = { "can", "the driver can" },
        [CHECKPOINT_NO_LIBRARY] = { "no-library", "libcuda.so.1 is not there, or lacks the calls" },
        [CHECKPOINT_OLD_DRIVER] = { "old-driver", "the driver is older than 570" },
        [CHECKPOINT_BAD_DRIVER] = { "bad-driver", "this driver is known to break programs that are checkpointed" },
        [CHECKPOINT_NO_MACHINE] = { "no-machine", "not on this kind of processor" },
        [CHECKPOINT_NO_HANDS] = { "no-hands", "lessor-warden is not there" },
        [CHECKPOINT_OFF] = { "off", "lessord.conf says that it is not to be done" },
};

const char *checkpoint_cannot_name(enum checkpoint_cannot why)
{
        return why < CHECKPOINT_CANNOT_N ? cannot[why].name : "?";
}

const char *checkpoint_cannot_text(enum checkpoint_cannot why)
{
        return why < CHECKPOINT_CANNOT_N ? cannot[why].text : "?";
}
