/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include "programs/lessor/show.h"
#include "programs/lessor/why.h"

enum { TIME_MAX = 48, WHAT_MAX = 96, ID_MAX = 32 };

static void print_cause(const json_t *step)
{
        char because[SHOW_TEXT_MAX], cause[ID_MAX];
        const char *words = show_field(step, "because", "", because, sizeof(because));
        bool has_cause = json_is_integer(json_object_get(step, "cause"));

        if (!has_cause && words[0] == '\0')
                return;
        (void) printf("%s  ← %s%s%s%s%s", show_colour(SHOW_DIM), has_cause ? "E" : "",
                      has_cause ? show_field(step, "cause", "", cause, sizeof(cause)) : "",
                      has_cause && words[0] != '\0' ? ", " : "", words, show_colour(SHOW_PLAIN));
}

static void print_step(const json_t *step)
{
        char time[TIME_MAX], event[ID_MAX], lease[ID_MAX], what[WHAT_MAX], text[SHOW_TEXT_MAX];
        bool is_event = json_is_integer(json_object_get(step, "event")),
             is_it = json_is_true(json_object_get(step, "is_subject"));
        const char *said = show_field(step, "text", "", text, sizeof(text)),
                   *kind = show_field(step, "what", "?", what, sizeof(what));

        if (strncmp(said, kind, strlen(kind)) == 0) /* "parked: 20 GiB …" says it already */
                kind = "";
        (void) printf("%s%s%s  %s%s%-6s %-6s %s%s%s%s", show_colour(SHOW_DIM),
                      show_field(step, "time", "?", time, sizeof(time)), show_colour(SHOW_PLAIN),
                      is_it ? show_colour(SHOW_BOLD) : "", is_event ? "E" : " ",
                      show_field(step, "event", "", event, sizeof(event)),
                      show_field(step, "lease", "", lease, sizeof(lease)), kind,
                      said[0] != '\0' && kind[0] != '\0' ? ": " : "", said, is_it ? show_colour(SHOW_PLAIN) : "");
        print_cause(step);
        (void) fputc('\n', stdout);
}

static void print_rhythm(const json_t *rhythm)
{
        char what[WHAT_MAX], lease[ID_MAX], text[SHOW_TEXT_MAX], first[TIME_MAX], last[TIME_MAX];

        (void) printf("%s%s %s%s%s, from %s to %s%s\n", show_colour(SHOW_YELLOW),
                      show_field(rhythm, "lease", "", lease, sizeof(lease)),
                      show_field(rhythm, "what", "?", what, sizeof(what)), ": ",
                      show_field(rhythm, "text", "", text, sizeof(text)),
                      show_field(rhythm, "first", "?", first, sizeof(first)),
                      show_field(rhythm, "last", "?", last, sizeof(last)), show_colour(SHOW_PLAIN));
}

/* Of a lessord that could not read its journal as a whole just now. */
static void print_event(const json_t *event)
{
        char time[TIME_MAX], text[SHOW_TEXT_MAX];

        (void) printf("%s%s%s  %s\n", show_colour(SHOW_DIM), show_field(event, "time", "?", time, sizeof(time)),
                      show_colour(SHOW_PLAIN), show_field(event, "text", "", text, sizeof(text)));
}

static void print_lease(const json_t *body)
{
        const json_t *lease = json_object_get(body, "lease");
        char text[SHOW_TEXT_MAX], state[ID_MAX], id[ID_MAX];

        if (!json_is_object(lease)) {
                (void) printf("in the end: %s\n", show_field(body, "text", "no more is known", text, sizeof(text)));
                return;
        }
        (void) printf("now: %s is %s: %s\n", show_field(lease, "id", "?", id, sizeof(id)),
                      show_field(lease, "state", "?", state, sizeof(state)),
                      show_field(body, "text", "no more is known", text, sizeof(text)));
        if (json_is_string(json_object_get(lease, "expectation")))
                (void) printf("expected: %s\n", show_field(lease, "expectation", "", text, sizeof(text)));
}

static void print_process(const json_t *body)
{
        uint64_t n = json_amount_or(body, "processes", 0);
        const json_t *leases = json_object_get(body, "leases"), *lease;
        size_t i;

        if (n > 1)
                (void) printf("%llu processes had this pid, one after another\n", (unsigned long long) n);
        json_array_foreach(leases, i, lease)
        {
                if (json_is_string(lease))
                        (void) printf("%s%s", i == 0 ? "under " : ", ", json_string_value(lease));
        }
        if (json_array_size(leases) > 0)
                (void) fputc('\n', stdout);
}

void why_print(const json_t *body)
{
        json_t *steps = json_object_get(body, "steps"), *one;
        char since[TIME_MAX];
        size_t i;

        if (json_is_true(json_object_get(body, "is_cut")))
                (void) printf("%s(there is more, older: lessor events)%s\n", show_colour(SHOW_DIM),
                              show_colour(SHOW_PLAIN));
        json_array_foreach(steps, i, one) print_step(one);
        if (!steps)
                json_array_foreach(json_object_get(body, "events"), i, one) print_event(one);
        json_array_foreach(json_object_get(body, "rhythms"), i, one) print_rhythm(one);
        if (json_is_integer(json_object_get(body, "processes")))
                print_process(body);
        if (json_object_get(body, "text"))
                print_lease(body);
        if (json_amount_or(body, "damages", 0) > 0)
                (void) printf("the journal is damaged: `lessor journal verify` says where (known since %s)\n",
                              show_field(body, "since", "?", since, sizeof(since)));
}
