/* SPDX-License-Identifier: Apache-2.0 */
#include "api/told_json.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/escape.h"
#include "model/lease.h"

enum { TIME_TEXT_MAX = 64 };

/* ---- words ---- */

static json_t *number(uint64_t n)
{
        return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t) n);
}

static json_t *number_or_null(bool known, uint64_t n)
{
        return known ? number(n) : json_null();
}

/* Names come from strangers: what is no text in UTF-8 is written as what it is made of. */
static json_t *text_or_null(const char *text)
{
        char safe[4 * NAME_MAX_BYTES + REASON_TEXT_MAX];

        if (!text || text[0] == '\0')
                return json_null();
        json_t *json = json_string(text);
        return json ? json : json_string(text_escape(text, strlen(text), safe, sizeof(safe)));
}

static json_t *lease_or_null(uint64_t lease_id)
{
        char text[LEASE_ID_TEXT_MAX];
        return lease_id == 0 ? json_null() : json_string(lease_id_text(lease_id, text));
}

json_t *told_time(uint64_t wall_ms)
{
        char text[TIME_TEXT_MAX];
        struct tm tm;
        time_t seconds = (time_t) (wall_ms / 1000);

        if (wall_ms == 0 || !gmtime_r(&seconds, &tm))
                return json_null();
        (void) snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", tm.tm_year + 1900, tm.tm_mon + 1,
                        tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (unsigned) (wall_ms % 1000));
        return json_string(text);
}

int told_time_parse(const char *what, const char *text, uint64_t *ret_wall_ms, struct error *err)
{
        char safe[160];
        struct tm tm = { 0 };
        const char *end =
                strlen(text) == sizeof("2026-11-30T14:05:09Z") - 1 ? strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm) : NULL;
        time_t moment = end && end[0] == '\0' ? timegm(&tm) : -1;
        char again[TIME_TEXT_MAX] = "";

        /* strptime() takes blanks for digits, and timegm() the 30th of February and the 60th second. */
        if (moment >= 0)
                (void) strftime(again, sizeof(again), "%Y-%m-%dT%H:%M:%SZ", &tm);
        if (moment < 0 || strcmp(again, text) != 0)
                return error_set(err, EINVAL, "%s: \"%s\" is no moment: 2026-11-30T14:05:09Z is one", what,
                                 text_escape(text, strnlen(text, 32), safe, sizeof(safe)));
        *ret_wall_ms = (uint64_t) moment * 1000;
        return 0;
}

/* ---- a story ---- */

static json_t *subject_json(const struct story_subject *subject)
{
        static const char *const kinds[] = { "lease", "event", "process" };

        return json_pack("{s:s, s:o}", "kind", kinds[subject->kind], "id",
                         subject->kind == STORY_LEASE ? lease_or_null(subject->id) : number(subject->id));
}

static json_t *step_json(const struct story_step *step)
{
        return json_pack("{s:o, s:o, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:b}", "event",
                         number_or_null(step->event_id != 0, step->event_id), "time", told_time(step->wall_ms), "what",
                         step->what, "lease", lease_or_null(step->lease_id), "pid",
                         number_or_null(step->pid != 0, step->pid), "rule", rule_name((enum rule) step->rule), "text",
                         text_or_null(step->text), "because", text_or_null(step->because), "cause",
                         number_or_null(step->cause_id != 0, step->cause_id), "is_subject", (int) step->is_subject);
}

static json_t *rhythm_json(const struct story_rhythm *r)
{
        const struct rhythm rhythm = { .n = r->n, .period_ms = r->period_ms };
        char text[RHYTHM_TEXT_MAX];

        return json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:s}", "what", r->what, "lease",
                         lease_or_null(r->lease_id), "rule", rule_name((enum rule) r->rule), "n", number(r->n),
                         "period_ms", number(r->period_ms), "first", told_time(r->first_wall_ms), "last",
                         told_time(r->last_wall_ms), "text", rhythm_text(&rhythm, text));
}

