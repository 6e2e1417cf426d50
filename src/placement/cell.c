/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/cell.h"
#include <assert.h>
#include <errno.h>

enum cell_state {
        CELL_PART,  /* of a larger one that is whole; or cut up itself */
        CELL_FREE,  /* nobody's */
        CELL_SPARE, /* a part of what somebody owns that he does not use */
        CELL_TAKEN,
};

enum { NO_CELL = UINT32_MAX };

static uint32_t cells_on(const struct cells *cells, uint32_t level)
{
        return cells->n_gpus >> level;
}

/* From small to large: what a level needs, with the smaller ones packed into its cells. */
static int check_fit(const struct cells *cells, uint32_t n_nodes, struct error *err)
{
        uint64_t need = 0;

        for (uint32_t level = 0; level < cells->n_levels; level++) {
                need = (need + 1) / 2;
                for (uint32_t t = 0; t < cells->n_tenants; t++)
                        need += cells->tenants[t].owns[level];
        }
        if (need > n_nodes)
                return error_set(err, EINVAL, "the tenants' cells need %llu nodes of %u GPUs; there are %u",
                                 (unsigned long long) need, 1U << (cells->n_levels - 1), n_nodes);
        return 0;
}

int cells_init(struct cells *cells, uint32_t n_nodes, uint32_t n_levels, const uint32_t (*owns)[CELL_LEVELS_MAX],
               uint32_t n_tenants, struct arena *arena, struct error *err)
{
        bool enough = true;

        if (n_levels < 1 || n_levels > CELL_LEVELS_MAX)
                return error_set(err, EINVAL, "%u levels of cells; there may be 1 to %d", n_levels, CELL_LEVELS_MAX);
        if (n_nodes < 1 || n_nodes > (uint32_t) CELL_MACHINE_MAX >> (n_levels - 1))
                return error_set(err, EINVAL, "%u nodes of %u GPUs; there may be 1 to %d GPUs in all", n_nodes,
                                 1U << (n_levels - 1), CELL_MACHINE_MAX);
        if (n_tenants < 1 || n_tenants > CELL_TENANTS_MAX)
                return error_set(err, EINVAL, "%u tenants; there may be 1 to %d", n_tenants, CELL_TENANTS_MAX);
        *cells = (struct cells){ .n_levels = n_levels, .n_gpus = n_nodes << (n_levels - 1), .n_tenants = n_tenants };
        for (uint32_t level = 0; level < n_levels; level++) {
                cells->state[level] = arena_take(arena, cells_on(cells, level), sizeof(*cells->state[level]));
                enough = enough && cells->state[level];
        }
        cells->holder = arena_take(arena, cells->n_gpus, sizeof(*cells->holder));
        cells->bound_level = arena_take(arena, cells->n_gpus, sizeof(*cells->bound_level));
        cells->tenants = arena_take(arena, n_tenants, sizeof(*cells->tenants));
        if (!enough || !cells->holder || !cells->bound_level || !cells->tenants)
                return -ENOMEM;
        for (uint32_t t = 0; t < n_tenants; t++)
                memcpy(cells->tenants[t].owns, owns[t], n_levels * sizeof(owns[t][0]));
        memset(cells->state[n_levels - 1], CELL_FREE, n_nodes);
        cells->free[n_levels - 1] = n_nodes;
        return check_fit(cells, n_nodes, err);
}

static uint32_t find_free(const struct cells *cells, uint32_t level)
{
        for (uint32_t i = 0; cells->free[level] > 0 && i < cells_on(cells, level); i++)
                if (cells->state[level][i] == CELL_FREE)
                        return i;
        return NO_CELL;
}

static uint32_t find_spare(const struct cells *cells, uint32_t tenant, uint32_t level)
{
        for (uint32_t i = 0; cells->tenants[tenant].parts[level] > 0 && i < cells_on(cells, level); i++)
                if (cells->state[level][i] == CELL_SPARE && cells->holder[i << level] == tenant)
                        return i;
        return NO_CELL;
}

/* Halves @i of level @from down to @to; the other halves become @state. Returns the one that is left. */
static uint32_t halve(struct cells *cells, uint32_t i, uint32_t from, uint32_t to, enum cell_state state,
                      uint32_t *count)
{
        for (; from > to; from--) {
                cells->state[from][i] = CELL_PART;
                i *= 2;
                cells->state[from - 1][i + 1] = (uint8_t) state;
                count[from - 1]++;
        }
        return i;
}

