/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Containers, stopped and started through their engine's socket: what it says of one before, POST stop or start, what it says
 * after. As with units: what is said of an order is how the container stands, and blocked only as long as nothing was asked.
 */
#include <stdint.h>
#include <uv.h>
#include "model/hand.h"
#include "model/manager.h"

enum { CONTAINERS_MAX = 32, CONTAINER_LOOK_MS = 5000, CONTAINER_BEYOND_GRACE_MS = 60000, CONTAINER_START_MS = 60000 };

struct containers_host {
        void *ctx;
        void (*submit)(void *ctx, const struct manager_outcome *outcome);
        /* Who pid is, and where, if it runs in the cgroup of that container. */
        bool (*identify)(void *ctx, uint32_t pid, const char *id, struct manager_outcome *ret);
};

struct container_order;

struct containers {
        uv_loop_t *loop;
        struct containers_host host;
        struct container_order *orders[CONTAINERS_MAX];
};

void containers_init(struct containers *containers, uv_loop_t *loop, const struct containers_host *host);
/* @socket: of the engine; "" = none is configured. @grace_ms: between its stop signal and the kill. */
void containers_order(struct containers *containers, const char *socket, const char *id, enum manager_verb verb,
                      uint64_t grace_ms, uint64_t order_id, uint64_t lease_id);
void containers_stop(struct containers *containers);
