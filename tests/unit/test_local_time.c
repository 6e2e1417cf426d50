/* SPDX-License-Identifier: Apache-2.0 */
/* Times as people say them, where the clock is set, and what is due each day. Zones as rules of their own: no database. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/local_time.h"
#include "cm.h"

#define BERLIN "CET-1CEST,M3.5.0,M10.5.0/3"              /* 29 March 2026 02:00 → 03:00, 25 October 03:00 → 02:00 */
#define NEW_YORK "EST5EDT,M3.2.0,M11.1.0"                /* 8 March 02:00 → 03:00, 1 November 02:00 → 01:00 */
#define LORD_HOWE "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0" /* by half an hour: 4 October 02:00 → 02:30, 5 April */
#define KATHMANDU "<+0545>-5:45"

static void zone(const char *tz)
{
        assert_int_equal(setenv("TZ", tz, 1), 0);
        tzset();
}

/* "2026-03-29T01:00:00Z" */
static int64_t utc(const char *text)
{
        uint64_t ms = 0;

        if (rfc3339_parse(text, &ms) < 0)
                fail_msg("%s is no time", text);
        return (int64_t) (ms / 1000);
}

static const struct {
        const char *name, *tz, *now, *text, *moment;
        enum local_kind kind;
} said[] = {
        { "later today", BERLIN, "2026-11-30T12:00:00Z", "22:00", "2026-11-30T21:00:00Z", LOCAL_ONCE },
        { "has passed: tomorrow", BERLIN, "2026-11-30T12:00:00Z", "07:30", "2026-12-01T06:30:00Z", LOCAL_ONCE },
        { "this very moment: tomorrow", BERLIN, "2026-11-30T21:00:00Z", "22:00", "2026-12-01T21:00:00Z", LOCAL_ONCE },
        { "one digit", BERLIN, "2026-11-30T12:00:00Z", "7:30", "2026-12-01T06:30:00Z", LOCAL_ONCE },
        { "with seconds", BERLIN, "2026-11-30T12:00:00Z", "22:00:15", "2026-11-30T21:00:15Z", LOCAL_ONCE },
        { "today", BERLIN, "2026-11-30T12:00:00Z", "today 22:00", "2026-11-30T21:00:00Z", LOCAL_ONCE },
        { "tomorrow", BERLIN, "2026-11-30T12:00:00Z", "tomorrow 07:30", "2026-12-01T06:30:00Z", LOCAL_ONCE },
        { "tomorrow, late at night", BERLIN, "2026-11-30T23:30:00Z", "tomorrow 07:30", "2026-12-02T06:30:00Z",
          LOCAL_ONCE },
        { "a day", BERLIN, "2026-11-30T12:00:00Z", "2026-12-31 23:59", "2026-12-31T22:59:00Z", LOCAL_ONCE },
        { "a day with T", BERLIN, "2026-11-30T12:00:00Z", "2026-12-01T22:00", "2026-12-01T21:00:00Z", LOCAL_ONCE },
        { "29 February", "UTC", "2026-11-30T12:00:00Z", "2028-02-29 00:00", "2028-02-29T00:00:00Z", LOCAL_ONCE },
        { "left out", BERLIN, "2026-03-28T12:00:00Z", "tomorrow 02:30", "2026-03-29T01:00:00Z", LOCAL_LEFT_OUT },
        { "left out, its beginning", BERLIN, "2026-03-28T12:00:00Z", "tomorrow 02:00", "2026-03-29T01:00:00Z",
          LOCAL_LEFT_OUT },
        { "before it", BERLIN, "2026-03-28T12:00:00Z", "tomorrow 01:59", "2026-03-29T00:59:00Z", LOCAL_ONCE },
        { "behind it", BERLIN, "2026-03-28T12:00:00Z", "tomorrow 03:00", "2026-03-29T01:00:00Z", LOCAL_ONCE },
        { "that evening", BERLIN, "2026-03-28T12:00:00Z", "tomorrow 22:00", "2026-03-29T20:00:00Z", LOCAL_ONCE },
        { "twice", BERLIN, "2026-10-24T12:00:00Z", "tomorrow 02:30", "2026-10-25T00:30:00Z", LOCAL_TWICE },
        { "twice, its end", BERLIN, "2026-10-24T12:00:00Z", "tomorrow 03:00", "2026-10-25T02:00:00Z", LOCAL_ONCE },
        { "twice, and the first has passed", BERLIN, "2026-10-25T00:45:00Z", "02:30", "2026-10-26T01:30:00Z",
          LOCAL_ONCE },
        { "west of UTC", NEW_YORK, "2026-03-07T12:00:00Z", "2026-03-08 02:30", "2026-03-08T07:00:00Z", LOCAL_LEFT_OUT },
        { "west of UTC, twice", NEW_YORK, "2026-10-31T12:00:00Z", "2026-11-01 01:30", "2026-11-01T05:30:00Z",
          LOCAL_TWICE },
        { "by half an hour", LORD_HOWE, "2026-10-01T12:00:00Z", "2026-10-04 02:15", "2026-10-03T15:30:00Z",
          LOCAL_LEFT_OUT },
        { "by half an hour, twice", LORD_HOWE, "2026-04-01T12:00:00Z", "2026-04-05 01:45", "2026-04-04T14:45:00Z",
          LOCAL_TWICE },
        { "a quarter of an hour off", KATHMANDU, "2026-11-30T12:00:00Z", "22:00", "2026-11-30T16:15:00Z", LOCAL_ONCE },
};

