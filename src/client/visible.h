/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which cards a command may see: CUDA_VISIBLE_DEVICES read as a constraint, and written for a grant. Devices are named by
 * UUID; an index only means something in PCI bus order, because CUDA's own order is another one than the driver's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "model/limits.h"

struct visible_device {
        char uuid[UUID_TEXT_MAX];
        char pci_bus_id[PCI_TEXT_MAX];
};

/* Sorts by PCI bus id, which makes the position the index of CUDA_DEVICE_ORDER=PCI_BUS_ID. */
void visible_sort(struct visible_device *devices, size_t n_devices);

/*
 * Reads what the person had set. -EINVAL with words: an entry that names no known device or several, an index without
 * CUDA_DEVICE_ORDER=PCI_BUS_ID where there are several devices, no device at all.
 * @value     of CUDA_VISIBLE_DEVICES
 * @pci_order CUDA_DEVICE_ORDER is PCI_BUS_ID
 * @devices   sorted
 * @ret_mask  bit i = devices[i]
 */
int visible_parse(const char *value, bool pci_order, const struct visible_device *devices, size_t n_devices,
                  uint64_t *ret_mask, struct error *err);
