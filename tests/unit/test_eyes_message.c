/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/eyes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* One full example of each kind; also what `LESSOR_WRITE_CORPUS=DIR test_eyes_message` writes as fuzz seeds. */
static void sample(enum eyes_kind kind, struct eyes_message *m)
{
        memset(m, 0, sizeof(*m));
        m->kind = kind;
        switch (kind) {
        case EYES_BRAIN_HELLO:
                m->brain_hello.version = EYES_VERSION;
                break;
        case EYES_INTERVAL:
                m->interval = (struct eyes_interval){ .ms = 250, .activity_ms = 10000 };
                break;
        case EYES_READ:
                m->read = (struct eyes_read){ .request_id = 7, .uuid = "GPU-3f1c" };
                break;
        case EYES_HELLO:
                m->hello = (struct eyes_hello){ .version = EYES_VERSION,
                                                .driver_state = EYES_DRIVER_MISMATCH,
                                                .rc = 18,
                                                .driver_version = "595.45",
                                                .host_pids = true,
                                                .n_devices = 2,
                                                .n_hidden = 1,
                                                .events = EYES_EVENTS_REFUSED,
                                                .events_errno = 1,
                                                .boot_id = "b7f2b1f2-9d5e-4d8c-a0d6-2f6f8b6f1a2b" };
                break;
        case EYES_DEVICE:
                m->device = (struct eyes_device){ .uuid = "MIG-1",
                                                  .name = "Example",
                                                  .bus_id = "0000:65:00.0",
                                                  .parent_uuid = "GPU-3f1c",
                                                  .minor_known = true,
                                                  .minor = 3,
                                                  .total_known = true,
                                                  .total_bytes = UINT64_C(3) << 30,
                                                  .mig = true,
                                                  .state = EYES_DEVICE_LOST,
                                                  .rc = 15 };
                break;
        case EYES_PROCESS:
                m->process = (struct eyes_process){ .pid = 4711,
                                                    .start_ticks = 123456,
                                                    .uid_known = true,
                                                    .uid = 1000,
                                                    .ppid = 1,
                                                    .sid = 4711,
                                                    .comm = "a) R 1 (\n",
                                                    .exe_known = true,
                                                    .exe_deleted = true,
                                                    .exe_path = "/opt/x y",
                                                    .exe_dev = 5,
                                                    .exe_inode = 77,
                                                    .cgroup_known = true,
                                                    .cgroup_path = "/user.slice",
                                                    .cgroup_id_known = true,
                                                    .cgroup_id = 9,
                                                    .command_known = true,
                                                    .command = UINT64_MAX,
                                                    .cmdline_cut = true,
                                                    .n_cmdline = 6,
                                                    .cmdline = "py\0-c\0",
                                                    .token = "t0k3n",
                                                    .n_ancestors = 2,
                                                    .kernel_thread = true,
                                                    .script_kind = SCRIPT_FILE,
                                                    .script_known = true,
                                                    .script_dev = 6,
                                                    .script_inode = 78,
                                                    .ancestors = { { 17, 16, 0, EYES_KINSHIP_EVENT },
                                                                   { 1, 2, 200, EYES_KINSHIP_SESSION } } };
                break;
        case EYES_READING:
                m->reading = (struct eyes_reading){ .uuid = "GPU-3f1c",
                                                    .request_id = 7,
                                                    .taken_ms = 5000,
                                                    .memory_valid = true,
                                                    .total_bytes = 24000,
                                                    .used_bytes = 900,
                                                    .settled = true,
                                                    .per_process_valid = true,
                                                    .rows_taken_ms = 4999,
                                                    .n_rows = 3 };
                m->reading.rows[0] = (struct eyes_row){ 5, EYES_ROW_USED_KNOWN | EYES_ROW_COMPUTE, 100, 300 };
                m->reading.rows[1] = (struct eyes_row){ 6, EYES_ROW_GRAPHICS, 100, 0 };
                m->reading.rows[2] = (struct eyes_row){ 9, EYES_ROW_USED_KNOWN | EYES_ROW_GHOST, 0, 300 };
                break;
        case EYES_EXITED:
                m->exited = (struct eyes_exited){ .pid = 4711, .start_ticks = 123456 };
                break;
        case EYES_ALARM:
                m->alarm = (struct eyes_alarm){
                        .kind = EYES_ALARM_LIST_REJECTED, .uuid = "GPU-3f1c", .n_dropped = 3, .text = "pid 0"
                };
                break;
        case EYES_DONE:
                m->done = (struct eyes_done){ .request_id = 7, .taken_ms = 5001, .n_readings = 1 };
                break;
        case EYES_NOTHING:
        case EYES_KIND_N:
                fail();
        }
}

