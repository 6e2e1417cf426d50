/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a lease as a table, walked whole; and the words of the model as people type and read them. */
#include <stdio.h>
#include <string.h>
#include "cm.h"
#include "model/action.h"
#include "model/device.h"
#include "model/entry.h"
#include "model/holder.h"
#include "model/input.h"
#include "model/lease.h"
#include "model/reason.h"
#include "model/way_out.h"

static int rows_failed;

static int setup(void **state)
{
        (void) state;
        rows_failed = 0;
        return 0;
}

#define each_state(s) (enum lease_state s = LEASE_NONE; s < LEASE_STATE_N; s = (enum lease_state)(s + 1))
#define each_event(e) (enum lease_event e = 0; e < LEASE_EVENT_N; e = (enum lease_event)(e + 1))

static void every_state_is_reached_from_queued(void **state)
{
        (void) state;
        bool reached[LEASE_STATE_N] = { [LEASE_QUEUED] = true };

        for (int round = 0; round < LEASE_STATE_N; round++)
                for each_state(s)
                        for each_event(e)
                                if (reached[s] && lease_next(s, e) != LEASE_NONE)
                                        reached[lease_next(s, e)] = true;
        for
                each_state(s) if (s != LEASE_NONE) row_check(lease_state_name(s), reached[s]);
        rows_end();
}

static void end_is_accepted_wherever_a_lease_lives_and_exactly_once(void **state)
{
        (void) state;
        for
                each_state(s)
                {
                        enum lease_state next = lease_next(s, LEASE_EVENT_END);
                        switch (s) {
                        case LEASE_NONE:
                        case LEASE_ENDED:
                        case LEASE_DRAINING: /* a second release of one lease (I8) */
                                row_check(lease_state_name(s), next == LEASE_NONE);
                                break;
                        case LEASE_QUEUED: /* has nothing on any device */
                                row_check(lease_state_name(s), next == LEASE_ENDED);
                                break;
                        case LEASE_GRANTED:
                        case LEASE_ACTIVE:
                        case LEASE_ASKING:
                        case LEASE_HELD:
                        case LEASE_PARKED:
                        case LEASE_THAWING:
                        case LEASE_ORPHANED:
                        case LEASE_STUCK:
                        case LEASE_LOST: /* freed on paper only when it is freed in fact (F36) */
                                row_check(lease_state_name(s), next == LEASE_DRAINING);
                                break;
                        case LEASE_STATE_N:
                                break;
                        }
                }
        row_check("draining", lease_next(LEASE_DRAINING, LEASE_EVENT_MEMORY_GONE) == LEASE_ENDED);
        rows_end();
}

static void every_edge_ends_where_it_should(void **state)
{
        (void) state;
        for each_state(s)
                for each_event(e)
                {
                        enum lease_state next = lease_next(s, e);
                        if (next == LEASE_NONE)
                                continue;
                        char name[64];
                        (void) snprintf(name, sizeof(name), "%s + %s", lease_state_name(s), lease_event_name(e));
                        row_check(name, next < LEASE_STATE_N);
                        row_check(name, next != LEASE_QUEUED); /* nobody goes back into the queue */
                        row_check(name, s != LEASE_NONE && s != LEASE_ENDED);
                        row_check(name, s != LEASE_DRAINING || next == LEASE_ENDED); /* nothing leads back to life */
                        if (e == LEASE_EVENT_GRANT)
                                row_check(name, (s == LEASE_QUEUED || s == LEASE_LOST) && next == LEASE_GRANTED);
                        if (e == LEASE_EVENT_ACTIVATE)
                                row_check(name, next == LEASE_ACTIVE);
                        if (e == LEASE_EVENT_MEMORY_GONE)
                                row_check(name, next == LEASE_ENDED);
                        if (e == LEASE_EVENT_DEVICE_LOST)
                                row_check(name, next == LEASE_LOST && lease_state_holds(s));
                        if (e == LEASE_EVENT_DEVICE_BACK)
                                row_check(name, s == LEASE_LOST && next == LEASE_ACTIVE);
                        if (e == LEASE_EVENT_OWNER_GONE)
                                row_check(name, next == (s == LEASE_QUEUED ? LEASE_ENDED : LEASE_ORPHANED));
                }
        /* What this part of the core needs. */
        assert_int_equal(lease_next(LEASE_QUEUED, LEASE_EVENT_GRANT), LEASE_GRANTED);
        assert_int_equal(lease_next(LEASE_GRANTED, LEASE_EVENT_ACTIVATE), LEASE_ACTIVE);
        assert_int_equal(lease_next(LEASE_ACTIVE, LEASE_EVENT_OWNER_GONE), LEASE_ORPHANED);
        assert_int_equal(lease_next(LEASE_ACTIVE, LEASE_EVENT_DEVICE_LOST), LEASE_LOST);
        assert_int_equal(lease_next(LEASE_GRANTED, LEASE_EVENT_DEVICE_LOST), LEASE_LOST);
        assert_int_equal(lease_next(LEASE_LOST, LEASE_EVENT_DEVICE_BACK), LEASE_ACTIVE);
        /* A queued lease has no memory to be gone, a parked one's device may be lost without loss (F25). */
        assert_int_equal(lease_next(LEASE_QUEUED, LEASE_EVENT_MEMORY_GONE), LEASE_NONE);
        assert_int_equal(lease_next(LEASE_QUEUED, LEASE_EVENT_ACTIVATE), LEASE_NONE);
        assert_int_equal(lease_next(LEASE_PARKED, LEASE_EVENT_DEVICE_LOST), LEASE_NONE);
        assert_int_equal(lease_next(LEASE_ENDED, LEASE_EVENT_ACTIVATE), LEASE_NONE);
        assert_int_equal(lease_next(LEASE_DRAINING, LEASE_EVENT_ACTIVATE), LEASE_NONE);
        assert_int_equal(lease_next(LEASE_STATE_N, LEASE_EVENT_END), LEASE_NONE);
        assert_int_equal(lease_next(LEASE_ACTIVE, LEASE_EVENT_N), LEASE_NONE);
        rows_end();
}

