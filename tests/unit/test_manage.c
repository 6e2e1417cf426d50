/* SPDX-License-Identifier: Apache-2.0 */
/* Work that a service manager or a container engine runs: stopped and started by that one, whatever it answers. */
#include <string.h>
#include "scene_park.h"

#define RESTART WAY_OUT_BIT(WAY_OUT_RESTART)
#define KILL WAY_OUT_BIT(WAY_OUT_KILL)
#define CHECKPOINT WAY_OUT_BIT(WAY_OUT_CHECKPOINT)
#define COMPUTE (ROW_USED_KNOWN | ROW_COMPUTE)

enum { CGROUP = 70, NEXT_CGROUP = 71 };

/* A unit of ALICE's with @bytes on the card, under a lease. */
static uint64_t runs(struct scene *s, uint64_t bytes, uint8_t named)
{
        uint32_t pid = scene_process_of(s, ALICE, 0, 0, CGROUP);

        scene_process_uses(s, pid, 0, bytes, COMPUTE);
        uint64_t id = scene_adopt(s, (struct ask){ .uid = ALICE,
                                                   .pid = pid,
                                                   .priority = 4,
                                                   .cgroup_id = CGROUP,
                                                   .named = named,
                                                   .manager = MANAGER_USER_UNIT });
        assert_runs(s, id);
        scene_lease(s, id)->granted_ms -= HOURS(10);
        return id;
}

static uint64_t begin(struct scene *s, uint8_t named)
{
        scene_begin(s);
        (void) scene_device(s, GiB(24));
        scene_hands(s);
        return runs(s, GiB(20), named);
}

static uint64_t ask_2(struct scene *s, uint64_t bytes)
{
        return scene_request(s, (struct ask){ .bytes = bytes, .priority = 2, .uid = BOB });
}

static const struct action *ordered(struct scene *s, uint64_t id, enum manager_verb verb)
{
        const struct action *a = scene_last(s, id, ACTION_MANAGER);

        assert_non_null(a);
        assert_string_equal(manager_verb_name((enum manager_verb) a->manage), manager_verb_name(verb));
        assert_int_equal(scene_lease(s, id)->park.order_id, a->id);
        return a;
}

static void says(struct scene *s, const struct action *order, enum outcome outcome, enum hand_why why, uint32_t pid,
                 uint64_t cgroup_id)
{
        struct input input = { .kind = INPUT_MANAGER };

        input.manager = (struct manager_outcome){ .order_id = order->id,
                                                  .lease_id = order->lease_id,
                                                  .outcome = (uint8_t) outcome,
                                                  .why = (uint8_t) why,
                                                  .cgroup_id = cgroup_id };
        if (pid != 0)
                input.manager.root = (struct identity){ .pid = pid, .start_ticks = pid };
        scene_step(s, &input);
}

/* Its process ends, and who watches it says so. */
static void ends(struct scene *s, uint64_t id)
{
        uint32_t pid = scene_owner(s, id);

        scene_owner_ended(s, id);
        scene_process_ends(s, pid);
}

static void is_stopped(struct scene *s, uint64_t id)
{
        struct action order = *ordered(s, id, MANAGER_STOP);

        ends(s, id);
        says(s, &order, OUTCOME_DONE, HAND_WHY_NONE, 0, 0);
        scene_tick_to_s(s, scene_s(s) + 1);
        assert_state(s, id, LEASE_PARKED);
}

/* As another process, in another cgroup: systemd makes a new one for each start. */
static uint32_t is_started(struct scene *s, uint64_t id)
{
        struct action order = *ordered(s, id, MANAGER_START);
        uint32_t pid = scene_process_of(s, ALICE, 0, 0, NEXT_CGROUP);

        says(s, &order, OUTCOME_DONE, HAND_WHY_NONE, pid, NEXT_CGROUP);
        return pid;
}

