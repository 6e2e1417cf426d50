/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ending what was named beforehand to be ended, and nothing else: each order is to a living process of that lease (I3), at
 * most SIGTERM, grace, SIGKILL, and in any doubt there is none (S25, I4).
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "scene.h"

#define COMPUTE (ROW_USED_KNOWN | ROW_COMPUTE)
enum { GRACE_S = 60, GIVE_UP_S = 60 };

static const struct action *orders[64];

/* The orders since @since, in orders[]. */
static uint32_t ordered(struct scene *s, size_t since)
{
        uint32_t n = 0;

        for (size_t i = since; i < s->n_log; i++)
                if (s->log[i].kind == ACTION_HAND) {
                        assert_true(n < 64);
                        orders[n++] = &s->log[i];
                }
        return n;
}

static uint32_t ordered_to(struct scene *s, uint32_t pid, int signal)
{
        uint32_t n = 0;

        for (size_t i = 0; i < s->n_log; i++)
                n += s->log[i].kind == ACTION_HAND && s->log[i].process.pid == pid && s->log[i].signal == signal;
        return n;
}

#define assert_order(o, verb, sig, p)                                                                                  \
        do {                                                                                                           \
                assert_string_equal(hand_verb_name((enum hand_verb)(o)->hand), hand_verb_name(verb));                  \
                assert_int_equal((o)->signal, (sig));                                                                  \
                assert_int_equal((o)->process.pid, (p));                                                               \
        } while (0)

/* `lessor run`: a wrapper waits for a command that runs on the card. */
struct run {
        uint64_t lease;
        uint32_t wrapper, root;
};

static struct run run(struct scene *s, struct ask ask, uint64_t cgroup_id)
{
        struct run r = { .wrapper = scene_process(s, 0, 0, 0) };

        ask.pid = r.wrapper;
        ask.bytes = ask.bytes ? ask.bytes : GiB(8);
        r.lease = scene_request(s, ask);
        assert_runs(s, r.lease);
        r.root = scene_process(s, 0, r.wrapper, cgroup_id);
        scene_activate(s, r.lease, r.root, cgroup_id);
        scene_process_uses(s, r.root, scene_lease(s, r.lease)->device, GiB(2), COMPUTE);
        return r;
}

static uint32_t worker(struct scene *s, uint32_t parent, uint64_t cgroup_id)
{
        uint32_t pid = scene_process(s, 0, parent, cgroup_id);

        scene_process_uses(s, pid, 0, GiB(1), COMPUTE);
        return pid;
}

/* A process that is gone while the driver still lists it. */
static void dies(struct scene *s, uint32_t pid)
{
        struct input input = { .kind = INPUT_PROCESS_ENDED, .process_ended = { pid, 7000 + (uint64_t) pid } };

        scene_step(s, &input);
}

/* ---- kill_at_end ---- */

static void slot_that_is_over_ends_each_process_once_after_its_grace(void **state)
{
        (void) state;
        struct scene s;
        char text[256];
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        struct run r = run(&s, (struct ask){ .slot_s = 100, .kill_at_end = true }, 0);
        uint32_t a = worker(&s, r.root, 0);
        scene_tick_to_s(&s, 100);
        assert_int_equal(ordered(&s, 0), 0);
        scene_tick_to_s(&s, 101);
        assert_int_equal(ordered(&s, 0), 2);
        assert_order(orders[0], HAND_SIGNAL, SIGTERM, r.root);
        assert_order(orders[1], HAND_SIGNAL, SIGTERM, a);
        assert_int_equal(scene_count_rule(&s, 0, r.lease, RULE_END_ORDERED), 3); /* told once, and the two orders */
        (void) reason_text(&scene_last_rule(&s, r.lease, RULE_END_ORDERED)->why, s.now_ms, text, sizeof(text));
        assert_string_equal(text, "what is left of it is being ended: SIGTERM now, SIGKILL in 1 min");
        scene_tick_to_s(&s, 100 + GRACE_S);
        assert_int_equal(ordered(&s, 0), 2);
        uint32_t late = worker(&s, r.root, 0); /* a child per signal (F54) */
        size_t since = s.n_log;
        scene_tick_to_s(&s, 101 + GRACE_S);
        assert_int_equal(ordered(&s, since), 3);
        assert_order(orders[0], HAND_SIGNAL, SIGKILL, r.root);
        assert_order(orders[1], HAND_SIGNAL, SIGKILL, a);
        assert_order(orders[2], HAND_SIGNAL, SIGTERM, late);
        scene_process_ends(&s, r.root);
        scene_process_ends(&s, a);
        since = s.n_log;
        scene_tick_to_s(&s, 100 + 2 * GRACE_S);
        assert_int_equal(ordered(&s, since), 0);
        scene_tick_to_s(&s, 102 + 2 * GRACE_S);
        assert_int_equal(ordered(&s, since), 1);
        assert_order(orders[0], HAND_SIGNAL, SIGKILL, late);
        assert_int_equal(ordered_to(&s, r.wrapper, SIGTERM) + ordered_to(&s, r.wrapper, SIGKILL), 0);
        scene_process_ends(&s, late);
        scene_release(&s, r.lease);
        assert_gone(&s, r.lease);
        assert_bytes(scene_free(&s, 0), GiB(24));
        scene_end(&s);
}

