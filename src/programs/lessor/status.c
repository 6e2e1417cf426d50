/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/duration.h"
#include "programs/lessor/live.h"
#include "programs/lessor/look.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

const struct option status_options[] = {
        { "watch", "[SECONDS]", "again and again until Ctrl-C, in place on a terminal (default: every second)" },
        { "json", NULL, "print JSON, as the API gives it; with --watch one object a line" },
        { 0 },
};

const char status_more[] =
        "  lessor status\n"
        "  lessor status --watch 5\n"
        "\n"
        "In the bar # is used, = promised and not used yet, . free. Strangers are programs that use memory nobody "
        "promised them;\n"
        "under each of your own stands the command that gives it a lease.\n"
        "\n"
        "Exit status: 0 done, also after Ctrl-C; 2 wrong use; 69 lessord is away (--watch: for more than 60 s).";

/* What a person must know before reading on: figures that are old, a store that fails, a card that is not ours. */
static void print_banners(const json_t *status)
{
        char gpu[32], text[SHOW_TEXT_MAX];
        (void) show_field(status, "gpu", "?", gpu, sizeof(gpu));
        if (strcmp(gpu, "stale") == 0)
                (void) printf("%s! the driver does not answer: figures are old, nothing is granted%s\n",
                              show_colour(SHOW_RED), show_colour(SHOW_PLAIN));
        else if (strcmp(gpu, "none") == 0)
                (void) printf("%s! no driver here (libnvidia-ml.so.1 cannot be opened): nothing can be granted%s\n",
                              show_colour(SHOW_YELLOW), show_colour(SHOW_PLAIN));
        else if (strcmp(gpu, "mismatch") == 0)
                (void) printf(
                        "%s! the driver and its library have different versions: reboot; leases go on, nothing is "
                        "granted%s\n",
                        show_colour(SHOW_RED), show_colour(SHOW_PLAIN));

        const json_t *degraded = json_object_get(status, "degraded");
        if (json_is_string(degraded))
                (void) printf("%s! degraded: %s%s\n", show_colour(SHOW_RED),
                              show_field(status, "degraded", "", text, sizeof(text)), show_colour(SHOW_PLAIN));
        else if (json_is_true(degraded))
                (void) printf("%s! degraded: the journal cannot be written, nothing new is granted%s\n",
                              show_colour(SHOW_RED), show_colour(SHOW_PLAIN));
        if (json_is_string(json_object_get(status, "config_error")))
                (void) printf("%s! the configuration was not taken, the last good one counts: %s%s\n",
                              show_colour(SHOW_RED), show_field(status, "config_error", "", text, sizeof(text)),
                              show_colour(SHOW_PLAIN));
        if (strcmp(json_text(status, "hands", "ok"), "ok") != 0)
                (void) printf("%s! the warden is away: what was to be ended is not ended now: %s%s\n",
                              show_colour(SHOW_YELLOW), show_field(status, "hands_words", "", text, sizeof(text)),
                              show_colour(SHOW_PLAIN));
        const json_t *gate = json_object_get(status, "gate");
        if (json_is_object(gate) && strcmp(json_text(gate, "state", ""), json_text(gate, "mode", "")) != 0)
                (void) printf("%s! the gate is open (%s), everybody can open the device: %s%s\n",
                              show_colour(SHOW_YELLOW), json_text(gate, "state", "?"),
                              show_field(gate, "words", "", text, sizeof(text)), show_colour(SHOW_PLAIN));
        if (json_is_string(json_object_get(status, "read_only_reason")))
                (void) printf("%s! read only: %s%s\n", show_colour(SHOW_YELLOW),
                              show_field(status, "read_only_reason", "", text, sizeof(text)), show_colour(SHOW_PLAIN));
}

static void heading(const char *what, const json_t *list)
{
        (void) printf("\n%s%s%s (%zu)\n", show_colour(SHOW_BOLD), what, show_colour(SHOW_PLAIN), json_array_size(list));
}

/* `leases` lists those in the queue, too; they are shown once, where their place and reason stand. */
static json_t *not_queued(const json_t *leases)
{
        json_t *rest = json_array(), *lease;
        size_t i;
        json_array_foreach(leases, i, lease) if (strcmp(json_text(lease, "state", ""), "queued") != 0)(void)
                json_array_append(rest, lease);
        return rest;
}