static void unit_is_stopped_by_its_manager_and_started_again_when_there_is_room(void **state)
{
        (void) state;
        struct scene s;
        uint64_t unit = begin(&s, RESTART);
        size_t since = s.n_log;
        uint64_t urgent = ask_2(&s, GiB(12));
        assert_state(&s, unit, LEASE_ASKING);
        assert_int_equal(ordered(&s, unit, MANAGER_STOP)->wait_ms, s.world->config.yield_grace_ms);
        is_stopped(&s, unit);
        assert_runs(&s, urgent);
        scene_tick_to_s(&s, 60);
        assert_state(&s, unit, LEASE_PARKED);
        assert_int_equal(scene_count(&s, since, unit, ACTION_MANAGER), 1);
        scene_release(&s, urgent);
        scene_tick_to_s(&s, 61);
        assert_state(&s, unit, LEASE_THAWING);
        uint32_t pid = is_started(&s, unit);
        assert_runs(&s, unit);
        assert_int_equal(scene_owner(&s, unit), pid);
        uint32_t worker = scene_process_of(&s, ALICE, 0, 0, NEXT_CGROUP); /* no child of the main process */
        scene_process_uses(&s, worker, 0, GiB(20), COMPUTE);
        assert_int_equal(scene_count(&s, since, 0, ACTION_STRANGER), 0);
        assert_bytes(scene_free(&s, 0), GiB(4));
        assert_int_equal(scene_n_orders(&s, 0, HAND_SIGNAL), 0); /* nobody was signalled */
        scene_process_vanishes(&s, worker);
        ends(&s, unit);
        assert_gone(&s, unit); /* by itself: as any that was adopted */
        scene_end(&s);
}

static void park_that_could_not_be_tried_leaves_the_unit_as_it_was_and_strikes_nobody(void **state)
{
        (void) state;
        static const enum hand_why whys[] = { HAND_WHY_MANAGER_AWAY, HAND_WHY_FORBIDDEN, HAND_WHY_NO_WAY_BACK };
        for (size_t i = 0; i < sizeof(whys) / sizeof(whys[0]); i++) {
                struct scene s;
                uint64_t unit = begin(&s, RESTART);
                uint64_t urgent = ask_2(&s, GiB(12));
                says(&s, ordered(&s, unit, MANAGER_STOP), OUTCOME_BLOCKED, whys[i], 0, 0);
                assert_runs(&s, unit);
                assert_waits(&s, urgent);
                assert_bytes(scene_reserved(&s, 0), GiB(20));
                assert_int_equal(scene_last_rule(&s, unit, RULE_PARK_BLOCKED)->why.limit, whys[i]);
                assert_int_equal(scene_lease(&s, unit)->park.strikes[WAY_OUT_RESTART], 0);
                scene_tick_to_s(&s, 5); /* it is left alone for some time, then tried again */
                assert_runs(&s, unit);
                scene_tick_to_s(&s, s.world->config.back_off_ms / 1000 + 2);
                assert_state(&s, unit, LEASE_ASKING);
                is_stopped(&s, unit);
                assert_runs(&s, urgent);
                scene_end(&s);
        }
}

static void unit_that_its_manager_cannot_stop_is_stuck_until_the_device_shows_it_gone(void **state)
{
        (void) state;
        struct scene s;
        uint64_t unit = begin(&s, RESTART);
        uint64_t urgent = ask_2(&s, GiB(12));
        says(&s, ordered(&s, unit, MANAGER_STOP), OUTCOME_FAILED, HAND_WHY_MANAGER_FAILED, 0, 0);
        assert_state(&s, unit, LEASE_STUCK);
        assert_int_equal(scene_last(&s, unit, ACTION_STUCK)->why.limit, HAND_WHY_MANAGER_FAILED);
        assert_waits(&s, urgent);
        scene_tick_to_s(&s, 600);
        assert_state(&s, unit, LEASE_STUCK);
        assert_int_equal(scene_count(&s, 0, unit, ACTION_MANAGER), 1);
        ends(&s, unit);
        scene_tick_to_s(&s, 601);
        assert_state(&s, unit, LEASE_PARKED);
        assert_runs(&s, urgent);
        scene_end(&s);
}

static void stuck_unit_is_tried_again_when_a_person_says_so(void **state)
{
        (void) state;
        struct scene s;
        uint64_t unit = begin(&s, RESTART);
        scene_says(&s, unit, PARK_CALL_PARK, 0);
        says(&s, ordered(&s, unit, MANAGER_STOP), OUTCOME_FAILED, HAND_WHY_MANAGER_FAILED, 0, 0);
        assert_state(&s, unit, LEASE_STUCK);
        scene_says(&s, unit, PARK_CALL_FORGIVE, 0);
        assert_state(&s, unit, LEASE_ASKING);
        is_stopped(&s, unit);
        scene_end(&s);
}

