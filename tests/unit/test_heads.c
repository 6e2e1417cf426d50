/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of queues while looks are awaited, cards change and many wait; and what is told of it, once. */
#include "scene.h"

#define RESTART WAY_OUT_BIT(WAY_OUT_RESTART)

static void assert_head_of(struct scene *s, uint64_t lease_id, uint32_t card)
{
        const struct entry *e = scene_entry(s, lease_id);

        assert_non_null(e);
        assert_true(e->is_head);
        assert_int_equal(e->head_device, card);
}

static void assert_no_head(struct scene *s, uint64_t lease_id)
{
        assert_non_null(scene_entry(s, lease_id));
        assert_false(scene_entry(s, lease_id)->is_head);
}

/* ---- heads and looks ---- */

static void head_keeps_its_card_while_somebody_waits_for_a_look_at_it(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t first = scene_device(&s, GiB(24)), second = scene_device(&s, GiB(24));
        (void) scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 600, .uuid = scene_uuid(&s, first) });
        (void) scene_request(&s, (struct ask){ .bytes = GiB(16), .uuid = scene_uuid(&s, second) });
        uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(20), .uid = ALICE });
        assert_head_of(&s, head, first);
        uint64_t start_ms = scene_entry(&s, head)->start_ms;
        scene_tick_to_s(&s, 10);

        size_t since = s.n_log;
        s.eyes_closed = true;
        s.now_ms += 1500; /* what was read is too old now */
        uint64_t passes = scene_request(
                &s, (struct ask){ .bytes = GiB(4), .priority = 2, .uid = BOB, .uuid = scene_uuid(&s, first) });
        assert_waits(&s, passes);
        assert_head_of(&s, head, first);
        assert_int_equal(scene_entry(&s, head)->start_ms, start_ms);
        assert_non_null(scene_head_claim(&s, first));
        assert_null(scene_head_claim(&s, second));

        s.eyes_closed = false;
        scene_look(&s);
        assert_runs(&s, passes);
        assert_head_of(&s, head, first);
        assert_int_equal(scene_entry(&s, head)->start_ms, start_ms);
        assert_int_equal(scene_count(&s, since, head, ACTION_WAITING), 0); /* nothing became of it, nothing is told */

        uint64_t behind =
                scene_request(&s, (struct ask){ .bytes = GiB(4), .uid = CAROL, .uuid = scene_uuid(&s, first) });
        assert_waits(&s, behind); /* it would delay the head */
        scene_end(&s);
}

static void head_moves_to_the_card_where_it_can_start_sooner(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t first = scene_device(&s, GiB(24)), second = scene_device(&s, GiB(24));
        (void) scene_request(&s, (struct ask){ .bytes = GiB(16), .uuid = scene_uuid(&s, first) });
        uint64_t endless = scene_request(&s, (struct ask){ .bytes = GiB(10), .uuid = scene_uuid(&s, second) });
        (void) scene_request(
                &s, (struct ask){ .bytes = GiB(10), .slot_s = 600, .uuid = scene_uuid(&s, second), .named = RESTART });
        uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(20), .uid = ALICE });
        assert_head_of(&s, head, first);
        assert_int_equal(scene_entry(&s, head)->start_ms, 0); /* nobody gave a limit */

        scene_release(&s, endless);
        scene_tick(&s);
        assert_head_of(&s, head, second);
        assert_int_equal(scene_entry(&s, head)->start_ms, SCENE_START_MS + SECONDS(600));
        assert_null(scene_head_claim(&s, first));
        assert_non_null(scene_head_claim(&s, second));
        assert_int_equal(scene_last(&s, head, ACTION_WAITING)->why.start_ms, SCENE_START_MS + SECONDS(600));

        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(6), .uid = BOB, .uuid = scene_uuid(&s, second) });
        assert_waits(&s, x); /* B5 */
        uint64_t y = scene_request(&s, (struct ask){ .bytes = GiB(6), .uid = BOB, .uuid = scene_uuid(&s, first) });
        assert_runs(&s, y); /* nobody is first there any more */
        scene_end(&s);
}

