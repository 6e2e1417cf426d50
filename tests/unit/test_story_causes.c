/* SPDX-License-Identifier: Apache-2.0 */
/* What led to what, where others than the hands and the clients have the word: managers, pauses, the enforcer, idleness. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "scene_journal.h"
#include "scene_park.h"
#include "store/story.h"

#define RESTART WAY_OUT_BIT(WAY_OUT_RESTART)
#define CHECKPOINT WAY_OUT_BIT(WAY_OUT_CHECKPOINT)
#define COMPUTE (ROW_USED_KNOWN | ROW_COMPUTE)

enum { CGROUP = 70, NEXT_CGROUP = 71, STAY_S = 30, NOTICE_S = 60, GRACE_S = 300 };

static struct story read_story(struct scene *s, enum story_kind kind, uint64_t id)
{
        const struct story_subject subject = { kind, id };
        struct journal *j = scene_read_journal(s);
        struct error err = { 0 };
        struct story story;

        if (story_read(j, &subject, &story, &err) < 0)
                fail_msg("%s", err.msg);
        journal_close(j);
        return story;
}

static void end(struct scene *s, struct story *story)
{
        story_fini(story);
        scene_record_end(s);
        scene_end(s);
}

/* The @nth step about @lease_id that this rule was the reason of. */
static const struct story_step *find(const struct story *story, uint64_t lease_id, enum rule rule, unsigned nth)
{
        for (size_t i = 0; i < story->n_steps; i++)
                if (story->steps[i].lease_id == lease_id && story->steps[i].rule == rule && nth-- == 0)
                        return &story->steps[i];
        for (size_t i = 0; i < story->n_steps; i++)
                print_message("E%llu L%llu %s (%s): %s <- E%llu %s\n", (unsigned long long) story->steps[i].event_id,
                              (unsigned long long) story->steps[i].lease_id, story->steps[i].what,
                              rule_name((enum rule) story->steps[i].rule), story->steps[i].text,
                              (unsigned long long) story->steps[i].cause_id, story->steps[i].because);
        fail_msg("there is no such %s of L%llu", rule_name(rule), (unsigned long long) lease_id);
        return NULL;
}

/* The @nth that is called so. */
static const struct story_step *called(const struct story *story, uint64_t lease_id, const char *what, unsigned nth)
{
        for (size_t i = 0; i < story->n_steps; i++)
                if (story->steps[i].lease_id == lease_id && strncmp(story->steps[i].what, what, strlen(what)) == 0 &&
                    nth-- == 0)
                        return &story->steps[i];
        return find(story, lease_id, RULE_N, 0); /* says what there is, and fails */
}

/* Is @step what @before led to, over whatever lies between? */
static bool follows(const struct story *story, const struct story_step *step, const struct story_step *before)
{
        while (step && step != before) {
                const struct story_step *cause = NULL;
                for (size_t i = 0; step->cause_id != 0 && i < story->n_steps; i++)
                        if (story->steps[i].event_id == step->cause_id)
                                cause = &story->steps[i];
                step = cause;
        }
        return step == before;
}

#define assert_follows(story, step, before) assert_true(follows((story), (step), (before)))

/* ---- managers ---- */

static void says(struct scene *s, uint64_t id, uint32_t pid, uint64_t cgroup_id)
{
        const struct action *order = scene_last(s, id, ACTION_MANAGER);
        struct input input = { .kind = INPUT_MANAGER };

        assert_non_null(order);
        input.manager = (struct manager_outcome){
                .order_id = order->id, .lease_id = id, .outcome = OUTCOME_DONE, .cgroup_id = cgroup_id
        };
        if (pid != 0)
                input.manager.root = (struct identity){ .pid = pid, .start_ticks = pid };
        scene_step(s, &input);
}

/* A unit of ALICE's that may be stopped for others, in a journal from here on. */
static uint64_t begin_unit(struct scene *s)
{
        scene_begin(s);
        (void) scene_device(s, GiB(24));
        scene_hands(s);
        scene_record(s);
        uint32_t pid = scene_process_of(s, ALICE, 0, 0, CGROUP);
        scene_process_uses(s, pid, 0, GiB(20), COMPUTE);
        uint64_t unit = scene_adopt(s, (struct ask){ .uid = ALICE,
                                                     .pid = pid,
                                                     .priority = 4,
                                                     .cgroup_id = CGROUP,
                                                     .named = RESTART,
                                                     .manager = MANAGER_USER_UNIT });
        assert_runs(s, unit);
        scene_tick_to_s(s, 3600);
        return unit;
}

