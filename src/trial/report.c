/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include "trial/report.h"

/* Bounds are of a run of 500 days; of a shorter one they are as much less, and of a very short one nothing. */
enum { BOUND_HOURS = 500 * 24 };

static const struct {
        const char *name;
        size_t at;
        uint64_t bound;
} counts[] = {
#define COUNT(name, bound)                                                                                             \
        {                                                                                                              \
#name, offsetof(struct count, name), bound                                                             \
        }
        COUNT(requests, 100000),
        COUNT(grants, 50000),
        COUNT(refusals, 1000),
        COUNT(queued, 20000),
        COUNT(ended, 50000),
        COUNT(drained, 5000),
        COUNT(backfills, 1000),
        COUNT(passes, 100),
        COUNT(plans, 1000),
        COUNT(asked, 2000),
        COUNT(parks, 1000),
        COUNT(thaws, 1000),
        COUNT(undone, 100),
        COUNT(stuck, 100),
        COUNT(orders, 5000),
        COUNT(kills, 100),
        COUNT(blocked, 1000),
        COUNT(failed, 100),
        COUNT(restarts, 1000),
        COUNT(power_cuts, 100),
        COUNT(bookings, 1000),
        COUNT(booked, 500),
        COUNT(series, 100),
        COUNT(moved, 100),
        COUNT(gangs, 100),
        COUNT(gang_parks, 20),
        COUNT(held, 100),
        COUNT(let_go, 100),
        COUNT(rehearsed, 100),
        COUNT(forgiven, 100),
        COUNT(changed, 500),
        COUNT(cleared, 100),
        COUNT(would_end, 100),
        COUNT(warned, 100),
        COUNT(noticed, 500),
        COUNT(terms, 500),
        COUNT(strangers_killed, 100),
        COUNT(spared, 100),
        COUNT(strangers_ended, 500),
        COUNT(approved, 100),
        COUNT(stopped, 20),
        COUNT(given_up, 20),
        COUNT(inputs, 0),
        COUNT(steps, 0),
        COUNT(ticks, 0),
        COUNT(actions, 0),
        COUNT(readings, 0),
        COUNT(checks, 0),
        COUNT(restored_steps, 0),
        COUNT(out_of_memory, 0),
#undef COUNT
};

enum { COUNTS = sizeof(counts) / sizeof(*counts) };

static uint64_t *count_at(struct count *count, size_t at)
{
        return (uint64_t *) (void *) ((char *) count + at);
}

static uint64_t get(const struct count *count, size_t at)
{
        return *(const uint64_t *) (const void *) ((const char *) count + at);
}

void report_add(struct report *r, const struct trial *t, bool good)
{
        uint64_t hours = t->count.virtual_ms / HOURS(1);

        if (r->n_seeds == 0 || t->count.requests < r->least_requests)
                r->least_requests = t->count.requests;
        if (r->n_seeds == 0 || hours < r->least_hours)
                r->least_hours = hours;
        r->n_seeds++;
        r->n_broken += !good;
        for (size_t i = 0; i < COUNTS; i++)
                *count_at(&r->count, counts[i].at) += get(&t->count, counts[i].at);
        r->count.virtual_ms += t->count.virtual_ms;
        for (unsigned f = 0; f < FAULT_N; f++)
                r->faults[f] += t->faults.count[f];
        r->digest = random_mix(r->digest ^ t->digest);
}

static uint64_t scaled(const struct report *r, uint64_t bound)
{
        uint64_t hours = r->n_seeds * r->hours;
        return hours >= BOUND_HOURS ? bound
                                    : bound * hours / BOUND_HOURS * 7 / 10; /* chance is coarser in small runs */
}

static void print_json(const struct report *r, uint64_t hours)
{
        printf("{\"seeds\": %" PRIu64 ", \"broken\": %" PRIu64 ", \"virtual_hours\": %" PRIu64
               ", \"least_hours\": %" PRIu64 ", \"least_requests\": %" PRIu64 ", \"digest\": \"%016" PRIx64
               "\", \"counts\": {",
               r->n_seeds, r->n_broken, hours, r->least_hours, r->least_requests, r->digest);
        for (size_t i = 0; i < COUNTS; i++)
                printf("%s\"%s\": %" PRIu64, i ? ", " : "", counts[i].name, get(&r->count, counts[i].at));
        printf("}, \"faults\": {");
        for (unsigned f = 0; f < FAULT_N; f++)
                printf("%s\"%s\": %" PRIu64, f ? ", " : "", fault_name((enum fault) f), r->faults[f]);
        printf("}}\n");
}

static void print_text(const struct report *r, uint64_t hours)
{
        printf("%" PRIu64 " seeds, %" PRIu64 " virtual hours (each at least %" PRIu64 ", and %" PRIu64
               " requests), digest %016" PRIx64 "\n",
               r->n_seeds, hours, r->least_hours, r->least_requests, r->digest);
        for (size_t i = 0; i < COUNTS; i++)
                printf("%-16s %12" PRIu64 "%s", counts[i].name, get(&r->count, counts[i].at),
                       i % 3 == 2 ? "\n" : "   ");
        printf("\n");
        for (unsigned f = 0; f < FAULT_N; f++)
                printf("%-22s %9" PRIu64 "%s", fault_name((enum fault) f), r->faults[f], f % 3 == 2 ? "\n" : "   ");
        printf("\n");
}

bool report_print(const struct report *r, bool json, bool bounds)
{
        uint64_t hours = r->count.virtual_ms / HOURS(1), n_rare = 0;

        if (json)
                print_json(r, hours);
        else
                print_text(r, hours);
        for (size_t i = 0; bounds && i < COUNTS; i++)
                if (get(&r->count, counts[i].at) < scaled(r, counts[i].bound)) {
                        n_rare++;
                        fprintf(stderr,
                                "lessor-trial: %s: %" PRIu64 ", where a run that means something has %" PRIu64 "\n",
                                counts[i].name, get(&r->count, counts[i].at), scaled(r, counts[i].bound));
                }
        for (unsigned f = 0; bounds && f < FAULT_N; f++)
                if (r->faults[f] < scaled(r, fault_bound((enum fault) f))) {
                        n_rare++;
                        fprintf(json ? stderr : stdout,
                                "failed: %s happened %" PRIu64 " times, where a run that means something has %" PRIu64
                                "\n",
                                fault_name((enum fault) f), r->faults[f], scaled(r, fault_bound((enum fault) f)));
                }
        if (!json) /* a life that nothing broke is a test that passed, a bound that was not reached one that failed */
                printf("%" PRIu64 " passed, %" PRIu64 " failed, 0 skipped\n", r->n_seeds - r->n_broken,
                       r->n_broken + n_rare);
        return r->n_broken == 0 && n_rare == 0;
}
