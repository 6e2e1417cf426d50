/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The last look at a device before a restore (design 4.4), by NVML of our own: nobody else's reading is as young. */
#include <stdbool.h>
#include <stdint.h>
#include "wire/warden.h"

/* total - free of the device with that UUID. False: not known, which is never 0. */
bool look_used_bytes(const uint8_t uuid[WARDEN_UUID_SIZE], uint64_t *ret);
