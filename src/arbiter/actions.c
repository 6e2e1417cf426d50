/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>
#include "arbiter/actions.h"

enum { SOON_MS = 3 };
enum { ORDER_AGAIN_MS = 500 }; /* a look that was not answered for so long is ordered again */

bool actions_have_room(struct actions *out, uint32_t n)
{
        if (out->n + n <= ACTIONS_MAX)
                return true;
        out->more = true;
        return false;
}

struct action *actions_add(struct world *world, struct actions *out, enum action_kind kind)
{
        assert(out->n < ACTIONS_MAX);

        struct action *action = &out->items[out->n++];
        memset(action, 0, sizeof(*action));
        action->kind = (uint8_t) kind;
        action->id = world->next_action_id++;
        action->device = NO_DEVICE;
        return action;
}

struct action *actions_add_lease(struct world *world, struct actions *out, enum action_kind kind,
                                 const struct lease *lease, const struct reason *why)
{
        struct action *action = actions_add(world, out, kind);

        action->lease_id = lease->id;
        action->uid = lease->uid;
        action->priority = lease->priority;
        action->bytes = lease->bytes;
        if (!ref_is_none(lease->holder))
                action->device = lease->device;
        action->why = *why;
        return action;
}

static void read_after(struct world *world, struct actions *out, uint32_t device, uint64_t wait_ms)
{
        struct device *dev = &world->devices[device];

        if (dev->read_asked_ms != 0 && world->now_ms - dev->read_asked_ms < ORDER_AGAIN_MS)
                return;
        if (!actions_have_room(out, 1))
                return;

        dev->read_asked_ms = world->now_ms != 0 ? world->now_ms : 1;
        struct action *a = actions_add(world, out, ACTION_READ);
        a->device = device;
        a->wait_ms = wait_ms;
}

void actions_read(struct world *world, struct actions *out, uint32_t device)
{
        read_after(world, out, device, 0);
}

void actions_read_soon(struct world *world, struct actions *out, uint32_t device)
{
        read_after(world, out, device, SOON_MS);
}

void actions_read_of(struct world *world, struct actions *out, const struct lease *lease)
{
        for (uint32_t i = 0; i < lease_n_parts(lease); i++)
                actions_read(world, out, lease_part(lease, i).device);
}

void actions_read_soon_of(struct world *world, struct actions *out, const struct lease *lease)
{
        for (uint32_t i = 0; i < lease_n_parts(lease); i++)
                actions_read_soon(world, out, lease_part(lease, i).device);
}
