/* SPDX-License-Identifier: Apache-2.0 */
#include "base/local_time.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/escape.h"

enum { SHOWN_MAX = 64, YEAR_MIN = 1970, YEAR_MAX = 9999 };

/* ---- the calendar ---- */

static int64_t day_of(int year, int month, int day)
{
        struct tm tm = { .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day };
        return timegm(&tm) / LOCAL_DAY_S; /* never before 1970 here */
}

static bool day_exists(int year, int month, int day)
{
        static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
        bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

        return year >= YEAR_MIN && year <= YEAR_MAX && month >= 1 && month <= 12 && day >= 1 &&
               day <= days[month - 1] + (leap && month == 2);
}

/* ---- the zone ---- */

/* How far the clock on the wall is ahead of UTC then. */
static bool offset_at(int64_t moment_s, int64_t *ret_s)
{
        struct tm tm;
        time_t moment = (time_t) moment_s;

        if (!localtime_r(&moment, &tm))
                return false;
        *ret_s = tm.tm_gmtoff;
        return true;
}

bool local_time_at(int64_t moment_s, struct local_time *ret)
{
        int64_t offset_s;

        if (moment_s < 0 || !offset_at(moment_s, &offset_s) || moment_s + offset_s < 0)
                return false;
        *ret = (struct local_time){ .day = (moment_s + offset_s) / LOCAL_DAY_S,
                                    .second = (uint32_t) ((moment_s + offset_s) % LOCAL_DAY_S) };
        return true;
}

/* The first moment of (from, to] that has not the offset of @from. */
static int64_t clock_set_at(int64_t from_s, int64_t to_s, int64_t offset_s)
{
        while (to_s - from_s > 1) {
                int64_t middle_s = from_s + (to_s - from_s) / 2, offset;
                if (offset_at(middle_s, &offset) && offset == offset_s)
                        from_s = middle_s;
                else
                        to_s = middle_s;
        }
        return to_s;
}

bool local_moment(struct local_time t, int64_t *ret_s, enum local_kind *ret_kind)
{
        int64_t shown_s = t.day * LOCAL_DAY_S + t.second, before, after, offset;

        /* A zone sets its clock at most once in two days: what holds a day before and after is all that can hold here. Zones
         * lie within 14 h of UTC, so that these are on either side of it. */
        int64_t from_s = shown_s - 2 * LOCAL_DAY_S, to_s = shown_s + 2 * LOCAL_DAY_S;
        if (from_s < 0 || !offset_at(from_s, &before) || !offset_at(to_s, &after))
                return false;
        int64_t by_before_s = shown_s - before, by_after_s = shown_s - after;
        bool is_before = offset_at(by_before_s, &offset) && offset == before;
        bool is_after = offset_at(by_after_s, &offset) && offset == after;
        if (is_before || is_after) {
                *ret_s = is_before ? by_before_s : by_after_s;
                *ret_kind = is_before && is_after && before != after ? LOCAL_TWICE : LOCAL_ONCE;
                return true;
        }
        *ret_s = clock_set_at(from_s, to_s, before);
        *ret_kind = LOCAL_LEFT_OUT;
        return true;
}

bool local_next_day(int64_t last_s, uint32_t second, int64_t now_s, int64_t *ret_s, enum local_kind *ret_kind)
{
        struct local_time last, now;

        if (!local_time_at(last_s, &last) || !local_time_at(now_s, &now))
                return false;
        struct local_time next = { .day = last.day < now.day ? now.day : last.day, .second = second };
        /* Half a day between two of them: a day that is left out whole has none, and a machine that was carried into another
         * zone has no two in one evening. */
        for (; local_moment(next, ret_s, ret_kind); next.day++)
                if (*ret_s > now_s && *ret_s > last_s + LOCAL_DAY_S / 2)
                        return true;
        return false;
}

bool local_clock_is_set_between(int64_t from_s, int64_t to_s, int64_t *ret_by_s)
{
        int64_t from, to;

        if (!offset_at(from_s, &from) || !offset_at(to_s, &to))
                return false;
        *ret_by_s = to - from;
        return to != from;
}

