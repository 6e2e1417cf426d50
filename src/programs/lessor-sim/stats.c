/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-sim/stats.h"
#include <math.h>

/* Student's t, two-sided 95 %, by degrees of freedom from 1. */
static const double t_95[] = { 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                               2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                               2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042 };
enum { T_ROWS = sizeof(t_95) / sizeof(t_95[0]) };

struct stats stats_of(const double *values, size_t n)
{
        struct stats s = { .n = n };
        double sum = 0, squares = 0;

        if (n == 0)
                return s;
        s.least = s.most = values[0];
        for (size_t i = 0; i < n; i++) {
                sum += values[i];
                if (values[i] < s.least)
                        s.least = values[i];
                if (values[i] > s.most)
                        s.most = values[i];
        }
        s.mean = sum / (double) n;
        for (size_t i = 0; i < n; i++)
                squares += (values[i] - s.mean) * (values[i] - s.mean);
        s.sd = n > 1 ? sqrt(squares / (double) (n - 1)) : 0;
        return s;
}

double stats_half_width(const struct stats *s)
{
        if (s->n < 2)
                return INFINITY;
        double t = s->n - 1 <= T_ROWS ? t_95[s->n - 2] : 1.96 + 2.4 / (double) (s->n - 1);
        return t * s->sd / sqrt((double) s->n);
}
