/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/warden.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"

static int rows_failed;

/* One full example of each kind; also what `LESSOR_WRITE_CORPUS=DIR test_warden_message` writes as fuzz seeds. */
static struct warden_message sample(enum warden_kind kind)
{
        struct warden_message m = { .kind = kind };

        switch (kind) {
        case WARDEN_HELLO:
                m.hello = (struct warden_hello){ .version = WARDEN_VERSION, .program = "0.1.0" };
                break;
        case WARDEN_ORDER:
                m.order = (struct warden_order){ .order_id = 7,
                                                 .verb = WARDEN_SIGNAL,
                                                 .signal = 15,
                                                 .pid = 4711,
                                                 .start_ticks = 123456,
                                                 .pidfd_inode = 99,
                                                 .owner_uid = 1000,
                                                 .cgroup_id = 5,
                                                 .reason = 3 };
                break;
        case WARDEN_OUTCOME:
                m.outcome = (struct warden_answer){ .order_id = 7,
                                                    .result = WARDEN_BLOCKED,
                                                    .why = WARDEN_WHY_SYSTEM,
                                                    .error = EPERM,
                                                    .kept = true,
                                                    .driver_code = 304,
                                                    .host_bytes = 4096,
                                                    .duration_ms = 12 };
                break;
        case WARDEN_SETTLED:
        case WARDEN_HELD:
                m.order_id = 7;
                break;
        case WARDEN_PING:
                m.nonce = 12;
                break;
        case WARDEN_STATE:
                m.state = (struct warden_state){ .nonce = 12, .n_running = 2, .can = WARDEN_CAN_ALL };
                break;
        case WARDEN_NOTHING:
        case WARDEN_KIND_N:
                fail();
        }
        return m;
}

/* A look, and what came of it. */
static struct warden_message sample_look(void)
{
        struct warden_message m = sample(WARDEN_ORDER);

        m.order.verb = WARDEN_LOOK;
        m.order.signal = 0;
        (void) snprintf(m.path, sizeof(m.path), "train.py");
        return m;
}

static struct warden_message sample_looked(void)
{
        struct warden_message m = { .kind = WARDEN_OUTCOME };

        m.outcome = (struct warden_answer){ .order_id = 7,
                                            .result = WARDEN_DONE,
                                            .program_dev = 8,
                                            .program_inode = UINT64_MAX,
                                            .file_dev = 9,
                                            .file_inode = 78 };
        (void) snprintf(m.path, sizeof(m.path), "/opt/x\ny (deleted)");
        return m;
}

/* The order with most in it. */
static struct warden_message sample_restore(void)
{
        struct warden_message m = sample(WARDEN_ORDER);

        m.order.verb = WARDEN_RESTORE;
        m.order.signal = 0;
        memset(m.order.device_uuid, 0xab, sizeof(m.order.device_uuid));
        m.order.lease_id = 21;
        m.order.bytes = 1 << 30;
        m.order.used_at_most_bytes = 2u << 30;
        m.order.deadline_ms = 10000;
        m.order.flags = WARDEN_FLAG_ALL;
        return m;
}

static uint8_t buf[WARDEN_MESSAGE_MAX + 1];

static size_t encoded(const struct warden_message *m)
{
        struct error err = { 0 };
        size_t n = 0;

        if (warden_encode(m, buf, sizeof(buf), &n, &err) < 0)
                fail_msg("%s", err.msg);
        return n;
}

static void message_of_each_kind_survives_the_round_trip_and_has_one_size(void **state)
{
        static const size_t sizes[WARDEN_KIND_N] = {
                [WARDEN_HELLO] = 36, [WARDEN_ORDER] = 104, [WARDEN_OUTCOME] = 73, [WARDEN_SETTLED] = 12,
                [WARDEN_HELD] = 12,  [WARDEN_PING] = 12,   [WARDEN_STATE] = 20,
        };
        (void) state;
        for (int kind = WARDEN_NOTHING + 1; kind < WARDEN_KIND_N; kind++) {
                struct warden_message m = sample((enum warden_kind) kind), back;
                size_t n = encoded(&m);
                assert_int_equal(n, sizes[kind]);
                assert_int_equal(warden_decode(buf, n, &back, NULL), 0);
                assert_memory_equal(&m, &back, sizeof(m));
        }
}

