/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "card/fault.h"
#include "card/proc.h"
#include "card/trace.h"
#include "cli/cli.h"

#define FOLLOW_NS 5000000

static void print_entry(const struct card_trace *t, bool json)
{
        bool is_fault = t->kind == TRACE_FAULT || t->kind == TRACE_FAULT_CLEAR;
        const char *fault = is_fault && t->rc > 0 && t->rc < FAULT_N ? fault_table[t->rc].word : NULL;
        if (json) {
                printf("{\"seq\":%llu,\"at_ns\":%llu,\"kind\":\"%s\",\"pid\":%u,\"device\":%d,\"bytes\":%llu,\"used_"
                       "before\":%llu,"
                       "\"used_after\":%llu,\"rc\":%d",
                       (unsigned long long) t->seq, (unsigned long long) t->at_ns, trace_words[t->kind], t->pid,
                       t->device, (unsigned long long) t->bytes, (unsigned long long) t->used_before,
                       (unsigned long long) t->used_after, fault ? 0 : t->rc);
                if (fault)
                        printf(",\"fault\":\"%s\"", fault);
                printf("}\n");
                return;
        }
        printf("%llu %s pid %u device %d bytes %llu used %llu", (unsigned long long) t->at_ns, trace_words[t->kind],
               t->pid, t->device, (unsigned long long) t->bytes, (unsigned long long) t->used_after);
        if (fault)
                printf(" fault %s\n", fault);
        else
                printf(" rc %d\n", t->rc);
}

int verb_trace(int argc, char **argv)
{
        const char *file = NULL, *since_text = "0";
        bool json = false, follow = false;
        const struct cli_option options[] = {
                { "file", "F", "the card (default $SIMGPU)", &file, NULL },
                { "json", NULL, "one JSON object a line", NULL, &json },
                { "follow", NULL, "go on until interrupted", NULL, &follow },
                { "since", "SEQ", "only entries after that number", &since_text, NULL },
                { NULL, NULL, NULL, NULL, NULL },
        };
        if (cli_parse("trace", options, argc, argv) > 0)
                cli_die(EXIT_USAGE, "trace: what is \"%s\"?", argv[1]);
        struct card card;
        cli_open(&card, file);
        (void) setvbuf(stdout, NULL, _IOLBF, 0);
        uint64_t next = (uint64_t) cli_number("--since", since_text, 0, INT64_MAX) + 1;
        for (;;) {
                proc_reap(&card); /* so that a death is in the trace even if nobody else looks */
                uint64_t last = trace_last(&card);
                uint64_t oldest = last >= CARD_TRACE_MAX ? last - CARD_TRACE_MAX + 1 : 1;
                if (next < oldest) {
                        if (json)
                                printf("{\"wrapped\":%llu}\n", (unsigned long long) (oldest - next));
                        else
                                printf("wrapped: %llu older entries are gone\n", (unsigned long long) (oldest - next));
                        next = oldest;
                }
                struct card_trace t;
                for (; next <= last; next++)
                        if (trace_get(&card, next, &t))
                                print_entry(&t, json);
                if (!follow)
                        return EXIT_OK;
                (void) fflush(stdout);
                struct timespec step = { .tv_nsec = FOLLOW_NS };
                (void) nanosleep(&step, NULL);
        }
}
