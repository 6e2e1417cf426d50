/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tenants and matches as JSON, for the API and for `lessor`. New references; NULL: no memory. */
#include "tenants/match.h"

/* {"files": […], "tenants": [{…, "definition": as a file would have it, "from": {key: file}}]} */
json_t *told_tenants(const struct tenants *set);
/* Whose it is, and each condition of each rule. @name: only this tenant's rules; NULL = all of them. */
json_t *told_match(const struct tenants *set, const struct match_subject *subject, const char *name);
