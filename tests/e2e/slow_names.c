/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded, the name services of the machine are silent about users by name until the file $SLOW_NAMES is there. */
#include <dlfcn.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int getpwnam_fn(const char *name, struct passwd *entry, char *text, size_t size, struct passwd **ret);

static void wait_for_gate(void)
{
        const char *gate = getenv("SLOW_NAMES");
        const struct timespec moment = { .tv_nsec = 10 * 1000 * 1000 };

        while (gate && access(gate, F_OK) != 0)
                (void) nanosleep(&moment, NULL);
}

__attribute__((visibility("default"))) int getpwnam_r(const char *name, struct passwd *entry, char *text, size_t size,
                                                      struct passwd **ret)
{
        void *real = dlsym(RTLD_NEXT, "getpwnam_r");
        getpwnam_fn *ask;

        memcpy(&ask, &real, sizeof(ask));
        wait_for_gate();
        return ask(name, entry, text, size, ret);
}

__attribute__((visibility("default"))) struct passwd *getpwnam(const char *name)
{
        void *real = dlsym(RTLD_NEXT, "getpwnam");
        struct passwd *(*ask)(const char *);

        memcpy(&ask, &real, sizeof(ask));
        wait_for_gate();
        return ask(name);
}
