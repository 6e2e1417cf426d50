/* SPDX-License-Identifier: Apache-2.0 */
/* A lease over what runs already: nothing is counted twice, nothing of anybody else comes along, and it can be let go. */
#include <stdio.h>
#include <string.h>
#include "scene.h"

#define COMPUTE (ROW_USED_KNOWN | ROW_COMPUTE)

/* All that the table has of a kind on a device. */
static uint64_t used_by(struct scene *s, enum holder_kind kind, uint32_t device, uint32_t *ret_n)
{
        uint64_t sum = 0;

        *ret_n = 0;
        for (uint32_t i = 0; i < s->world->n_holders; i++) {
                const struct holder *h = &s->world->holders[i];
                if (h->kind != kind || h->device != device)
                        continue;
                sum += h->used_bytes;
                ++*ret_n;
        }
        return sum;
}

#define assert_used(s, kind, device, n, bytes)                                                                         \
        do {                                                                                                           \
                uint32_t n_found_;                                                                                     \
                assert_bytes(used_by((s), (kind), (device), &n_found_), (bytes));                                      \
                assert_int_equal(n_found_, (n));                                                                       \
        } while (0)

static uint32_t runs(struct scene *s, uint32_t uid, uint32_t parent, uint64_t cgroup, uint32_t device, uint64_t bytes)
{
        uint32_t pid = scene_process_of(s, uid, 0, parent, cgroup);

        scene_process_uses(s, pid, device, bytes, COMPUTE);
        return pid;
}

/* ---- coming under it ---- */

static void what_runs_is_adopted_at_once_and_counted_once(void **state)
{
        (void) state;
        struct scene s;
        char text[256];
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t pid = runs(&s, ALICE, 0, 0, card, GiB(10));
        assert_used(&s, HOLDER_STRANGER, card, 1, GiB(10));
        assert_bytes(scene_free(&s, card), GiB(14));
        size_t since = s.n_log;
        s.eyes_closed = true; /* no look puts it right afterwards */
        uint64_t x = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid });
        assert_runs(&s, x);
        assert_bytes(scene_free(&s, card), GiB(14));
        assert_used(&s, HOLDER_STRANGER, card, 0, 0);
        assert_used(&s, HOLDER_LEASE, card, 1, GiB(10));
        s.eyes_closed = false;
        assert_kind(s.answer, ACTION_GRANTED);
        assert_rule(s.answer, RULE_ADOPTED);
        assert_bytes(s.answer.bytes, GiB(10));
        (void) reason_text(&s.answer.why, s.now_ms, text, sizeof(text));
        assert_string_equal(text, "adopted: it ran already and uses 10 GiB");
        assert_int_equal(scene_count(&s, since, x, ACTION_ACTIVE), 1);
        for (int look = 0; look < 3; look++) {
                assert_bytes(scene_free(&s, card), GiB(14));
                assert_bytes(scene_reserved(&s, card), GiB(10));
                assert_used(&s, HOLDER_STRANGER, card, 0, 0);
                assert_used(&s, HOLDER_LEASE, card, 1, GiB(10));
                scene_tick(&s);
                scene_look(&s);
        }
        assert_int_equal(scene_count(&s, since, 0, ACTION_STRANGER), 0); /* it neither came nor went */
        assert_int_equal(s.world->users[scene_lease(&s, x)->user].n_leases, 1);
        assert_bytes(s.world->users[scene_lease(&s, x)->user].held_bytes, GiB(10));
        scene_end(&s);
}

