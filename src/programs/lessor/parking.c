/* SPDX-License-Identifier: Apache-2.0 */
/* `lessor park`, `thaw`, `idle`, `busy`: a lease off its device and back, by the word of a person or a script. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/duration.h"
#include "base/escape.h"
#include "model/lease.h"
#include "programs/lessor/look.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

enum { SHOWN_MAX = 64, PATH_TEXT_MAX = 96, TURN_MS = 30 * 1000, PATIENCE_MS = 10 * 60 * 1000 };

const struct option park_options[] = {
        { "for", "SPAN", "back after so long (default: until `lessor thaw`)", 0, "10m|30m|1h|2h" },
        { "rehearse", NULL, "back at once: to prove that it can be checkpointed" },
        { "forgive", NULL, "its failures are forgotten, and what is stuck is tried again; it stays where it is" },
        { "no-wait", NULL, "do not wait until it is off its device" },
        { "json", NULL, "print the lease as it is then" },
        { 0 },
};

const struct option thaw_options[] = {
        { "no-wait", NULL, "do not wait until it is back" },
        { "json", NULL, "print the lease as it is then" },
        { 0 },
};

const struct option idle_options[] = {
        { "keep-alive", "SPAN", "so long the program itself keeps what it has", 0, "5m|30m" },
        { "json", NULL, "print the lease as it is then" },
        { 0 },
};

const char park_more[] =
        "  lessor park L17               its memory is free for others, until `lessor thaw L17`\n"
        "  lessor park L17 --for 2h\n"
        "  lessor park L17 --rehearse    does it survive that? from then on it may be parked for others\n"
        "\n"
        "By a way out that it has: named with --yield-by, or a checkpoint that is proven. The memory comes back with "
        "all "
        "that is\n"
        "in it, when there is room. Only yours, or as an administrator.\n"
        "\n"
        "Exit status: 0 done, 1 it cannot be parked, 2 wrong use, 69 lessord is away.";
const char thaw_more[] =
        "  lessor thaw L17\n"
        "\n"
        "It comes back as soon as there is room for it; until then it waits in the queue like any other. Without any "
        "daemon:\n"
        "`lessor rescue`.\n"
        "\n"
        "Exit status: 0 it is back (or on its way, --no-wait), 1 it is not parked, 2 wrong use, 69 lessord is away.";
const char idle_more[] =
        "  lessor idle L17 --keep-alive 5m    nothing to do: who is idle is asked for its memory first\n"
        "  lessor busy L17                    at work again\n"
        "\n"
        "Exit status: 0 done, 1 there is no such lease any more, 2 wrong use, 69 lessord is away.";

struct typed {
        bool json, rehearse, forgive, no_wait;
        uint64_t span_ms; /* 0 = not said */
        char id[LEASE_ID_TEXT_MAX];
};

static int take_id(const struct verb *verb, const char *word, struct typed *t)
{
        char shown[SHOWN_MAX];
        uint64_t id;

        if (t->id[0] != '\0')
                return verb_usage_error(verb, "one lease at a time");
        if (!lease_id_parse(word, &id))
                return verb_usage_error(verb, "\"%s\" is no lease: an id is L and a number, as L17 (`lessor status`)",
                                        text_escape(word, strlen(word), shown, sizeof(shown)));
        (void) lease_id_text(id, t->id);
        return LOOK_ON;
}

static int take_option(const struct verb *verb, const char *name, const char *value, struct typed *t)
{
        struct error err = { 0 };

        if (strcmp(name, "json") == 0)
                t->json = true;
        else if (strcmp(name, "rehearse") == 0)
                t->rehearse = true;
        else if (strcmp(name, "forgive") == 0)
                t->forgive = true;
        else if (strcmp(name, "no-wait") == 0)
                t->no_wait = true;
        else if (duration_parse(strcmp(name, "for") == 0 ? "--for" : "--keep-alive", value, &t->span_ms, &err) < 0)
                return verb_usage_error(verb, "%s", err.msg);
        else if (t->span_ms == 0)
                return verb_usage_error(verb, "--%s: \"%s\" is no time at all; 30m, for example", name, value);
        return LOOK_ON;
}

