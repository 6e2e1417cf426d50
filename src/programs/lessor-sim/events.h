/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What will happen when: the earliest first; at one moment ends, then nodes that come back, then nodes that fail; then by number. */
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

enum event_kind { EVENT_END, EVENT_NODE_BACK, EVENT_NODE_FAILS };

struct event {
        int64_t at_s;
        enum event_kind kind;
        uint32_t id;         /* job or node */
        uint32_t generation; /* of the job's run: one that was ended otherwise is passed over */
};

struct events { /* a binary heap */
        struct event *rows;
        size_t n, n_max;
};

int events_add(struct events *events, struct event event, struct error *err);
const struct event *events_first(const struct events *events); /* NULL: none */
void events_take(struct events *events);                       /* the first goes */
void events_fini(struct events *events);                       /* fine on a zeroed one, and twice */
