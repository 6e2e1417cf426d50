/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the process connector: as the kernel sends them, cut, oversized, and none at all. */
#include "wire/proc_event.h"
#include <errno.h>
#include <string.h>
#include "cm.h"
#include "wire/bytes.h"

enum { WHOLE = 76, AT_BODY = 36 };

static size_t message(uint8_t *buf, uint32_t what, const uint32_t words[6], uint16_t n_body)
{
        struct bytes_writer w;

        bytes_writer_init(&w, buf, 256);
        bytes_put_u32(&w, AT_BODY + (uint32_t) n_body);
        bytes_put_u16(&w, 3);
        bytes_put_u16(&w, 0);
        bytes_put_u64(&w, 0);
        bytes_put_u32(&w, 1);
        bytes_put_u32(&w, 1);
        bytes_put_u64(&w, 7);
        bytes_put_u16(&w, n_body);
        bytes_put_u16(&w, 0);
        size_t head = w.at;
        bytes_put_u32(&w, what);
        bytes_put_u32(&w, 5); /* CPU */
        bytes_put_u64(&w, UINT64_C(123456789012));
        for (unsigned i = 0; i < 6; i++)
                bytes_put_u32(&w, words[i]);
        assert_false(w.failed);
        return head + n_body;
}

static void each_kind_is_read_as_the_kernel_lays_it_out(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint32_t what, words[6];
                struct proc_event is;
        } rows[] = {
                { "granted", 0, { 0 }, { .kind = PROC_EVENT_ACK } },
                { "not granted", 0, { 1 }, { .kind = PROC_EVENT_ACK, .error = 1 } },
                { "a fork",
                  1,
                  { 10, 10, 11, 11 },
                  { .kind = PROC_EVENT_FORK, .parent_pid = 10, .parent_tgid = 10, .pid = 11, .tgid = 11 } },
                { "a thread",
                  1,
                  { 12, 10, 13, 10 },
                  { .kind = PROC_EVENT_FORK, .parent_pid = 12, .parent_tgid = 10, .pid = 13, .tgid = 10 } },
                { "by the idle task", 1, { 0, 0, 1, 1 }, { .kind = PROC_EVENT_FORK, .pid = 1, .tgid = 1 } },
                { "a session", 0x80, { 11, 11 }, { .kind = PROC_EVENT_SID, .pid = 11, .tgid = 11 } },
                { "an end", 0x80000000, { 11, 11, 0, 17, 10, 10 }, { .kind = PROC_EVENT_EXIT, .pid = 11, .tgid = 11 } },
                { "an exec", 2, { 11, 11 }, { .kind = PROC_EVENT_OTHER } },
                { "a kind of tomorrow", 0x4000, { 1 }, { .kind = PROC_EVENT_OTHER } },
        };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                uint8_t buf[256];
                struct proc_event e;
                size_t at = 0, n = message(buf, rows[i].what, rows[i].words, WHOLE - AT_BODY);

                row_check(rows[i].name, proc_event_next(buf, n, &at, &e) == 1);
                row_check(rows[i].name, at == n && e.at_ns == UINT64_C(123456789012));
                row_check(rows[i].name, e.kind == rows[i].is.kind && e.error == rows[i].is.error);
                row_check(rows[i].name, e.pid == rows[i].is.pid && e.tgid == rows[i].is.tgid);
                row_check(rows[i].name,
                          e.parent_pid == rows[i].is.parent_pid && e.parent_tgid == rows[i].is.parent_tgid);
                row_check(rows[i].name, proc_event_next(buf, n, &at, &e) == 0);
        }
        rows_end();
}

static void message_that_is_cut_names_nobody(void **state)
{
        (void) state;
        static const uint32_t words[6] = { 10, 10, 11, 11 };
        uint8_t buf[256];
        size_t n = message(buf, 1, words, WHOLE - AT_BODY);

        for (size_t cut = 1; cut < n; cut++) {
                struct proc_event e = { .kind = PROC_EVENT_FORK };
                size_t at = 0;
                assert_int_equal(proc_event_next(buf, cut, &at, &e), -EBADMSG);
                assert_int_equal(at, cut);
        }
        for (uint16_t body = 0; body < 32; body++) { /* whole, and too short for its kind */
                struct proc_event e;
                size_t at = 0;
                n = message(buf, 1, words, body);
                assert_int_equal(proc_event_next(buf, n, &at, &e), -EBADMSG);
                assert_int_equal(e.kind, PROC_EVENT_OTHER);
        }
}

static void numbers_that_no_process_has_are_refused(void **state)
{
        (void) state;
        static const uint32_t rows[][6] = {
                { 10, 10, 0, 11 }, { 10, 10, 11, 0 }, { 10, 10, 0x80000000, 11 }, { 0xffffffff, 10, 11, 11 }
        };

        for (size_t i = 0; i < 4; i++) {
                uint8_t buf[256];
                struct proc_event e;
                size_t at = 0, n = message(buf, 1, rows[i], WHOLE - AT_BODY);
                assert_int_equal(proc_event_next(buf, n, &at, &e), -EBADMSG);
                assert_int_equal(e.kind, PROC_EVENT_OTHER);
        }
}

static void several_messages_in_one_datagram_are_read_one_by_one(void **state)
{
        (void) state;
        static const uint32_t words[6] = { 10, 10, 11, 11 };
        uint8_t buf[512];
        struct proc_event e;
        size_t at = 0, n = message(buf, 1, words, WHOLE - AT_BODY);

        n += message(buf + n, 0x80000000, words, WHOLE - AT_BODY);
        assert_int_equal(proc_event_next(buf, n, &at, &e), 1);
        assert_int_equal(e.kind, PROC_EVENT_FORK);
        assert_int_equal(proc_event_next(buf, n, &at, &e), 1);
        assert_int_equal(e.kind, PROC_EVENT_EXIT);
        assert_int_equal(proc_event_next(buf, n, &at, &e), 0);
}

static void question_has_the_lengths_that_the_kernel_wants(void **state)
{
        (void) state;
        uint8_t buf[PROC_EVENT_ASK_MAX];

        assert_int_equal(proc_event_listen(buf, false), 40);
        assert_int_equal(buf[0], 40);
        assert_int_equal(buf[32], 4);
        assert_int_equal(proc_event_listen(buf, true), 44);
        assert_int_equal(buf[40], 0x81);
        assert_int_equal(buf[43], 0x80);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_kind_is_read_as_the_kernel_lays_it_out),
                cmocka_unit_test(message_that_is_cut_names_nobody),
                cmocka_unit_test(numbers_that_no_process_has_are_refused),
                cmocka_unit_test(several_messages_in_one_datagram_are_read_one_by_one),
                cmocka_unit_test(question_has_the_lengths_that_the_kernel_wants),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