/* It waits on @card since the beginning of the scene, which is 1900 s old: nobody knows when it can start, and it blocks. */
static uint64_t blocks_a_card(struct scene *s, uint32_t card)
{
        (void) scene_request(s, (struct ask){ .bytes = GiB(16), .uuid = scene_uuid(s, card) });
        uint64_t blocks = scene_request(s, (struct ask){ .bytes = GiB(20), .uid = ALICE, .uuid = scene_uuid(s, card) });
        scene_tick_to_s(s, 1900);
        assert_head_of(s, blocks, card);
        return blocks;
}

/* The head of the other card stays before the older one (as it keeps its place), and the newcomer passes it. */
static void who_passes_the_head_of_one_card_does_not_jump_who_waits_for_another(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t first = scene_device(&s, GiB(24)), second = scene_device(&s, GiB(24));
        uint64_t blocks = blocks_a_card(&s, first);
        (void) scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 6000, .uuid = scene_uuid(&s, second) });
        uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(20), .uid = BOB, .uuid = scene_uuid(&s, second) });
        assert_head_of(&s, head, second);
        uint64_t comes = scene_request(
                &s, (struct ask){ .bytes = GiB(6), .priority = 2, .uid = CAROL, .uuid = scene_uuid(&s, first) });
        assert_waits(&s, comes);
        assert_int_equal(s.answer.why.place, 2);
        assert_head_of(&s, blocks, first);
        scene_end(&s);
}

/* The same where the older one may go to both cards, and stands behind the head of the second there. */
static void who_passes_the_head_of_one_card_does_not_jump_the_head_of_another(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t first = scene_device(&s, GiB(24)), second = scene_device(&s, GiB(20));
        (void) scene_request(&s, (struct ask){ .bytes = GiB(16), .uuid = scene_uuid(&s, first) });
        uint64_t blocks = scene_request(&s, (struct ask){ .bytes = GiB(21), .uid = ALICE });
        scene_tick_to_s(&s, 1900);
        assert_head_of(&s, blocks, first);
        (void) scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 6000, .uuid = scene_uuid(&s, second) });
        uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(19), .uid = BOB, .uuid = scene_uuid(&s, second) });
        assert_head_of(&s, head, second);
        uint64_t comes = scene_request(
                &s, (struct ask){ .bytes = GiB(6), .priority = 2, .uid = CAROL, .uuid = scene_uuid(&s, first) });
        assert_waits(&s, comes);
        assert_head_of(&s, blocks, first);
        scene_end(&s);
}

/* It may go to both, and stands behind the head of the second; on the first that is no reason to let a younger one go ahead. */
static void who_stands_behind_the_head_of_one_card_keeps_its_place_on_another(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t first = scene_device(&s, GiB(24)), second = scene_device(&s, GiB(8));
        uint64_t leaves = scene_request(&s, (struct ask){ .bytes = GiB(20), .uuid = scene_uuid(&s, first) });
        uint64_t old = scene_request(&s, (struct ask){ .bytes = GiB(14), .uid = ALICE });
        scene_tick_to_s(&s, 3700); /* it has blocked as long as it may, and stepped aside */
        assert_no_head(&s, old);
        uint64_t young = scene_request(&s, (struct ask){ .bytes = GiB(14), .uid = BOB, .uuid = scene_uuid(&s, first) });
        (void) scene_request(&s, (struct ask){ .bytes = GiB(6), .slot_s = 6000, .uuid = scene_uuid(&s, second) });
        uint64_t head =
                scene_request(&s, (struct ask){ .bytes = GiB(7), .uid = CAROL, .uuid = scene_uuid(&s, second) });
        assert_head_of(&s, head, second);
        scene_release(&s, leaves);
        assert_runs(&s, old);
        assert_waits(&s, young);
        scene_end(&s);
}

