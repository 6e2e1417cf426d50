/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* visible - CUDA's own order and selection of devices: CUDA_DEVICE_ORDER and CUDA_VISIBLE_DEVICES */

#include "card/card.h"

/*
 * visible_devices - fill the table CUDA ordinal -> NVML index; returns how many
 * Like the driver: the list ends at its first invalid entry, an empty list is no device, a device named twice is none at all;
 * entries are indices (in CUDA's order) or UUIDs, which may be cut short where that is unambiguous.
 */
int visible_devices(const struct card *card, uint32_t ret_device[CARD_DEVICES_MAX]);