/* Its memory comes back by that; to ask it to give way as well would be a second order to who is on its way out. */
static void who_is_being_ended_is_not_asked_to_give_way_too(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        struct run r =
                run(&s,
                    (struct ask){
                            .slot_s = 100, .kill_at_end = true, .named = WAY_OUT_BIT(WAY_OUT_RESTART), .priority = 4 },
                    0);
        scene_tick_to_s(&s, 101);
        assert_int_equal(ordered_to(&s, r.root, SIGTERM), 1);
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(20), .priority = 2, .uid = BOB });
        scene_tick_to_s(&s, 105);
        assert_waits(&s, b);
        assert_runs(&s, r.lease);
        assert_int_equal(scene_count(&s, 0, r.lease, ACTION_ASKED), 0);
        assert_int_equal(scene_count(&s, 0, b, ACTION_PLAN), 0);
        dies(&s, r.root);
        scene_process_ends(&s, r.root);
        scene_release(&s, r.lease);
        scene_look(&s);
        assert_runs(&s, b);
        scene_end(&s);
}

static void tree_with_a_cgroup_of_its_own_is_killed_whole_and_once(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        struct run r = run(&s, (struct ask){ .slot_s = 100, .kill_at_end = true }, 77);
        uint32_t a = worker(&s, r.root, 77), left = worker(&s, r.root, 5); /* moved to another cgroup */
        scene_tick_to_s(&s, 101);
        assert_int_equal(ordered(&s, 0), 3);
        assert_order(orders[1], HAND_SIGNAL, SIGTERM, a);
        assert_bytes(orders[1]->cgroup_id, 77);
        assert_order(orders[2], HAND_SIGNAL, SIGTERM, left);
        assert_bytes(orders[2]->cgroup_id, 0);
        size_t since = s.n_log;
        scene_tick_to_s(&s, 101 + GRACE_S);
        assert_int_equal(ordered(&s, since), 2);
        assert_order(orders[0], HAND_KILL_TREE, SIGKILL, r.root);
        assert_bytes(orders[0]->cgroup_id, 77);
        assert_order(orders[1], HAND_SIGNAL, SIGKILL, left); /* no cgroup kill reaches it */
        since = s.n_log;
        scene_tick_to_s(&s, 101 + GRACE_S + GIVE_UP_S + 10);
        assert_int_equal(ordered(&s, since), 0);
        scene_end(&s);
}

static void F52_cgroup_that_somebody_else_made_is_never_killed_whole(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t root = scene_process(&s, 0, 0, 9), sibling = scene_process(&s, 0, 0, 9);
        scene_process_uses(&s, root, card, GiB(2), COMPUTE);
        scene_process_uses(&s, sibling, card, GiB(1), COMPUTE);
        uint64_t x = scene_adopt(&s, (struct ask){ .pid = root, .cgroup_id = 9, .slot_s = 10, .kill_at_end = true });
        assert_runs(&s, x);
        scene_tick_to_s(&s, 12 + GRACE_S);
        assert_int_equal(ordered(&s, 0), 4);
        for (uint32_t i = 0; i < 4; i++) {
                assert_int_equal(orders[i]->hand, HAND_SIGNAL);
                assert_bytes(orders[i]->cgroup_id, 0);
        }
        assert_int_equal(ordered_to(&s, root, SIGKILL), 1);
        assert_int_equal(ordered_to(&s, sibling, SIGKILL), 1);
        scene_end(&s);
}

static void extension_before_the_end_is_in_time(void **state)
{
        (void) state;
        static const uint64_t at_s[] = { 99, 100 }; /* in its last second, and after it before anything was ordered */
        for (size_t i = 0; i < 2; i++) {
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                struct run r = run(&s, (struct ask){ .slot_s = 100, .kill_at_end = true }, 0);
                scene_tick_to_s(&s, at_s[i]);
                scene_change(&s, r.lease, (struct change){ .what = CHANGE_EXTEND, .slot_ms = SECONDS(100) });
                assert_kind(s.answer, ACTION_CHANGED);
                scene_tick_to_s(&s, at_s[i] == 99 ? 199 : 200);
                assert_int_equal(ordered(&s, 0), 0);
                scene_tick_to_s(&s, 202);
                assert_int_equal(ordered(&s, 0), 1);
                scene_end(&s);
        }
}