/* Who comes along with pid 1's child "root" of ALICE in cgroup 7, adopted with and without the cgroup. */
static void S09_children_and_cgroup_come_along_and_nobody_elses(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint32_t uid;
                bool child;
                uint64_t cgroup;
                bool alone, with_cgroup; /* comes along */
        } rows[] = {
                { "its child", ALICE, true, 8, true, true },
                { "in its cgroup", ALICE, false, 7, false, true },
                { "in another cgroup", ALICE, false, 8, false, false },
                { "somebody else's in its cgroup", BOB, false, 7, false, false },
                { "its child, as somebody else", BOB, true, 7, false, false },
                { "its child, as root", 0, true, 8, false, false },
        };
        for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(*rows); i++) {
                bool with_cgroup = i % 2 != 0, expected = with_cgroup ? rows[i / 2].with_cgroup : rows[i / 2].alone;
                print_message("# %s, %s\n", rows[i / 2].name, with_cgroup ? "cgroup" : "alone");
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                uint32_t root = runs(&s, ALICE, 0, 7, card, GiB(4));
                uint32_t other =
                        runs(&s, rows[i / 2].uid, rows[i / 2].child ? root : 0, rows[i / 2].cgroup, card, GiB(1));
                uint64_t x =
                        scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = root, .cgroup_id = with_cgroup ? 7 : 0 });
                assert_runs(&s, x);
                assert_bytes(scene_lease(&s, x)->bytes, expected ? GiB(5) : GiB(4));
                for (int look = 0; look < 3; look++) {
                        assert_used(&s, HOLDER_LEASE, card, 1, expected ? GiB(5) : GiB(4));
                        assert_used(&s, HOLDER_STRANGER, card, expected ? 0 : 1, expected ? 0 : GiB(1));
                        scene_tick_to_s(&s, (uint64_t) look + 1);
                        scene_look(&s);
                }
                /* Who comes later is judged the same way. */
                scene_process_ends(&s, other);
                (void) runs(&s, rows[i / 2].uid, rows[i / 2].child ? root : 0, rows[i / 2].cgroup, card, GiB(2));
                scene_look(&s);
                assert_used(&s, HOLDER_LEASE, card, 1, expected ? GiB(6) : GiB(4));
                scene_end(&s);
        }
}

static void adoption_that_may_not_be_is_refused_in_words_and_changes_nothing(void **state)
{
        (void) state;
        enum {
                FOREIGN,
                FOREIGN_UNSEEN,
                FOREIGN_ROOT,
                LEASED,
                LEASED_UNSEEN,
                LEASED_CHILD,
                SEVERAL,
                NOTHING,
                UNKNOWN_SIZE,
                GHOST,
                TOO_MUCH,
                NO_SUCH_CARD,
                N
        };
        static const struct {
                const char *name;
                enum rule rule;
                const char *words;
        } rows[N] = {
                [FOREIGN] = { "somebody else's", RULE_ADOPT_NOT_YOURS, "belongs to somebody else" },
                [FOREIGN_UNSEEN] = { "somebody else's, off the card", RULE_ADOPT_NOT_YOURS,
                                     "belongs to somebody else" },
                [FOREIGN_ROOT] = { "own child of somebody else's", RULE_ADOPT_NOT_YOURS, "belongs to somebody else" },
                [LEASED] = { "under a lease", RULE_ADOPT_LEASED, "under lease L1 already" },
                [LEASED_UNSEEN] = { "under a lease, not on the card yet", RULE_ADOPT_LEASED, "under lease L1 already" },
                [LEASED_CHILD] = { "its worker is under a lease", RULE_ADOPT_LEASED, "under lease L1 already" },
                [SEVERAL] = { "on two cards", RULE_ADOPT_SEVERAL, "on 2 devices" },
                [NOTHING] = { "no memory", RULE_NOTHING_TO_ADOPT, "--vram" },
                [UNKNOWN_SIZE] = { "unknown memory", RULE_NOTHING_TO_ADOPT, "--vram" },
                [GHOST] = { "never seen", RULE_NOTHING_TO_ADOPT, "--vram" },
                [TOO_MUCH] = { "more than is free", RULE_WOULD_WAIT, "needs 21 GiB, 20 GiB of 24 GiB is free" },
                [NO_SUCH_CARD] = { "an unknown card", RULE_UNKNOWN_DEVICE, "no such device" },
        };
        for (size_t i = 0; i < N; i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                char text[512];
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24)), other = scene_device(&s, GiB(24));
                struct ask ask = { .uid = ALICE };
                if (i == FOREIGN_UNSEEN || i == FOREIGN_ROOT) {
                        ask.pid = scene_process_of(&s, BOB, 0, 0, 0);
                        scene_process_uses(&s, ask.pid, card, GiB(1), COMPUTE);
                        if (i == FOREIGN_UNSEEN)
                                scene_process_vanishes(&s, ask.pid);
                        else
                                (void) runs(&s, ALICE, ask.pid, 0, card, GiB(1));
                        ask.bytes = GiB(2);
                } else if (i == LEASED_UNSEEN) {
                        ask.pid = scene_process_of(&s, ALICE, 0, 0, 0);
                        uint64_t lease = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(4) });
                        scene_activate(&s, lease, ask.pid, 0);
                        ask.bytes = GiB(2);
                } else if (i == LEASED || i == LEASED_CHILD) {
                        uint64_t lease = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(4) });
                        ask.pid = scene_process_of(&s, ALICE, 0, 0, 0);
                        uint32_t worker = scene_process_of(&s, ALICE, i == LEASED ? ask.pid : 0, ask.pid, 0);
                        scene_activate(&s, lease, worker, 0);
                        scene_process_uses(&s, worker, card, GiB(4), COMPUTE);
                } else {
                        ask.pid = scene_process_of(&s, i == FOREIGN ? BOB : ALICE, 0, 0, 0);
                        if (i == GHOST)
                                ask.pid = 4711;
                        else if (i != NOTHING)
                                scene_process_uses(&s, ask.pid, card, i == UNKNOWN_SIZE ? 0 : GiB(4),
                                                   i == UNKNOWN_SIZE ? ROW_COMPUTE : COMPUTE);
                        if (i == SEVERAL)
                                scene_process_uses(&s, ask.pid, other, GiB(4), COMPUTE);
                        if (i == TOO_MUCH) {
                                (void) scene_stranger(&s, card, GiB(4));
                                ask.bytes = GiB(21);
                        }
                        ask.uuid = i == NO_SUCH_CARD ? "GPU-nowhere" : NULL;
                }
                uint64_t free_before = scene_free(&s, card);
                uint32_t n_before = s.world->n_leases;
                assert_int_equal(scene_adopt(&s, ask), 0);
                assert_rule(s.answer, rows[i].rule);
                (void) reason_text(&s.answer.why, s.now_ms, text, sizeof(text));
                if (!strstr(text, rows[i].words))
                        fail_msg("\"%s\"", text);
                assert_bytes(scene_free(&s, card), free_before);
                assert_int_equal(s.world->n_leases, n_before);
                scene_end(&s);
        }
}