static void is_stopped(struct scene *s, uint64_t unit)
{
        uint32_t pid = scene_owner(s, unit);

        scene_owner_ended(s, unit);
        scene_process_ends(s, pid);
        says(s, unit, 0, 0);
        scene_tick_to_s(s, scene_s(s) + 1);
        assert_state(s, unit, LEASE_PARKED);
}

static void unit_that_is_stopped_for_another_and_started_again_is_told_with_what_its_manager_said(void **state)
{
        struct scene s;

        (void) state;
        uint64_t unit = begin_unit(&s);
        uint64_t urgent = scene_request(&s, (struct ask){ .bytes = GiB(12), .priority = 2, .uid = BOB });
        assert_state(&s, unit, LEASE_ASKING);
        is_stopped(&s, unit);
        assert_runs(&s, urgent);
        scene_release(&s, urgent);
        scene_tick_to_s(&s, scene_s(&s) + 60);
        says(&s, unit, scene_process_of(&s, ALICE, 0, 0, NEXT_CGROUP), NEXT_CGROUP);
        scene_tick_to_s(&s, scene_s(&s) + 5);
        assert_runs(&s, unit);

        struct story story = read_story(&s, STORY_LEASE, unit);
        const struct story_step *plan = find(&story, urgent, RULE_PLAN_BEGAN, 0),
                                *asked = find(&story, unit, RULE_ASKED, 0),
                                *stop = called(&story, unit, "order: its manager, stop", 0),
                                *parked = find(&story, unit, RULE_PARKED, 0),
                                *thawing = find(&story, unit, RULE_THAW_BEGAN, 0),
                                *start = called(&story, unit, "order: its manager, start", 0),
                                *thawed = find(&story, unit, RULE_THAWED, 0);
        assert_int_equal(asked->cause_id, plan->event_id);
        assert_int_equal(stop->cause_id, asked->event_id);
        assert_follows(&story, parked, stop);
        assert_int_equal(thawing->cause_id, parked->event_id);
        assert_int_equal(start->cause_id, thawing->event_id);
        assert_follows(&story, thawed, start);
        assert_string_equal(stop->text, ""); /* why is said where it was asked; the way back has another reason */
        assert_string_equal(start->text, "");
        end(&s, &story);
}

/* ---- pauses ---- */

static void pauses(struct scene *s, enum pause_what what)
{
        struct input input = { .kind = INPUT_PAUSE, .pause = { .what = (uint8_t) what } };

        scene_step(s, &input);
}

static void unit_that_is_not_started_because_the_machine_is_about_to_sleep_is_told_so(void **state)
{
        struct scene s;

        (void) state;
        uint64_t unit = begin_unit(&s);
        scene_says(&s, unit, PARK_CALL_PARK, 2);
        pauses(&s, PAUSE_SLEEP);
        is_stopped(&s, unit);
        scene_tick_to_s(&s, scene_s(&s) + 10);
        assert_state(&s, unit, LEASE_PARKED);
        pauses(&s, PAUSE_NONE);
        scene_tick_to_s(&s, scene_s(&s) + 2);
        assert_state(&s, unit, LEASE_THAWING);
        struct story story = read_story(&s, STORY_LEASE, unit);
        const struct story_step *parked = find(&story, unit, RULE_PARKED, 0),
                                *paused = find(&story, unit, RULE_PAUSED, 0),
                                *thawing = find(&story, unit, RULE_THAW_BEGAN, 0),
                                *start = called(&story, unit, "order: its manager, start", 0);
        assert_follows(&story, paused, parked);
        assert_int_equal(thawing->cause_id, parked->event_id);
        assert_int_equal(start->cause_id, thawing->event_id);
        assert_true(thawing->wall_ms > paused->wall_ms);
        end(&s, &story);
}

/* ---- the enforcer ---- */

static void enforcer_is_on(struct scene *s)
{
        struct input input = {
                .kind = INPUT_ENFORCE,
                .enforce = { .is_admin = true, .what = ENFORCE_CALL_MODE, .mode = ENFORCE_ENFORCE },
        };

        input.enforce.token = ++s->next_token;
        scene_step_for(s, &input, input.enforce.token);
}

