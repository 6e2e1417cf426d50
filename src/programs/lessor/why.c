/* SPDX-License-Identifier: Apache-2.0 */
/* `why`: asked of lessord, or read from a journal where there is none, or another is meant. */
#include "programs/lessor/why.h"
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "api/told_json.h"
#include "base/escape.h"
#include "model/lease.h"
#include "programs/lessor/replay_find.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"
#include "store/story.h"

enum { BUSY_MS = 2000, ANSWER_MS = 60 * 1000, SHOWN_MAX = 400 };

const struct option why_options[] = {
        { "journal", "FILE|DIR", "read this journal, and ask no lessord", .words = "@files" },
        { "json", NULL, "print one JSON object" },
        { 0 },
};

const char why_more[] = "  lessor why L17                        a lease, also one that ended or was refused\n"
                        "  lessor why P3120                      a process: what was seen of it, and done with it\n"
                        "  lessor why E4711                      one event: what led to it, and what it led to\n"
                        "  lessor why --journal /srv/copy L17    from a journal, without lessord\n"
                        "\n"
                        "A line for each decision, with its figures; behind the arrow the event that led to it and the "
                        "fact it was decided\n"
                        "on. A number alone is a lease, else a process, else an event. What comes again and again at "
                        "equal distances is\n"
                        "pointed out. Where lessord is away its journal is read, if you may.\n"
                        "\n"
                        "Exit status: 0 done, 1 nothing is known of it, 2 wrong use, 69 lessord is away, 125 the "
                        "journal cannot be read.";

/* What was found, and where it was looked for. */
struct search {
        const struct verb *verb;
        struct client client;
        int r;                   /* of the last call */
        struct journal *journal; /* NULL: lessord is asked */
        json_t *body;
};

static int failed(const struct error *err)
{
        char safe[sizeof(err->msg) + 64];

        (void) fprintf(stderr, "lessor why: %s\n", text_escape(err->msg, strlen(err->msg), safe, sizeof(safe)));
        return LESSOR_EXIT_OWN;
}

/* ---- from a journal ---- */

static int read_journal(struct search *s, const struct story_subject *subject)
{
        struct error err = { 0 };
        struct story story;

        int r = story_read(s->journal, subject, &story, &err);
        if (r == 0 && story.n_steps > 0)
                s->body = told_story(subject, &story);
        bool known = story.n_steps > 0;
        story_fini(&story);
        return r < 0 ? failed(&err) : known ? LESSOR_EXIT_OK : LESSOR_EXIT_REFUSED;
}

/* ---- from lessord ---- */

/* LESSOR_EXIT_AWAY, without words: s->r says why. */
static int get(struct search *s, const char *path, bool quiet, json_t **ret)
{
        struct client_answer answer;

        s->r = client_call(&s->client, "GET", path, NULL, ANSWER_MS, &answer, NULL);
        if (s->r < 0)
                return LESSOR_EXIT_AWAY;
        if (answer.status == 200 && json_is_object(answer.body)) {
                *ret = answer.body;
                return LESSOR_EXIT_OK;
        }
        if (!quiet && answer.status != 404 && answer.status != 410)
                show_problem(s->verb->name, &answer);
        client_answer_fini(&answer);
        return LESSOR_EXIT_REFUSED;
}

/* Of a lease how it stands as well. */
static int ask_lessord(struct search *s, const struct story_subject *subject)
{
        static const char *const names[] = {
                [STORY_LEASE] = "lease", [STORY_EVENT] = "event", [STORY_PROCESS] = "pid"
        };
        char path[80];
        json_t *steps = NULL;
        int code = LESSOR_EXIT_OK;

        if (subject->kind == STORY_LEASE) {
                (void) snprintf(path, sizeof(path), "/api/why/L%" PRIu64, subject->id);
                code = get(s, path, false, &s->body);
        }
        if (code != LESSOR_EXIT_OK)
                return code;
        (void) snprintf(path, sizeof(path), "/api/why?%s=%" PRIu64, names[subject->kind], subject->id);
        code = get(s, path, s->body != NULL, &steps);
        if (!s->body) {
                s->body = steps;
                return code;
        }
        if (steps) /* without them it is told by its events */
                (void) json_object_update_missing(s->body, steps);
        json_decref(steps);
        return LESSOR_EXIT_OK;
}

/* ---- the whole ---- */