static void process_without_memory_is_adopted_with_the_size_it_will_need(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        (void) scene_stranger(&s, card, GiB(20));
        uint32_t pid = scene_process_of(&s, ALICE, 0, 0, 0);
        assert_int_equal(scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid, .bytes = GiB(5) }), 0);
        assert_rule(s.answer, RULE_WOULD_WAIT);
        uint64_t x = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid, .bytes = GiB(4) });
        assert_runs(&s, x);
        assert_bytes(scene_free(&s, card), 0);
        scene_process_uses(&s, pid, card, GiB(3), COMPUTE);
        assert_used(&s, HOLDER_LEASE, card, 1, GiB(3));
        scene_end(&s);
}

/* A MiB of rounding is no reason to promise what is not there (I1, I2). */
static void full_card_gives_not_even_a_mebibyte_to_who_has_nothing(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        (void) scene_stranger(&s, card, GiB(24));
        uint32_t pid = scene_process_of(&s, ALICE, 0, 0, 0);
        assert_int_equal(scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid, .bytes = MiB(1) }), 0);
        assert_rule(s.answer, RULE_WOULD_WAIT);
        scene_end(&s);
}

static void size_beyond_what_it_uses_needs_room_and_a_fresh_look(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint64_t bytes;
                uint64_t look_ago_s;
                bool granted;
        } rows[] = {
                { "what it uses", GiB(10), 0, true },
                { "what it uses, long not looked", GiB(10), 60, true },
                { "less than it uses, long not looked", GiB(3), 60, true },
                { "all that is free too", GiB(20), 0, true },
                { "all that is free too, long not looked", GiB(20), 60, false },
                { "a byte more, long not looked", GiB(10) + 1, 60, false },
                { "a byte more than is free", GiB(20) + 1, 0, false },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                uint32_t pid = runs(&s, ALICE, 0, 0, card, GiB(10));
                (void) scene_stranger(&s, card, GiB(4));
                s.eyes_closed = true;
                scene_tick_to_s(&s, rows[i].look_ago_s);
                size_t since = s.n_log;
                uint64_t x = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid, .bytes = rows[i].bytes });
                assert_int_equal(x != 0, rows[i].granted);
                if (!rows[i].granted)
                        assert_rule(s.answer, RULE_WOULD_WAIT);
                if (rows[i].look_ago_s != 0 && !rows[i].granted)
                        assert_int_equal(scene_count(&s, since, 0, ACTION_READ), 1); /* so that asking again helps */
                scene_end(&s);
        }
}