static int read_words(const struct verb *verb, int argc, char **argv, struct typed *t)
{
        struct options o;

        *t = (struct typed){ 0 };
        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o), code; what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                code = what == OPTIONS_OPERAND ? take_id(verb, o.value, t)
                                               : take_option(verb, option_name(&o, what), o.value, t);
                if (code != LOOK_ON)
                        return code;
        }
        if (t->id[0] == '\0')
                return verb_usage_error(verb, "which lease? Its id stands in `lessor status`: L17, for example");
        if (t->rehearse + t->forgive + (t->span_ms != 0 && strcmp(verb->name, "park") == 0) > 1)
                return verb_usage_error(verb, "--for, --rehearse, --forgive: one of them");
        return LOOK_ON;
}

/* ---- asking, and waiting for what comes of it ---- */

/* @body becomes the call's; NULL = none. */
static int post(const struct verb *verb, const struct typed *t, const char *what, json_t *body, json_t **ret_lease)
{
        char path[PATH_TEXT_MAX];

        (void) snprintf(path, sizeof(path), "/api/leases/%s/%s", t->id, what);
        int code = show_call(verb->name, "POST", path, body, ret_lease);
        json_decref(body);
        return code;
}

typedef bool is_done_fn(const json_t *lease);

static bool has_state(const json_t *lease, const char *state)
{
        return strcmp(json_text(lease, "state", ""), state) == 0;
}

/* Off, or back where it was: neither will change by itself soon. */
static bool is_off_or_back(const json_t *lease)
{
        return !has_state(lease, "asking");
}

static bool is_through(const json_t *lease)
{
        return !has_state(lease, "asking") && !has_state(lease, "parked") && !has_state(lease, "thawing");
}

/* Looks again whenever it changed. *lease is replaced. */
static int wait_until(const struct verb *verb, is_done_fn *is_done, json_t **lease)
{
        uint64_t until_ms = clock_now_ms() + PATIENCE_MS;

        while (!is_done(*lease) && clock_now_ms() < until_ms) {
                char path[PATH_TEXT_MAX], id[LEASE_ID_TEXT_MAX];
                json_t *next = NULL;
                (void) snprintf(path, sizeof(path), "/api/leases/%s?after=%" PRIu64 "&wait_ms=%d",
                                show_field(*lease, "id", "", id, sizeof(id)), json_amount_or(*lease, "rev", 0),
                                TURN_MS);
                int code = show_get_slowly(verb->name, path, TURN_MS, &next);
                if (code != LESSOR_EXIT_OK)
                        return code;
                json_decref(*lease);
                *lease = next;
        }
        return LESSOR_EXIT_OK;
}

/* ---- what is said ---- */

static int say_parked(const struct typed *t, const json_t *lease)
{
        char why[SHOW_TEXT_MAX], bytes[SIZE_TEXT_MAX], way[32];
        const json_t *park = json_object_get(lease, "park");

        if (has_state(lease, "parked")) {
                (void) printf("%s is parked (%s): %s came free\n", t->id,
                              show_field(park, "way", "?", way, sizeof(way)), show_bytes(park, "bytes", bytes));
                return LESSOR_EXIT_OK;
        }
        if (has_state(lease, "asking")) {
                (void) printf("%s is on its way off its device\n", t->id);
                return LESSOR_EXIT_OK;
        }
        (void) fprintf(stderr, "lessor park: %s is not parked: %s\n", t->id,
                       show_field(lease, "why", "no reason is known", why, sizeof(why)));
        return LESSOR_EXIT_REFUSED;
}

