/* SPDX-License-Identifier: Apache-2.0 */
#include "store/story.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/escape.h"
#include "base/number.h"
#include "model/lease.h"
#include "model/manager.h"
#include "store/story_private.h"

enum { ALL_STEPS_MAX = 4096, LINKED_MAX = 64, BEFORE_SUBJECT = 300, AFTER_SUBJECT = 100, BEFORE_PLAN = 32 };

/* ---- steps ---- */

/* The newest are kept. */
static bool make_room(struct telling *t)
{
        size_t more = t->cap ? t->cap * 2 : 128;

        if (more > ALL_STEPS_MAX) {
                const size_t fewer = t->n / 4;
                telling_sort(t);
                memmove(t->steps, t->steps + fewer, (t->n - fewer) * sizeof(*t->steps));
                t->n -= fewer;
                t->story->is_cut = true;
                return true;
        }
        struct telling_step *steps = reallocarray(t->steps, more, sizeof(*steps));
        if (!steps) {
                t->failed = true;
                return false;
        }
        t->steps = steps;
        t->cap = more;
        return true;
}

static struct telling_step *step_new(struct telling *t)
{
        if (t->n == t->cap && !make_room(t))
                return NULL;
        struct telling_step *s = &t->steps[t->n++];
        *s = (struct telling_step){ 0 };
        return s;
}

static void say_what(const struct action *a, char what[STORY_KIND_MAX])
{
        const char *signal = a->signal == 9 ? " KILL" : a->signal == 15 ? " TERM" : "";

        if (a->kind == ACTION_HAND)
                (void) snprintf(what, STORY_KIND_MAX, "order: %s%s pid %" PRIu32,
                                hand_verb_name((enum hand_verb) a->hand), signal, a->process.pid);
        else if (a->kind == ACTION_MANAGER)
                (void) snprintf(what, STORY_KIND_MAX, "order: its manager, %s",
                                manager_verb_name((enum manager_verb) a->manage));
        else
                (void) snprintf(what, STORY_KIND_MAX, "%s", action_kind_name((enum action_kind) a->kind));
}

struct telling_step *telling_add_event(struct telling *t, const struct journal_event *event)
{
        const struct action *a = &event->action;

        for (size_t i = 0; i < t->n; i++)
                if (t->steps[i].step.event_id == a->id)
                        return NULL;
        struct telling_step *s = step_new(t);
        if (!s)
                return NULL;
        s->action = *a;
        s->step = (struct story_step){
                .event_id = a->id,
                .seq = event->seq,
                .wall_ms = event->wall_ms,
                .now_ms = event->now_ms,
                .lease_id = a->lease_id,
                .pid = a->process.pid,
                .rule = a->why.rule,
                .kind = a->kind,
        };
        say_what(a, s->step.what);
        if (a->why.rule != RULE_NONE && !((a->kind == ACTION_HAND || a->kind == ACTION_MANAGER) &&
                                          a->why.rule == RULE_ASKED)) /* its cause says that */
                (void) reason_text(&a->why, event->now_ms, s->step.text, sizeof(s->step.text));
        return s;
}

struct telling_step *telling_add_seen(struct telling *t, uint64_t seq, uint64_t wall_ms, uint64_t now_ms, uint32_t pid)
{
        struct telling_step *s = step_new(t);

        if (!s)
                return NULL;
        s->step = (struct story_step){ .seq = seq, .wall_ms = wall_ms, .now_ms = now_ms, .pid = pid };
        (void) snprintf(s->step.what, sizeof(s->step.what), "seen");
        return s;
}

static int take(void *ctx, const struct journal_event *event)
{
        struct telling *t = ctx;

        (void) telling_add_event(t, event);
        return t->failed ? -ENOMEM : 0;
}

static int take_events(struct telling *t, const struct journal_events_filter *filter, struct error *err)
{
        size_t before = t->n;

        int r = journal_events(t->j, filter, take, t, err);
        if (r == -ENOMEM && t->failed)
                return error_set(err, ENOMEM, "no memory for a story");
        if (r == 0 && filter->newest_first && t->n - before >= filter->limit)
                t->story->is_cut = true;
        return r;
}

/* ---- what it is linked with ---- */

/* The plan that was made for @head before event @id, and how that one came to ask. */
static int link_plan(struct telling *t, uint64_t head, uint64_t id, struct error *err)
{
        const struct journal_events_filter first = { .lease_id = head, .limit = 1 };
        const struct journal_events_filter before = {
                .lease_id = head, .before_id = id, .limit = BEFORE_PLAN, .newest_first = true
        };
        bool cut = t->story->is_cut;

        int r = take_events(t, &first, err);
        if (r == 0)
                r = take_events(t, &before, err);
        t->story->is_cut = cut; /* that is another's story */
        return r;
}

struct linking {
        struct telling *t;
        uint64_t head;
};

