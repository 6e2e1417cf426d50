/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/libexec.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int libexec_find(const char *name, char ret[PATH_MAX], struct error *err)
{
        const char *told = getenv("LESSOR_LIBEXEC");
        char self[PATH_MAX];

        if (told && told[0] == '/') {
                if ((size_t) snprintf(ret, PATH_MAX, "%s/%s", told, name) < PATH_MAX && access(ret, X_OK) == 0)
                        return 0;
                return error_set(err, ENOENT, "there is no %s in $LESSOR_LIBEXEC (%s)", name, told);
        }
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (n <= 0)
                return error_errno(err, errno, "finding our own program");
        self[n] = '\0';
        char *slash = strrchr(self, '/');
        if (slash)
                *slash = '\0';
        static const char *const places[] = { "", "../libexec/lessor/" };
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
                if ((size_t) snprintf(ret, PATH_MAX, "%s/%s%s", self, places[i], name) < PATH_MAX &&
                    access(ret, X_OK) == 0)
                        return 0;
        return error_set(err, ENOENT, "there is no %s in %s and none in ../libexec/lessor; set LESSOR_LIBEXEC", name,
                         self);
}
