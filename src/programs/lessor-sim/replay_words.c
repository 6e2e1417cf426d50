/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-sim/replay_words.h"
#include <inttypes.h>
#include <stdlib.h>
#include "base/cleanup.h"

const uint32_t replay_sizes[REPLAY_SIZES] = { 1, 4, 8, 16, 32, UINT32_MAX };

static int compare(const void *a, const void *b)
{
        int64_t x = *(const int64_t *) a, y = *(const int64_t *) b;
        return (x > y) - (x < y);
}

static size_t size_of(const struct replay_job *job)
{
        int64_t gpus = (replay_job_milli(job) + MILLI_PER_GPU - 1) / MILLI_PER_GPU;
        size_t i = 0;

        while (gpus > (int64_t) replay_sizes[i])
                i++;
        return i;
}

struct waits replay_waits(const struct replayed *run, size_t size)
{
        auto_free int64_t *all = reallocarray(NULL, run->n_jobs, sizeof(*all));
        struct waits w = { 0 };
        double sum = 0;

        for (size_t i = 0; all && i < run->n_jobs; i++) {
                const struct replay_record *record = &run->result->records[i];
                if (record->first_start_s < 0 || (size < REPLAY_SIZES && size_of(&run->jobs[i]) != size))
                        continue;
                all[w.n] = record->first_start_s - run->jobs[i].submit_s;
                sum += (double) all[w.n++];
        }
        if (w.n == 0)
                return w;
        qsort(all, w.n, sizeof(*all), compare);
        w.mean = sum / (double) w.n;
        w.median = all[(w.n - 1) / 2];
        w.p90 = all[(w.n - 1) * 90 / 100];
        w.p99 = all[(w.n - 1) * 99 / 100];
        w.most = all[w.n - 1];
        return w;
}

double replay_gpu_hours(__int128 milli_s)
{
        return (double) milli_s / MILLI_PER_GPU / 3600.0;
}

double replay_occupancy(const struct replay_result *r)
{
        double all = (double) r->capacity_milli * (double) (r->last_s - r->first_s);
        return all > 0 ? 100.0 * (double) r->used / all : 0.0;
}

static const char *size_name(size_t size, char buf[32])
{
        uint32_t from = size == 0 ? 1 : replay_sizes[size - 1] + 1;

        if (size == REPLAY_SIZES - 1)
                (void) snprintf(buf, 32, "%" PRIu32 " or more GPUs", from);
        else if (from == replay_sizes[size])
                (void) snprintf(buf, 32, "%" PRIu32 " GPU", from);
        else
                (void) snprintf(buf, 32, "%" PRIu32 " to %" PRIu32 " GPUs", from, replay_sizes[size]);
        return buf;
}

static void print_waits(FILE *to, const struct replayed *run, size_t size, const char *name)
{
        struct waits w = replay_waits(run, size);

        if (w.n > 0)
                (void) fprintf(to, "  %-18s %9zu %11.0f %9" PRId64 " %9" PRId64 " %9" PRId64 " %9" PRId64 "\n", name,
                               w.n, w.mean, w.median, w.p90, w.p99, w.most);
}

void replay_print(FILE *to, const struct replayed *runs, size_t n_runs)
{
        for (size_t i = 0; i < n_runs; i++) {
                const struct replay_result *r = runs[i].result;
                (void) fprintf(to, "%s%s: %.0f GPUs over %.1f days\n", i > 0 ? "\n" : "", runs[i].policy,
                               (double) r->capacity_milli / MILLI_PER_GPU, (double) (r->last_s - r->first_s) / 86400.0);
                (void) fprintf(to,
                               "  jobs               %" PRIu64 " ended, %" PRIu64
                               " can never run here; at most %" PRIu64 " waited at once\n",
                               r->ended, r->never, r->most_waiting);
                (void) fprintf(to, "  occupancy          %.1f %% of GPU time from the first arrival to the last end\n",
                               replay_occupancy(r));
                (void) fprintf(to, "  idle while waiting %.0f GPU-hours\n", replay_gpu_hours(r->idle_while_waiting));
                (void) fprintf(to,
                               "  stranded           %.0f GPU-hours: enough free in all for whom it is the turn of, "
                               "but not where it takes them\n",
                               replay_gpu_hours(r->stranded));
                if (r->node_failures > 0)
                        (void) fprintf(to,
                                       "  failures           %" PRIu64 " of nodes; %" PRIu64
                                       " times a job began anew, %.0f "
                                       "GPU-hours were lost; %" PRIu64 " jobs were given up after %d\n",
                                       r->node_failures, r->restarts, replay_gpu_hours(r->wasted), r->given_up,
                                       REPLAY_RESTARTS_MAX);
                (void) fprintf(to, "  %-18s %9s %11s %9s %9s %9s %9s\n", "wait, s", "jobs", "mean", "median", "p90",
                               "p99", "most");
                print_waits(to, &runs[i], REPLAY_SIZES, "all");
                for (size_t size = 0; size < REPLAY_SIZES; size++) {
                        char name[32];
                        print_waits(to, &runs[i], size, size_name(size, name));
                }
        }
}

