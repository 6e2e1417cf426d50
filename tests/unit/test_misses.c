/* SPDX-License-Identifier: Apache-2.0 */
/* A lease of which nothing is on a device, and a younger stranger of the same user: said once, and only where it may be its work. */
#include <stdio.h>
#include <string.h>
#include "arbiter/misses.h"
#include "model/reason.h"
#include "scene.h"

enum { NOTHING, OLDER, OTHER_USER, SMALL, ON_TIME, SHORT, USED, HEARTBEAT, APPROVED, UNKNOWN };

static void lease_that_misses_its_work_says_so_once(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                int what;
                unsigned warnings;
        } rows[] = {
                { "nobody else is there", NOTHING, 0 },
                { "a stranger that was there before the lease", OLDER, 0 },
                { "a younger one of another user", OTHER_USER, 0 },
                { "a younger one with hardly anything", SMALL, 0 },
                { "a younger one of the same user", ON_TIME, 1 },
                { "the same, a moment before it is time", SHORT, 0 },
                { "something of the lease was on the device before", USED, 0 },
                { "a lease that is tied to no process", HEARTBEAT, 0 },
                { "a younger one that may have memory without a lease", APPROVED, 0 },
                { "a younger one whose amount nobody knows", UNKNOWN, 0 },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                int what = rows[i].what;
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24)), pid = 0;
                if (what == OLDER) {
                        pid = scene_process_of(&s, ALICE, 0, 0, 0);
                        scene_process_uses(&s, pid, card, GiB(2), ROW_USED_KNOWN | ROW_COMPUTE);
                        scene_tick_to_s(&s, 5);
                }
                uint64_t a = scene_request(
                        &s, (struct ask){ .uid = ALICE, .bytes = GiB(4), .ttl_s = what == HEARTBEAT ? 3600 : 0 });
                if (what == USED) {
                        scene_uses(&s, a, GiB(1));
                        scene_uses(&s, a, 0);
                }
                scene_tick_to_s(&s, 20);
                if (what != NOTHING && what != OLDER) {
                        pid = scene_process_of(&s, what == OTHER_USER ? BOB : ALICE, 0, 0, 0);
                        scene_process_uses(&s, pid, card, what == SMALL ? MiB(255) : GiB(2),
                                           what == UNKNOWN ? ROW_COMPUTE : ROW_USED_KNOWN | ROW_COMPUTE);
                }
                if (what == APPROVED) {
                        struct process *p = NULL;
                        for (uint32_t k = 0; k < s.world->n_processes; k++)
                                if (s.world->processes[k].identity.pid == pid)
                                        p = &s.world->processes[k];
                        struct input facts = { .kind = INPUT_PROCESS, .process = *p };
                        facts.process.program = 77;
                        facts.process.runs = RUNS_PROGRAM;
                        scene_step(&s, &facts);
                        struct input approve = {
                                .kind = INPUT_ENFORCE,
                                .enforce = { .what = ENFORCE_CALL_APPROVE, .is_admin = true, .process = p->identity }
                        };
                        scene_step_for(&s, &approve, 1);
                        assert_int_equal(s.world->n_approvals, 1);
                }
                scene_tick_to_s(&s, (what == SHORT ? UINT64_C(19) : UINT64_C(21)) + MISSES_AFTER_MS / 1000);
                assert_int_equal(scene_count_rule(&s, 0, a, RULE_MISSES_WORK), rows[i].warnings);
                if (rows[i].warnings == 1) {
                        const struct action *said = scene_last(&s, a, ACTION_WARNING);
                        assert_int_equal(said->why.blockers[0].pid, pid);
                        assert_bytes(said->why.blockers[0].bytes, GiB(2));
                        char text[REASON_TEXT_MAX], cure[64];
                        (void) snprintf(cure, sizeof(cure), "lessor adopt %u", pid);
                        assert_non_null(strstr(reason_text(&said->why, s.now_ms, text, sizeof(text)), cure));
                        scene_tick_to_s(&s, 3600);
                        assert_int_equal(scene_count_rule(&s, 0, a, RULE_MISSES_WORK), 1);
                }
                assert_runs(&s, a);
                scene_end(&s);
        }
}

static void of_several_the_one_that_came_first_behind_the_lease_is_named(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(4) });
        scene_tick_to_s(&s, 1);
        uint32_t first = scene_process_of(&s, ALICE, 0, 0, 0);
        scene_process_uses(&s, first, card, GiB(1), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_tick_to_s(&s, 2);
        uint32_t second = scene_process_of(&s, ALICE, 0, 0, 0);
        scene_process_uses(&s, second, card, GiB(8), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_tick_to_s(&s, 60);
        assert_int_equal(scene_count_rule(&s, 0, a, RULE_MISSES_WORK), 1);
        assert_int_equal(scene_last(&s, a, ACTION_WARNING)->why.blockers[0].pid, first);
        scene_end(&s);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(lease_that_misses_its_work_says_so_once),
                cmocka_unit_test(of_several_the_one_that_came_first_behind_the_lease_is_named),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
