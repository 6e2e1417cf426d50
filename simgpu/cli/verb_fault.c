/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "card/fault.h"
#include "cli/cli.h"

#define EVENT_XID 8

static int list_kinds(void)
{
        for (enum fault_kind k = FAULT_NONE + 1; k < FAULT_N; k++) {
                char left[48];
                snprintf(left, sizeof left, "%s %s", fault_table[k].word, fault_table[k].args);
                printf("%-28s %s\n", left, fault_table[k].help);
        }
        printf("%-28s %s\n", "xid N", "post a critical XID event once; nothing to clear");
        return EXIT_OK;
}

static int clear(struct card *card, const char *word)
{
        enum fault_kind kind = FAULT_NONE;
        if (word && (kind = fault_parse(word)) == FAULT_NONE)
                cli_die(EXIT_USAGE, "fault clear: no kind \"%s\"; simgpu fault list", word);
        int n = fault_clear(card, kind);
        if (n < 0)
                cli_die(EXIT_FAILED, "fault clear: %s", strerror(-n));
        printf("cleared %d\n", n);
        return EXIT_OK;
}

/* How the words behind a kind are read; [X] may be left out. */
static void read_arguments(struct card_fault *f, const char *const *words, int n)
{
        const char *spec = fault_table[f->kind].args;
        bool is_word = strcmp(spec, "NAME") == 0 || strcmp(spec, "[OP]") == 0;
        int most = spec[0] == 0 ? 0 : strchr(spec, ' ') ? 2 : 1, least = spec[0] == '[' ? 0 : most;
        if (n < least || n > most)
                cli_die(EXIT_USAGE, "fault %s: wants %s", fault_table[f->kind].word, most ? spec : "no argument");
        if (n == 0)
                return;
        if (is_word) {
                if (f->symbol[0])
                        cli_die(EXIT_USAGE, "fault %s: the name is its argument; no --symbol",
                                fault_table[f->kind].word);
                snprintf(f->symbol, sizeof f->symbol, "%s", words[0]);
                return;
        }
        if (strstr(spec, "BYTES") == spec) {
                f->a = (int64_t) cli_size("BYTES", words[0]);
                return;
        }
        f->a = cli_number(spec, words[0], INT64_MIN / 2, INT64_MAX / 2);
        if (n > 1)
                f->b = (int64_t) cli_size("BYTES", words[1]);
}

int verb_fault(int argc, char **argv)
{
        const char *file = NULL, *device = NULL, *symbol = NULL, *times = "0", *after = "0", *pid = "0";
        const struct cli_option options[] = {
                { "file", "F", "the card (default $SIMGPU)", &file, NULL },
                { "device", "N", "NVML index; only there (default: all; ghost and residue: 0)", &device, NULL },
                { "symbol", "PATTERN", "only in calls of that name (* and ? work)", &symbol, NULL },
                { "pid", "PID", "only in that process", &pid, NULL },
                { "times", "N", "bite N times, then go (default: until cleared)", &times, NULL },
                { "after", "N", "let N matching calls pass first", &after, NULL },
                { NULL, NULL, NULL, NULL, NULL },
        };
        /* A negative number is an argument, not an option: only words with two dashes are options, so it just works. */
        int n = cli_parse("fault", options, argc, argv);
        if (n == 0)
                cli_die(EXIT_USAGE, "fault: which kind? simgpu fault list");
        if (strcmp(argv[1], "list") == 0)
                return list_kinds();
        struct card card;
        cli_open(&card, file);
        if (strcmp(argv[1], "clear") == 0)
                return clear(&card, argv[2]);
        int32_t on_device = device ? (int32_t) cli_number("--device", device, 0, card.n_devices - 1) : -1;
        if (strcmp(argv[1], "xid") == 0) {
                if (n != 2)
                        cli_die(EXIT_USAGE, "fault xid: wants N");
                fault_post_event(&card, on_device < 0 ? 0 : on_device, EVENT_XID,
                                 (uint64_t) cli_number("xid", argv[2], 0, 999));
                return EXIT_OK;
        }
        struct card_fault f = { .kind = fault_parse(argv[1]),
                                .device = on_device,
                                .pid = (uint32_t) cli_number("--pid", pid, 0, INT32_MAX),
                                .times = (uint32_t) cli_number("--times", times, 0, INT32_MAX),
                                .after = (uint32_t) cli_number("--after", after, 0, INT32_MAX) };
        if (f.kind == FAULT_NONE)
                cli_die(EXIT_USAGE, "fault: no kind \"%s\"; simgpu fault list", argv[1]);
        if (symbol && strlen(symbol) >= sizeof f.symbol)
                cli_die(EXIT_USAGE, "--symbol: at most %zu characters", sizeof f.symbol - 1);
        if (symbol)
                strcpy(f.symbol, symbol);
        const char *words[2] = { argv[2], n > 2 ? argv[3] : NULL };
        read_arguments(&f, words, n - 1);
        int r = fault_add(&card, &f);
        if (r < 0)
                cli_die(EXIT_FAILED, "fault: %s", r == -ENOSPC ? "too many faults at once" : strerror(-r));
        return EXIT_OK;
}