static void program_that_asked_for_itself_is_ended_too(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(2), .slot_s = 100, .kill_at_end = true });
        uint32_t pid = scene_owner(&s, x);
        scene_uses(&s, x, GiB(1));
        scene_tick_to_s(&s, 101 + GRACE_S);
        assert_int_equal(ordered(&s, 0), 2);
        assert_order(orders[0], HAND_SIGNAL, SIGTERM, pid);
        assert_order(orders[1], HAND_SIGNAL, SIGKILL, pid);
        scene_end(&s);
}

static void slot_that_is_over_without_a_word_of_killing_ends_nothing(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        struct run r = run(&s, (struct ask){ .slot_s = 100, .named = WAY_OUT_BIT(WAY_OUT_KILL) }, 0);
        (void) worker(&s, r.root, 0);
        scene_tick_to_s(&s, 1000);
        scene_owner_ended(&s, r.lease);
        scene_process_ends(&s, r.root);
        assert_state(&s, r.lease, LEASE_ORPHANED);
        scene_tick_to_s(&s, 2000);
        assert_int_equal(ordered(&s, 0), 0);
        scene_end(&s);
}

/* ---- kill_left ---- */

static void F54_what_a_command_left_is_ended_after_it(void **state)
{
        (void) state;
        enum { ORPHANED_LATER, ORPHANED_FIRST, RELEASED, N };
        static const char *const names[N] = { "command, then wrapper", "wrapper, then command", "released" };
        for (int i = 0; i < N; i++) {
                print_message("# %s\n", names[i]);
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                struct run r = run(&s, (struct ask){ .kill_left = true }, 0);
                uint32_t a = worker(&s, r.root, 0);
                scene_tick_to_s(&s, 50);
                if (i == ORPHANED_FIRST) {
                        scene_owner_ended(&s, r.lease);
                        assert_state(&s, r.lease, LEASE_ORPHANED);
                        scene_tick_to_s(&s, 300);
                        assert_int_equal(ordered(&s, 0), 0); /* the command lives: it is left by nobody (F46) */
                }
                scene_process_ends(&s, r.root);
                scene_tick_to_s(&s, scene_s(&s) + 5);
                if (i != ORPHANED_FIRST)
                        assert_int_equal(ordered(&s, 0), 0); /* the wrapper may start another */
                if (i == ORPHANED_LATER)
                        scene_owner_ended(&s, r.lease);
                if (i == RELEASED)
                        scene_release(&s, r.lease);
                assert_string_equal(scene_state(&s, r.lease), i == RELEASED ? "draining" : "orphaned");
                scene_tick_to_s(&s, scene_s(&s) + 1);
                assert_int_equal(ordered(&s, 0), 1);
                assert_order(orders[0], HAND_SIGNAL, SIGTERM, a);
                scene_tick_to_s(&s, scene_s(&s) + GRACE_S);
                assert_int_equal(ordered(&s, 0), 2);
                assert_order(orders[1], HAND_SIGNAL, SIGKILL, a);
                scene_process_ends(&s, a);
                assert_gone(&s, r.lease);
                assert_bytes(scene_free(&s, 0), GiB(24));
                scene_end(&s);
        }
}

static void living_command_is_never_what_was_left(void **state)
{
        (void) state;
        enum { WRAPPED_RELEASED, OWN_RELEASED, OWN_WORKER_RELEASED, CONNECTION_CLOSED, HEARTBEAT_STOPPED, N };
        static const char *const names[N] = {
                [WRAPPED_RELEASED] = "released while its command runs",
                [OWN_RELEASED] = "released by the program that has the memory",
                [OWN_WORKER_RELEASED] = "released by a program whose worker has memory",
                [CONNECTION_CLOSED] = "its connection closed, the program runs",
                [HEARTBEAT_STOPPED] = "its heartbeat stopped, the program and its worker run",
        };
        for (int i = 0; i < N; i++) {
                print_message("# %s\n", names[i]);
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                uint64_t x;
                if (i == WRAPPED_RELEASED) {
                        x = run(&s, (struct ask){ .kill_left = true }, 0).lease;
                } else {
                        x = scene_request(&s, (struct ask){ .bytes = GiB(4),
                                                            .kill_left = true,
                                                            .connection = i == CONNECTION_CLOSED,
                                                            .ttl_s = i == HEARTBEAT_STOPPED ? 30 : 0 });
                        uint32_t owner = scene_owner(&s, x);
                        scene_uses(&s, x, GiB(1));
                        if (i == OWN_WORKER_RELEASED || i == HEARTBEAT_STOPPED)
                                (void) worker(&s, owner, 0);
                }
                if (i == CONNECTION_CLOSED)
                        scene_owner_ended(&s, x);
                else if (i != HEARTBEAT_STOPPED)
                        scene_release(&s, x);
                scene_tick_to_s(&s, 300);
                assert_string_equal(scene_state(&s, x), i == HEARTBEAT_STOPPED ? "orphaned" : "draining");
                assert_int_equal(ordered(&s, 0), 0);
                scene_end(&s);
        }
}