/* Memory is being taken back for it on the second card: that is no place before those who wait for the first. */
static void plan_on_one_card_is_no_right_to_jump_who_waits_for_another(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t first = scene_device(&s, GiB(24)), second = scene_device(&s, GiB(24));
        uint64_t blocks = blocks_a_card(&s, first);
        uint64_t gives = scene_request(
                &s, (struct ask){ .bytes = GiB(20), .priority = 4, .named = RESTART, .uuid = scene_uuid(&s, second) });
        scene_uses(&s, gives, GiB(20));
        uint64_t comes = scene_request(&s, (struct ask){ .bytes = GiB(6), .priority = 2, .uid = CAROL });
        assert_state(&s, gives, LEASE_ASKING);
        scene_tick_to_s(&s, 1905);
        assert_waits(&s, comes);
        assert_head_of(&s, blocks, first);
        scene_end(&s);
}

/* Each would start sooner on the first card, if the other were not its head. */
static void heads_of_two_cards_stay_where_they_are_while_only_time_passes(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t first = scene_device(&s, GiB(24)), second = scene_device(&s, GiB(24));
        (void) scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 6000, .uuid = scene_uuid(&s, first) });
        (void) scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 9000, .uuid = scene_uuid(&s, second) });
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(20), .uid = ALICE });
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(20), .uid = BOB });
        assert_head_of(&s, a, first);
        assert_head_of(&s, b, second);

        size_t since = s.n_log;
        scene_tick_to_s(&s, 1300); /* across a change of rank */
        assert_head_of(&s, a, first);
        assert_head_of(&s, b, second);
        assert_int_equal(scene_count(&s, since, 0, ACTION_WAITING), 0);
        scene_end(&s);
}

static void card_that_cannot_be_read_keeps_nobody_from_another(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                bool unsettled, silent;
        } rows[] = {
                { "never at rest", true, false },
                { "never answers", false, true },
        };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                scene_begin(&s);
                uint32_t bad = scene_device(&s, GiB(24)), good = scene_device(&s, GiB(24));
                s.cards[bad].unsettled = rows[i].unsettled;
                s.eyes_closed = true;
                s.now_ms += 5000;
                scene_tick(&s);
                uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8) });
                assert_waits(&s, a);

                for (int round = 0; round < 3; round++) { /* the eyes answer what they can */
                        bool asked[2] = { false };
                        for (size_t k = 0; k < s.n_log; k++)
                                if (s.log[k].kind == ACTION_READ)
                                        asked[s.log[k].device] = true;
                        if (asked[bad] && !rows[i].silent)
                                scene_look_at(&s, bad);
                        if (asked[good])
                                scene_look_at(&s, good);
                }
                row_check(rows[i].name, scene_lease(&s, a)->state == LEASE_ACTIVE);
                row_check(rows[i].name, scene_lease(&s, a)->device == good);
                scene_end(&s);
        }
        rows_end();
}

static void looks_that_cannot_be_used_are_not_followed_by_looks_without_end(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        s.cards[card].unsettled = true;
        s.eyes_closed = true;
        s.now_ms += 5000;
        size_t since = s.n_log;
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(1) });
        assert_int_equal(scene_count(&s, since, 0, ACTION_READ), 1); /* who comes newly has its look at once */

        since = s.n_log;
        for (int i = 0; i < 50; i++)
                scene_look_at(&s, card);
        assert_int_equal(scene_count(&s, since, 0, ACTION_READ), 0);

        for (int i = 0; i < 1000; i++) { /* a second of answers as fast as they come */
                s.now_ms++;
                scene_look_at(&s, card);
        }
        assert_true(scene_count(&s, since, 0, ACTION_READ) <= 10);
        assert_waits(&s, a);

        s.cards[card].unsettled = false;
        scene_look_at(&s, card);
        assert_runs(&s, a);
        scene_end(&s);
}

/* ---- going ahead of a head ---- */

