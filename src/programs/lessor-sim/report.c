/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-sim/report.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "programs/lessor-sim/html.h"

enum { GANGS_SHOWN = 300, CDF_POINTS = 200 };

/* ---- a file that is there whole or not at all ---- */

struct draft {
        char path[PATH_MAX];
        FILE *file;
};

static int draft_open(struct draft *d, const char *path, struct error *err)
{
        int n = snprintf(d->path, sizeof(d->path), "%s.new", path);

        if (n < 0 || (size_t) n >= sizeof(d->path))
                return error_set(err, ENAMETOOLONG, "--html: the path is too long");
        d->file = fopen(d->path, "we");
        return d->file ? 0 : error_errno(err, errno, "writing %s", d->path);
}

static int draft_close(struct draft *d, const char *path, struct error *err)
{
        bool good = !ferror(d->file);
        int r = 0;

        if (fclose(d->file) != 0 || !good)
                r = error_errno(err, EIO, "writing %s", d->path);
        else if (rename(d->path, path) < 0)
                r = error_errno(err, errno, "giving %s its name", d->path);
        if (r < 0)
                (void) unlink(d->path);
        return r;
}

/* The table for people, as it stands on a terminal. */
static void html_table(FILE *to, void (*print)(FILE *to, const void *context), const void *context)
{
        auto_free char *text = NULL;
        size_t n = 0;
        FILE *memory = open_memstream(&text, &n);

        if (!memory)
                return;
        print(memory, context);
        if (fclose(memory) != 0 || !text)
                return;
        (void) fputs("<pre>", to);
        html_text(to, text);
        (void) fputs("</pre>\n", to);
}

/* ---- run ---- */

struct curve {
        double x[FILL_POINTS], y[FILL_POINTS], low[FILL_POINTS], high[FILL_POINTS];
};

struct contest_page {
        const struct contest *contest;
        const struct shown_points *points;
        size_t base;
};

static void contest_table(FILE *to, const void *context)
{
        const struct contest_page *p = context;
        contest_print(to, p->contest, p->points, p->base);
}

static int contest_chart(FILE *to, const struct contest *c, enum contest_figure figure, const char *title,
                         const char *y_title, struct error *err)
{
        struct series series[CONTEST_POLICIES_MAX];
        auto_free struct curve *curves = calloc(c->n_policies, sizeof(*curves));

        if (!curves)
                return error_errno(err, ENOMEM, "the report");
        for (size_t i = 0; i < c->n_policies; i++) {
                struct curve *curve = &curves[i];
                series[i] = (struct series){ c->policies[i]->name, curve->x, curve->y, curve->low, curve->high, 0 };
                for (size_t point = 0; point < FILL_POINTS; point++) {
                        struct stats s = contest_stats(c, i, figure, point);
                        size_t n = series[i].n;
                        if (s.n == 0)
                                continue;
                        curve->x[n] = (double) point;
                        curve->y[n] = s.mean;
                        curve->low[n] = s.least;
                        curve->high[n] = s.most;
                        series[i].n++;
                }
        }
        const struct chart chart = { .title = title,
                                     .x_title = "GPUs that arrived tasks want, % of capacity",
                                     .y_title = y_title,
                                     .series = series,
                                     .n_series = c->n_policies };
        html_chart(to, &chart);
        return 0;
}

int report_contest(const char *path, const struct contest *contest, const struct shown_points *points, size_t base,
                   struct error *err)
{
        const struct contest_page page = { contest, points, base };
        struct draft d;
        int r = draft_open(&d, path, err);
        if (r < 0)
                return r;

        html_begin(d.file, "lessor-sim run");
        r = contest_chart(d.file, contest, CONTEST_USED_PCT, "Allocated GPUs", "% of capacity", err);
        if (r == 0)
                r = contest_chart(d.file, contest, CONTEST_FRAGMENT_PCT,
                                  "Fragment: free and of no use to typical tasks", "% of capacity", err);
        if (r == 0)
                r = contest_chart(d.file, contest, CONTEST_FRAGMENT_OF_IDLE_PCT, "Fragment, of what is free",
                                  "% of idle", err);
        (void) fputs("<p>Lines are means over the seeds, bands go from the least to the most.</p>\n", d.file);
        html_table(d.file, contest_table, &page);
        html_end(d.file);
        int closed = draft_close(&d, path, err);
        return r < 0 ? r : closed;
}

/* ---- replay ---- */

struct replay_page {
        const struct replayed *runs;
        size_t n_runs;
};

static void replay_table(FILE *to, const void *context)
{
        const struct replay_page *p = context;
        replay_print(to, p->runs, p->n_runs);
}

static int compare(const void *a, const void *b)
{
        double x = *(const double *) a, y = *(const double *) b;
        return (x > y) - (x < y);
}

