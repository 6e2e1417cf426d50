/* SPDX-License-Identifier: Apache-2.0 */
#include "api/door.h"

const char *door_kind_name(enum door_kind kind)
{
        switch (kind) {
        case DOOR_UNIX:
                return "unix";
        case DOOR_TCP:
                return "tcp";
        case DOOR_METRICS:
                return "metrics";
        }
        return "?";
}

enum door_role door_role_of(const struct door *door, const char *token, size_t n)
{
        /* Both are compared, whichever it is. */
        bool user = token_matches(&door->user, token, n), admin = token_matches(&door->admin, token, n);

        if (admin)
                return DOOR_ROLE_ADMIN;
        if (!user)
                return DOOR_ROLE_NONE;
        return door->kind == DOOR_TCP && door->uid_known ? DOOR_ROLE_USER : DOOR_ROLE_READER;
}
