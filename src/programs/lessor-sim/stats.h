/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Figures of some seeds: their mean, how far they lie apart, and how surely one policy is above another. */
#include <stddef.h>

struct stats {
        size_t n;                     /* 0: the rest means nothing */
        double mean, sd, least, most; /* sd: of a sample, 0 with one value */
};

struct stats stats_of(const double *values, size_t n);
/* Half the width of the interval in which the mean lies with 95 % confidence (Student's t); infinite below two values. */
double stats_half_width(const struct stats *s);
