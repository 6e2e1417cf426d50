/* SPDX-License-Identifier: Apache-2.0 */
/* What NVML says of the work of processes, in both of its forms, by functions of our own that answer as drivers do. */
#include <string.h>
#include "cm.h"
#include "senses/nvml.h"

static struct {
        int rc_v2, rc_v1; /* what the two forms answer; 0 = as @n says */
        unsigned n;
        struct nvml_sample_v2 samples[4000];
        unsigned n_calls, cap;
        uint64_t since_us;
} driver;

static int answer(unsigned cap, unsigned *n)
{
        driver.n_calls++;
        driver.cap = cap;
        *n = driver.n;
        if (driver.n == 0)
                return NVML_NOT_FOUND;
        return driver.n > cap ? NVML_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static int samples_v2(nvml_handle handle, struct nvml_samples *s)
{
        unsigned cap = s->n;

        (void) handle;
        if (driver.rc_v2 != 0)
                return driver.rc_v2;
        if (s->version != NVML_SAMPLES_VERSION)
                return NVML_ARGUMENT_VERSION_MISMATCH;
        driver.since_us = s->since_us;
        int rc = answer(cap, &s->n);
        if (rc == NVML_SUCCESS)
                memcpy(s->entries, driver.samples, driver.n * sizeof(driver.samples[0]));
        return rc;
}

static int samples_v1(nvml_handle handle, void *entries, unsigned *n, uint64_t since_us)
{
        struct nvml_sample_v1 *to = entries;
        unsigned cap = *n;

        (void) handle;
        if (driver.rc_v1 != 0)
                return driver.rc_v1;
        driver.since_us = since_us;
        int rc = answer(cap, n);
        for (unsigned i = 0; rc == NVML_SUCCESS && i < driver.n; i++)
                to[i] = (struct nvml_sample_v1){ .pid = driver.samples[i].pid,
                                                 .at_us = driver.samples[i].at_us,
                                                 .sm = driver.samples[i].sm,
                                                 .memory = driver.samples[i].memory,
                                                 .encoder = driver.samples[i].encoder,
                                                 .decoder = driver.samples[i].decoder };
        return rc;
}

static void has(unsigned i, uint32_t pid, uint64_t at_us, uint32_t sm)
{
        driver.samples[i] = (struct nvml_sample_v2){ .pid = pid, .at_us = at_us, .sm = sm };
        driver.n = i + 1;
}

static struct nvml nv;

static int set_up(void **state)
{
        (void) state;
        memset(&driver, 0, sizeof(driver));
        memset(&nv, 0, sizeof(nv));
        nv.sym.samples_v2 = samples_v2;
        nv.sym.samples_v1 = samples_v1;
        nv.n_devices = 1;
        strcpy(nv.devices[0].uuid, "GPU-0");
        return 0;
}

static int tear_down(void **state)
{
        (void) state;
        nvml_ops.stop(&nv);
        return 0;
}

static struct gpu_work work;

static enum eyes_error read_since(uint64_t since_us)
{
        memset(&work, 0, sizeof(work));
        work.since_us = since_us;
        return nvml_read_work(&nv, "GPU-0", &work).error;
}

static void samples_name_who_worked_in_both_forms(void **state)
{
        (void) state;
        for (int form = 0; form < 2; form++) {
                (void) tear_down(NULL);
                (void) set_up(NULL);
                driver.rc_v2 = form == 0 ? 0 : NVML_FUNCTION_NOT_FOUND;
                has(0, 70, 1000, 5);
                has(1, 71, 1500, 0); /* of one that did nothing */
                has(2, 70, 2000, 1);
                has(3, 72, 1700, 0);
                driver.samples[3].memory = 3; /* copies only */
                assert_int_equal(read_since(500), EYES_ERROR_NONE);
                assert_int_equal(driver.since_us, 500);
                assert_true(work.any);
                assert_int_equal(work.n, 2);
                assert_int_equal(work.pids[0], 70);
                assert_int_equal(work.pids[1], 72);
                assert_int_equal(work.since_us, 2000);
        }
}

static void no_sample_is_no_error(void **state)
{
        (void) state;
        assert_int_equal(read_since(700), EYES_ERROR_NONE);
        assert_false(work.any);
        assert_int_equal(work.n, 0);
        assert_int_equal(work.since_us, 700);
}

/* Some fill their answer up with zeros, or tell again what they told before. */
static void padding_and_old_samples_are_not_work(void **state)
{
        (void) state;
        has(0, 0, 0, 0);
        has(1, 70, 500, 90);
        has(2, 0, 3000, 50);
        assert_int_equal(read_since(500), EYES_ERROR_NONE);
        assert_false(work.any);
        assert_int_equal(work.n, 0);
}

static void what_is_not_there_or_not_allowed_is_an_error(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                int rc_v2, rc_v1;
                enum eyes_error error;
        } rows[] = {
                { "MIG", NVML_NOT_SUPPORTED, NVML_NOT_SUPPORTED, EYES_ERROR_NOT_SUPPORTED },
                { "neither symbol works", NVML_FUNCTION_NOT_FOUND, NVML_FUNCTION_NOT_FOUND, EYES_ERROR_NO_SYMBOL },
                { "not permitted", NVML_NO_PERMISSION, 0, EYES_ERROR_NO_PERMISSION },
                { "lost", NVML_GPU_IS_LOST, 0, EYES_ERROR_LOST },
                { "another version of the struct, and the old form works", NVML_ARGUMENT_VERSION_MISMATCH, 0,
                  EYES_ERROR_NONE },
        };

        has(0, 70, 1000, 5);
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                driver.rc_v2 = rows[i].rc_v2;
                driver.rc_v1 = rows[i].rc_v1;
                assert_int_equal(read_since(0), rows[i].error);
                assert_int_equal(work.n, rows[i].error == EYES_ERROR_NONE ? 1 : 0);
        }
        nv.sym.samples_v1 = NULL;
        nv.sym.samples_v2 = NULL;
        assert_int_equal(read_since(0), EYES_ERROR_NO_SYMBOL);
        assert_int_not_equal(nvml_read_work(&nv, "GPU-nobody", &work).error, EYES_ERROR_NONE);
}

