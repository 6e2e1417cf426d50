/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who is served next where answers are expensive (security S07, S19): so many a turn of the loop, and users take turns, each
 * with his oldest. Cheap requests pass by all of it. So what a user waits for grows with the number of users who ask, never
 * with how much one of them asks. Pure over a table of slots.
 */
#include <stdbool.h>
#include <stdint.h>

enum { TURNS_SLOTS = 1024, TURNS_AT_ONCE = 4 };

struct turns {
        uint32_t n_waiting;
        uint32_t served;   /* in this turn of the loop */
        uint32_t last_uid; /* whose turn it was last */
        uint64_t next;     /* number of the next arrival */
        struct turns_slot {
                uint64_t arrival; /* 0 = nobody waits in this slot */
                uint32_t uid;
        } slots[TURNS_SLOTS];
};

/* True: at once, and counted. False: it waits in @slot. */
bool turns_enter(struct turns *t, uint32_t slot, uint32_t uid);
void turns_leave(struct turns *t, uint32_t slot);
/* A new turn of the loop. */
void turns_begin(struct turns *t);
/* The next one to serve in this turn; false: nobody waits, or it is enough for this turn. */
bool turns_next(struct turns *t, uint32_t *ret_slot);