static void states_that_count_on_a_device_are_those_between_grant_and_end(void **state)
{
        (void) state;
        for
                each_state(s)
                        row_check(lease_state_name(s),
                                  lease_state_holds(s) == (s != LEASE_NONE && s != LEASE_QUEUED && s != LEASE_ENDED));
        assert_false(lease_state_holds(LEASE_STATE_N));
        rows_end();
}

typedef const char *name_of(unsigned value);
#define NAME_OF(fn, type)                                                                                              \
        static const char *fn##_of(unsigned value)                                                                     \
        {                                                                                                              \
                return fn((type) value);                                                                               \
        }
NAME_OF(lease_state_name, enum lease_state)
NAME_OF(lease_event_name, enum lease_event)
NAME_OF(end_reason_name, enum end_reason)
NAME_OF(end_reason_text, enum end_reason)
NAME_OF(binding_kind_name, enum binding_kind)
NAME_OF(action_kind_name, enum action_kind)
NAME_OF(rule_name, enum rule)
NAME_OF(blocker_kind_name, enum blocker_kind)
NAME_OF(device_health_name, enum device_health)
NAME_OF(entry_kind_name, enum entry_kind)
NAME_OF(wait_kind_name, enum wait_kind)
NAME_OF(holder_kind_name, enum holder_kind)
NAME_OF(input_kind_name, enum input_kind)
NAME_OF(way_out_name, enum way_out_kind)

static void every_value_has_a_name_of_its_own_and_nothing_else_has(void **state)
{
        (void) state;
        static const struct {
                const char *what;
                name_of *name;
                unsigned n;
                bool machine; /* lower case and dashes, fit for JSON and metrics */
        } rows[] = {
                { "lease state", lease_state_name_of, LEASE_STATE_N, true },
                { "lease event", lease_event_name_of, LEASE_EVENT_N, true },
                { "end reason", end_reason_name_of, END_REASON_N, true },
                { "end reason for people", end_reason_text_of, END_REASON_N, false },
                { "binding", binding_kind_name_of, BINDING_KIND_N, true },
                { "action", action_kind_name_of, ACTION_KIND_N, true },
                { "rule", rule_name_of, RULE_N, true },
                { "blocker", blocker_kind_name_of, BLOCKER_KIND_N, true },
                { "device health", device_health_name_of, DEVICE_HEALTH_N, true },
                { "entry", entry_kind_name_of, ENTRY_KIND_N, true },
                { "wait", wait_kind_name_of, WAIT_KIND_N, true },
                { "holder", holder_kind_name_of, HOLDER_KIND_N, true },
                { "input", input_kind_name_of, INPUT_KIND_N, true },
                { "way out", way_out_name_of, WAY_OUT_N, true },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                for (unsigned a = 0; a < rows[i].n; a++) {
                        const char *name = rows[i].name(a);
                        row_check(rows[i].what, name != NULL && name[0] != '\0' && name[0] != '?');
                        if (!name)
                                continue;
                        if (rows[i].machine)
                                row_check(name, strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(name));
                        for (unsigned b = 0; b < a; b++)
                                row_check(name, rows[i].name(b) && strcmp(name, rows[i].name(b)) != 0);
                }
                row_check(rows[i].what, rows[i].name(rows[i].n) != NULL); /* never NULL, whatever a journal says */
                row_check(rows[i].what, rows[i].name(1000000) != NULL);
        }
        rows_end();
}