static struct eyes_message msg, back;
static uint8_t buf[EYES_MESSAGE_MAX + 1];

static size_t encoded(const struct eyes_message *m)
{
        size_t n = 0;
        struct error err = { 0 };

        if (eyes_encode(m, buf, sizeof(buf), &n, &err) < 0)
                fail_msg("%s", err.msg);
        return n;
}

static void message_of_each_kind_survives_the_round_trip(void **state)
{
        (void) state;
        const char *corpus = getenv("LESSOR_WRITE_CORPUS");

        for (enum eyes_kind kind = EYES_NOTHING + 1; kind < EYES_KIND_N; kind++) {
                struct error err = { 0 };

                sample(kind, &msg);
                size_t n = encoded(&msg);
                if (eyes_decode(buf, n, &back, &err) < 0)
                        fail_msg("%s: %s", eyes_kind_name(kind), err.msg);
                assert_memory_equal(&back, &msg, sizeof(msg));
                if (corpus) {
                        char path[4200];
                        (void) snprintf(path, sizeof(path), "%s/%s", corpus, eyes_kind_name(kind));
                        FILE *f = fopen(path, "w");
                        assert_non_null(f);
                        assert_int_equal(fwrite(buf, 1, n, f), n);
                        assert_int_equal(fclose(f), 0);
                }
        }
}

static void message_cut_anywhere_is_refused(void **state)
{
        (void) state;
        for (enum eyes_kind kind = EYES_NOTHING + 1; kind < EYES_KIND_N; kind++) {
                sample(kind, &msg);
                size_t n = encoded(&msg);

                for (size_t cut = 0; cut < n; cut++) {
                        assert_int_equal(eyes_decode(buf, cut, &back, NULL), -EBADMSG);
                        assert_int_equal(back.kind, EYES_NOTHING);
                }
                buf[n] = 0;
                assert_int_equal(eyes_decode(buf, n + 1, &back, NULL), -EBADMSG);
        }
}

static void message_with_any_byte_changed_never_breaks_the_round_trip(void **state)
{
        (void) state;
        static uint8_t again[EYES_MESSAGE_MAX];

        for (enum eyes_kind kind = EYES_NOTHING + 1; kind < EYES_KIND_N; kind++) {
                sample(kind, &msg);
                size_t n = encoded(&msg), n_again = 0;

                for (size_t i = 0; i < n; i++) {
                        uint8_t kept = buf[i];
                        for (unsigned v = 0; v < 256; v += 15) {
                                buf[i] = (uint8_t) v;
                                if (eyes_decode(buf, n, &back, NULL) < 0)
                                        continue;
                                assert_int_equal(eyes_encode(&back, again, sizeof(again), &n_again, NULL), 0);
                                assert_int_equal(n_again, n);
                                assert_memory_equal(again, buf, n);
                        }
                        buf[i] = kept;
                }
        }
}

static void message_of_another_version_is_named_as_such(void **state)
{
        (void) state;
        struct error err = { 0 };
        char words[32];

        sample(EYES_DONE, &msg);
        size_t n = encoded(&msg);
        buf[0] = EYES_VERSION + 1;
        assert_int_equal(eyes_decode(buf, n, &back, &err), -EPROTONOSUPPORT);
        (void) snprintf(words, sizeof(words), "version %d", EYES_VERSION + 1);
        assert_non_null(strstr(err.msg, words));
}

