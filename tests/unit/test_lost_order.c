/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/lost_order.h"
#include "cm.h"

static int rows_failed;

enum { NO_RECORD = RECORD_STEP_N };

/* F03: hands or brain ended in the middle of a step. What the record says is what came of it. */
static void F03_lost_order_is_what_its_record_says(void **state)
{
        static const struct {
                const char *name;
                enum hand_verb verb;
                int at; /* enum record_step */
                enum outcome outcome;
                enum hand_why why;
        } rows[] = {
                { "lock, it is locked", HAND_LOCK, RECORD_LOCKED, OUTCOME_DONE, HAND_WHY_NONE },
                { "lock, nothing was written", HAND_LOCK, NO_RECORD, OUTCOME_BLOCKED, HAND_WHY_AWAY },
                { "lock, restored once, long ago", HAND_LOCK, RECORD_RESTORED, OUTCOME_BLOCKED, HAND_WHY_AWAY },
                { "lock, in the middle: it may be", HAND_LOCK, RECORD_LOCKING, OUTCOME_DONE, HAND_WHY_NONE },
                { "hold, it is held", HAND_HOLD, RECORD_HELD, OUTCOME_DONE, HAND_WHY_NONE },
                { "hold, in the middle: it may be", HAND_HOLD, RECORD_LOCKING, OUTCOME_DONE, HAND_WHY_NONE },
                { "checkpoint, done", HAND_CHECKPOINT, RECORD_CHECKPOINTED, OUTCOME_DONE, HAND_WHY_NONE },
                { "checkpoint, and stopped", HAND_CHECKPOINT, RECORD_STOPPED, OUTCOME_DONE, HAND_WHY_NONE },
                { "checkpoint, not begun", HAND_CHECKPOINT, RECORD_LOCKED, OUTCOME_BLOCKED, HAND_WHY_AWAY },
                { "checkpoint, in the middle", HAND_CHECKPOINT, RECORD_CHECKPOINTING, OUTCOME_FAILED, HAND_WHY_LOST },
                { "checkpoint, failed", HAND_CHECKPOINT, RECORD_FAILED, OUTCOME_FAILED, HAND_WHY_DRIVER },
                { "checkpoint, it was let go", HAND_CHECKPOINT, NO_RECORD, OUTCOME_BLOCKED, HAND_WHY_STATE },
                { "stop, done", HAND_STOP, RECORD_STOPPED, OUTCOME_DONE, HAND_WHY_NONE },
                { "stop, not begun", HAND_STOP, RECORD_CHECKPOINTED, OUTCOME_BLOCKED, HAND_WHY_AWAY },
                { "restore, done", HAND_RESTORE, RECORD_LOCKED, OUTCOME_DONE, HAND_WHY_NONE },
                { "restore, somebody let it go too", HAND_RESTORE, NO_RECORD, OUTCOME_DONE, HAND_WHY_NONE },
                { "restore, not begun", HAND_RESTORE, RECORD_STOPPED, OUTCOME_BLOCKED, HAND_WHY_AWAY },
                { "restore, not begun, no stop", HAND_RESTORE, RECORD_CHECKPOINTED, OUTCOME_BLOCKED, HAND_WHY_AWAY },
                { "restore, in the middle", HAND_RESTORE, RECORD_RESTORING, OUTCOME_FAILED, HAND_WHY_LOST },
                { "restore, failed", HAND_RESTORE, RECORD_FAILED, OUTCOME_FAILED, HAND_WHY_DRIVER },
                { "unlock, done", HAND_UNLOCK, NO_RECORD, OUTCOME_DONE, HAND_WHY_NONE },
                { "unlock, a note is left", HAND_UNLOCK, RECORD_RESTORED, OUTCOME_DONE, HAND_WHY_NONE },
                { "unlock, not begun", HAND_UNLOCK, RECORD_LOCKED, OUTCOME_BLOCKED, HAND_WHY_AWAY },
                { "unlock, held in place", HAND_UNLOCK, RECORD_HELD, OUTCOME_BLOCKED, HAND_WHY_AWAY },
                { "unlock, in the middle", HAND_UNLOCK, RECORD_UNLOCKING, OUTCOME_FAILED, HAND_WHY_LOST },
                { "unlock, it is parked", HAND_UNLOCK, RECORD_STOPPED, OUTCOME_BLOCKED, HAND_WHY_STATE },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct record record = { .step = (enum record_step) rows[i].at, .host_bytes = 4096 };
                struct hand_outcome o = { .host_bytes = 1 };

                lost_order_judge(rows[i].verb, rows[i].at == NO_RECORD ? NULL : &record, &o);
                row_check(rows[i].name, o.outcome == rows[i].outcome && o.why == rows[i].why);
                bool charged = rows[i].verb == HAND_CHECKPOINT && rows[i].outcome == OUTCOME_DONE;
                row_check(rows[i].name, o.host_bytes == (charged ? 4096 : 0));
        }
        rows_end();
}

static void every_step_of_a_process_names_the_order_it_waits_for(void **state)
{
        (void) state;
        for (unsigned step = 0; step < MEMBER_STEP_N; step++)
                assert_true((lost_order_verb((enum member_step) step) != HAND_NONE) == member_is_busy(step));
        for (unsigned at = 0; at < RECORD_STEP_N; at++) {
                enum member_step step = lost_order_member((enum record_step) at);
                assert_true(!record_step_is_parked((enum record_step) at) || member_is_away(step));
                assert_true(!record_step_is_on_its_way((enum record_step) at) || member_is_busy(step));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(F03_lost_order_is_what_its_record_says),
                cmocka_unit_test(every_step_of_a_process_names_the_order_it_waits_for),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