static void stop_that_does_not_bring_the_memory_back_is_an_alarm_and_no_second_order(void **state)
{
        (void) state;
        struct scene s;
        uint64_t unit = begin(&s, RESTART);
        uint64_t urgent = ask_2(&s, GiB(12));
        says(&s, ordered(&s, unit, MANAGER_STOP), OUTCOME_DONE, HAND_WHY_NONE, 0, 0);
        scene_tick_to_s(&s, 10);
        assert_state(&s, unit, LEASE_ASKING); /* the word of a manager frees nothing */
        assert_waits(&s, urgent);
        scene_tick_to_s(&s, 10 + settle_ms(GiB(20)) / 1000);
        assert_state(&s, unit, LEASE_STUCK);
        assert_waits(&s, urgent);
        assert_int_equal(scene_count(&s, 0, unit, ACTION_MANAGER), 1);
        ends(&s, unit);
        scene_tick_to_s(&s, scene_s(&s) + 1);
        assert_state(&s, unit, LEASE_PARKED);
        scene_end(&s);
}

static void unit_that_restarts_itself_goes_on_as_another_process_and_is_struck(void **state)
{
        (void) state;
        struct scene s;
        uint64_t unit = begin(&s, RESTART);
        uint64_t urgent = ask_2(&s, GiB(12));
        for (unsigned i = 1; i <= s.world->config.strikes_max; i++) {
                assert_state(&s, unit, LEASE_ASKING);
                struct action order = *ordered(&s, unit, MANAGER_STOP);
                ends(&s, unit);
                uint32_t pid = scene_process_of(&s, ALICE, 0, 0, CGROUP + i);
                scene_process_uses(&s, pid, 0, GiB(20), COMPUTE);
                says(&s, &order, OUTCOME_FAILED, HAND_WHY_RUNS_AGAIN, pid, CGROUP + i);
                assert_runs(&s, unit);
                assert_int_equal(scene_owner(&s, unit), pid);
                assert_int_equal(scene_lease(&s, unit)->park.strikes[WAY_OUT_RESTART], i);
                assert_waits(&s, urgent);
                assert_bytes(scene_free(&s, 0), GiB(4)); /* under its lease again */
                scene_tick_to_s(&s, scene_s(&s) + s.world->config.back_off_ms / 1000 + 2);
        }
        assert_int_equal(scene_count_rule(&s, 0, unit, RULE_STRUCK_OUT), 1);
        scene_tick_to_s(&s, scene_s(&s) + 600);
        assert_runs(&s, unit); /* not asked any more until a person says so */
        assert_int_equal(scene_count(&s, 0, unit, ACTION_MANAGER), s.world->config.strikes_max);
        scene_end(&s);
}

static void unit_that_somebody_starts_while_it_is_parked_broke_its_promise_and_counts_as_what_it_is(void **state)
{
        (void) state;
        struct scene s;
        uint64_t unit = begin(&s, RESTART);
        uint64_t urgent = ask_2(&s, GiB(12));
        is_stopped(&s, unit);
        assert_runs(&s, urgent);
        size_t since = s.n_log;
        uint32_t pid = scene_process_of(&s, ALICE, 0, 0, NEXT_CGROUP);
        says(&s, &(struct action){ .lease_id = unit }, OUTCOME_DONE, HAND_WHY_NONE, pid, NEXT_CGROUP); /* unasked */
        assert_state(&s, unit, LEASE_PARKED);
        scene_process_uses(&s, pid, 0, GiB(9), COMPUTE);
        assert_int_equal(scene_count_rule(&s, 0, unit, RULE_BROKE_PROMISE), 1);
        assert_state(&s, unit, LEASE_PARKED);
        assert_bytes(scene_free(&s, 0), GiB(3));
        assert_int_equal(scene_count(&s, since, 0, ACTION_STRANGER), 0);
        scene_release(&s, urgent);
        scene_tick_to_s(&s, scene_s(&s) + 1);
        says(&s, ordered(&s, unit, MANAGER_START), OUTCOME_DONE, HAND_WHY_NONE, pid, NEXT_CGROUP);
        assert_runs(&s, unit);
        scene_end(&s);
}

