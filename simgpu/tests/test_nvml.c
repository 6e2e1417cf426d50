/* SPDX-License-Identifier: Apache-2.0 */
/* NVML: layouts, version words, codes, the old drivers, and that every kind of fault bites. */

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "card/fault.h"
#include "tests/harness.h"

#define ROWS 8

static struct {
        nvmlReturn_t (*init)(void), (*shutdown)(void);
        nvmlReturn_t (*by_index)(unsigned, nvmlDevice_t *), (*by_uuid)(const char *, nvmlDevice_t *);
        nvmlReturn_t (*by_bus)(const char *, nvmlDevice_t *);
        nvmlReturn_t (*memory)(nvmlDevice_t, nvmlMemory_t *), (*memory2)(nvmlDevice_t, nvmlMemory_v2_t *);
        nvmlReturn_t (*list1)(nvmlDevice_t, unsigned *, void *), (*list2)(nvmlDevice_t, unsigned *, void *);
        nvmlReturn_t (*list3)(nvmlDevice_t, unsigned *, void *), (*graphics3)(nvmlDevice_t, unsigned *, void *);
        nvmlReturn_t (*details)(nvmlDevice_t, nvmlProcessDetailList_t *);
        nvmlReturn_t (*set_new)(nvmlEventSet_t *), (*register_events)(nvmlDevice_t, uint64_t, nvmlEventSet_t);
        nvmlReturn_t (*event_wait)(nvmlEventSet_t, nvmlEventData_t *, unsigned), (*set_free)(nvmlEventSet_t);
        nvmlReturn_t (*lock_clocks)(nvmlDevice_t, unsigned, unsigned), (*clock)(nvmlDevice_t, unsigned, unsigned *);
        nvmlReturn_t (*utilisation)(nvmlDevice_t, void *, unsigned *, uint64_t), (*fan)(nvmlDevice_t, unsigned *);
        nvmlReturn_t (*utilisations)(nvmlDevice_t, nvmlProcessesUtilization_t *);
        nvmlReturn_t (*pci)(nvmlDevice_t, nvmlPciInfo_t *), (*uuid)(nvmlDevice_t, char *, unsigned);
} nv;

static nvmlDevice_t dev;

static void load(void)
{
        LOAD(nvml_symbol, nv.init, "nvmlInit_v2");
        LOAD(nvml_symbol, nv.shutdown, "nvmlShutdown");
        LOAD(nvml_symbol, nv.by_index, "nvmlDeviceGetHandleByIndex_v2");
        LOAD(nvml_symbol, nv.by_uuid, "nvmlDeviceGetHandleByUUID");
        LOAD(nvml_symbol, nv.by_bus, "nvmlDeviceGetHandleByPciBusId_v2");
        LOAD(nvml_symbol, nv.memory, "nvmlDeviceGetMemoryInfo");
        LOAD(nvml_symbol, nv.memory2, "nvmlDeviceGetMemoryInfo_v2");
        LOAD(nvml_symbol, nv.list1, "nvmlDeviceGetComputeRunningProcesses");
        LOAD(nvml_symbol, nv.list2, "nvmlDeviceGetComputeRunningProcesses_v2");
        LOAD(nvml_symbol, nv.list3, "nvmlDeviceGetComputeRunningProcesses_v3");
        LOAD(nvml_symbol, nv.graphics3, "nvmlDeviceGetGraphicsRunningProcesses_v3");
        LOAD(nvml_symbol, nv.details, "nvmlDeviceGetRunningProcessDetailList");
        LOAD(nvml_symbol, nv.set_new, "nvmlEventSetCreate");
        LOAD(nvml_symbol, nv.register_events, "nvmlDeviceRegisterEvents");
        LOAD(nvml_symbol, nv.event_wait, "nvmlEventSetWait_v2");
        LOAD(nvml_symbol, nv.set_free, "nvmlEventSetFree");
        LOAD(nvml_symbol, nv.lock_clocks, "nvmlDeviceSetGpuLockedClocks");
        LOAD(nvml_symbol, nv.clock, "nvmlDeviceGetClockInfo");
        LOAD(nvml_symbol, nv.utilisation, "nvmlDeviceGetProcessUtilization");
        LOAD(nvml_symbol, nv.utilisations, "nvmlDeviceGetProcessesUtilizationInfo");
        LOAD(nvml_symbol, nv.fan, "nvmlDeviceGetFanSpeed");
        LOAD(nvml_symbol, nv.pci, "nvmlDeviceGetPciInfo_v3");
        LOAD(nvml_symbol, nv.uuid, "nvmlDeviceGetUUID");
}