static void over_committed_card_is_adopted_from_while_the_promises_hold(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint64_t lease, mine, others; /* promised and not taken; used */
                bool granted;
        } rows[] = {
                { "not over-committed", GiB(4), GiB(10), GiB(10), true },
                { "over-committed by a stranger", GiB(10), GiB(10), GiB(10), true },
                { "promises to the last byte", GiB(14), GiB(10), GiB(4), true },
                { "more promises than there is (I1)", GiB(15), GiB(10), GiB(4), false },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                (void) scene_request(&s, (struct ask){ .bytes = rows[i].lease });
                uint32_t pid = runs(&s, ALICE, 0, 0, card, rows[i].mine);
                (void) scene_stranger(&s, card, rows[i].others);
                uint64_t free_before = scene_free(&s, card);
                uint64_t x = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid });
                assert_int_equal(x != 0, rows[i].granted);
                assert_true(scene_reserved(&s, card) <= GiB(24));
                assert_bytes(scene_free(&s, card), free_before);
                scene_end(&s);
        }
}

/* Its memory was in nobody's promise before, and the head claims all that is left. */
static void odd_figure_is_adopted_although_a_head_claims_the_rest(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(4), .slot_s = 600 });
        uint32_t pid = runs(&s, ALICE, 0, 0, card, GiB(10) + 4096);
        uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(12) });
        assert_waits(&s, head);
        assert_bytes(scene_head_claim(&s, card)->reserved_bytes, GiB(10) - 4096);
        uint64_t x = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid });
        assert_runs(&s, x);
        assert_true(scene_reserved(&s, card) <= GiB(24));
        scene_release(&s, a);
        assert_runs(&s, head);
        scene_end(&s);
}

static void lists_without_figures_take_the_named_size_and_only_that(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        s.cards[card].rows_unknown = true; /* WSL */
        uint32_t pid = runs(&s, ALICE, 0, 0, card, GiB(6));
        assert_int_equal(scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid }), 0);
        assert_rule(s.answer, RULE_NOTHING_TO_ADOPT);
        uint64_t x = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid, .bytes = GiB(8) });
        assert_runs(&s, x);
        assert_bytes(scene_free(&s, card), GiB(16)); /* max(6 used, 8 promised) */
        scene_look(&s);
        assert_bytes(scene_free(&s, card), GiB(16));
        scene_release(&s, x);
        assert_gone(&s, x);
        assert_bytes(scene_free(&s, card), GiB(18));
        scene_end(&s);
}

static void process_on_two_cards_is_adopted_once_for_each(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t one = scene_device(&s, GiB(24)), two = scene_device(&s, GiB(24));
        uint32_t pid = runs(&s, ALICE, 0, 0, one, GiB(4));
        scene_process_uses(&s, pid, two, GiB(6), COMPUTE);
        uint64_t a = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid, .uuid = scene_uuid(&s, one) });
        assert_runs(&s, a);
        scene_look(&s);
        assert_used(&s, HOLDER_STRANGER, two, 1, GiB(6));
        assert_null(scene_last_rule(&s, a, RULE_OTHER_DEVICE)); /* nobody granted it where it is */
        uint64_t b = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid, .uuid = scene_uuid(&s, two) });
        assert_runs(&s, b);
        for (int look = 0; look < 3; look++) {
                scene_look(&s);
                assert_used(&s, HOLDER_LEASE, one, 1, GiB(4));
                assert_used(&s, HOLDER_LEASE, two, 1, GiB(6));
        }
        assert_int_equal(scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid }), 0);
        assert_rule(s.answer, RULE_ADOPT_LEASED);
        scene_release(&s, b);
        scene_look(&s);
        assert_used(&s, HOLDER_LEASE, one, 1, GiB(4));
        assert_used(&s, HOLDER_STRANGER, two, 1, GiB(6));
        scene_process_ends(&s, pid);
        scene_owner_ended(&s, a);
        scene_look(&s);
        assert_gone(&s, a);
        assert_bytes(scene_free(&s, one) + scene_free(&s, two), GiB(48));
        scene_end(&s);
}