static void start_that_fails_is_tried_again_later_and_later_and_then_left_to_a_person(void **state)
{
        (void) state;
        struct scene s;
        uint64_t unit = begin(&s, RESTART);
        scene_says(&s, unit, PARK_CALL_PARK, 3);
        is_stopped(&s, unit);
        uint64_t before_s = 0, between_s = 0;
        for (unsigned i = 1; i <= s.world->config.strikes_max; i++) {
                for (unsigned n = 0; n < 3600 && scene_lease(&s, unit)->state == LEASE_PARKED; n++)
                        scene_tick_to_s(&s, scene_s(&s) + 1);
                assert_state(&s, unit, LEASE_THAWING);
                if (i > 1) {
                        assert_true(scene_s(&s) - before_s >= between_s);
                        between_s = scene_s(&s) - before_s;
                }
                before_s = scene_s(&s);
                says(&s, ordered(&s, unit, MANAGER_START), OUTCOME_FAILED, HAND_WHY_MANAGER_FAILED, 0, 0);
                assert_state(&s, unit, LEASE_PARKED);
                assert_int_equal(scene_last_rule(&s, unit, RULE_THAW_FAILED)->why.place, i);
                assert_bytes(scene_free(&s, 0), GiB(24)); /* what does not run keeps nobody out */
        }
        assert_int_equal(scene_count_rule(&s, 0, unit, RULE_STRUCK_OUT), 1);
        scene_tick_to_s(&s, scene_s(&s) + 3600);
        assert_state(&s, unit, LEASE_PARKED);
        scene_says(&s, unit, PARK_CALL_FORGIVE, 0);
        scene_tick_to_s(&s, scene_s(&s) + 2);
        (void) is_started(&s, unit);
        assert_runs(&s, unit);
        assert_int_equal(scene_lease(&s, unit)->park.strikes[WAY_OUT_RESTART], 0);
        scene_end(&s);
}

static void start_that_could_not_be_tried_leaves_it_parked_without_a_strike(void **state)
{
        (void) state;
        struct scene s;
        uint64_t unit = begin(&s, RESTART);
        scene_says(&s, unit, PARK_CALL_PARK, 3);
        is_stopped(&s, unit);
        scene_tick_to_s(&s, 5);
        says(&s, ordered(&s, unit, MANAGER_START), OUTCOME_BLOCKED, HAND_WHY_MANAGER_AWAY, 0, 0);
        assert_state(&s, unit, LEASE_PARKED);
        assert_int_equal(scene_lease(&s, unit)->park.strikes[WAY_OUT_RESTART], 0);
        assert_int_equal(scene_last_rule(&s, unit, RULE_THAW_BLOCKED)->why.limit, HAND_WHY_MANAGER_AWAY);
        scene_tick_to_s(&s, 5 + s.world->config.back_off_ms / 1000 + 2);
        assert_state(&s, unit, LEASE_THAWING);
        (void) is_started(&s, unit);
        assert_runs(&s, unit);
        scene_end(&s);
}

static void started_unit_of_which_nothing_runs_was_not_started(void **state)
{
        (void) state;
        struct scene s;
        uint64_t unit = begin(&s, RESTART);
        scene_says(&s, unit, PARK_CALL_PARK, 3);
        is_stopped(&s, unit);
        scene_tick_to_s(&s, 5);
        says(&s, ordered(&s, unit, MANAGER_START), OUTCOME_DONE, HAND_WHY_NONE, 0, 0);
        assert_state(&s, unit, LEASE_PARKED);
        assert_non_null(scene_last_rule(&s, unit, RULE_THAW_FAILED));
        scene_end(&s);
}