/* Host memory, once something of it is used or nothing more can be parked. */
static void print_ledger(const json_t *status)
{
        char cap[SIZE_TEXT_MAX], words[SHOW_TEXT_MAX];
        const json_t *ledger = json_object_get(status, "ledger"), *host = json_object_get(status, "host");
        uint64_t charged = 0;

        if (json_amount(ledger, "charged_bytes", &charged) && charged > 0) {
                char size[SIZE_TEXT_MAX];
                (void) printf("parked work: %s of %s of host memory\n", size_text_short(charged, size),
                              show_bytes(ledger, "cap_bytes", cap));
        }
        if (json_is_true(json_object_get(host, "pressure")))
                (void) printf("%s! host memory is under pressure: nothing more is moved there%s\n",
                              show_colour(SHOW_YELLOW), show_colour(SHOW_PLAIN));
        if (charged > 0 && strcmp(json_text(host, "checkpoint", "can"), "can") != 0)
                (void) printf("%s! nothing can be checkpointed: %s%s\n", show_colour(SHOW_YELLOW),
                              show_field(host, "checkpoint_words", "?", words, sizeof(words)), show_colour(SHOW_PLAIN));
}

/* Whom it let through, and how many it did not. */
static void print_gate(const json_t *status)
{
        const json_t *gate = json_object_get(status, "gate"), *uid = json_object_get(gate, "last_refused_uid");
        uint64_t leases = 0, refused = 0;
        char last[48] = "";

        if (!json_amount(gate, "leases", &leases) || !json_amount(gate, "refused", &refused) ||
            strcmp(json_text(gate, "state", ""), json_text(gate, "mode", "")) != 0)
                return;
        if (json_is_integer(uid))
                (void) snprintf(last, sizeof(last), ", the last of uid %" JSON_INTEGER_FORMAT, json_integer_value(uid));
        bool counts = strcmp(json_text(gate, "mode", ""), "log") == 0;
        (void) printf("gate: %s; leases that pass: %" PRIu64 ", opens %s: %" PRIu64 "%s\n",
                      counts ? "log (nobody is refused)" : "on", leases, counts ? "it would have refused" : "refused",
                      refused, last);
}

static void print_status(const json_t *status)
{
        print_banners(status);
        look_devices(json_object_get(status, "devices"), false);
        json_t *leases = not_queued(json_object_get(status, "leases"));
        const json_t *queue = json_object_get(status, "queue"), *strangers = json_object_get(status, "strangers");
        heading("leases", leases);
        look_leases(leases);
        look_listed(leases);
        print_ledger(status);
        print_gate(status);
        heading("queue", queue);
        if (json_array_size(queue) > 0)
                look_queue(queue);
        if (json_array_size(strangers) > 0) {
                heading("strangers: memory that nobody asked for", strangers);
                look_strangers(strangers);
        }
        json_decref(leases);
}

/* "2", "0.5", "1m": a bare number is seconds, as everywhere, and here it may be less than one. */
static int read_every(const struct verb *verb, const char *text, uint64_t *ret_ms)
{
        struct error err = { 0 };
        char whole[32];
        if (strncmp(text, "0.", 2) == 0 && strlen(text) == 3 && text[2] >= '1' && text[2] <= '9')
                (void) snprintf(whole, sizeof(whole), "%c00ms", text[2]);
        else
                (void) snprintf(whole, sizeof(whole), "%s", text);
        if (duration_parse("--watch", whole, ret_ms, &err) < 0)
                return verb_usage_error(verb, "%s", err.msg);
        if (*ret_ms < LIVE_EVERY_MIN_MS || *ret_ms > LIVE_EVERY_MAX_MS)
                return verb_usage_error(verb, "--watch: \"%s\" is outside 0.1 s to 1 h", text);
        return LOOK_ON;
}

int verb_status_main(const struct verb *verb, int argc, char **argv)
{
        struct options o;
        uint64_t every_ms = 0;
        json_t *status = NULL;
        bool json = false;

        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_OPERAND)
                        return verb_usage_error(verb, "it takes no words");
                if (strcmp(option_name(&o, what), "json") == 0) {
                        json = true;
                        continue;
                }
                every_ms = LIVE_EVERY_MS;
                int code = o.value ? read_every(verb, o.value, &every_ms) : LOOK_ON;
                if (code != LOOK_ON)
                        return code;
        }
        if (every_ms > 0)
                return live_show(verb, "/api/status", every_ms, json, print_status);
        int code = show_get(verb->name, "/api/status", &status);
        if (code != LESSOR_EXIT_OK)
                return code;
        if (json)
                show_json(status);
        else
                print_status(status);
        json_decref(status);
        return LESSOR_EXIT_OK;
}