static json_t *waits_json(const struct replayed *run, size_t size)
{
        struct waits w = replay_waits(run, size);

        if (w.n == 0)
                return json_pack("{s:i}", "jobs", 0);
        return json_pack("{s:I s:f s:I s:I s:I s:I}", "jobs", (json_int_t) w.n, "mean", w.mean, "median",
                         (json_int_t) w.median, "p90", (json_int_t) w.p90, "p99", (json_int_t) w.p99, "most",
                         (json_int_t) w.most);
}

json_t *replay_json(const struct replayed *runs, size_t n_runs)
{
        json_t *all = json_array();

        for (size_t i = 0; i < n_runs; i++) {
                const struct replay_result *r = runs[i].result;
                json_t *sizes = json_array();
                for (size_t size = 0; size < REPLAY_SIZES; size++) {
                        json_t *w = waits_json(&runs[i], size);
                        (void) json_object_set_new(w, "up_to_gpus",
                                                   size + 1 < REPLAY_SIZES ? json_integer(replay_sizes[size])
                                                                           : json_null());
                        (void) json_array_append_new(sizes, w);
                }
                json_t *run = json_pack("{s:s s:I s:I s:I s:I s:I s:I s:I s:I s:I}", "policy", runs[i].policy, "jobs",
                                        (json_int_t) runs[i].n_jobs, "ended", (json_int_t) r->ended, "never",
                                        (json_int_t) r->never, "restarts", (json_int_t) r->restarts, "given_up",
                                        (json_int_t) r->given_up, "node_failures", (json_int_t) r->node_failures,
                                        "most_waiting", (json_int_t) r->most_waiting, "first_s",
                                        (json_int_t) r->first_s, "last_s", (json_int_t) r->last_s);
                (void) json_object_set_new(run, "capacity_milli", json_integer(r->capacity_milli));
                (void) json_object_set_new(run, "occupancy_pct", json_real(replay_occupancy(r)));
                (void) json_object_set_new(run, "used_gpu_hours", json_real(replay_gpu_hours(r->used)));
                (void) json_object_set_new(run, "idle_while_waiting_gpu_hours",
                                           json_real(replay_gpu_hours(r->idle_while_waiting)));
                (void) json_object_set_new(run, "stranded_gpu_hours", json_real(replay_gpu_hours(r->stranded)));
                (void) json_object_set_new(run, "lost_gpu_hours", json_real(replay_gpu_hours(r->wasted)));
                (void) json_object_set_new(run, "wait_s", waits_json(&runs[i], REPLAY_SIZES));
                (void) json_object_set_new(run, "wait_s_by_size", sizes);
                (void) json_array_append_new(all, run);
        }
        return json_pack("{s:o}", "runs", all);
}

static void print_time(FILE *to, int64_t at_s)
{
        if (at_s >= 0)
                (void) fprintf(to, "%" PRId64 ",", at_s);
        else
                (void) fputc(',', to);
}

void replay_csv(FILE *to, const struct replayed *runs, size_t n_runs)
{
        static const char *const fates[] = { [REPLAY_WAITING] = "waiting",
                                             [REPLAY_RUNNING] = "running",
                                             [REPLAY_ENDED] = "ended",
                                             [REPLAY_NEVER] = "never",
                                             [REPLAY_GIVEN_UP] = "given-up" };

        (void) fputs("policy,job,submit_s,start_s,end_s,wait_s,gpus,restarts,fate\n", to);
        for (size_t i = 0; i < n_runs; i++)
                for (size_t j = 0; j < runs[i].n_jobs; j++) {
                        const struct replay_job *job = &runs[i].jobs[j];
                        const struct replay_record *r = &runs[i].result->records[j];
                        (void) fprintf(to, "%s,%" PRIu32 ",%" PRId64 ",", runs[i].policy, job->row, job->submit_s);
                        print_time(to, r->start_s);
                        print_time(to, r->end_s);
                        print_time(to, r->first_start_s < 0 ? -1 : r->first_start_s - job->submit_s);
                        (void) fprintf(to, "%.3f,%" PRIu32 ",%s\n", (double) replay_job_milli(job) / MILLI_PER_GPU,
                                       r->restarts, fates[r->fate]);
                }
}
