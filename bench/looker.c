/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver itself takes for one look: total, lists, total (design 4.1), asked for by a bare program. The simulated
 * driver asks /proc about each of its clients at every call, which is most of what a look at it costs; benches measure it
 * apart. For each line N on its input: N looks, MS milliseconds apart, and then one line with their CPU time in ns a look.
 *
 *      bench_looker MS         ends with its input
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/number.h"

enum { ROWS = 1024, LOOKS_MAX = 100000 };

struct nvml_memory {
        unsigned long long total, free, used;
};

struct nvml_process { /* as the _v3 lists write it */
        unsigned pid;
        unsigned long long used_bytes;
        unsigned gpu_instance, compute_instance;
};

typedef int init_fn(void);
typedef int handle_fn(unsigned index, void **device);
typedef int memory_fn(void *device, struct nvml_memory *memory);
typedef int list_fn(void *device, unsigned *n, struct nvml_process *rows);

struct driver {
        void *device;
        memory_fn *memory;
        list_fn *lists[3];
};

static _Noreturn void give_up(const char *what, const char *words)
{
        (void) fprintf(stderr, "bench_looker: %s: %s\n", what, words);
        exit(EXIT_FAILURE);
}

static void *symbol(void *library, const char *name)
{
        void *found = dlsym(library, name);
        if (!found)
                give_up(name, "not in the driver's library");
        return found;
}

static void open_driver(struct driver *d)
{
        void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!library)
                give_up("libnvidia-ml.so.1", dlerror());
        init_fn *init = (init_fn *) (uintptr_t) symbol(library, "nvmlInit_v2");
        handle_fn *handle = (handle_fn *) (uintptr_t) symbol(library, "nvmlDeviceGetHandleByIndex_v2");

        d->memory = (memory_fn *) (uintptr_t) symbol(library, "nvmlDeviceGetMemoryInfo");
        d->lists[0] = (list_fn *) (uintptr_t) symbol(library, "nvmlDeviceGetComputeRunningProcesses_v3");
        d->lists[1] = (list_fn *) (uintptr_t) symbol(library, "nvmlDeviceGetGraphicsRunningProcesses_v3");
        d->lists[2] = (list_fn *) (uintptr_t) symbol(library, "nvmlDeviceGetMPSComputeRunningProcesses_v3");
        if (init() != 0 || handle(0, &d->device) != 0)
                give_up("nvmlInit", "there is no card");
}

static void look(const struct driver *d)
{
        static struct nvml_process rows[ROWS];
        struct nvml_memory memory;

        if (d->memory(d->device, &memory) != 0)
                give_up("memory", "no answer");
        for (size_t i = 0; i < 3; i++) {
                unsigned n = ROWS;
                (void) d->lists[i](d->device, &n, rows);
        }
        (void) d->memory(d->device, &memory);
}

static uint64_t cpu_ns(void)
{
        struct timespec ts;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
        return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}

int main(int argc, char **argv)
{
        struct driver driver = { 0 };
        struct error err = { 0 };
        uint64_t interval_ms, n_looks;
        char line[32];

        if (argc != 2)
                give_up("usage", "bench_looker MS");
        if (parse_u64("MS", argv[1], 1, 60000, &interval_ms, &err) < 0)
                give_up("usage", err.msg);
        const struct timespec pause = { .tv_sec = (time_t) (interval_ms / 1000),
                                        .tv_nsec = (long) (interval_ms % 1000) * 1000000 };

        open_driver(&driver);
        look(&driver);
        (void) puts("ready");
        (void) fflush(stdout);
        while (fgets(line, sizeof(line), stdin)) {
                line[strcspn(line, "\n")] = '\0';
                if (parse_u64("number of looks", line, 1, LOOKS_MAX, &n_looks, &err) < 0)
                        give_up("input", err.msg);
                uint64_t before_ns = cpu_ns();
                for (uint64_t i = 0; i < n_looks; i++) {
                        (void) nanosleep(&pause, NULL);
                        look(&driver);
                }
                (void) printf("%llu\n", (unsigned long long) ((cpu_ns() - before_ns) / n_looks));
                (void) fflush(stdout);
        }
        return EXIT_SUCCESS;
}
