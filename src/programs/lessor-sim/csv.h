/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tables as text, read row by row: a file of any size takes the memory of one row. Columns are found by their names in the first
 * row, in any order; those that nobody asked for are passed over. What is wrong names file, line, column and value.
 * Fields are plain: no quotes, no line breaks inside. Lines end with LF or CRLF.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

enum { CSV_LINE_MAX = 4096, CSV_FIELDS_MAX = 64, CSV_COLUMNS_MAX = 16 };

struct csv_column {
        const char *name;
        bool may_be_missing;
};

struct csv {
        const char *name; /* of the file, for words; borrowed */
        int fd;           /* -1: everything is in the buffer already */
        bool owns_fd;
        const char *data; /* what was read and not yet used: data[at..n_data) */
        size_t at, n_data;
        char *chunk; /* ours, where @data points with a file */
        uint64_t line;
        char text[CSV_LINE_MAX + 1]; /* the row, cut into fields by NULs */
        const char *fields[CSV_FIELDS_MAX];
        size_t n_fields, n_in_first_row;
        const struct csv_column *columns;
        size_t n_columns;
        int places[CSV_COLUMNS_MAX]; /* of each column among the fields; -1: the file lacks it */
};

/* "-" is standard input. @path and @columns are borrowed. Reads the first row. */
int csv_open(struct csv *csv, const char *path, const struct csv_column *columns, size_t n_columns, struct error *err);
/* The same of bytes in memory, which are borrowed. */
int csv_open_bytes(struct csv *csv, const char *name, const void *data, size_t n_data, const struct csv_column *columns,
                   size_t n_columns, struct error *err);
void csv_close(struct csv *csv); /* fine on a zeroed one, and twice */

/* 1: a row. 0: the end. Negative: it is none. */
int csv_next(struct csv *csv, struct error *err);
/* Of the row; "" where the file lacks the column. Lives until the next row. */
const char *csv_text(const struct csv *csv, size_t column);
int csv_number(const struct csv *csv, size_t column, uint64_t min, uint64_t max, uint64_t *ret, struct error *err);
/* A value that can be read and makes no sense: -EINVAL with "FILE, line N, column C: "value" …". */
printf_like(4, 5) int csv_wrong(const struct csv *csv, size_t column, struct error *err, const char *fmt, ...);
