/* SPDX-License-Identifier: Apache-2.0 */
/* The symbol table of NVML, its old layouts, and what a reading makes of a library that lies: against functions of our own. */
#include "senses/nvml.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "senses/reading.h"

/* ---- the table ---- */

struct exports {
        const char *names[64]; /* what the pretended library has */
        size_t n;
};

static void *lookup(void *ctx, const char *name)
{
        struct exports *have = ctx;
        static char addresses[64];

        for (size_t i = 0; i < have->n; i++)
                if (strcmp(have->names[i], name) == 0)
                        return &addresses[i];
        return NULL;
}

#define MINIMUM                                                                                                        \
        "nvmlInit", "nvmlShutdown", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID",           \
                "nvmlDeviceGetMemoryInfo"

static void table_takes_the_newest_name_there_is(void **state)
{
        (void) state;
        struct exports both = { { "nvmlInit_v2", MINIMUM }, 7 };
        struct exports old = { { MINIMUM }, 6 };
        struct nvml_symbols sym, older;
        const char *missing = NULL;

        assert_int_equal(nvml_resolve(&sym, lookup, &both, &missing), 0);
        assert_int_equal(nvml_resolve(&older, lookup, &old, &missing), 0);
        assert_memory_equal(&sym.init, &(void *){ lookup(&both, "nvmlInit_v2") }, sizeof(void *));
        assert_memory_equal(&older.init, &(void *){ lookup(&old, "nvmlInit") }, sizeof(void *));
        assert_null(older.memory_v2);
        assert_null(older.list[NVML_LIST_COMPUTE][NVML_LIST_V3]);
}

static void table_without_a_required_symbol_names_it(void **state)
{
        (void) state;
        struct exports have = { { MINIMUM }, 5 }; /* without the last one */
        struct nvml_symbols sym;
        const char *missing = NULL;

        assert_int_equal(nvml_resolve(&sym, lookup, &have, &missing), -ENOSYS);
        assert_string_equal(missing, "nvmlDeviceGetMemoryInfo");
}

static void table_never_gives_a_new_layout_to_an_unsuffixed_name(void **state)
{
        (void) state;
        struct exports have = { { MINIMUM, "nvmlDeviceGetComputeRunningProcesses" }, 7 };
        struct nvml_symbols sym;
        const char *missing = NULL;

        assert_int_equal(nvml_resolve(&sym, lookup, &have, &missing), 0);
        assert_non_null(sym.list[NVML_LIST_COMPUTE][NVML_LIST_V1]);
        assert_null(sym.list[NVML_LIST_COMPUTE][NVML_LIST_V2]);
        assert_null(sym.list[NVML_LIST_COMPUTE][NVML_LIST_V3]);
}

static void driver_without_a_library_says_so(void **state)
{
        (void) state;
        struct nvml nv = { .library_name = "/nonexistent/libnvidia-ml.so.1" };
        struct gpu_driver driver;

        nvml_ops.start(&nv, &driver);
        assert_int_equal(driver.state, EYES_DRIVER_NO_LIBRARY);
        assert_non_null(strstr(driver.words, "cannot be opened"));
        nvml_ops.stop(&nv);
}

static void driver_that_is_no_nvml_names_what_it_lacks(void **state)
{
        (void) state;
        struct nvml nv = { .library_name = "libc.so.6" };
        struct gpu_driver driver;

        nvml_ops.start(&nv, &driver);
        assert_int_equal(driver.state, EYES_DRIVER_OLD_LIBRARY);
        assert_non_null(strstr(driver.words, "nvmlInit_v2"));
        nvml_ops.stop(&nv);
}

/* ---- a library of our own ---- */

struct entry {
        uint32_t pid;
        uint64_t used;
};

