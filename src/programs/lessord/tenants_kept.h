/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The tenants that count, over time: read at the start and with each reload, all of their files or none. At the start files that
 * are wrong do not keep the daemon down: those it accepted last (kept beside the journal, as one file) count, and status says so.
 */
#include "base/error.h"
#include "tenants/tenants.h"

struct paths;

struct tenants_kept {
        struct tenants set;
        struct tenants_places places;
        bool is_accepted; /* the files are not taken: the last ones that were good count */
        char error[400];  /* why not; "" = they were */
};

void tenants_kept_first(struct tenants_kept *kept, const struct paths *paths);
/* As the files are now, into *ret; what counts stays. */
int tenants_kept_read(const struct tenants_kept *kept, struct tenants *ret, struct error *err);
/* From now on these. */
void tenants_kept_take(struct tenants_kept *kept, struct tenants *fresh);
/* Once the folders are there and locked, and with each that is taken: remembered for a start with files that are wrong. */
void tenants_kept_accept(const struct tenants_kept *kept, const struct paths *paths);