static void message_cut_or_longer_is_malformed(void **state)
{
        (void) state;
        for (int kind = WARDEN_NOTHING + 1; kind < WARDEN_KIND_N; kind++) {
                struct warden_message m = sample((enum warden_kind) kind), back;
                size_t n = encoded(&m);
                buf[n] = 0;
                for (size_t cut = 0; cut <= n + 1; cut++) {
                        if (cut == n)
                                continue;
                        assert_int_equal(warden_decode(buf, cut, &back, NULL), -EBADMSG);
                        assert_int_equal(back.kind, WARDEN_NOTHING);
                }
        }
}

static void message_of_another_version_is_refused_but_its_hello_is_read(void **state)
{
        struct warden_message m = sample(WARDEN_ORDER), back;
        struct error err = { 0 };
        size_t n = encoded(&m);

        (void) state;
        buf[0] = WARDEN_VERSION + 1;
        assert_int_equal(warden_decode(buf, n, &back, &err), -EPROTONOSUPPORT);
        assert_string_equal(err.msg, "warden message has version 4, this program speaks 3");
        m = sample(WARDEN_HELLO);
        n = encoded(&m);
        buf[0] = 77;
        assert_int_equal(warden_decode(buf, n, &back, &err), 0);
        assert_int_equal(back.hello.version, 77);
        assert_string_equal(back.hello.program, "0.1.0");
}

static void field_outside_its_range_is_refused_both_ways(void **state)
{
        const uint32_t nobody = UINT32_MAX, beyond = (uint32_t) INT32_MAX + 1;
        const struct {
                const char *name;
                enum warden_kind kind;
                size_t at; /* of the field in the bytes, 4 bytes wide */
                uint32_t value;
        } rows[] = {
                { "order without an id", WARDEN_ORDER, 4, 0 },
                { "no verb", WARDEN_ORDER, 12, WARDEN_VERB_NONE },
                { "a verb nobody knows", WARDEN_ORDER, 12, WARDEN_VERB_N },
                { "freeze with a signal", WARDEN_ORDER, 12, WARDEN_FREEZE },
                { "signal 0", WARDEN_ORDER, 16, 0 },
                { "signal 65", WARDEN_ORDER, 16, 65 },
                { "pid 0", WARDEN_ORDER, 20, 0 },
                { "a negative pid", WARDEN_ORDER, 20, nobody },
                { "the first pid that is none", WARDEN_ORDER, 20, beyond },
                { "no owner", WARDEN_ORDER, 40, nobody },
                { "done with a reason against it", WARDEN_OUTCOME, 12, WARDEN_DONE },
                { "a result nobody knows", WARDEN_OUTCOME, 12, WARDEN_RESULT_N },
                { "blocked without a reason", WARDEN_OUTCOME, 16, WARDEN_WHY_NONE },
                { "a reason nobody knows", WARDEN_OUTCOME, 16, WARDEN_WHY_N },
                { "no errno of Linux", WARDEN_OUTCOME, 20, 4096 },
                { "a negative errno", WARDEN_OUTCOME, 20, nobody },
                { "settled without an id", WARDEN_SETTLED, 4, 0 },
                { "held without an id", WARDEN_HELD, 4, 0 },
                { "ping without a nonce", WARDEN_PING, 4, 0 },
                { "an ability nobody knows", WARDEN_STATE, 16, WARDEN_CAN_ALL + 1 },
                { "more helpers than there are", WARDEN_STATE, 12, UINT16_MAX + 1 },
        };

        (void) state;
        rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct warden_message m = sample(rows[i].kind), back;
                struct error err = { 0 };
                size_t n = encoded(&m);
                for (size_t k = 0; k < 4; k++)
                        buf[rows[i].at + k] = (uint8_t) (rows[i].value >> (8 * k));
                row_check(rows[i].name, warden_decode(buf, n, &back, &err) == -EBADMSG && err.msg[0]);
                row_check(rows[i].name, back.kind == WARDEN_NOTHING);
        }
        rows_end();

        struct warden_message m = sample(WARDEN_ORDER);
        size_t n = 0;
        m.order.pid = 0;
        assert_int_equal(warden_encode(&m, buf, sizeof(buf), &n, NULL), -EINVAL);
        m = sample(WARDEN_ORDER);
        assert_int_equal(warden_encode(&m, buf, 10, &n, NULL), -EMSGSIZE);
        m = sample(WARDEN_HELLO);
        memset(m.hello.program, 'x', sizeof(m.hello.program));
        assert_int_equal(warden_encode(&m, buf, sizeof(buf), &n, NULL), -EINVAL);
}

