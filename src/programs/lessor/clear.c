/* SPDX-License-Identifier: Apache-2.0 */
/* `lessor clear`, `resume`: room for something that lessor does not start: a lease without a process, until it is given back. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/duration.h"
#include "base/escape.h"
#include "base/number.h"
#include "model/lease.h"
#include "programs/lessor/ask.h"
#include "programs/lessor/look.h"
#include "programs/lessor/obtain.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"

#define CLEAR_NAME "clear" /* by which `resume` finds it */
#define CLEAR_FOR_MS (UINT64_C(2) * 3600 * 1000)
#define CLEAR_LONGEST_MS (UINT64_C(24) * 3600 * 1000) /* of a heartbeat, which nobody sends */

enum { SHOWN_MAX = 64 };

const struct option clear_options[] = {
        { "vram", "SIZE", "how much (default: all a device can give)", 0, "all" },
        { "for", "TIME", "how long, a day at most (default 2h)", 0, "10m|1h|2h|8h" },
        { "device", "UUID", "on this device; a unique beginning will do", 0, "@devices" },
        { "wait", "TIME", "wait at most so long, then exit 124 (default: for ever)", 0, "1m|10m|1h" },
        { "json", NULL, "print the whole lease instead of its id" },
        { 0 },
};

const char clear_more[] =
        "  lessor clear --vram 16G --for 2h    room now for a program that is started by other means\n"
        "  lessor resume                       what had to make room comes back\n"
        "\n"
        "Asks in priority 2 (interactive): who is less important and can give way does. Prints the id. The memory is "
        "kept "
        "free\n"
        "of other leases until `resume`, or until the time is over. Once your program runs, `lessor adopt` makes it "
        "one "
        "of all.\n"
        "\n"
        "Exit status: 0 there is room, 1 refused, 2 wrong use, 69 lessord is away, 124 the wait is over.";
const char resume_more[] = "  lessor resume        ends what `lessor clear` of yours keeps free\n"
                           "  lessor resume L17    only this\n"
                           "\n"
                           "Exit status: 0 done, 1 there is nothing to give back, 2 wrong use, 69 lessord is away.";

static int read_options(const struct verb *verb, int argc, char **argv, struct ask *ask, bool *ret_json)
{
        struct options o;
        struct error err = { 0 };

        if (ask_init(ask, &err) < 0)
                return verb_usage_error(verb, "%s", err.msg);
        if (ask->if_down == IF_DOWN_RUN)
                ask->if_down = IF_DOWN_FAIL;
        ask->name = CLEAR_NAME;
        ask->priority = PRIORITY_INTERACTIVE;
        ask->for_ms = CLEAR_FOR_MS;
        (void) snprintf(ask->consumer, sizeof(ask->consumer), "lessor clear");
        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_OPERAND)
                        return verb_usage_error(verb, "it takes no words; did you mean --vram?");
                if (strcmp(option_name(&o, what), "json") == 0)
                        *ret_json = true;
                else if (ask_option(ask, option_name(&o, what), o.value, &err) < 0)
                        return verb_usage_error(verb, "%s", err.msg);
        }
        if (ask->for_ms > CLEAR_LONGEST_MS)
                return verb_usage_error(verb, "--for: a day at most; ask again then");
        if (!ask->has_size) {
                ask->has_size = true;
                (void) size_parse("--vram", "all", &ask->size, NULL);
        }
        /* Nobody renews it: it ends by itself when its time is over, whatever becomes of who asked. */
        ask->ttl_ms = u64_max(ask->for_ms, 1000);
        return OBTAINED;
}

static int print_clear(const struct verb *verb, const struct obtain *o, bool json)
{
        char path[64], size[SIZE_TEXT_MAX], device[128];
        json_t *lease = NULL;

        if (!json) {
                (void) fprintf(stderr, "lessor clear: %s on %s is kept free; `lessor resume %s` gives it back\n",
                               size_text(o->bytes, size),
                               text_escape(o->device, strlen(o->device), device, sizeof(device)), o->id);
                return printf("%s\n", o->id) > 0 ? LESSOR_EXIT_OK : LESSOR_EXIT_REFUSED;
        }
        (void) snprintf(path, sizeof(path), "/api/leases/%s", o->id);
        int code = show_get(verb->name, path, &lease);
        if (code == LESSOR_EXIT_OK)
                show_json(lease);
        json_decref(lease);
        return code;
}

int verb_clear_main(const struct verb *verb, int argc, char **argv)
{
        struct ask ask;
        struct obtain o;
        struct signals signals;
        bool json = false;

        int code = read_options(verb, argc, argv, &ask, &json);
        if (code != OBTAINED)
                return code;
        if (signals_init(&signals) < 0)
                return verb_usage_error(verb, "cannot watch signals");
        code = obtain_init(&o, &ask, &signals, verb->name);
        if (code == OBTAINED)
                code = obtain_lease(&o);
        obtain_fini(&o);
        if (code != OBTAINED)
                return code == LESSOR_EXIT_OWN ? LESSOR_EXIT_REFUSED : code;
        return print_clear(verb, &o, json);
}

/* ---- giving it back ---- */

static int release(const struct verb *verb, const char *id)
{
        char path[64];
        json_t *lease = NULL;

        (void) snprintf(path, sizeof(path), "/api/leases/%s", id);
        int code = show_call(verb->name, "DELETE", path, NULL, &lease);
        if (code == LESSOR_EXIT_OK)
                (void) printf("%s is given back\n", id);
        json_decref(lease);
        return code;
}

static bool is_mine(const json_t *lease)
{
        uint64_t uid;
        return json_amount(lease, "uid", &uid) && uid == getuid() &&
               strcmp(json_text(lease, "name", ""), CLEAR_NAME) == 0 &&
               strcmp(json_text(lease, "consumer", ""), "lessor clear") == 0;
}

static int release_all(const struct verb *verb)
{
        json_t *body = NULL, *lease;
        size_t i, n = 0;

        int code = show_get(verb->name, "/api/leases", &body);
        json_array_foreach(json_object_get(body, "leases"), i, lease)
        {
                char id[LEASE_ID_TEXT_MAX];
                if (code != LESSOR_EXIT_OK || !is_mine(lease))
                        continue;
                code = release(verb, show_field(lease, "id", "", id, sizeof(id)));
                n++;
        }
        if (code == LESSOR_EXIT_OK && n == 0) {
                (void) fprintf(stderr, "lessor resume: nothing of yours is kept free by `lessor clear`\n");
                code = LESSOR_EXIT_REFUSED;
        }
        json_decref(body);
        return code;
}

int verb_resume_main(const struct verb *verb, int argc, char **argv)
{
        struct options o;
        char shown[SHOWN_MAX], id[LEASE_ID_TEXT_MAX] = "";
        uint64_t number;

        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (id[0] != '\0')
                        return verb_usage_error(verb, "one lease at a time");
                if (!lease_id_parse(o.value, &number))
                        return verb_usage_error(verb, "\"%s\" is no lease: an id is L and a number, as L17",
                                                text_escape(o.value, strlen(o.value), shown, sizeof(shown)));
                (void) lease_id_text(number, id);
        }
        return id[0] != '\0' ? release(verb, id) : release_all(verb);
}
