/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One tenant of one file, and one file's over another's. Private to src/tenants. */
#include "tenants/read.h"
#include "tenants/tenant.h"

int tenant_read(struct reading_json *r, const char *name, const json_t *value, struct tenant *ret);
/* What @over gives, in place of what @t has; each key whole. */
void tenant_lay_over(struct tenant *t, const struct tenant *over, uint8_t file);