static void look_and_its_answer_end_with_a_path_and_nothing_else_does(void **state)
{
        struct warden_message look = sample_look(), looked = sample_looked(), m, back;
        size_t n = encoded(&look);

        (void) state;
        assert_int_equal(warden_decode(buf, n, &back, NULL), 0);
        assert_memory_equal(&look, &back, sizeof(look));
        n = encoded(&looked);
        assert_int_equal(warden_decode(buf, n, &back, NULL), 0);
        assert_memory_equal(&looked, &back, sizeof(looked));
        buf[n - 1] = '\0'; /* it ends before its end */
        assert_int_equal(warden_decode(buf, n, &back, NULL), -EBADMSG);
        memset(look.path, 'x', sizeof(look.path) - 1); /* the longest */
        n = encoded(&look);
        assert_int_equal(warden_decode(buf, n, &back, NULL), 0);
        assert_memory_equal(&look, &back, sizeof(look));
        look.path[sizeof(look.path) - 1] = 'x';
        assert_int_equal(warden_encode(&look, buf, sizeof(buf), &n, NULL), -EINVAL);
        look.path[0] = '\0';
        assert_int_equal(warden_encode(&look, buf, sizeof(buf), &n, NULL), 0);
        for (int kind = WARDEN_NOTHING + 1; kind < WARDEN_KIND_N; kind++) {
                m = sample((enum warden_kind) kind);
                m.path[0] = 'x';
                bool may = kind != WARDEN_ORDER && kind != WARDEN_OUTCOME; /* the others have nowhere to put it */
                assert_int_equal(warden_encode(&m, buf, sizeof(buf), &n, NULL), may ? 0 : -EINVAL);
        }
        looked.outcome.result = WARDEN_BLOCKED;
        looked.outcome.why = WARDEN_WHY_GONE;
        assert_int_equal(warden_encode(&looked, buf, sizeof(buf), &n, NULL), -EINVAL);
}

static void order_that_parks_names_its_device_and_a_deadline_for_a_lock(void **state)
{
        const struct {
                const char *name;
                enum warden_verb verb;
                bool device;
                uint32_t deadline_ms, flags;
                bool accepted;
        } rows[] = {
                { "lock", WARDEN_LOCK, true, 1, 0, true },
                { "lock for an hour", WARDEN_LOCK, true, WARDEN_DEADLINE_MOST_MS, WARDEN_FLAG_ALL, true },
                { "lock that may wait for ever", WARDEN_LOCK, true, 0, 0, false },
                { "lock for more than an hour", WARDEN_LOCK, true, WARDEN_DEADLINE_MOST_MS + 1, 0, false },
                { "lock of no device", WARDEN_LOCK, false, 1, 0, false },
                { "hold that may wait for ever", WARDEN_HOLD, true, 0, 0, false },
                { "hold of no device", WARDEN_HOLD, false, 1, 0, false },
                { "restore", WARDEN_RESTORE, true, 0, 0, true },
                { "restore to no device", WARDEN_RESTORE, false, 0, 0, false },
                { "checkpoint needs no more", WARDEN_CHECKPOINT, false, 0, 0, true },
                { "checkpoint may say more", WARDEN_CHECKPOINT, true, 5, WARDEN_FLAG_NO_STOP, true },
                { "unlock", WARDEN_UNLOCK, false, 0, 0, true },
                { "stop", WARDEN_STOP, false, 0, 0, true },
                { "cont", WARDEN_CONT, false, 0, 0, true },
                { "a flag nobody knows", WARDEN_LOCK, true, 1, WARDEN_FLAG_ALL + 1, false },
                { "freeze with a device", WARDEN_FREEZE, true, 0, 0, false },
                { "freeze with a deadline", WARDEN_FREEZE, false, 1, 0, false },
                { "freeze with a flag", WARDEN_FREEZE, false, 0, 1, false },
        };
        struct warden_message m = sample_restore(), back;
        size_t n = encoded(&m);

        (void) state;
        assert_int_equal(warden_decode(buf, n, &back, NULL), 0);
        assert_memory_equal(&m, &back, sizeof(m));
        rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                m = sample(WARDEN_ORDER);
                m.order.verb = rows[i].verb;
                m.order.signal = 0;
                m.order.device_uuid[WARDEN_UUID_SIZE - 1] = rows[i].device;
                m.order.deadline_ms = rows[i].deadline_ms;
                m.order.flags = rows[i].flags;
                row_check(rows[i].name, (warden_encode(&m, buf, sizeof(buf), &n, NULL) == 0) == rows[i].accepted);
        }
        m = sample(WARDEN_ORDER);
        m.order.bytes = 1;
        row_check("a signal with bytes", warden_encode(&m, buf, sizeof(buf), &n, NULL) == -EINVAL);
        rows_end();
}

