/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Guaranteed shares of a machine: each tenant owns cells, of 1, 2, 4, 8 ... GPUs side by side (HiveD, OSDI 2020). Which ones is
 * decided when they are used: a free cell of that size, else the smallest larger one is halved; halves that are both free become
 * one again. If the cells of all tenants fit the machine at the start, a tenant who asks for a cell of his gets it, whatever the
 * others do with theirs. A tenant may also take parts of a larger cell of his; how he cuts that up is his own affair.
 */
#include "placement/arena.h"
#include "base/error.h"
#include <stdbool.h>

enum {
        CELL_LEVELS_MAX = 8, /* level l has 2^l GPUs; 7: 128 */
        CELL_TENANTS_MAX = 1024,
        CELL_MACHINE_MAX = 1 << 20, /* GPUs */
};

struct cell {
        uint32_t level;
        uint32_t first; /* GPU: a multiple of its size */
};

struct cell_tenant {
        uint32_t owns[CELL_LEVELS_MAX];  /* cells of each level */
        uint32_t bound[CELL_LEVELS_MAX]; /* of them in use, wholly or in part */
        uint32_t parts[CELL_LEVELS_MAX]; /* free parts of those in use */
};

struct cells {
        uint32_t n_levels, n_gpus, n_tenants;
        uint8_t *state[CELL_LEVELS_MAX]; /* of each cell of a level: enum cell_state in cell.c */
        uint32_t free[CELL_LEVELS_MAX];  /* nobody's */
        uint16_t *holder;                /* tenant of each GPU that is bound */
        uint8_t *bound_level;            /* level of the owned cell that each such GPU is in */
        struct cell_tenant *tenants;
};

/*
 * A machine of @n_nodes nodes of 2^(@n_levels - 1) GPUs; @owns[t][l]: cells of tenant t of level l. -EINVAL: they do not fit;
 * -ENOMEM, also where the arena only counts.
 */
int cells_init(struct cells *cells, uint32_t n_nodes, uint32_t n_levels, const uint32_t (*owns)[CELL_LEVELS_MAX],
               uint32_t n_tenants, struct arena *arena, struct error *err);
/* A cell of that level for a tenant, within what he owns. False: he has taken it all, or cut it up. */
bool cells_take(struct cells *cells, uint32_t tenant, uint32_t level, struct cell *cell);
/* Gives back what cells_take gave. */
void cells_give(struct cells *cells, uint32_t tenant, const struct cell *cell);
/* What must hold whatever happened. 0, or -EBADE with what does not. */
int cells_check(const struct cells *cells, struct error *err);