static void fault(enum fault_kind kind, int64_t a, int64_t b, const char *symbol, int32_t device)
{
        struct card_fault f = { .kind = kind, .device = device, .a = a, .b = b };
        (void) snprintf(f.symbol, sizeof f.symbol, "%s", symbol);
        (void) fault_add(&card, &f);
}

static void unfault(void)
{
        (void) fault_clear(&card, FAULT_NONE);
}

static uint64_t used(void)
{
        nvmlMemory_t m = { 0 };
        return nv.memory(dev, &m) == NVML_OK ? m.total - m.free : UINT64_MAX;
}

/* The list in 24-byte rows: how many, or -1 */
static int list(nvmlProcessInfo_v2_t rows[ROWS])
{
        unsigned n = ROWS;
        memset(rows, 0, ROWS * sizeof *rows);
        return nv.list3(dev, &n, rows) == NVML_OK ? (int) n : -1;
}

static void basics(void)
{
        is((uint64_t) nv.memory(dev, &(nvmlMemory_t){ 0 }), NVML_UNINITIALIZED, "before nvmlInit: 1");
        is((uint64_t) nv.init(), NVML_OK, "nvmlInit_v2");
        is((uint64_t) nv.init(), NVML_OK, "twice");
        is((uint64_t) nv.by_index(0, &dev), NVML_OK, "a handle");
        is((uint64_t) nv.by_index(2, &dev), NVML_INVALID_ARGUMENT, "no third device");
        nvmlDevice_t same = NULL;
        is((uint64_t) nv.by_uuid(card.file->device[0].uuid, &same), NVML_OK, "by UUID");
        ok(same == dev, "the same handle");
        is((uint64_t) nv.by_bus("0000:66:00.0", &same), NVML_OK, "by bus id");
        ok(same && same != dev, "the other device");
        is((uint64_t) nv.by_bus("66:00", &same), NVML_OK, "by a short bus id");
        is((uint64_t) nv.shutdown(), NVML_OK, "one shutdown of two");
        is(used(), 0, "still initialised");
        nvmlPciInfo_t pci;
        is((uint64_t) nv.pci(dev, &pci), NVML_OK, "PCI info");
        ok(strcmp(pci.bus_id, "00000000:65:00.0") == 0, "with an eight-digit domain: %s", pci.bus_id);
        char small[10];
        is((uint64_t) nv.uuid(dev, small, sizeof small), NVML_INSUFFICIENT_SIZE, "a short buffer: 7");
        unsigned n = 0;
        is((uint64_t) nv.utilisation(dev, NULL, &n, 0), NVML_NOT_FOUND, "no samples: 6");
        is((uint64_t) nv.fan(dev, &n), NVML_NOT_SUPPORTED, "no fans: 3");
}

static void version_words(void)
{
        nvmlMemory_v2_t m;
        for (uint32_t word = 0; word < 4; word++) {
                static const uint32_t wrong[] = { 2, 0x01000028, 0x02000018, 0 };
                memset(&m, 0x5a, sizeof m);
                m.version = wrong[word];
                nvmlMemory_v2_t before = m;
                nvmlReturn_t rc = nv.memory2(dev, &m);
                ok(rc == NVML_ARGUMENT_VERSION_MISMATCH && memcmp(&m, &before, sizeof m) == 0,
                   "version word %#x: 25 and nothing written", (unsigned) wrong[word]);
        }
        m.version = 0x02000028;
        is((uint64_t) nv.memory2(dev, &m), NVML_OK, "0x02000028 is right");
        ok(m.total == 3072 * MIB && m.reserved + m.used + m.free == m.total, "total = reserved + used + free");
}

