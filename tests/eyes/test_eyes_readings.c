/* SPDX-License-Identifier: Apache-2.0 */
/* What the real lessor-eyes say of a simulated card that tells the truth, and of one that lies. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "harness.h"

#define MIB (UINT64_C(1) << 20)
#define NOBODY (EYES_ROW_GHOST | EYES_ROW_FOREIGN)

static struct card card;
static struct brain brain;
#define READING(i) (&brain.devices[i].reading)
#define STATE(i) (brain.devices[i].device.state)

static void begin(const char *options)
{
        card_create(&card, options);
        brain_start(&brain, &card);
        UNTIL(&brain, brain.has_hello);
        assert_int_equal(brain.hello.driver_state, EYES_DRIVER_OK);
}

static void end(void)
{
        assert_false(brain.closed);
        int status = brain_stop(&brain);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0); /* closing the socket is goodbye */
        card_destroy(&card);
}

static bool shows(int device, pid_t pid, uint64_t bytes)
{
        const struct eyes_reading *r = READING(device);
        const struct eyes_row *row = find_row(r, pid);

        return r->settled && row && (row->flags & EYES_ROW_USED_KNOWN) && row->used_bytes == bytes;
}

static void eyes_tell_the_driver_the_devices_and_what_is_used(void **state)
{
        (void) state;
        begin("--gpus 2 --memory 64M --name 'Card for a test'");
        assert_int_equal(brain.hello.n_devices, 2);
        assert_int_equal(brain.hello.n_hidden, 0);
        assert_true(brain.hello.driver_version[0] != '\0');
        assert_int_equal(strlen(brain.hello.boot_id), 36);
        assert_int_equal(brain.n_devices, 2);
        const struct eyes_device *dev = &brain.devices[0].device;
        assert_true(strncmp(dev->uuid, "GPU-", 4) == 0);
        assert_string_equal(dev->name, "Card for a test");
        assert_string_equal(dev->bus_id, "0000:65:00.0");
        assert_true(dev->minor_known);
        assert_true(dev->total_known);
        assert_int_equal(dev->total_bytes, 64 * MIB);
        assert_int_equal(dev->state, EYES_DEVICE_USABLE);
        UNTIL(&brain, READING(0)->settled && READING(1)->settled);
        assert_int_equal(READING(0)->total_bytes, 64 * MIB);
        assert_int_equal(READING(0)->used_bytes, 0);
        assert_int_equal(READING(0)->n_rows, 0);
        end();
}

static void holder_is_listed_with_who_it_is_and_its_end_is_seen(void **state)
{
        (void) state;
        begin("--memory 64M");
        pid_t pid = card_hog(&card, "20M", "");
        UNTIL(&brain, shows(0, pid, 20 * MIB));
        assert_int_equal(READING(0)->used_bytes, 20 * MIB);
        struct process_seen *p = find_process(&brain, pid);
        assert_non_null(p);
        assert_string_equal(p->process.comm, "simgpu");
        assert_int_equal(p->process.ppid, getpid());
        assert_true(p->process.uid_known);
        assert_int_equal(p->process.uid, getuid());
        assert_true(p->process.n_cmdline > 0);
        assert_int_equal(p->process.ancestors[0].pid, getpid());

        assert_int_equal(syscall(SYS_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0), 0); /* the pidfd is that process */
        (void) waitpid(pid, NULL, 0);
        UNTIL(&brain, p->exited && READING(0)->settled && !find_row(READING(0), pid));
        assert_int_equal(READING(0)->used_bytes, 0);
        end();
}

static void F17_reading_with_unknown_process_memory_stays_unknown(void **state)
{
        (void) state;
        begin("--memory 64M");
        pid_t pid = card_hog(&card, "20M", "");
        card_fault(&card, "unknown-memory");
        UNTIL(&brain, find_row(READING(0), pid));
        const struct eyes_row *row = find_row(READING(0), pid);
        assert_int_equal(row->flags, EYES_ROW_COMPUTE);
        assert_int_equal(row->used_bytes, 0);
        assert_true(READING(0)->per_process_valid);
        assert_int_equal(READING(0)->used_bytes, 20 * MIB); /* the device's figure is untouched */
        card_clear(&card);
        UNTIL(&brain, shows(0, pid, 20 * MIB));
        end();
}

static void F18_device_without_a_memory_figure_is_unusable_and_the_other_is_fine(void **state)
{
        (void) state;
        begin("--gpus 2 --memory 64M");
        card_fault(&card, "no-memory-info --device 0");
        UNTIL(&brain, STATE(0) == EYES_DEVICE_NO_MEMORY_READING);
        assert_false(READING(0)->memory_valid);
        assert_int_equal(READING(0)->memory_error, EYES_ERROR_NOT_SUPPORTED);
        assert_int_equal(READING(0)->used_bytes, 0);
        assert_true(READING(1)->memory_valid);
        assert_int_equal(STATE(1), EYES_DEVICE_USABLE);
        card_clear(&card);
        UNTIL(&brain, STATE(0) == EYES_DEVICE_USABLE && READING(0)->memory_valid);
        end();
}

