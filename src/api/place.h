/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where a process runs, from the path of its cgroup: a container, a unit, a login session. Pure over text. What lies below a
 * user's slice was named by that user; the number of a place is of the whole path down to it, so a folder that is called like
 * somebody's unit is another place.
 */
#include <stdbool.h>
#include <stdint.h>
#include "api/container.h"

enum { PLACE_UNIT_MAX = 256 };

enum place_kind {
        PLACE_NONE,
        PLACE_UNIT,      /* a service or scope of systemd's */
        PLACE_SESSION,   /* a person's login: whatever was started there by hand */
        PLACE_CONTAINER, /* one that root's engine made, or a user's own */
        PLACE_KIND_N,
};

struct place {
        uint8_t kind; /* enum place_kind */
        bool of_user; /* below a user's slice: that user names what is there */
        uint32_t user_uid;
        uint64_t number;                   /* never 0, but of PLACE_NONE */
        char unit[PLACE_UNIT_MAX];         /* "ollama.service", as the folder is called; any bytes. "" = in no unit */
        char container[CONTAINER_ID_SIZE]; /* "" = none */
};

/* @cgroup_path: "/system.slice/ollama.service". */
void place_of_cgroup(const char *cgroup_path, struct place *ret);
const char *place_kind_name(enum place_kind kind);