static void lists(void)
{
        struct hog a = hog_start("--alloc", "100M", NULL), b = hog_start("--alloc", "200M", NULL);
        uint8_t raw[32 * ROWS];
        unsigned n = 0;
        is((uint64_t) nv.list3(dev, &n, NULL), NVML_INSUFFICIENT_SIZE, "sizing call: 7");
        is(n, 2, "two processes");
        static const struct {
                const char *name;
                size_t stride;
        } layouts[] = { { "unsuffixed", 16 }, { "_v2", 24 }, { "_v3", 24 }, { "_v3 with stride32", 32 } };
        for (size_t l = 0; l < 4; l++) {
                nvmlReturn_t (*const calls[])(nvmlDevice_t, unsigned *, void *) = { nv.list1, nv.list2, nv.list3,
                                                                                    nv.list3 };
                if (l == 3)
                        fault(FAULT_STRIDE32, 0, 0, "", -1);
                memset(raw, 0xee, sizeof raw);
                n = ROWS;
                bool good = calls[l](dev, &n, raw) == NVML_OK && n == 2;
                uint32_t pid[2];
                uint64_t bytes[2];
                for (size_t i = 0; i < 2; i++) {
                        memcpy(&pid[i], raw + i * layouts[l].stride, sizeof pid[i]);
                        memcpy(&bytes[i], raw + i * layouts[l].stride + 8, sizeof bytes[i]);
                }
                good &= pid[0] == (uint32_t) a.pid && bytes[0] == 100 * MIB && pid[1] == (uint32_t) b.pid &&
                        bytes[1] == 200 * MIB;
                ok(good && raw[2 * layouts[l].stride] == 0xee, "%s: rows of %zu bytes, nothing behind them",
                   layouts[l].name, layouts[l].stride);
        }
        unfault();
        nvmlProcessDetail_v1_t rows[ROWS];
        nvmlProcessDetailList_t detail = { .version = 0x01000018, .mode = 0, .n = ROWS, .procs = rows };
        is((uint64_t) nv.details(dev, &detail), NVML_OK, "the detail list");
        ok(detail.n == 2 && rows[1].used == 200 * MIB && rows[1].gi == 0xffffffff, "has both");
        hog_kill(&a);
        hog_kill(&b);
        struct hog g = hog_start("--alloc", "10M", "--graphics", NULL);
        struct hog m = hog_start("--alloc", "300M", "--managed", NULL);
        n = ROWS;
        ok(nv.graphics3(dev, &n, raw) == NVML_OK && n == 1, "a graphics process is in the graphics list");
        nvmlProcessInfo_v2_t compute[ROWS];
        ok(list(compute) == 1 && compute[0].pid == (uint32_t) m.pid && compute[0].used == 0,
           "managed memory is not in the process's figure");
        is(used(), 310 * MIB, "but used");
        hog_kill(&g);
        hog_kill(&m);
}

