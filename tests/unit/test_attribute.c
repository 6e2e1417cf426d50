/* SPDX-License-Identifier: Apache-2.0 */
/* Whose memory is it: processes that /proc names no more, that hold several leases, or that another lays claim to. */
#include "scene.h"

static struct holder *holder_of(struct scene *s, uint64_t lease_id)
{
        struct lease *lease = scene_lease(s, lease_id);

        assert_non_null(lease);
        struct holder *h = world_holder_get(s->world, lease->holder);
        assert_non_null(h);
        return h;
}

static uint64_t used_by(struct scene *s, uint64_t lease_id)
{
        return holder_of(s, lease_id)->used_bytes;
}

/* The driver goes on listing it, /proc does not: a row without a start time. */
static void row_loses_its_name(struct scene *s, uint32_t pid)
{
        for (uint32_t i = 0; i < s->n_rows; i++)
                if (s->rows[i].identity.pid == pid) {
                        s->rows[i].identity.start_ticks = 0;
                        s->rows[i].flags |= ROW_GHOST;
                }
}

static void dying_process_that_proc_names_no_more_stays_under_its_lease(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(10) });
        scene_uses(&s, a, GiB(10));

        uint32_t pid = scene_owner(&s, a);
        struct input ended = { .kind = INPUT_PROCESS_ENDED };
        ended.process_ended = world_process_find(s.world, scene_lease(&s, a)->binding.owner)->identity;
        row_loses_its_name(&s, pid);
        scene_step(&s, &ended);
        scene_look(&s);
        assert_bytes(scene_free(&s, card), GiB(14)); /* counted once, not as a stranger beside the promise */
        assert_bytes(used_by(&s, a), GiB(10));

        scene_owner_ended(&s, a);
        assert_state(&s, a, LEASE_DRAINING);
        assert_bytes(scene_free(&s, card), GiB(14));
        scene_look(&s);
        assert_state(&s, a, LEASE_DRAINING);

        scene_process_vanishes(&s, pid);
        assert_gone(&s, a);
        assert_bytes(scene_free(&s, card), GiB(24));
        assert_int_equal(scene_count(&s, 0, 0, ACTION_STRANGER), 0);
        scene_end(&s);
}

static void orphan_whose_worker_is_listed_without_a_name_stays_orphaned(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        uint32_t worker = scene_process(&s, 0, scene_owner(&s, a), 0);
        scene_process_uses(&s, worker, card, GiB(4), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_owner_ended(&s, a);
        assert_state(&s, a, LEASE_ORPHANED);

        row_loses_its_name(&s, worker);
        scene_look(&s);
        scene_look(&s);
        assert_state(&s, a, LEASE_ORPHANED);
        assert_bytes(used_by(&s, a), GiB(4));
        assert_bytes(scene_free(&s, card), GiB(16));
        assert_int_equal(scene_count(&s, 0, 0, ACTION_STRANGER), 0);

        scene_process_uses(&s, worker, card, GiB(4), ROW_USED_KNOWN | ROW_COMPUTE); /* named again */
        assert_state(&s, a, LEASE_ORPHANED);
        assert_bytes(scene_free(&s, card), GiB(16));
        scene_end(&s);
}

/* A number without a name that nobody had at the last look is nobody's. */
static void row_without_a_name_that_was_never_seen_is_a_stranger(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        s.rows[s.n_rows++] = (struct scene_row){
                { .pid = scene_owner(&s, a) }, GiB(3), card, ROW_USED_KNOWN | ROW_COMPUTE | ROW_GHOST
        };
        scene_look(&s);
        assert_bytes(used_by(&s, a), 0);
        assert_int_equal(scene_count_rule(&s, 0, 0, RULE_STRANGER_SEEN), 1);
        assert_bytes(scene_free(&s, card), GiB(13));
        scene_end(&s);
}

/* Two hours without lessord: the worker has ended, and its number is of a row that nobody can name. */
static void number_of_a_worker_that_nobody_watched_may_be_anothers_by_now(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        uint32_t worker = scene_process(&s, 0, scene_owner(&s, a), 0);
        scene_process_uses(&s, worker, card, GiB(4), ROW_USED_KNOWN | ROW_COMPUTE);
        assert_bytes(used_by(&s, a), GiB(4));

        row_loses_its_name(&s, worker);
        scene_restart(&s, (struct restart_facts){ 0 });
        scene_look(&s);
        assert_bytes(used_by(&s, a), 0);
        assert_bytes(scene_free(&s, card), GiB(12)); /* what is promised is still to be taken, beside what is there */
        assert_runs(&s, a);
        scene_end(&s);
}

static void process_with_a_lease_on_each_of_two_cards_has_its_memory_under_both(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t first = scene_device(&s, GiB(24)), second = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(10), .uuid = scene_uuid(&s, first) });
        uint32_t pid = scene_owner(&s, a);
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(10), .uuid = scene_uuid(&s, second), .pid = pid });
        scene_uses(&s, a, GiB(10));
        scene_process_uses(&s, pid, second, GiB(10), ROW_USED_KNOWN | ROW_COMPUTE);
        assert_bytes(used_by(&s, a), GiB(10));
        assert_bytes(used_by(&s, b), GiB(10));
        assert_bytes(scene_free(&s, first), GiB(14));
        assert_bytes(scene_free(&s, second), GiB(14));

        scene_release(&s, b); /* the process goes on, and so does its memory */
        scene_look(&s);
        scene_look(&s);
        scene_tick(&s);
        assert_state(&s, b, LEASE_DRAINING);
        assert_runs(&s, a);
        assert_bytes(used_by(&s, a), GiB(10));
        assert_bytes(scene_free(&s, second), GiB(14));
        assert_int_equal(scene_count(&s, 0, 0, ACTION_STRANGER), 0); /* an ex-holder drains, it is no stranger */
        assert_int_equal(scene_count_rule(&s, 0, 0, RULE_OTHER_DEVICE), 0);
        scene_end(&s);
}

