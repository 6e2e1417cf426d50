/* SPDX-License-Identifier: Apache-2.0 */
/* `replay --with`: what another configuration would have changed. */
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include "base/duration.h"
#include "base/escape.h"
#include "base/size.h"
#include "programs/lessor/replay.h"
#include "programs/lessor/replay_twin.h"
#include "programs/lessor/replay_words.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"
#include "programs/lessord/conf.h"

enum { ROWS_KNOWN_MAX = 256, GROUPS_MAX = 256, NAME_SHOWN_MAX = NAME_MAX_BYTES * 4 };

struct with {
        const struct replay_job *job;
        struct conf conf;
        struct replay_damages damages;
        uint64_t n_records;
        uint64_t n_stories; /* that count */
        uint64_t n_changes; /* answers included */
        uint64_t n_answers;
        uint64_t n_of[STORY_CHANGE_N];
        json_t *changes; /* NULL: for people */
        struct row_known {
                uint32_t uid, row;
        } rows[ROWS_KNOWN_MAX]; /* looking users up may be slow */
        size_t n_rows;
};

/* ---- whose limits ---- */

/* By the groups that the user has on this machine now: those of then are in no journal. */
static uint32_t look_up_row(const struct conf *conf, uint32_t uid)
{
        gid_t gids[GROUPS_MAX];
        int n = GROUPS_MAX;
        const struct passwd *pw = getpwuid(uid);

        if (!pw || getgrouplist(pw->pw_name, pw->pw_gid, gids, &n) < 0)
                n = 0;
        return conf_quota_row(&conf->sections, &conf->core, uid, gids, (size_t) n);
}

static uint32_t quota_row(void *ctx, uint32_t uid)
{
        struct with *w = ctx;

        if (w->conf.core.n_quotas == 0)
                return QUOTA_EVERYONE;
        for (size_t i = 0; i < w->n_rows; i++)
                if (w->rows[i].uid == uid)
                        return w->rows[i].row;
        uint32_t row = look_up_row(&w->conf, uid);
        if (w->n_rows < ROWS_KNOWN_MAX)
                w->rows[w->n_rows++] = (struct row_known){ .uid = uid, .row = row };
        return row;
}

/* ---- one change ---- */

static const char *fate_words(const struct fate *fate, char buf[REPLAY_WORDS_MAX])
{
        char reason[REASON_TEXT_MAX] = "", device[32] = "";
        const char *end = fate->ended && fate->end != END_NONE ? end_reason_text((enum end_reason) fate->end) : NULL;

        if (fate->why.rule != RULE_NONE)
                (void) reason_text(&fate->why, fate->why_ms, reason, sizeof(reason));
        if (fate->granted)
                (void) snprintf(device, sizeof(device), "; on device %" PRIu32, fate->device);
        (void) snprintf(buf, REPLAY_WORDS_MAX, "%s%s%s%s%s", fate->refused ? "refused: " : "",
                        reason[0]       ? reason
                        : fate->granted ? "granted before"
                                        : "waits",
                        device, end ? "; ended: " : "", end ? end : "");
        return buf;
}

static json_t *fate_json(const struct fate *fate)
{
        char words[REPLAY_WORDS_MAX], lease[LEASE_ID_TEXT_MAX];

        return json_pack("{s:o, s:b, s:o, s:o, s:o, s:s, s:s}", "lease",
                         fate->lease_id != 0 ? json_string(lease_id_text(fate->lease_id, lease)) : json_null(),
                         "refused", (int) fate->refused, "granted_wall_ms",
                         fate->granted && fate->granted_wall_ms != 0 ? json_integer((json_int_t) fate->granted_wall_ms)
                                                                     : json_null(),
                         "device", fate->granted ? json_integer((json_int_t) fate->device) : json_null(), "end",
                         fate->ended && fate->end != END_NONE
                                 ? json_string(end_reason_name((enum end_reason) fate->end))
                                 : json_null(),
                         "rule", rule_name((enum rule) fate->why.rule), "text", fate_words(fate, words));
}