static int look(struct search *s, const struct story_word *word, uint32_t *ret_which)
{
        int code = LESSOR_EXIT_REFUSED;

        for (*ret_which = 0; code == LESSOR_EXIT_REFUSED && *ret_which < word->n; (*ret_which)++)
                code = s->journal ? read_journal(s, &word->subjects[*ret_which])
                                  : ask_lessord(s, &word->subjects[*ret_which]);
        --*ret_which;
        return code;
}

static int open_journal(struct search *s, const char *named, bool is_instead)
{
        const struct journal_options options = { .read_only = true, .busy_ms = BUSY_MS };
        char path[PATH_MAX], shown[SHOWN_MAX];
        struct error err = { 0 };

        if (replay_find_journal(named, path, sizeof(path), &err) < 0 ||
            journal_open(&s->journal, path, &options, &err) < 0)
                return is_instead ? LESSOR_EXIT_AWAY : failed(&err);
        if (is_instead)
                (void) fprintf(stderr, "lessor why: lessord is away; read from its journal, %s\n",
                               text_escape(path, strlen(path), shown, sizeof(shown)));
        return LESSOR_EXIT_OK;
}

static void tell_which(const struct story_word *word, uint32_t which)
{
        char is[STORY_SUBJECT_TEXT_MAX];

        if (word->n > 1)
                (void) fprintf(stderr, "lessor why: taken as %s; the others: %s%s%s\n",
                               story_subject_text(&word->subjects[which], is),
                               word->subjects[which].kind != STORY_LEASE ? "L… a lease, " : "",
                               word->subjects[which].kind != STORY_PROCESS ? "P… a process" : "E… an event",
                               word->subjects[which].kind == STORY_LEASE ? ", E… an event" : "");
}

/* The client knows a lease that is gone better than the journal does. */
static int nothing_known(struct search *s, const char *word, const struct story_word *meant)
{
        char path[64], shown[SHOWN_MAX];
        json_t *body = NULL;

        if (!s->journal && meant->n == 1 && meant->subjects[0].kind == STORY_LEASE) {
                (void) snprintf(path, sizeof(path), "/api/why/L%" PRIu64, meant->subjects[0].id);
                int code = show_get(s->verb->name, path, &body); /* says why not */
                json_decref(body);
                return code == LESSOR_EXIT_OK ? LESSOR_EXIT_REFUSED : code;
        }
        (void) fprintf(stderr, "lessor why: the journal knows nothing of %s; `lessor events` lists what it knows\n",
                       text_escape(word, strlen(word), shown, sizeof(shown)));
        return LESSOR_EXIT_REFUSED;
}

static int find(struct search *s, const char *text, const struct story_word *word, const char *journal, bool json)
{
        uint32_t which = 0;
        int code = journal ? open_journal(s, journal, false) : LESSOR_EXIT_OK;

        if (code == LESSOR_EXIT_OK)
                code = look(s, word, &which);
        if (code == LESSOR_EXIT_AWAY && (!client_is_away(s->r) || open_journal(s, NULL, true) != LESSOR_EXIT_OK))
                return show_away(s->verb->name, &s->client, s->r);
        if (code == LESSOR_EXIT_AWAY)
                code = look(s, word, &which);
        if (code == LESSOR_EXIT_REFUSED)
                return nothing_known(s, text, word);
        if (code != LESSOR_EXIT_OK || !s->body)
                return code != LESSOR_EXIT_OK ? code : LESSOR_EXIT_OWN;
        tell_which(word, which);
        if (json)
                show_json(s->body);
        else
                why_print(s->body);
        return LESSOR_EXIT_OK;
}

int verb_why_main(const struct verb *verb, int argc, char **argv)
{
        const char *text = NULL, *journal = NULL;
        struct search s = { .verb = verb };
        struct story_word word;
        struct error err = { 0 };
        struct options o;
        bool json = false;

        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_OPERAND && text)
                        return verb_usage_error(verb, "one lease, process or event at a time");
                if (what == OPTIONS_OPERAND)
                        text = o.value;
                else if (strcmp(option_name(&o, what), "journal") == 0)
                        journal = o.value;
                else
                        json = true;
        }
        if (!text)
                return verb_usage_error(verb,
                                        "of what? L17 is a lease (`lessor status`), P3120 a process, E4711 an event");
        if (story_word_parse(text, &word, &err) < 0)
                return verb_usage_error(verb, "%s", err.msg);
        client_init(&s.client);
        int code = find(&s, text, &word, journal, json);
        json_decref(s.body);
        journal_close(s.journal);
        return code;
}
