/* SPDX-License-Identifier: Apache-2.0 */
#include "model/manager.h"
#include <string.h>

enum { CONTAINER_ID_DIGITS = 64 };

const char *manager_kind_name(enum manager_kind kind)
{
        static const char *const names[MANAGER_KIND_N] = {
                [MANAGER_NONE] = "none",
                [MANAGER_USER_UNIT] = "user-unit",
                [MANAGER_SYSTEM_UNIT] = "system-unit",
                [MANAGER_CONTAINER] = "container",
        };
        return kind < MANAGER_KIND_N ? names[kind] : "?";
}

const char *manager_kind_text(enum manager_kind kind)
{
        return kind == MANAGER_CONTAINER ? "container" : "unit";
}

const char *manager_verb_name(enum manager_verb verb)
{
        static const char *const names[MANAGER_VERB_N] = {
                [MANAGER_VERB_NONE] = "none",
                [MANAGER_STOP] = "stop",
                [MANAGER_START] = "start",
        };
        return verb < MANAGER_VERB_N ? names[verb] : "?";
}

bool manager_unit_is_valid(const char *name)
{
        /* systemd.unit(5), "Unit File Format"; an @ in front would be a template without a name. */
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.\\-@";
        static const char end[] = ".service";
        size_t n = strnlen(name, MANAGER_NAME_MAX), n_end = sizeof(end) - 1;

        if (n >= MANAGER_NAME_MAX || n <= n_end || name[0] == '@' || name[0] == '.')
                return false;
        return strspn(name, letters) == n && memcmp(name + n - n_end, end, n_end) == 0 && name[n - n_end - 1] != '@';
}

bool manager_container_is_valid(const char *id)
{
        return strnlen(id, CONTAINER_ID_DIGITS + 1) == CONTAINER_ID_DIGITS &&
               strspn(id, "0123456789abcdef") == CONTAINER_ID_DIGITS;
}
