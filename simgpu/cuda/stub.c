/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/stub.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "card/work.h"
#include "cuda/context.h"

/* Each name speaks once per process; the table is small because a program that needs many unknown names won't get far. */
#define SAID_MAX 256

static bool is_first(const char *name)
{
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static const char *said[SAID_MAX];
        bool first = true;
        (void) pthread_mutex_lock(&lock);
        for (size_t i = 0; i < SAID_MAX && first; i++) {
                if (!said[i]) {
                        said[i] = name;
                        break;
                }
                first = strcmp(said[i], name) != 0;
        }
        (void) pthread_mutex_unlock(&lock);
        return first;
}

CUresult stub_answer(const char *name)
{
        bool strict = getenv("SIMGPU_STRICT") && strcmp(getenv("SIMGPU_STRICT"), "1") == 0;
        bool is_launch = strncmp(name, "cuLaunch", 8) == 0 || strncmp(name, "cuGraphLaunch", 13) == 0;
        bool is_work = is_launch || strncmp(name, "cuModuleLoad", 12) == 0 || strncmp(name, "cuLibraryLoad", 13) == 0;
        if (is_launch && cuda.proc && context_current()) /* refused, but meant: it shows as work */
                work_note(cuda.proc, context_current()->device, WORK_KERNEL);
        if (is_first(name) || strict)
                fprintf(stderr,
                        is_work ? "simgpu: %s: this card is simulated: memory is kept, nothing is computed (801)\n"
                                : "simgpu: %s is not simulated (801)\n",
                        name);
        if (strict)
                abort();
        return CUDA_NOT_SUPPORTED;
}
