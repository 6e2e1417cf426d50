/* SPDX-License-Identifier: Apache-2.0 */
#include "api/place.h"
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sha256.h>
#include "base/number.h"

static bool ends_with(const char *text, size_t n, const char *end)
{
        size_t k = strlen(end);
        return n > k && memcmp(text + n - k, end, k) == 0;
}

static bool begins_with(const char *text, size_t n, const char *begin)
{
        size_t k = strlen(begin);
        return n >= k && memcmp(text, begin, k) == 0;
}

/* The first 64 bits of its SHA-256: to find a path for a given number is 2^64 tries. */
static uint64_t number_of(const char *path, size_t n)
{
        uint8_t digest[SHA256_DIGEST_LENGTH];
        uint64_t number = 0;
        SHA2_CTX ctx;

        SHA256Init(&ctx);
        SHA256Update(&ctx, (const uint8_t *) path, n);
        SHA256Final(digest, &ctx);
        for (unsigned i = 0; i < 8; i++)
                number = number << 8 | digest[i];
        return number ? number : 1;
}

/* "user-1000.slice" */
static bool is_slice_of_user(const char *part, size_t n, uint32_t *ret)
{
        char digits[16];
        uint64_t uid;

        if (!begins_with(part, n, "user-") || !ends_with(part, n, ".slice") || n - 11 >= sizeof(digits))
                return false;
        memcpy(digits, part + 5, n - 11);
        digits[n - 11] = '\0';
        if (parse_u64("uid", digits, 0, UINT32_MAX - 1, &uid, NULL) < 0)
                return false;
        *ret = (uint32_t) uid;
        return true;
}

/* The outermost unit, as systemd made it: what lies below one was called so by who lives there. A user's manager is one, too, and
 * counts where the process is in none of its units. */
static void find_unit(const char *path, struct place *ret)
{
        for (const char *at = path; *at == '/';) {
                const char *part = at + 1;
                size_t n = strcspn(part, "/");

                at = part + n;
                if (!ret->of_user && is_slice_of_user(part, n, &ret->user_uid))
                        ret->of_user = true;
                bool scope = ends_with(part, n, ".scope");
                if ((!scope && !ends_with(part, n, ".service")) || n >= sizeof(ret->unit))
                        continue;
                memcpy(ret->unit, part, n);
                ret->unit[n] = '\0';
                ret->kind = scope && begins_with(part, n, "session-") ? PLACE_SESSION : PLACE_UNIT;
                ret->number = number_of(path, (size_t) (at - path));
                if (!ret->of_user || scope || !begins_with(part, n, "user@"))
                        return;
        }
}

void place_of_cgroup(const char *cgroup_path, struct place *ret)
{
        struct container_place container;

        *ret = (struct place){ .kind = PLACE_NONE };
        find_unit(cgroup_path, ret);
        if (!container_of_cgroup(cgroup_path, &container))
                return;
        const char *id = strstr(cgroup_path, container.id);
        ret->kind = PLACE_CONTAINER;
        ret->of_user = container.of_user;
        ret->user_uid = container.user_uid;
        ret->number = number_of(cgroup_path, (size_t) (id - cgroup_path) + strlen(container.id));
        (void) snprintf(ret->container, sizeof(ret->container), "%s", container.id);
}

const char *place_kind_name(enum place_kind kind)
{
        static const char *const names[PLACE_KIND_N] = {
                [PLACE_NONE] = "none",
                [PLACE_UNIT] = "unit",
                [PLACE_SESSION] = "session",
                [PLACE_CONTAINER] = "container",
        };
        return (unsigned) kind < PLACE_KIND_N ? names[kind] : "unknown";
}
