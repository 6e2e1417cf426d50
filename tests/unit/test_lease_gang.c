/* SPDX-License-Identifier: Apache-2.0 */
/* Leases over several devices: all of them or none, from the queue to the end, off them and back (design 4.4, I10). */
#include "scene_park.h"

#define CHECKPOINT WAY_OUT_BIT(WAY_OUT_CHECKPOINT)
#define COOPERATE WAY_OUT_BIT(WAY_OUT_COOPERATE)

static void begin_hands(struct scene *s, uint64_t ledger_bytes)
{
        s->config.ledger_cap_bytes = ledger_bytes;
        scene_config(s);
        scene_hands(s);
        scene_host(s, GiB(256), GiB(200), false);
}

static void begin(struct scene *s, uint32_t n_cards)
{
        scene_begin(s);
        for (uint32_t i = 0; i < n_cards; i++)
                (void) scene_device(s, GiB(24));
}

static const struct holder *part(struct scene *s, uint64_t id, uint32_t device)
{
        return world_part_on(s->world, scene_lease(s, id), device);
}

static void assert_on(struct scene *s, uint64_t id, uint64_t devices)
{
        const struct lease *lease = scene_lease(s, id);

        assert_non_null(lease);
        for (uint32_t d = 0; d < s->world->n_devices; d++)
                assert_int_equal(lease_is_on(lease, d), (devices >> d & 1) != 0);
}

static uint64_t claimed(struct scene *s, uint32_t device)
{
        const struct holder *claim = scene_head_claim(s, device);

        return claim ? claim->reserved_bytes : 0;
}

/* A process of the lease, beside its owner, on one card. */
static uint32_t rank_on(struct scene *s, uint64_t id, uint32_t device, uint64_t bytes)
{
        uint32_t pid = scene_process_of(s, scene_lease(s, id)->uid, 0, scene_owner(s, id), 0);

        scene_process_uses(s, pid, device, bytes, ROW_USED_KNOWN | ROW_COMPUTE);
        return pid;
}

/* ---- the queue ---- */

static void gang_starts_on_both_cards_or_on_none(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 2);
        uint64_t one = scene_request(&s, (struct ask){ .bytes = GiB(16), .uuid = scene_uuid(&s, 0) });
        uint64_t gang = scene_request(&s, (struct ask){ .bytes = GiB(16), .more = 1, .uid = ALICE });
        assert_waits(&s, gang);
        assert_int_equal(scene_reserved(&s, 1), 0); /* no start in sight: nothing is kept for it */

        scene_release(&s, one);
        scene_look(&s);
        assert_runs(&s, gang);
        assert_on(&s, gang, 3);
        assert_bytes(part(&s, gang, 0)->reserved_bytes, GiB(16));
        assert_bytes(part(&s, gang, 1)->reserved_bytes, GiB(16));
        assert_bytes(s.world->users[scene_lease(&s, gang)->user].held_bytes, GiB(32));
        assert_bytes(scene_free(&s, 0), GiB(8));

        scene_release(&s, gang);
        assert_null(scene_lease(&s, gang));
        assert_int_equal(scene_reserved(&s, 0) + scene_reserved(&s, 1), 0);
        scene_end(&s);
}

static void head_keeps_its_place_on_each_card_and_backfill_ends_in_time(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 2);
        (void) scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 600, .uuid = scene_uuid(&s, 0) });
        uint64_t gang = scene_request(&s, (struct ask){ .bytes = GiB(16), .more = 1, .uid = ALICE });
        assert_waits(&s, gang);
        assert_true(entry_is_head_of(scene_entry(&s, gang), 0));
        assert_true(entry_is_head_of(scene_entry(&s, gang), 1));
        assert_bytes(claimed(&s, 0), GiB(8));
        assert_bytes(claimed(&s, 1), GiB(16));
        assert_int_equal(scene_entry(&s, gang)->start_ms, SCENE_START_MS + SECONDS(600));

        uint64_t stays = scene_request(&s, (struct ask){ .bytes = GiB(12), .uid = BOB });
        assert_waits(&s, stays); /* on the free card it would delay the head */
        uint64_t beside = scene_request(&s, (struct ask){ .bytes = GiB(8), .uid = CAROL });
        assert_runs(&s, beside);
        assert_on(&s, beside, 1); /* the tightest, and what the gang will leave there is as much */
        scene_end(&s);
}

