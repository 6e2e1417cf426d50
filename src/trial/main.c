/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lessor-trial [--seeds N] [--first S] [--hours H] [--json] [--no-bounds] [--found DIR]
 * lessor-trial --seed S [--hours H] [--verbose]
 * lessor-trial --scenario FILE... [--verbose]
 *
 * --journal FILE: the life of --seed, or that of one scenario, is written into a journal as lessord's would be.
 *
 * Plays lives of the real core in a world of numbers. 0: nothing happened that must never happen, and everything that has to
 * happen in such a run did; 1: not so, and how; 2: the command line.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "trial/report.h"
#include "trial/shrink.h"

enum { SHRINK_PLAYS = 400, FOUND_MAX = 5 };

struct options {
        uint64_t seeds, first, hours;
        bool one, json, verbose, bounds, shrinks, stops;
        const char *found, *journal;
};

static int usage(FILE *to)
{
        fprintf(to, "usage: lessor-trial [--seeds N] [--first S] [--hours H] [--json] [--no-bounds] [--no-shrink]\n"
                    "                    [--stop] [--found DIR]\n"
                    "       lessor-trial --seed S [--hours H] [--verbose] [--no-shrink]\n"
                    "       lessor-trial --scenario FILE... [--verbose]\n"
                    "--journal FILE: one life, written into a journal as lessord's would be\n");
        return to == stdout ? 0 : 2;
}

static void write_scenario(const struct trial *t, const struct script *script, const char *dir)
{
        char path[512];

        (void) snprintf(path, sizeof(path), "%s/seed-%" PRIu64 ".scenario", dir, script->seed);
        FILE *to = fopen(path, "we");
        if (!to) {
                fprintf(stderr, "lessor-trial: %s: %m\n", path);
                return;
        }
        fprintf(to, "# %s\n", t->what);
        script_print(script, to);
        (void) fclose(to);
        fprintf(stderr, "lessor-trial: %u events of it are in %s\n", script->n_events, path);
}

static void tell_broken(const struct trial *t, const char *name)
{
        uint64_t ms = t->broken ? t->broken_ms - TRIAL_START_MS : 0;

        fprintf(stderr, "failed: %s, at %" PRIu64 " ms: %s\n", name, ms, t->what);
}

static void run_seeds(struct trial *t, struct script *script, const struct options *o, struct report *report)
{
        for (uint64_t seed = o->first; seed < o->first + o->seeds; seed++) {
                char name[64];
                script_make(script, seed, o->hours);
                bool good = trial_play(t, script, o->verbose);
                report_add(report, t, good);
                if (o->one)
                        printf("seed %" PRIu64 " digest %016" PRIx64 " steps %" PRIu64 "\n", seed, t->digest,
                               t->count.steps);
                if (good)
                        continue;
                (void) snprintf(name, sizeof(name), "seed %" PRIu64, seed);
                tell_broken(t, name);
                if (o->stops)
                        return;
                if (report->n_broken > FOUND_MAX || !o->shrinks)
                        continue;
                shrink(t, script, SHRINK_PLAYS);
                write_scenario(t, script, o->found);
        }
}

static int run_scenarios(struct trial *t, struct script *script, char **files, int n, const struct options *o)
{
        int n_broken = 0;

        for (int i = 0; i < n; i++) {
                struct error err = { 0 };
                FILE *from = fopen(files[i], "re");
                if (!from || script_read(script, from, &err) < 0) {
                        fprintf(stderr, "lessor-trial: %s: %s\n", files[i], from ? err.msg : strerror(errno));
                        if (from)
                                (void) fclose(from);
                        return 2;
                }
                (void) fclose(from);
                bool good = trial_play(t, script, o->verbose);
                n_broken += !good;
                printf("%s %d - %s\n", good ? "ok" : "not ok", i + 1, files[i]);
                if (!good)
                        tell_broken(t, files[i]);
        }
        printf("1..%d\n", n);
        return n_broken != 0;
}

static bool number(const char *name, uint64_t most, uint64_t *ret)
{
        struct error err = { 0 };

        if (parse_u64(name, optarg, 0, most, ret, &err) == 0)
                return true;
        fprintf(stderr, "lessor-trial: %s\n", err.msg);
        return false;
}

int main(int argc, char **argv)
{
        static const struct option longs[] = {
                { "seeds", required_argument, NULL, 'n' }, { "first", required_argument, NULL, 'f' },
                { "seed", required_argument, NULL, 's' },  { "hours", required_argument, NULL, 'h' },
                { "json", no_argument, NULL, 'j' },        { "verbose", no_argument, NULL, 'v' },
                { "no-bounds", no_argument, NULL, 'b' },   { "no-shrink", no_argument, NULL, 'k' },
                { "stop", no_argument, NULL, 'x' },        { "found", required_argument, NULL, 'd' },
                { "scenario", no_argument, NULL, 'c' },    { "journal", required_argument, NULL, 'w' },
                { "help", no_argument, NULL, '?' },        { 0 },
        };
        struct options o = { .seeds = 20, .first = 1, .hours = 24, .bounds = true, .shrinks = true, .found = "." };
        bool scenario = false;
        int c;

        while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
                bool good = true;
                switch (c) {
                case 'n':
                        good = number("--seeds", 10000000, &o.seeds);
                        break;
                case 'f':
                        good = number("--first", UINT64_MAX / 2, &o.first);
                        break;
                case 'h':
                        good = number("--hours", 1000, &o.hours) && o.hours > 0;
                        break;
                case 's':
                        good = number("--seed", UINT64_MAX / 2, &o.first);
                        o.seeds = 1;
                        o.one = true;
                        o.bounds = false;
                        break;
                case 'j':
                        o.json = true;
                        break;
                case 'v':
                        o.verbose = true;
                        break;
                case 'b':
                        o.bounds = false;
                        break;
                case 'k':
                        o.shrinks = false;
                        break;
                case 'x':
                        o.stops = true;
                        break;
                case 'd':
                        o.found = optarg;
                        break;
                case 'c':
                        scenario = true;
                        break;
                case 'w':
                        o.journal = optarg;
                        break;
                default:
                        return usage(optopt == 0 && optind > 1 && strcmp(argv[optind - 1], "--help") == 0 ? stdout
                                                                                                          : stderr);
                }
                if (!good)
                        return 2;
        }
        struct trial *t = calloc(1, sizeof(*t));
        struct script *script = calloc(1, sizeof(*script));
        if (!t || !script)
                abort();
        trial_alloc(t);
        struct error err = { 0 };
        int status;
        if (o.journal && (scenario ? argc - optind != 1 : !o.one))
                return usage(stderr);
        if (o.journal && !(t->written = written_new(o.journal, &err))) {
                fprintf(stderr, "lessor-trial: %s\n", err.msg);
                return 2;
        }
        if (scenario) {
                status = run_scenarios(t, script, argv + optind, argc - optind, &o);
        } else if (optind < argc) {
                status = usage(stderr);
        } else {
                struct report report = { .hours = o.hours };
                run_seeds(t, script, &o, &report);
                status = report_print(&report, o.json, o.bounds) ? 0 : 1;
        }
        if (!written_end(t->written, &err)) {
                fprintf(stderr, "lessor-trial: %s\n", err.msg);
                status = 2;
        }
        trial_free(t);
        free(script);
        free(t);
        return status;
}