static void oversize_message_is_refused_unread(void **state)
{
        (void) state;
        assert_int_equal(eyes_decode(buf, EYES_MESSAGE_MAX + 1, &back, NULL), -EBADMSG);
}

static void reading_with_all_rows_fits_into_a_message(void **state)
{
        (void) state;
        sample(EYES_READING, &msg);
        msg.reading.n_rows = EYES_ROWS_MAX;
        for (uint32_t i = 0; i < EYES_ROWS_MAX; i++)
                msg.reading.rows[i] = (struct eyes_row){ (uint32_t) EYES_PID_MAX - EYES_ROWS_MAX + 1 + i,
                                                         EYES_ROW_USED_KNOWN, UINT64_MAX, EYES_BYTES_MAX };
        size_t n = encoded(&msg);
        assert_true(n < EYES_MESSAGE_MAX);
        assert_int_equal(eyes_decode(buf, n, &back, NULL), 0);
        assert_memory_equal(&back, &msg, sizeof(msg));
}

static void process_with_the_longest_of_everything_fits(void **state)
{
        (void) state;
        sample(EYES_PROCESS, &msg);
        struct eyes_process *p = &msg.process;
        memset(p->exe_path, 'x', sizeof(p->exe_path) - 1);
        memset(p->cgroup_path, '/', sizeof(p->cgroup_path) - 1);
        memset(p->comm, ')', sizeof(p->comm) - 1);
        memset(p->token, 't', sizeof(p->token) - 1);
        memset(p->cmdline, 0xff, sizeof(p->cmdline));
        p->n_cmdline = EYES_CMDLINE_MAX;
        p->n_ancestors = EYES_ANCESTORS_MAX;
        for (uint32_t i = 0; i < EYES_ANCESTORS_MAX; i++)
                p->ancestors[i] = (struct eyes_ancestor){ i + 1, UINT64_MAX, UINT32_MAX, EYES_KINSHIP_SESSION };
        size_t n = encoded(&msg);
        assert_int_equal(eyes_decode(buf, n, &back, NULL), 0);
        assert_memory_equal(&back, &msg, sizeof(msg));
}