static void gang_takes_the_tightest_cards(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 4);
        (void) scene_request(&s, (struct ask){ .bytes = GiB(10), .uuid = scene_uuid(&s, 1) });
        (void) scene_request(&s, (struct ask){ .bytes = GiB(12), .uuid = scene_uuid(&s, 3) });
        (void) scene_request(&s, (struct ask){ .bytes = GiB(20), .uuid = scene_uuid(&s, 2) });
        uint64_t gang = scene_request(&s, (struct ask){ .bytes = GiB(8), .more = 1 });
        assert_runs(&s, gang);
        assert_on(&s, gang, 10);
        scene_end(&s);
}

static void two_gangs_that_want_the_same_cards_run_one_after_the_other(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 3);
        uint64_t runs = scene_request(&s, (struct ask){ .bytes = GiB(16), .more = 1 });
        assert_on(&s, runs, 3);
        uint64_t first = scene_request(&s, (struct ask){ .bytes = GiB(16), .more = 1, .uid = ALICE });
        uint64_t second = scene_request(&s, (struct ask){ .bytes = GiB(16), .more = 2, .uid = BOB });
        assert_waits(&s, first);
        assert_waits(&s, second);
        scene_release(&s, runs);
        scene_look(&s);
        assert_runs(&s, first);
        assert_waits(&s, second); /* one card is free for it, and it holds none */
        assert_on(&s, second, 0);
        scene_release(&s, first);
        scene_look(&s);
        assert_runs(&s, second);
        assert_on(&s, second, 7);
        scene_end(&s);
}

static void who_comes_later_does_not_keep_a_gang_waiting_for_ever(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 2);
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 60, .uuid = scene_uuid(&s, 0) });
        uint64_t b = scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 90, .uuid = scene_uuid(&s, 1) });
        uint64_t gang = scene_request(&s, (struct ask){ .bytes = GiB(16), .more = 1, .uid = ALICE });
        scene_tick_to_s(&s, 59);
        scene_release(&s, a);
        uint64_t late = scene_request(&s, (struct ask){ .bytes = GiB(16), .slot_s = 600, .uid = BOB });
        assert_waits(&s, late);
        scene_tick_to_s(&s, 89);
        scene_release(&s, b);
        scene_look(&s);
        assert_runs(&s, gang);
        assert_waits(&s, late);
        scene_end(&s);
}

static void gang_that_can_never_be_is_refused(void **state)
{
        (void) state;
        static const struct {
                struct ask ask;
                enum rule rule;
        } rows[] = {
                { { .bytes = GiB(4), .more = 2 }, RULE_TOO_FEW_DEVICES },
                { { .bytes = GiB(25), .more = 1 }, RULE_NEVER_FITS },
                { { .bytes = GiB(4), .more = 1, .start_s = 100, .slot_s = 60 }, RULE_BOOKING_OF_GANG },
        };
        struct scene s;
        begin(&s, 2);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                assert_int_equal(scene_request(&s, rows[i].ask), 0);
                assert_int_equal(s.answer.why.rule, rows[i].rule);
        }
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = 1, .more = 1, .uuid = scene_uuid(&s, 0) }), 0);
        assert_int_equal(s.answer.why.rule, RULE_TOO_FEW_DEVICES);
        scene_end(&s);
}

static void all_of_a_gang_counts_against_its_owners_limit(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        s.config.bytes_per_user_max = GiB(30);
        scene_config(&s);
        (void) scene_device(&s, GiB(24));
        (void) scene_device(&s, GiB(24));
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = GiB(16), .more = 1 }), 0);
        assert_int_equal(s.answer.why.rule, RULE_LIMIT_BYTES_PER_USER);
        assert_runs(&s, scene_request(&s, (struct ask){ .bytes = GiB(15), .more = 1 }));
        scene_end(&s);
}

static void share_of_a_gang_is_of_the_smaller_card(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        (void) scene_device(&s, GiB(16));
        uint64_t gang = scene_request(&s, (struct ask){ .percent_milli = 50000, .more = 1 });
        assert_runs(&s, gang);
        assert_bytes(scene_lease(&s, gang)->bytes, GiB(8));
        scene_end(&s);
}

