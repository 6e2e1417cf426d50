/* SPDX-License-Identifier: Apache-2.0 */
#include "model/holder.h"

const char *holder_kind_name(enum holder_kind kind)
{
        static const char *const names[HOLDER_KIND_N] = {
                [HOLDER_NONE] = "none",     [HOLDER_DISPLAY] = "display", [HOLDER_LEASE] = "lease",
                [HOLDER_TENANT] = "tenant", [HOLDER_CLAIM] = "claim",     [HOLDER_STRANGER] = "stranger",
        };
        return kind < HOLDER_KIND_N ? names[kind] : "?";
}

const char *holder_activity_name(enum holder_activity activity)
{
        static const char *const names[HOLDER_ACTIVITY_N] = {
                [HOLDER_ACTIVITY_UNKNOWN] = "unknown", [HOLDER_RESTED] = "rested", [HOLDER_WORKED] = "worked"
        };
        return activity < HOLDER_ACTIVITY_N ? names[activity] : "?";
}
