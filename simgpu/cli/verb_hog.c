/* SPDX-License-Identifier: Apache-2.0 */
/* hog - a client of the CUDA driver API that holds memory: resolves as the CUDA runtime does, knows nothing of simgpu inside */

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cuda/abi.h"

#define GROW_MAX 4096
#define COUNT_STEP_MS 100

static struct {
        CUresult (*init)(unsigned);
        CUresult (*device_get)(int *, int);
        CUresult (*device_uuid)(CUuuid *, int);
        CUresult (*context_create)(CUcontext *, unsigned, int);
        CUresult (*mem_alloc)(CUdeviceptr *, size_t);
        CUresult (*mem_alloc_managed)(CUdeviceptr *, size_t, unsigned);
        CUresult (*mem_info)(size_t *, size_t *);
        CUresult (*to_device)(CUdeviceptr, const void *, size_t);
        CUresult (*to_host)(void *, CUdeviceptr, size_t);
        CUresult (*error_name)(CUresult, const char **);
} cu;

static const struct {
        void *slot;
        const char *name;
        int version;
} wanted[] = {
        { &cu.init, "cuInit", 2000 },
        { &cu.device_get, "cuDeviceGet", 2000 },
        { &cu.device_uuid, "cuDeviceGetUuid", 9020 },
        { &cu.context_create, "cuCtxCreate", 3020 },
        { &cu.mem_alloc, "cuMemAlloc", 3020 },
        { &cu.mem_alloc_managed, "cuMemAllocManaged", 6000 },
        { &cu.mem_info, "cuMemGetInfo", 3020 },
        { &cu.to_device, "cuMemcpyHtoD", 3020 },
        { &cu.to_host, "cuMemcpyDtoH", 3020 },
        { &cu.error_name, "cuGetErrorName", 6000 },
};

static void stop(int signal_number)
{
        (void) signal_number;
        _exit(EXIT_OK); /* the driver frees what a process held, however it went */
}

static bool loader_finds_it(void)
{
        const char *path = getenv("LD_LIBRARY_PATH");
        while (path && *path) {
                size_t len = strcspn(path, ":");
                char lib[PATH_MAX];
                snprintf(lib, sizeof lib, "%.*s/libcuda.so.1", (int) len, path);
                if (len > 0 && access(lib, R_OK) == 0)
                        return true;
                path += len + (path[len] == ':');
        }
        return false;
}

/* dlopen, one dlsym, everything else through cuGetProcAddress: a shim that hooks less than this sees nothing. */
static void resolve(void)
{
        char path[PATH_MAX + 32] = "libcuda.so.1";
        if (!loader_finds_it() && getenv("SIMGPU"))
                snprintf(path, sizeof path, "%s/libcuda.so.1", cli_libdir(cli_card_path(NULL)));
        void *lib = dlopen(path, RTLD_NOW);
        if (!lib)
                cli_die(EXIT_FAILED, "hog: %s", dlerror());
        CUresult (*get)(const char *, void **, int, uint64_t, int *);
        void *symbol = dlsym(lib, "cuGetProcAddress_v2");
        if (!symbol)
                cli_die(EXIT_FAILED, "hog: %s", dlerror());
        memcpy(&get, &symbol, sizeof get);
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
                void *function = NULL;
                int status = -1;
                if (get(wanted[i].name, &function, wanted[i].version, 0, &status) != CUDA_OK || !function)
                        cli_die(EXIT_FAILED, "hog: the driver has no %s", wanted[i].name);
                memcpy(wanted[i].slot, &function, sizeof function);
        }
}

static const char *name_of(CUresult rc)
{
        const char *name = NULL;
        return cu.error_name(rc, &name) == CUDA_OK && name ? name : "unknown error";
}

static void must(CUresult rc, const char *what)
{
        if (rc != CUDA_OK)
                cli_die(rc == CUDA_OUT_OF_MEMORY ? EXIT_NO_MEMORY : EXIT_FAILED, "hog: %s: %s (%d)", what, name_of(rc),
                        rc);
}

static CUdeviceptr take(uint64_t bytes, bool managed, bool may_fail)
{
        CUdeviceptr ptr = 0;
        CUresult rc = managed ? cu.mem_alloc_managed(&ptr, bytes, 1) : cu.mem_alloc(&ptr, bytes);
        if (rc == CUDA_OUT_OF_MEMORY && !may_fail) {
                size_t free_bytes = 0, total = 0;
                (void) cu.mem_info(&free_bytes, &total);
                cli_die(EXIT_NO_MEMORY, "hog: cannot allocate %llu bytes: %s; %zu of %zu bytes are free",
                        (unsigned long long) bytes, name_of(rc), free_bytes, total);
        }
        if (!may_fail)
                must(rc, "allocating");
        return rc == CUDA_OK ? ptr : 0;
}