static void exclusive_gang_is_alone_on_each_card(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 2);
        uint64_t gang = scene_request(&s, (struct ask){ .exclusive = true, .more = 1 });
        assert_runs(&s, gang);
        assert_waits(&s, scene_request(&s, (struct ask){ .bytes = 1, .uuid = scene_uuid(&s, 0) }));
        assert_waits(&s, scene_request(&s, (struct ask){ .bytes = 1, .uuid = scene_uuid(&s, 1) }));
        scene_end(&s);
}

/* ---- its life ---- */

static void what_its_tree_has_on_either_card_is_its_own(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 3);
        uint64_t gang = scene_request(&s, (struct ask){ .bytes = GiB(16), .more = 1 });
        scene_uses(&s, gang, GiB(10));
        (void) rank_on(&s, gang, 1, GiB(12));
        assert_bytes(part(&s, gang, 0)->used_bytes, GiB(10));
        assert_bytes(part(&s, gang, 1)->used_bytes, GiB(12));
        assert_int_equal(scene_count(&s, 0, 0, ACTION_STRANGER), 0);
        (void) rank_on(&s, gang, 2, GiB(1)); /* and that is on a card that it was not given */
        assert_int_equal(scene_count_rule(&s, 0, gang, RULE_OTHER_DEVICE), 1);
        assert_bytes(scene_lease(&s, gang)->peak_bytes, GiB(12));
        scene_end(&s);
}

static void ended_gang_drains_until_both_cards_show_nothing_of_it(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 2);
        uint64_t gang = scene_request(&s, (struct ask){ .bytes = GiB(16), .more = 1 });
        uint32_t first = rank_on(&s, gang, 0, GiB(10)), second = rank_on(&s, gang, 1, GiB(12));
        scene_release(&s, gang);
        assert_state(&s, gang, LEASE_DRAINING);
        scene_process_ends(&s, first);
        scene_look(&s);
        assert_state(&s, gang, LEASE_DRAINING);
        assert_bytes(scene_free(&s, 0), GiB(24));
        assert_bytes(scene_free(&s, 1), GiB(12));
        scene_process_ends(&s, second);
        scene_look(&s);
        assert_null(scene_lease(&s, gang));
        assert_int_equal(scene_count(&s, 0, gang, ACTION_ENDED), 1);
        scene_end(&s);
}

static void over_use_on_one_of_its_cards_is_told(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 2);
        uint64_t gang = scene_request(&s, (struct ask){ .bytes = GiB(8), .more = 1 });
        (void) rank_on(&s, gang, 1, GiB(9));
        scene_tick_to_s(&s, 40);
        assert_int_equal(scene_count_rule(&s, 0, gang, RULE_OVER_USE), 1);
        assert_bytes(scene_last_rule(&s, gang, RULE_OVER_USE)->why.used_bytes, GiB(9));
        scene_end(&s);
}

static void gang_is_idle_only_where_all_of_it_does_nothing(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 2);
        uint64_t gang = scene_request(&s, (struct ask){ .bytes = GiB(8), .more = 1 });
        uint32_t pids[2] = { rank_on(&s, gang, 0, GiB(4)), rank_on(&s, gang, 1, GiB(4)) };
        scene_process_uses(&s, pids[0], 0, GiB(4), ROW_USED_KNOWN | ROW_COMPUTE | ROW_RESTED);
        scene_process_uses(&s, pids[1], 1, GiB(4), ROW_USED_KNOWN | ROW_COMPUTE | ROW_WORKED);
        scene_tick_to_s(&s, 120);
        assert_int_equal(scene_count(&s, 0, gang, ACTION_IDLE), 0);
        scene_process_uses(&s, pids[1], 1, GiB(4), ROW_USED_KNOWN | ROW_COMPUTE | ROW_RESTED);
        scene_tick_to_s(&s, 240);
        assert_int_equal(scene_count(&s, 0, gang, ACTION_IDLE), 1);
        scene_end(&s);
}

static void gang_is_lost_as_a_whole_and_back_when_both_cards_are(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 2);
        uint64_t gang = scene_request(&s, (struct ask){ .bytes = GiB(8), .more = 1 });
        (void) rank_on(&s, gang, 1, GiB(4));
        scene_device_health(&s, 0, DEVICE_LOST);
        assert_state(&s, gang, LEASE_LOST);
        scene_device_health(&s, 1, DEVICE_LOST);
        scene_device_health(&s, 0, DEVICE_OK);
        assert_state(&s, gang, LEASE_LOST);
        scene_device_health(&s, 1, DEVICE_OK);
        assert_state(&s, gang, LEASE_ACTIVE);
        scene_end(&s);
}