/* Whatever was ordered is ordered again: to stop what is stopped and to start what runs is done at once. */
static void order_that_a_dead_daemon_may_have_given_is_given_again(void **state)
{
        (void) state;
        for (unsigned back = 0; back <= 1; back++) {
                struct scene s;
                uint64_t unit = begin(&s, RESTART);
                scene_says(&s, unit, PARK_CALL_PARK, back ? 3 : 600);
                if (back) {
                        is_stopped(&s, unit);
                        scene_tick_to_s(&s, scene_s(&s) + 3);
                }
                struct action before = *ordered(&s, unit, back ? MANAGER_START : MANAGER_STOP);
                scene_restart(&s, (struct restart_facts){ 0 });
                if (!back)
                        ends(&s, unit); /* while nobody looked */
                scene_tick_to_s(&s, scene_s(&s) + 2);
                const struct action *again = ordered(&s, unit, back ? MANAGER_START : MANAGER_STOP);
                assert_true(again->id > before.id);
                says(&s, &before, OUTCOME_BLOCKED, HAND_WHY_FORBIDDEN, 0, 0); /* an answer to the old one is nobody's */
                if (back) {
                        (void) is_started(&s, unit);
                        assert_runs(&s, unit);
                } else {
                        says(&s, ordered(&s, unit, MANAGER_STOP), OUTCOME_DONE, HAND_WHY_NONE, 0, 0);
                        scene_tick_to_s(&s, scene_s(&s) + 1);
                        assert_state(&s, unit, LEASE_PARKED);
                }
                scene_end(&s);
        }
}

static void order_that_was_lost_is_given_again_until_its_time_is_over(void **state)
{
        (void) state;
        struct scene s;
        uint64_t unit = begin(&s, RESTART);
        scene_says(&s, unit, PARK_CALL_PARK, 0);
        says(&s, ordered(&s, unit, MANAGER_STOP), OUTCOME_FAILED, HAND_WHY_LOST, 0, 0);
        assert_state(&s, unit, LEASE_ASKING);
        scene_tick_to_s(&s, 3);
        assert_int_equal(scene_count(&s, 0, unit, ACTION_MANAGER), 2);
        scene_tick_to_s(&s, 200); /* and that one nobody answers */
        assert_state(&s, unit, LEASE_STUCK);
        struct action late = *ordered(&s, unit, MANAGER_STOP);
        ends(&s, unit);
        says(&s, &late, OUTCOME_DONE, HAND_WHY_NONE, 0, 0);
        scene_tick_to_s(&s, 202);
        assert_state(&s, unit, LEASE_PARKED);
        scene_end(&s);
}

/* Nobody may take it for unharmed: it would be stopped with nobody to start it again. */
static void unit_whose_stop_was_lost_is_not_taken_for_unharmed_when_its_manager_is_away_then(void **state)
{
        (void) state;
        struct scene s;
        uint64_t unit = begin(&s, RESTART);
        scene_says(&s, unit, PARK_CALL_PARK, 0);
        says(&s, ordered(&s, unit, MANAGER_STOP), OUTCOME_FAILED, HAND_WHY_LOST, 0, 0);
        scene_tick_to_s(&s, 3);
        says(&s, ordered(&s, unit, MANAGER_STOP), OUTCOME_BLOCKED, HAND_WHY_MANAGER_AWAY, 0, 0);
        assert_state(&s, unit, LEASE_ASKING);
        ends(&s, unit); /* the first order was carried out after all */
        scene_tick_to_s(&s, 6);
        says(&s, ordered(&s, unit, MANAGER_STOP), OUTCOME_DONE, HAND_WHY_NONE, 0, 0);
        scene_tick_to_s(&s, 7);
        assert_state(&s, unit, LEASE_PARKED);
        scene_says(&s, unit, PARK_CALL_THAW, 0);
        scene_tick_to_s(&s, 9);
        (void) is_started(&s, unit);
        assert_runs(&s, unit);
        scene_end(&s);
}

static void unit_that_is_to_be_ended_is_stopped_by_its_manager_and_not_started_again(void **state)
{
        (void) state;
        struct scene s;
        uint64_t unit = begin(&s, KILL);
        uint64_t urgent = ask_2(&s, GiB(12));
        struct action order = *ordered(&s, unit, MANAGER_STOP);
        ends(&s, unit);
        says(&s, &order, OUTCOME_DONE, HAND_WHY_NONE, 0, 0);
        scene_tick_to_s(&s, scene_s(&s) + 1);
        assert_gone(&s, unit);
        assert_runs(&s, urgent);
        assert_int_equal(scene_n_orders(&s, 0, HAND_SIGNAL), 0);
        assert_int_equal(scene_count(&s, 0, unit, ACTION_MANAGER), 1);
        scene_end(&s);
}