/* ---- text ---- */

static bool take_digits(const char **at, int n, int *ret)
{
        int value = 0;

        for (int i = 0; i < n; i++) {
                char c = (*at)[i];
                if (c < '0' || c > '9')
                        return false;
                value = 10 * value + (c - '0');
        }
        *at += n;
        *ret = value;
        return true;
}

static bool take_char(const char **at, char c)
{
        if (**at != c)
                return false;
        (*at)++;
        return true;
}

static bool take_date(const char **at, int64_t *ret_day, bool *ret_exists)
{
        int year, month, day;

        if (!take_digits(at, 4, &year) || !take_char(at, '-') || !take_digits(at, 2, &month) || !take_char(at, '-') ||
            !take_digits(at, 2, &day))
                return false;
        *ret_exists = day_exists(year, month, day);
        *ret_day = *ret_exists ? day_of(year, month, day) : 0;
        return true;
}

/* "22:00" or "22:00:15"; "7:30" too, as people write it. */
static bool take_clock(const char **at, bool people, uint32_t *ret_second)
{
        int hour, minute, second = 0;
        bool one_digit = people && (*at)[0] != '\0' && (*at)[1] == ':';

        if (!take_digits(at, one_digit ? 1 : 2, &hour) || !take_char(at, ':') || !take_digits(at, 2, &minute))
                return false;
        if (!people || **at == ':') {
                if (!take_char(at, ':') || !take_digits(at, 2, &second))
                        return false;
        }
        if (hour > 23 || minute > 59 || second > 59)
                return false;
        *ret_second = (uint32_t) (hour * 3600 + minute * 60 + second);
        return true;
}

static bool take_word(const char **at, const char *word)
{
        size_t n = strlen(word);

        if (strncmp(*at, word, n) != 0 || (*at)[n] != ' ')
                return false;
        *at += n;
        while (**at == ' ')
                (*at)++;
        return true;
}

static int no_time(const char *what, const char *text, struct error *err)
{
        char shown[SHOWN_MAX];

        return error_set(err, EINVAL,
                         "%s: \"%s\" is no time; 22:00, \"tomorrow 07:30\" or \"2026-12-01 22:00\" would be, in local "
                         "time",
                         what, text_escape(text, strlen(text), shown, sizeof(shown)));
}

int local_parse(const char *what, const char *text, int64_t now_s, int64_t *ret_s, struct local_time *ret,
                enum local_kind *ret_kind, struct error *err)
{
        char shown[SHOWN_MAX];
        const char *at = text;
        struct local_time now;
        bool exists = true, any_day = false;

        if (!local_time_at(now_s, &now))
                return error_set(err, EINVAL, "%s: the clock of this machine shows no time that could be used", what);
        ret->day = now.day;
        if (take_word(&at, "tomorrow")) {
                ret->day++;
        } else if (!take_word(&at, "today")) {
                any_day = text[0] == '\0' || strchr(text, '-') == NULL;
                if (!any_day && (!take_date(&at, &ret->day, &exists) || (!take_char(&at, ' ') && !take_char(&at, 'T'))))
                        return no_time(what, text, err);
        }
        if (!take_clock(&at, true, &ret->second) || *at != '\0')
                return no_time(what, text, err);
        if (!exists || !local_moment(*ret, ret_s, ret_kind))
                return error_set(err, EINVAL, "%s: there is no such day as in \"%s\"", what,
                                 text_escape(text, strlen(text), shown, sizeof(shown)));
        if (any_day && *ret_s <= now_s) {
                ret->day++;
                (void) local_moment(*ret, ret_s, ret_kind);
        }
        if (*ret_s <= now_s)
                return error_set(err, EINVAL, "%s: \"%s\" has passed; name a time to come", what,
                                 text_escape(text, strlen(text), shown, sizeof(shown)));
        return 0;
}