static void memory_of_a_dead_worker_is_not_adopted(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t root = runs(&s, ALICE, 0, 0, card, GiB(4)), worker = runs(&s, ALICE, root, 0, card, GiB(2));
        struct input ended = { .kind = INPUT_PROCESS_ENDED, .process_ended = { worker, 7000 + (uint64_t) worker } };
        scene_step(&s, &ended); /* the driver still lists it */
        uint64_t x = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = root });
        assert_bytes(scene_lease(&s, x)->bytes, GiB(4));
        scene_end(&s);
}

static void exclusive_adoption_is_alone_or_refused(void **state)
{
        (void) state;
        enum { ALONE, SCREEN, STRANGER, PROMISED, BESIDE_EXCLUSIVE, HIDDEN, N };
        static const struct {
                const char *name;
                bool granted;
        } rows[N] = {
                [ALONE] = { "nobody else", true },
                [SCREEN] = { "a screen", true },
                [STRANGER] = { "a stranger", false },
                [PROMISED] = { "a lease that has nothing yet", false },
                [BESIDE_EXCLUSIVE] = { "an exclusive lease", false },
                [HIDDEN] = { "memory of nobody", false },
        };
        for (size_t i = 0; i < N; i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                if (i == SCREEN)
                        (void) scene_graphics(&s, card, MiB(200));
                if (i == PROMISED)
                        (void) scene_request(&s, (struct ask){ .bytes = GiB(1) });
                if (i == BESIDE_EXCLUSIVE)
                        (void) scene_request(&s, (struct ask){ .exclusive = true });
                uint32_t pid = runs(&s, ALICE, 0, 0, card, GiB(4));
                if (i == STRANGER)
                        (void) scene_stranger(&s, card, MiB(1));
                if (i == HIDDEN)
                        s.cards[card].hidden_bytes = MiB(100);
                if (i == BESIDE_EXCLUSIVE) {
                        assert_int_equal(scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid }), 0);
                        assert_rule(s.answer, RULE_WOULD_WAIT);
                        assert_int_equal(s.answer.why.blockers[0].kind, BLOCKER_EXCLUSIVE);
                }
                uint64_t x = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid, .exclusive = true });
                assert_int_equal(x != 0, rows[i].granted);
                if (!rows[i].granted)
                        assert_rule(s.answer, RULE_WOULD_WAIT);
                else
                        assert_waits(&s, scene_request(&s, (struct ask){ .bytes = 1 }));
                scene_end(&s);
        }
}

static void nothing_is_adopted_beside_a_benchmark_although_there_is_room(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t screen = scene_graphics(&s, card, MiB(200));
        assert_runs(&s, scene_request(&s, (struct ask){ .exclusive = true }));
        scene_process_ends(&s, screen); /* its GiB is nobody's now */
        uint32_t pid = runs(&s, ALICE, 0, 0, card, MiB(100));
        assert_int_equal(scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid }), 0);
        assert_rule(s.answer, RULE_WOULD_WAIT);
        scene_end(&s);
}

static void what_an_ended_lease_left_is_adopted_and_not_drained_for_ever(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t old = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        uint32_t pid = scene_owner(&s, old);
        scene_uses(&s, old, GiB(8));
        scene_release(&s, old);
        assert_state(&s, old, LEASE_DRAINING);
        uint64_t free_before = scene_free(&s, card);
        uint64_t x = scene_adopt(&s, (struct ask){ .pid = pid });
        assert_runs(&s, x);
        assert_bytes(scene_free(&s, card), free_before);
        scene_look(&s);
        assert_gone(&s, old);
        assert_used(&s, HOLDER_LEASE, card, 1, GiB(8));
        scene_end(&s);
}