static void nobody_goes_ahead_of_a_head_that_could_start_now_by_the_promise_to_give_way(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 600 });
        uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(20), .uid = ALICE });
        uint64_t ahead = scene_request(&s, (struct ask){ .bytes = GiB(8), .uid = BOB, .named = RESTART });
        assert_runs(&s, ahead);
        assert_rule(*scene_last(&s, ahead, ACTION_GRANTED), RULE_RECLAIMABLE);

        scene_tick_to_s(&s, 600);
        scene_lease(&s, ahead)->park.not_before_ms = UINT64_MAX; /* and it cannot be tried */
        scene_release(&s, a);
        assert_head_of(&s, head, card); /* all that is in its way now has promised to give way */
        assert_true(scene_entry(&s, head)->start_ms != 0 && scene_entry(&s, head)->start_ms <= s.now_ms);

        uint64_t named = scene_request(&s, (struct ask){ .bytes = GiB(16), .uid = BOB, .named = RESTART });
        uint64_t proven = scene_request(
                &s, (struct ask){ .bytes = GiB(5), .uid = BOB, .proven = WAY_OUT_BIT(WAY_OUT_CHECKPOINT) });
        assert_waits(&s, named);
        assert_waits(&s, proven);
        scene_tick_to_s(&s, 20000);
        assert_waits(&s, named);
        assert_waits(&s, proven);
        assert_head_of(&s, head, card);

        scene_release(&s, ahead);
        assert_state(&s, head, LEASE_ACTIVE);
        scene_end(&s);
}

static void who_fits_beside_a_head_that_could_start_now_still_goes_ahead(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 600 });
        uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(20), .uid = ALICE });
        uint64_t ahead = scene_request(&s, (struct ask){ .bytes = GiB(8), .uid = BOB, .named = RESTART });
        scene_tick_to_s(&s, 60);
        scene_lease(&s, ahead)->park.not_before_ms = UINT64_MAX; /* it cannot be tried now */
        scene_release(&s, a);
        assert_waits(&s, head);

        uint64_t beside = scene_request(&s, (struct ask){ .bytes = GiB(4), .uid = CAROL });
        assert_runs(&s, beside);
        assert_rule(*scene_last(&s, beside, ACTION_GRANTED), RULE_FITS_BESIDE);
        uint64_t no_more = scene_request(&s, (struct ask){ .bytes = MiB(1), .uid = CAROL, .named = RESTART });
        assert_waits(&s, no_more);
        scene_end(&s);
}

/* ---- what is told ---- */

static void claim_that_wobbles_with_the_memory_of_others_is_told_to_nobody(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        (void) scene_request(&s, (struct ask){ .bytes = GiB(10), .slot_s = 6000 });
        uint32_t stranger = scene_stranger(&s, card, GiB(1));
        uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(20), .uid = ALICE });
        assert_head_of(&s, head, card);

        size_t since = s.n_log;
        for (uint64_t i = 1; i <= 100; i++) {
                s.now_ms += 100;
                scene_process_uses(&s, stranger, card, GiB(1) + MiB(i % 7), ROW_USED_KNOWN | ROW_COMPUTE);
                assert_bytes(scene_head_claim(&s, card)->reserved_bytes, GiB(13) - MiB(i % 7));
        }
        assert_int_equal(scene_count(&s, since, 0, ACTION_WAITING), 0);
        assert_int_equal(s.n_log, since);
        scene_end(&s);
}

/* Ticks without actions are not kept: what a tick changes is said, or a replay would differ. */
static void claim_that_only_time_changed_is_told(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        (void) scene_request(&s, (struct ask){ .bytes = GiB(16) });
        uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        assert_null(scene_head_claim(&s, card));
        scene_tick_to_s(&s, 1799);
        size_t since = s.n_log;
        scene_tick_to_s(&s, 1800); /* it begins to block, and so to claim (B10) */
        assert_non_null(scene_head_claim(&s, card));
        assert_true(s.n_log > since);
        assert_int_equal(scene_count_rule(&s, since, head, RULE_BLOCKING_BEGAN), 1);
        scene_end(&s);
}