static void orphan_whose_owner_is_back_is_left_alone(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(4), .kill_left = true, .ttl_s = 30 });
        uint32_t a = worker(&s, scene_owner(&s, x), 0); /* the owner itself is not on the card, nor seen */
        scene_tick_to_s(&s, 33);
        assert_state(&s, x, LEASE_ORPHANED);
        assert_int_equal(ordered_to(&s, a, SIGTERM), 1);
        scene_renew(&s, x);
        assert_runs(&s, x);
        for (uint64_t t = 40; t <= 200; t += 20) {
                scene_tick_to_s(&s, t);
                scene_renew(&s, x);
        }
        assert_int_equal(ordered_to(&s, a, SIGKILL), 0);
        scene_tick_to_s(&s, 240); /* silent again: from the beginning */
        assert_int_equal(ordered_to(&s, a, SIGTERM), 2);
        scene_end(&s);
}

static void I3_others_are_never_touched(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24)), two = scene_device(&s, GiB(24));
        struct run r = run(&s, (struct ask){ .kill_left = true, .uuid = scene_uuid(&s, card) }, 0);
        struct run other = run(&s, (struct ask){ .uuid = scene_uuid(&s, card) }, 0);
        struct run inner = { .wrapper = 0 };
        uint32_t left = worker(&s, r.root, 0), others = worker(&s, other.root, 0);
        uint32_t stranger = scene_stranger(&s, card, GiB(1));
        /* A child that asked for a lease of its own, and one that works under another lease on the other card too. */
        inner.root = scene_process(&s, 0, r.root, 0);
        inner.lease =
                scene_request(&s, (struct ask){ .bytes = GiB(2), .pid = inner.root, .uuid = scene_uuid(&s, card) });
        scene_process_uses(&s, inner.root, card, GiB(1), COMPUTE);
        uint32_t both = worker(&s, r.root, 0);
        uint64_t second = scene_request(&s, (struct ask){ .bytes = GiB(2), .uuid = scene_uuid(&s, two) });
        scene_activate(&s, second, both, 0);
        scene_process_uses(&s, both, two, GiB(1), COMPUTE);
        scene_look(&s);
        /* The same tree has a lease on each card, and only one of them ends. */
        uint64_t third =
                scene_request(&s, (struct ask){ .bytes = GiB(2), .pid = r.wrapper, .uuid = scene_uuid(&s, two) });
        scene_activate(&s, third, r.root, 0);
        uint32_t on_two = worker(&s, r.root, 0);
        scene_process_uses(&s, on_two, two, GiB(1), COMPUTE);
        scene_look(&s);
        assert_bytes(s.world->leases[world_process_find(s.world, (struct identity){ on_two, 7000 + (uint64_t) on_two })
                                             ->lease.index]
                             .id,
                     r.lease);

        scene_process_ends(&s, r.root);
        scene_release(&s, r.lease);
        scene_tick_to_s(&s, 10 + 2 * GRACE_S);
        const uint32_t never[] = { r.wrapper, other.wrapper, other.root, others, stranger, inner.root, both, on_two };
        for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++)
                if (ordered_to(&s, never[i], SIGTERM) + ordered_to(&s, never[i], SIGKILL) != 0)
                        fail_msg("the %zu. was signalled", i);
        assert_int_equal(ordered_to(&s, left, SIGTERM), 1);
        assert_int_equal(ordered_to(&s, left, SIGKILL), 1);
        scene_end(&s);
}

/* ---- doubt ---- */

static void S25_in_any_doubt_nothing_is_ordered_and_later_it_goes_on(void **state)
{
        (void) state;
        enum { SILENT, DEGRADED, N };
        for (int i = 0; i < 2 * N; i++) {
                bool in_the_middle = i >= N;
                print_message("# %s, %s\n", i % N == SILENT ? "driver silent" : "books damaged",
                              in_the_middle ? "after SIGTERM" : "from before the end on");
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                struct run r = run(&s, (struct ask){ .slot_s = 100, .kill_at_end = true }, 0);
                uint32_t a = worker(&s, r.root, 0);
                scene_tick_to_s(&s, in_the_middle ? 110 : 90);
                assert_int_equal(ordered(&s, 0), in_the_middle ? 2 : 0);
                if (i % N == SILENT) {
                        scene_eyes(&s, false);
                } else {
                        scene_restart(&s, (struct restart_facts){ .degraded = true });
                        scene_eyes(&s, true);
                }
                size_t since = s.n_log;
                scene_tick_to_s(&s, 400);
                assert_int_equal(ordered(&s, since), 0);
                assert_int_equal(scene_count_rule(&s, since, 0, RULE_END_ORDERED), 0); /* nor is it said to be done */
                if (i % N == DEGRADED)
                        scene_restart(&s, (struct restart_facts){ 0 });
                scene_eyes(&s, true);
                scene_look(&s);
                since = s.n_log;
                scene_tick_to_s(&s, 402);
                assert_int_equal(ordered(&s, since), 2);
                assert_order(orders[0], HAND_SIGNAL, in_the_middle ? SIGKILL : SIGTERM, r.root);
                assert_order(orders[1], HAND_SIGNAL, in_the_middle ? SIGKILL : SIGTERM, a);
                scene_end(&s);
        }
}