static void F20_pid_that_does_not_exist_is_a_ghost_whose_memory_counts(void **state)
{
        (void) state;
        begin("--memory 64M");
        card_fault(&card, "ghost 4111111 10M");
        UNTIL(&brain, find_row(READING(0), 4111111));
        const struct eyes_row *row = find_row(READING(0), 4111111);
        assert_int_equal(row->flags & NOBODY, brain.hello.host_pids ? EYES_ROW_GHOST : EYES_ROW_FOREIGN);
        assert_int_equal(row->start_ticks, 0);
        assert_int_equal(row->used_bytes, 10 * MIB);
        assert_int_equal(READING(0)->used_bytes, 10 * MIB);
        assert_null(find_process(&brain, 4111111));
        end();
}

static void F19_pid_of_another_namespace_is_counted_and_nobody(void **state)
{
        (void) state;
        begin("--memory 64M");
        pid_t pid = card_hog(&card, "20M", "");
        card_fault(&card, "foreign-pid");
        UNTIL(&brain, READING(0)->n_rows == 1 && !find_row(READING(0), pid) && READING(0)->per_process_valid);
        assert_true((READING(0)->rows[0].flags & NOBODY) != 0);
        assert_int_equal(READING(0)->rows[0].used_bytes, 20 * MIB);
        end();
}

static void F21_list_with_another_stride_is_rejected_and_the_last_good_one_kept(void **state)
{
        (void) state;
        begin("--memory 64M");
        pid_t first = card_hog(&card, "20M", ""), second = card_hog(&card, "10M", "");
        UNTIL(&brain, shows(0, first, 20 * MIB) && shows(0, second, 10 * MIB));
        card_fault(&card, "stride32");
        UNTIL(&brain, !READING(0)->per_process_valid);
        uint64_t rows_taken_ms = READING(0)->rows_taken_ms;
        assert_int_equal(READING(0)->list_error, EYES_ERROR_REJECTED);
        assert_int_equal(READING(0)->n_rows, 2);
        assert_true(rows_taken_ms > 0 && rows_taken_ms < READING(0)->taken_ms);
        assert_false(READING(0)->settled);
        assert_true(READING(0)->memory_valid);
        assert_int_equal(READING(0)->used_bytes, 30 * MIB);
        assert_int_equal(brain.n_alarms[EYES_ALARM_LIST_REJECTED], 1);
        for (int i = 0; i < 20; i++)
                assert_true(brain_ask(&brain, DEADLINE_MS));
        assert_true(READING(0)->rows_taken_ms == rows_taken_ms); /* it only grows older */
        assert_int_equal(brain.n_alarms[EYES_ALARM_LIST_REJECTED], 1);
        card_clear(&card);
        UNTIL(&brain, shows(0, first, 20 * MIB) && shows(0, second, 10 * MIB));
        end();
}

static void memory_call_that_wants_another_version_is_replaced_by_the_older(void **state)
{
        (void) state;
        begin("--memory 64M");
        card_fault(&card, "nvml-error 25 --symbol nvmlDeviceGetMemoryInfo_v2");
        card_fault(&card, "missing-symbol nvmlDeviceGetComputeRunningProcesses_v3");
        pid_t pid = card_hog(&card, "20M", "");
        UNTIL(&brain, shows(0, pid, 20 * MIB));
        assert_int_equal(READING(0)->used_bytes, 20 * MIB);
        end();
}

static void process_in_two_lists_is_one_row_and_not_the_sum(void **state)
{
        (void) state;
        begin("--memory 64M");
        pid_t pid = card_hog(&card, "20M", "");
        card_fault(&card, "two-lists");
        UNTIL(&brain, shows(0, pid, 20 * MIB) && READING(0)->rows[0].flags & EYES_ROW_GRAPHICS);
        assert_int_equal(READING(0)->n_rows, 1);
        assert_true((READING(0)->rows[0].flags & EYES_ROW_COMPUTE) != 0);
        end();
}

static void list_that_grows_between_two_calls_is_read_whole(void **state)
{
        (void) state;
        begin("--memory 64M");
        pid_t pid = card_hog(&card, "20M", "");
        card_fault(&card, "growing-list 30 --times 1");
        UNTIL(&brain, shows(0, pid, 20 * MIB));
        assert_int_equal(brain.n_alarms[EYES_ALARM_LIST_REJECTED], 0);
        end();
}

