/* SPDX-License-Identifier: Apache-2.0 */
/* `lessor book`, `book list`, `book cancel`: memory promised for a time to come. Local time is resolved here, where it is meant. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "base/duration.h"
#include "base/escape.h"
#include "base/local_time.h"
#include "model/lease.h"
#include "programs/lessor/ask.h"
#include "programs/lessor/look.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

enum { SHOWN_MAX = 64 };

const struct option book_options[] = {
        { "at", "TIME", "when, in local time: 22:00 (today or tomorrow), \"tomorrow 07:30\", \"2026-12-01 22:00\"" },
        { "in", "SPAN", "instead: so long from now on", 0, "30m|1h|2h|8h" },
        { "for", "SPAN", "how long", 0, "30m|1h|2h|3h|8h" },
        { "vram", "SIZE", "how much: 1500M, 12G, 90%, all", 0, "all" },
        { "every", "day", "again each day, until it is cancelled", 0, "day" },
        { "device", "UUID", "only on this device; a unique beginning will do", 0, "@devices" },
        { "name", "TEXT", "shown in `lessor status`" },
        { "yield-by", "WAYS",
          "how its memory may be taken back, once its time is over: cooperate,checkpoint,restart,kill", 0,
          "cooperate|checkpoint|release|restart|kill" },
        { "json", NULL, "print the whole lease instead of its id" },
        { 0 },
};

const char book_more[] =
        "  id=$(lessor book --at 22:00 --for 3h --vram 24G)\n"
        "  lessor run --booking \"$id\" -- python3 train.py    waits for its time, and runs in it\n"
        "  lessor book --at 22:00 --for 3h --vram 24G --every day\n"
        "  lessor book list\n"
        "  lessor book cancel L7\n"
        "\n"
        "Prints the id. Until then others use the memory if they end in time or can give way; from then on it is kept "
        "free for\n"
        "you until its time is over or you give it back. A booking is nobody's process: it outlives this shell.\n"
        "A time of day that the clock leaves out (02:30, where it goes from 02:00 to 03:00) is the moment it does so; "
        "one that is\n"
        "there twice is the first. The day after, it is what it was.\n"
        "\n"
        "Exit status: 0 booked, 1 refused, 2 wrong use, 69 lessord is away.";
const char book_list_more[] = "  lessor book list\n"
                              "  lessor book list --json | jq '.[].booking.start'\n"
                              "\n"
                              "Everybody's, the next one first: they are what a new booking has to fit beside.\n"
                              "\n"
                              "Exit status: 0 done, 2 wrong use, 69 lessord is away.";
const char book_cancel_more[] = "  lessor book cancel L7\n"
                                "\n"
                                "One that is made each day is not made again.\n"
                                "\n"
                                "Exit status: 0 done, 1 there is no such booking, 2 wrong use, 69 lessord is away.";

/* What was typed. */
struct wish {
        struct ask ask;
        const char *at, *size;
        uint64_t in_ms; /* 0 = --at */
        int64_t start_s;
        struct local_time local;
        enum local_kind kind;
        bool every_day, json;
};

/* ---- options ---- */

static int take_option(const struct verb *verb, struct wish *w, const char *name, const char *value)
{
        char shown[SHOWN_MAX];
        struct error err = { 0 };

        if (strcmp(name, "json") == 0) {
                w->json = true;
        } else if (strcmp(name, "at") == 0) {
                w->at = value;
        } else if (strcmp(name, "in") == 0) {
                if (duration_parse("--in", value, &w->in_ms, &err) < 0)
                        return verb_usage_error(verb, "%s", err.msg);
                if (w->in_ms == 0)
                        return verb_usage_error(verb, "--in: a booking begins later than now; 30m, for example");
        } else if (strcmp(name, "every") == 0) {
                w->every_day = strcmp(value, "day") == 0;
                if (!w->every_day)
                        return verb_usage_error(verb, "--every: \"%s\" is not possible; day is",
                                                text_escape(value, strlen(value), shown, sizeof(shown)));
        } else {
                if (strcmp(name, "vram") == 0)
                        w->size = value;
                if (ask_option(&w->ask, name, value, &err) < 0)
                        return verb_usage_error(verb, "%s", err.msg);
        }
        return LOOK_ON;
}

static int check(const struct verb *verb, struct wish *w)
{
        struct error err = { 0 };

        if (!w->at == (w->in_ms == 0))
                return verb_usage_error(verb, w->at ? "--at and --in: one of the two" : "when? --at 22:00, or --in 2h");
        if (w->ask.for_ms == 0)
                return verb_usage_error(verb, "for how long? --for 3h");
        if (!w->size)
                return verb_usage_error(verb, "how much? --vram 12G");
        if (w->at && local_parse("--at", w->at, (int64_t) (clock_now_wall_ms() / 1000), &w->start_s, &w->local,
                                 &w->kind, &err) < 0)
                return verb_usage_error(verb, "%s", err.msg);
        return LOOK_ON;
}