static void break_interval_zero(struct eyes_message *m)
{
        m->interval.ms = 0;
}
static void break_interval_long(struct eyes_message *m)
{
        m->interval.ms = 60001;
}
static void break_read_id(struct eyes_message *m)
{
        m->read.request_id = 0;
}
static void break_hello_devices(struct eyes_message *m)
{
        m->hello.n_devices = EYES_DEVICES_MAX + 1;
}
static void break_hello_state(struct eyes_message *m)
{
        m->hello.driver_state = EYES_DRIVER_STATE_N;
}
static void break_device_uuid(struct eyes_message *m)
{
        m->device.uuid[0] = '\0';
}
static void break_device_total(struct eyes_message *m)
{
        m->device.total_known = false;
}
static void break_uuid_unterminated(struct eyes_message *m)
{
        memset(m->device.uuid, 'u', sizeof(m->device.uuid));
}
static void break_process_pid(struct eyes_message *m)
{
        m->process.pid = 0;
}
static void break_process_pid_high(struct eyes_message *m)
{
        m->process.pid = (uint32_t) EYES_PID_MAX + 1;
}
static void break_process_cmdline(struct eyes_message *m)
{
        m->process.n_cmdline = EYES_CMDLINE_MAX + 1;
}
static void break_process_ancestors(struct eyes_message *m)
{
        m->process.n_ancestors = EYES_ANCESTORS_MAX + 1;
}
static void break_process_link(struct eyes_message *m)
{
        m->process.ancestors[1].link = EYES_KINSHIP_N;
}
static void break_process_script(struct eyes_message *m)
{
        m->process.script_known = false;
}
static void break_process_script_kind(struct eyes_message *m)
{
        m->process.script_kind = SCRIPT_MODULE;
}
static void break_process_command(struct eyes_message *m)
{
        m->process.command_known = false;
}
static void break_hello_events(struct eyes_message *m)
{
        m->hello.events = EYES_EVENTS_TOLD;
}
static void break_process_cgroup(struct eyes_message *m)
{
        m->process.cgroup_path[0] = 'x';
}
static void break_process_exe(struct eyes_message *m)
{
        m->process.exe_known = false;
}
static void break_reading_used(struct eyes_message *m)
{
        m->reading.used_bytes = m->reading.total_bytes + 1;
}
static void break_reading_unknown(struct eyes_message *m)
{
        m->reading.memory_valid = false;
}
static void break_reading_order(struct eyes_message *m)
{
        m->reading.rows[1].pid = 5;
}
static void break_reading_row_used(struct eyes_message *m)
{
        m->reading.rows[1].used_bytes = 1;
}
static void break_reading_ghost(struct eyes_message *m)
{
        m->reading.rows[2].start_ticks = 1;
}
static void break_reading_flags(struct eyes_message *m)
{
        m->reading.rows[0].flags = EYES_ROW_FLAGS_ALL + 1;
}
static void break_reading_two_reasons(struct eyes_message *m)
{
        m->reading.rows[2].flags |= EYES_ROW_FOREIGN;
}
static void break_reading_worked_and_rested(struct eyes_message *m)
{
        m->reading.rows[0].flags |= EYES_ROW_WORKED | EYES_ROW_RESTED;
}
static void break_reading_ghost_rested(struct eyes_message *m)
{
        m->reading.rows[2].flags |= EYES_ROW_RESTED;
}
static void break_interval_activity(struct eyes_message *m)
{
        m->interval.activity_ms = EYES_ACTIVITY_MIN_MS - 1;
}
static void break_reading_count(struct eyes_message *m)
{
        m->reading.n_rows = EYES_ROWS_MAX + 1;
}
static void break_reading_settled(struct eyes_message *m)
{
        m->reading.per_process_valid = false;
        m->reading.list_error = EYES_ERROR_REJECTED;
}
static void break_reading_future(struct eyes_message *m)
{
        m->reading.rows_taken_ms = m->reading.taken_ms + 1;
}

static void field_outside_its_range_is_named(void **state)
{
        (void) state;
        static const struct {
                enum eyes_kind kind;
                void (*breakage)(struct eyes_message *m);
                const char *field;
        } rows[] = {
                { EYES_INTERVAL, break_interval_zero, "ms" },
                { EYES_INTERVAL, break_interval_long, "ms" },
                { EYES_INTERVAL, break_interval_activity, "activity_ms" },
                { EYES_READ, break_read_id, "request_id" },
                { EYES_HELLO, break_hello_devices, "n_devices" },
                { EYES_HELLO, break_hello_state, "driver_state" },
                { EYES_HELLO, break_hello_events, "events_errno" },
                { EYES_DEVICE, break_device_uuid, "uuid" },
                { EYES_DEVICE, break_device_total, "total_bytes" },
                { EYES_DEVICE, break_uuid_unterminated, "uuid" },
                { EYES_PROCESS, break_process_pid, "pid" },
                { EYES_PROCESS, break_process_pid_high, "pid" },
                { EYES_PROCESS, break_process_cmdline, "n_cmdline" },
                { EYES_PROCESS, break_process_ancestors, "n_ancestors" },
                { EYES_PROCESS, break_process_link, "ancestors.link" },
                { EYES_PROCESS, break_process_script, "script_dev" },
                { EYES_PROCESS, break_process_script_kind, "script_known" },
                { EYES_PROCESS, break_process_command, "command" },
                { EYES_PROCESS, break_process_cgroup, "cgroup_path" },
                { EYES_PROCESS, break_process_exe, "exe_known" },
                { EYES_READING, break_reading_used, "used_bytes" },
                { EYES_READING, break_reading_unknown, "total_bytes" },
                { EYES_READING, break_reading_order, "rows.pid" },
                { EYES_READING, break_reading_row_used, "rows.used_bytes" },
                { EYES_READING, break_reading_ghost, "rows.start_ticks" },
                { EYES_READING, break_reading_flags, "rows.flags" },
                { EYES_READING, break_reading_worked_and_rested, "rows.flags" },
                { EYES_READING, break_reading_ghost_rested, "rows.flags" },
                { EYES_READING, break_reading_two_reasons, "rows.flags" },
                { EYES_READING, break_reading_count, "n_rows" },
                { EYES_READING, break_reading_settled, "settled" },
                { EYES_READING, break_reading_future, "rows_taken_ms" },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct error err = { 0 };
                char want[64];
                size_t n = 99;

                sample(rows[i].kind, &msg);
                rows[i].breakage(&msg);
                (void) snprintf(want, sizeof(want), "field %s is", rows[i].field);
                assert_int_equal(eyes_encode(&msg, buf, sizeof(buf), &n, &err), -EINVAL);
                assert_int_equal(n, 99);
                if (!strstr(err.msg, want))
                        fail_msg("row %zu: wanted \"%s\", got \"%s\"", i, want, err.msg);
        }
}

