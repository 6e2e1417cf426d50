/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "programs/lessord/inputs.h"

enum { INPUTS_KEPT = 64 };

bool input_is_refusable(const struct input *input)
{
        switch ((enum input_kind) input->kind) {
        case INPUT_REQUEST:
        case INPUT_CHANGE:
        case INPUT_PARK:
                return true;
        case INPUT_ACTIVATE:
        case INPUT_RENEW:
        case INPUT_RELEASE:
                return !input->call.by_system;
        case INPUT_NONE:
        case INPUT_TICK:
        case INPUT_CONFIG:
        case INPUT_DEVICE:
        case INPUT_READING:
        case INPUT_PROCESS:
        case INPUT_PROCESS_ENDED:
        case INPUT_EYES:
        case INPUT_OWNER_ENDED:
        case INPUT_RESTART:
        case INPUT_OUTCOME:
        case INPUT_HOST:
        case INPUT_RECORD:
        case INPUT_MANAGER:
        case INPUT_PAUSE:
        case INPUT_ENFORCE:
        case INPUT_KIND_N:
                break;
        }
        return false;
}

static int make_room(struct inputs *q, size_t more)
{
        if (q->n + more <= q->cap)
                return 0;

        size_t cap = q->cap ? q->cap : INPUTS_KEPT;
        while (cap < q->n + more)
                cap *= 2;
        void *grown = reallocarray(q->items, cap, sizeof(*q->items));
        if (!grown)
                return -ENOMEM;
        q->items = grown;
        q->cap = cap;
        return 0;
}

int inputs_add(struct inputs *q, const struct input *input)
{
        struct occupancy *rows = NULL;

        if (make_room(q, 1) < 0)
                return -ENOMEM;
        if (input->kind == INPUT_READING && input->reading.n_rows > 0) {
                rows = reallocarray(NULL, input->reading.n_rows, sizeof(*rows));
                if (!rows)
                        return -ENOMEM;
                memcpy(rows, input->reading.rows, input->reading.n_rows * sizeof(*rows));
        }
        struct input *copy = &q->items[q->n++];
        *copy = *input;
        if (input->kind == INPUT_READING)
                copy->reading.rows = rows;
        return 0;
}

int inputs_move(struct inputs *q, struct inputs *from)
{
        if (make_room(q, from->n) < 0)
                return -ENOMEM;
        if (from->n > 0)
                memcpy(q->items + q->n, from->items, from->n * sizeof(*q->items));
        q->n += from->n;
        from->n = 0;
        return 0;
}

void input_fini(struct input *input)
{
        if (input->kind == INPUT_READING) {
                free((void *) (uintptr_t) input->reading.rows);
                input->reading.rows = NULL;
        }
}

void inputs_clear(struct inputs *q)
{
        for (size_t i = 0; i < q->n; i++)
                input_fini(&q->items[i]);
        q->n = 0;
        if (q->cap > INPUTS_KEPT) {
                free(q->items);
                *q = (struct inputs){ 0 };
        }
}

void inputs_fini(struct inputs *q)
{
        inputs_clear(q);
        free(q->items);
        *q = (struct inputs){ 0 };
}