json_t *told_story(const struct story_subject *subject, const struct story *story)
{
        json_t *steps = json_array(), *rhythms = json_array(), *leases = json_array();
        int wrong = !steps || !rhythms || !leases;

        for (size_t i = 0; !wrong && i < story->n_steps; i++)
                wrong |= json_array_append_new(steps, step_json(&story->steps[i]));
        for (uint32_t i = 0; !wrong && i < story->n_rhythms; i++)
                wrong |= json_array_append_new(rhythms, rhythm_json(&story->rhythms[i]));
        for (uint32_t i = 0; !wrong && i < story->n_leases; i++)
                wrong |= json_array_append_new(leases, lease_or_null(story->leases[i]));
        json_t *whole = json_pack("{s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "subject", subject_json(subject), "since",
                                  told_time(story->since_wall_ms), "is_cut", (int) story->is_cut, "leases", leases,
                                  "processes", number_or_null(subject->kind == STORY_PROCESS, story->n_processes),
                                  "steps", steps, "rhythms", rhythms, "damages", number(story->n_damages));
        if (!wrong)
                return whole;
        json_decref(whole);
        return NULL;
}

/* ---- sums ---- */

static int set_sum(json_t *object, const struct account_row *row, enum account_what what)
{
        char ms[32], mib_s[32];

        (void) snprintf(ms, sizeof(ms), "%s_ms", account_what_name(what));
        (void) snprintf(mib_s, sizeof(mib_s), "%s_mib_s", account_what_name(what));
        return json_object_set_new(object, ms, number(row->ms[what])) |
               json_object_set_new(object, mib_s, number(account_mib_s(row->byte_ms[what])));
}

static json_t *row_json(const struct account_row *row, bool by_consumer, told_name_fn *name, void *ctx)
{
        json_t *object = json_pack("{s:o, s:o}", "uid", number_or_null(!row->is_rest, row->uid), "user",
                                   text_or_null(row->is_rest ? NULL : name(ctx, row->uid)));
        int wrong = !object;

        if (!wrong && by_consumer)
                wrong |= json_object_set_new(object, "consumer", text_or_null(row->consumer));
        if (!wrong)
                wrong |= json_object_set_new(object, "leases", number(row->n_leases));
        for (int what = 0; !wrong && what < ACCOUNT_WHAT_N; what++)
                wrong |= set_sum(object, row, (enum account_what) what);
        if (!wrong)
                return object;
        json_decref(object);
        return NULL;
}

json_t *told_account(const struct account *account, bool by_consumer, told_name_fn *name, void *ctx)
{
        json_t *rows = json_array();
        int wrong = !rows;

        for (size_t i = 0; !wrong && i < account->n_rows; i++)
                wrong |= json_array_append_new(rows, row_json(&account->rows[i], by_consumer, name, ctx));
        json_t *whole = json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "from", told_time(account->from_wall_ms),
                                  "until", told_time(account->until_wall_ms), "by", by_consumer ? "consumer" : "user",
                                  "rows", rows, "records", number(account->n_records), "damages",
                                  number(account->n_damages), "damage", text_or_null(account->damage), "core",
                                  text_or_null(account->same_core ? NULL : account->core_version));
        if (!wrong)
                return whole;
        json_decref(whole);
        return NULL;
}

/* ---- the chain ---- */

static json_t *hash_json(const struct journal_verified *v)
{
        char text[2 * JOURNAL_HASH_SIZE + 1] = "";

        if (!v->ok || v->last_seq == 0)
                return json_null();
        for (size_t i = 0; i < sizeof(v->hash); i++)
                (void) snprintf(text + 2 * i, 3, "%02x", v->hash[i]);
        return json_string(text);
}

json_t *told_verified(const char *path, const struct journal_verified *v)
{
        json_t *finding = v->ok ? json_null()
                                : json_pack("{s:o, s:o, s:o, s:o, s:s}", "segment",
                                            number_or_null(v->bad_segment != 0, v->bad_segment), "record",
                                            number_or_null(v->bad_seq != 0, v->bad_seq), "event",
                                            number_or_null(v->bad_event != 0, v->bad_event), "audit",
                                            number_or_null(v->bad_audit != 0, v->bad_audit), "words", v->words);

        return json_pack("{s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "journal", text_or_null(path), "whole",
                         (int) v->ok, "segments", number(v->n_segments), "records", number(v->n_records), "events",
                         number(v->n_events), "audits", number(v->n_audits), "last_record",
                         number_or_null(v->ok && v->last_seq != 0, v->last_seq), "hash", hash_json(v), "finding",
                         finding);
}