static int take_of_head(void *ctx, const struct journal_event *event)
{
        struct linking *l = ctx;
        const struct reason *why = &event->action.why;

        if (why->head_lease_id != l->head || why->rule < RULE_RECLAIMED)
                return 0;
        return take(l->t, event);
}

/* What a plan for @plan's lease did to those whose memory it took. */
static int link_victims(struct telling *t, const struct action *plan, struct error *err)
{
        uint32_t n = plan->why.n_blockers < BLOCKERS_MAX ? plan->why.n_blockers : BLOCKERS_MAX;
        struct linking l = { .t = t, .head = plan->lease_id };
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < n; i++) {
                const struct journal_events_filter filter = { .lease_id = plan->why.blockers[i].lease_id,
                                                              .after_id = plan->id,
                                                              .limit = LINKED_MAX };
                if (filter.lease_id != 0)
                        r = journal_events(t->j, &filter, take_of_head, &l, err);
        }
        return r == -ENOMEM ? error_set(err, ENOMEM, "no memory for a story") : r;
}

static bool is_linked_before(const uint64_t *heads, uint32_t n, uint64_t head)
{
        for (uint32_t i = 0; i < n; i++)
                if (heads[i] == head)
                        return true;
        return false;
}

static int link_all(struct telling *t, size_t from, struct error *err)
{
        size_t n = t->n; /* what is added here is not followed any further */
        uint64_t heads[LINKED_MAX];
        uint32_t n_heads = 0;
        int r = 0;

        for (size_t i = from; r == 0 && i < n && i < t->n; i++) {
                const struct action a = t->steps[i].action; /* the list may move */
                if (a.kind == ACTION_PLAN && a.why.rule == RULE_PLAN_BEGAN)
                        r = link_victims(t, &a, err);
                else if (a.kind == ACTION_ASKED && a.why.head_lease_id != 0 && n_heads < LINKED_MAX &&
                         !is_linked_before(heads, n_heads, a.why.head_lease_id)) {
                        heads[n_heads++] = a.why.head_lease_id;
                        r = link_plan(t, a.why.head_lease_id, a.id, err);
                }
        }
        return r;
}

int telling_lease(struct telling *t, uint64_t lease_id, uint64_t around, struct error *err)
{
        const struct journal_events_filter newest = {
                .lease_id = lease_id,
                .before_id = around != 0 ? around + 1 : 0,
                .limit = around != 0 ? BEFORE_SUBJECT : STORY_STEPS_MAX,
                .newest_first = true,
        };
        const struct journal_events_filter after = { .lease_id = lease_id, .after_id = around, .limit = AFTER_SUBJECT };
        size_t from = t->n;

        int r = take_events(t, &newest, err);
        if (r == 0 && around != 0)
                r = take_events(t, &after, err);
        return r < 0 ? r : link_all(t, from, err);
}

/* ---- what each was decided on ---- */

static int read_record(struct telling *t, struct telling_step *s, struct input *input, struct occupancy *rows,
                       struct error *err)
{
        auto_reset sqlite3_stmt *stmt = NULL;
        struct record_row row;

        int r = journal_stmt(t->j, STMT_RECORDS_AFTER, &stmt, err);
        if (r < 0)
                return r;
        sql_bind_u64(stmt, 1, s->step.seq - 1);
        r = sql_step(t->j->db, stmt, "reading a record of the journal", err);
        if (r <= 0)
                return r;
        record_row_read(stmt, &row);
        if (row.record.seq != s->step.seq) /* events outlive their records */
                return 0;
        if (codec_input_decode(row.record.input.data, row.record.input.n, input, rows, NULL) < 0) {
                (void) snprintf(s->step.because, sizeof(s->step.because), "its record cannot be read");
                return 0;
        }
        (void) input_text(input, s->step.because);
        s->order_id = input->kind == INPUT_OUTCOME   ? input->outcome.order_id
                      : input->kind == INPUT_MANAGER ? input->manager.order_id
                                                     : 0;
        return 0;
}

static int read_records(struct telling *t, struct error *err)
{
        struct {
                struct input input;
                struct occupancy rows[ROWS_MAX];
        } *room = malloc(sizeof(*room));
        int r = 0;

        if (!room)
                return error_set(err, ENOMEM, "no memory for a story");
        for (size_t i = 0; r == 0 && i < t->n; i++)
                if (t->steps[i].step.event_id != 0 && t->steps[i].step.seq > 0)
                        r = read_record(t, &t->steps[i], &room->input, room->rows, err);
        free(room);
        return r;
}

/* ---- the whole ---- */

static int tell_event(struct telling *t, uint64_t id, struct error *err)
{
        const struct journal_events_filter itself = { .after_id = id - 1, .before_id = id + 1, .limit = 1 };

        int r = take_events(t, &itself, err);
        if (r < 0 || t->n == 0)
                return r;
        uint64_t lease_id = t->steps[0].action.lease_id, head = t->steps[0].action.why.head_lease_id;
        bool is_of_park = t->steps[0].action.why.rule >= RULE_RECLAIMED;
        if (lease_id != 0)
                r = telling_lease(t, lease_id, id, err);
        if (r == 0 && is_of_park && head != 0)
                r = link_plan(t, head, id, err);
        return r;
}

