/* SPDX-License-Identifier: Apache-2.0 */
#include "model/habit.h"
#include <string.h>
#include "model/world.h"

struct habit *world_habit_find(struct world *world, uint32_t uid, const char *consumer)
{
        if (consumer[0] == '\0')
                return NULL;
        for (uint32_t i = 0; i < world->n_habits; i++)
                if (world->habits[i].uid == uid && strcmp(world->habits[i].consumer, consumer) == 0)
                        return &world->habits[i];
        return NULL;
}

/* Where a new one goes: an empty row, or whose place it takes. A user who has many already takes one of his own, so that
 * nobody makes all others' forgotten by running things under ever new names. */
static struct habit *place_for(struct world *world, uint32_t uid)
{
        struct habit *oldest = NULL, *own_oldest = NULL;
        uint32_t n_own = 0;

        for (uint32_t i = 0; i < world->n_habits; i++) {
                struct habit *habit = &world->habits[i];
                if (!oldest || habit->last_ms < oldest->last_ms)
                        oldest = habit;
                if (habit->uid != uid)
                        continue;
                n_own++;
                if (!own_oldest || habit->last_ms < own_oldest->last_ms)
                        own_oldest = habit;
        }
        if (n_own >= HABITS_PER_USER_MAX)
                return own_oldest;
        return world->n_habits < HABITS_MAX ? &world->habits[world->n_habits++] : oldest;
}

struct habit *world_habit(struct world *world, uint32_t uid, const char *consumer)
{
        struct habit *habit = world_habit_find(world, uid, consumer);

        if (habit || consumer[0] == '\0')
                return habit;
        habit = place_for(world, uid);
        memset(habit, 0, sizeof(*habit));
        habit->uid = uid;
        habit->last_ms = world->now_ms;
        memcpy(habit->consumer, consumer, strnlen(consumer, sizeof(habit->consumer) - 1));
        return habit;
}