static void ceiling_that_falls_is_told_once_and_blocks_nobody(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(10), .slot_s = 600 });
        uint64_t all = scene_request(&s, (struct ask){ .bytes = GiB(24), .uid = ALICE });
        assert_head_of(&s, all, card);

        uint32_t desktop = scene_graphics(&s, card, MiB(100));
        assert_waits(&s, all); /* it was let in: it never fails, it waits, saying so */
        assert_no_head(&s, all);
        assert_null(scene_head_claim(&s, card));
        const struct action *told = scene_last(&s, all, ACTION_WAITING);
        assert_rule(*told, RULE_ABOVE_CEILING);
        assert_bytes(told->why.need_bytes, GiB(24));
        assert_bytes(told->why.ceiling_bytes, GiB(23));
        assert_int_equal(told->why.n_blockers, 1);
        assert_int_equal(told->why.blockers[0].kind, BLOCKER_DISPLAY);
        scene_release(&s, a);
        scene_tick_to_s(&s, HOURS(4) / 1000);
        assert_int_equal(scene_count_rule(&s, 0, all, RULE_ABOVE_CEILING), 1);
        assert_waits(&s, all);

        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(20), .uid = BOB });
        assert_runs(&s, x);
        scene_process_ends(&s, desktop);
        assert_waits(&s, all);
        assert_rule(*scene_last(&s, all, ACTION_WAITING), RULE_NO_ROOM); /* the ceiling is back, and that is told too */
        assert_head_of(&s, all, card);
        scene_release(&s, x);
        assert_state(&s, all, LEASE_ACTIVE);
        scene_end(&s);
}

/* `all` of a card that can give less by now is less: it would wait for ever on an empty card for what that never gives. */
static void share_of_a_card_follows_its_ceiling_down_and_starts(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(10), .slot_s = 600 });
        uint64_t all = scene_request(&s, (struct ask){ .percent_milli = 100000, .uid = ALICE });
        uint64_t half = scene_request(&s, (struct ask){ .percent_milli = 50000, .uid = BOB });
        assert_head_of(&s, all, card);
        uint32_t desktop = scene_graphics(&s, card, MiB(100));
        assert_waits(&s, all);
        assert_bytes(world_lease_by_id(s.world, all)->bytes, GiB(23));
        scene_release(&s, a);
        assert_state(&s, all, LEASE_ACTIVE);
        assert_bytes(world_lease_by_id(s.world, all)->bytes, GiB(23));
        assert_waits(&s, half);
        assert_bytes(world_lease_by_id(s.world, half)->bytes, GiB(23) / 2);
        scene_process_ends(&s, desktop); /* and never up again: it was told what it comes to */
        assert_bytes(world_lease_by_id(s.world, half)->bytes, GiB(23) / 2);
        scene_end(&s);
}

static void head_is_not_told_that_its_own_claim_is_in_its_way(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(10), .slot_s = 600 });
        uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(20), .uid = ALICE });
        scene_tick_to_s(&s, 5);
        (void) scene_request(&s, (struct ask){ .bytes = GiB(4), .slot_s = 1000, .priority = 2, .uid = BOB });
        assert_non_null(scene_head_claim(&s, card));
        scene_tick_to_s(&s, 601); /* the slot is over without a way out: told anew, its start is unknown */
        const struct action *told = scene_last(&s, head, ACTION_WAITING);
        assert_non_null(told);
        assert_int_equal(told->why.start_ms, 0);
        assert_int_equal(told->why.n_blockers, 2);
        assert_int_equal(told->why.blockers[0].lease_id, a);
        for (size_t i = 0; i < s.n_log; i++)
                for (uint32_t k = 0; k < s.log[i].why.n_blockers && s.log[i].lease_id == head; k++)
                        assert_int_not_equal(s.log[i].why.blockers[k].kind, BLOCKER_CLAIM);
        scene_end(&s);
}

/* Who wants what a head claims is told so. */
static void claim_of_a_head_is_in_the_way_of_others(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        (void) scene_request(&s, (struct ask){ .bytes = GiB(10), .slot_s = 600 });
        uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(20), .uid = ALICE });
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(6), .uid = BOB });
        assert_waits(&s, b);
        assert_rule(s.answer, RULE_BEHIND_HEAD);
        assert_int_equal(s.answer.why.head_lease_id, head);
        scene_end(&s);
}

