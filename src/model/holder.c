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
