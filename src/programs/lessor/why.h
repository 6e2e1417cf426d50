/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A story for people: a line for each step, what it was decided on, and what was a clock. */
#include <jansson.h>

/* @body: as GET /api/why gives it; of a lease with the fields of GET /api/why/L17 too. */
void why_print(const json_t *body);