static void offset_text(int64_t offset_s, char buf[16])
{
        int64_t minutes = (offset_s < 0 ? -offset_s : offset_s) / 60;

        (void) snprintf(buf, 16, "%c%02d:%02d", offset_s < 0 ? '-' : '+', (int) (minutes / 60 % 100),
                        (int) (minutes % 60));
}

static bool split(int64_t moment_s, struct tm *tm)
{
        time_t moment = (time_t) moment_s;

        return localtime_r(&moment, tm) != NULL;
}

const char *local_text(int64_t moment_s, char buf[LOCAL_TIME_TEXT_MAX])
{
        char offset[16], clock[24], zone[12], shown[SHOWN_MAX];
        struct tm tm;

        if (!split(moment_s, &tm) || strftime(clock, sizeof(clock), "%Y-%m-%d %H:%M", &tm) == 0) {
                (void) snprintf(buf, LOCAL_TIME_TEXT_MAX, "?");
                return buf;
        }
        size_t n = strlen(clock);
        if (tm.tm_sec != 0)
                (void) snprintf(clock + n, sizeof(clock) - n, ":%02d", tm.tm_sec % 60);
        offset_text(tm.tm_gmtoff, offset);
        (void) snprintf(zone, sizeof(zone), "%s", tm.tm_zone ? tm.tm_zone : ""); /* of $TZ: anybody's text */
        (void) text_escape(zone, strlen(zone), shown, sizeof(shown));
        if (shown[0] == '\0' || strcmp(shown, "UTC") == 0 || strchr("+-<", shown[0]))
                (void) snprintf(buf, LOCAL_TIME_TEXT_MAX, "%s UTC%s", clock, offset);
        else
                (void) snprintf(buf, LOCAL_TIME_TEXT_MAX, "%s %.11s (UTC%s)", clock, shown, offset);
        return buf;
}

const char *rfc3339_local_text(int64_t moment_s, char buf[LOCAL_TIME_TEXT_MAX])
{
        char offset[16], clock[40];
        struct tm tm;

        if (!split(moment_s, &tm) || strftime(clock, sizeof(clock), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
                clock[0] = '\0';
        offset_text(tm.tm_gmtoff, offset);
        (void) snprintf(buf, LOCAL_TIME_TEXT_MAX, "%s%s", clock, offset);
        return buf;
}

/* Fractions of a second: at least one digit, of which milliseconds count. */
static bool take_fraction(const char **at, uint64_t *ret_ms)
{
        uint64_t unit = 100;

        if (**at < '0' || **at > '9')
                return false;
        for (; **at >= '0' && **at <= '9'; (*at)++, unit /= 10)
                *ret_ms += (uint64_t) (**at - '0') * unit;
        return true;
}

int rfc3339_parse(const char *text, uint64_t *ret_wall_ms)
{
        const char *at = text;
        int hours = 0, minutes = 0, sign = 0;
        uint64_t fraction_ms = 0;
        bool exists = false;
        uint32_t second;
        int64_t day;

        if (!take_date(&at, &day, &exists) || !exists || (!take_char(&at, 'T') && !take_char(&at, 't')) ||
            !take_clock(&at, false, &second))
                return -EINVAL;
        if (take_char(&at, '.') && !take_fraction(&at, &fraction_ms))
                return -EINVAL;
        if (take_char(&at, '+'))
                sign = 1;
        else if (take_char(&at, '-'))
                sign = -1;
        else if (!take_char(&at, 'Z') && !take_char(&at, 'z'))
                return -EINVAL;
        if (sign != 0 && (!take_digits(&at, 2, &hours) || !take_char(&at, ':') || !take_digits(&at, 2, &minutes) ||
                          hours > 23 || minutes > 59))
                return -EINVAL;
        int64_t moment_s = day * LOCAL_DAY_S + second - sign * (hours * 3600 + minutes * 60);
        if (*at != '\0' || moment_s < 0)
                return -EINVAL;
        *ret_wall_ms = (uint64_t) moment_s * 1000 + fraction_ms;
        return 0;
}
