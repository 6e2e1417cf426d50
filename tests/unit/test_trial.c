/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge is judged: the same scenario gives the same bytes, a scenario survives being written down, and for each thing that
 * must never happen (design 5) a world in which it did is called broken.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"
#include "trial/trial.h"

static struct trial *t;
static struct script *script;

static int begin(void **state)
{
        (void) state;
        t = calloc(1, sizeof(*t));
        script = calloc(1, sizeof(*script));
        assert_non_null(t);
        assert_non_null(script);
        trial_alloc(t);
        return 0;
}

static int end(void **state)
{
        (void) state;
        trial_free(t);
        free(t);
        free(script);
        return 0;
}

/* One card of 16 GiB, on which L1 runs with 12 GiB of them and L2 waits for 8; a stranger with 1 GiB. */
static void look_into_a_life(uint64_t minutes)
{
        static const char words[] =
                "lessor-trial-scenario 1\n"
                "seed 1 hours 24 hurried 0\n"
                "card total=17179869184 driver=0\n"
                "at 1000 stranger bytes=1073741824 life=80000000\n"
                "at 60000 ask n=1 uid=1001 priority=3 bytes=12884901888 flags=4 run=40000000 use=500 processes=1\n"
                "at 120000 ask n=2 uid=1002 priority=3 bytes=8589934592 flags=4 run=40000000 use=500 processes=1\n";
        struct error err = { 0 };
        char copy[sizeof(words)];

        memcpy(copy, words, sizeof(words));
        FILE *from = fmemopen(copy, sizeof(words) - 1, "r");
        assert_non_null(from);
        assert_int_equal(script_read(script, from, &err), 0);
        (void) fclose(from);
        for (unsigned f = 0; f < FAULT_N; f++)
                script->off[f] = true;
        t->stop_ms = MINUTES(minutes);
        assert_true(trial_play(t, script, false));
        t->stop_ms = 0;
        assert_int_equal(t->books[1].life, LIFE_ACTIVE);
        assert_int_equal(t->books[2].life, LIFE_WAITS);
        t->fresh_before[0] = true;
}

static struct lease *lease_1(void)
{
        return world_lease_by_id(t->world, 1);
}

/* What the check says of it, or "". */
#define said_by(check) (sigsetjmp(t->out_of_here, 1) == 0 ? ((check), "") : (t->broken = false, (const char *) t->what))
#define assert_says(check, letters)                                                                                    \
        do {                                                                                                           \
                const char *said = said_by(check);                                                                     \
                if (*(letters) == '\0' ? *said != '\0' : strncmp(said, letters, strlen(letters)) != 0)                 \
                        fail_msg("\"%s\" where \"%s\" was expected", said, letters);                                   \
        } while (0)

static void same_seed_gives_the_same_bytes(void **state)
{
        uint64_t digests[2][2];

        (void) state;
        for (uint64_t seed = 0; seed < 2; seed++)
                for (int again = 0; again < 2; again++) {
                        script_make(script, 7 + seed, 4);
                        t->stop_ms = HOURS(3);
                        (void) trial_play(t, script, false);
                        digests[seed][again] = t->digest;
                        assert_true(t->count.grants > 10);
                        memset(t->out, 0xa5, sizeof(*t->out)); /* what was there before is nobody's business */
                }
        t->stop_ms = 0;
        assert_int_equal(digests[0][0], digests[0][1]);
        assert_int_equal(digests[1][0], digests[1][1]);
        assert_int_not_equal(digests[0][0], digests[1][0]);
}

static void scenario_is_the_same_after_it_was_written_down(void **state)
{
        struct script *read = calloc(1, sizeof(*read));
        struct error err = { 0 };
        char *text = NULL;
        size_t n = 0;

        (void) state;
        script_make(script, 3, 24);
        script->off[FAULT_PID_REUSED] = true;
        FILE *file = open_memstream(&text, &n);
        script_print(script, file);
        (void) fclose(file);
        file = fmemopen(text, n, "r");
        assert_int_equal(script_read(read, file, &err), 0);
        (void) fclose(file);
        assert_memory_equal(read, script, sizeof(*script));
        free(text);
        free(read);
}

static void scenario_with_a_line_that_is_none_is_refused_with_its_number(void **state)
{
        static char text[] = "seed 1 hours 24 hurried 0\nat 5 fly n=1\n";
        struct error err = { 0 };

        (void) state;
        FILE *file = fmemopen(text, sizeof(text) - 1, "r");
        assert_true(script_read(script, file, &err) < 0);
        (void) fclose(file);
        assert_string_equal(err.msg, "line 2: \"at 5 fly n=1\" is no line of a scenario");
}

static void quiet_life_is_called_good(void **state)
{
        (void) state;
        look_into_a_life(30);
        assert_says((check_step(t), check_time(t)), "");
}