static void hundreds_that_wait_are_not_all_told_of_each_look_that_is_awaited(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        s.sparse_checks = true;
        (void) scene_device(&s, GiB(24));
        (void) scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 36000, .uid = ALICE });
        (void) scene_request(&s, (struct ask){ .bytes = GiB(20), .uid = BOB });
        for (uint32_t i = 0; i < 4; i++) /* beside the head, until there is no more room there */
                assert_runs(&s, scene_request(&s, (struct ask){ .bytes = GiB(1), .uid = CAROL }));
        for (uint32_t i = 0; i < 500; i++)
                assert_waits(&s, scene_request(&s, (struct ask){ .bytes = GiB(1), .uid = i % 2 ? ALICE : CAROL }));
        scene_tick_to_s(&s, 5);

        s.now_ms += 1500;
        size_t since = s.n_log;
        s.eyes_closed = true;
        uint64_t at_once = scene_request(&s, (struct ask){ .bytes = GiB(9), .no_wait = true, .uid = 1100 });
        s.eyes_closed = false;
        scene_look(&s);
        assert_gone(&s, at_once);
        assert_int_equal(scene_count(&s, since, 0, ACTION_WAITING), 0);

        s.now_ms += 1500;
        since = s.n_log;
        s.eyes_closed = true;
        uint64_t urgent = scene_request(&s, (struct ask){ .bytes = GiB(1), .slot_s = 10, .priority = 2, .uid = 1100 });
        s.eyes_closed = false;
        scene_look(&s);
        assert_runs(&s, urgent);
        assert_int_equal(scene_count(&s, since, 0, ACTION_WAITING), 0);
        scene_end(&s);
}

/* ---- memory that leaves, or is seen anew ---- */

/* Totals that never agree: one such look proves nothing, three in a row that show none of it do. */
static void drained_lease_ends_by_three_looks_that_never_settle(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                bool orphan;
        } rows[] = { { "draining", false }, { "orphaned", true } };
        int rows_failed = 0;

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                scene_begin(&s);
                uint32_t card = scene_device(&s, GiB(24));
                uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8) });
                uint32_t worker = scene_process(&s, 0, scene_owner(&s, a), 0);
                scene_process_uses(&s, worker, card, GiB(8), ROW_USED_KNOWN | ROW_COMPUTE);
                s.cards[card].unsettled = true;
                if (rows[i].orphan)
                        scene_owner_ended(&s, a);
                else
                        scene_release(&s, a);

                uint64_t bytes = s.rows[0].bytes;
                s.n_rows = 0;
                scene_look(&s);
                scene_look(&s);
                row_check(rows[i].name, scene_lease(&s, a) != NULL);
                s.rows[s.n_rows++].bytes = bytes; /* it was there all the time: counted from the beginning again */
                scene_look(&s);
                s.n_rows = 0;
                scene_look(&s);
                scene_look(&s);
                row_check(rows[i].name, scene_lease(&s, a) != NULL);
                scene_look(&s);
                row_check(rows[i].name, scene_lease(&s, a) == NULL);
                row_check(rows[i].name, scene_count(&s, 0, a, ACTION_ENDED) == 1);
                row_check(rows[i].name, scene_free(&s, card) == GiB(24));
                scene_end(&s);
        }
        rows_end();
}

static void draining_lease_keeps_its_reservation_only_while_its_use_is_unknown(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        uint32_t pid = scene_owner(&s, a);
        scene_uses(&s, a, GiB(1));
        scene_process_uses(&s, pid, card, GiB(1), ROW_COMPUTE); /* no figure for it */
        scene_release(&s, a);
        assert_state(&s, a, LEASE_DRAINING);
        assert_bytes(scene_free(&s, card), GiB(4));

        scene_process_uses(&s, pid, card, GiB(1), ROW_COMPUTE | ROW_USED_KNOWN);
        assert_state(&s, a, LEASE_DRAINING);
        assert_bytes(scene_free(&s, card), GiB(23)); /* A9 */
        assert_bytes(scene_reserved(&s, card), 0);

        scene_process_uses(&s, pid, card, GiB(1), ROW_COMPUTE); /* unknown again: what it has still counts */
        assert_bytes(scene_reserved(&s, card), 0);
        assert_bytes(scene_free(&s, card), GiB(23));
        scene_end(&s);
}

