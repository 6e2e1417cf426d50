/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-sim/published.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "programs/lessor-sim/csv.h"

enum published_column { P_TRACE, P_POLICY, P_ARRIVED, P_MEAN };
static const struct csv_column columns[] = {
        { "trace", false }, { "policy", false }, { "arrived_pct", false }, { "alloc_mean", false }
};

const struct published_policy published_policies[PUBLISHED_POLICIES] = {
        { "Random", "random", 1.0 },
        { "DotProd", "dotprod", 0.5 },
        { "GpuClustering", "gpu-clustering", 0.5 },
        { "GpuPacking", "gpu-packing", 0.5 },
        { "BestFit", "best-fit", 0.5 },
        { "FGD", "fgd", 0.5 },
};

static size_t find_policy(const char *name)
{
        size_t i = 0;

        while (i < PUBLISHED_POLICIES && strcmp(published_policies[i].theirs, name) != 0)
                i++;
        return i;
}

/* Its name becomes a part of a path. */
static int trace_name(struct csv *csv, char ret[PUBLISHED_NAME_MAX], struct error *err)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
        const char *name = csv_text(csv, P_TRACE);
        size_t n = strlen(name);

        if (n == 0 || n >= PUBLISHED_NAME_MAX || strspn(name, letters) != n)
                return csv_wrong(csv, P_TRACE, err, "is no name of a trace: letters, digits, _ and -");
        memcpy(ret, name, n + 1);
        return 0;
}

static int percent(struct csv *csv, double *ret, struct error *err)
{
        const char *text = csv_text(csv, P_MEAN);
        char *end = NULL;

        *ret = strtod(text, &end);
        if (end == text || *end != '\0' || !isfinite(*ret) || *ret < 0 || *ret > 100)
                return csv_wrong(csv, P_MEAN, err, "is no percentage from 0 to 100");
        return 0;
}

static int keep(struct published *p, const struct published_mean *mean, struct csv *csv, struct error *err)
{
        size_t i = 0;

        while (i < p->n_traces && strcmp(p->traces[i], mean->trace) != 0)
                i++;
        if (i == PUBLISHED_TRACES_MAX)
                return csv_wrong(csv, P_TRACE, err, "is one trace too many; 64 are known apart");
        if (i == p->n_traces)
                memcpy(p->traces[p->n_traces++], mean->trace, sizeof(mean->trace));
        if ((p->n & (p->n - 1)) == 0) {
                struct published_mean *larger = reallocarray(p->means, p->n == 0 ? 1 : 2 * p->n, sizeof(*larger));
                if (!larger)
                        return error_errno(err, ENOMEM, "reading %s", csv->name);
                p->means = larger;
        }
        p->means[p->n++] = *mean;
        return 0;
}

int published_read(struct published *published, const char *path, struct error *err)
{
        struct csv csv;
        int k = csv_open(&csv, path, columns, sizeof(columns) / sizeof(columns[0]), err);
        if (k < 0)
                return k;

        *published = (struct published){ 0 };
        while ((k = csv_next(&csv, err)) > 0) {
                struct published_mean mean = { .policy = find_policy(csv_text(&csv, P_POLICY)) };
                uint64_t arrived = 0;
                if (mean.policy == PUBLISHED_POLICIES)
                        continue;
                k = trace_name(&csv, mean.trace, err);
                if (k == 0)
                        k = csv_number(&csv, P_ARRIVED, 0, 1000, &arrived, err);
                if (k == 0)
                        k = percent(&csv, &mean.alloc_pct, err);
                mean.arrived_pct = (uint32_t) arrived;
                if (k == 0)
                        k = keep(published, &mean, &csv, err);
                if (k < 0)
                        break;
        }
        csv_close(&csv);
        if (k == 0 && published->n == 0)
                k = error_set(err, EINVAL, "%s has no figures of a policy that is known here", path);
        return k;
}

void published_fini(struct published *published)
{
        free(published->means);
        *published = (struct published){ 0 };
}

const struct published_mean *published_find(const struct published *published, const char *trace, size_t policy,
                                            uint32_t arrived_pct)
{
        for (size_t i = 0; i < published->n; i++) {
                const struct published_mean *mean = &published->means[i];
                if (mean->policy == policy && mean->arrived_pct == arrived_pct && strcmp(mean->trace, trace) == 0)
                        return mean;
        }
        return NULL;
}
