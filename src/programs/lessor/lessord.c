/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/lessord.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_program(const char *path)
{
        return access(path, X_OK) == 0;
}

/* The folder this program lies in, without a slash at its end; "" = not known. */
static void own_folder(char ret[PATH_MAX])
{
        ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);
        ret[n > 0 ? n : 0] = '\0';
        char *slash = strrchr(ret, '/');
        if (slash)
                *slash = '\0';
}

static bool find_in_path(const char *name, char *ret, size_t size)
{
        const char *path = getenv("PATH");
        for (path = path ? path : "/usr/sbin:/usr/bin"; *path != '\0'; path += strspn(path, ":")) {
                size_t n = strcspn(path, ":");
                if (n > 0 && (size_t) snprintf(ret, size, "%.*s/%s", (int) n, path, name) < size && is_program(ret))
                        return true;
                path += n;
        }
        return false;
}

bool lessord_find(char *ret, size_t size)
{
        static const char *const places[] = { "lessord", "../sbin/lessord" };
        char folder[PATH_MAX];

        own_folder(folder);
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
                if ((size_t) snprintf(ret, size, "%s/%s", folder, places[i]) < size && is_program(ret))
                        return true;
        return find_in_path("lessord", ret, size);
}

bool lessord_find_helper(const char *name, char *ret, size_t size)
{
        const char *told = getenv("LESSOR_LIBEXEC");
        char folder[PATH_MAX];

        if (told && told[0] == '/')
                return (size_t) snprintf(ret, size, "%s/%s", told, name) < size && is_program(ret);
        own_folder(folder);
        static const char *const places[] = { "", "../libexec/lessor/" };
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
                if ((size_t) snprintf(ret, size, "%s/%s%s", folder, places[i], name) < size && is_program(ret))
                        return true;
        return false;
}
