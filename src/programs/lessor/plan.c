/* SPDX-License-Identifier: Apache-2.0 */
/* `plan`: what `run` with the same words would get now, and why. Asks for nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/duration.h"
#include "client/consumer.h"
#include "model/lease.h"
#include "programs/lessor/ask.h"
#include "programs/lessor/look.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

enum { OLD_MS = 2000 };

const struct option plan_options[] = { { "json", NULL, "print JSON, as the API gives it" }, { 0 } };

const char plan_more[] =
        "  lessor plan --vram 12G --for 2h && lessor run --vram 12G --for 2h -- python3 train.py\n"
        "\n"
        "Nothing is asked for and nothing changes. The answer is about this moment: between it and a `run` somebody\n"
        "else may come.\n"
        "A command may follow, as with `run`; it is not run.\n"
        "\n"
        "Exit status: 0 it would start now, 124 it would wait, 1 it would be refused, 2 wrong use, 69 lessord is away.";

static int read_plan(const struct verb *verb, int argc, char **argv, struct ask *ask, bool *ret_json)
{
        struct options o;
        struct error err = { 0 };

        if (ask_init(ask, &err) < 0)
                return verb_usage_error(verb, "%s", err.msg);
        options_init(&o, verb, argc, argv);
        o.operands_end_it = true;
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (strcmp(option_name(&o, what), "json") == 0)
                        *ret_json = true;
                else if (ask_option(ask, option_name(&o, what), o.value, &err) < 0)
                        return verb_usage_error(verb, "%s", err.msg);
        }
        ask->pid = (uint64_t) getpid();
        if (o.at < argc && ask->consumer[0] == '\0')
                (void) consumer_of_command(argv + o.at, ask->consumer);
        return LOOK_ON;
}

/* Whose memory would be taken back for it, in that order. */
static void print_victims(const json_t *plan)
{
        const json_t *victims = json_object_get(plan, "victims");
        size_t i;
        json_t *victim;
        uint64_t ms;
        char span[DURATION_TEXT_MAX];

        json_array_foreach(victims, i, victim)
        {
                char lease[32], user[64], way[32], bytes[SIZE_TEXT_MAX];
                uint64_t level = json_amount_or(victim, "priority", 0);
                (void) printf("  %s (%s, %s) gives way by %s: %s",
                              show_field(victim, "lease", "?", lease, sizeof(lease)),
                              show_field(victim, "user", "?", user, sizeof(user)), priority_name((unsigned) level),
                              show_field(victim, "way", "?", way, sizeof(way)), show_bytes(victim, "bytes", bytes));
                if (json_amount(victim, "out_ms", &ms))
                        (void) printf(", in about %s", duration_text(ms, span));
                (void) fputc('\n', stdout);
        }
        if (json_array_size(victims) > 0 && json_amount(plan, "out_ms", &ms))
                (void) printf("  then it starts, in about %s\n", duration_text(ms, span));
}

static void print_plan(const json_t *plan, const char *outcome)
{
        char text[SHOW_TEXT_MAX], size[SIZE_TEXT_MAX], device[64], span[DURATION_TEXT_MAX], sized[SHOW_SIZED_MAX];
        uint64_t place, n, ms, bytes;

        (void) show_field(plan, "text", "no reason given", text, sizeof(text));
        if (strcmp(outcome, "start") == 0) {
                (void) show_field(plan, "device", "?", device, sizeof(device));
                (void) printf("%sit would start now%s", show_colour(SHOW_GREEN), show_colour(SHOW_PLAIN));
                if (json_amount(plan, "bytes", &bytes))
                        (void) printf(" with %s on %s", size_text(bytes, size), device);
                (void) fputc('\n', stdout);
        } else if (strcmp(outcome, "wait") == 0) {
                const char *why = strncmp(text, "waits: ", 7) == 0 ? text + 7 : text;
                (void) printf("%sit would wait%s: %s", show_colour(SHOW_YELLOW), show_colour(SHOW_PLAIN), why);
                if (!strstr(why, "place ") && json_amount(plan, "place", &place) && json_amount(plan, "n_waiting", &n))
                        (void) printf("; place %" PRIu64 " of %" PRIu64, place, n);
                if (!strstr(why, "expected start") && json_amount(plan, "expected_start_ms", &ms))
                        (void) printf("; expected start in %s", duration_text(ms, span));
                else if (!strstr(why, "expected start"))
                        (void) printf("; when is unknown");
                (void) fputc('\n', stdout);
        } else {
                (void) printf("%sit would be refused%s: %s\n", show_colour(SHOW_RED), show_colour(SHOW_PLAIN), text);
        }
        print_victims(json_object_get(plan, "plan"));
        if (show_sized(plan, sized) && json_amount(plan, "bytes", &bytes))
                (void) printf("  %s: %s, %s\n",
                              strcmp(json_text(plan, "sized", ""), "raised") == 0 ? "more than --vram" : "no --vram",
                              size_text(bytes, size), sized);
        if (!json_amount(plan, "as_of_ms", &ms))
                (void) printf("  the devices were never looked at\n");
        else if (ms > OLD_MS)
                (void) printf("  by what the devices looked like %s ago\n", duration_text(ms, span));
}

int verb_plan_main(const struct verb *verb, int argc, char **argv)
{
        struct ask ask;
        struct lessor *l = NULL;
        struct lessor_request *request = NULL;
        struct lessor_error *error = NULL;
        char *text = NULL;
        bool json = false;

        int code = read_plan(verb, argc, argv, &ask, &json);
        if (code != LOOK_ON)
                return code;
        if (lessor_open(&l, NULL, &error) < 0 || lessor_set_if_down(l, LESSOR_IF_DOWN_FAIL, 0) < 0 ||
            ask_request(&ask, LESSOR_FOR_EVER, &request) < 0 || lessor_plan(l, request, &text, &error) < 0) {
                code = show_failure(verb->name, error);
        } else {
                json_t *plan = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
                const char *outcome = json_text(plan, "outcome", "refused");
                if (json)
                        show_json(plan);
                else
                        print_plan(plan, outcome);
                code = strcmp(outcome, "start") == 0  ? LESSOR_EXIT_OK
                       : strcmp(outcome, "wait") == 0 ? LESSOR_EXIT_WAIT_OVER
                                                      : LESSOR_EXIT_REFUSED;
                json_decref(plan);
        }
        free(text);
        lessor_error_free(error);
        lessor_request_free(request);
        lessor_close(l);
        return code;
}
