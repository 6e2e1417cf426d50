/* SPDX-License-Identifier: Apache-2.0 */
/* What is said about parking, and ways out that are refused when they are named. */
#include <string.h>
#include "api/lease_json.h"
#include "api/park_json.h"
#include "api/unfit.h"
#include "cm.h"
#include "model/lease.h"

static void parking_takes_a_time_or_a_rehearsal_and_not_both(void **state)
{
        static const struct {
                const char *body, *field;
        } wrong[] = { { "{\"for\":\"1h\",\"for_ms\":1}", "for_ms" },
                      { "{\"for\":60}", "for" },
                      { "{\"for_ms\":0}", "for_ms" },
                      { "{\"rehearse\":true,\"for\":\"1h\"}", "rehearse" },
                      { "{\"rehearse\":1}", "rehearse" },
                      { "{\"keep_alive\":\"5m\"}", "keep_alive" } };
        struct park_call call;
        struct problem p;
        (void) state;
        assert_int_equal(park_json_parse("", 0, &call, &p), 0);
        assert_true(call.what == PARK_CALL_PARK && call.for_ms == 0);
        assert_int_equal(park_json_parse("{\"for\":\"2h\"}", 12, &call, &p), 0);
        assert_true(call.what == PARK_CALL_PARK && call.for_ms == 7200000);
        assert_int_equal(park_json_parse("{\"rehearse\":true,\"for\":null}", 28, &call, &p), 0);
        assert_int_equal(call.what, PARK_CALL_REHEARSE);
        assert_int_equal(park_json_parse("{\"rehearse\":false}", 18, &call, &p), 0);
        assert_int_equal(call.what, PARK_CALL_PARK);
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                assert_int_equal(park_json_parse(wrong[i].body, strlen(wrong[i].body), &call, &p), -1);
                assert_string_equal(p.field, wrong[i].field);
        }
        assert_int_equal(park_json_parse("[1]", 3, &call, &p), -1);
}

static void idle_takes_how_long_the_program_keeps_it(void **state)
{
        struct park_call call;
        struct problem p;
        (void) state;
        assert_int_equal(idle_json_parse("{}", 2, &call, &p), 0);
        assert_true(call.what == PARK_CALL_IDLE && call.keep_alive_ms == 0);
        assert_int_equal(idle_json_parse("{\"keep_alive\":\"5m\"}", 19, &call, &p), 0);
        assert_int_equal(call.keep_alive_ms, 300000);
        assert_int_equal(idle_json_parse("{\"keep_alive_ms\":1,\"keep_alive\":\"5m\"}", 37, &call, &p), -1);
        assert_string_equal(p.field, "keep_alive_ms");
        assert_int_equal(idle_json_parse("{\"for\":\"5m\"}", 12, &call, &p), -1);
        assert_string_equal(p.field, "for");
}

static void filler_is_of_the_least_priority_and_of_no_other(void **state)
{
        static const char good[] = "{\"bytes\":1,\"filler\":true,\"no_stop\":true}",
                          same[] = "{\"bytes\":1,\"filler\":true,"
                                   "\"priority\":\"filler\"}";
        static const char other[] = "{\"bytes\":1,\"filler\":true,\"priority\":3}";
        struct lease_ask ask;
        struct problem p;
        (void) state;
        assert_int_equal(lease_json_parse(good, sizeof(good) - 1, &ask, &p), 0);
        assert_true(ask.request.filler && ask.request.no_stop && ask.request.priority == PRIORITY_FILLER);
        assert_int_equal(lease_json_parse(same, sizeof(same) - 1, &ask, &p), 0);
        assert_int_equal(lease_json_parse(other, sizeof(other) - 1, &ask, &p), -1);
        assert_string_equal(p.field, "priority");
}

static void way_out_that_would_not_do_is_refused_when_it_is_named(void **state)
{
        enum { COOPERATE = WAY_OUT_BIT(WAY_OUT_COOPERATE), CHECKPOINT = WAY_OUT_BIT(WAY_OUT_CHECKPOINT) };
        enum { RESTART = WAY_OUT_BIT(WAY_OUT_RESTART) };
        static const struct {
                const char *name;
                uint8_t named, binding;
                bool managed, adopt, filler, only_mig, heard;
                int unfit; /* -1: none */
        } cases[] = {
                { "managed checkpoint", CHECKPOINT, BINDING_PROCESS, .managed = true, .unfit = WAY_OUT_CHECKPOINT },
                { "managed restart", RESTART, BINDING_PROCESS, .managed = true, .unfit = -1 },
                { "checkpoint", CHECKPOINT, BINDING_CONNECTION, .unfit = -1 },
                { "MIG checkpoint", CHECKPOINT | RESTART, BINDING_PROCESS, .only_mig = true,
                  .unfit = WAY_OUT_CHECKPOINT },
                { "MIG restart", RESTART, BINDING_PROCESS, .only_mig = true, .unfit = -1 },
                { "connection restart", RESTART, BINDING_CONNECTION, .unfit = WAY_OUT_RESTART },
                { "connection filler", 0, BINDING_CONNECTION, .filler = true, .unfit = WAY_OUT_RESTART },
                { "connection filler that names", CHECKPOINT, BINDING_CONNECTION, .filler = true, .unfit = -1 },
                { "filler", 0, BINDING_PROCESS, .filler = true, .unfit = -1 },
                { "heartbeat restart", RESTART, BINDING_HEARTBEAT, .unfit = -1 },
                { "adopted restart", RESTART, BINDING_PROCESS, .adopt = true, .heard = true, .unfit = WAY_OUT_RESTART },
                { "adopted cooperate", COOPERATE, BINDING_PROCESS, .adopt = true, .unfit = WAY_OUT_COOPERATE },
                { "adopted by its parent", COOPERATE, BINDING_PROCESS, .adopt = true, .heard = true, .unfit = -1 },
                { "cooperate", COOPERATE, BINDING_CONNECTION, .heard = true, .unfit = -1 },
                { "nothing", 0, BINDING_CONNECTION, .managed = true, .only_mig = true, .unfit = -1 },
        };
        (void) state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct request r = { .managed = cases[i].managed,
                                     .adopt = cases[i].adopt,
                                     .filler = cases[i].filler,
                                     .ways.named = cases[i].named,
                                     .binding.kind = cases[i].binding };
                struct unfit_facts facts = { .only_mig = cases[i].only_mig, .heard = cases[i].heard };
                struct unfit unfit = { .way = WAY_OUT_N };
                bool found = unfit_find(&r, &facts, &unfit);
                if (found != (cases[i].unfit >= 0) || (found && unfit.way != cases[i].unfit))
                        fail_msg("%s: %d", cases[i].name, unfit.way);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(parking_takes_a_time_or_a_rehearsal_and_not_both),
                cmocka_unit_test(idle_takes_how_long_the_program_keeps_it),
                cmocka_unit_test(filler_is_of_the_least_priority_and_of_no_other),
                cmocka_unit_test(way_out_that_would_not_do_is_refused_when_it_is_named),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