static struct {
        int init_rc, n_inits, n_shutdowns;
        const char *version;
        int memory_v2_rc, memory_rc;
        uint32_t memory_version_seen;
        uint64_t total, free;
        uint64_t free_step; /* taken off at each reading: a card that never holds still */
        int n_memory_reads;
        struct entry lists[NVML_LIST_N][64];
        unsigned n[NVML_LIST_N];
        unsigned grow; /* entries that appear after a call that said how many there are */
        int list_rc[NVML_LIST_VERSION_N];
        size_t stride[NVML_LIST_VERSION_N]; /* what each version really writes */
        int list_calls[NVML_LIST_VERSION_N];
        int index_rc[4];
        bool mig;
} lib;

static int fake_init(void)
{
        lib.n_inits++;
        return lib.init_rc;
}

static int fake_shutdown(void)
{
        lib.n_shutdowns++;
        return NVML_SUCCESS;
}

static int fake_version(char *buf, unsigned size)
{
        (void) snprintf(buf, size, "%s", lib.version);
        return NVML_SUCCESS;
}

static int fake_count(unsigned *count)
{
        *count = 3;
        return NVML_SUCCESS;
}

static char handles[8]; /* 0…2 cards, 4 and 5 instances */

static int fake_by_index(unsigned i, nvml_handle *handle)
{
        *handle = &handles[i];
        return lib.index_rc[i];
}

static int fake_uuid(nvml_handle handle, char *buf, unsigned size)
{
        size_t i = (size_t) ((char *) handle - handles);
        (void) snprintf(buf, size, "%s-%zu", i < 4 ? "GPU" : "MIG", i);
        return NVML_SUCCESS;
}

static int fake_pci(nvml_handle handle, struct nvml_pci_info *pci)
{
        *pci = (struct nvml_pci_info){ .bus_id_legacy = "0000:65:00.0",
                                       .bus = 0xC5 + (uint32_t) ((char *) handle - handles) };
        return NVML_SUCCESS;
}

static int fake_memory_v1(nvml_handle handle, struct nvml_memory_v1 *mem)
{
        (void) handle;
        lib.n_memory_reads++;
        lib.free -= lib.free_step;
        *mem = (struct nvml_memory_v1){ .total = lib.total, .free = lib.free, .used = 12345 };
        return lib.memory_rc;
}

static int fake_memory_v2(nvml_handle handle, struct nvml_memory_v2 *mem)
{
        (void) handle;
        lib.memory_version_seen = mem->version;
        if (lib.memory_v2_rc != NVML_SUCCESS)
                return lib.memory_v2_rc;
        lib.n_memory_reads++;
        lib.free -= lib.free_step;
        mem->total = lib.total;
        mem->reserved = 500;
        mem->free = lib.free;
        mem->used = 12345;
        return lib.memory_rc;
}

static int fake_list(int which, int version, unsigned *count, void *buf)
{
        lib.list_calls[version]++;
        if (lib.list_rc[version] != NVML_SUCCESS)
                return lib.list_rc[version];
        unsigned n = lib.n[which];
        if (*count < n) {
                *count = n;
                lib.n[which] += lib.grow;
                return NVML_INSUFFICIENT_SIZE;
        }
        for (unsigned i = 0; i < n; i++) {
                unsigned char raw[32] = { 0 };
                const uint32_t none = UINT32_MAX;

                memcpy(raw, &lib.lists[which][i].pid, 4);
                memcpy(raw + 8, &lib.lists[which][i].used, 8);
                memcpy(raw + 16, &none, 4);
                memcpy(raw + 20, &none, 4);
                memcpy((char *) buf + i * lib.stride[version], raw, lib.stride[version]);
        }
        *count = n;
        return NVML_SUCCESS;
}

#define FAKE_LIST(name, which, version)                                                                                \
        static int name(nvml_handle handle, unsigned *count, void *buf)                                                \
        {                                                                                                              \
                (void) handle;                                                                                         \
                return fake_list(which, version, count, buf);                                                          \
        }
