/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-sim/csv.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/escape.h"
#include "base/number.h"

enum { CHUNK_BYTES = 64 * 1024, SHOWN_MAX = 64, WHERE_MAX = 256 };

static int wrong_line(const struct csv *csv, struct error *err, const char *words)
{
        return error_set(err, EINVAL, "%s, line %" PRIu64 ": %s", csv->name, csv->line, words);
}

/* 1: there is something at data[at]. */
static int fill(struct csv *csv, struct error *err)
{
        if (csv->at < csv->n_data)
                return 1;
        if (csv->fd < 0)
                return 0;
        ssize_t n;
        do
                n = read(csv->fd, csv->chunk, CHUNK_BYTES);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return error_errno(err, errno, "reading %s", csv->name);
        csv->data = csv->chunk;
        csv->at = 0;
        csv->n_data = (size_t) n;
        return n > 0;
}

/* One line into @text, without its end. 1: a line. 0: the end of the file. */
static int read_line(struct csv *csv, struct error *err)
{
        size_t n = 0;
        bool any = false;
        int r;

        csv->line++;
        while ((r = fill(csv, err)) > 0) {
                const char *from = csv->data + csv->at;
                size_t left = csv->n_data - csv->at;
                const char *end = memchr(from, '\n', left);
                size_t take = end ? (size_t) (end - from) : left;
                any = true;
                if (n + take > CSV_LINE_MAX)
                        return wrong_line(csv, err, "it is longer than 4096 bytes; is this a table of text?");
                memcpy(csv->text + n, from, take);
                n += take;
                csv->at += take + (end != NULL);
                if (end)
                        break;
        }
        if (r < 0)
                return r;
        if (!any)
                return 0;
        if (n > 0 && csv->text[n - 1] == '\r')
                n--;
        csv->text[n] = '\0';
        if (n == 0)
                return wrong_line(csv, err, "it is empty; take it out");
        if (memchr(csv->text, '\0', n))
                return wrong_line(csv, err, "it has a NUL in it; is this a table of text?");
        if (memchr(csv->text, '"', n))
                return wrong_line(csv, err, "it has a quote in it; fields are plain here: take the quotes out");
        return 1;
}

static int cut(struct csv *csv, struct error *err)
{
        char *at = csv->text;

        csv->n_fields = 0;
        for (;;) {
                if (csv->n_fields == CSV_FIELDS_MAX)
                        return wrong_line(csv, err, "it has more than 64 fields");
                csv->fields[csv->n_fields++] = at;
                at = strchr(at, ',');
                if (!at)
                        return 0;
                *at++ = '\0';
        }
}

static int find_column(struct csv *csv, size_t column, struct error *err)
{
        const struct csv_column *c = &csv->columns[column];
        int place = -1;

        for (size_t i = 0; i < csv->n_fields; i++) {
                if (strcmp(csv->fields[i], c->name) != 0)
                        continue;
                if (place >= 0)
                        return error_set(err, EINVAL, "%s, line 1: there are two columns \"%s\"", csv->name, c->name);
                place = (int) i;
        }
        if (place < 0 && !c->may_be_missing) {
                char shown[SHOWN_MAX];
                return error_set(err, EINVAL,
                                 "%s, line 1: there is no column \"%s\"; the first row names the columns, and begins "
                                 "with \"%s\"",
                                 csv->name, c->name,
                                 text_escape(csv->fields[0], strlen(csv->fields[0]), shown, sizeof(shown)));
        }
        csv->places[column] = place;
        return 0;
}

static int read_first_row(struct csv *csv, struct error *err)
{
        static const char mark[] = "\xef\xbb\xbf"; /* what some editors put in front of UTF-8 */
        int r = read_line(csv, err);

        if (r == 0)
                return error_set(err, EINVAL, "%s is empty; the first row names the columns", csv->name);
        if (r < 0)
                return r;
        if (strncmp(csv->text, mark, 3) == 0)
                memmove(csv->text, csv->text + 3, strlen(csv->text + 3) + 1);
        r = cut(csv, err);
        csv->n_in_first_row = csv->n_fields;
        for (size_t i = 0; r == 0 && i < csv->n_columns; i++)
                r = find_column(csv, i, err);
        return r;
}

int csv_open_bytes(struct csv *csv, const char *name, const void *data, size_t n_data, const struct csv_column *columns,
                   size_t n_columns, struct error *err)
{
        *csv = (struct csv){
                .name = name, .fd = -1, .data = data, .n_data = n_data, .columns = columns, .n_columns = n_columns
        };
        return read_first_row(csv, err);
}

int csv_open(struct csv *csv, const char *path, const struct csv_column *columns, size_t n_columns, struct error *err)
{
        bool is_input = strcmp(path, "-") == 0;

        *csv = (struct csv){ .name = is_input ? "standard input" : path,
                             .fd = STDIN_FILENO,
                             .columns = columns,
                             .n_columns = n_columns };
        if (!is_input) {
                csv->fd = open(path, O_RDONLY | O_CLOEXEC);
                if (csv->fd < 0)
                        return error_errno(err, errno, "opening %s", path);
                csv->owns_fd = true;
        }
        csv->chunk = malloc(CHUNK_BYTES);
        int r = csv->chunk ? read_first_row(csv, err) : error_errno(err, ENOMEM, "reading %s", csv->name);
        if (r < 0)
                csv_close(csv);
        return r;
}

void csv_close(struct csv *csv)
{
        if (csv->owns_fd)
                (void) close(csv->fd);
        free(csv->chunk);
        csv->owns_fd = false;
        csv->fd = -1;
        csv->chunk = NULL;
        csv->data = NULL;
        csv->at = csv->n_data = 0;
}

int csv_next(struct csv *csv, struct error *err)
{
        int r = read_line(csv, err);

        if (r <= 0)
                return r;
        r = cut(csv, err);
        if (r < 0)
                return r;
        if (csv->n_fields != csv->n_in_first_row)
                return error_set(err, EINVAL, "%s, line %" PRIu64 ": it has %zu fields, and the first row has %zu",
                                 csv->name, csv->line, csv->n_fields, csv->n_in_first_row);
        return 1;
}

const char *csv_text(const struct csv *csv, size_t column)
{
        int place = csv->places[column];
        return place < 0 ? "" : csv->fields[place];
}

int csv_number(const struct csv *csv, size_t column, uint64_t min, uint64_t max, uint64_t *ret, struct error *err)
{
        char what[WHERE_MAX];

        (void) snprintf(what, sizeof(what), "%s, line %" PRIu64 ", column %s", csv->name, csv->line,
                        csv->columns[column].name);
        return parse_u64(what, csv_text(csv, column), min, max, ret, err);
}

int csv_wrong(const struct csv *csv, size_t column, struct error *err, const char *fmt, ...)
{
        char shown[SHOWN_MAX], words[WHERE_MAX];
        const char *value = csv_text(csv, column);
        va_list args;

        va_start(args, fmt);
        (void) vsnprintf(words, sizeof(words), fmt, args);
        va_end(args);
        return error_set(err, EINVAL, "%s, line %" PRIu64 ", column %s: \"%s\" %s", csv->name, csv->line,
                         csv->columns[column].name, text_escape(value, strlen(value), shown, sizeof(shown)), words);
}