static void pin_of_a_gang_is_one_and_on_each_card(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 2);
        uint64_t gang = scene_request(&s, (struct ask){ .bytes = GiB(8), .more = 1, .uid = ALICE });
        scene_change(&s, gang, (struct change){ .what = CHANGE_PIN, .pin_ms = SECONDS(60) });
        assert_true(part(&s, gang, 0)->pinned);
        assert_true(part(&s, gang, 1)->pinned);
        scene_tick_to_s(&s, 61);
        assert_false(part(&s, gang, 0)->pinned);
        assert_false(part(&s, gang, 1)->pinned);
        scene_end(&s);
}

/* ---- off its cards and back ---- */

/* A filler with a rank on each of two cards. */
static uint64_t filler(struct scene *s, uint64_t bytes, uint32_t pids[2])
{
        uint64_t id = scene_request(s, (struct ask){ .bytes = bytes,
                                                     .more = 1,
                                                     .priority = 5,
                                                     .uid = ALICE,
                                                     .consumer = "filler",
                                                     .proven = CHECKPOINT });

        assert_runs(s, id);
        pids[0] = rank_on(s, id, 0, bytes);
        pids[1] = rank_on(s, id, 1, bytes);
        return id;
}

static void gang_parks_as_one_and_comes_back_as_one(void **state)
{
        (void) state;
        struct scene s;
        char orders[32];
        uint32_t pids[2];
        begin(&s, 2);
        begin_hands(&s, GiB(64));
        uint64_t gang = filler(&s, GiB(16), pids);
        size_t since = s.n_log;

        uint64_t urgent = scene_request(
                &s, (struct ask){ .bytes = GiB(20), .priority = 2, .uid = BOB, .uuid = scene_uuid(&s, 1) });
        scene_tick_to_s(&s, 3);
        assert_string_equal(scene_orders(&s, since, orders, sizeof(orders)), "LLCCSS");
        assert_state(&s, gang, LEASE_PARKED);
        assert_runs(&s, urgent);
        assert_bytes(scene_free(&s, 0), GiB(24)); /* where nobody asked it is gone as well */
        assert_bytes(s.world->ledger_charged_bytes, GiB(32));
        assert_bytes(s.world->users[scene_lease(&s, gang)->user].held_bytes, 0);

        uint64_t other = scene_request(
                &s, (struct ask){ .bytes = GiB(20), .priority = 2, .uid = CAROL, .uuid = scene_uuid(&s, 0) });
        assert_runs(&s, other);
        scene_release(&s, urgent);
        scene_tick_to_s(&s, 60);
        assert_state(&s, gang, LEASE_PARKED); /* one of its cards is free */
        scene_release(&s, other);
        scene_tick_to_s(&s, 120);
        assert_runs(&s, gang);
        assert_bytes(part(&s, gang, 0)->used_bytes, GiB(16));
        assert_bytes(part(&s, gang, 1)->used_bytes, GiB(16));
        assert_bytes(s.world->ledger_charged_bytes, 0);
        assert_bytes(s.world->users[scene_lease(&s, gang)->user].held_bytes, GiB(32));
        scene_end(&s);
}

static void one_rank_that_cannot_be_checkpointed_brings_all_back(void **state)
{
        (void) state;
        struct scene s;
        char orders[32];
        uint32_t pids[2];
        begin(&s, 2);
        begin_hands(&s, GiB(64));
        uint64_t gang = filler(&s, GiB(16), pids);
        size_t since = s.n_log;

        scene_next(&s, HAND_CHECKPOINT, 1, OUTCOME_BLOCKED, HAND_WHY_CANNOT);
        scene_skip(&s, HAND_CHECKPOINT, 1);
        uint64_t urgent = scene_request(
                &s, (struct ask){ .bytes = GiB(20), .priority = 2, .uid = BOB, .uuid = scene_uuid(&s, 0) });
        scene_tick_to_s(&s, 5);
        assert_string_equal(scene_orders(&s, since, orders, sizeof(orders)), "LLCCRUU");
        assert_runs(&s, gang);
        assert_waits(&s, urgent);
        assert_bytes(part(&s, gang, 0)->reserved_bytes, GiB(16));
        assert_bytes(part(&s, gang, 1)->reserved_bytes, GiB(16));
        assert_bytes(s.world->ledger_charged_bytes, 0);
        scene_end(&s);
}