FAKE_LIST(compute_v3, NVML_LIST_COMPUTE, NVML_LIST_V3)
FAKE_LIST(compute_v2, NVML_LIST_COMPUTE, NVML_LIST_V2)
FAKE_LIST(compute_v1, NVML_LIST_COMPUTE, NVML_LIST_V1)
FAKE_LIST(graphics_v3, NVML_LIST_GRAPHICS, NVML_LIST_V3)
FAKE_LIST(graphics_v2, NVML_LIST_GRAPHICS, NVML_LIST_V2)
FAKE_LIST(graphics_v1, NVML_LIST_GRAPHICS, NVML_LIST_V1)

static int fake_mig_mode(nvml_handle handle, unsigned *current, unsigned *pending)
{
        *current = *pending = lib.mig && handle == &handles[0];
        return NVML_SUCCESS;
}

static int fake_mig_max(nvml_handle handle, unsigned *max)
{
        (void) handle;
        *max = 7;
        return NVML_SUCCESS;
}

static int fake_mig_by_index(nvml_handle parent, unsigned i, nvml_handle *handle)
{
        (void) parent;
        if (i != 1 && i != 4) /* holes */
                return NVML_NOT_FOUND;
        *handle = &handles[i == 1 ? 4 : 5];
        return NVML_SUCCESS;
}

static struct nvml nv;
static struct eyes_device devices[EYES_DEVICES_MAX];
static uint32_t n_devices, n_hidden;
static struct eyes_reading reading;
static char why[EYES_ALARM_SIZE];

/* A healthy card of 24000 bytes with 21000 free, newest functions, two compute processes. */
static int healthy(void **state)
{
        (void) state;
        memset(&lib, 0, sizeof(lib));
        lib.version = "595.45";
        lib.total = 24000;
        lib.free = 21000;
        lib.stride[NVML_LIST_V3] = lib.stride[NVML_LIST_V2] = 24;
        lib.stride[NVML_LIST_V1] = 16;
        lib.lists[NVML_LIST_COMPUTE][0] = (struct entry){ 200, 1000 };
        lib.lists[NVML_LIST_COMPUTE][1] = (struct entry){ 100, 2000 };
        lib.n[NVML_LIST_COMPUTE] = 2;
        memset(&nv, 0, sizeof(nv));
        nv.symbols_given = true;
        nv.sym = (struct nvml_symbols){
                .init = fake_init,
                .shutdown = fake_shutdown,
                .driver_version = fake_version,
                .device_count = fake_count,
                .device_by_index = fake_by_index,
                .uuid = fake_uuid,
                .pci_info = fake_pci,
                .memory_v2 = fake_memory_v2,
                .memory_v1 = fake_memory_v1,
                .list = { { compute_v3, compute_v2, compute_v1 }, { graphics_v3, graphics_v2, graphics_v1 } },
                .mig_mode = fake_mig_mode,
                .mig_max_count = fake_mig_max,
                .mig_by_index = fake_mig_by_index,
        };
        return 0;
}

static int stop(void **state)
{
        (void) state;
        nvml_ops.stop(&nv);
        return 0;
}

static void start(void)
{
        struct gpu_driver driver;

        nvml_ops.start(&nv, &driver);
        assert_int_equal(driver.state, EYES_DRIVER_OK);
        assert_int_equal(nvml_ops.enumerate(&nv, devices, &n_devices, &n_hidden).error, EYES_ERROR_NONE);
}

static void look(void)
{
        start();
        reading_take(&nvml_ops, &nv, "GPU-0", &reading, why);
}

static void assert_rejected(void)
{
        assert_false(reading.per_process_valid);
        assert_int_equal(reading.list_error, EYES_ERROR_REJECTED);
        assert_int_equal(reading.n_rows, 0);
        assert_false(reading.settled);
        assert_true(why[0] != '\0');
        assert_true(reading.memory_valid); /* the figure of the device stands */
        assert_int_equal(reading.used_bytes, 3000);
}

