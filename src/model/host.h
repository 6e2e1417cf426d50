/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the machine has besides its cards, as far as parking needs to know: host memory, and what its driver can do. Facts, like
 * a reading; zeroed is "nothing is known", and then nothing is moved into host memory.
 */
#include <stdbool.h>
#include <stdint.h>

enum checkpoint_cannot {
        CHECKPOINT_UNKNOWN, /* nobody has looked yet */
        CHECKPOINT_CAN,
        CHECKPOINT_NO_LIBRARY, /* the driver's library lacks the calls, or is not there */
        CHECKPOINT_OLD_DRIVER,
        CHECKPOINT_BAD_DRIVER, /* known to be broken (data) */
        CHECKPOINT_NO_MACHINE, /* not on this kind of processor */
        CHECKPOINT_NO_HANDS,   /* nobody who could: the hands are not there, or may not */
        CHECKPOINT_OFF,        /* by configuration */
        CHECKPOINT_CANNOT_N,
};

struct host {
        uint64_t total_bytes;     /* MemTotal; 0 = unknown */
        uint64_t available_bytes; /* MemAvailable */
        uint64_t read_ms;
        uint64_t driver;    /* a number that changes with the driver's version; 0 = unknown */
        bool pressure;      /* memory is short, as the kernel says (PSI) */
        uint8_t checkpoint; /* enum checkpoint_cannot */
};

const char *checkpoint_cannot_name(enum checkpoint_cannot why);
const char *checkpoint_cannot_text(enum checkpoint_cannot why); /* for people */