static int since_find(struct telling *t, struct error *err)
{
        return sql_query_u64(t->j->db,
                             "SELECT min(wall_ms) FROM (SELECT * FROM (SELECT wall_ms FROM event ORDER BY id LIMIT 1)"
                             " UNION ALL SELECT * FROM (SELECT wall_ms FROM record ORDER BY seq LIMIT 1))",
                             &t->story->since_wall_ms, err);
}

static void is_about(struct telling *t, const struct story_subject *subject)
{
        if (subject->kind == STORY_LEASE)
                t->story->leases[t->story->n_leases++] = subject->id;
        if (subject->kind == STORY_EVENT && t->n > 0 && t->steps[0].action.lease_id != 0)
                t->story->leases[t->story->n_leases++] = t->steps[0].action.lease_id;
}

static int tell(struct telling *t, const struct story_subject *subject, struct error *err)
{
        int r = since_find(t, err);

        if (r < 0 || subject->id == 0 || subject->id >= CODEC_ID_END)
                return r; /* no such ids */
        if (subject->kind == STORY_LEASE)
                r = telling_lease(t, subject->id, 0, err);
        else if (subject->kind == STORY_EVENT)
                r = tell_event(t, subject->id, err);
        else if (subject->id <= UINT32_MAX)
                r = telling_process(t, (uint32_t) subject->id, err);
        if (r == 0)
                r = read_records(t, err);
        if (r < 0)
                return r;
        is_about(t, subject);
        telling_sort(t);
        telling_find_causes(t);
        if (subject->kind == STORY_EVENT)
                telling_keep_chain(t, subject->id);
        telling_find_rhythms(t);
        return t->failed ? error_set(err, ENOMEM, "no memory for a story") : 0;
}

static int hand_over(struct telling *t, struct error *err)
{
        struct story *story = t->story;

        story->steps = t->n > 0 ? calloc(t->n, sizeof(*story->steps)) : NULL;
        if (t->n > 0 && !story->steps)
                return error_set(err, ENOMEM, "no memory for a story");
        for (size_t i = 0; i < t->n; i++)
                story->steps[story->n_steps++] = t->steps[i].step;
        return 0;
}

int story_read(struct journal *j, const struct story_subject *subject, struct story *ret, struct error *err)
{
        struct telling t = { .j = j, .story = ret };

        *ret = (struct story){ 0 };
        if (!j->db)
                return error_set(err, EIO, "%s is not open any more", j->path);
        /* All of it as of one moment; the walk of a process has a moment of its own. */
        int r = subject->kind == STORY_PROCESS ? 0 : sql_exec(j->db, "BEGIN", err);
        if (r < 0)
                return r;
        r = tell(&t, subject, err);
        if (subject->kind != STORY_PROCESS)
                (void) sql_exec(j->db, "COMMIT", NULL); /* nothing was written */
        if (r == 0)
                r = hand_over(&t, err);
        free(t.steps);
        return r;
}

void story_fini(struct story *story)
{
        free(story->steps);
        *story = (struct story){ 0 };
}

/* ---- which one is meant ---- */

int story_word_parse(const char *word, struct story_word *ret, struct error *err)
{
        const char letter = word[0] >= 'a' && word[0] <= 'z' ? (char) (word[0] - 'a' + 'A') : word[0];
        const char *digits = letter == 'L' || letter == 'E' || letter == 'P' ? word + 1 : word;
        char shown[128];
        uint64_t id;

        *ret = (struct story_word){ 0 };
        if (parse_u64("", digits, 1, INT64_MAX, &id, NULL) < 0)
                return error_set(
                        err, EINVAL,
                        "\"%s\" is no lease, process or event: L17 is a lease, P3120 a process, E4711 an event; "
                        "a number alone is whichever of them there is",
                        text_escape(word, strnlen(word, 24), shown, sizeof(shown)));
        if (letter == 'L' || digits == word)
                ret->subjects[ret->n++] = (struct story_subject){ STORY_LEASE, id };
        if ((letter == 'P' || digits == word) && id <= UINT32_MAX)
                ret->subjects[ret->n++] = (struct story_subject){ STORY_PROCESS, id };
        if (letter == 'E' || digits == word)
                ret->subjects[ret->n++] = (struct story_subject){ STORY_EVENT, id };
        return ret->n > 0 ? 0 : error_set(err, EINVAL, "P%" PRIu64 ": no process has such a number", id);
}

const char *story_subject_text(const struct story_subject *subject, char buf[STORY_SUBJECT_TEXT_MAX])
{
        static const char *const names[] = { "lease L", "event ", "pid " };

        (void) snprintf(buf, STORY_SUBJECT_TEXT_MAX, "%s%" PRIu64, names[subject->kind], subject->id);
        return buf;
}