static void uuid_text(char *to, size_t size, const CUuuid *u)
{
        const unsigned char *b = u->bytes;
        snprintf(to, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
                 b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

struct growth {
        uint64_t step_bytes, every_ms, max_bytes;
};

static struct growth parse_growth(const char *grow, const char *max)
{
        struct growth g = { 0 };
        if (!grow)
                return g;
        char step[64];
        const char *slash = strchr(grow, '/');
        if (!slash || (size_t) (slash - grow) >= sizeof step)
                cli_die(EXIT_USAGE, "--grow: STEP/INTERVAL, like 100M/1s, not \"%s\"", grow);
        snprintf(step, sizeof step, "%.*s", (int) (slash - grow), grow);
        g.step_bytes = cli_size("--grow", step);
        g.every_ms = cli_duration_ms("--grow", slash + 1);
        g.max_bytes = max ? cli_size("--max", max) : UINT64_MAX;
        if (g.step_bytes == 0 || g.every_ms == 0)
                cli_die(EXIT_USAGE, "--grow: nothing, or never, is no growth");
        return g;
}

static void handle_signals(bool ignore_term)
{
        struct sigaction sa = { .sa_handler = stop };
        (void) sigaction(SIGINT, &sa, NULL);
        if (ignore_term)
                sa.sa_handler = SIG_IGN;
        (void) sigaction(SIGTERM, &sa, NULL);
}

static void count_once(CUdeviceptr at)
{
        uint64_t n = 0;
        must(cu.to_host(&n, at, sizeof n), "reading the counter");
        n++;
        must(cu.to_device(at, &n, sizeof n), "writing the counter");
        printf("count %llu\n", (unsigned long long) n);
}

static void hold(CUdeviceptr counter, uint64_t held, struct growth g, bool managed, uint64_t for_ms, const char *uuid)
{
        uint64_t start_ns = card_now_ns(), grown_ns = start_ns;
        for (;;) {
                uint64_t now_ns = card_now_ns();
                if (for_ms > 0 && now_ns - start_ns >= for_ms * 1000000)
                        return;
                if (counter)
                        count_once(counter);
                if (g.step_bytes > 0 && held < g.max_bytes && now_ns - grown_ns >= g.every_ms * 1000000) {
                        uint64_t step = g.step_bytes < g.max_bytes - held ? g.step_bytes : g.max_bytes - held;
                        grown_ns = now_ns;
                        if (take(step, managed, true)) {
                                held += step;
                                printf("holding %llu bytes on %s pid %d\n", (unsigned long long) held, uuid,
                                       (int) getpid());
                        } else {
                                printf("growth refused at %llu bytes\n", (unsigned long long) held);
                        }
                }
                uint64_t step_ms = counter ? COUNT_STEP_MS : 1000;
                if (g.step_bytes > 0 && g.every_ms < step_ms)
                        step_ms = g.every_ms;
                uint64_t left_ms = for_ms > 0 ? for_ms - (now_ns - start_ns) / 1000000 : step_ms;
                if (left_ms < step_ms)
                        step_ms = left_ms > 0 ? left_ms : 1;
                struct timespec ts = { .tv_sec = (time_t) (step_ms / 1000),
                                       .tv_nsec = (long) (step_ms % 1000) * 1000000 };
                (void) nanosleep(&ts, NULL);
        }
}

int verb_hog(int argc, char **argv)
{
        const char *alloc = NULL, *for_text = NULL, *grow = NULL, *max = NULL, *device = "0", *file = NULL;
        bool ignore_term = false, count = false, managed = false, graphics = false;
        const struct cli_option options[] = {
                { "alloc", "SIZE", "bytes to hold from the start", &alloc, NULL },
                { "for", "TIME", "leave after that long (default: at SIGTERM or SIGINT, exit 0)", &for_text, NULL },
                { "grow", "STEP/INTERVAL", "take STEP more every INTERVAL …", &grow, NULL },
                { "max", "SIZE", "… until SIZE is held", &max, NULL },
                { "ignore-term", NULL, "SIGTERM does nothing", NULL, &ignore_term },
                { "count", NULL, "keep a counter in device memory, print it several times a second", NULL, &count },
                { "device", "N", "CUDA ordinal (0)", &device, NULL },
                { "managed", NULL, "managed memory: used, but not listed for this process", NULL, &managed },
                { "graphics", NULL, "be a graphics process (G) in NVML's lists", NULL, &graphics },
                { "file", "F", "the card (default $SIMGPU)", &file, NULL },
                { NULL, NULL, NULL, NULL, NULL },
        };
        if (cli_parse("hog", options, argc, argv) > 0)
                cli_die(EXIT_USAGE, "hog: what is \"%s\"?", argv[1]);
        if (!alloc)
                cli_die(EXIT_USAGE, "hog: how much? --alloc SIZE");
        uint64_t bytes = cli_size("--alloc", alloc), for_ms = for_text ? cli_duration_ms("--for", for_text) : 0;
        int ordinal = (int) cli_number("--device", device, 0, CARD_DEVICES_MAX - 1);
        struct growth g = parse_growth(grow, max);
        if (count && bytes < 8)
                cli_die(EXIT_USAGE, "hog: the counter needs 8 bytes of --alloc");
        if (file)
                (void) setenv("SIMGPU", cli_card_path(file), 1);
        if (graphics)
                (void) setenv("SIMGPU_GRAPHICS", "1", 1);
        (void) setvbuf(stdout, NULL, _IOLBF, 0);
        handle_signals(ignore_term);

        resolve();
        int dev;
        CUuuid raw;
        CUcontext context;
        char uuid[48];
        must(cu.init(0), "cuInit");
        must(cu.device_get(&dev, ordinal), "cuDeviceGet");
        must(cu.device_uuid(&raw, dev), "cuDeviceGetUuid");
        must(cu.context_create(&context, 0, dev), "cuCtxCreate");
        CUdeviceptr first = bytes > 0 ? take(bytes, managed, false) : 0;
        uint64_t zero = 0;
        if (count)
                must(cu.to_device(first, &zero, sizeof zero), "writing the counter");
        uuid_text(uuid, sizeof uuid, &raw);
        printf("holding %llu bytes on %s pid %d\n", (unsigned long long) bytes, uuid, (int) getpid());
        hold(count ? first : 0, bytes, g, managed, for_ms, uuid);
        return EXIT_OK;
}