static void time_as_people_say_it_is_one_moment_also_where_the_clock_is_set(void **state)
{
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
                enum local_kind kind = LOCAL_ONCE;
                struct local_time t;
                int64_t moment = 0;
                zone(said[i].tz);
                row_check(said[i].name,
                          local_parse("--at", said[i].text, utc(said[i].now), &moment, &t, &kind, NULL) == 0);
                row_check(said[i].name, moment == utc(said[i].moment));
                row_check(said[i].name, kind == said[i].kind);
        }
        rows_end();
}

static void text_that_is_no_time_to_come_is_refused_with_what_would_be(void **state)
{
        static const struct {
                const char *text, *says;
        } bad[] = {
                { "", "22:00" },
                { "ten", "22:00" },
                { "24:00", "22:00" },
                { "22:60", "22:00" },
                { "22", "22:00" },
                { "22:00 ", "22:00" },
                { "22:0", "22:00" },
                { "2200", "22:00" },
                { "-1:00", "22:00" },
                { "+3h", "22:00" },
                { "tomorrow", "22:00" },
                { "tomorrow22:00", "22:00" },
                { "yesterday 22:00", "22:00" },
                { "22:00+01:00", "22:00" },
                { "2026-12-01", "22:00" },
                { "2026-12-01 22:00 CET", "22:00" },
                { "26-12-01 22:00", "22:00" },
                { "2026-02-29 22:00", "no such day" },
                { "2026-13-01 22:00", "no such day" },
                { "2026-00-10 22:00", "no such day" },
                { "2026-12-32 22:00", "no such day" },
                { "2026-11-30 12:59", "has passed" },
                { "today 07:30", "has passed" },
                { "1970-01-01 00:00", "no such day" },
        };
        int rows_failed = 0;
        (void) state;
        zone(BERLIN);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                struct error err = { 0 };
                enum local_kind kind;
                struct local_time t;
                int64_t moment;
                row_check(bad[i].text, local_parse("--at", bad[i].text, utc("2026-11-30T12:00:00Z"), &moment, &t, &kind,
                                                   &err) == -EINVAL);
                row_check(bad[i].text, strstr(err.msg, bad[i].says) && strstr(err.msg, "--at"));
        }
        rows_end();
}

