/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who had device memory, as JSON: by lessord, and by `lessor` where it reads a journal itself. The facts of a row are passed on as
 * they were written down, to whom they may be shown; others see who it was, how much, and since when.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "api/told_json.h"
#include "store/audited.h"

/* How it stands with it; only lessord knows. */
struct told_now {
        bool known;
        bool is_live;
        bool used_known;
        uint64_t used_bytes;
        uint64_t lease_id; /* 0 = under none */
};

struct told_audit_host {
        void *ctx;
        told_name_fn *name;
        bool (*shows)(void *ctx, const struct journal_audit *audit);                     /* NULL: all of it */
        void (*now)(void *ctx, const struct journal_audit *audit, struct told_now *ret); /* NULL: nobody knows */
};

/* A new reference, or NULL without memory. */
json_t *told_audited(const struct audited *audited, const struct told_audit_host *host);
