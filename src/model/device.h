/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One allocatable GPU or MIG instance, named by UUID, never by index. Everything here comes from readings; what is promised
 * on it stands in the holder table.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/limits.h"

enum device_health {
        DEVICE_ABSENT, /* an empty row */
        DEVICE_OK,
        DEVICE_NO_MEMORY_READING, /* the driver gives no memory figure: unusable until an administrator gives a budget */
        DEVICE_LOST,              /* fell off the bus, or the driver says so */
        DEVICE_FAULT,             /* the driver answers with an error for this device alone */
        DEVICE_PARENT,            /* a card in MIG mode: its instances are the devices */
        DEVICE_HEALTH_N,
};

struct device {
        uint8_t health; /* enum device_health */
        bool used_known;
        bool per_process_known; /* false: the driver gives no per-process figures at all */
        bool settled;           /* total–list–total agreed in the last reading */
        bool driver_own_known;
        char uuid[UUID_TEXT_MAX];
        char name[DEVICE_NAME_MAX];
        char pci_bus_id[PCI_TEXT_MAX]; /* dddd:bb:dd.f, lower case */
        uint32_t minor;                /* /dev/nvidia<minor> */
        uint64_t total_bytes;
        uint64_t used_bytes;       /* total − free of the driver */
        uint64_t driver_own_bytes; /* what was used with no process listed: the smallest such figure seen */
        uint64_t budget_bytes;     /* administrator's, for a device without a memory figure; 0 = none */
        uint64_t reading_ms;       /* when the last reading was taken; 0 = never */
        uint64_t changed_ms;    /* the last change known on it (a release, an exit): readings before it grant nothing */
        uint64_t foreign_bytes; /* what those outside leases used at the last look */
        uint64_t foreign_grew_ms; /* when that last became more; 0 = never */
        uint64_t read_asked_ms;   /* when ACTION_READ was last ordered for it; 0 = nothing outstanding */
        uint32_t error_code;      /* driver's return code behind DEVICE_FAULT or DEVICE_LOST */
};

const char *device_health_name(enum device_health health);