/* What becomes of a daily one over the days on which the clock is set; @last, and then each after the one before. */
static const struct {
        const char *name, *tz, *last, *clock, *due[3];
} daily[] = {
        { "over spring, in the evening",
          BERLIN,
          "2026-03-27T21:00:00Z",
          "22:00:00",
          { "2026-03-28T21:00:00Z", "2026-03-29T20:00:00Z", "2026-03-30T20:00:00Z" } },
        { "over autumn, in the evening",
          BERLIN,
          "2026-10-23T20:00:00Z",
          "22:00:00",
          { "2026-10-24T20:00:00Z", "2026-10-25T21:00:00Z", "2026-10-26T21:00:00Z" } },
        { "02:30 where it is left out: at 03:00, and at 02:30 again",
          BERLIN,
          "2026-03-27T01:30:00Z",
          "02:30:00",
          { "2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z" } },
        { "02:30 where it is twice: the first, once",
          BERLIN,
          "2026-10-23T00:30:00Z",
          "02:30:00",
          { "2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z" } },
        { "west of UTC",
          NEW_YORK,
          "2026-03-07T07:30:00Z",
          "02:30:00",
          { "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z", "2026-03-10T06:30:00Z" } },
        { "by half an hour",
          LORD_HOWE,
          "2026-10-02T15:45:00Z",
          "02:15:00",
          { "2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z", "2026-10-05T15:15:00Z" } },
        { "at midnight, over a year's end",
          "UTC",
          "2026-12-30T00:00:00Z",
          "00:00:00",
          { "2026-12-31T00:00:00Z", "2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z" } },
};

static uint32_t second_of(const char *clock)
{
        return (uint32_t) (((clock[0] - '0') * 10 + clock[1] - '0') * 3600 +
                           ((clock[3] - '0') * 10 + clock[4] - '0') * 60 + (clock[6] - '0') * 10 + clock[7] - '0');
}

static void daily_one_is_due_once_a_day_at_its_local_time(void **state)
{
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(daily) / sizeof(daily[0]); i++) {
                int64_t last = utc(daily[i].last);
                zone(daily[i].tz);
                for (size_t k = 0; k < 3; k++) {
                        enum local_kind kind;
                        int64_t next = 0;
                        row_check(daily[i].name, local_next_day(last, second_of(daily[i].clock), last, &next, &kind));
                        row_check(daily[i].name, next == utc(daily[i].due[k]));
                        last = next;
                }
        }
        rows_end();
}

static void daily_one_whose_days_passed_is_due_at_the_next_to_come(void **state)
{
        enum local_kind kind;
        int64_t next = 0;
        (void) state;
        zone(BERLIN);
        assert_true(local_next_day(utc("2026-11-20T21:00:00Z"), 22 * 3600, utc("2026-11-30T12:00:00Z"), &next, &kind));
        assert_int_equal(next, utc("2026-11-30T21:00:00Z"));
        assert_true(local_next_day(utc("2026-11-20T21:00:00Z"), 22 * 3600, utc("2026-11-30T21:00:00Z"), &next, &kind));
        assert_int_equal(next, utc("2026-12-01T21:00:00Z"));
        /* made in another zone, hours ago: not once more the same evening */
        assert_true(local_next_day(utc("2026-11-30T16:15:00Z"), 22 * 3600, utc("2026-11-30T16:15:01Z"), &next, &kind));
        assert_int_equal(next, utc("2026-12-01T21:00:00Z"));
}

/* As Samoa, which went to the other side of the date line: its 30 December 2011 was none. */
static void daily_one_is_left_out_with_its_day(void **state)
{
        enum local_kind kind;
        int64_t next = 0;
        (void) state;
        zone("AAA-0BBB-24,M3.5.0,M10.5.0"); /* 29 March 2026 02:00 → 30 March 02:00 */
        assert_true(local_next_day(utc("2026-03-28T22:00:00Z"), 22 * 3600, utc("2026-03-28T22:00:00Z"), &next, &kind));
        assert_int_equal(next, utc("2026-03-29T22:00:00Z")); /* the evening of the 30th */
}

