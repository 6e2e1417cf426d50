/* SPDX-License-Identifier: Apache-2.0 */
/* Why it came so, read from a journal that the real core wrote: what led to what, and what was a clock. */
#include <stdio.h>
#include <string.h>
#include "scene_journal.h"
#include "scene_park.h"
#include "store/story.h"

#define COOPERATE WAY_OUT_BIT(WAY_OUT_COOPERATE)
#define CHECKPOINT WAY_OUT_BIT(WAY_OUT_CHECKPOINT)

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

static const struct story_step *of_event(const struct story *story, uint64_t id)
{
        for (size_t i = 0; id != 0 && i < story->n_steps; i++)
                if (story->steps[i].event_id == id)
                        return &story->steps[i];
        return NULL;
}

/* The @nth step that says @what of a lease, from the first on. */
static const struct story_step *find(const struct story *story, uint64_t lease_id, const char *what, unsigned nth)
{
        for (size_t i = 0; i < story->n_steps; i++)
                if (story->steps[i].lease_id == lease_id && strncmp(story->steps[i].what, what, strlen(what)) == 0 &&
                    nth-- == 0)
                        return &story->steps[i];
        for (size_t i = 0; i < story->n_steps; i++)
                print_message("E%llu L%llu %s: %s <- E%llu %s\n", (unsigned long long) story->steps[i].event_id,
                              (unsigned long long) story->steps[i].lease_id, story->steps[i].what, story->steps[i].text,
                              (unsigned long long) story->steps[i].cause_id, story->steps[i].because);
        fail_msg("there is no %s of L%llu", what, (unsigned long long) lease_id);
        return NULL;
}

static uint64_t works(struct scene *s, struct ask ask)
{
        uint64_t id = scene_request(s, ask);

        assert_runs(s, id);
        scene_uses(s, id, ask.bytes);
        return id;
}

/* A lease that is asked, five times in vain, every 20 s: a second between the ticks, as it comes. */
static void begin_strikes(struct scene *s, uint64_t *ret_victim, uint64_t *ret_head)
{
        struct config config;

        memset(&config, 0, sizeof(config));
        config_defaults(&config);
        config.ask_ms = SECONDS(5);
        config.back_off_ms = SECONDS(15);
        scene_begin_with(s, &config);
        (void) scene_device(s, GiB(24));
        scene_hands(s);
        scene_record(s);
        *ret_victim = works(s, (struct ask){ .bytes = GiB(20), .priority = 4, .named = COOPERATE });
        *ret_head = scene_request(s, (struct ask){ .bytes = GiB(14), .priority = 2, .uid = BOB, .named = COOPERATE });
        scene_tick_to_s(s, 600);
}

static void strikes_exactly_20_s_apart_are_pointed_out_as_a_clock(void **state)
{
        struct scene s;
        uint64_t victim, head;
        bool found = false;

        (void) state;
        begin_strikes(&s, &victim, &head);
        assert_int_equal(scene_count_rule(&s, 0, victim, RULE_STRUCK_OUT), 1);
        struct story story = read_story(&s, STORY_LEASE, victim);
        for (uint32_t i = 0; i < story.n_rhythms; i++) {
                const struct story_rhythm *r = &story.rhythms[i];
                if (r->lease_id != victim || r->rule != RULE_ASKED)
                        continue;
                found = true;
                assert_int_equal(r->n, 5);
                assert_in_range(r->period_ms, SECONDS(20) - 500, SECONDS(20) + 1000);
                assert_int_equal(r->last_wall_ms - r->first_wall_ms, 4 * r->period_ms);
                assert_string_equal(r->what, "asked");
        }
        assert_true(found);
        story_fini(&story);
        scene_record_end(&s);
        scene_end(&s);
}

static void lease_without_a_rhythm_has_none(void **state)
{
        struct scene s;

        (void) state;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_record(&s);
        uint64_t a = works(&s, (struct ask){ .bytes = GiB(20), .ttl_s = 60 });
        for (unsigned i = 1; i < 20; i++) { /* a heartbeat is a clock, and nobody wonders at it */
                scene_tick_to_s(&s, 20 * i);
                scene_renew(&s, a);
        }
        scene_release(&s, a);
        struct story story = read_story(&s, STORY_LEASE, a);
        assert_int_equal(story.n_rhythms, 0);
        assert_true(story.since_wall_ms > 0); /* of records whose events are in no table yet */
        assert_true(story.n_steps >= 20);
        assert_false(story.is_cut);
        assert_string_equal(find(&story, a, "granted", 0)->because, "uid 1000 asked for 20 GiB (normal)");
        story_fini(&story);
        scene_record_end(&s);
        scene_end(&s);
}