static void memory_faults(void)
{
        nvmlProcessInfo_v2_t rows[ROWS];
        struct hog hog = hog_start("--alloc", "100M", NULL);
        fault(FAULT_UNKNOWN_MEMORY, 0, 0, "", -1);
        ok(list(rows) == 1 && rows[0].used == UINT64_MAX, "unknown-memory: all ones");
        unfault();
        fault(FAULT_NO_MEMORY_INFO, 0, 0, "", -1);
        is((uint64_t) nv.memory(dev, &(nvmlMemory_t){ 0 }), NVML_NOT_SUPPORTED, "no-memory-info: 3");
        unfault();
        fault(FAULT_GHOST, 4000000, 50 * MIB, "", -1);
        ok(list(rows) == 2 && rows[1].pid == 4000000 && rows[1].used == 50 * MIB && used() == 150 * MIB,
           "ghost: listed and used");
        unfault();
        fault(FAULT_RESIDUE, 70 * MIB, 0, "", -1);
        ok(list(rows) == 1 && used() == 170 * MIB, "residue: used, not listed");
        unfault();
        fault(FAULT_FOREIGN_PID, 0, 0, "", -1);
        ok(list(rows) == 1 && rows[0].pid == (uint32_t) hog.pid + 4194304, "foreign-pid: a number of no local process");
        unfault();
        fault(FAULT_FOREIGN_PID, 1, 0, "", -1);
        ok(list(rows) == 1 && rows[0].pid == 1, "foreign-pid 1: a local process that has nothing to do with it");
        unfault();
        fault(FAULT_TWO_LISTS, 0, 0, "", -1);
        unsigned n = ROWS;
        ok(list(rows) == 1 && nv.graphics3(dev, &n, rows) == NVML_OK && n == 1, "two-lists: in both");
        unfault();
        fault(FAULT_GROWING_LIST, 0, 0, "", -1);
        n = 1;
        bool grown = nv.list3(dev, &n, rows) == NVML_INSUFFICIENT_SIZE && n == 2;
        ok(grown && nv.list3(dev, &n, rows) == NVML_OK && n == 1,
           "growing-list: the exact buffer is too small, the next one fits");
        unfault();
        hog_kill(&hog);
}

/* A card without a past, and NVML on it. */
static void fresh_card(void)
{
        (void) nv.shutdown();
        card_begin("--gpus", "2", NULL);
        (void) nv.init();
        (void) nv.by_index(0, &dev);
}

static void delay(enum fault_kind kind, int64_t ms)
{
        unfault();
        fault(kind, ms, 0, "", -1);
}

/* Ten minutes stand for "later than this test", 1 ms for "by now": so nothing here depends on how fast the machine is. */
#define LONG_MS 600000

static void late_figures(void)
{
        nvmlProcessInfo_v2_t rows[ROWS];
        fresh_card();
        delay(FAULT_LAG_MEMORY, LONG_MS);
        struct hog hog = hog_start("--alloc", "100M", NULL);
        is(used(), 100 * MIB, "lag-memory: a rise shows at once");
        hog_kill(&hog);
        is(used_bytes(0), 0, "it is gone");
        is(used(), 100 * MIB, "lag-memory: and still shown");
        delay(FAULT_LAG_MEMORY, 1);
        ok(WAIT_FOR(used() == 0), "until the time is over");

        fresh_card();
        delay(FAULT_LIST_SKEW, LONG_MS);
        hog = hog_start("--alloc", "100M", NULL);
        uint64_t held_ns = card_now_ns();
        ok(used() == 100 * MIB && list(rows) == 0, "list-skew: used already, not listed yet");
        delay(FAULT_LIST_SKEW, 1);
        ok(WAIT_FOR(list(rows) == 1), "listed later");
        (void) WAIT_FOR(card_now_ns() - held_ns > 500000000);
        hog_kill(&hog);
        is(used(), 0, "killed");
        delay(FAULT_LIST_SKEW, (int64_t) ((card_now_ns() - held_ns) / 1000000));
        ok(used() == 0 && list(rows) == 1 && rows[0].used == 100 * MIB, "list-skew: free already, still listed");
        delay(FAULT_LIST_SKEW, 1);
        ok(WAIT_FOR(list(rows) == 0), "gone later");

        fresh_card();
        delay(FAULT_LIST_SKEW, -LONG_MS);
        hog = hog_start("--alloc", "100M", NULL);
        ok(used() == 0 && list(rows) == 1, "list-skew negative: listed, not used yet");
        delay(FAULT_LIST_SKEW, -1);
        ok(WAIT_FOR(used() == 100 * MIB), "used later");
        unfault();
        hog_kill(&hog);
}