static void reading_of_a_healthy_card_is_complete(void **state)
{
        (void) state;
        look();
        assert_true(reading.memory_valid && reading.per_process_valid && reading.settled);
        assert_int_equal(reading.total_bytes, 24000);
        assert_int_equal(reading.used_bytes, 3000); /* total - free, whatever the driver calls used */
        assert_int_equal(lib.memory_version_seen, 0x02000028);
        assert_int_equal(reading.n_rows, 2);
        assert_int_equal(reading.rows[0].pid, 100); /* ascending */
        assert_int_equal(reading.rows[0].used_bytes, 2000);
        assert_int_equal(reading.rows[0].flags, EYES_ROW_USED_KNOWN | EYES_ROW_COMPUTE);
        assert_true(reading.rows_taken_ms > 0 && reading.rows_taken_ms <= reading.taken_ms);
        assert_int_equal(lib.list_calls[NVML_LIST_V2], 0);
}

static void memory_falls_back_when_the_new_call_cannot_be_served(void **state)
{
        (void) state;
        static const int rcs[] = { NVML_FUNCTION_NOT_FOUND, NVML_ARGUMENT_VERSION_MISMATCH, NVML_NOT_SUPPORTED };

        for (size_t i = 0; i < sizeof(rcs) / sizeof(*rcs); i++) {
                lib.memory_v2_rc = rcs[i];
                look();
                assert_true(reading.memory_valid);
                assert_int_equal(reading.used_bytes, 3000);
        }
        nv.sym.memory_v2 = NULL;
        look();
        assert_int_equal(reading.used_bytes, 3000);
}

static void memory_that_is_not_supported_stays_unknown(void **state)
{
        (void) state;
        lib.memory_v2_rc = NVML_NOT_SUPPORTED;
        lib.memory_rc = NVML_NOT_SUPPORTED;
        look();
        assert_false(reading.memory_valid);
        assert_int_equal(reading.memory_error, EYES_ERROR_NOT_SUPPORTED);
        assert_int_equal(reading.used_bytes, 0);
        assert_false(reading.settled);
        assert_int_equal(reading.n_rows, 2); /* who is there is still known */
}

static void memory_with_more_free_than_total_is_rejected(void **state)
{
        (void) state;
        lib.free = 24001;
        look();
        assert_false(reading.memory_valid);
        assert_int_equal(reading.memory_error, EYES_ERROR_REJECTED);
        assert_non_null(strstr(why, "24001"));
}

static void reading_with_unknown_process_memory_stays_unknown(void **state)
{
        (void) state;
        lib.lists[NVML_LIST_COMPUTE][1].used = UINT64_MAX;
        look();
        assert_true(reading.per_process_valid && reading.settled);
        assert_int_equal(reading.rows[0].flags, EYES_ROW_COMPUTE);
        assert_int_equal(reading.rows[0].used_bytes, 0);
        assert_int_equal(reading.rows[1].flags, EYES_ROW_COMPUTE | EYES_ROW_USED_KNOWN);
        assert_int_equal(reading.used_bytes, 3000);
}

static void pid_in_two_lists_is_one_row_with_the_larger_figure(void **state)
{
        (void) state;
        lib.lists[NVML_LIST_GRAPHICS][0] = (struct entry){ 100, 2500 };
        lib.lists[NVML_LIST_GRAPHICS][1] = (struct entry){ 300, UINT64_MAX };
        lib.n[NVML_LIST_GRAPHICS] = 2;
        look();
        assert_int_equal(reading.n_rows, 3);
        assert_int_equal(reading.rows[0].used_bytes, 2500);
        assert_int_equal(reading.rows[0].flags, EYES_ROW_USED_KNOWN | EYES_ROW_COMPUTE | EYES_ROW_GRAPHICS);
        assert_int_equal(reading.rows[2].flags, EYES_ROW_GRAPHICS);
}