/* What part of the jobs waited at most so long. */
static int cdf(const struct replayed *run, double x[CDF_POINTS], double y[CDF_POINTS], size_t *ret_n, struct error *err)
{
        auto_free double *waits = reallocarray(NULL, run->n_jobs, sizeof(*waits));
        size_t n = 0;

        *ret_n = 0;
        if (!waits)
                return error_errno(err, ENOMEM, "the report");
        for (size_t i = 0; i < run->n_jobs; i++)
                if (run->result->records[i].first_start_s >= 0)
                        waits[n++] = (double) (run->result->records[i].first_start_s - run->jobs[i].submit_s);
        if (n == 0)
                return 0;
        qsort(waits, n, sizeof(*waits), compare);
        for (size_t i = 0; i < CDF_POINTS; i++) {
                size_t at = i * (n - 1) / (CDF_POINTS - 1);
                x[i] = 1 + waits[at];
                y[i] = 100.0 * (double) (at + 1) / (double) n;
        }
        *ret_n = CDF_POINTS;
        return 0;
}

static int wait_chart(FILE *to, const struct replayed *runs, size_t n_runs, struct error *err)
{
        struct points {
                double x[CDF_POINTS], y[CDF_POINTS];
        };
        auto_free struct points *points = calloc(n_runs, sizeof(*points));
        auto_free struct series *series = calloc(n_runs, sizeof(*series));
        int r = points && series ? 0 : error_errno(err, ENOMEM, "the report");

        for (size_t i = 0; r == 0 && i < n_runs; i++) {
                series[i] = (struct series){ .name = runs[i].policy, .x = points[i].x, .y = points[i].y };
                r = cdf(&runs[i], points[i].x, points[i].y, &series[i].n, err);
        }
        const struct chart chart = { .title = "Waits",
                                     .x_title = "waited at most, s + 1",
                                     .y_title = "% of jobs",
                                     .series = series,
                                     .n_series = n_runs,
                                     .log_x = true,
                                     .has_y_range = true,
                                     .y_from = 0,
                                     .y_to = 100 };
        if (r == 0)
                html_chart(to, &chart);
        return r;
}

static void load_chart(FILE *to, const struct replayed *run)
{
        const struct replay_result *r = run->result;
        double days[REPLAY_BUCKETS], used[REPLAY_BUCKETS], wanted[REPLAY_BUCKETS], width;

        width = (double) (r->last_s - r->first_s) / 86400.0 / (r->n_buckets > 0 ? r->n_buckets : 1);
        for (uint32_t i = 0; i < r->n_buckets; i++) {
                days[i] = ((double) i + 0.5) * width;
                used[i] = r->buckets[i].used_gpus;
                wanted[i] = r->buckets[i].want_gpus;
        }
        const struct series series[] = { { "in use", days, used, NULL, NULL, r->n_buckets },
                                         { "waited for", days, wanted, NULL, NULL, r->n_buckets } };
        char title[96];
        (void) snprintf(title, sizeof(title), "%s: GPUs in use, and waited for", run->policy);
        const struct chart chart = {
                .title = title, .x_title = "days", .y_title = "GPUs", .series = series, .n_series = 2
        };
        html_chart(to, &chart);
}

static int gantt(FILE *to, const struct replayed *run, struct error *err)
{
        auto_free struct bar *bars = calloc(GANGS_SHOWN, sizeof(*bars));
        auto_free char(*names)[64] = calloc(GANGS_SHOWN, sizeof(*names));
        size_t n = 0;

        if (!bars || !names)
                return error_errno(err, ENOMEM, "the report");
        for (size_t i = 0; i < run->n_jobs && n < GANGS_SHOWN; i++) {
                const struct replay_record *record = &run->result->records[i];
                if (replay_job_parts(&run->jobs[i]) < 2 || record->end_s < 0)
                        continue;
                (void) snprintf(names[n], sizeof(names[n]), "job %" PRIu32 ": %.0f GPUs", run->jobs[i].row,
                                (double) replay_job_milli(&run->jobs[i]) / MILLI_PER_GPU);
                bars[n] = (struct bar){ (double) run->jobs[i].submit_s / 86400.0, (double) record->start_s / 86400.0,
                                        (double) record->end_s / 86400.0, names[n] };
                n++;
        }
        char title[96];
        (void) snprintf(title, sizeof(title), "%s: the first %zu gangs; lines wait, bars run", run->policy, n);
        html_gantt(to, title, "time", bars, n);
        return 0;
}

int report_replay(const char *path, const struct replayed *runs, size_t n_runs, struct error *err)
{
        const struct replay_page page = { runs, n_runs };
        struct draft d;
        int r = draft_open(&d, path, err);
        if (r < 0)
                return r;

        html_begin(d.file, "lessor-sim replay");
        r = wait_chart(d.file, runs, n_runs, err);
        for (size_t i = 0; r == 0 && i < n_runs; i++) {
                char title[96];
                (void) snprintf(title, sizeof(title), "%s: how full the nodes are", runs[i].policy);
                load_chart(d.file, &runs[i]);
                html_heat(d.file, title, "time", "nodes", &runs[i].result->heat[0][0], runs[i].result->n_buckets,
                          runs[i].result->heat_rows, REPLAY_HEAT_ROWS);
                r = gantt(d.file, &runs[i], err);
        }
        html_table(d.file, replay_table, &page);
        html_end(d.file);
        int closed = draft_close(&d, path, err);
        return r < 0 ? r : closed;
}