static void error_faults(void)
{
        nvmlDevice_t other;
        fault(FAULT_NVML_ERROR, 4, 0, "nvmlDeviceGetHandleByIndex*", 1);
        ok(nv.by_index(0, &other) == NVML_OK && nv.by_index(1, &other) == NVML_NO_PERMISSION,
           "nvml-error 4 on one of two devices");
        unfault();
        struct card_fault f = { .kind = FAULT_NVML_ERROR,
                                .device = -1,
                                .a = 999,
                                .after = 1,
                                .times = 2,
                                .symbol = "nvmlDeviceGetMemoryInfo" };
        (void) fault_add(&card, &f);
        nvmlMemory_t m;
        bool exact = nv.memory(dev, &m) == 0 && nv.memory(dev, &m) == 999 && nv.memory(dev, &m) == 999 &&
                     nv.memory(dev, &m) == 0;
        ok(exact, "after 1, times 2: lets one pass, bites twice, is gone");
        fault(FAULT_MISSING_SYMBOL, 0, 0, "nvmlDeviceGetMemoryInfo_v2", -1);
        is((uint64_t) nv.memory2(dev, &(nvmlMemory_v2_t){ .version = 0x02000028 }), NVML_FUNCTION_NOT_FOUND,
           "missing-symbol: 13 at call time");
        unfault();
        fault(FAULT_LOST, 0, 0, "", 0);
        is((uint64_t) nv.memory(dev, &m), NVML_GPU_IS_LOST, "lost: 15");
        ok(nv.by_index(1, &other) == NVML_OK && nv.memory(other, &m) == NVML_OK, "the other device is fine");
        unfault();
        (void) nv.shutdown();
        fault(FAULT_NVML_ERROR, 18, 0, "nvmlInit*", -1);
        is((uint64_t) nv.init(), 18, "nvml-error 18 at init");
        unfault();
        is((uint64_t) nv.init(), NVML_OK, "and well again");
}

static void *hung_call(void *arg)
{
        nvmlMemory_t m;
        *(nvmlReturn_t *) arg = nv.memory(dev, &m);
        return NULL;
}

static void hang_and_crash(void)
{
        pthread_t thread;
        nvmlReturn_t rc = -1;
        fault(FAULT_NVML_HANG, 0, 0, "nvmlDeviceGetMemoryInfo", -1);
        (void) pthread_create(&thread, NULL, hung_call, &rc);
        for (int i = 0; i < 100; i++)
                nap();
        is((uint64_t) __atomic_load_n(&rc, __ATOMIC_RELAXED), (uint64_t) -1, "nvml-hang: the call does not come back");
        unfault();
        (void) pthread_join(thread, NULL);
        is((uint64_t) rc, NVML_OK, "until the fault is cleared");
        fault(FAULT_NVML_HANG, 30, 0, "nvmlDeviceGetMemoryInfo", -1);
        uint64_t since_ns = card_now_ns();
        (void) used();
        ok(card_now_ns() - since_ns >= 30000000, "nvml-hang 30: at least that long");
        unfault();
        (void) fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
                /* Quietly: a crash is expected here and nobody's sanitizer need report it. */
                (void) signal(SIGABRT, SIG_DFL);
                fault(FAULT_NVML_CRASH, 0, 0, "", -1);
                (void) used();
                _exit(0);
        }
        int status;
        (void) waitpid(pid, &status, 0);
        unfault();
        ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "nvml-crash: aborted");
}

