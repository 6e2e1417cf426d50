/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-sim/events.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static bool before(const struct event *a, const struct event *b)
{
        if (a->at_s != b->at_s)
                return a->at_s < b->at_s;
        if (a->kind != b->kind)
                return a->kind < b->kind;
        return a->id != b->id ? a->id < b->id : a->generation < b->generation;
}

static void swap(struct event *a, struct event *b)
{
        struct event kept = *a;
        *a = *b;
        *b = kept;
}

int events_add(struct events *events, struct event event, struct error *err)
{
        if (events->n == events->n_max) {
                size_t n_max = events->n_max == 0 ? 256 : 2 * events->n_max;
                struct event *rows = reallocarray(events->rows, n_max, sizeof(*rows));
                if (!rows)
                        return error_errno(err, ENOMEM, "%zu events", n_max);
                events->rows = rows;
                events->n_max = n_max;
        }
        size_t i = events->n++;
        events->rows[i] = event;
        for (; i > 0 && before(&events->rows[i], &events->rows[(i - 1) / 2]); i = (i - 1) / 2)
                swap(&events->rows[i], &events->rows[(i - 1) / 2]);
        return 0;
}

const struct event *events_first(const struct events *events)
{
        return events->n > 0 ? &events->rows[0] : NULL;
}

void events_take(struct events *events)
{
        struct event *rows = events->rows;
        size_t i = 0, n = --events->n;

        rows[0] = rows[n];
        for (;;) {
                size_t least = i;
                for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++)
                        if (before(&rows[child], &rows[least]))
                                least = child;
                if (least == i)
                        return;
                swap(&rows[i], &rows[least]);
                i = least;
        }
}

void events_fini(struct events *events)
{
        free(events->rows);
        *events = (struct events){ 0 };
}
