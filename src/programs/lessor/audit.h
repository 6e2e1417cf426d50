/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Who had device memory, for people: who started whom, with how that is known, and what it ran. */
#include <jansson.h>

/* @body: as GET /api/audit gives it. */
void audit_print(const json_t *body);