static void promises_beyond_the_device_are_I1(void **state)
{
        (void) state;
        look_into_a_life(30);
        t->world->holders[lease_1()->holder.index].reserved_bytes *= 2;
        t->granted[0] = true;
        assert_says(check_step(t), "I1:");
}

static void grant_on_an_old_reading_is_I2(void **state)
{
        struct action a = { .kind = ACTION_GRANTED, .lease_id = 2, .bytes = MIB(100), .why.rule = RULE_FITS };

        (void) state;
        look_into_a_life(30);
        t->cards[0].said.taken_ms = t->now_ms - 5000;
        t->books[2].devices = 1;
        assert_says(check_grant(t, &a), "I2:");
}

static void grant_into_what_is_promised_is_I2(void **state)
{
        (void) state;
        look_into_a_life(30);
        t->books[2].life = LIFE_GRANTED;
        t->books[2].devices = 1;
        world_lease_by_id(t->world, 2)->state = LEASE_GRANTED;
        t->granted[0] = true;
        assert_says(check_step(t), "I2:");
}

static void honest_lease_without_memory_is_I2(void **state)
{
        uint32_t root;

        (void) state;
        look_into_a_life(30);
        root = t->clients[0].root;
        assert_says(check_memory(t, root, MIB(100)), ""); /* a stranger is there */
        for (uint32_t p = 0; p < t->n_procs; p++)
                if (t->procs[p].client == NOBODY)
                        t->procs[p].used = false;
        assert_says(check_memory(t, root, MIB(100)), "I2:");
}

static struct action order_for(uint64_t lease_id, uint32_t p, int signal)
{
        return (struct action){ .kind = ACTION_HAND,
                                .hand = HAND_SIGNAL,
                                .signal = (uint8_t) signal,
                                .lease_id = lease_id,
                                .process = t->procs[p].identity };
}

static void signal_to_somebody_else_is_I3(void **state)
{
        struct action a;
        uint32_t stranger = 0;

        (void) state;
        look_into_a_life(30);
        while (t->procs[stranger].client != NOBODY)
                stranger++;
        a = order_for(1, stranger, SIGTERM);
        assert_says(check_order(t, &a), "I3:");
        a = order_for(1, t->clients[0].root, SIGTERM); /* its own, and nobody named it */
        assert_says(check_order(t, &a), "I3:");
        t->books[1].kill_left = true;
        assert_says(check_order(t, &a), "");
}

static void kill_that_was_never_named_is_I4(void **state)
{
        struct action a;

        (void) state;
        look_into_a_life(30);
        t->books[1].parked = PARKED_ASKED;
        t->books[1].way = WAY_OUT_KILL;
        a = order_for(1, t->clients[0].root, SIGKILL);
        assert_says(check_order(t, &a), "I4:");
}

static void stuck_for_what_could_not_be_tried_is_I4(void **state)
{
        struct input input = { .kind = INPUT_OUTCOME, .outcome = { .lease_id = 1, .outcome = OUTCOME_BLOCKED } };
        struct action a = { .kind = ACTION_STUCK, .lease_id = 1 };

        (void) state;
        look_into_a_life(30);
        t->books[1].asked_ms = t->now_ms;
        t->input = input;
        assert_says(check_stuck(t, &a), "I4:");
}

static void ledger_that_nobody_fills_is_I5(void **state)
{
        (void) state;
        look_into_a_life(30);
        t->world->ledger_charged_bytes = MIB(1);
        assert_says(check_step(t), "I5:");
        lease_1()->park.charged_bytes = MIB(1); /* its leases agree, the host does not */
        assert_says(check_step(t), "");
        assert_says(check_time(t), "I5:");
}

static void other_books_after_a_restart_are_I6(void **state)
{
        (void) state;
        look_into_a_life(30);
        journal_keep_books(t);
        t->world->now_ms += 1000; /* time alone is no difference */
        assert_says(check_restored(t), "");
        lease_1()->name[NAME_MAX_BYTES - 1] = 'x'; /* nor is what lies behind the end of a text */
        assert_says(check_restored(t), "");
        lease_1()->renewed_ms++;
        assert_says(check_restored(t), "I6:");
        lease_1()->renewed_ms--;
        t->books[2].life = LIFE_ENDED;
        assert_says(check_step(t), "I8:");
}

static void figure_that_got_lost_is_I7(void **state)
{
        (void) state;
        look_into_a_life(30);
        t->world->devices[0].used_bytes /= 2;
        assert_says(check_step(t), "I7:");
}

static void second_end_of_a_lease_is_I8(void **state)
{
        struct action a = { .kind = ACTION_ENDED, .lease_id = 1 };

        (void) state;
        look_into_a_life(30);
        t->books[1].life = LIFE_ENDED;
        a.id = t->next_action_id;
        assert_says(book_action(t, &a), "I8:");
}

