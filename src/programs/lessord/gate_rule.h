/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which leases may open the device, and as whose. Pure. */
#include <stdbool.h>
#include "model/lease.h"
#include "wire/gate.h"

/* False: it may not, or there is nobody here who could; @ret is all 0 then. */
bool gate_wants(const struct lease *lease, struct gate_allow *ret);