static void unit_that_ended_while_its_stop_was_refused_has_ended(void **state)
{
        (void) state;
        struct scene s;
        uint64_t unit = begin(&s, RESTART);
        scene_says(&s, unit, PARK_CALL_PARK, 0);
        struct action order = *ordered(&s, unit, MANAGER_STOP);
        ends(&s, unit); /* by itself */
        assert_state(&s, unit, LEASE_ASKING);
        says(&s, &order, OUTCOME_BLOCKED, HAND_WHY_FORBIDDEN, 0, 0);
        scene_tick_to_s(&s, scene_s(&s) + 2);
        assert_gone(&s, unit);
        scene_end(&s);
}

static void gentler_way_out_goes_first_and_needs_no_manager(void **state)
{
        (void) state;
        struct scene s;
        uint64_t unit = begin(&s, RESTART | CHECKPOINT);
        uint64_t urgent = ask_2(&s, GiB(12));
        scene_tick_to_s(&s, 2);
        assert_state(&s, unit, LEASE_PARKED);
        assert_runs(&s, urgent);
        assert_int_equal(scene_count(&s, 0, unit, ACTION_MANAGER), 0);
        scene_release(&s, urgent);
        scene_tick_to_s(&s, 4);
        assert_runs(&s, unit);
        assert_int_equal(scene_count(&s, 0, unit, ACTION_MANAGER), 0);
        scene_end(&s);
}

/* ---- the machine is about to stand still ---- */

static void pauses(struct scene *s, enum pause_what what, bool thaws)
{
        struct input input = { .kind = INPUT_PAUSE, .pause = { .what = (uint8_t) what, .thaws = thaws } };

        scene_step(s, &input);
}

static void no_transition_begins_while_the_machine_is_about_to_stand_still(void **state)
{
        (void) state;
        static const enum pause_what whats[] = { PAUSE_SLEEP, PAUSE_SHUTDOWN };
        for (size_t i = 0; i < 2; i++) {
                struct scene s;
                uint64_t unit = begin(&s, RESTART);
                pauses(&s, whats[i], false);
                uint64_t urgent = ask_2(&s, GiB(12));
                assert_waits(&s, urgent);
                scene_says(&s, unit, PARK_CALL_PARK, 0);
                assert_rule(s.answer, RULE_CANNOT_PARK);
                assert_int_equal(s.answer.why.limit, RECLAIM_PAUSED);
                assert_runs(&s, unit);
                assert_int_equal(scene_count(&s, 0, unit, ACTION_MANAGER), 0);
                uint64_t small = ask_2(&s, GiB(1)); /* what needs nobody's memory is granted as ever */
                (void) small;
                pauses(&s, PAUSE_NONE, false);
                scene_tick_to_s(&s, scene_s(&s) + 1);
                assert_state(&s, unit, LEASE_ASKING);
                scene_end(&s);
        }
}

static void what_is_half_way_arrives_and_what_is_parked_comes_back_only_if_told_to(void **state)
{
        (void) state;
        for (unsigned checkpoints = 0; checkpoints <= 1; checkpoints++)
                for (unsigned thaws = 0; thaws <= 1; thaws++) {
                        struct scene s;
                        uint64_t unit = begin(&s, checkpoints ? CHECKPOINT : RESTART);
                        scene_says(&s, unit, PARK_CALL_PARK, 2);
                        pauses(&s, PAUSE_SLEEP, thaws);
                        if (!checkpoints) {
                                assert_state(&s, unit, LEASE_ASKING);
                                is_stopped(&s, unit);
                        }
                        scene_tick_to_s(&s, 10);
                        if (checkpoints && thaws) {
                                assert_runs(&s, unit);
                        } else { /* who was ended is not started to be ended again */
                                assert_state(&s, unit, LEASE_PARKED);
                                assert_rule(*scene_last(&s, unit, ACTION_WAITING), RULE_PAUSED);
                        }
                        pauses(&s, PAUSE_NONE, false);
                        scene_tick_to_s(&s, 12);
                        if (!checkpoints)
                                (void) is_started(&s, unit);
                        assert_runs(&s, unit);
                        scene_end(&s);
                }
}

