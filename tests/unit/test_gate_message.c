/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/gate.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"

static int rows_failed;

/* One full example of each kind; also what `LESSOR_WRITE_CORPUS=DIR test_gate_message` writes as fuzz seeds. */
static struct gate_message sample(enum gate_kind kind)
{
        struct gate_message m = { .kind = kind };

        switch (kind) {
        case GATE_HELLO:
                m.hello = (struct gate_hello){ .version = GATE_VERSION, .program = "0.1.0" };
                break;
        case GATE_ALLOW:
                m.allow = (struct gate_allow){
                        .lease_id = 17, .cgroup_id = 4242, .pid = 4711, .start_ticks = 123456, .owner_uid = 1000
                };
                break;
        case GATE_ANSWER:
                m.answer = (struct gate_answer){
                        .lease_id = 17, .result = GATE_BLOCKED, .why = GATE_WHY_SYSTEM, .error = EPERM
                };
                break;
        case GATE_FORGET:
                m.lease_id = 17;
                break;
        case GATE_SET:
                m.mode = GATE_ON;
                break;
        case GATE_PING:
                m.nonce = 12;
                break;
        case GATE_STATE:
                m.state = (struct gate_state){
                        .nonce = 12, .mode = GATE_LOG, .n_cgroups = 2, .n_leases = 3, .refused = 5, .last_uid = 1001
                };
                break;
        case GATE_NOTHING:
        case GATE_KIND_N:
                fail();
        }
        return m;
}

static uint8_t buf[GATE_MESSAGE_MAX + 1];

static size_t encoded(const struct gate_message *m)
{
        struct error err = { 0 };
        size_t n = 0;

        if (gate_encode(m, buf, sizeof(buf), &n, &err) < 0)
                fail_msg("%s", err.msg);
        return n;
}

static void message_of_each_kind_survives_the_round_trip_and_has_one_size(void **state)
{
        static const size_t sizes[GATE_KIND_N] = {
                [GATE_HELLO] = 36, [GATE_ALLOW] = 36,  [GATE_FORGET] = 12, [GATE_SET] = 8,
                [GATE_PING] = 12,  [GATE_ANSWER] = 24, [GATE_STATE] = 36,
        };
        (void) state;
        for (int kind = GATE_NOTHING + 1; kind < GATE_KIND_N; kind++) {
                struct gate_message m = sample((enum gate_kind) kind), back;
                size_t n = encoded(&m);
                assert_int_equal(n, sizes[kind]);
                assert_int_equal(gate_decode(buf, n, &back, NULL), 0);
                assert_memory_equal(&m, &back, sizeof(m));
        }
}

static void message_cut_or_longer_is_malformed(void **state)
{
        (void) state;
        for (int kind = GATE_NOTHING + 1; kind < GATE_KIND_N; kind++) {
                struct gate_message m = sample((enum gate_kind) kind), back;
                size_t n = encoded(&m);
                buf[n] = 0;
                for (size_t cut = 0; cut <= n + 1; cut++) {
                        if (cut == n)
                                continue;
                        assert_int_equal(gate_decode(buf, cut, &back, NULL), -EBADMSG);
                        assert_int_equal(back.kind, GATE_NOTHING);
                }
        }
}

static void message_of_another_version_is_refused_but_its_hello_is_read(void **state)
{
        struct gate_message m = sample(GATE_ALLOW), back;
        struct error err = { 0 };
        size_t n = encoded(&m);

        (void) state;
        buf[0] = GATE_VERSION + 1;
        assert_int_equal(gate_decode(buf, n, &back, &err), -EPROTONOSUPPORT);
        assert_string_equal(err.msg, "gate message has version 2, this program speaks 1");
        m = sample(GATE_HELLO);
        n = encoded(&m);
        buf[0] = 77;
        assert_int_equal(gate_decode(buf, n, &back, &err), 0);
        assert_int_equal(back.hello.version, 77);
        assert_string_equal(back.hello.program, "0.1.0");
}

