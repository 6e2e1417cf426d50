/* SPDX-License-Identifier: Apache-2.0 */
/* What goes on after something was lost: a card that falls off the bus, a reboot, time without the daemon. */
#include "scene.h"

static void comes_back(struct scene *s, uint32_t card)
{
        scene_device_health(s, card, DEVICE_OK);
        scene_look(s);
}

static const struct holder *holder_of(struct scene *s, uint64_t lease_id)
{
        const struct holder *h = world_holder_get(s->world, scene_lease(s, lease_id)->holder);

        assert_non_null(h);
        return h;
}

/* ---- a lost card ---- */

static void lost_card_that_is_back_has_its_orphan_as_an_orphan(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        uint32_t root = scene_process(&s, 0, scene_owner(&s, a), 0);
        scene_activate(&s, a, root, 0);
        scene_process_uses(&s, root, card, GiB(4), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_owner_ended(&s, a);
        assert_state(&s, a, LEASE_ORPHANED);

        scene_device_health(&s, card, DEVICE_LOST);
        assert_state(&s, a, LEASE_LOST); /* its command lives: it is not over */
        comes_back(&s, card);
        assert_state(&s, a, LEASE_ORPHANED);
        assert_bytes(scene_free(&s, card), GiB(16));

        scene_process_ends(&s, root);
        assert_gone(&s, a);
        assert_int_equal(scene_last(&s, a, ACTION_ENDED)->why.end, END_WORKERS_GONE);
        assert_bytes(scene_free(&s, card), GiB(24));
        scene_end(&s);
}

static void lost_card_that_is_back_has_no_orphan_that_nothing_ends(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        uint32_t worker = scene_process(&s, 0, scene_owner(&s, a), 0);
        scene_process_uses(&s, worker, card, GiB(4), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_owner_ended(&s, a);

        scene_device_health(&s, card, DEVICE_LOST);
        comes_back(&s, card);
        scene_process_ends(&s, worker);
        scene_tick_to_s(&s, 60);
        assert_gone(&s, a);
        assert_int_equal(scene_count(&s, 0, a, ACTION_ENDED), 1);
        assert_bytes(scene_free(&s, card), GiB(24));
        scene_end(&s);
}

static void orphan_whose_command_ends_while_its_card_is_lost_ends_then(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        uint32_t root = scene_process(&s, 0, scene_owner(&s, a), 0);
        scene_activate(&s, a, root, 0);
        scene_process_uses(&s, root, card, GiB(4), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_owner_ended(&s, a);
        scene_device_health(&s, card, DEVICE_LOST);
        assert_state(&s, a, LEASE_LOST);

        s.eyes_closed = true; /* a lost card is not read */
        scene_process_ends(&s, root);
        assert_gone(&s, a);
        assert_int_equal(scene_last(&s, a, ACTION_ENDED)->why.end, END_WORKERS_GONE);
        scene_end(&s);
}

static void owner_that_ends_while_its_card_is_lost_ends_its_lease_once(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        scene_uses(&s, a, GiB(4));
        scene_device_health(&s, card, DEVICE_LOST);
        assert_state(&s, a, LEASE_LOST);

        scene_owner_ended(&s, a);
        assert_gone(&s, a); /* nothing of it will ever be seen there again: it has nothing to drain */
        assert_int_equal(scene_count(&s, 0, a, ACTION_DRAINING), 0);
        assert_int_equal(scene_count(&s, 0, a, ACTION_ENDED), 1);
        scene_end(&s);
}

static void lost_card_with_a_fault_in_between_is_back_all_the_same(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                enum device_health between;
        } rows[] = {
                { "nothing between", DEVICE_LOST },
                { "a fault", DEVICE_FAULT },
                { "no memory figure", DEVICE_NO_MEMORY_READING },
        };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8) });
                scene_device_health(&s, card, DEVICE_LOST);
                scene_device_health(&s, card, rows[i].between);
                row_check(rows[i].name, scene_lease(&s, a)->state == LEASE_LOST);
                comes_back(&s, card);
                row_check(rows[i].name, scene_lease(&s, a)->state == LEASE_ACTIVE);
                row_check(rows[i].name, scene_free(&s, card) == GiB(16));
                scene_end(&s);
        }
        rows_end();
}

static void uncollected_grant_on_a_lost_card_waits_to_be_collected_when_it_is_back(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8), .uncollected = true });
        scene_device_health(&s, card, DEVICE_LOST);
        assert_state(&s, a, LEASE_LOST);
        scene_tick_to_s(&s, 100); /* nobody can use it meanwhile: this time is nobody's */
        comes_back(&s, card);
        assert_state(&s, a, LEASE_GRANTED);
        assert_true(holder_of(&s, a)->uncollected);

        scene_tick_to_s(&s, 159);
        assert_state(&s, a, LEASE_GRANTED);
        scene_tick_to_s(&s, 160);
        assert_gone(&s, a);
        assert_int_equal(scene_last(&s, a, ACTION_ENDED)->why.end, END_NOT_COLLECTED);
        assert_bytes(scene_free(&s, card), GiB(24));
        scene_end(&s);
}

