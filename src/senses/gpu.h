/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a source of device figures can do. nvml.c is one; a test's fake is an equal citizen.
 * Devices are named by UUID in every call; what a backend keeps per device (a handle) is its own affair.
 * Calls may hang or crash in the driver: that is why they happen in lessor-eyes only.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/eyes.h"

/* How a call went: what it means, and the driver's own number for people. */
struct gpu_status {
        enum eyes_error error;
        int32_t rc;
};

struct gpu_driver {
        enum eyes_driver_state state;
        int32_t rc;
        char version[EYES_DRIVER_SIZE]; /* "" = unknown */
        char words[EYES_ALARM_SIZE];    /* why it is not OK, or what is missing although it is; "" = nothing to say */
};

struct gpu_memory {
        uint64_t total_bytes;
        uint64_t free_bytes;
};

/* One entry of one of the driver's lists, as it came. A pid in two lists is two of these. */
struct gpu_listed {
        uint32_t pid;
        uint32_t list; /* EYES_ROW_COMPUTE, EYES_ROW_GRAPHICS or EYES_ROW_MPS */
        bool used_known;
        uint64_t used_bytes;
};

enum { GPU_LISTED_MAX = 3 * EYES_ROWS_MAX };

struct gpu_work {
        uint64_t since_us; /* in: samples behind that, by the driver's clock; 0 = all. Out: of the youngest */
        bool any;          /* there were samples, if only of nothing done */
        uint32_t n;
        uint32_t pids[EYES_ROWS_MAX]; /* who did something, each once, in any order */
};

struct gpu_ops {
        const char *name;
        /* (Re)initialise; also after a start that failed, or when it was started before. Fills all of @ret. */
        void (*start)(void *gpu, struct gpu_driver *ret);
        void (*stop)(void *gpu);
        /* After a start that was OK: at most EYES_DEVICES_MAX devices; *ret_n_hidden more have no UUID for us. */
        struct gpu_status (*enumerate)(void *gpu, struct eyes_device *ret_devices, uint32_t *ret_n,
                                       uint32_t *ret_n_hidden);
        struct gpu_status (*read_memory)(void *gpu, const char *uuid, struct gpu_memory *ret);
        /*
         * All lists of one device. EYES_ERROR_REJECTED when the answer has not the shape it must have. More than @max
         * entries are EYES_ERROR_REJECTED too. The values are the driver's: reading_take() judges them.
         */
        struct gpu_status (*read_list)(void *gpu, const char *uuid, struct gpu_listed *ret_listed, size_t max,
                                       size_t *ret_n);
        /* Who has done something on the device, as the driver sampled it: NULL where a backend cannot tell at all. */
        struct gpu_status (*read_work)(void *gpu, const char *uuid, struct gpu_work *work);
};