/* @victim is checkpointed for @head, which ends; then it comes back. */
static void begin_park(struct scene *s, uint64_t *ret_victim, uint64_t *ret_head)
{
        scene_begin(s);
        (void) scene_device(s, GiB(24));
        scene_hands(s);
        scene_record(s);
        *ret_victim = works(s, (struct ask){ .bytes = GiB(20), .priority = 4, .named = CHECKPOINT });
        *ret_head = scene_request(s, (struct ask){ .bytes = GiB(14), .priority = 2, .uid = BOB, .named = COOPERATE });
        assert_state(s, *ret_victim, LEASE_PARKED);
        scene_tick_to_s(s, 100);
        scene_release(s, *ret_head);
        scene_tick_to_s(s, 200);
        assert_state(s, *ret_victim, LEASE_ACTIVE);
}

static void lease_that_was_parked_is_told_from_the_plan_to_its_return_each_with_its_cause(void **state)
{
        struct scene s;
        uint64_t victim, head;

        (void) state;
        begin_park(&s, &victim, &head);
        struct story story = read_story(&s, STORY_LEASE, victim);
        const struct story_step *plan = find(&story, head, "plan", 0), *asked = find(&story, victim, "asked", 0),
                                *lock = find(&story, victim, "order: lock", 0),
                                *checkpoint = find(&story, victim, "order: checkpoint", 0),
                                *stop = find(&story, victim, "order: stop", 0),
                                *parked = find(&story, victim, "parked", 0),
                                *thawing = find(&story, victim, "thawing", 0),
                                *restore = find(&story, victim, "order: restore", 0),
                                *thawed = find(&story, victim, "thawed", 0);
        assert_string_equal(plan->because, "uid 1002 asked for 14 GiB (interactive)");
        assert_int_equal(asked->cause_id, plan->event_id);
        assert_int_equal(lock->cause_id, asked->event_id);
        assert_int_equal(checkpoint->cause_id, lock->event_id);
        assert_non_null(strstr(checkpoint->because, ": done"));
        assert_int_equal(stop->cause_id, checkpoint->event_id);
        assert_non_null(strstr(stop->because, " in host memory"));
        assert_int_equal(parked->cause_id, stop->event_id);
        assert_non_null(strstr(thawing->because, "a look at GPU-00000000: "));
        assert_non_null(strstr(parked->text, "for L2, then it comes back by itself"));
        assert_int_equal(thawing->cause_id, parked->event_id);
        assert_int_equal(restore->cause_id, thawing->event_id);
        assert_non_null(thawed);
        for (size_t i = 1; i < story.n_steps; i++) { /* causes come before what they lead to */
                assert_true(story.steps[i].wall_ms >= story.steps[i - 1].wall_ms);
                assert_true(story.steps[i].cause_id < story.steps[i].event_id);
        }
        story_fini(&story);
        scene_record_end(&s);
        scene_end(&s);
}

static void lease_that_memory_was_taken_back_for_is_told_with_what_became_of_the_others(void **state)
{
        struct scene s;
        uint64_t victim, head;

        (void) state;
        begin_park(&s, &victim, &head);
        struct story story = read_story(&s, STORY_LEASE, head);
        const struct story_step *plan = find(&story, head, "plan", 0), *asked = find(&story, victim, "asked", 0),
                                *parked = find(&story, victim, "parked", 0),
                                *granted = find(&story, head, "granted", 0);
        assert_int_equal(asked->cause_id, plan->event_id);
        assert_non_null(parked);
        const struct story_step *cause = granted;
        while (cause && cause != plan)
                cause = of_event(&story, cause->cause_id);
        assert_ptr_equal(cause, plan);
        story_fini(&story);
        scene_record_end(&s);
        scene_end(&s);
}

static void event_is_told_with_what_led_to_it_and_what_it_led_to_and_nothing_else(void **state)
{
        struct scene s;
        uint64_t victim, head;

        (void) state;
        begin_park(&s, &victim, &head);
        struct story whole = read_story(&s, STORY_LEASE, victim);
        uint64_t order = find(&whole, victim, "order: checkpoint", 0)->event_id;
        story_fini(&whole);
        struct story story = read_story(&s, STORY_EVENT, order);
        assert_true(of_event(&story, order)->is_subject);
        assert_non_null(find(&story, head, "plan", 0));
        assert_non_null(find(&story, victim, "asked", 0));
        assert_non_null(find(&story, victim, "order: lock", 0));
        assert_non_null(find(&story, victim, "order: stop", 0));
        assert_non_null(find(&story, victim, "parked", 0));
        for (size_t i = 0; i < story.n_steps; i++) {
                assert_true(story.steps[i].lease_id != victim || story.steps[i].kind != ACTION_GRANTED);
                assert_true(story.steps[i].is_subject == (story.steps[i].event_id == order));
        }
        story_fini(&story);
        story = read_story(&s, STORY_EVENT, 4000000);
        assert_int_equal(story.n_steps, 0);
        story_fini(&story);
        scene_record_end(&s);
        scene_end(&s);
}