static void uncollected_grant_is_collected_after_its_card_is_back(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8), .uncollected = true });
        scene_device_health(&s, card, DEVICE_LOST);
        comes_back(&s, card);
        scene_activate(&s, a, 0, 0);
        assert_runs(&s, a);
        assert_false(holder_of(&s, a)->uncollected);
        scene_tick_to_s(&s, 300);
        assert_runs(&s, a);
        scene_end(&s);
}

static void draining_lease_ends_with_its_card(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        scene_uses(&s, a, GiB(4));
        scene_release(&s, a);
        assert_state(&s, a, LEASE_DRAINING);

        scene_device_health(&s, card, DEVICE_LOST);
        assert_gone(&s, a);
        assert_int_equal(scene_count(&s, 0, a, ACTION_ENDED), 1);
        assert_int_equal(scene_last(&s, a, ACTION_ENDED)->why.end, END_RELEASED);
        scene_end(&s);
}

static void lease_released_on_a_lost_card_ends_at_once(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        scene_uses(&s, a, GiB(4));
        scene_device_health(&s, card, DEVICE_LOST);
        scene_release(&s, a);
        assert_gone(&s, a);
        assert_int_equal(scene_count(&s, 0, a, ACTION_DRAINING), 0);
        assert_int_equal(scene_last(&s, a, ACTION_ENDED)->why.end, END_RELEASED);
        scene_end(&s);
}

/* ---- a reboot ---- */

static void restart(struct scene *s, bool rebooted)
{
        struct input input = { .kind = INPUT_RESTART };

        input.restart.rebooted = rebooted;
        scene_step(s, &input);
}

static void reboot_ends_thousands_of_heartbeat_leases_in_one_step(void **state)
{
        (void) state;
        enum { USERS = 4, EACH = 1000, WAITING = 50 };
        struct scene s;
        scene_begin(&s);
        s.sparse_checks = true;
        uint32_t card = scene_device(&s, GiB(24));
        for (uint32_t i = 0; i < USERS * EACH; i++)
                assert_true(
                        scene_request(&s, (struct ask){ .bytes = MiB(1), .ttl_s = 100000, .uid = 2000 + i % USERS }) !=
                        0);
        uint64_t drains = scene_request(&s, (struct ask){ .bytes = MiB(1), .ttl_s = 100000 });
        scene_uses(&s, drains, MiB(1));
        scene_release(&s, drains);
        assert_state(&s, drains, LEASE_DRAINING);
        for (uint32_t i = 0; i < WAITING; i++)
                assert_waits(&s, scene_request(&s, (struct ask){ .bytes = GiB(24), .ttl_s = 100000 }));

        size_t since = s.n_log;
        s.eyes_closed = true;
        s.sparse_checks = false;
        restart(&s, true);
        assert_false(s.out->more); /* the daemon does nothing between that a client could see */
        assert_true(s.out->n >= USERS * EACH + WAITING + 1);
        assert_int_equal(scene_count(&s, since, 0, ACTION_ENDED), USERS * EACH + WAITING + 1);
        assert_int_equal(scene_count(&s, since, 0, ACTION_ORPHANED), 0);
        assert_true(scene_count(&s, since, 0, ACTION_READ) <= 1);
        for (size_t i = since; i < s.n_log; i++)
                if (s.log[i].kind == ACTION_ENDED)
                        assert_int_equal(s.log[i].why.end, s.log[i].lease_id == drains ? END_RELEASED : END_REBOOTED);
        for (uint32_t i = 0; i < s.world->n_leases; i++)
                assert_int_equal(s.world->lease_ids[i], 0);

        s.eyes_closed = false;
        s.n_rows = 0;
        scene_look(&s);
        assert_bytes(scene_free(&s, card), GiB(24));
        scene_end(&s);
}