static void process_that_asks_again_has_its_memory_under_the_new_lease(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(10) });
        uint32_t pid = scene_owner(&s, a);
        scene_uses(&s, a, GiB(10));
        scene_release(&s, a);
        assert_state(&s, a, LEASE_DRAINING);

        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(10), .pid = pid });
        scene_look(&s);
        assert_gone(&s, a);
        assert_runs(&s, b);
        assert_bytes(used_by(&s, b), GiB(10));
        assert_bytes(scene_free(&s, card), GiB(14)); /* not 4: it has these ten once */
        scene_end(&s);
}

/* Another process of the same tree that has not gone yet still drains the old lease. */
static void process_that_asks_again_takes_only_what_is_its_own_from_the_old_lease(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(10) });
        uint32_t pid = scene_owner(&s, a), other = scene_process(&s, 0, 1, 0);
        scene_uses(&s, a, GiB(4));
        scene_activate(&s, a, other, 0);
        scene_process_uses(&s, other, card, GiB(6), ROW_USED_KNOWN | ROW_COMPUTE);
        assert_bytes(used_by(&s, a), GiB(10));
        scene_release(&s, a);

        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(5), .pid = pid });
        scene_look(&s);
        assert_runs(&s, b);
        assert_state(&s, a, LEASE_DRAINING);
        assert_bytes(used_by(&s, a), GiB(6));
        assert_bytes(used_by(&s, b), GiB(4));
        assert_bytes(scene_free(&s, card), GiB(13)); /* 24 - 6 that drain - 5 */
        scene_end(&s);
}