static void message_without_room_is_not_written(void **state)
{
        (void) state;
        size_t n = 0;

        sample(EYES_DONE, &msg);
        assert_int_equal(eyes_encode(&msg, buf, 10, &n, NULL), -EMSGSIZE);
}

static void readings_that_differ_in_times_only_are_the_same(void **state)
{
        (void) state;
        sample(EYES_READING, &msg);
        back = msg;
        back.reading.request_id = 99;
        back.reading.taken_ms = 6000;
        back.reading.rows_taken_ms = 5999;
        assert_false(eyes_reading_differs(&msg.reading, &back.reading));
        back.reading.rows[2].used_bytes++;
        assert_true(eyes_reading_differs(&msg.reading, &back.reading));
}

static void names_of_values_nobody_knows_are_unknown(void **state)
{
        (void) state;
        assert_string_equal(eyes_kind_name(EYES_KIND_N), "unknown");
        assert_string_equal(eyes_driver_state_name(EYES_DRIVER_MISMATCH), "mismatch");
        assert_string_equal(eyes_device_state_name((enum eyes_device_state) 99), "unknown");
        for (enum eyes_driver_state s = 0; s < EYES_DRIVER_STATE_N; s++)
                assert_string_not_equal(eyes_driver_state_name(s), "unknown");
        for (enum eyes_device_state s = 0; s < EYES_DEVICE_STATE_N; s++)
                assert_string_not_equal(eyes_device_state_name(s), "unknown");
        for (enum eyes_error s = 0; s < EYES_ERROR_N; s++)
                assert_string_not_equal(eyes_error_name(s), "unknown");
        for (enum eyes_alarm_kind s = 0; s < EYES_ALARM_KIND_N; s++)
                assert_string_not_equal(eyes_alarm_kind_name(s), "unknown");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(message_of_each_kind_survives_the_round_trip),
                cmocka_unit_test(message_cut_anywhere_is_refused),
                cmocka_unit_test(message_with_any_byte_changed_never_breaks_the_round_trip),
                cmocka_unit_test(message_of_another_version_is_named_as_such),
                cmocka_unit_test(oversize_message_is_refused_unread),
                cmocka_unit_test(reading_with_all_rows_fits_into_a_message),
                cmocka_unit_test(process_with_the_longest_of_everything_fits),
                cmocka_unit_test(field_outside_its_range_is_named),
                cmocka_unit_test(message_without_room_is_not_written),
                cmocka_unit_test(readings_that_differ_in_times_only_are_the_same),
                cmocka_unit_test(names_of_values_nobody_knows_are_unknown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