static void orphan_with_its_command_known_ends_by_a_reboot(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        uint32_t root = scene_process(&s, 0, scene_owner(&s, a), 0);
        scene_activate(&s, a, root, 0);
        scene_process_uses(&s, root, card, GiB(4), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_owner_ended(&s, a);
        assert_state(&s, a, LEASE_ORPHANED);

        s.n_rows = 0;
        restart(&s, true);
        assert_gone(&s, a);
        assert_int_equal(scene_count(&s, 0, a, ACTION_ENDED), 1);
        assert_int_equal(scene_last(&s, a, ACTION_ENDED)->why.end, END_REBOOTED);
        scene_look(&s);
        assert_bytes(scene_free(&s, card), GiB(24));
        scene_end(&s);
}

static void lease_on_a_lost_card_ends_by_a_reboot(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        scene_device_health(&s, card, DEVICE_LOST);
        restart(&s, true);
        assert_gone(&s, a);
        assert_int_equal(scene_last(&s, a, ACTION_ENDED)->why.end, END_REBOOTED);
        scene_end(&s);
}

/* ---- time without the daemon ---- */

static void heartbeat_that_could_not_be_sent_while_the_daemon_was_away_is_not_missed(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(3), .ttl_s = 30 });
        scene_tick_to_s(&s, 20);
        s.now_ms += SECONDS(40);
        restart(&s, false);
        scene_tick_to_s(&s, 61);
        assert_runs(&s, a);
        scene_tick_to_s(&s, 70); /* 20 s before and 10 s after */
        assert_runs(&s, a);
        scene_tick_to_s(&s, 71);
        assert_gone(&s, a);
        assert_int_equal(scene_last(&s, a, ACTION_ENDED)->why.end, END_EXPIRED);
        scene_end(&s);
}

static void heartbeat_of_who_waits_is_not_missed_while_the_daemon_was_away(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        (void) scene_request(&s, (struct ask){ .bytes = GiB(20) });
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(20), .ttl_s = 30 });
        assert_waits(&s, b);
        s.now_ms += SECONDS(600);
        restart(&s, false);
        scene_tick_to_s(&s, 630);
        assert_waits(&s, b);
        scene_tick_to_s(&s, 631);
        assert_gone(&s, b);
        assert_int_equal(scene_last(&s, b, ACTION_ENDED)->why.end, END_EXPIRED);
        scene_end(&s);
}

static void grant_can_be_collected_for_60_s_of_the_time_the_daemon_was_there(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(3), .uncollected = true });
        scene_tick_to_s(&s, 50);
        s.now_ms += SECONDS(1000);
        restart(&s, false);
        scene_tick_to_s(&s, 1059);
        assert_state(&s, a, LEASE_GRANTED);
        scene_tick_to_s(&s, 1060);
        assert_gone(&s, a);
        assert_int_equal(scene_last(&s, a, ACTION_ENDED)->why.end, END_NOT_COLLECTED);
        scene_end(&s);
}

static void wait_is_not_over_by_time_the_daemon_was_away(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        (void) scene_request(&s, (struct ask){ .bytes = GiB(20) });
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(20), .wait_s = 60 });
        uint64_t forever = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        scene_tick_to_s(&s, 10);
        s.now_ms += SECONDS(100);
        restart(&s, false);
        scene_tick_to_s(&s, 159);
        assert_waits(&s, b);
        scene_tick_to_s(&s, 160);
        assert_gone(&s, b);
        assert_int_equal(scene_last(&s, b, ACTION_ENDED)->why.end, END_WAIT_OVER);
        scene_tick_to_s(&s, 400);
        assert_waits(&s, forever);
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lost_card_that_is_back_has_its_orphan_as_an_orphan),
                cmocka_unit_test(lost_card_that_is_back_has_no_orphan_that_nothing_ends),
                cmocka_unit_test(orphan_whose_command_ends_while_its_card_is_lost_ends_then),
                cmocka_unit_test(owner_that_ends_while_its_card_is_lost_ends_its_lease_once),
                cmocka_unit_test(lost_card_with_a_fault_in_between_is_back_all_the_same),
                cmocka_unit_test(uncollected_grant_on_a_lost_card_waits_to_be_collected_when_it_is_back),
                cmocka_unit_test(uncollected_grant_is_collected_after_its_card_is_back),
                cmocka_unit_test(draining_lease_ends_with_its_card),
                cmocka_unit_test(lease_released_on_a_lost_card_ends_at_once),
                cmocka_unit_test(reboot_ends_thousands_of_heartbeat_leases_in_one_step),
                cmocka_unit_test(orphan_with_its_command_known_ends_by_a_reboot),
                cmocka_unit_test(lease_on_a_lost_card_ends_by_a_reboot),
                cmocka_unit_test(heartbeat_that_could_not_be_sent_while_the_daemon_was_away_is_not_missed),
                cmocka_unit_test(heartbeat_of_who_waits_is_not_missed_while_the_daemon_was_away),
                cmocka_unit_test(grant_can_be_collected_for_60_s_of_the_time_the_daemon_was_there),
                cmocka_unit_test(wait_is_not_over_by_time_the_daemon_was_away),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
