/* SPDX-License-Identifier: Apache-2.0 */
#include "api/managed.h"
#include <stdio.h>
#include <string.h>
#include "api/container.h"
#include "base/number.h"

enum { FOLDER_MAX = 256 };

static bool ends(const char *text, const char *end)
{
        size_t n = strlen(text), n_end = strlen(end);

        return n > n_end && strcmp(text + n - n_end, end) == 0;
}

/* "user@1000.service" → 1000 */
static bool is_user_manager(const char *folder, uint32_t *ret_uid)
{
        char digits[16];
        uint64_t uid;
        size_t n = strlen(folder);

        if (strncmp(folder, "user@", 5) != 0 || !ends(folder, ".service") || n - 13 >= sizeof(digits))
                return false;
        (void) snprintf(digits, sizeof(digits), "%.*s", (int) (n - 13), folder + 5);
        if (parse_u64("uid", digits, 0, UINT32_MAX - 1, &uid, NULL) < 0)
                return false;
        *ret_uid = (uint32_t) uid;
        return true;
}

bool managed_of_cgroup(const char *path, struct managed *ret)
{
        struct container_place place;
        struct managed m = { 0 };

        *ret = m;
        if (container_of_cgroup(path, &place)) {
                m.manager.kind = MANAGER_CONTAINER;
                m.of_user = place.of_user;
                m.user_uid = place.user_uid;
                (void) snprintf(m.manager.name, sizeof(m.manager.name), "%s", place.id);
                if (!manager_container_is_valid(m.manager.name))
                        return false;
                *ret = m;
                return true;
        }
        for (const char *at = path; *at == '/';) {
                char folder[FOLDER_MAX];
                size_t n = strcspn(at + 1, "/");

                if (n == 0 || n >= sizeof(folder))
                        return false;
                memcpy(folder, at + 1, n);
                folder[n] = '\0';
                at += 1 + n;
                if (ends(folder, ".slice"))
                        continue;
                if (*at == '/') { /* only a person's own manager has units below a unit */
                        if (m.of_user || !is_user_manager(folder, &m.user_uid))
                                return false;
                        m.of_user = true;
                        continue;
                }
                if (is_user_manager(folder, &m.user_uid) || !manager_unit_is_valid(folder))
                        return false;
                m.manager.kind = m.of_user ? MANAGER_USER_UNIT : MANAGER_SYSTEM_UNIT;
                (void) snprintf(m.manager.name, sizeof(m.manager.name), "%s", folder);
                *ret = m;
                return true;
        }
        return false;
}
