/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is known of a version of the NVIDIA driver, as far as CUDA checkpoints go. The drivers known to be broken are data
 * (driver_known[] in driver.c), each with its reason and where it was reported.
 */
#include <stdbool.h>
#include <stdint.h>

/* "575.57.08" -> a number that is greater for a later version; 0: not of that form. */
uint64_t driver_number(const char *version);

enum driver_verdict {
        DRIVER_UNKNOWN, /* no version that could be read */
        DRIVER_OLD,     /* before the calls came (570) */
        DRIVER_BROKEN,  /* no program survives it, or too few */
        DRIVER_FINE,    /* perhaps with a note */
};

struct driver_known {
        uint64_t from, below; /* driver_number() */
        bool broken;          /* nothing safe is left; else lessor goes around it, or it strikes few */
        const char *words, *reference;
};

/* @ret_note: the row that counts, or NULL. */
enum driver_verdict driver_judge(const char *version, const struct driver_known **ret_note);