static void process_that_spans_both_cards_is_moved_with_all_it_has(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 2);
        begin_hands(&s, GiB(64));
        uint64_t gang = scene_request(&s, (struct ask){ .bytes = GiB(12),
                                                        .more = 1,
                                                        .priority = 5,
                                                        .uid = ALICE,
                                                        .consumer = "filler",
                                                        .proven = CHECKPOINT });
        uint32_t pid = rank_on(&s, gang, 0, GiB(12));
        scene_process_uses(&s, pid, 1, GiB(6), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_says_as(&s, gang, PARK_CALL_PARK, 0, ALICE);
        scene_tick_to_s(&s, 3);
        assert_state(&s, gang, LEASE_PARKED);
        assert_bytes(s.world->ledger_charged_bytes, GiB(18));
        scene_says_as(&s, gang, PARK_CALL_THAW, 0, ALICE);
        scene_tick_to_s(&s, 6);
        assert_runs(&s, gang);
        assert_bytes(part(&s, gang, 1)->used_bytes, GiB(6));
        scene_end(&s);
}

static void last_look_at_the_other_card_keeps_a_gang_parked(void **state)
{
        (void) state;
        struct scene s;
        uint32_t pids[2];
        begin(&s, 2);
        begin_hands(&s, GiB(64));
        uint64_t gang = filler(&s, GiB(16), pids);
        scene_says_as(&s, gang, PARK_CALL_PARK, 0, ALICE);
        scene_tick_to_s(&s, 3);
        assert_state(&s, gang, LEASE_PARKED);
        s.cards[1].hidden_bytes = GiB(12); /* nobody is listed for it */
        scene_look(&s);
        size_t since = s.n_log;
        scene_says_as(&s, gang, PARK_CALL_THAW, 0, ALICE);
        scene_tick_to_s(&s, 30);
        assert_state(&s, gang, LEASE_PARKED);
        assert_int_equal(scene_n_orders(&s, since, HAND_RESTORE), 0);
        s.cards[1].hidden_bytes = 0;
        scene_look(&s);
        scene_tick_to_s(&s, 60);
        assert_runs(&s, gang);
        scene_end(&s);
}

/* What one card has room for beyond the promise is not asked of the other. */
static void gang_comes_back_where_one_card_can_give_less_than_the_other(void **state)
{
        (void) state;
        struct scene s;
        uint32_t pids[2];
        scene_begin(&s);
        (void) scene_device(&s, GiB(32));
        (void) scene_device(&s, GiB(24));
        begin_hands(&s, GiB(64));
        uint64_t gang = filler(&s, GiB(24), pids);
        scene_says_as(&s, gang, PARK_CALL_PARK, 0, ALICE);
        scene_tick_to_s(&s, 3);
        assert_state(&s, gang, LEASE_PARKED);
        scene_says_as(&s, gang, PARK_CALL_THAW, 0, ALICE);
        scene_tick_to_s(&s, 10);
        assert_runs(&s, gang);
        assert_bytes(part(&s, gang, 0)->used_bytes, GiB(24));
        assert_bytes(part(&s, gang, 1)->used_bytes, GiB(24));
        scene_end(&s);
}

static void slack_of_the_larger_card_is_not_asked_of_the_smaller(void **state)
{
        (void) state;
        struct scene s;
        uint32_t pids[2];
        scene_begin(&s);
        (void) scene_device(&s, GiB(48));
        (void) scene_device(&s, GiB(24));
        begin_hands(&s, GiB(64));
        uint64_t gang = filler(&s, GiB(12), pids);
        scene_says_as(&s, gang, PARK_CALL_PARK, 0, ALICE);
        scene_tick_to_s(&s, 3);
        (void) scene_stranger(&s, 1, GiB(24) - GiB(12) - MiB(600)); /* 491 MiB of slack there, 983 on the other */
        scene_tick_to_s(&s, 60);
        scene_look(&s);
        scene_says_as(&s, gang, PARK_CALL_THAW, 0, ALICE);
        scene_tick_to_s(&s, 70);
        assert_runs(&s, gang);
        scene_end(&s);
}

