/* SPDX-License-Identifier: Apache-2.0 */
/* `replay`: a journal is decided again, by this program's core or under another configuration. Nothing is asked of lessord. */
#include "programs/lessor/replay.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "arbiter/arbiter.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/number.h"
#include "programs/lessor/replay_find.h"
#include "programs/lessor/replay_words.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"
#include "store/replay.h"

enum { BUSY_MS = 2000, FIELDS_MAX = 400, LIMIT_MAX = 1000000 };

const struct option replay_options[] = {
        { "since", "TIME|EVENT", "report from then on: 2h, 14:05, \"2026-11-30 14:05\", 4711" },
        { "with", "FILE", "another lessord.conf: what would have been decided differently", .words = "@files" },
        { "limit", "N", "list so many differences (20)" },
        { "json", NULL, "print one JSON object" },
        { 0 },
};

const char replay_more[] =
        "  lessor replay                             the journal of your lessord, or of this machine's\n"
        "  lessor replay /var/lib/lessor --since 2h  the one in this folder, its last two hours\n"
        "  lessor replay --with ./lessord.conf       who would have waited, been granted, been refused\n"
        "\n"
        "Reads what lessord was told, decides it again, and compares with what was decided, byte by byte. The journal\n"
        "may be in use; nothing is written, and lessord is asked for nothing.\n"
        "With --with it compares two histories of the same inputs: programs still come, go and take memory as they\n"
        "did, so it says what would have been decided on these readings, not what would have followed from that.\n"
        "\n"
        "Exit status: 0 equal, 1 something differs or is damaged, 2 wrong use, 125 the journal or the file cannot be "
        "read.";

int replay_failed(const struct error *err)
{
        char safe[sizeof(err->msg) + 64];

        (void) fprintf(stderr, "lessor replay: %s\n", text_escape(err->msg, strlen(err->msg), safe, sizeof(safe)));
        return LESSOR_EXIT_OWN;
}

void replay_damage(void *ctx, const char *words)
{
        struct replay_damages *damages = ctx;

        if (damages->n++ >= REPLAY_DAMAGES_MAX)
                return;
        if (damages->words)
                (void) json_array_append_new(damages->words, json_string(words));
        else
                (void) printf("damaged: %s\n", words);
}

/* ---- what differs ---- */

struct report {
        const struct replay_job *job;
        struct replay_damages damages;
        uint64_t n_listed;
        json_t *differences; /* NULL: for people */
};

static void on_difference(void *ctx, const struct replay_difference *d)
{
        struct report *report = ctx;
        char time[REPLAY_TIME_MAX], was[REPLAY_WORDS_MAX], is[REPLAY_WORDS_MAX], fields[FIELDS_MAX] = "";

        if (report->n_listed++ >= report->job->limit)
                return;
        (void) replay_action_words(d->was, d->now_ms, was);
        (void) replay_action_words(d->is, d->now_ms, is);
        if (d->was && d->is && strcmp(was, is) == 0)
                (void) replay_action_fields(d->was, d->is, fields, sizeof(fields));
        if (report->differences) {
                (void) json_array_append_new(
                        report->differences,
                        json_pack("{s:I, s:I, s:I, s:s, s:o, s:o, s:o}", "seq", (json_int_t) d->seq, "segment",
                                  (json_int_t) d->segment, "wall_ms", (json_int_t) d->wall_ms, "input",
                                  input_kind_name(d->kind), "recorded", replay_action_json(d->was, d->now_ms), "now",
                                  replay_action_json(d->is, d->now_ms), "fields",
                                  fields[0] ? json_string(fields) : json_null()));
                return;
        }
        (void) printf("record %" PRIu64 " of segment %" PRIu64
                      ", %s, on an input of kind %s:\n  recorded: %s\n  now:      %s\n",
                      d->seq, d->segment, replay_time(d->wall_ms, time), input_kind_name(d->kind), was, is);
        if (fields[0])
                (void) printf("  in figures: %s\n", fields);
}

static void on_damage(void *ctx, const char *words)
{
        struct report *report = ctx;
        replay_damage(&report->damages, words);
}

static void on_snapshot(void *ctx, uint64_t segment, uint64_t wall_ms, const char *words)
{
        struct report *report = ctx;
        char time[REPLAY_TIME_MAX];

        if (report->n_listed++ >= report->job->limit)
                return;
        if (report->differences)
                (void) json_array_append_new(report->differences,
                                             json_pack("{s:I, s:I, s:s}", "segment", (json_int_t) segment, "wall_ms",
                                                       (json_int_t) wall_ms, "snapshot", words));
        else
                (void) printf("the snapshot of segment %" PRIu64 ", %s, is not the world that was reached: %s\n",
                              segment, replay_time(wall_ms, time), words);
}

/* ---- the whole ---- */

static json_t *inputs_json(const struct replay_result *r)
{
        json_t *inputs = json_object();

        for (int kind = INPUT_NONE + 1; kind < INPUT_KIND_N; kind++)
                if (r->n_inputs[kind] > 0)
                        (void) json_object_set_new(inputs, input_kind_name((enum input_kind) kind),
                                                   json_integer((json_int_t) r->n_inputs[kind]));
        return inputs;
}