static void full_queue_keeps_nobody_from_adopting(void **state)
{
        (void) state;
        struct scene s;
        struct config config;
        memset(&config, 0, sizeof(config));
        config_defaults(&config);
        config.waiting_per_user_max = config.entries_max = 1;
        scene_begin_with(&s, &config);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t pid = runs(&s, ALICE, 0, 0, card, GiB(8));
        assert_waits(&s, scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(20) }));
        assert_runs(&s, scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid })); /* it never waits */
        scene_end(&s);
}

/* ---- its end ---- */

static void adopted_process_that_ends_ends_its_lease_once_it_is_off_the_card(void **state)
{
        (void) state;
        for (int order = 0; order < 2; order++) {
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                uint32_t pid = runs(&s, ALICE, 0, 0, card, GiB(10));
                uint64_t x = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid });
                struct input ended = { .kind = INPUT_PROCESS_ENDED, .process_ended = { pid, 7000 + (uint64_t) pid } };
                if (order == 0)
                        scene_step(&s, &ended); /* still listed: the driver is slow */
                scene_owner_ended(&s, x);
                if (order == 1)
                        scene_step(&s, &ended);
                assert_state(&s, x, LEASE_DRAINING); /* and no orphan of a command that is gone */
                assert_int_equal(scene_count(&s, 0, x, ACTION_ORPHANED), 0);
                assert_bytes(scene_free(&s, card), GiB(14));
                scene_process_vanishes(&s, pid);
                assert_gone(&s, x);
                assert_int_equal(scene_count(&s, 0, x, ACTION_ENDED), 1);
                assert_int_equal(scene_last(&s, x, ACTION_ENDED)->why.end, END_OWNER_EXITED);
                assert_bytes(scene_free(&s, card), GiB(24));
                scene_end(&s);
        }
}

static void adopted_process_whose_worker_outlives_it_leaves_an_orphan(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t root = runs(&s, ALICE, 0, 0, card, GiB(4)), worker = runs(&s, ALICE, root, 0, card, GiB(2));
        uint64_t x = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = root });
        assert_bytes(scene_lease(&s, x)->bytes, GiB(6));
        scene_process_ends(&s, root);
        scene_owner_ended(&s, x);
        assert_state(&s, x, LEASE_ORPHANED);
        scene_process_ends(&s, worker);
        assert_gone(&s, x);
        scene_end(&s);
}

/* The call of `lessor unadopt`, as the API makes it: a release with a reason of its own. */
static void letting_go_makes_strangers_of_them_again_and_counts_them_once(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint32_t uid;
                bool admin;
        } rows[] = { { "by its owner", ALICE, false }, { "by an administrator", BOB, true } };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                uint32_t root = runs(&s, ALICE, 0, 0, card, GiB(4)), worker = runs(&s, ALICE, root, 0, card, GiB(2));
                uint64_t last = 0;
                for (int round = 0; round < 3; round++) {
                        uint64_t x = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = root });
                        assert_runs(&s, x);
                        assert_true(x != last);
                        scene_look(&s);
                        scene_release_by(&s, x, rows[i].uid, rows[i].admin);
                        assert_gone(&s, x); /* nothing drains */
                        assert_int_equal(scene_last(&s, x, ACTION_ENDED)->why.end, END_UNADOPTED);
                        for (int look = 0; look < 3; look++) {
                                assert_used(&s, HOLDER_STRANGER, card, 2, GiB(6));
                                assert_used(&s, HOLDER_LEASE, card, 0, 0);
                                assert_bytes(scene_free(&s, card), GiB(18));
                                scene_look(&s);
                        }
                        const struct process *p =
                                world_process_find(s.world, (struct identity){ worker, 7000 + (uint64_t) worker });
                        assert_non_null(p);
                        assert_true(ref_is_none(p->lease));
                        last = x;
                }
                assert_int_equal(s.world->users[0].n_leases, 0);
                assert_bytes(s.world->users[0].held_bytes, 0);
                assert_int_equal(scene_count(&s, 0, 0, ACTION_STRANGER), 2); /* both came once */
                scene_release_by(&s, last, ALICE, false);
                assert_rule(s.answer, RULE_NOT_FOUND);
                scene_end(&s);
        }
}

