/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Ways out that the program of a request could not survive, or that nobody could go for it: refused when they are named, not
 * found out when the memory is needed. Pure over what is asked for.
 */
#include <stdbool.h>
#include "model/input.h"

struct unfit {
        uint8_t way; /* enum way_out_kind */
        const char *why;
        const char *cure;
};

/* What is known of the request beside its fields. */
struct unfit_facts {
        bool only_mig; /* every device that it may be on is a MIG instance */
        const char *
                unmanaged; /* adopt: why neither a service manager nor an engine would stop it for us; NULL = one would */
        bool heard;        /* adopt: who asks is the process itself or its parent, so that what it is told is heard */
};

/* False: all that is named is fit. */
bool unfit_find(const struct request *request, const struct unfit_facts *facts, struct unfit *ret);
