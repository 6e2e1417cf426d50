/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/told.h"
#include "model/world.h"

static bool row_of(const struct world *world, uint64_t lease_id, uint32_t *ret)
{
        for (uint32_t i = 0; lease_id != 0 && i < world->n_leases; i++) {
                if (world->lease_ids[i] == lease_id) {
                        *ret = i;
                        return true;
                }
        }
        return false;
}

void told_put(struct told *t, const struct world *world, uint64_t lease_id, const struct api_told *what)
{
        uint32_t row;

        if (!row_of(world, lease_id, &row))
                return;
        t->lease_id[row] = lease_id;
        t->what[row] = *what;
}

void told_action(struct told *t, const struct world *world, const struct action *action)
{
        struct api_told what = { .rev = action->id, .kind = action->kind, .why = action->why };
        uint32_t row;

        if (action->kind == ACTION_READ || !row_of(world, action->lease_id, &row))
                return;
        /* A call that was refused or a heartbeat changes nothing: the lease's story stays what it was. */
        if (action->kind == ACTION_REFUSED || action->kind == ACTION_RENEWED) {
                if (t->lease_id[row] == action->lease_id)
                        return;
        }
        /* "Collected" tells less than why it was granted, and how long it is idle stands beside it: keep the reason, move the
         * revision on. */
        if ((action->kind == ACTION_ACTIVE || action->kind == ACTION_IDLE) && t->lease_id[row] == action->lease_id)
                what.why = t->what[row].why;
        t->lease_id[row] = action->lease_id;
        t->what[row] = what;
}

bool told_get(const struct told *t, const struct world *world, uint64_t lease_id, struct api_told *ret)
{
        uint32_t row;

        if (!row_of(world, lease_id, &row) || t->lease_id[row] != lease_id)
                return false;
        *ret = t->what[row];
        return true;
}