static void child_with_a_lease_of_its_own_has_its_memory_under_that(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t outer = scene_request(&s, (struct ask){ .bytes = GiB(12) });
        uint32_t child = scene_process(&s, 0, scene_owner(&s, outer), 0);
        scene_process_uses(&s, child, card, MiB(300), ROW_USED_KNOWN | ROW_COMPUTE);
        assert_bytes(used_by(&s, outer), MiB(300));

        uint64_t inner = scene_request(&s, (struct ask){ .bytes = GiB(10), .pid = child });
        assert_runs(&s, inner);
        scene_process_uses(&s, child, card, GiB(10), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_look(&s);
        assert_bytes(used_by(&s, outer), 0);
        assert_bytes(used_by(&s, inner), GiB(10));
        assert_bytes(scene_free(&s, card), GiB(2));
        scene_end(&s);
}

/* Two leases of one program, filled one after the other by two workers, whose pids may come in any order. */
static void second_worker_fills_the_second_lease_whatever_its_pid(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint32_t first_pid, second_pid;
        } rows[] = { { "rising pids", 6000, 6001 }, { "falling pids", 6000, 300 } };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(10), .pid = 5000 });
                (void) scene_process(&s, rows[i].first_pid, 5000, 0);
                scene_process_uses(&s, rows[i].first_pid, card, GiB(10), ROW_USED_KNOWN | ROW_COMPUTE);
                uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(10), .pid = 5000 });
                (void) scene_process(&s, rows[i].second_pid, 5000, 0);
                scene_process_uses(&s, rows[i].second_pid, card, GiB(10), ROW_USED_KNOWN | ROW_COMPUTE);
                scene_look(&s);
                row_check(rows[i].name, used_by(&s, a) == GiB(10));
                row_check(rows[i].name, used_by(&s, b) == GiB(10));
                row_check(rows[i].name, scene_free(&s, card) == GiB(4));
                scene_end(&s);
        }
        rows_end();
}

static void process_of(struct scene *s, uint32_t pid, uint32_t uid, uint64_t cgroup_id)
{
        struct input input = { .kind = INPUT_PROCESS };

        input.process.identity = (struct identity){ pid, 7000 + (uint64_t) pid };
        input.process.uid = uid;
        input.process.ppid = 1;
        input.process.cgroup_id = cgroup_id;
        input.process.n_ancestors = 1;
        input.process.ancestors[0] = (struct identity){ 1, 1 };
        scene_step(s, &input);
}

static void cgroup_named_by_another_user_takes_no_memory_of_its_owner(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8), .uid = ALICE });
        scene_activate(&s, a, 0, 777);
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(10), .uid = BOB }); /* has more untaken than alice */
        scene_activate(&s, b, 0, 777);

        process_of(&s, 4000, ALICE, 777);
        scene_process_uses(&s, 4000, card, GiB(8), ROW_USED_KNOWN | ROW_COMPUTE);
        assert_bytes(used_by(&s, a), GiB(8));
        assert_bytes(used_by(&s, b), 0);
        assert_bytes(scene_free(&s, card), GiB(6)); /* bob still owes his 10 */

        process_of(&s, 4001, BOB, 777); /* his own there is his */
        scene_process_uses(&s, 4001, card, GiB(3), ROW_USED_KNOWN | ROW_COMPUTE);
        assert_bytes(used_by(&s, a), GiB(8));
        assert_bytes(used_by(&s, b), GiB(3));

        process_of(&s, 4002, CAROL, 777); /* and carol has no lease */
        scene_process_uses(&s, 4002, card, GiB(1), ROW_USED_KNOWN | ROW_COMPUTE);
        assert_int_equal(scene_count_rule(&s, 0, 0, RULE_STRANGER_SEEN), 1);
        assert_bytes(scene_free(&s, card), GiB(5));
        scene_end(&s);
}

/* As the eyes tell of it: whose token it carries, and whom it descends from. */
static void tell(struct scene *s, uint32_t pid, uint32_t uid, uint64_t token_id, struct identity ancestor, uint8_t link)
{
        struct input input = { .kind = INPUT_PROCESS };

        input.process.identity = (struct identity){ pid, 1000 + pid };
        input.process.uid = uid;
        input.process.token_id = token_id;
        input.process.n_ancestors = ancestor.pid ? 1 : 0;
        input.process.ancestors[0] = ancestor;
        input.process.links[0] = link;
        scene_step(s, &input);
        s->rows[s->n_rows++] = (struct scene_row){ input.process.identity, GiB(1), 0, ROW_USED_KNOWN | ROW_COMPUTE };
        scene_look(s);
}

static const struct process *process_told(struct scene *s, uint32_t pid)
{
        return world_process_find(s->world, (struct identity){ pid, 1000 + pid });
}