static void state_names_are_the_words_of_the_design(void **state)
{
        (void) state;
        static const char *const words[LEASE_STATE_N] = { "none",  "queued", "granted", "active",   "asking",
                                                          "held",  "parked", "thawing", "draining", "orphaned",
                                                          "stuck", "lost",   "ended" };

        for
                each_state(s) assert_string_equal(lease_state_name(s), words[s]);
}

static void lease_ids_are_printed_with_an_L_and_parsed_strictly(void **state)
{
        (void) state;
        static const struct {
                const char *text;
                bool good;
                uint64_t id;
        } rows[] = {
                { "L17", true, 17 },
                { "17", true, 17 },
                { "L1", true, 1 },
                { "18446744073709551615", true, UINT64_MAX },
                { "L18446744073709551615", true, UINT64_MAX },
                { "18446744073709551616", false, 0 },
                { "99999999999999999999999999", false, 0 },
                { "", false, 0 },
                { "L", false, 0 },
                { "0", false, 0 }, /* ids start at 1; 0 is "about no lease" */
                { "L0", false, 0 },
                { "LL17", false, 0 },
                { "-1", false, 0 },
                { "L-1", false, 0 },
                { "+1", false, 0 },
                { " 17", false, 0 },
                { "17 ", false, 0 },
                { "1 7", false, 0 },
                { "L17x", false, 0 },
                { "0x11", false, 0 },
                { "1.0", false, 0 },
                { "1e1", false, 0 },
                { "NaN", false, 0 },
                { "L\xd9\xa1", false, 0 }, /* an Arabic digit */
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                uint64_t id = 4711;
                row_check(rows[i].text, lease_id_parse(rows[i].text, &id) == rows[i].good);
                row_check(rows[i].text, id == (rows[i].good ? rows[i].id : 4711)); /* written on success only */
        }
        char buf[LEASE_ID_TEXT_MAX];
        assert_string_equal(lease_id_text(17, buf), "L17");
        assert_string_equal(lease_id_text(UINT64_MAX, buf), "L18446744073709551615");
        rows_end();
}

static void priorities_are_parsed_as_number_or_name(void **state)
{
        (void) state;
        static const char *const names[] = { "urgent", "interactive", "normal", "batch", "filler" };
        static const char *const bad[] = { "",
                                           "0",
                                           "6",
                                           "-1",
                                           "+3",
                                           "3 ",
                                           " 3",
                                           "33",
                                           "3.0",
                                           "1e0",
                                           "0x3",
                                           "NaN",
                                           "norma",
                                           "normal ",
                                           "normalx",
                                           "?",
                                           "18446744073709551619",
                                           "9223372036854775808" };

        for (uint8_t p = 1; p <= 5; p++) {
                char number[4];
                uint8_t got = 99;
                (void) snprintf(number, sizeof(number), "%u", p);
                row_check(number, priority_parse(number, &got) && got == p);
                got = 99;
                row_check(names[p - 1], priority_parse(names[p - 1], &got) && got == p);
                row_check(names[p - 1], strcmp(priority_name(p), names[p - 1]) == 0);
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                uint8_t got = 99;
                row_check(bad[i], !priority_parse(bad[i], &got) && got == 99);
        }
        assert_string_equal(priority_name(0), "?");
        assert_string_equal(priority_name(6), "?");
        assert_string_equal(priority_name(UINT32_MAX), "?");
        rows_end();
}

