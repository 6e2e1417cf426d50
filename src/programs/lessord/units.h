/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Units, stopped and started through systemd by D-Bus: the state before, StopUnit or StartUnit ("replace"), the end of its job
 * (JobRemoved), the state after. What is said of an order is what the unit's state says, not what the call answered; each
 * order is answered within UNITS_DEADLINE_MS, and blocked is said only as long as nothing was asked for.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/hand.h"
#include "model/input.h"
#include "model/manager.h"
#include "programs/lessord/bus.h"

enum { UNITS_MAX = 32, UNITS_DEADLINE_MS = 120000 };

struct units_host {
        void *ctx;
        void (*submit)(void *ctx, const struct manager_outcome *outcome);
        /* Who pid is, and where, if it runs in the cgroup of that unit. */
        bool (*identify)(void *ctx, uint32_t pid, const char *unit, struct manager_outcome *ret);
        /* A unit was started or stopped by somebody: the lease that waits for such news, 0 = none. */
        uint64_t (*lease_of)(void *ctx, const char *unit);
};

struct unit_order;

struct units {
        struct bus *bus;
        struct units_host host;
        struct unit_order *orders[UNITS_MAX];
        sd_bus_slot *jobs; /* JobRemoved; NULL: not listened to */
        char peer[32];     /* who answered last: the bus routes answers, but anybody may send a signal */
};

void units_init(struct units *units, struct bus *bus, const struct units_host *host);
void units_order(struct units *units, const char *name, enum manager_verb verb, uint64_t order_id, uint64_t lease_id);
/* The bus came, or went: orders that are out are answered. */
void units_bus_changed(struct units *units, bool up);
/* Closes its handles; the loop has to run once more. */
void units_stop(struct units *units);