static void drivers_own_figure_of_a_bad_moment_is_corrected_by_later_looks(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        s.cards[0].hidden_bytes = GiB(16); /* somebody who is listed for nobody yet */
        uint32_t card = scene_device(&s, GiB(24));
        assert_bytes(s.world->devices[card].driver_own_bytes, GiB(16));

        s.cards[card].hidden_bytes = 0;
        (void) scene_stranger(&s, card, MiB(300));
        assert_bytes(s.world->devices[card].driver_own_bytes, 0);
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(12) }); /* else it would never fit */
        assert_runs(&s, x);
        assert_bytes(scene_free(&s, card), GiB(12) - MiB(300));
        scene_end(&s);
}

static void drivers_own_figure_is_not_corrected_by_a_look_that_does_not_settle(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        s.cards[0].hidden_bytes = MiB(400);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t stranger = scene_stranger(&s, card, GiB(2));
        assert_bytes(s.world->devices[card].driver_own_bytes, MiB(400));

        s.cards[card].lies = true; /* the total is already without what the list still has */
        s.cards[card].says_used = GiB(1);
        s.cards[card].unsettled = true;
        scene_look(&s);
        assert_bytes(s.world->devices[card].driver_own_bytes, MiB(400));

        s.cards[card].lies = s.cards[card].unsettled = false;
        scene_process_ends(&s, stranger);
        assert_bytes(s.world->devices[card].driver_own_bytes, MiB(400));
        scene_end(&s);
}

static void huge_graphics_process_lowers_free_but_not_the_ceiling(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint32_t game = scene_graphics(&s, card, GiB(20));
        assert_bytes(scene_free(&s, card), GiB(4));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(8) });
        assert_waits(&s, x); /* blocked by something that may end */
        assert_int_equal(s.answer.why.blockers[0].kind, BLOCKER_DISPLAY);
        assert_bytes(s.answer.why.blockers[0].bytes, GiB(20));

        assert_int_equal(scene_request(&s, (struct ask){ .bytes = GiB(24) }), 0); /* its reservation is kept back */
        assert_rule(s.answer, RULE_NEVER_FITS);
        assert_bytes(s.answer.why.ceiling_bytes, GiB(23));

        scene_process_uses(&s, game, card, MiB(700), ROW_USED_KNOWN | ROW_GRAPHICS);
        assert_runs(&s, x);
        assert_bytes(scene_free(&s, card), GiB(15));
        scene_end(&s);
}

/* ---- limits and heartbeats ---- */

static void one_user_cannot_take_all_leases_there_are(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        s.sparse_checks = true;
        (void) scene_device(&s, GiB(24));
        uint64_t first = scene_request(&s, (struct ask){ .bytes = 1, .uid = BOB, .ttl_s = 86400 });
        for (uint32_t i = 1; i < s.config.leases_per_user_max; i++)
                assert_int_not_equal(scene_request(&s, (struct ask){ .bytes = 1, .uid = BOB, .ttl_s = 86400 }), 0);
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = 1, .uid = BOB, .ttl_s = 86400 }), 0);
        assert_rule(s.answer, RULE_LIMIT_LEASES_PER_USER);
        assert_int_equal(s.answer.why.limit, s.config.leases_per_user_max);
        assert_true(s.config.leases_per_user_max < s.config.leases_max);

        assert_runs(&s, scene_request(&s, (struct ask){ .bytes = GiB(1), .uid = ALICE }));
        scene_release(&s, first);
        assert_runs(&s, scene_request(&s, (struct ask){ .bytes = 1, .uid = BOB, .ttl_s = 86400 }));
        scene_end(&s);
}