/* A filler on one card. */
static uint64_t filler_on(struct scene *s, uint32_t device, uint64_t bytes, uint8_t named)
{
        uint64_t id = scene_request(
                s,
                (struct ask){
                        .bytes = bytes, .priority = 5, .uid = ALICE, .named = named, .uuid = scene_uuid(s, device) });

        assert_runs(s, id);
        (void) rank_on(s, id, device, bytes);
        return id;
}

static void gang_takes_memory_back_on_both_cards_and_starts_when_all_is_there(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 2);
        begin_hands(&s, GiB(64));
        uint64_t a = filler_on(&s, 0, GiB(20), CHECKPOINT), b = filler_on(&s, 1, GiB(20), CHECKPOINT);
        scene_next(&s, HAND_LOCK, 1, OUTCOME_NONE, HAND_WHY_NONE);
        scene_skip(&s, HAND_LOCK, 1);
        uint64_t gang = scene_request(&s, (struct ask){ .bytes = GiB(16), .more = 1, .priority = 2, .uid = BOB });
        scene_tick_to_s(&s, 3);
        assert_state(&s, a, LEASE_PARKED);
        assert_state(&s, b, LEASE_ASKING);
        assert_waits(&s, gang);
        uint64_t comes = scene_request(&s, (struct ask){ .bytes = GiB(10), .uid = CAROL, .slot_s = 1 });
        assert_waits(&s, comes); /* what came back is the gang's */
        scene_answers_late(&s, HAND_LOCK);
        scene_tick_to_s(&s, 6);
        assert_runs(&s, gang);
        assert_on(&s, gang, 3);
        scene_end(&s);
}

static void nobody_gives_way_to_a_gang_that_gets_only_one_of_its_cards(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 2);
        begin_hands(&s, GiB(64));
        uint64_t a = filler_on(&s, 0, GiB(20), CHECKPOINT);
        uint64_t b = scene_request(
                &s, (struct ask){ .bytes = GiB(20), .priority = 2, .uid = CAROL, .uuid = scene_uuid(&s, 1) });
        size_t since = s.n_log;
        uint64_t gang = scene_request(&s, (struct ask){ .bytes = GiB(16), .more = 1, .priority = 2, .uid = BOB });
        scene_tick_to_s(&s, 10);
        assert_waits(&s, gang);
        assert_runs(&s, a);
        assert_runs(&s, b);
        assert_int_equal(scene_n_orders(&s, since, HAND_LOCK), 0);
        scene_end(&s);
}

/* For either of them there would be room in host memory, for both there is none. */
static void nobody_gives_way_to_a_gang_where_host_memory_holds_only_a_part(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 2);
        begin_hands(&s, GiB(32));
        uint64_t a = filler_on(&s, 0, GiB(20), CHECKPOINT), b = filler_on(&s, 1, GiB(20), CHECKPOINT);
        size_t since = s.n_log;
        uint64_t gang = scene_request(&s, (struct ask){ .bytes = GiB(16), .more = 1, .priority = 2, .uid = BOB });
        scene_tick_to_s(&s, 10);
        assert_waits(&s, gang);
        assert_runs(&s, a);
        assert_runs(&s, b);
        assert_int_equal(scene_n_orders(&s, since, HAND_LOCK), 0);
        scene_end(&s);
}

static void plan_that_fails_on_one_card_is_undone_on_both(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 2);
        begin_hands(&s, GiB(64));
        uint64_t a = filler_on(&s, 0, GiB(20), CHECKPOINT), b = filler_on(&s, 1, GiB(20), CHECKPOINT);
        scene_next(&s, HAND_LOCK, 1, OUTCOME_BLOCKED, HAND_WHY_LOCK_TIMEOUT);
        scene_skip(&s, HAND_LOCK, 1);
        uint64_t gang = scene_request(&s, (struct ask){ .bytes = GiB(16), .more = 1, .priority = 2, .uid = BOB });
        scene_tick_to_s(&s, 20);
        assert_waits(&s, gang);
        assert_runs(&s, a);
        assert_runs(&s, b);
        assert_bytes(s.world->ledger_charged_bytes, 0);
        scene_end(&s);
}