static void letting_go_is_for_its_owner_only(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t pid = runs(&s, ALICE, 0, 0, card, GiB(4));
        uint64_t x = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid });
        scene_release_by(&s, x, BOB, false);
        assert_rule(s.answer, RULE_NOT_OWNER);
        assert_runs(&s, x);
        scene_end(&s);
}

static void adopted_lease_outlives_the_daemon(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t root = runs(&s, ALICE, 0, 0, card, GiB(4));
        (void) runs(&s, ALICE, root, 0, card, GiB(2));
        (void) runs(&s, BOB, root, 0, card, GiB(1));
        uint64_t x = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = root });
        scene_look(&s);
        s.now_ms += HOURS(2);
        scene_restart(&s, (struct restart_facts){ 0 });
        scene_eyes(&s, true);
        scene_look(&s);
        scene_tick_to_s(&s, 7210);
        assert_runs(&s, x);
        assert_used(&s, HOLDER_LEASE, card, 1, GiB(6));
        assert_used(&s, HOLDER_STRANGER, card, 1, GiB(1));
        scene_release(&s, x);
        assert_used(&s, HOLDER_STRANGER, card, 3, GiB(7));
        scene_end(&s);
}

static void adopted_lease_whose_card_is_lost_comes_back_with_it(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t pid = runs(&s, ALICE, 0, 0, card, GiB(4));
        uint64_t x = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid });
        scene_device_health(&s, card, DEVICE_LOST);
        assert_state(&s, x, LEASE_LOST);
        scene_device_health(&s, card, DEVICE_OK);
        scene_look(&s);
        assert_runs(&s, x);
        assert_used(&s, HOLDER_LEASE, card, 1, GiB(4));
        scene_device_health(&s, card, DEVICE_LOST);
        scene_release(&s, x);
        assert_gone(&s, x);
        scene_device_health(&s, card, DEVICE_OK);
        scene_look(&s);
        assert_used(&s, HOLDER_STRANGER, card, 1, GiB(4));
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_runs_is_adopted_at_once_and_counted_once),
                cmocka_unit_test(S09_children_and_cgroup_come_along_and_nobody_elses),
                cmocka_unit_test(adoption_that_may_not_be_is_refused_in_words_and_changes_nothing),
                cmocka_unit_test(process_without_memory_is_adopted_with_the_size_it_will_need),
                cmocka_unit_test(full_card_gives_not_even_a_mebibyte_to_who_has_nothing),
                cmocka_unit_test(size_beyond_what_it_uses_needs_room_and_a_fresh_look),
                cmocka_unit_test(over_committed_card_is_adopted_from_while_the_promises_hold),
                cmocka_unit_test(odd_figure_is_adopted_although_a_head_claims_the_rest),
                cmocka_unit_test(lists_without_figures_take_the_named_size_and_only_that),
                cmocka_unit_test(process_on_two_cards_is_adopted_once_for_each),
                cmocka_unit_test(memory_of_a_dead_worker_is_not_adopted),
                cmocka_unit_test(exclusive_adoption_is_alone_or_refused),
                cmocka_unit_test(nothing_is_adopted_beside_a_benchmark_although_there_is_room),
                cmocka_unit_test(what_an_ended_lease_left_is_adopted_and_not_drained_for_ever),
                cmocka_unit_test(full_queue_keeps_nobody_from_adopting),
                cmocka_unit_test(adopted_process_that_ends_ends_its_lease_once_it_is_off_the_card),
                cmocka_unit_test(adopted_process_whose_worker_outlives_it_leaves_an_orphan),
                cmocka_unit_test(letting_go_makes_strangers_of_them_again_and_counts_them_once),
                cmocka_unit_test(letting_go_is_for_its_owner_only),
                cmocka_unit_test(adopted_lease_outlives_the_daemon),
                cmocka_unit_test(adopted_lease_whose_card_is_lost_comes_back_with_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
