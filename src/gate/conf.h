/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The section [gate] of lessord.conf (docs/decisions/0009):
 *
 *         [gate]
 *         mode = on                   off, log (count who would have been refused) or on
 *         cgroups = user.slice        below the root of the hierarchy; who is in them needs a lease to open the device
 *         devices = nvidia-uvm        character devices by their names in /proc/devices; also nvidia*, or a number
 *         always = machine.slice/ci*  these, and what lies below them, pass without a lease
 *         users_from = 1000           processes of users below that number pass too
 *
 * Read by two programs with the same words: lessord asks for a mode, and lessor-warden-admin believes nobody but this file, which
 * has to be root's. Pure but for gate_conf_load().
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "wire/gate.h"

enum {
        GATE_CGROUPS_MAX = 8,
        GATE_ALWAYS_MAX = 16,
        GATE_DEVICES_MAX = 16,
        GATE_PATH_SIZE = 128,
        GATE_DEVICE_SIZE = 32,
        GATE_MAJORS_MAX = 64,
};

struct gate_conf {
        uint8_t mode; /* enum gate_mode */
        uint32_t users_from;
        uint32_t n_cgroups, n_always, n_devices;
        char cgroups[GATE_CGROUPS_MAX][GATE_PATH_SIZE]; /* "user.slice", without a slash at either end */
        char always[GATE_ALWAYS_MAX][GATE_PATH_SIZE];   /* patterns as fnmatch(3) has them, each step by itself */
        char devices[GATE_DEVICES_MAX][GATE_DEVICE_SIZE];
        uint32_t seen; /* keys that were read, a bit each */
};

void gate_conf_defaults(struct gate_conf *conf);
/* One line of the section; negative errno with words, without file and line. */
int gate_conf_line(struct gate_conf *conf, const char *key, const char *value, struct error *err);
/* When the last line was read. */
int gate_conf_end(const struct gate_conf *conf, struct error *err);
/* The section alone, of a file by which root alone decides. A file or section that is not there means the defaults: off. */
int gate_conf_load(struct gate_conf *conf, const char *path, struct error *err);

/*
 * The majors that @conf names among those of /proc/devices ("Character devices:\n195 nvidia\n…"); at most @max, any bytes are
 * safe. Numbers count whether they stand there or not.
 */
size_t gate_conf_majors(const struct gate_conf *conf, const char *text, size_t n, uint32_t *ret, size_t max);
/* Is this folder ("user.slice/user-1000.slice") gated, or in one that is? */
bool gate_conf_covers(const struct gate_conf *conf, const char *path);
/* Does a pattern of @always name this folder; may it name one below it (@ret_deeper)? */
bool gate_pattern_matches(const char *pattern, const char *path, bool *ret_deeper);