static void moment_is_shown_with_its_zone_and_offset(void **state)
{
        static const struct {
                const char *tz, *moment, *people, *programs;
        } rows[] = {
                { BERLIN, "2026-12-01T21:00:00Z", "2026-12-01 22:00 CET (UTC+01:00)", "2026-12-01T22:00:00+01:00" },
                { BERLIN, "2026-07-01T20:00:05Z", "2026-07-01 22:00:05 CEST (UTC+02:00)", "2026-07-01T22:00:05+02:00" },
                { NEW_YORK, "2026-12-01T21:00:00Z", "2026-12-01 16:00 EST (UTC-05:00)", "2026-12-01T16:00:00-05:00" },
                { KATHMANDU, "2026-12-01T21:00:00Z", "2026-12-02 02:45 UTC+05:45", "2026-12-02T02:45:00+05:45" },
                { "UTC", "2026-12-01T21:00:00Z", "2026-12-01 21:00 UTC+00:00", "2026-12-01T21:00:00+00:00" },
        };
        char text[LOCAL_TIME_TEXT_MAX];
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                zone(rows[i].tz);
                row_check(rows[i].people, strcmp(local_text(utc(rows[i].moment), text), rows[i].people) == 0);
                row_check(rows[i].people, strcmp(rfc3339_local_text(utc(rows[i].moment), text), rows[i].programs) == 0);
                row_check(rows[i].people, utc(text) == utc(rows[i].moment));
        }
        rows_end();
}

static void clock_that_is_set_in_between_is_known_with_by_how_much(void **state)
{
        int64_t by = 0;
        (void) state;
        zone(BERLIN);
        assert_true(local_clock_is_set_between(utc("2026-03-28T12:00:00Z"), utc("2026-03-29T12:00:00Z"), &by));
        assert_int_equal(by, 3600);
        assert_true(local_clock_is_set_between(utc("2026-10-24T12:00:00Z"), utc("2026-10-25T12:00:00Z"), &by));
        assert_int_equal(by, -3600);
        assert_false(local_clock_is_set_between(utc("2026-11-24T12:00:00Z"), utc("2026-11-25T12:00:00Z"), &by));
}

static void time_of_a_program_has_an_offset_or_is_none(void **state)
{
        static const struct {
                const char *text;
                uint64_t ms;
        } good[] = {
                { "2026-12-01T22:00:00+01:00", UINT64_C(1796158800000) },
                { "2026-12-01T21:00:00Z", UINT64_C(1796158800000) },
                { "2026-12-01t21:00:00z", UINT64_C(1796158800000) },
                { "2026-12-01T16:00:00.250-05:00", UINT64_C(1796158800250) },
                { "2026-12-01T21:00:00.2504999Z", UINT64_C(1796158800250) },
                { "1970-01-01T00:00:00Z", 0 },
        };
        static const char *const bad[] = {
                "2026-12-01T22:00:00",
                "2026-12-01 22:00:00Z",
                "22:00",
                "2026-12-01T22:00Z",
                "2026-12-01T22:00:00+1:00",
                "2026-12-01T22:00:00+0100",
                "2026-12-01T22:00:00.Z",
                "2026-12-01T22:00:60Z",
                "2026-02-29T22:00:00Z",
                "1970-01-01T00:00:00+01:00",
                "2026-12-01T22:00:00Z ",
                "1969-12-31T22:00:00Z",
                "",
                "2026-12-01T22:00:00+24:00",
                "tomorrow",
        };
        int rows_failed = 0;
        (void) state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                uint64_t ms = 7;
                row_check(good[i].text, rfc3339_parse(good[i].text, &ms) == 0 && ms == good[i].ms);
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                uint64_t ms = 7;
                row_check(bad[i], rfc3339_parse(bad[i], &ms) == -EINVAL && ms == 7);
        }
        rows_end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(time_as_people_say_it_is_one_moment_also_where_the_clock_is_set),
                cmocka_unit_test(text_that_is_no_time_to_come_is_refused_with_what_would_be),
                cmocka_unit_test(daily_one_is_due_once_a_day_at_its_local_time),
                cmocka_unit_test(daily_one_whose_days_passed_is_due_at_the_next_to_come),
                cmocka_unit_test(daily_one_is_left_out_with_its_day),
                cmocka_unit_test(moment_is_shown_with_its_zone_and_offset),
                cmocka_unit_test(clock_that_is_set_in_between_is_known_with_by_how_much),
                cmocka_unit_test(time_of_a_program_has_an_offset_or_is_none),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
