/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reports as one page of HTML that needs nothing but itself. */
#include "programs/lessor-sim/contest_words.h"
#include "programs/lessor-sim/replay_words.h"

/* Written beside @path and given its name when whole. */
int report_contest(const char *path, const struct contest *contest, const struct shown_points *points, size_t base,
                   struct error *err);
int report_replay(const char *path, const struct replayed *runs, size_t n_runs, struct error *err);