static uint64_t by_ms(const struct story *story, enum story_change change)
{
        const struct fate *was = &story->fates[AS_WAS], *would = &story->fates[WOULD_BE];

        if (change == STORY_EARLIER)
                return was->granted_ms - would->granted_ms;
        return change == STORY_LATER ? would->granted_ms - was->granted_ms : 0;
}

static void list_json(struct with *w, const struct story *story, enum story_change change)
{
        char name[NAME_SHOWN_MAX];
        uint64_t ms = by_ms(story, change);

        (void) text_escape(story->name, strlen(story->name), name, sizeof(name));
        (void) json_array_append_new(
                w->changes,
                json_pack("{s:s, s:s, s:I, s:I, s:i, s:o, s:o, s:o, s:o}", "change", story_change_name(change), "name",
                          name, "uid", (json_int_t) story->uid, "bytes", (json_int_t) story->bytes, "priority",
                          (int) story->priority, "asked_wall_ms",
                          story->asked_wall_ms != 0 ? json_integer((json_int_t) story->asked_wall_ms) : json_null(),
                          "by_ms", ms != 0 ? json_integer((json_int_t) ms) : json_null(), "was",
                          fate_json(&story->fates[AS_WAS]), "would", fate_json(&story->fates[WOULD_BE])));
}

static void list(const struct story *story, enum story_change change)
{
        char name[NAME_SHOWN_MAX], lease[LEASE_ID_TEXT_MAX], bytes[SIZE_TEXT_MAX], time[REPLAY_TIME_MAX];
        char was[REPLAY_WORDS_MAX], would[REPLAY_WORDS_MAX], span[DURATION_TEXT_MAX];
        const struct fate *fates = story->fates;
        uint64_t ms = by_ms(story, change), id = fates[AS_WAS].lease_id;

        (void) printf("%s%s%s (uid %" PRIu32 ", %s", id != 0 ? lease_id_text(id, lease) : "a request",
                      story->name[0] ? " " : "", text_escape(story->name, strlen(story->name), name, sizeof(name)),
                      story->uid, story->bytes != 0 ? size_text_short(story->bytes, bytes) : "a share");
        if (story->asked_wall_ms != 0)
                (void) printf(", asked %s", replay_time(story->asked_wall_ms, time));
        (void) printf("): %s%s%s\n", show_colour(SHOW_BOLD), story_change_text(change), show_colour(SHOW_PLAIN));
        if (ms != 0)
                (void) printf("  by        %s\n", duration_text(ms, span));
        (void) printf("  as it was %s\n  would be  %s\n", fate_words(&fates[AS_WAS], was),
                      fate_words(&fates[WOULD_BE], would));
}

static void tell_story(struct with *w, const struct story *story)
{
        enum story_change change = story_change(story);

        if (!story->counts)
                return;
        w->n_stories++;
        w->n_of[change]++;
        if (change == STORY_SAME || w->n_changes++ >= w->job->limit)
                return;
        if (w->changes)
                list_json(w, story, change);
        else
                list(story, change);
}

/* A renice, pin or extend: told as it is found. */
static void on_answer(void *ctx, const struct action *was, const struct action *would, const struct story_moment *at)
{
        struct with *w = ctx;
        char time[REPLAY_TIME_MAX], was_words[REPLAY_WORDS_MAX], would_words[REPLAY_WORDS_MAX];

        w->n_answers++;
        if (w->n_changes++ >= w->job->limit)
                return;
        if (w->changes)
                (void) json_array_append_new(w->changes, json_pack("{s:s, s:I, s:o, s:o}", "change", "answer",
                                                                   "wall_ms", (json_int_t) at->wall_ms, "was",
                                                                   replay_action_json(was, at->now_ms), "would",
                                                                   replay_action_json(would, at->now_ms)));
        else
                (void) printf("what was asked of a lease at %s: would have been answered otherwise\n"
                              "  as it was %s\n  would be  %s\n",
                              replay_time(at->wall_ms, time), replay_action_words(was, at->now_ms, was_words),
                              replay_action_words(would, at->now_ms, would_words));
}