static void ways_out_are_parsed_as_a_list_and_the_first_bad_word_is_named(void **state)
{
        (void) state;
        static const struct {
                const char *text;
                bool good;
                uint8_t mask;
                uint32_t bad_at;
        } rows[] = {
                { "cooperate", true, WAY_OUT_BIT(WAY_OUT_COOPERATE), 0 },
                { "checkpoint", true, WAY_OUT_BIT(WAY_OUT_CHECKPOINT), 0 },
                { "release", true, WAY_OUT_BIT(WAY_OUT_RELEASE), 0 },
                { "restart", true, WAY_OUT_BIT(WAY_OUT_RESTART), 0 },
                { "kill", true, WAY_OUT_BIT(WAY_OUT_KILL), 0 },
                { "cooperate,restart", true, WAY_OUT_BIT(WAY_OUT_COOPERATE) | WAY_OUT_BIT(WAY_OUT_RESTART), 0 },
                { "kill,restart,release,checkpoint,cooperate", true, 0x1f, 0 },
                { "restart,restart", true, WAY_OUT_BIT(WAY_OUT_RESTART), 0 },
                { "", false, 0, 0 },
                { ",", false, 0, 0 },
                { ",restart", false, 0, 0 },
                { "restart,", false, 0, 8 },
                { "restart,,kill", false, 0, 8 },
                { "restart,foo", false, 0, 8 },
                { "restart, kill", false, 0, 8 },
                { "foo,restart", false, 0, 0 },
                { "restar", false, 0, 0 },
                { "restartx", false, 0, 0 },
                { "Restart", false, 0, 0 },
                { "cooperate,restart,kil", false, 0, 18 },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                uint8_t mask = 0xaa;
                uint32_t bad_at = 4711;
                row_check(rows[i].text, ways_out_parse(rows[i].text, &mask, &bad_at) == rows[i].good);
                row_check(rows[i].text, mask == (rows[i].good ? rows[i].mask : 0xaa));
                if (!rows[i].good)
                        row_check(rows[i].text, bad_at == rows[i].bad_at);
        }
        rows_end();
}

/* Whatever the figures, a sentence: never empty, never past its buffer. */
static void every_rule_has_a_sentence_that_stays_in_its_buffer(void **state)
{
        (void) state;
        struct reason reason;

        for (unsigned rule = 0; rule <= RULE_N; rule++)
                for (int fill = 0; fill < 3; fill++) {
                        memset(&reason, fill == 0 ? 0 : fill == 1 ? 0xff : 0x01, sizeof(reason));
                        reason.rule = (uint16_t) rule;
                        reason.end = fill == 1 ? UINT16_MAX : END_RELEASED;
                        for (uint32_t i = 0; i < BLOCKERS_MAX; i++)
                                reason.blockers[i].kind = (uint8_t) (fill == 1 ? 255 : i);
                        char whole[REASON_TEXT_MAX + 1];
                        memset(whole, 0x7e, sizeof(whole));
                        row_check(rule_name((enum rule) rule),
                                  reason_text(&reason, 1000, whole, REASON_TEXT_MAX) == whole);
                        row_check(rule_name((enum rule) rule), memchr(whole, '\0', REASON_TEXT_MAX) != NULL);
                        row_check(rule_name((enum rule) rule), whole[REASON_TEXT_MAX] == 0x7e);
                        row_check(rule_name((enum rule) rule), rule == RULE_NONE || rule == RULE_N || whole[0] != '\0');
                        static const size_t sizes[] = { 1, 2, 3, 7, 40 };
                        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
                                char small[64];
                                memset(small, 0x7e, sizeof(small));
                                (void) reason_text(&reason, 1000, small, sizes[i]);
                                row_check(rule_name((enum rule) rule), memchr(small, '\0', sizes[i]) != NULL);
                                row_check(rule_name((enum rule) rule), small[sizes[i]] == 0x7e);
                        }
                }
        rows_end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(every_state_is_reached_from_queued, setup),
                cmocka_unit_test_setup(end_is_accepted_wherever_a_lease_lives_and_exactly_once, setup),
                cmocka_unit_test_setup(every_edge_ends_where_it_should, setup),
                cmocka_unit_test_setup(states_that_count_on_a_device_are_those_between_grant_and_end, setup),
                cmocka_unit_test_setup(every_value_has_a_name_of_its_own_and_nothing_else_has, setup),
                cmocka_unit_test_setup(state_names_are_the_words_of_the_design, setup),
                cmocka_unit_test_setup(lease_ids_are_printed_with_an_L_and_parsed_strictly, setup),
                cmocka_unit_test_setup(priorities_are_parsed_as_number_or_name, setup),
                cmocka_unit_test_setup(ways_out_are_parsed_as_a_list_and_the_first_bad_word_is_named, setup),
                cmocka_unit_test_setup(every_rule_has_a_sentence_that_stays_in_its_buffer, setup),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