static void F44_restart_in_the_middle_goes_on_without_a_second_sigterm(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        struct run r = run(&s, (struct ask){ .slot_s = 100, .kill_at_end = true }, 0);
        uint32_t a = worker(&s, r.root, 0);
        scene_tick_to_s(&s, 110);
        scene_restart(&s, (struct restart_facts){ 0 });
        scene_eyes(&s, true);
        scene_tick_to_s(&s, 100 + GRACE_S);
        assert_int_equal(ordered(&s, 0), 2);
        scene_tick_to_s(&s, 101 + GRACE_S);
        assert_int_equal(ordered(&s, 0), 4);
        assert_int_equal(ordered_to(&s, a, SIGTERM), 1);
        assert_int_equal(ordered_to(&s, a, SIGKILL), 1);
        scene_end(&s);
}

/* It was decided and stored; then the daemon died before the hands were told, or before they answered. */
static void F44_kill_that_a_restart_may_have_swallowed_is_ordered_again(void **state)
{
        (void) state;
        static const uint64_t cgroups[] = { 0, 77 };
        for (size_t i = 0; i < 2; i++) {
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                struct run r = run(&s, (struct ask){ .slot_s = 100, .kill_at_end = true }, cgroups[i]);
                uint32_t a = worker(&s, r.root, cgroups[i]);
                scene_tick_to_s(&s, 101 + GRACE_S);
                uint32_t kills = ordered_to(&s, r.root, SIGKILL) + ordered_to(&s, a, SIGKILL);
                scene_restart(&s, (struct restart_facts){ 0 });
                scene_eyes(&s, true);
                scene_tick_to_s(&s, 103 + GRACE_S);
                assert_int_equal(ordered_to(&s, r.root, SIGKILL) + ordered_to(&s, a, SIGKILL), 2 * kills);
                assert_int_equal(ordered_to(&s, a, SIGTERM), 1);
                scene_tick_to_s(&s, 100 + GRACE_S + GIVE_UP_S);
                assert_int_equal(scene_count_rule(&s, 0, r.lease, RULE_UNKILLABLE), 0);
                scene_end(&s);
        }
}

static void who_was_not_seen_again_since_a_restart_is_not_ended_yet(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        struct run r = run(&s, (struct ask){ .kill_left = true }, 0);
        uint32_t a = worker(&s, r.root, 0);
        scene_owner_ended(&s, r.lease);
        scene_process_ends(&s, r.root);
        scene_restart(&s, (struct restart_facts){ 0 });
        scene_tick_to_s(&s, 30); /* its end may have been missed */
        assert_int_equal(ordered(&s, 0), 0);
        scene_eyes(&s, true);
        scene_tick_to_s(&s, 32);
        assert_int_equal(ordered(&s, 0), 1);
        assert_order(orders[0], HAND_SIGNAL, SIGTERM, a);
        scene_end(&s);
}

static void F48_process_that_ended_meanwhile_is_never_ordered_against(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        struct run r = run(&s, (struct ask){ .slot_s = 100, .kill_at_end = true }, 0);
        uint32_t a = worker(&s, r.root, 0);
        scene_tick_to_s(&s, 105);
        assert_int_equal(ordered(&s, 0), 2);
        dies(&s, a); /* still listed */
        size_t since = s.n_log;
        /* Its number is somebody else's now. */
        struct input reused = { .kind = INPUT_PROCESS,
                                .process = { .identity = { a, 99999 }, .uid = BOB, .n_ancestors = 1 } };
        reused.process.ancestors[0] = (struct identity){ 1, 1 };
        scene_step(&s, &reused);
        scene_tick_to_s(&s, 200);
        assert_int_equal(ordered(&s, since), 1);
        assert_order(orders[0], HAND_SIGNAL, SIGKILL, r.root);
        (void) card;
        scene_end(&s);
}

/* ---- outcomes ---- */