static void reason_of_each_refusal_has_a_name_and_words(void **state)
{
        (void) state;
        for (int why = 0; why < WARDEN_WHY_N; why++) {
                assert_non_null(warden_why_name((enum warden_why) why));
                assert_true(strlen(warden_why_words((enum warden_why) why)) > 3);
                for (int other = 0; other < why; other++)
                        assert_string_not_equal(warden_why_name((enum warden_why) why),
                                                warden_why_name((enum warden_why) other));
        }
        for (int verb = WARDEN_SIGNAL; verb < WARDEN_VERB_N; verb++)
                assert_string_not_equal(warden_verb_name((enum warden_verb) verb), "unknown");
        assert_string_equal(warden_why_name((enum warden_why) 999), "unknown");
        assert_string_equal(warden_verb_name(WARDEN_VERB_NONE), "unknown");
        assert_string_equal(warden_result_name(WARDEN_FAILED), "failed");
        assert_string_equal(warden_kind_name(WARDEN_STATE), "state");
}

static bool write_one(const char *folder, const char *name, const struct warden_message *m)
{
        char path[4096];
        size_t n = encoded(m);

        (void) snprintf(path, sizeof(path), "%s/%s", folder, name);
        FILE *f = fopen(path, "we");
        return f && fwrite(buf, 1, n, f) == n && fclose(f) == 0;
}

static int write_corpus(const char *folder)
{
        const struct warden_message restore = sample_restore(), look = sample_look(), looked = sample_looked();
        bool written = write_one(folder, "restore", &restore) && write_one(folder, "look", &look) &&
                       write_one(folder, "looked", &looked);

        for (int kind = WARDEN_NOTHING + 1; kind < WARDEN_KIND_N; kind++) {
                struct warden_message m = sample((enum warden_kind) kind);
                written = written && write_one(folder, warden_kind_name((enum warden_kind) kind), &m);
        }
        return written ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(message_of_each_kind_survives_the_round_trip_and_has_one_size),
                cmocka_unit_test(message_cut_or_longer_is_malformed),
                cmocka_unit_test(message_of_another_version_is_refused_but_its_hello_is_read),
                cmocka_unit_test(field_outside_its_range_is_refused_both_ways),
                cmocka_unit_test(look_and_its_answer_end_with_a_path_and_nothing_else_does),
                cmocka_unit_test(order_that_parks_names_its_device_and_a_deadline_for_a_lock),
                cmocka_unit_test(reason_of_each_refusal_has_a_name_and_words),
        };
        const char *corpus = getenv("LESSOR_WRITE_CORPUS");

        return corpus ? write_corpus(corpus) : cmocka_run_group_tests(tests, NULL, NULL);
}