static void events(void)
{
        nvmlEventSet_t set;
        nvmlEventData_t data;
        fault_post_event(&card, 0, 8, 79);
        ok(nv.set_new(&set) == NVML_OK && nv.register_events(dev, 8, set) == NVML_OK, "an event set");
        is((uint64_t) nv.event_wait(set, &data, 1), NVML_TIMEOUT, "what was before the registration is lost: 10");
        fault_post_event(&card, 1, 8, 48);
        const char *argv[] = { simgpu_program(), "fault", "xid", "43", NULL };
        (void) run(NULL, 0, argv);
        is((uint64_t) nv.event_wait(set, &data, 5000), NVML_OK, "an XID");
        ok(data.device == dev && data.type == 8 && data.data == 43, "is 43, on this device");
        is((uint64_t) nv.event_wait(set, &data, 1), NVML_TIMEOUT, "and one only");
        is((uint64_t) nv.set_free(set), NVML_OK, "freed");
}

/* A driver without persistence forgets its settings when the last client leaves. */
static void settings_and_unload(void)
{
        unsigned mhz = 0;
        card_begin("--persistence", "off", NULL);
        (void) nv.shutdown();
        bool set = nv.init() == NVML_OK && nv.by_index(0, &dev) == NVML_OK && nv.lock_clocks(dev, 900, 1200) == NVML_OK;
        ok(set && nv.clock(dev, 0, &mhz) == NVML_OK && mhz == 900, "a clock lock holds while a client is there");
        (void) nv.shutdown();
        ok(nv.init() == NVML_OK && nv.by_index(0, &dev) == NVML_OK && nv.clock(dev, 0, &mhz) == NVML_OK && mhz == 345,
           "and is gone after the last one left");
        struct hog hog = hog_start("--alloc", "1M", NULL);
        (void) nv.lock_clocks(dev, 900, 1200);
        (void) nv.shutdown();
        ok(nv.init() == NVML_OK && nv.clock(dev, 0, &mhz) == NVML_OK && mhz == 900,
           "a CUDA process keeps the driver loaded");
        hog_kill(&hog);
        is((uint64_t) nv.lock_clocks(dev, 1200, 900), NVML_INVALID_ARGUMENT, "a lock upside down: 2");
        (void) nv.shutdown();
}

static int work_of(pid_t pid, const char *percent)
{
        char text[16], out[64];
        snprintf(text, sizeof text, "%d", (int) pid);
        return run(out, sizeof out, (const char *const[]){ simgpu_program(), "work", text, percent, NULL });
}

/* Who does nothing has no sample; what was seen is not told again; both forms of the call say the same. */
static void work(void)
{
        fresh_card();
        struct hog idle = hog_start("--alloc", "64M", NULL), busy = hog_start("--alloc", "64M", "--count", NULL);
        nvmlProcessUtilization_t s[4];
        nvmlProcessUtilizationInfo_t info[4];
        unsigned n = 4;
        nvmlReturn_t rc;
        ok(WAIT_FOR((n = 4, nv.utilisation(dev, s, &n, 0) == NVML_OK)) && n == 1 && s[0].pid == (uint32_t) busy.pid &&
                   s[0].memory > 0,
           "copies show, of the one that made them");
        n = 0;
        ok(nv.utilisation(dev, NULL, &n, 0) == NVML_INSUFFICIENT_SIZE && n == 1, "without a buffer: how many");
        uint64_t seen_us = s[0].at_us;
        unsigned long count;
        ok(next_count(&busy, &count) && next_count(&busy, &count), "it goes on");
        n = 4;
        ok(nv.utilisation(dev, s, &n, seen_us) == NVML_OK && s[0].at_us > seen_us, "a younger one");
        hog_kill(&busy);
        n = 4;
        ok(nv.utilisation(dev, s, &n, 0) == NVML_NOT_FOUND && n == 0, "nobody works: 6");
        is((uint64_t) work_of(idle.pid, "70"), 0, "simgpu work");
        n = 4;
        ok(nv.utilisation(dev, s, &n, seen_us) == NVML_OK && n == 1 && s[0].pid == (uint32_t) idle.pid && s[0].sm == 70,
           "70 percent");
        nvmlProcessesUtilization_t all = { .version = VERSION_WORD(nvmlProcessesUtilization_t, 1),
                                           .n = 4,
                                           .procs = info };
        rc = nv.utilisations(dev, &all);
        ok(rc == NVML_OK && all.n == 1 && info[0].pid == (uint32_t) idle.pid && info[0].sm == 70, "the newer form");
        all.version = 1;
        is((uint64_t) nv.utilisations(dev, &all), NVML_ARGUMENT_VERSION_MISMATCH, "a bare 1 is no version");
        is((uint64_t) work_of(idle.pid, "0"), 0, "and it rests again");
        is((uint64_t) work_of(4000000, "10"), 1, "nobody has that pid");
        n = 4;
        ok(nv.utilisation(dev, s, &n, 0) == NVML_NOT_FOUND, "from then on 6");
        hog_kill(&idle);
}