static void I4_what_could_not_be_tried_is_tried_again_and_is_no_strike(void **state)
{
        (void) state;
        struct scene s;
        char text[256];
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        struct run r = run(&s, (struct ask){ .slot_s = 100, .kill_at_end = true }, 0);
        scene_tick_to_s(&s, 101);
        for (int again = 0; again < 4; again++) {
                size_t since = s.n_log;
                scene_outcome(&s, scene_last(&s, r.lease, ACTION_HAND), OUTCOME_BLOCKED, HAND_WHY_AWAY);
                scene_tick_to_s(&s, scene_s(&s) + 9);
                assert_int_equal(ordered(&s, since), 0);
                scene_tick_to_s(&s, scene_s(&s) + 1);
                assert_int_equal(ordered(&s, since), 1);
                assert_order(orders[0], HAND_SIGNAL, SIGTERM, r.root); /* it had no grace yet */
        }
        assert_int_equal(scene_count_rule(&s, 0, r.lease, RULE_END_BLOCKED), 1);
        (void) reason_text(&scene_last_rule(&s, r.lease, RULE_END_BLOCKED)->why, s.now_ms, text, sizeof(text));
        assert_string_equal(text,
                            "it could not be ended yet: lessor-warden is not there; it is started again; tried again");
        uint64_t term_s = scene_s(&s);
        scene_outcome(&s, scene_last(&s, r.lease, ACTION_HAND), OUTCOME_DONE, HAND_WHY_NONE);
        scene_tick_to_s(&s, term_s + GRACE_S - 1);
        assert_int_equal(ordered_to(&s, r.root, SIGKILL), 0);
        scene_tick_to_s(&s, term_s + GRACE_S);
        assert_int_equal(ordered_to(&s, r.root, SIGKILL), 1);
        /* The kill is blocked: it is repeated, the SIGTERM is not. */
        uint32_t n_term = ordered_to(&s, r.root, SIGTERM);
        scene_outcome(&s, scene_last(&s, r.lease, ACTION_HAND), OUTCOME_BLOCKED, HAND_WHY_RATE);
        scene_tick_to_s(&s, term_s + GRACE_S + 10);
        assert_int_equal(ordered_to(&s, r.root, SIGKILL), 2);
        assert_int_equal(ordered_to(&s, r.root, SIGTERM), n_term);
        assert_int_equal(scene_count_rule(&s, 0, r.lease, RULE_UNKILLABLE), 0);
        scene_end(&s);
}

static void hands_that_know_of_no_grace_give_it_again(void **state)
{
        (void) state;
        static const uint64_t cgroups[] = { 0, 77 };
        for (size_t i = 0; i < 2; i++) {
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                struct run r = run(&s, (struct ask){ .slot_s = 100, .kill_at_end = true }, cgroups[i]);
                scene_tick_to_s(&s, 101 + GRACE_S);
                assert_int_equal(ordered_to(&s, r.root, SIGKILL), 1);
                scene_outcome(&s, scene_last(&s, r.lease, ACTION_HAND), OUTCOME_BLOCKED, HAND_WHY_GRACE);
                scene_tick_to_s(&s, 111 + GRACE_S);
                assert_int_equal(ordered_to(&s, r.root, SIGTERM), 2);
                scene_tick_to_s(&s, 110 + 2 * GRACE_S);
                assert_int_equal(ordered_to(&s, r.root, SIGKILL), 1);
                scene_tick_to_s(&s, 111 + 2 * GRACE_S);
                assert_int_equal(ordered_to(&s, r.root, SIGKILL), 2);
                scene_end(&s);
        }
}

/* Each process keeps its own count: what was blocked for one is not repeated for another. */
static void blocked_order_of_one_repeats_nothing_for_the_others(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        struct run r = run(&s, (struct ask){ .slot_s = 100, .kill_at_end = true }, 0);
        uint32_t a = worker(&s, r.root, 0);
        scene_tick_to_s(&s, 101 + GRACE_S);
        assert_int_equal(ordered(&s, 0), 4);
        assert_order(orders[3], HAND_SIGNAL, SIGKILL, a);
        scene_outcome(&s, orders[3], OUTCOME_BLOCKED, HAND_WHY_RATE);
        scene_tick_to_s(&s, 130 + GRACE_S);
        assert_int_equal(ordered_to(&s, r.root, SIGKILL), 1);
        assert_int_equal(ordered_to(&s, a, SIGTERM), 1);
        assert_int_equal(ordered_to(&s, a, SIGKILL), 2);
        scene_end(&s);
}