static void old_drivers_are_read_by_their_own_layouts(void **state)
{
        (void) state;
        static const char *const options[] = { "--memory 64M --abi old", "--memory 64M --abi r535",
                                               "--memory 64M --abi new" };

        for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
                print_message("# %s\n", options[i]);
                begin(options[i]);
                pid_t first = card_hog(&card, "20M", ""), second = card_hog(&card, "10M", "");
                UNTIL(&brain, shows(0, first, 20 * MIB) && shows(0, second, 10 * MIB));
                assert_int_equal(READING(0)->used_bytes, 30 * MIB);
                assert_int_equal(brain.n_alarms[EYES_ALARM_LIST_REJECTED], 0);
                end();
        }
}

static void F29_memory_nobody_is_listed_with_is_used_all_the_same(void **state)
{
        (void) state;
        begin("--memory 64M");
        card_fault(&card, "residue 5M");
        pid_t pid = card_hog(&card, "20M", "");
        UNTIL(&brain, shows(0, pid, 20 * MIB));
        assert_int_equal(READING(0)->used_bytes, 25 * MIB);
        end();
}

static void F25_card_that_fell_off_the_bus_leaves_the_other_three(void **state)
{
        (void) state;
        begin("--gpus 4 --memory 64M");
        card_fault(&card, "lost --device 2");
        UNTIL(&brain, STATE(2) == EYES_DEVICE_LOST);
        assert_false(READING(2)->memory_valid);
        assert_int_equal(READING(2)->memory_error, EYES_ERROR_LOST);
        assert_int_equal(READING(2)->used_bytes, 0);
        assert_int_equal(brain.devices[2].device.rc, 15);
        assert_int_equal(brain.n_alarms[EYES_ALARM_DEVICE_LOST], 1);
        for (int i = 0; i < 4; i++)
                if (i != 2) {
                        assert_int_equal(STATE(i), EYES_DEVICE_USABLE);
                        assert_true(READING(i)->settled);
                }
        card_clear(&card);
        UNTIL(&brain, STATE(2) == EYES_DEVICE_USABLE && READING(2)->memory_valid);
        end();
}

static void card_that_may_not_be_opened_is_counted_as_hidden(void **state)
{
        (void) state;
        card_create(&card, "--gpus 2 --memory 64M");
        card_fault(&card, "nvml-error 4 --symbol nvmlDeviceGetHandleByIndex_v2 --times 1");
        brain_start(&brain, &card);
        UNTIL(&brain, brain.has_hello);
        assert_int_equal(brain.hello.driver_state, EYES_DRIVER_OK);
        assert_int_equal(brain.hello.n_devices, 1);
        assert_int_equal(brain.hello.n_hidden, 1);
        end();
}

static void changes_are_told_without_being_asked(void **state)
{
        (void) state;
        const struct eyes_message often = { .kind = EYES_INTERVAL,
                                            .interval = { EYES_INTERVAL_MIN_MS, EYES_ACTIVITY_DEFAULT_MS } };

        begin("--memory 64M");
        brain_send(&brain, &often);
        pid_t pid = card_hog(&card, "20M", "");
        while (!shows(0, pid, 20 * MIB))
                assert_true(brain_hear(&brain, DEADLINE_MS));
        assert_int_equal(READING(0)->request_id, 0);
        card_end_hog(&card, pid);
        while (READING(0)->used_bytes > 0 || READING(0)->n_rows > 0)
                assert_true(brain_hear(&brain, DEADLINE_MS));
        end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(eyes_tell_the_driver_the_devices_and_what_is_used),
                cmocka_unit_test(holder_is_listed_with_who_it_is_and_its_end_is_seen),
                cmocka_unit_test(F17_reading_with_unknown_process_memory_stays_unknown),
                cmocka_unit_test(F18_device_without_a_memory_figure_is_unusable_and_the_other_is_fine),
                cmocka_unit_test(F20_pid_that_does_not_exist_is_a_ghost_whose_memory_counts),
                cmocka_unit_test(F19_pid_of_another_namespace_is_counted_and_nobody),
                cmocka_unit_test(F21_list_with_another_stride_is_rejected_and_the_last_good_one_kept),
                cmocka_unit_test(memory_call_that_wants_another_version_is_replaced_by_the_older),
                cmocka_unit_test(process_in_two_lists_is_one_row_and_not_the_sum),
                cmocka_unit_test(list_that_grows_between_two_calls_is_read_whole),
                cmocka_unit_test(old_drivers_are_read_by_their_own_layouts),
                cmocka_unit_test(F29_memory_nobody_is_listed_with_is_used_all_the_same),
                cmocka_unit_test(F25_card_that_fell_off_the_bus_leaves_the_other_three),
                cmocka_unit_test(card_that_may_not_be_opened_is_counted_as_hidden),
                cmocka_unit_test(changes_are_told_without_being_asked),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