static void many_samples_find_room(void **state)
{
        (void) state;
        for (unsigned i = 0; i < 3000; i++)
                has(i, 100 + i % 500, 1000 + i, 7);
        assert_int_equal(read_since(0), EYES_ERROR_NONE);
        assert_true(driver.n_calls > 1);
        assert_int_equal(work.n, 500);
}

static void more_processes_than_a_reading_has_rows_are_rejected(void **state)
{
        (void) state;
        for (unsigned i = 0; i < EYES_ROWS_MAX + 1; i++)
                has(i, 100 + i, 1000 + i, 7);
        assert_int_equal(read_since(0), EYES_ERROR_REJECTED);
}

static void driver_that_says_more_than_there_was_room_for_is_not_believed(void **state)
{
        (void) state;
        driver.rc_v2 = NVML_INSUFFICIENT_SIZE; /* for ever */
        driver.rc_v1 = NVML_INSUFFICIENT_SIZE;
        assert_int_not_equal(read_since(0), EYES_ERROR_NONE);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(samples_name_who_worked_in_both_forms, set_up, tear_down),
                cmocka_unit_test_setup_teardown(no_sample_is_no_error, set_up, tear_down),
                cmocka_unit_test_setup_teardown(padding_and_old_samples_are_not_work, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_is_not_there_or_not_allowed_is_an_error, set_up, tear_down),
                cmocka_unit_test_setup_teardown(many_samples_find_room, set_up, tear_down),
                cmocka_unit_test_setup_teardown(more_processes_than_a_reading_has_rows_are_rejected, set_up, tear_down),
                cmocka_unit_test_setup_teardown(driver_that_says_more_than_there_was_room_for_is_not_believed, set_up,
                                                tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