static void field_outside_its_range_is_refused_both_ways(void **state)
{
        const uint32_t nobody = UINT32_MAX;
        const struct {
                const char *name;
                enum gate_kind kind;
                size_t at; /* of the field in the bytes, 4 bytes wide */
                uint32_t value;
        } rows[] = {
                { "a lease without an id", GATE_ALLOW, 4, 0 },
                { "a negative pid", GATE_ALLOW, 20, nobody },
                { "a start without a process", GATE_ALLOW, 20, 0 },
                { "no owner", GATE_ALLOW, 32, nobody },
                { "forget without an id", GATE_FORGET, 4, 0 },
                { "a mode nobody knows", GATE_SET, 4, GATE_MODE_N },
                { "ping without a nonce", GATE_PING, 4, 0 },
                { "a result nobody knows", GATE_ANSWER, 12, GATE_RESULT_N },
                { "done with a reason against it", GATE_ANSWER, 12, GATE_DONE },
                { "blocked without a reason", GATE_ANSWER, 16, GATE_WHY_NONE },
                { "blocked where nobody stops it", GATE_ANSWER, 16, GATE_WHY_OUTSIDE },
                { "a reason nobody knows", GATE_ANSWER, 16, GATE_WHY_N },
                { "no errno of Linux", GATE_ANSWER, 20, 4096 },
                { "a state of no ping", GATE_STATE, 4, 0 },
                { "a state in no mode", GATE_STATE, 12, GATE_MODE_N },
                { "more cgroups than there may be", GATE_STATE, 16, UINT16_MAX + 1 },
        };

        (void) state;
        rows_failed = 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct gate_message m = sample(rows[i].kind), back;
                struct error err = { 0 };
                size_t n = encoded(&m);
                for (size_t k = 0; k < 4; k++)
                        buf[rows[i].at + k] = (uint8_t) (rows[i].value >> (8 * k));
                row_check(rows[i].name, gate_decode(buf, n, &back, &err) == -EBADMSG && err.msg[0]);
                row_check(rows[i].name, back.kind == GATE_NOTHING);
        }
        rows_end();

        struct gate_message m = sample(GATE_ALLOW);
        size_t n = 0;
        m.allow.cgroup_id = m.allow.pid = 0;
        assert_int_equal(gate_encode(&m, buf, sizeof(buf), &n, NULL), -EINVAL); /* of nobody */
        m = sample(GATE_ALLOW);
        m.allow.pid = 0;
        m.allow.start_ticks = 0;
        assert_int_equal(gate_encode(&m, buf, sizeof(buf), &n, NULL), 0); /* a folder alone */
        assert_int_equal(gate_encode(&m, buf, 10, &n, NULL), -EMSGSIZE);
        m = sample(GATE_HELLO);
        memset(m.hello.program, 'x', sizeof(m.hello.program));
        assert_int_equal(gate_encode(&m, buf, sizeof(buf), &n, NULL), -EINVAL);
}

static void reason_of_each_refusal_has_a_name_and_words(void **state)
{
        (void) state;
        for (int why = 0; why < GATE_WHY_N; why++) {
                assert_true(strlen(gate_why_words((enum gate_why) why)) > 3);
                for (int other = 0; other < why; other++)
                        assert_string_not_equal(gate_why_name((enum gate_why) why),
                                                gate_why_name((enum gate_why) other));
        }
        assert_string_equal(gate_why_name((enum gate_why) 999), "unknown");
        assert_string_equal(gate_mode_name(GATE_LOG), "log");
        assert_string_equal(gate_result_name(GATE_FAILED), "failed");
        assert_string_equal(gate_kind_name(GATE_STATE), "state");
}

static int write_corpus(const char *folder)
{
        for (int kind = GATE_NOTHING + 1; kind < GATE_KIND_N; kind++) {
                struct gate_message m = sample((enum gate_kind) kind);
                char path[4096];
                size_t n = encoded(&m);

                (void) snprintf(path, sizeof(path), "%s/%s", folder, gate_kind_name((enum gate_kind) kind));
                FILE *f = fopen(path, "we");
                if (!f || fwrite(buf, 1, n, f) != n || fclose(f) != 0)
                        return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(message_of_each_kind_survives_the_round_trip_and_has_one_size),
                cmocka_unit_test(message_cut_or_longer_is_malformed),
                cmocka_unit_test(message_of_another_version_is_refused_but_its_hello_is_read),
                cmocka_unit_test(field_outside_its_range_is_refused_both_ways),
                cmocka_unit_test(reason_of_each_refusal_has_a_name_and_words),
        };
        const char *corpus = getenv("LESSOR_WRITE_CORPUS");

        return corpus ? write_corpus(corpus) : cmocka_run_group_tests(tests, NULL, NULL);
}
