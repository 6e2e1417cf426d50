/* SPDX-License-Identifier: Apache-2.0 */
/* `renice`, `extend`, `pin`, `unpin`: change a lease that lives. One PATCH each, all of it or nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/duration.h"
#include "base/escape.h"
#include "model/lease.h"
#include "programs/lessor/look.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

enum { WORDS_MAX = 2, SHOWN_MAX = 64 };

const struct option pin_options[] = {
        { "for", "SPAN", "so long; default: as long as you may (`lessor limits`)", 0, "10m|30m|1h|2h" },
        { "json", NULL, "print the lease as it is then" },
        { 0 },
};
const struct option change_options[] = { { "json", NULL, "print the lease as it is then" }, { 0 } };

const char renice_more[] = "  lessor renice batch L17\n"
                           "  lessor renice 2 L17\n"
                           "\n"
                           "PRIORITY is 1 urgent, 2 interactive, 3 normal, 4 batch or 5 filler; smaller is more "
                           "important.\n"
                           "A lease that waits moves in the queue at once. Above what you may ask for is refused: "
                           "`lessor limits`.\n"
                           "\n"
                           "Exit status: 0 done, 1 refused, 2 wrong use, 69 lessord is away.";
const char extend_more[] = "  lessor extend L17 30m\n"
                           "\n"
                           "Its slot (--for) ends so much later: 90s, 30m, 1h30m. A lease without a slot has no end to "
                           "move, and one that\n"
                           "went ahead of others because it promised to end keeps its end; both are refused.\n"
                           "\n"
                           "Exit status: 0 done, 1 refused, 2 wrong use, 69 lessord is away.";
const char pin_more[] =
        "  lessor pin L17 --for 2h\n"
        "  lessor unpin L17\n"
        "\n"
        "A pinned lease is never taken back, whoever asks. How many and for how long: `lessor limits`.\n"
        "\n"
        "Exit status: 0 done, 1 refused, 2 wrong use, 69 lessord is away.";

/* What was typed behind the verb. */
struct typed {
        const char *words[WORDS_MAX];
        size_t n_words;
        const char *span; /* --for */
        bool json;
};

/* LOOK_ON, or the exit code. */
static int read_words(const struct verb *verb, int argc, char **argv, size_t n_wanted, struct typed *ret)
{
        struct options o;
        *ret = (struct typed){ 0 };
        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_OPERAND) {
                        if (ret->n_words == n_wanted)
                                return verb_usage_error(verb, "one lease at a time");
                        ret->words[ret->n_words++] = o.value;
                } else if (strcmp(option_name(&o, what), "json") == 0) {
                        ret->json = true;
                } else {
                        ret->span = o.value;
                }
        }
        if (ret->n_words < n_wanted)
                return verb_usage_error(verb, "something is missing: lessor %s %s", verb->name, verb->synopsis);
        return LOOK_ON;
}

static int read_id(const struct verb *verb, const char *word, char ret_id[LEASE_ID_TEXT_MAX])
{
        char shown[SHOWN_MAX];
        uint64_t id;
        if (!lease_id_parse(word, &id))
                return verb_usage_error(verb, "\"%s\" is no lease: an id is L and a number, as L17 (`lessor status`)",
                                        text_escape(word, strlen(word), shown, sizeof(shown)));
        (void) lease_id_text(id, ret_id);
        return LOOK_ON;
}

/* An id with its L may stand on either side: nobody remembers the order. */
static void put_id_at(struct typed *typed, size_t at)
{
        uint64_t id;
        const char *other = typed->words[1 - at];
        bool swapped = other[0] == 'L' && lease_id_parse(other, &id) &&
                       !(typed->words[at][0] == 'L' && lease_id_parse(typed->words[at], &id));
        if (!swapped)
                return;
        typed->words[1 - at] = typed->words[at];
        typed->words[at] = other;
}

/* @body becomes the call's. The lease as it is then is the caller's. */
static int patch(const struct verb *verb, const char *id, json_t *body, bool json, json_t **ret_lease)
{
        char path[64];
        if (!body)
                return verb_usage_error(verb, "no memory");
        (void) snprintf(path, sizeof(path), "/api/leases/%s", id);
        int code = show_call(verb->name, "PATCH", path, body, ret_lease);
        json_decref(body);
        if (code == LESSOR_EXIT_OK && json)
                show_json(*ret_lease);
        return code;
}

