/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Everything that can go wrong in the world of the trial, in one table: its name, how often it does where it can, and how
 * often it has to have happened in a whole run, or the run proves nothing.
 */
#include <stdbool.h>
#include <stdint.h>
#include "trial/random.h"

/*        name                    one in, bound */
#define FAULTS(F)                                                                                                      \
        F(READING_LATE, 30, 100)         /* arrives long after it was taken */                                         \
        F(READING_UNSETTLED, 25, 100)    /* total, list, total do not agree */                                         \
        F(READING_ROW_UNKNOWN, 200, 100) /* a process without a figure */                                              \
        F(READING_ROW_MISSING, 300, 100) /* a process that lives and is not listed */                                  \
        F(READING_TOTAL_UNKNOWN, 200, 100)                                                                             \
        F(READING_NO_PROCESSES, 300, 100) /* no figures per process at all */                                          \
        F(READING_LOST, 60, 100)          /* never arrives */                                                          \
        F(READING_GHOST, 400, 100)        /* a pid that /proc does not have */                                         \
        F(MEMORY_LAGS, 2, 100)            /* the card shows freed memory for some 100 ms more */                       \
        F(EXIT_SEEN_LATE, 12, 100)                                                                                     \
        F(PID_REUSED, 6, 100)                                                                                          \
        F(EYES_SILENT, 1, 100)                                                                                         \
        F(DEVICE_LOST, 1, 100)                                                                                         \
        F(OUTCOME_LATE, 12, 100)                                                                                       \
        F(OUTCOME_LOST, 40, 100) /* the hands ended in the middle, the order was not begun */                          \
        F(HANDS_AWAY, 1, 100)                                                                                          \
        F(ORDER_RATE, 40, 100)                                                                                         \
        F(UNKILLABLE, 12, 100)                                                                                         \
        F(LOCK_TIMEOUT, 10, 100)                                                                                       \
        F(CHECKPOINT_SLOW, 12, 100) /* does not return in time */                                                      \
        F(CHECKPOINT_FAILED, 40, 100)                                                                                  \
        F(CHECKPOINT_NO_MEMORY, 40, 100)                                                                               \
        F(RESTORE_FAILED, 40, 100)                                                                                     \
        F(RESTORE_NO_MEMORY, 30, 100)                                                                                  \
        F(STOP_BLOCKED, 40, 100)                                                                                       \
        F(UNLOCK_BLOCKED, 40, 100)                                                                                     \
        F(HANDS_KILLED, 1, 100) /* helpers go on, what came of them is told by the next hands */                       \
        F(DIES_WHILE_PARKED, 20, 100)                                                                                  \
        F(COOPERATE_LIES, 6, 100)                                                                                      \
        F(COOPERATE_SLOW, 6, 100)                                                                                      \
        F(COOPERATE_SILENT, 8, 100)                                                                                    \
        F(COOPERATE_TAKES_BACK, 6, 100)                                                                                \
        F(RESTART_IGNORES_TERM, 5, 100)                                                                                \
        F(RESTART_STAYS_AWAY, 12, 100)                                                                                 \
        F(NEVER_COLLECTED, 25, 100)                                                                                    \
        F(RELEASED_TWICE, 6, 100)                                                                                      \
        F(RELEASED_BEFORE_EXIT, 8, 100)                                                                                \
        F(VANISHES, 6, 100)                                                                                            \
        F(WORKERS_LEFT, 10, 100)                                                                                       \
        F(CRASHES, 10, 100)                                                                                            \
        F(USES_TOO_MUCH, 12, 100)                                                                                      \
        F(ON_ANOTHER_CARD, 40, 100)                                                                                    \
        F(IGNORES_TERM, 4, 100)                                                                                        \
        F(NOT_RENEWED, 12, 100)                                                                                        \
        F(NOT_THE_OWNER, 1, 100)                                                                                       \
        F(CUT_BEFORE_COMMIT, 1, 100)                                                                                   \
        F(CUT_AFTER_COMMIT, 1, 100)                                                                                    \
        F(CUT_BETWEEN_ACTIONS, 1, 100)                                                                                 \
        F(POWER_LOST, 1, 100)                                                                                          \
        F(BOOKS_DAMAGED, 12, 100) /* the daemon comes back in doubt */                                                 \
        F(SUSPENDED, 1, 100)                                                                                           \
        F(CLOCK_AHEAD, 1, 100)                                                                                         \
        F(CLOCK_SET, 1, 100)         /* people's, which bookings go by */                                              \
        F(BOOKED_COMES_LATE, 4, 100) /* whoever booked is not there when it begins */                                  \
        F(NEVER_GIVEN_BACK, 3, 100)  /* room that was cleared */                                                       \
        F(HOST_MEMORY_SHORT, 1, 100)

enum fault {
#define F(name, one_in, bound) FAULT_##name,
        FAULTS(F)
#undef F
                FAULT_N
};

struct faults {
        bool off[FAULT_N]; /* a scenario that was shrunk does without them */
        bool quiet;        /* the last hours: nothing goes wrong any more */
        uint64_t count[FAULT_N];
};

/* Does it go wrong this time? Draws from @r whether it may or not, so that taking a fault out moves nothing else. */
bool fault_strikes(struct faults *f, enum fault fault, struct random *r);
const char *fault_name(enum fault fault); /* "reading-late" */
bool fault_parse(const char *name, enum fault *ret);
uint64_t fault_bound(enum fault fault);