static void old_drivers(void)
{
        card_begin("--abi", "old", NULL);
        ok(!nvml_symbol("nvmlDeviceGetComputeRunningProcesses_v3") && !nvml_symbol("nvmlDeviceGetMemoryInfo_v2"),
           "R450: no _v3, no v2 memory");
        ok(nvml_symbol("nvmlDeviceGetComputeRunningProcesses") && nvml_symbol("nvmlInit_v2"),
           "R450: what it had is there");
        ok(!cuda_symbol("cuCheckpointProcessLock") && !cuda_entry("cuCheckpointProcessLock", 11000),
           "R450: no checkpoints, by either way");
        ok(cuda_entry("cuMemAlloc", 3020) && cuda_symbol("cuMemAlloc_v2"), "R450: memory all the same");
        card_begin("--abi", "r535", NULL);
        load();
        struct hog a = hog_start("--alloc", "1M", NULL), b = hog_start("--alloc", "2M", NULL);
        uint8_t raw[32 * ROWS];
        unsigned n = ROWS;
        uint32_t pid;
        bool good =
                nv.init() == NVML_OK && nv.by_index(0, &dev) == NVML_OK && nv.list3(dev, &n, raw) == NVML_OK && n == 2;
        memcpy(&pid, raw + 32, sizeof pid);
        ok(good && pid == (uint32_t) b.pid, "R535: _v3 rows are 32 bytes");
        hog_kill(&a);
        hog_kill(&b);
        card_begin("--hide", "nvmlDeviceGetUUID,cuMemAllocManaged", NULL);
        ok(!nvml_symbol("nvmlDeviceGetUUID") && nvml_symbol("nvmlDeviceGetName"), "--hide: dlsym does not find it");
        ok(!cuda_symbol("cuMemAllocManaged") && !cuda_entry("cuMemAllocManaged", 13000),
           "--hide: nor does cuGetProcAddress");
}

static void unknown_names(void)
{
        int (*stub)(void);
        LOAD(nvml_symbol, stub, "nvmlVgpuTypeGetLicense");
        int saved = dup(2), fds[2];
        char said[512] = "";
        if (pipe(fds) == 0) {
                (void) dup2(fds[1], 2);
                int first = stub(), second = stub();
                (void) dup2(saved, 2);
                (void) close(fds[1]);
                ssize_t got = read(fds[0], said, sizeof said - 1);
                (void) close(fds[0]);
                ok(first == NVML_NOT_SUPPORTED && second == NVML_NOT_SUPPORTED && got > 0, "an unsimulated name: 3");
                char *name = strstr(said, "nvmlVgpuTypeGetLicense");
                ok(name && !strstr(name + 1, "nvmlVgpuTypeGetLicense"), "named once");
        }
        (void) close(saved);
}

int main(void)
{
        card_begin("--gpus", "2", NULL);
        load();
        basics();
        version_words();
        lists();
        memory_faults();
        late_figures();
        error_faults();
        hang_and_crash();
        events();
        settings_and_unload();
        work();
        old_drivers();
        unknown_names();
        return done();
}
