/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What Prometheus scrapes: the world as gauges, and what was decided since the daemon started as counters. Units are base
 * units (bytes, seconds); an unknown figure is left out, since it is never 0. No command line, no path, no name of a lease.
 */
#include "api/view.h"
#include "base/strbuf.h"
#include "model/action.h"

enum { METRICS_WAITS_N = 9, METRICS_WARNINGS_N = 10, METRICS_MOVES_N = 10 };

struct metrics {
        uint64_t actions[ACTION_KIND_N];
        uint64_t
                waits[METRICS_WAITS_N]; /* grants that had waited at most so long, bucket by bucket; the last: longer */
        uint64_t n_waits, waited_ms;
        uint64_t moves[METRICS_MOVES_N]; /* what came of parks and thaws */
        uint64_t warnings[METRICS_WARNINGS_N];
};

/* @waited_ms: of a grant, else 0. */
void metrics_count(struct metrics *metrics, const struct action *action, uint64_t waited_ms);
/* The exposition format, version 0.0.4. */
void metrics_write(struct strbuf *out, const struct metrics *metrics, const struct view *v,
                   const struct api_health *health, uint32_t n_connections);

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