/* LOOK_ON, or the exit code. */
static int read_options(const struct verb *verb, int argc, char **argv, struct wish *w)
{
        struct options o;
        struct error err = { 0 };

        *w = (struct wish){ 0 };
        if (ask_init(&w->ask, &err) < 0)
                return verb_usage_error(verb, "%s", err.msg);
        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_OPERAND)
                        return verb_usage_error(verb, "it takes no words but list and cancel; did you mean --at?");
                int code = take_option(verb, w, option_name(&o, what), o.value);
                if (code != LOOK_ON)
                        return code;
        }
        return check(verb, w);
}

/* ---- asking ---- */

static json_t *question(const struct wish *w)
{
        char start[LOCAL_TIME_TEXT_MAX];
        json_t *body = json_pack("{s:s, s:I, s:s}", "bytes", w->size, "for_ms", (json_int_t) w->ask.for_ms, "consumer",
                                 "lessor book");

        if (body && w->at)
                (void) json_object_set_new(body, "start", json_string(rfc3339_local_text(w->start_s, start)));
        else if (body)
                (void) json_object_set_new(body, "in", json_sprintf("%" PRIu64 "ms", w->in_ms));
        if (body && w->every_day)
                (void) json_object_set_new(body, "every", json_string("day"));
        if (body && w->ask.device[0] != '\0')
                (void) json_object_set_new(body, "device", json_string(w->ask.device));
        if (body && w->ask.name)
                (void) json_object_set_new(body, "name", json_string(w->ask.name));
        if (body && w->ask.yield_by)
                (void) json_object_set_new(body, "yield_by", json_string(w->ask.yield_by));
        return body;
}

/* Asked under a key: an answer that is lost does not make two of it. */
static int ask_for(const struct verb *verb, const struct wish *w, json_t **ret_lease)
{
        struct lessor *l = NULL;
        struct lessor_error *error = NULL;
        char *text = NULL;
        json_t *body = question(w);
        char *words = body ? json_dumps(body, JSON_COMPACT) : NULL;

        json_decref(body);
        int r = words ? lessor_open(&l, NULL, &error) : -1;
        if (r == 0)
                r = lessor_set_if_down(l, LESSOR_IF_DOWN_FAIL, 0);
        if (r == 0)
                r = lessor_call(l, "POST", "/api/leases", words, NULL, &text, &error);
        int code = r == 0 ? LESSOR_EXIT_OK : show_failure(verb->name, error);
        if (r == 0)
                *ret_lease = json_loads(text, 0, NULL);
        free(words);
        free(text);
        lessor_error_free(error);
        lessor_close(l);
        return code;
}

/* ---- saying it ---- */

static int64_t moment_of(const json_t *booking, const char *key)
{
        uint64_t wall_ms = 0;

        (void) rfc3339_parse(json_text(booking, key, ""), &wall_ms);
        return (int64_t) (wall_ms / 1000);
}

static void say_clock(const struct wish *w, int64_t start_s)
{
        char by[DURATION_TEXT_MAX];
        int64_t by_s = 0, now_s = (int64_t) (clock_now_wall_ms() / 1000);
        unsigned hour = w->local.second / 3600, minute = w->local.second / 60 % 60;

        if (w->at && w->kind == LOCAL_LEFT_OUT)
                (void) fprintf(stderr, "  the clock leaves %02u:%02u out that day: it begins when it does so\n", hour,
                               minute);
        else if (w->at && w->kind == LOCAL_TWICE)
                (void) fprintf(stderr, "  %02u:%02u is there twice that day: this is the first\n", hour, minute);
        if (local_clock_is_set_between(now_s, start_s, &by_s))
                (void) fprintf(stderr, "  until then the clock is set %s by %s\n", by_s > 0 ? "forward" : "back",
                               duration_text((uint64_t) (by_s > 0 ? by_s : -by_s) * 1000, by));
}

static int say_booked(const struct wish *w, const json_t *lease)
{
        char id[LEASE_ID_TEXT_MAX], size[SHOWN_MAX], start[LOCAL_TIME_TEXT_MAX], end[LOCAL_TIME_TEXT_MAX];
        char span[DURATION_TEXT_MAX];
        const json_t *booking = json_object_get(lease, "booking");
        int64_t start_s = moment_of(booking, "start");

        (void) show_field(lease, "id", "?", id, sizeof(id));
        (void) fprintf(stderr, "lessor book: %s from %s, in %s,\n  until %s\n",
                       show_field(lease, "size", "?", size, sizeof(size)), local_text(start_s, start),
                       duration_text(json_amount_or(booking, "begins_in_ms", 0), span),
                       local_text(moment_of(booking, "end"), end));
        say_clock(w, start_s);
        if (w->every_day)
                (void) fprintf(
                        stderr,
                        "  each day again, at %.8s as this machine's clock shows it; `lessor book cancel` ends that\n",
                        json_text(booking, "every_at", "?"));
        (void) fprintf(stderr, "  then: lessor run --booking %s -- COMMAND\n", id);
        return printf("%s\n", id) > 0 ? LESSOR_EXIT_OK : LESSOR_EXIT_REFUSED;
}

