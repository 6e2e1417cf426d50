/* SPDX-License-Identifier: Apache-2.0 */
/* Who does not wait: granted, or told no within moments, also where no usable look is to be had. */
#include "scene.h"

static void eyes_say(struct scene *s, bool answering)
{
        struct input input = { .kind = INPUT_EYES,
                               .eyes = { .answering = answering, .silent_since_ms = answering ? 0 : s->now_ms } };

        scene_step(s, &input);
}

static void no_wait_is_refused_at_once_while_nobody_looks(void **state)
{
        (void) state;
        struct scene s;

        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        s.eyes_closed = true;
        eyes_say(&s, false);
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = GiB(1), .no_wait = true }), 0);
        assert_rule(s.answer, RULE_WOULD_WAIT);
        assert_waits(&s, scene_request(&s, (struct ask){ .bytes = GiB(1) }));
        s.eyes_closed = false;
        eyes_say(&s, true);
        scene_look(&s);
        assert_runs(&s, scene_request(&s, (struct ask){ .bytes = GiB(1), .no_wait = true }));
        scene_end(&s);
}

static void no_wait_that_was_waiting_for_its_look_is_over_when_the_eyes_go_silent(void **state)
{
        (void) state;
        struct scene s;

        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_tick_to_s(&s, 10);
        s.eyes_closed = true;
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(1), .no_wait = true });
        assert_waits(&s, a); /* its look is on the way */
        eyes_say(&s, false);
        assert_gone(&s, a);
        assert_non_null(scene_last_rule(&s, a, RULE_WOULD_WAIT));
        scene_end(&s);
}

static void no_wait_is_over_after_a_while_of_looks_that_cannot_be_used(void **state)
{
        (void) state;
        struct scene s;

        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        scene_tick_to_s(&s, 10);
        s.cards[0].unsettled = true;
        scene_look(&s);
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(1), .no_wait = true });
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(1) });
        scene_tick_to_s(&s, 14);
        assert_waits(&s, a);
        scene_tick_to_s(&s, 15);
        assert_gone(&s, a);
        assert_waits(&s, b);
        s.cards[0].unsettled = false;
        scene_look(&s);
        assert_runs(&s, b);
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_wait_is_refused_at_once_while_nobody_looks),
                cmocka_unit_test(no_wait_that_was_waiting_for_its_look_is_over_when_the_eyes_go_silent),
                cmocka_unit_test(no_wait_is_over_after_a_while_of_looks_that_cannot_be_used),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