static bool is_proven(const json_t *lease)
{
        size_t i;
        json_t *way;

        json_array_foreach(json_object_get(lease, "ways"), i,
                           way) if (json_is_true(json_object_get(way, "proven"))) return true;
        return false;
}

static int say_rehearsed(const struct typed *t, const json_t *lease)
{
        char why[SHOW_TEXT_MAX];

        if (has_state(lease, "active") && is_proven(lease)) {
                (void) printf("%s went and came back: it is proven that it can be checkpointed\n", t->id);
                return LESSOR_EXIT_OK;
        }
        (void) fprintf(stderr, "lessor park: %s proved nothing: %s\n", t->id,
                       show_field(lease, "why", "no reason is known", why, sizeof(why)));
        return LESSOR_EXIT_REFUSED;
}

static int say_thawed(const struct typed *t, const json_t *lease)
{
        char why[SHOW_TEXT_MAX], state[32];

        (void) show_field(lease, "state", "?", state, sizeof(state));
        if (has_state(lease, "active"))
                (void) printf("%s is back at work\n", t->id);
        else
                (void) printf("%s is %s still: %s\n", t->id, state,
                              show_field(lease, "why", "no reason is known", why, sizeof(why)));
        return LESSOR_EXIT_OK;
}

/* ---- the verbs ---- */

static int finish(const struct typed *t, int code, json_t *lease, int (*say)(const struct typed *, const json_t *))
{
        if (code == LESSOR_EXIT_OK && t->json)
                show_json(lease);
        else if (code == LESSOR_EXIT_OK)
                code = say(t, lease);
        json_decref(lease);
        return code;
}

static int say_forgiven(const struct typed *t, const json_t *lease)
{
        (void) lease;
        (void) printf("%s: what failed is forgotten\n", t->id);
        return LESSOR_EXIT_OK;
}

int verb_park_main(const struct verb *verb, int argc, char **argv)
{
        struct typed t;
        json_t *lease = NULL;
        int code = read_words(verb, argc, argv, &t);

        if (code != LOOK_ON)
                return code;
        if (t.forgive) {
                code = post(verb, &t, "forgive", NULL, &lease);
                return finish(&t, code, lease, say_forgiven);
        }
        code = post(verb, &t, "park",
                    t.rehearse       ? json_pack("{s:b}", "rehearse", 1)
                    : t.span_ms != 0 ? json_pack("{s:I}", "for_ms", (json_int_t) t.span_ms)
                                     : NULL,
                    &lease);
        if (code == LESSOR_EXIT_OK && !t.no_wait)
                code = wait_until(verb, t.rehearse ? is_through : is_off_or_back, &lease);
        return finish(&t, code, lease, t.rehearse && !t.no_wait ? say_rehearsed : say_parked);
}

int verb_thaw_main(const struct verb *verb, int argc, char **argv)
{
        struct typed t;
        json_t *lease = NULL;
        int code = read_words(verb, argc, argv, &t);

        if (code != LOOK_ON)
                return code;
        code = post(verb, &t, "thaw", NULL, &lease);
        if (code == LESSOR_EXIT_OK && !t.no_wait)
                code = wait_until(verb, is_through, &lease);
        return finish(&t, code, lease, say_thawed);
}

static int say_idle(const struct typed *t, const json_t *lease)
{
        (void) printf("%s is %s\n", t->id, json_is_null(json_object_get(lease, "idle_ms")) ? "at work" : "idle");
        return LESSOR_EXIT_OK;
}

int verb_idle_main(const struct verb *verb, int argc, char **argv)
{
        struct typed t;
        json_t *lease = NULL;
        int code = read_words(verb, argc, argv, &t);

        if (code != LOOK_ON)
                return code;
        json_t *body = t.span_ms != 0 ? json_pack("{s:I}", "keep_alive_ms", (json_int_t) t.span_ms) : NULL;
        code = post(verb, &t, verb->name, body, &lease);
        return finish(&t, code, lease, say_idle);
}
