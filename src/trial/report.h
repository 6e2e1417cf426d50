/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a run came to, over all its seeds, and whether that is enough to mean something. */
#include "trial/trial.h"

struct report {
        uint64_t hours; /* each seed's */
        uint64_t n_seeds, n_broken;
        uint64_t least_requests, least_hours;
        uint64_t digest;
        struct count count;
        uint64_t faults[FAULT_N];
};

void report_add(struct report *report, const struct trial *t, bool good);
/* On stdout. False: something broke, or with @bounds, something happened too rarely. */
bool report_print(const struct report *report, bool json, bool bounds);