/* A whole cell of the machine: of that level, or the smallest larger one halved. */
static uint32_t bind(struct cells *cells, uint32_t tenant, uint32_t level)
{
        uint32_t from = level, i = NO_CELL;

        while (from < cells->n_levels && (i = find_free(cells, from)) == NO_CELL)
                from++;
        if (i == NO_CELL)
                return NO_CELL;
        cells->free[from]--;
        i = halve(cells, i, from, level, CELL_FREE, cells->free);
        for (uint32_t gpu = i << level; gpu < (i + 1) << level; gpu++) {
                cells->holder[gpu] = (uint16_t) tenant;
                cells->bound_level[gpu] = (uint8_t) level;
        }
        cells->tenants[tenant].bound[level]++;
        return i;
}

bool cells_take(struct cells *cells, uint32_t tenant, uint32_t level, struct cell *cell)
{
        struct cell_tenant *of = &cells->tenants[tenant];

        assert(tenant < cells->n_tenants && level < cells->n_levels);
        for (uint32_t from = level; from < cells->n_levels; from++) {
                uint32_t i = find_spare(cells, tenant, from);
                if (i != NO_CELL)
                        of->parts[from]--;
                else if (of->bound[from] < of->owns[from])
                        i = bind(cells, tenant, from);
                if (i == NO_CELL)
                        continue;
                i = halve(cells, i, from, level, CELL_SPARE, of->parts);
                cells->state[level][i] = CELL_TAKEN;
                *cell = (struct cell){ .level = level, .first = i << level };
                return true;
        }
        return false;
}

/* With its other half, while that is @state too, up to level @to. Returns the level that it came to. */
static uint32_t merge(struct cells *cells, uint32_t *i, uint32_t level, uint32_t to, enum cell_state state,
                      uint32_t *count)
{
        while (level < to && cells->state[level][*i ^ 1] == state) {
                cells->state[level][*i ^ 1] = CELL_PART;
                cells->state[level][*i] = CELL_PART;
                count[level]--;
                *i /= 2;
                level++;
        }
        return level;
}

void cells_give(struct cells *cells, uint32_t tenant, const struct cell *cell)
{
        struct cell_tenant *of = &cells->tenants[tenant];
        uint32_t i = cell->first >> cell->level, bound = cells->bound_level[cell->first];

        assert(cells->state[cell->level][i] == CELL_TAKEN && cells->holder[cell->first] == tenant);
        uint32_t level = merge(cells, &i, cell->level, bound, CELL_SPARE, of->parts);
        if (level < bound) {
                cells->state[level][i] = CELL_SPARE;
                of->parts[level]++;
                return;
        }
        of->bound[bound]--;
        level = merge(cells, &i, bound, cells->n_levels - 1, CELL_FREE, cells->free);
        cells->state[level][i] = CELL_FREE;
        cells->free[level]++;
}

int cells_check(const struct cells *cells, struct error *err)
{
        uint64_t gpus = 0;

        for (uint32_t level = 0; level < cells->n_levels; level++) {
                uint32_t free = 0;
                for (uint32_t i = 0; i < cells_on(cells, level); i++) {
                        uint8_t state = cells->state[level][i];
                        gpus += state == CELL_PART ? 0 : UINT64_C(1) << level;
                        free += state == CELL_FREE;
                        if (state == CELL_FREE && level + 1 < cells->n_levels &&
                            cells->state[level][i ^ 1] == CELL_FREE)
                                return error_set(err, EBADE, "level %u: halves %u and %u are both free, not one", level,
                                                 i, i ^ 1);
                }
                if (free != cells->free[level])
                        return error_set(err, EBADE, "level %u: %u cells are free, %u counted", level, free,
                                         cells->free[level]);
                for (uint32_t t = 0; t < cells->n_tenants; t++)
                        if (cells->tenants[t].bound[level] > cells->tenants[t].owns[level])
                                return error_set(err, EBADE, "tenant %u uses %u cells of level %u and owns %u", t,
                                                 cells->tenants[t].bound[level], level, cells->tenants[t].owns[level]);
        }
        if (gpus != cells->n_gpus)
                return error_set(err, EBADE, "the cells come to %llu GPUs of %u", (unsigned long long) gpus,
                                 cells->n_gpus);
        return 0;
}