static void one_is_parked_and_fits(void)
{
        look_into_a_life(30);
        t->books[1].parked = PARKED_OUT;
        lease_1()->state = LEASE_PARKED;
        world_each_holder_of (t->world, i, HOLDER_CLAIM)
                world_holder_drop(t->world, &t->world->holders[i]);
        world_entry_drop(t->world, world_entry_get(t->world, world_lease_by_id(t->world, 2)->entry));
        t->procs[t->clients[0].root].bytes = 0;
}

static void parked_lease_that_fits_and_stays_is_I9(void **state)
{
        (void) state;
        one_is_parked_and_fits();
        t->cards[0].said.taken_ms = t->now_ms;
        assert_says(check_time(t), "");
        t->now_ms += 4000;
        assert_says(check_time(t), "");
        t->now_ms += 2000;
        assert_says(check_time(t), "I9:");
}

/* Nobody can know of it before a look shows it; but that none does for minutes is nobody's bad luck. */
static void parked_lease_that_nobody_looks_for_is_I9_later(void **state)
{
        (void) state;
        one_is_parked_and_fits();
        assert_says(check_time(t), "");
        t->now_ms += 170000;
        assert_says(check_time(t), "");
        t->cards[0].said.settled = false;
        t->cards[0].said.taken_ms = t->now_ms;
        t->now_ms += 11000;
        assert_says(check_time(t), "I9:");
}

static void claim_of_nobody_is_I10(void **state)
{
        struct holder *claim;

        (void) state;
        look_into_a_life(30);
        claim = world_holder_new(t->world, HOLDER_CLAIM, 0);
        claim->claim_kind = CLAIM_PLAN;
        world_holder_written(t->world, claim);
        assert_says(check_step(t), "I10:");
}

static void tree_that_works_in_part_is_I10(void **state)
{
        (void) state;
        look_into_a_life(30);
        t->procs[t->clients[0].root].locked = true;
        assert_says(check_time(t), "I10:");
}

static void later_one_that_begins_before_is_I11(void **state)
{
        struct action a = { .kind = ACTION_GRANTED, .lease_id = 3, .bytes = MIB(10000), .why.rule = RULE_FITS };

        (void) state;
        look_into_a_life(50);
        t->books[3] =
                (struct book){ .life = LIFE_WAITS, .priority = 3, .devices = 1, .arrived_ms = t->now_ms - MINUTES(10) };
        t->cards[0].said.taken_ms = t->now_ms;
        a.why.rule = RULE_ENDS_IN_TIME; /* backfill may */
        assert_says(check_grant(t, &a), "");
        a.why.rule = RULE_FITS;
        assert_says(check_grant(t, &a), "I11:");
}

static void parked_process_that_nobody_knows_is_I12(void **state)
{
        struct proc *p;

        (void) state;
        look_into_a_life(30);
        p = &t->procs[t->clients[0].root];
        p->away = true;
        assert_says(check_time(t), "I12:");
}

static void work_that_equals_stop_is_found(void **state)
{
        struct action a = { .kind = ACTION_ASKED, .lease_id = 1, .why.head_lease_id = 2 };

        (void) state;
        look_into_a_life(30);
        lease_1()->park.cause = PARK_FOR_PLAN;
        assert_says(check_asked(t, &a), "margin:");
        world_lease_by_id(t->world, 2)->priority = 2;
        assert_says(check_asked(t, &a), "");
        t->world->holders[lease_1()->holder.index].pinned = true;
        assert_says(check_asked(t, &a), "L1 is pinned");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(same_seed_gives_the_same_bytes),
                cmocka_unit_test(scenario_is_the_same_after_it_was_written_down),
                cmocka_unit_test(scenario_with_a_line_that_is_none_is_refused_with_its_number),
                cmocka_unit_test(quiet_life_is_called_good),
                cmocka_unit_test(promises_beyond_the_device_are_I1),
                cmocka_unit_test(grant_on_an_old_reading_is_I2),
                cmocka_unit_test(grant_into_what_is_promised_is_I2),
                cmocka_unit_test(honest_lease_without_memory_is_I2),
                cmocka_unit_test(signal_to_somebody_else_is_I3),
                cmocka_unit_test(kill_that_was_never_named_is_I4),
                cmocka_unit_test(stuck_for_what_could_not_be_tried_is_I4),
                cmocka_unit_test(ledger_that_nobody_fills_is_I5),
                cmocka_unit_test(other_books_after_a_restart_are_I6),
                cmocka_unit_test(figure_that_got_lost_is_I7),
                cmocka_unit_test(second_end_of_a_lease_is_I8),
                cmocka_unit_test(parked_lease_that_fits_and_stays_is_I9),
                cmocka_unit_test(parked_lease_that_nobody_looks_for_is_I9_later),
                cmocka_unit_test(claim_of_nobody_is_I10),
                cmocka_unit_test(tree_that_works_in_part_is_I10),
                cmocka_unit_test(later_one_that_begins_before_is_I11),
                cmocka_unit_test(parked_process_that_nobody_knows_is_I12),
                cmocka_unit_test(work_that_equals_stop_is_found),
        };
        return cmocka_run_group_tests(tests, begin, end);
}
