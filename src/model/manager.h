/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who stops and starts work that was not started by us: a service manager its units, a container engine its containers
 * (design 4.5). Such work is never signalled and never cloned: its manager is asked, and says what came of it.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/identity.h"

/* A name with its NUL. systemd allows names of 255 bytes; a longer one than this has no manager here. */
enum { MANAGER_NAME_MAX = 128 };

enum manager_kind {
        MANAGER_NONE,
        MANAGER_USER_UNIT,   /* a unit of a person's own service manager */
        MANAGER_SYSTEM_UNIT, /* a unit of the machine's */
        MANAGER_CONTAINER,   /* by its id, at the engine that is configured */
        MANAGER_KIND_N,
};

struct manager {
        uint8_t kind;                /* enum manager_kind */
        char name[MANAGER_NAME_MAX]; /* of the unit, or the id of the container */
};

enum manager_verb {
        MANAGER_VERB_NONE,
        MANAGER_STOP, /* stopping what does not run is done at once, and so is starting what runs: an order may be repeated */
        MANAGER_START,
        MANAGER_VERB_N,
};

/* What came of an order to a manager, or what it said unasked (order_id 0): that it runs, as whom. */
struct manager_outcome {
        uint64_t order_id; /* the action's id */
        uint64_t lease_id;
        uint8_t outcome;      /* enum outcome */
        uint8_t why;          /* enum hand_why */
        struct identity root; /* it runs, and this is its first process; none = it does not, or nobody knows */
        uint64_t cgroup_id;   /* where that one is; 0 = unknown */
};

const char *manager_kind_name(enum manager_kind kind); /* "user-unit" … */
const char *manager_kind_text(enum manager_kind kind); /* for people: "unit", "container" */
const char *manager_verb_name(enum manager_verb verb);
/* What a unit may be called: *.service, of the letters that systemd allows. Pure over text of strangers. */
bool manager_unit_is_valid(const char *name);
/* 64 hexadecimal digits. */
bool manager_container_is_valid(const char *id);
