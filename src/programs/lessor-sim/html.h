/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A page of plots that needs nothing but itself: no scripts, nothing from elsewhere, drawings inside (SVG). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct series {
        const char *name;
        const double *x, *y;
        const double *low, *high; /* a band around it; NULL: none */
        size_t n;
};

struct chart {
        const char *title, *x_title, *y_title;
        const struct series *series;
        size_t n_series;
        bool log_x; /* of x ≥ 1 */
        bool has_y_range;
        double y_from, y_to; /* else from the figures */
};

void html_begin(FILE *to, const char *title);
void html_end(FILE *to);
void html_text(FILE *to, const char *text); /* escaped */
void html_chart(FILE *to, const struct chart *chart);
/* values[column][row], 0 to 100: dark is full. @stride: from column to column. */
void html_heat(FILE *to, const char *title, const char *x_title, const char *y_title, const uint8_t *values,
               size_t n_columns, size_t n_rows, size_t stride);

struct bar { /* from begin_s to end_s; waited from wait_s on */
        double wait_s, begin_s, end_s;
        const char *name;
};
/* One above the other, in lanes; sorted by begin. */
void html_gantt(FILE *to, const char *title, const char *x_title, const struct bar *bars, size_t n);