static void list_that_grows_between_two_calls_is_read_whole(void **state)
{
        (void) state;
        for (unsigned i = 0; i < 64; i++)
                lib.lists[NVML_LIST_COMPUTE][i] = (struct entry){ 1000 + i, i };
        lib.n[NVML_LIST_COMPUTE] = 20; /* more than the first buffer has room for */
        lib.grow = 17;                 /* and more than that call said */
        look();
        assert_true(reading.per_process_valid);
        assert_true(reading.n_rows >= 37);
        assert_int_equal(reading.rows[36].pid, 1036);
}

static void list_of_an_old_library_has_sixteen_byte_entries(void **state)
{
        (void) state;
        nv.sym.list[NVML_LIST_COMPUTE][NVML_LIST_V3] = NULL;
        nv.sym.list[NVML_LIST_COMPUTE][NVML_LIST_V2] = NULL;
        look();
        assert_int_equal(reading.n_rows, 2);
        assert_int_equal(reading.rows[1].used_bytes, 1000);
        assert_int_equal(lib.list_calls[NVML_LIST_V1] > 0, true);
}

static void list_falls_back_when_the_new_call_cannot_be_served(void **state)
{
        (void) state;
        lib.list_rc[NVML_LIST_V3] = NVML_FUNCTION_NOT_FOUND;
        look();
        assert_int_equal(reading.n_rows, 2);
        lib.list_rc[NVML_LIST_V2] = NVML_ARGUMENT_VERSION_MISMATCH;
        look();
        assert_int_equal(reading.n_rows, 2);
        lib.list_rc[NVML_LIST_V1] = NVML_FUNCTION_NOT_FOUND;
        look();
        assert_false(reading.per_process_valid);
        assert_int_equal(reading.list_error, EYES_ERROR_NO_SYMBOL);
}

static void list_of_driver_535_comes_from_the_second_version(void **state)
{
        (void) state;
        lib.version = "535.86.05";
        lib.stride[NVML_LIST_V3] = 32;
        look();
        assert_true(reading.per_process_valid);
        assert_int_equal(reading.n_rows, 2);
        assert_int_equal(lib.list_calls[NVML_LIST_V3], 0);
}

static void list_written_with_another_stride_is_rejected(void **state)
{
        (void) state;
        static const size_t strides[] = { 16, 32 };

        for (size_t i = 0; i < 2; i++) {
                lib.stride[NVML_LIST_V3] = strides[i];
                look();
                assert_rejected();
        }
        lib.n[NVML_LIST_COMPUTE] = 1; /* one short entry leaves its instance ids unwritten */
        lib.stride[NVML_LIST_V3] = 16;
        look();
        assert_rejected();
}

static void list_with_entries_that_cannot_be_is_rejected(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                struct entry entry;
        } rows[] = {
                { "pid 0", { 0, 1 } },
                { "negative pid", { (uint32_t) INT32_MIN, 1 } },
                { "pid -1", { UINT32_MAX, 1 } },
                { "twice in one list", { 200, 1 } },
                { "more than the card has", { 300, 24001 } },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                lib.lists[NVML_LIST_COMPUTE][1] = rows[i].entry;
                look();
                assert_rejected();
        }
}

static void reading_of_a_card_that_never_holds_still_is_not_settled(void **state)
{
        (void) state;
        lib.free_step = 10;
        start();
        lib.n_memory_reads = 0;
        reading_take(&nvml_ops, &nv, "GPU-0", &reading, why);
        assert_true(reading.memory_valid && reading.per_process_valid);
        assert_false(reading.settled);
        assert_int_equal(lib.n_memory_reads, READING_RETRIES + 2);
        assert_int_equal(reading.used_bytes, 3000 + 10 * (READING_RETRIES + 2)); /* the last total */
}

static void card_that_is_lost_is_told_apart(void **state)
{
        (void) state;
        lib.memory_v2_rc = NVML_GPU_IS_LOST;
        look();
        assert_false(reading.memory_valid);
        assert_int_equal(reading.memory_error, EYES_ERROR_LOST);
        assert_int_equal(reading.memory_rc, NVML_GPU_IS_LOST);
}

