/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* state - what libnvidia-ml knows: the card, the initialisation count, the handles */

#include "card/card.h"
#include "nvml/abi.h"

struct nvml_device {
        uint32_t index;
};

struct nvml_state {
        struct card card;
        struct nvml_device handle[CARD_DEVICES_MAX];
};
extern struct nvml_state nvml;

/* nvml_enter - the head of every call: initialised? a fault? @device NVML index or -1. 0 or the code to answer. */
nvmlReturn_t nvml_enter(const char *symbol, int32_t device);

/* The head of every call on a device: `dev` and `index` are set behind it. */
nvmlReturn_t nvml_enter_device(const char *symbol, nvmlDevice_t handle, uint32_t *ret_index,
                               struct card_device **ret_dev);
#define DEVICE_BEGIN(handle)                                                                                           \
        uint32_t index = 0;                                                                                            \
        struct card_device *dev = NULL;                                                                                \
        nvmlReturn_t enter_rc_ = nvml_enter_device(__func__, handle, &index, &dev);                                    \
        (void) index, (void) dev;                                                                                      \
        if (enter_rc_ != NVML_OK)                                                                                      \
        return enter_rc_

/* A text into a caller's buffer: 7 when it is too small. */
nvmlReturn_t nvml_text(char *to, unsigned size, const char *text);