static void S09_stolen_token_stays_a_strangers(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(10) });

        tell(&s, 7001, 1000, a, (struct identity){ 1, 1 }, LINK_PARENT); /* the same user, and no child of it */
        tell(&s, 7002, 1001, a, (struct identity){ 1, 1 }, LINK_PARENT); /* another one's */
        tell(&s, 7003, 1000, a, (struct identity){ 0 }, LINK_PARENT);    /* nothing is known of its parents */
        for (uint32_t pid = 7001; pid <= 7003; pid++) {
                assert_true(ref_is_none(process_told(&s, pid)->lease));
                assert_int_equal(process_told(&s, pid)->attributed_by, ATTRIBUTED_NOT);
        }
        assert_int_equal(scene_count_rule(&s, 0, 0, RULE_STRANGER_SEEN), 3);
        assert_bytes(used_by(&s, a), 0);
        scene_end(&s);
}

static void token_chooses_among_leases_that_descent_proves(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(10) });
        uint32_t shell = scene_owner(&s, a);
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(2), .pid = shell });
        struct identity root = scene_lease(&s, a)->binding.owner;

        tell(&s, 7001, 1000, b, root, LINK_EVENT);
        assert_true(world_lease_get(s.world, process_told(&s, 7001)->lease) == scene_lease(&s, b));
        assert_int_equal(process_told(&s, 7001)->attributed_by, ATTRIBUTED_TOKEN);
        tell(&s, 7002, 1000, 0, root, LINK_SESSION); /* else the emptiest */
        assert_true(world_lease_get(s.world, process_told(&s, 7002)->lease) == scene_lease(&s, a));
        assert_int_equal(process_told(&s, 7002)->attributed_by, ATTRIBUTED_ANCESTOR);
        tell(&s, 7003, 1001, b, root,
             LINK_PARENT); /* a set-uid child: the descent counts, the token of another user does not */
        assert_true(world_lease_get(s.world, process_told(&s, 7003)->lease) == scene_lease(&s, a));
        scene_end(&s);
}

static void evidence_of_before_is_kept_when_less_can_be_seen_now(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(10) });
        struct identity root = scene_lease(&s, a)->binding.owner;

        tell(&s, 7001, 1000, 0, root, LINK_EVENT);
        struct input again = { .kind = INPUT_PROCESS };
        again.process.identity = (struct identity){ 7001, 8001 };
        again.process.uid = 1000;
        scene_step(&s, &again); /* new eyes: its parents are gone */
        assert_int_equal(process_told(&s, 7001)->n_ancestors, 1);
        assert_int_equal(process_told(&s, 7001)->links[0], LINK_EVENT);
        assert_true(world_lease_get(s.world, process_told(&s, 7001)->lease) == scene_lease(&s, a));
        assert_int_equal(process_told(&s, 7001)->attributed_by, ATTRIBUTED_ANCESTOR);
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(dying_process_that_proc_names_no_more_stays_under_its_lease),
                cmocka_unit_test(orphan_whose_worker_is_listed_without_a_name_stays_orphaned),
                cmocka_unit_test(row_without_a_name_that_was_never_seen_is_a_stranger),
                cmocka_unit_test(number_of_a_worker_that_nobody_watched_may_be_anothers_by_now),
                cmocka_unit_test(process_with_a_lease_on_each_of_two_cards_has_its_memory_under_both),
                cmocka_unit_test(process_that_asks_again_has_its_memory_under_the_new_lease),
                cmocka_unit_test(process_that_asks_again_takes_only_what_is_its_own_from_the_old_lease),
                cmocka_unit_test(child_with_a_lease_of_its_own_has_its_memory_under_that),
                cmocka_unit_test(second_worker_fills_the_second_lease_whatever_its_pid),
                cmocka_unit_test(cgroup_named_by_another_user_takes_no_memory_of_its_owner),
                cmocka_unit_test(S09_stolen_token_stays_a_strangers),
                cmocka_unit_test(token_chooses_among_leases_that_descent_proves),
                cmocka_unit_test(evidence_of_before_is_kept_when_less_can_be_seen_now),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