static void card_that_may_not_be_opened_does_not_hide_the_others(void **state)
{
        (void) state;
        lib.index_rc[1] = NVML_NO_PERMISSION;
        start();
        assert_int_equal(n_devices, 2);
        assert_int_equal(n_hidden, 1);
        assert_string_equal(devices[1].uuid, "GPU-2");
        assert_string_equal(devices[1].bus_id, "0000:c7:00.0"); /* as sysfs writes it */
        assert_false(devices[1].minor_known);
}

static void card_split_into_instances_is_their_parent_only(void **state)
{
        (void) state;
        lib.mig = true;
        start();
        assert_int_equal(n_devices, 5);
        assert_int_equal(devices[0].state, EYES_DEVICE_MIG_PARENT);
        assert_string_equal(devices[1].uuid, "MIG-4");
        assert_true(devices[1].mig);
        assert_string_equal(devices[1].parent_uuid, "GPU-0");
        assert_string_equal(devices[2].uuid, "MIG-5");
        assert_false(devices[3].mig);
}

static void driver_that_was_upgraded_under_the_module_is_a_mismatch(void **state)
{
        (void) state;
        struct gpu_driver driver;

        lib.init_rc = NVML_LIB_RM_VERSION_MISMATCH;
        nvml_ops.start(&nv, &driver);
        assert_int_equal(driver.state, EYES_DRIVER_MISMATCH);
        assert_int_equal(driver.rc, 18);
        assert_non_null(strstr(driver.words, "reboot"));
        lib.init_rc = NVML_DRIVER_NOT_LOADED;
        nvml_ops.start(&nv, &driver);
        assert_int_equal(driver.state, EYES_DRIVER_NOT_LOADED);
        assert_int_equal(lib.n_shutdowns, 0); /* what did not start is not stopped */
}

static void driver_started_again_is_stopped_first(void **state)
{
        (void) state;
        start();
        start();
        assert_int_equal(lib.n_inits, 2);
        assert_int_equal(lib.n_shutdowns, 1);
}

#define lib_test(f) cmocka_unit_test_setup_teardown(f, healthy, stop)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(table_takes_the_newest_name_there_is),
                cmocka_unit_test(table_without_a_required_symbol_names_it),
                cmocka_unit_test(table_never_gives_a_new_layout_to_an_unsuffixed_name),
                cmocka_unit_test(driver_without_a_library_says_so),
                cmocka_unit_test(driver_that_is_no_nvml_names_what_it_lacks),
                lib_test(reading_of_a_healthy_card_is_complete),
                lib_test(memory_falls_back_when_the_new_call_cannot_be_served),
                lib_test(memory_that_is_not_supported_stays_unknown),
                lib_test(memory_with_more_free_than_total_is_rejected),
                lib_test(reading_with_unknown_process_memory_stays_unknown),
                lib_test(pid_in_two_lists_is_one_row_with_the_larger_figure),
                lib_test(list_that_grows_between_two_calls_is_read_whole),
                lib_test(list_of_an_old_library_has_sixteen_byte_entries),
                lib_test(list_falls_back_when_the_new_call_cannot_be_served),
                lib_test(list_of_driver_535_comes_from_the_second_version),
                lib_test(list_written_with_another_stride_is_rejected),
                lib_test(list_with_entries_that_cannot_be_is_rejected),
                lib_test(reading_of_a_card_that_never_holds_still_is_not_settled),
                lib_test(card_that_is_lost_is_told_apart),
                lib_test(card_that_may_not_be_opened_does_not_hide_the_others),
                lib_test(card_split_into_instances_is_their_parent_only),
                lib_test(driver_that_was_upgraded_under_the_module_is_a_mismatch),
                lib_test(driver_started_again_is_stopped_first),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