int verb_renice_main(const struct verb *verb, int argc, char **argv)
{
        struct typed typed;
        char id[LEASE_ID_TEXT_MAX], name[32], shown[SHOWN_MAX];
        uint8_t priority;
        json_t *lease = NULL;

        int code = read_words(verb, argc, argv, 2, &typed);
        if (code != LOOK_ON)
                return code;
        put_id_at(&typed, 1);
        if (!priority_parse(typed.words[0], &priority))
                return verb_usage_error(verb,
                                        "\"%s\" is not a priority; allowed are 1 urgent, 2 interactive, 3 normal, 4 "
                                        "batch, 5 filler, as a number or a name",
                                        text_escape(typed.words[0], strlen(typed.words[0]), shown, sizeof(shown)));
        code = read_id(verb, typed.words[1], id);
        if (code != LOOK_ON)
                return code;
        code = patch(verb, id, json_pack("{s:i}", "priority", (int) priority), typed.json, &lease);
        if (code == LESSOR_EXIT_OK && !typed.json)
                (void) printf("%s is %s now\n", id, show_field(lease, "priority_name", "?", name, sizeof(name)));
        json_decref(lease);
        return code;
}

static int read_span(const struct verb *verb, const char *what, const char *word, uint64_t *ret_ms)
{
        struct error err = { 0 };
        if (duration_parse(what, word, ret_ms, &err) < 0)
                return verb_usage_error(verb, "%s", err.msg);
        if (*ret_ms == 0)
                return verb_usage_error(verb, "%s: \"%s\" is no time at all; 30m, for example", what, word);
        return LOOK_ON;
}

int verb_extend_main(const struct verb *verb, int argc, char **argv)
{
        struct typed typed;
        char id[LEASE_ID_TEXT_MAX], left[DURATION_TEXT_MAX];
        uint64_t ms;
        json_t *lease = NULL;

        int code = read_words(verb, argc, argv, 2, &typed);
        if (code != LOOK_ON)
                return code;
        put_id_at(&typed, 0);
        code = read_id(verb, typed.words[0], id);
        if (code == LOOK_ON)
                code = read_span(verb, "SPAN", typed.words[1], &ms);
        if (code != LOOK_ON)
                return code;
        code = patch(verb, id, json_pack("{s:I}", "extend_ms", (json_int_t) ms), typed.json, &lease);
        if (code == LESSOR_EXIT_OK && !typed.json) {
                if (json_amount(lease, "slot_left_ms", &ms))
                        (void) printf("%s has %s left\n", id, duration_text(ms, left));
                else
                        (void) printf("%s: its time counts from its start\n", id);
        }
        json_decref(lease);
        return code;
}

int verb_pin_main(const struct verb *verb, int argc, char **argv)
{
        struct typed typed;
        char id[LEASE_ID_TEXT_MAX], left[DURATION_TEXT_MAX];
        uint64_t ms;
        json_t *lease = NULL;
        bool unpin = strcmp(verb->name, "unpin") == 0;

        int code = read_words(verb, argc, argv, 1, &typed);
        if (code == LOOK_ON)
                code = read_id(verb, typed.words[0], id);
        if (code == LOOK_ON && typed.span)
                code = read_span(verb, "--for", typed.span, &ms);
        if (code != LOOK_ON)
                return code;
        json_t *pin = unpin ? json_false() : typed.span ? json_sprintf("%" PRIu64 "ms", ms) : json_true();
        code = patch(verb, id, json_pack("{s:o}", "pin", pin), typed.json, &lease);
        if (code == LESSOR_EXIT_OK && !typed.json) {
                if (unpin)
                        (void) printf("%s is not pinned any more\n", id);
                else if (json_amount(lease, "pin_left_ms", &ms))
                        (void) printf("%s is pinned for %s\n", id, duration_text(ms, left));
                else
                        (void) printf("%s is pinned\n", id);
        }
        json_decref(lease);
        return code;
}