static void restarted_daemon_knows_of_no_pause(void **state)
{
        (void) state;
        struct scene s;
        uint64_t unit = begin(&s, RESTART);
        pauses(&s, PAUSE_SHUTDOWN, false);
        scene_restart(&s, (struct restart_facts){ 0 });
        uint64_t urgent = ask_2(&s, GiB(12));
        scene_tick_to_s(&s, 2);
        assert_state(&s, unit, LEASE_ASKING);
        (void) urgent;
        scene_end(&s);
}

/* ---- names ---- */

static void names_of_units_and_containers_are_checked_letter_by_letter(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                bool valid;
        } units[] = {
                { "ollama.service", true },      { "a@b.service", true },
                { "dev-x\\x2dy.service", true }, { "a:b_c-d.e.service", true },
                { ".service", false },           { "@.service", false },
                { "a@.service", false },         { "a.scope", false },
                { "a.service.d", false },        { "a/b.service", false },
                { "../a.service", false },       { "a b.service", false },
                { "a\n.service", false },        { "", false },
                { "a.SERVICE", false },          { "a;b.service", false },
                { "a.service\xff", false },      { "-.service", true },
        };
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
                if (manager_unit_is_valid(units[i].name) != units[i].valid)
                        fail_msg("unit \"%s\"", units[i].name);
        char longest[MANAGER_NAME_MAX + 1];
        memset(longest, 'a', sizeof(longest));
        memcpy(longest + MANAGER_NAME_MAX - 9, ".service", 9);
        assert_true(manager_unit_is_valid(longest));
        memset(longest, 'a', sizeof(longest) - 1);
        memcpy(longest + MANAGER_NAME_MAX - 8, ".service", 9);
        assert_false(manager_unit_is_valid(longest));

        char id[66];
        memset(id, 'a', 64);
        id[64] = '\0';
        assert_true(manager_container_is_valid(id));
        id[0] = 'A';
        assert_false(manager_container_is_valid(id));
        id[0] = '/';
        assert_false(manager_container_is_valid(id));
        memset(id, 'b', 65);
        id[65] = '\0';
        assert_false(manager_container_is_valid(id));
        assert_false(manager_container_is_valid("abc"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(unit_is_stopped_by_its_manager_and_started_again_when_there_is_room),
                cmocka_unit_test(park_that_could_not_be_tried_leaves_the_unit_as_it_was_and_strikes_nobody),
                cmocka_unit_test(unit_that_its_manager_cannot_stop_is_stuck_until_the_device_shows_it_gone),
                cmocka_unit_test(stuck_unit_is_tried_again_when_a_person_says_so),
                cmocka_unit_test(stop_that_does_not_bring_the_memory_back_is_an_alarm_and_no_second_order),
                cmocka_unit_test(unit_that_restarts_itself_goes_on_as_another_process_and_is_struck),
                cmocka_unit_test(
                        unit_that_somebody_starts_while_it_is_parked_broke_its_promise_and_counts_as_what_it_is),
                cmocka_unit_test(start_that_fails_is_tried_again_later_and_later_and_then_left_to_a_person),
                cmocka_unit_test(start_that_could_not_be_tried_leaves_it_parked_without_a_strike),
                cmocka_unit_test(started_unit_of_which_nothing_runs_was_not_started),
                cmocka_unit_test(order_that_a_dead_daemon_may_have_given_is_given_again),
                cmocka_unit_test(order_that_was_lost_is_given_again_until_its_time_is_over),
                cmocka_unit_test(unit_whose_stop_was_lost_is_not_taken_for_unharmed_when_its_manager_is_away_then),
                cmocka_unit_test(unit_that_is_to_be_ended_is_stopped_by_its_manager_and_not_started_again),
                cmocka_unit_test(unit_that_ended_while_its_stop_was_refused_has_ended),
                cmocka_unit_test(gentler_way_out_goes_first_and_needs_no_manager),
                cmocka_unit_test(no_transition_begins_while_the_machine_is_about_to_stand_still),
                cmocka_unit_test(what_is_half_way_arrives_and_what_is_parked_comes_back_only_if_told_to),
                cmocka_unit_test(restarted_daemon_knows_of_no_pause),
                cmocka_unit_test(names_of_units_and_containers_are_checked_letter_by_letter),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
