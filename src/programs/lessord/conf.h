/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * lessord.conf: `key = value` lines, # and ; begin comments, no sections. The keys are a table (conf.c) with a parser, a
 * range and one line of help each; spans and amounts are text ("10m", "1GiB"). An unknown, doubled or bad key is an error
 * that names file and line.
 */
#include <stdbool.h>
#include <stdio.h>
#include "base/error.h"
#include "model/config.h"

struct conf {
        struct config core;
        uint64_t poll_ms;          /* how often the cards are looked at while leases exist */
        uint64_t poll_busy_ms;     /* … while something waits, drains or is to be collected */
        uint64_t poll_idle_ms;     /* … while there is no lease at all */
        uint64_t wsl_margin_bytes; /* core.kept_free_bytes where the kernel is WSL's (F33) */
        uint64_t eyes_deadline_ms; /* no answer for so long: the driver hangs */
};

void conf_defaults(struct conf *conf);
/* @required: a missing file is an error; else it means the defaults. */
int conf_load(const char *path, bool required, struct conf *conf, struct error *err);
/* Every key with its value now and its help, as lessord.conf would have it. */
void conf_print(FILE *out, const struct conf *conf);