static void show_report_json(const struct report *report, const struct replay_result *r)
{
        json_t *whole = json_pack(
                "{s:s, s:b, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:s, s:s}", "journal",
                report->job->path, "equal", (int) replay_is_equal(r), "segments", (json_int_t) r->n_segments, "records",
                (json_int_t) r->n_records, "records_before", (json_int_t) r->n_before, "inputs", inputs_json(r),
                "actions", (json_int_t) r->n_actions, "snapshots_compared", (json_int_t) r->n_snapshots,
                "first_wall_ms", (json_int_t) r->first_wall_ms, "last_wall_ms", (json_int_t) r->last_wall_ms,
                "n_differences", (json_int_t) (r->n_differences + r->n_other_snapshots), "n_damages",
                (json_int_t) r->n_damages, "differences", json_incref(report->differences), "damages",
                json_incref(report->damages.words), "core_recorded", r->same_core ? LESSOR_VERSION : r->core_version,
                "core_now", LESSOR_VERSION);

        show_json(whole);
        json_decref(whole);
}

static void show_core(const struct replay_result *r)
{
        char safe[JOURNAL_VERSION_SIZE * 4];

        if (!r->same_core)
                (void) printf("recorded by lessor %s, decided again by %s: they may decide differently on purpose\n",
                              text_escape(r->core_version, strlen(r->core_version), safe, sizeof(safe)),
                              LESSOR_VERSION);
}

static void show_report(const struct report *report, const struct replay_result *r)
{
        char from[REPLAY_TIME_MAX], to[REPLAY_TIME_MAX];

        if (report->n_listed > report->job->limit)
                (void) printf("… and %" PRIu64 " more (--limit)\n", report->n_listed - report->job->limit);
        (void) printf("%s: %" PRIu64 " records in %" PRIu64 " segments, %" PRIu64 " actions", report->job->path,
                      r->n_records, r->n_segments, r->n_actions);
        if (r->n_records > 0)
                (void) printf(", %s to %s", replay_time(r->first_wall_ms, from), replay_time(r->last_wall_ms, to));
        (void) fputc('\n', stdout);
        show_core(r);
        if (replay_is_equal(r))
                (void) printf("%sequal%s: each was decided again as it stands there, byte by byte, and %" PRIu64
                              " snapshots were reached\n",
                              show_colour(SHOW_GREEN), show_colour(SHOW_PLAIN), r->n_snapshots);
        else
                (void) printf("%snot equal%s: %" PRIu64 " of %" PRIu64 " records, %" PRIu64 " of %" PRIu64
                              " snapshots; damaged: %" PRIu64 "\n",
                              show_colour(SHOW_RED), show_colour(SHOW_PLAIN), r->n_differences, r->n_records,
                              r->n_other_snapshots, r->n_snapshots, r->n_damages);
}

static void step(void *ctx, struct world *world, const struct input *input, struct actions *out)
{
        (void) ctx;
        arbiter_step(world, input, out);
}

static int replay_as_it_was(struct replay_job *job)
{
        struct report report = { .job = job };
        const struct replay_visitor visitor = {
                .ctx = &report, .difference = on_difference, .snapshot = on_snapshot, .damage = on_damage
        };
        struct replay_result result;
        struct error err = { 0 };

        if (job->json) {
                report.differences = json_array();
                report.damages.words = json_array();
        }
        int r = journal_replay(job->journal, &job->since, step, NULL, &visitor, &result, &err);
        int code = r < 0 ? replay_failed(&err) : replay_is_equal(&result) ? LESSOR_EXIT_OK : LESSOR_EXIT_REFUSED;
        if (r == 0 && job->json)
                show_report_json(&report, &result);
        else if (r == 0)
                show_report(&report, &result);
        json_decref(report.differences);
        json_decref(report.damages.words);
        return code;
}

/* ---- what was asked for ---- */

struct words {
        const char *journal, *since, *limit;
};

static int read_words(const struct verb *verb, int argc, char **argv, struct words *words, struct replay_job *job)
{
        struct options o;

        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                const char *name = option_name(&o, what);
                if (what == OPTIONS_OPERAND && words->journal)
                        return verb_usage_error(verb, "one journal at a time");
                if (what == OPTIONS_OPERAND)
                        words->journal = o.value;
                else if (strcmp(name, "since") == 0)
                        words->since = o.value;
                else if (strcmp(name, "with") == 0)
                        job->with = o.value;
                else if (strcmp(name, "limit") == 0)
                        words->limit = o.value;
                else
                        job->json = true;
        }
        return -1;
}

int verb_replay_main(const struct verb *verb, int argc, char **argv)
{
        const struct journal_options options = { .read_only = true, .busy_ms = BUSY_MS };
        struct replay_job job = { .limit = REPLAY_LIMIT };
        struct words words = { 0 };
        char path[PATH_MAX];
        struct error err = { 0 };

        int code = read_words(verb, argc, argv, &words, &job);
        if (code >= 0)
                return code;
        if ((words.since && replay_parse_since(words.since, clock_now_wall_ms(), &job.since, &err) < 0) ||
            (words.limit && parse_u64("--limit", words.limit, 0, LIMIT_MAX, &job.limit, &err) < 0))
                return verb_usage_error(verb, "%s", err.msg);
        if (replay_find_journal(words.journal, path, sizeof(path), &err) < 0 ||
            journal_open(&job.journal, path, &options, &err) < 0)
                return replay_failed(&err);
        (void) text_escape(path, strlen(path), job.path, sizeof(job.path));
        code = job.with ? replay_with(&job) : replay_as_it_was(&job);
        journal_close(job.journal);
        return code;
}
