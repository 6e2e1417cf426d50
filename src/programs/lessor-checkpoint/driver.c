/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-checkpoint/driver.h"
#include <assert.h>
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

enum { VERSION_LEAST = 12080 }; /* CUDA 12.8, driver 570: the first with these calls */

/* What each call takes is 64 bytes, all zero but for the lock's deadline. */
struct arguments {
        uint32_t deadline_ms;
        uint32_t reserved[15];
};
static_assert(sizeof(struct arguments) == 64, "CUcheckpoint…Args");

static const struct {
        size_t at;
        const char *name;
} symbols[] = {
        { offsetof(struct driver, init), "cuInit" },
        { offsetof(struct driver, thread), "cuCheckpointProcessGetRestoreThreadId" },
        { offsetof(struct driver, state), "cuCheckpointProcessGetState" },
        { offsetof(struct driver, call[DRIVER_LOCK]), "cuCheckpointProcessLock" },
        { offsetof(struct driver, call[DRIVER_CHECKPOINT]), "cuCheckpointProcessCheckpoint" },
        { offsetof(struct driver, call[DRIVER_RESTORE]), "cuCheckpointProcessRestore" },
        { offsetof(struct driver, call[DRIVER_UNLOCK]), "cuCheckpointProcessUnlock" },
};

static bool is_new_enough(void *library)
{
        int (*version)(int *);
        void *address = dlsym(library, "cuDriverGetVersion");
        int v = 0;

        memcpy(&version, &address, sizeof(version));
        return address && version(&v) == DRIVER_OK && v >= VERSION_LEAST;
}

enum warden_why driver_open(struct driver *d)
{
#ifndef __x86_64__
        (void) d;
        return WARDEN_WHY_CANNOT_MACHINE;
#else
        if (d->library)
                return WARDEN_WHY_NONE;
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!library)
                return WARDEN_WHY_CANNOT_LIBRARY;
        if (!is_new_enough(library))
                return WARDEN_WHY_CANNOT_DRIVER;
        for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
                void *address = dlsym(library, symbols[i].name);
                if (!address)
                        return WARDEN_WHY_CANNOT_DRIVER;
                memcpy((char *) d + symbols[i].at, &address, sizeof(address));
        }
        d->library = library;
        return WARDEN_WHY_NONE;
#endif
}

enum warden_why driver_cannot(uint32_t code)
{
        switch (code) {
        case DRIVER_INVALID_VALUE:
                return WARDEN_WHY_CANNOT_PROCESS;
        case DRIVER_NOT_INITIALIZED:
                return WARDEN_WHY_CANNOT_INIT;
        case DRIVER_NOT_PERMITTED:
                return WARDEN_WHY_CANNOT_PERMITTED;
        case DRIVER_NOT_SUPPORTED:
                return WARDEN_WHY_CANNOT_SUPPORTED;
        default:
                return WARDEN_WHY_NONE;
        }
}

/* True when it makes sense to ask again: the driver wanted to be initialised, and now it is. */
static bool initialised_now(struct driver *d, int code)
{
        if (code != DRIVER_NOT_INITIALIZED || d->init_tried)
                return false;
        d->init_tried = true;
        return d->init(0) == DRIVER_OK;
}

uint32_t driver_thread(struct driver *d, uint32_t pid, uint32_t *ret_tid)
{
        int tid = 0, code;

        do {
                code = d->thread((int) pid, &tid);
        } while (initialised_now(d, code));
        *ret_tid = tid > 0 ? (uint32_t) tid : 0;
        return (uint32_t) code;
}

uint32_t driver_state(struct driver *d, uint32_t pid, enum driver_state *ret)
{
        int state = DRIVER_FAILED, code;

        do {
                code = d->state((int) pid, &state);
        } while (initialised_now(d, code));
        bool known = code == DRIVER_OK && state >= DRIVER_RUNNING && state < DRIVER_FAILED;
        *ret = known ? (enum driver_state) state : DRIVER_FAILED;
        return (uint32_t) code;
}

uint32_t driver_do(struct driver *d, enum driver_call call, uint32_t pid, uint32_t deadline_ms)
{
        int code;

        do {
                struct arguments args = { .deadline_ms = call == DRIVER_LOCK ? deadline_ms : 0 };
                code = d->call[call]((int) pid, &args);
        } while (initialised_now(d, code));
        return (uint32_t) code;
}
