/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "api/told_json.h"
#include "base/escape.h"
#include "programs/lessor/replay.h"
#include "programs/lessor/replay_find.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"
#include "programs/lessord/journal_check.h"

const char journal_more[] =
        "  lessor journal verify               the journal of your lessord, or of this machine's\n"
        "  lessor journal verify /var/lib/lessor\n"
        "\n"
        "What stands in it: `lessor events`, `why`, `usage`; whether it was decided so: `lessor replay`.\n"
        "\n"
        "Exit status: that of what stands behind it; 2 wrong use.";

const char journal_verify_more[] =
        "  lessor journal verify\n"
        "  lessor journal verify --json /srv/copy/journal.db | jq -r .hash\n"
        "\n"
        "Each record carries a hash of itself and of all before it: a row that was changed, removed or added is "
        "named,\n"
        "and so is an event that does not say what its record says. The journal may be in use; nothing is written.\n"
        "The last hash, kept elsewhere, shows later that nothing was cut off behind it.\n"
        "\n"
        "Exit status: 0 whole, 1 something was changed or is damaged, 2 wrong use, 125 the journal cannot be read.";

static void print_hash(const struct journal_verified *v)
{
        if (!v->ok || v->last_seq == 0)
                return;
        (void) printf("record %" PRIu64 " ", v->last_seq);
        for (size_t i = 0; i < sizeof(v->hash); i++)
                (void) printf("%02x", v->hash[i]);
        (void) fputc('\n', stdout);
}

int verb_journal_verify_main(const struct verb *verb, int argc, char **argv)
{
        char path[PATH_MAX], shown[PATH_MAX];
        struct journal_verified verified;
        const char *word = NULL;
        struct error err = { 0 };
        struct options o;
        bool json = false;

        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (what == OPTIONS_OPERAND && word)
                        return verb_usage_error(verb, "one journal at a time");
                if (what == OPTIONS_OPERAND)
                        word = o.value;
                else
                        json = true;
        }
        if (replay_find_journal(word, path, sizeof(path), &err) < 0 || journal_check(path, &verified, &err) < 0) {
                char safe[sizeof(err.msg) + 64];
                (void) fprintf(stderr, "lessor %s: %s\n", verb->name,
                               text_escape(err.msg, strlen(err.msg), safe, sizeof(safe)));
                return LESSOR_EXIT_OWN;
        }
        (void) text_escape(path, strlen(path), shown, sizeof(shown));
        if (json) {
                json_t *body = told_verified(shown, &verified);
                show_json(body);
                json_decref(body);
        } else {
                journal_check_print(stdout, shown, &verified);
                print_hash(&verified);
        }
        return verified.ok ? LESSOR_EXIT_OK : LESSOR_EXIT_REFUSED;
}