static void leases_that_wait_count_among_those_of_a_user(void **state)
{
        (void) state;
        struct scene s;
        struct config config = { 0 };
        config_defaults(&config);
        config.leases_per_user_max = 3;
        scene_begin_with(&s, &config);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(20), .uid = BOB });
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(20), .uid = BOB });
        uint64_t c = scene_request(&s, (struct ask){ .bytes = GiB(20), .uid = BOB });
        assert_runs(&s, a);
        assert_waits(&s, b);
        assert_waits(&s, c);
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = GiB(1), .uid = BOB }), 0);
        assert_rule(s.answer, RULE_LIMIT_LEASES_PER_USER);
        scene_release(&s, c);
        assert_int_not_equal(scene_request(&s, (struct ask){ .bytes = GiB(1), .uid = BOB }), 0);
        scene_end(&s);
}

static void heartbeat_of_an_orphan_makes_it_active_again(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        uint32_t card = scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(8), .ttl_s = 10 });
        uint32_t worker = scene_process(&s, 0, scene_owner(&s, a), 0);
        scene_process_uses(&s, worker, card, GiB(4), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_tick_to_s(&s, 20);
        assert_state(&s, a, LEASE_ORPHANED);

        scene_renew(&s, a); /* its owner was only slow */
        assert_kind(s.answer, ACTION_ACTIVE);
        assert_runs(&s, a);
        scene_tick_to_s(&s, 30);
        assert_runs(&s, a);
        scene_tick_to_s(&s, 31); /* and is held to its word again */
        assert_state(&s, a, LEASE_ORPHANED);
        assert_int_equal(scene_count(&s, 0, a, ACTION_ORPHANED), 2);

        scene_process_ends(&s, worker);
        assert_gone(&s, a);
        assert_bytes(scene_free(&s, card), GiB(24));
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(head_keeps_its_card_while_somebody_waits_for_a_look_at_it),
                cmocka_unit_test(head_moves_to_the_card_where_it_can_start_sooner),
                cmocka_unit_test(who_passes_the_head_of_one_card_does_not_jump_who_waits_for_another),
                cmocka_unit_test(who_passes_the_head_of_one_card_does_not_jump_the_head_of_another),
                cmocka_unit_test(who_stands_behind_the_head_of_one_card_keeps_its_place_on_another),
                cmocka_unit_test(plan_on_one_card_is_no_right_to_jump_who_waits_for_another),
                cmocka_unit_test(heads_of_two_cards_stay_where_they_are_while_only_time_passes),
                cmocka_unit_test(card_that_cannot_be_read_keeps_nobody_from_another),
                cmocka_unit_test(looks_that_cannot_be_used_are_not_followed_by_looks_without_end),
                cmocka_unit_test(nobody_goes_ahead_of_a_head_that_could_start_now_by_the_promise_to_give_way),
                cmocka_unit_test(who_fits_beside_a_head_that_could_start_now_still_goes_ahead),
                cmocka_unit_test(claim_that_wobbles_with_the_memory_of_others_is_told_to_nobody),
                cmocka_unit_test(claim_that_only_time_changed_is_told),
                cmocka_unit_test(ceiling_that_falls_is_told_once_and_blocks_nobody),
                cmocka_unit_test(share_of_a_card_follows_its_ceiling_down_and_starts),
                cmocka_unit_test(head_is_not_told_that_its_own_claim_is_in_its_way),
                cmocka_unit_test(claim_of_a_head_is_in_the_way_of_others),
                cmocka_unit_test(hundreds_that_wait_are_not_all_told_of_each_look_that_is_awaited),
                cmocka_unit_test(drained_lease_ends_by_three_looks_that_never_settle),
                cmocka_unit_test(draining_lease_keeps_its_reservation_only_while_its_use_is_unknown),
                cmocka_unit_test(drivers_own_figure_of_a_bad_moment_is_corrected_by_later_looks),
                cmocka_unit_test(drivers_own_figure_is_not_corrected_by_a_look_that_does_not_settle),
                cmocka_unit_test(huge_graphics_process_lowers_free_but_not_the_ceiling),
                cmocka_unit_test(one_user_cannot_take_all_leases_there_are),
                cmocka_unit_test(leases_that_wait_count_among_those_of_a_user),
                cmocka_unit_test(heartbeat_of_an_orphan_makes_it_active_again),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
