/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is asked of a booking by the wall clock, as the core counts: start, end, and a binding that needs nobody to live. */
#include "api/conn.h"
#include "api/lease_json.h"

/* Nothing to do where @ask is no booking. */
void booking_fill(const struct conn *c, struct lease_ask *ask);