static void stranger_that_is_ended_is_told_from_the_first_look_to_its_end(void **state)
{
        struct scene s;

        (void) state;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_record(&s);
        enforcer_is_on(&s);
        scene_tick_to_s(&s, 100);
        struct input facts = {
                .kind = INPUT_PROCESS,
                .process = { .identity = { 900, 7900 },
                             .uid = ALICE,
                             .program = 0x1234,
                             .script = 0x77,
                             .runs = RUNS_SCRIPT,
                             .comm = "python3" },
        };
        scene_step(&s, &facts);
        scene_process_uses(&s, 900, 0, GiB(5), COMPUTE);
        scene_tick_to_s(&s, 100 + STAY_S + NOTICE_S);
        const struct action *sent = scene_last(&s, 0, ACTION_HAND);
        assert_non_null(sent);
        struct action order = *sent;
        assert_int_equal(order.signal, SIGTERM);
        scene_outcome(&s, &order, OUTCOME_DONE, HAND_WHY_NONE);
        scene_process_ends(&s, 900);
        scene_tick_to_s(&s, 100 + STAY_S + NOTICE_S + 5);

        struct story story = read_story(&s, STORY_PROCESS, 900);
        const struct story_step *seen = find(&story, 0, RULE_STRANGER_SEEN, 0),
                                *noticed = find(&story, 0, RULE_STRANGER_NOTICED, 0),
                                *ending = find(&story, 0, RULE_STRANGER_ENDING, 0),
                                *ended = find(&story, 0, RULE_STRANGER_ENDED, 0);
        assert_non_null(strstr(seen->because, "a look at "));
        assert_int_equal(seen->cause_id, 0);
        assert_follows(&story, noticed, seen);
        assert_follows(&story, ending, noticed);
        assert_follows(&story, ended, ending);
        for (size_t i = 0; i < story.n_steps; i++)
                assert_true(story.steps[i].event_id == 0 || story.steps[i].pid == 900);
        end(&s, &story);
}

/* ---- idleness ---- */

static void steps_of_one_idleness_are_a_chain_and_the_next_begins_anew(void **state)
{
        struct scene s;

        (void) state;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        scene_hands(&s);
        scene_record(&s);
        uint64_t id = scene_request(&s, (struct ask){ .bytes = GiB(20), .named = CHECKPOINT, .proven = CHECKPOINT });
        scene_uses(&s, id, GiB(20));
        struct scene_row *row = scene_row(&s, scene_owner(&s, id), card);
        row->flags = COMPUTE | ROW_RESTED;
        scene_look(&s);
        scene_tick_to_s(&s, 61 * 60);
        row->flags = COMPUTE | ROW_WORKED;
        scene_look(&s);
        scene_tick_to_s(&s, 62 * 60);
        row->flags = COMPUTE | ROW_RESTED;
        scene_look(&s);
        scene_tick_to_s(&s, 64 * 60);

        struct story story = read_story(&s, STORY_LEASE, id);
        const struct story_step *began = find(&story, id, RULE_IDLE_BEGAN, 0),
                                *notice = find(&story, id, RULE_IDLE_NOTICE, 0),
                                *reclaimable = find(&story, id, RULE_IDLE_RECLAIMABLE, 0),
                                *over = find(&story, id, RULE_IDLE_OVER, 0),
                                *again = find(&story, id, RULE_IDLE_BEGAN, 1);
        assert_int_equal(began->cause_id, 0);
        assert_int_equal(notice->cause_id, began->event_id);
        assert_int_equal(reclaimable->cause_id, notice->event_id);
        assert_int_equal(over->cause_id, reclaimable->event_id);
        assert_int_equal(again->cause_id, 0);
        end(&s, &story);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(unit_that_is_stopped_for_another_and_started_again_is_told_with_what_its_manager_said),
                cmocka_unit_test(unit_that_is_not_started_because_the_machine_is_about_to_sleep_is_told_so),
                cmocka_unit_test(stranger_that_is_ended_is_told_from_the_first_look_to_its_end),
                cmocka_unit_test(steps_of_one_idleness_are_a_chain_and_the_next_begins_anew),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