static void process_is_told_by_what_was_seen_of_it_ordered_about_it_and_under_which_lease_it_was(void **state)
{
        struct scene s;
        uint64_t victim, head;

        (void) state;
        begin_park(&s, &victim, &head);
        uint32_t pid = scene_owner(&s, victim), stranger = scene_stranger(&s, 0, GiB(1));
        scene_tick_to_s(&s, 210);
        scene_process_ends(&s, stranger);
        struct story story = read_story(&s, STORY_PROCESS, pid);
        assert_int_equal(story.n_leases, 1);
        assert_int_equal(story.leases[0], victim);
        assert_int_equal(story.n_processes, 1);
        assert_non_null(strstr(find(&story, 0, "seen", 0)->text, "uid "));
        assert_int_equal(find(&story, victim, "order: restore", 0)->pid, pid);
        assert_non_null(find(&story, victim, "granted", 0));
        story_fini(&story);
        story = read_story(&s, STORY_PROCESS, stranger);
        assert_int_equal(story.n_leases, 0);
        assert_int_equal(find(&story, 0, "stranger", 0)->pid, stranger);
        assert_int_equal(story.steps[story.n_steps - 1].pid, stranger);
        story_fini(&story);
        story = read_story(&s, STORY_PROCESS, 4000000000);
        assert_int_equal(story.n_steps, 0);
        assert_int_equal(story.n_processes, 0);
        story_fini(&story);
        scene_record_end(&s);
        scene_end(&s);
}

static void child_of_a_lease_s_command_is_found_under_that_lease(void **state)
{
        struct scene s;

        (void) state;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_record(&s);
        uint64_t id = scene_request(&s, (struct ask){ .bytes = GiB(4) });
        uint32_t child = scene_process(&s, 0, scene_owner(&s, id), 0);
        scene_process_uses(&s, child, 0, GiB(2), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_segment(&s);
        struct story story = read_story(&s, STORY_PROCESS, child);
        assert_int_equal(story.n_leases, 1);
        assert_int_equal(story.leases[0], id);
        story_fini(&story);
        scene_record_end(&s);
        scene_end(&s);
}

static const struct {
        const char *word;
        uint32_t n;
        struct story_subject first;
} words[] = {
        { "L17", 1, { STORY_LEASE, 17 } },
        { "l17", 1, { STORY_LEASE, 17 } },
        { "E4711", 1, { STORY_EVENT, 4711 } },
        { "p1", 1, { STORY_PROCESS, 1 } },
        { "3120", 3, { STORY_LEASE, 3120 } },
        { "9223372036854775807", 2, { STORY_LEASE, INT64_MAX } },
        { "", 0, { 0, 0 } },
        { "L", 0, { 0, 0 } },
        { "0", 0, { 0, 0 } },
        { "L0", 0, { 0, 0 } },
        { "17x", 0, { 0, 0 } },
        { "L 17", 0, { 0, 0 } },
        { "-5", 0, { 0, 0 } },
        { "LL1", 0, { 0, 0 } },
        { "P4294967296", 0, { 0, 0 } },
        { "E18446744073709551617", 0, { 0, 0 } },
};

static void word_names_a_lease_a_process_or_an_event(void **state)
{
        (void) state;
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
                struct story_word word;
                struct error err = { 0 };
                int r = story_word_parse(words[i].word, &word, &err);
                if (word.n != words[i].n || (r == 0) != (words[i].n > 0))
                        fail_msg("%s: %d, %u", words[i].word, r, word.n);
                if (r == 0 &&
                    (word.subjects[0].kind != words[i].first.kind || word.subjects[0].id != words[i].first.id))
                        fail_msg("%s is taken for another", words[i].word);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(strikes_exactly_20_s_apart_are_pointed_out_as_a_clock),
                cmocka_unit_test(lease_without_a_rhythm_has_none),
                cmocka_unit_test(lease_that_was_parked_is_told_from_the_plan_to_its_return_each_with_its_cause),
                cmocka_unit_test(lease_that_memory_was_taken_back_for_is_told_with_what_became_of_the_others),
                cmocka_unit_test(event_is_told_with_what_led_to_it_and_what_it_led_to_and_nothing_else),
                cmocka_unit_test(process_is_told_by_what_was_seen_of_it_ordered_about_it_and_under_which_lease_it_was),
                cmocka_unit_test(child_of_a_lease_s_command_is_found_under_that_lease),
                cmocka_unit_test(word_names_a_lease_a_process_or_an_event),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