static void F55_process_that_does_not_end_is_told_once_and_stays_counted(void **state)
{
        (void) state;
        enum { NEVER_ENDS, SAID_BY_THE_HANDS, AFTER_A_BLOCKED_ONE, N };
        for (int i = 0; i < N; i++) {
                struct scene s;
                char text[256];
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                struct run r = run(&s, (struct ask){ .slot_s = 100, .kill_at_end = true }, 0);
                struct run other = run(&s, (struct ask){ .bytes = GiB(4) }, 0);
                scene_tick_to_s(&s, 101);
                if (i == AFTER_A_BLOCKED_ONE)
                        scene_outcome(&s, scene_last(&s, r.lease, ACTION_HAND), OUTCOME_BLOCKED, HAND_WHY_AWAY);
                scene_tick_to_s(&s, 120 + GRACE_S);
                assert_int_equal(ordered_to(&s, r.root, SIGKILL), 1);
                if (i == SAID_BY_THE_HANDS)
                        scene_outcome(&s, scene_last(&s, r.lease, ACTION_HAND), OUTCOME_FAILED, HAND_WHY_UNKILLABLE);
                scene_tick_to_s(&s, 1000);
                if (i == SAID_BY_THE_HANDS)
                        scene_outcome(&s, scene_last(&s, r.lease, ACTION_HAND), OUTCOME_FAILED, HAND_WHY_UNKILLABLE);
                assert_int_equal(scene_count_rule(&s, 0, r.lease, RULE_UNKILLABLE), 1);
                assert_int_equal(scene_last_rule(&s, r.lease, RULE_UNKILLABLE)->process.pid, r.root);
                (void) reason_text(&scene_last_rule(&s, r.lease, RULE_UNKILLABLE)->why, s.now_ms, text, sizeof(text));
                assert_non_null(strstr(text, "not even by SIGKILL; its memory stays counted"));
                assert_true(ordered(&s, 0) <= 3);
                assert_bytes(scene_free(&s, card), GiB(12));
                assert_runs(&s, r.lease);
                assert_runs(&s, other.lease);
                scene_end(&s);
        }
}

static void outcome_that_comes_late_or_for_nobody_changes_nothing(void **state)
{
        (void) state;
        enum { LEASE_GONE, PROCESS_GONE, OTHER_LEASE, ANSWERED_GONE, DONE_TWICE, N };
        for (int i = 0; i < N; i++) {
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                struct run r = run(&s, (struct ask){ .slot_s = 100, .kill_at_end = true }, 0);
                uint32_t a = worker(&s, r.root, 0);
                struct run other = run(&s, (struct ask){ .bytes = GiB(4) }, 0);
                scene_tick_to_s(&s, 101);
                assert_int_equal(ordered(&s, 0), 2);
                struct action order = *orders[1];
                if (i == LEASE_GONE) {
                        scene_process_ends(&s, a);
                        scene_process_ends(&s, r.root);
                        scene_release(&s, r.lease);
                        assert_gone(&s, r.lease);
                }
                if (i == PROCESS_GONE)
                        scene_process_ends(&s, a);
                if (i == OTHER_LEASE)
                        order.process = (struct identity){ other.root, 7000 + (uint64_t) other.root };
                size_t since = s.n_log;
                scene_outcome(&s, &order, i == DONE_TWICE ? OUTCOME_DONE : OUTCOME_BLOCKED,
                              i == ANSWERED_GONE ? HAND_WHY_GONE : HAND_WHY_RATE);
                if (i == DONE_TWICE)
                        scene_outcome(&s, &order, OUTCOME_DONE, HAND_WHY_NONE);
                assert_int_equal(s.n_log, since);
                assert_bytes(scene_lease(&s, other.lease)->ending_again_ms, 0);
                if (i != LEASE_GONE)
                        assert_bytes(scene_lease(&s, r.lease)->ending_again_ms, 0);
                scene_end(&s);
        }
}

static void lease_that_is_released_while_it_is_ended_is_ended_all_the_same(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        struct run r = run(&s, (struct ask){ .slot_s = 100, .kill_at_end = true }, 0);
        uint32_t a = worker(&s, r.root, 0);
        scene_tick_to_s(&s, 110);
        scene_process_ends(&s, r.root); /* it heard SIGTERM, its worker did not */
        scene_release(&s, r.lease);
        assert_state(&s, r.lease, LEASE_DRAINING);
        scene_tick_to_s(&s, 101 + GRACE_S);
        assert_int_equal(ordered_to(&s, a, SIGTERM), 1);
        assert_int_equal(ordered_to(&s, a, SIGKILL), 1);
        scene_process_ends(&s, a);
        assert_gone(&s, r.lease);
        scene_end(&s);
}

static void adopted_process_that_is_let_go_while_it_is_ended_is_ended_no_more(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t pid = scene_stranger(&s, card, GiB(2)), child = scene_process(&s, 0, pid, 0);
        scene_process_uses(&s, child, card, GiB(1), COMPUTE);
        uint64_t x = scene_adopt(&s, (struct ask){ .pid = pid, .slot_s = 10, .kill_at_end = true });
        scene_tick_to_s(&s, 20);
        assert_int_equal(ordered(&s, 0), 2);
        scene_release(&s, x);
        scene_tick_to_s(&s, 300);
        assert_int_equal(ordered(&s, 0), 2);
        /* Adopted again: from the beginning, with its whole grace. */
        x = scene_adopt(&s, (struct ask){ .pid = pid, .slot_s = 10, .kill_at_end = true });
        scene_tick_to_s(&s, 312);
        assert_int_equal(ordered_to(&s, pid, SIGTERM) + ordered_to(&s, child, SIGTERM), 4);
        assert_int_equal(ordered_to(&s, pid, SIGKILL) + ordered_to(&s, child, SIGKILL), 0);
        scene_end(&s);
}