int verb_book_main(const struct verb *verb, int argc, char **argv)
{
        struct wish w;
        json_t *lease = NULL;

        if (argc > 1 && argv[1][0] != '-')
                return verb_group_main(verb, argc, argv);
        int code = read_options(verb, argc, argv, &w);
        if (code != LOOK_ON)
                return code;
        code = ask_for(verb, &w, &lease);
        if (code == LESSOR_EXIT_OK && w.json)
                show_json(lease);
        else if (code == LESSOR_EXIT_OK)
                code = say_booked(&w, lease);
        json_decref(lease);
        return code;
}

/* ---- list ---- */

static int by_start(const void *a, const void *b)
{
        const json_t *const *x = a, *const *y = b;

        return strcmp(json_text(json_object_get(*x, "booking"), "start", ""),
                      json_text(json_object_get(*y, "booking"), "start", ""));
}

/* The bookings among @leases, by their start: a new list. */
static json_t *bookings_of(const json_t *leases)
{
        size_t i, n = 0, n_all = json_array_size(leases);
        json_t *lease, *list = json_array(), **found = calloc(n_all + 1, sizeof(json_t *));

        json_array_foreach(leases, i, lease)
        {
                if (found && json_is_object(json_object_get(lease, "booking")))
                        found[n++] = lease;
        }
        if (found && n > 1)
                qsort(found, n, sizeof(json_t *), by_start);
        for (i = 0; found && i < n; i++)
                (void) json_array_append(list, found[i]);
        free(found);
        return list;
}

static void print_booking(const json_t *lease)
{
        char id[LEASE_ID_TEXT_MAX], size[SIZE_TEXT_MAX], start[LOCAL_TIME_TEXT_MAX], user[SHOWN_MAX], name[SHOWN_MAX];
        char span[DURATION_TEXT_MAX], words[SHOW_TEXT_MAX];
        const json_t *booking = json_object_get(lease, "booking");
        int64_t start_s = moment_of(booking, "start"), end_s = moment_of(booking, "end");

        (void) printf("  %-6s %s  for %-8s %11s  %s", show_field(lease, "id", "?", id, sizeof(id)),
                      local_text(start_s, start),
                      duration_text((uint64_t) (end_s > start_s ? end_s - start_s : 0) * 1000, span),
                      show_bytes(lease, "bytes", size), show_field(lease, "user", "?", user, sizeof(user)));
        if (show_field(lease, "name", "", name, sizeof(name))[0] != '\0')
                (void) printf(" · %s", name);
        if (json_is_string(json_object_get(booking, "every")))
                (void) printf("  each day at %.5s", json_text(booking, "every_at", "?"));
        (void) printf("\n         %s\n", show_field(booking, "words", "", words, sizeof(words)));
}

int verb_book_list_main(const struct verb *verb, int argc, char **argv)
{
        json_t *body = NULL, *list, *lease;
        bool json = false;
        size_t i;

        int code = look_options(verb, argc, argv, &json);
        if (code != LOOK_ON)
                return code;
        code = show_get(verb->name, "/api/leases", &body);
        if (code != LESSOR_EXIT_OK)
                return code;
        list = bookings_of(json_object_get(body, "leases"));
        if (json)
                show_json(list);
        else if (json_array_size(list) == 0)
                (void) printf("nothing is booked\n");
        else
                json_array_foreach(list, i, lease) print_booking(lease);
        json_decref(list);
        json_decref(body);
        return LESSOR_EXIT_OK;
}

/* ---- cancel ---- */

int verb_book_cancel_main(const struct verb *verb, int argc, char **argv)
{
        char id[LEASE_ID_TEXT_MAX], path[SHOWN_MAX];
        json_t *lease = NULL, *after = NULL;
        bool json = false;

        int code = look_id_options(verb, argc, argv, &json, id, sizeof(id));
        if (code != LOOK_ON)
                return code;
        (void) snprintf(path, sizeof(path), "/api/leases/%s", id);
        code = show_get(verb->name, path, &lease);
        if (code != LESSOR_EXIT_OK)
                return code;
        if (!json_is_object(json_object_get(lease, "booking"))) {
                (void) fprintf(stderr,
                               "lessor book cancel: %s is no booking; `lessor lease release %s` gives it back\n", id,
                               id);
                json_decref(lease);
                return LESSOR_EXIT_REFUSED;
        }
        code = show_call(verb->name, "DELETE", path, NULL, &after);
        if (code == LESSOR_EXIT_OK)
                (void) printf("%s is cancelled%s\n", id,
                              json_is_string(json_object_get(json_object_get(lease, "booking"), "every"))
                                      ? ", and not made again"
                                      : "");
        json_decref(lease);
        json_decref(after);
        return code;
}