static void gang_and_gang_change_places(void **state)
{
        (void) state;
        struct scene s;
        uint32_t pids[2];
        begin(&s, 2);
        begin_hands(&s, GiB(64));
        uint64_t low = filler(&s, GiB(20), pids);
        size_t since = s.n_log;
        uint64_t high = scene_request(&s, (struct ask){ .bytes = GiB(16), .more = 1, .priority = 2, .uid = BOB });
        scene_tick_to_s(&s, 4);
        assert_runs(&s, high);
        assert_state(&s, low, LEASE_PARKED);
        assert_int_equal(scene_n_orders(&s, since, HAND_LOCK), 2); /* each of its processes once */
        scene_release(&s, high);
        scene_tick_to_s(&s, 30);
        assert_runs(&s, low);
        assert_on(&s, low, 3);
        scene_end(&s);
}

static void gang_that_cooperates_is_parked_when_both_cards_show_it(void **state)
{
        (void) state;
        struct scene s;
        begin(&s, 2);
        begin_hands(&s, GiB(64));
        uint64_t gang = scene_request(
                &s, (struct ask){ .bytes = GiB(16), .more = 1, .priority = 4, .uid = ALICE, .named = COOPERATE });
        uint32_t pids[2] = { rank_on(&s, gang, 0, GiB(16)), rank_on(&s, gang, 1, GiB(16)) };
        uint64_t urgent = scene_request(&s, (struct ask){ .bytes = GiB(20),
                                                          .priority = 1,
                                                          .slot_s = 600,
                                                          .kill_at_end = true,
                                                          .admin = true,
                                                          .uid = BOB,
                                                          .uuid = scene_uuid(&s, 0) });
        assert_state(&s, gang, LEASE_ASKING);
        scene_process_uses(&s, pids[0], 0, MiB(200), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_says_as(&s, gang, PARK_CALL_YIELDED, 0, ALICE);
        scene_tick_to_s(&s, 2);
        assert_state(&s, gang, LEASE_ASKING); /* the other card shows it still */
        scene_process_uses(&s, pids[1], 1, MiB(200), ROW_USED_KNOWN | ROW_COMPUTE);
        scene_tick_to_s(&s, 4);
        assert_state(&s, gang, LEASE_PARKED);
        assert_runs(&s, urgent);
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(gang_starts_on_both_cards_or_on_none),
                cmocka_unit_test(head_keeps_its_place_on_each_card_and_backfill_ends_in_time),
                cmocka_unit_test(gang_takes_the_tightest_cards),
                cmocka_unit_test(two_gangs_that_want_the_same_cards_run_one_after_the_other),
                cmocka_unit_test(who_comes_later_does_not_keep_a_gang_waiting_for_ever),
                cmocka_unit_test(gang_that_can_never_be_is_refused),
                cmocka_unit_test(all_of_a_gang_counts_against_its_owners_limit),
                cmocka_unit_test(share_of_a_gang_is_of_the_smaller_card),
                cmocka_unit_test(exclusive_gang_is_alone_on_each_card),
                cmocka_unit_test(what_its_tree_has_on_either_card_is_its_own),
                cmocka_unit_test(ended_gang_drains_until_both_cards_show_nothing_of_it),
                cmocka_unit_test(over_use_on_one_of_its_cards_is_told),
                cmocka_unit_test(gang_is_idle_only_where_all_of_it_does_nothing),
                cmocka_unit_test(gang_is_lost_as_a_whole_and_back_when_both_cards_are),
                cmocka_unit_test(pin_of_a_gang_is_one_and_on_each_card),
                cmocka_unit_test(gang_parks_as_one_and_comes_back_as_one),
                cmocka_unit_test(one_rank_that_cannot_be_checkpointed_brings_all_back),
                cmocka_unit_test(process_that_spans_both_cards_is_moved_with_all_it_has),
                cmocka_unit_test(last_look_at_the_other_card_keeps_a_gang_parked),
                cmocka_unit_test(gang_comes_back_where_one_card_can_give_less_than_the_other),
                cmocka_unit_test(slack_of_the_larger_card_is_not_asked_of_the_smaller),
                cmocka_unit_test(gang_takes_memory_back_on_both_cards_and_starts_when_all_is_there),
                cmocka_unit_test(nobody_gives_way_to_a_gang_that_gets_only_one_of_its_cards),
                cmocka_unit_test(nobody_gives_way_to_a_gang_where_host_memory_holds_only_a_part),
                cmocka_unit_test(plan_that_fails_on_one_card_is_undone_on_both),
                cmocka_unit_test(gang_and_gang_change_places),
                cmocka_unit_test(gang_that_cooperates_is_parked_when_both_cards_show_it),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