static void next_command_of_a_lease_gets_its_own_grace(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        struct run r = run(&s, (struct ask){ .slot_s = 100, .kill_at_end = true }, 0);
        scene_tick_to_s(&s, 150);
        scene_process_ends(&s, r.root);
        uint32_t next = scene_process(&s, 0, r.wrapper, 0);
        scene_activate(&s, r.lease, next, 0);
        scene_process_uses(&s, next, 0, GiB(1), COMPUTE);
        scene_tick_to_s(&s, 152);
        assert_int_equal(ordered_to(&s, next, SIGTERM), 1);
        scene_tick_to_s(&s, 150 + GRACE_S);
        assert_int_equal(ordered_to(&s, next, SIGKILL), 0);
        scene_tick_to_s(&s, 152 + GRACE_S);
        assert_int_equal(ordered_to(&s, next, SIGKILL), 1);
        scene_end(&s);
}

static void command_that_is_not_on_the_card_is_ended_too(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(2), .slot_s = 10, .kill_at_end = true });
        scene_activate(&s, x, 4242, 0); /* nobody ever saw it with memory */
        scene_tick_to_s(&s, 11 + GRACE_S);
        assert_int_equal(ordered(&s, 0), 2);
        assert_order(orders[0], HAND_SIGNAL, SIGTERM, 4242);
        assert_order(orders[1], HAND_SIGNAL, SIGKILL, 4242);
        dies(&s, 4242);
        scene_tick_to_s(&s, 1000);
        assert_int_equal(ordered(&s, 0), 2);
        scene_end(&s);
}

/* F79: away is no grace that was given; asleep neither, but the clock of the core does not run then. */
static void F79_orders_after_a_long_absence_begin_with_sigterm(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        struct run r = run(&s, (struct ask){ .slot_s = 100, .kill_at_end = true }, 0);
        scene_tick_to_s(&s, 50);
        s.now_ms += HOURS(5);
        scene_restart(&s, (struct restart_facts){ 0 });
        scene_eyes(&s, true);
        for (uint64_t t = scene_s(&s) + 1, end = t + 30; t < end; t++) /* its end is told, then it is asked */
                scene_tick_to_s(&s, t);
        assert_int_equal(scene_count_rule(&s, 0, r.lease, RULE_SLOT_OVER), 1);
        assert_int_equal(ordered(&s, 0), 1);
        assert_order(orders[0], HAND_SIGNAL, SIGTERM, r.root);
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(slot_that_is_over_ends_each_process_once_after_its_grace),
                cmocka_unit_test(who_is_being_ended_is_not_asked_to_give_way_too),
                cmocka_unit_test(tree_with_a_cgroup_of_its_own_is_killed_whole_and_once),
                cmocka_unit_test(F52_cgroup_that_somebody_else_made_is_never_killed_whole),
                cmocka_unit_test(extension_before_the_end_is_in_time),
                cmocka_unit_test(program_that_asked_for_itself_is_ended_too),
                cmocka_unit_test(slot_that_is_over_without_a_word_of_killing_ends_nothing),
                cmocka_unit_test(F54_what_a_command_left_is_ended_after_it),
                cmocka_unit_test(living_command_is_never_what_was_left),
                cmocka_unit_test(orphan_whose_owner_is_back_is_left_alone),
                cmocka_unit_test(I3_others_are_never_touched),
                cmocka_unit_test(S25_in_any_doubt_nothing_is_ordered_and_later_it_goes_on),
                cmocka_unit_test(F44_restart_in_the_middle_goes_on_without_a_second_sigterm),
                cmocka_unit_test(F44_kill_that_a_restart_may_have_swallowed_is_ordered_again),
                cmocka_unit_test(who_was_not_seen_again_since_a_restart_is_not_ended_yet),
                cmocka_unit_test(F48_process_that_ended_meanwhile_is_never_ordered_against),
                cmocka_unit_test(I4_what_could_not_be_tried_is_tried_again_and_is_no_strike),
                cmocka_unit_test(hands_that_know_of_no_grace_give_it_again),
                cmocka_unit_test(blocked_order_of_one_repeats_nothing_for_the_others),
                cmocka_unit_test(F55_process_that_does_not_end_is_told_once_and_stays_counted),
                cmocka_unit_test(outcome_that_comes_late_or_for_nobody_changes_nothing),
                cmocka_unit_test(lease_that_is_released_while_it_is_ended_is_ended_all_the_same),
                cmocka_unit_test(adopted_process_that_is_let_go_while_it_is_ended_is_ended_no_more),
                cmocka_unit_test(next_command_of_a_lease_gets_its_own_grace),
                cmocka_unit_test(command_that_is_not_on_the_card_is_ended_too),
                cmocka_unit_test(F79_orders_after_a_long_absence_begin_with_sigterm),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