static void on_damage(void *ctx, const char *words)
{
        struct with *w = ctx;
        replay_damage(&w->damages, words);
}

/* ---- the whole ---- */

static void show_whole_json(const struct with *w)
{
        char file[PATH_MAX];
        json_t *counts = json_object();

        for (int change = STORY_SAME; change < STORY_CHANGE_N; change++)
                (void) json_object_set_new(counts, story_change_name((enum story_change) change),
                                           json_integer((json_int_t) w->n_of[change]));
        (void) json_object_set_new(counts, "answer", json_integer((json_int_t) w->n_answers));
        json_t *whole = json_pack("{s:s, s:s, s:b, s:I, s:I, s:I, s:o, s:o, s:I, s:o, s:s}", "journal", w->job->path,
                                  "with", text_escape(w->job->with, strlen(w->job->with), file, sizeof(file)), "equal",
                                  (int) (w->n_changes == 0), "records", (json_int_t) w->n_records, "requests",
                                  (json_int_t) w->n_stories, "n_changes", (json_int_t) w->n_changes, "counts", counts,
                                  "changes", json_incref(w->changes), "n_damages", (json_int_t) w->damages.n, "damages",
                                  json_incref(w->damages.words), "core_now", LESSOR_VERSION);
        show_json(whole);
        json_decref(whole);
}

static void show_whole(const struct with *w)
{
        char file[PATH_MAX];

        if (w->n_changes > w->job->limit)
                (void) printf("… and %" PRIu64 " more (--limit)\n", w->n_changes - w->job->limit);
        (void) printf("%s with %s: %" PRIu64 " records, %" PRIu64 " requests and leases\n", w->job->path,
                      text_escape(w->job->with, strlen(w->job->with), file, sizeof(file)), w->n_records, w->n_stories);
        for (int change = STORY_SAME; change < STORY_CHANGE_N; change++)
                if (w->n_of[change] > 0)
                        (void) printf("  %6" PRIu64 " %s\n", w->n_of[change],
                                      story_change_text((enum story_change) change));
        if (w->n_answers > 0)
                (void) printf("  %6" PRIu64 " times what was asked of a lease would have been answered otherwise\n",
                              w->n_answers);
        if (w->damages.n > 0)
                (void) printf("%sdamaged%s in %" PRIu64 " places: this is about the rest\n", show_colour(SHOW_RED),
                              show_colour(SHOW_PLAIN), w->damages.n);
        else if (w->n_changes == 0)
                (void) printf("%snothing would have been decided differently%s\n", show_colour(SHOW_GREEN),
                              show_colour(SHOW_PLAIN));
}

static int compare(struct with *w, struct error *err)
{
        const struct twin_host host = { .ctx = w, .quota_row = quota_row, .answer = on_answer, .damage = on_damage };
        struct twin *twin = NULL;

        int r = twin_new(&twin, &w->conf.core, w->conf.wsl_margin_bytes, &host, err);
        if (r == 0)
                r = twin_run(twin, w->job->journal, &w->job->since, &w->n_records, err);
        for (size_t i = 0; r == 0 && i < twin_stories(twin)->n; i++)
                tell_story(w, &twin_stories(twin)->items[i]);
        twin_free(twin);
        return r;
}

int replay_with(struct replay_job *job)
{
        struct with w = { .job = job };
        struct error err = { 0 };
        int code;

        if (job->json) {
                w.changes = json_array();
                w.damages.words = json_array();
        }
        conf_defaults(&w.conf);
        if (conf_load(job->with, true, &w.conf, &err) < 0 || compare(&w, &err) < 0) {
                code = replay_failed(&err);
        } else {
                code = w.n_changes == 0 && w.damages.n == 0 ? LESSOR_EXIT_OK : LESSOR_EXIT_REFUSED;
                if (job->json)
                        show_whole_json(&w);
                else
                        show_whole(&w);
        }
        conf_fini(&w.conf);
        json_decref(w.changes);
        json_decref(w.damages.words);
        return code;
}
