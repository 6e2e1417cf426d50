/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Times as people say them, in the zone of this process ($TZ, else /etc/localtime), and as programs write them (RFC 3339).
 *
 * Where the clock is set, a time of day may be there twice or not at all. Here it is always one moment: of two the first;
 * one that is left out is the moment at which it is left out (02:30, where the clock goes from 02:00 to 03:00, is 03:00).
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

enum { LOCAL_TIME_TEXT_MAX = 80, LOCAL_DAY_S = 86400 };

enum local_kind {
        LOCAL_ONCE,
        LOCAL_TWICE,   /* the first of two moments */
        LOCAL_LEFT_OUT /* the moment the clock is set */
};

/* A day of the calendar: days since 1970-01-01. Day and second of the day, as the clock on the wall shows them. */
struct local_time {
        int64_t day;
        uint32_t second;
};

/* The clock on the wall at that moment. False: a year that no calendar here goes to. */
bool local_time_at(int64_t moment_s, struct local_time *ret);
/* The moment at which it shows that. False likewise. */
bool local_moment(struct local_time t, int64_t *ret_s, enum local_kind *ret_kind);
/*
 * When what is done each day at @second is due next, behind a day on which it was due at @last_s: the day after, or the first
 * one after @now_s where that has passed.
 */
bool local_next_day(int64_t last_s, uint32_t second, int64_t now_s, int64_t *ret_s, enum local_kind *ret_kind);
/* Is the clock set between the two moments? @ret_by_s: by how much, forward is positive. */
bool local_clock_is_set_between(int64_t from_s, int64_t to_s, int64_t *ret_by_s);
/*
 * "22:00", "07:30:15": today, or tomorrow where that has passed; "today 22:00", "tomorrow 07:30", "2026-12-01 22:00" (or with a
 * T between). -EINVAL with words: not such a text, no such day, or in the past.
 */
int local_parse(const char *what, const char *text, int64_t now_s, int64_t *ret_s, struct local_time *ret,
                enum local_kind *ret_kind, struct error *err);
/* "2026-12-01 22:00 CET (UTC+01:00)", with seconds where there are any. Returns @buf. */
const char *local_text(int64_t moment_s, char buf[LOCAL_TIME_TEXT_MAX]);

/* "2026-12-01T22:00:00+01:00", "2026-12-01T21:00:00.250Z": a date, a time and an offset, all of it. -EINVAL without words: the
 * caller knows the field. */
int rfc3339_parse(const char *text, uint64_t *ret_wall_ms);
/* The former of the two, in local time. Returns @buf. */
const char *rfc3339_local_text(int64_t moment_s, char buf[LOCAL_TIME_TEXT_MAX]);
