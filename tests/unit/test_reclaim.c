/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking memory back, decision by decision: the worked examples C1 … C16 of the rules, by number. Each asks the plan itself, and
 * the steps that follow where the example says what happens.
 */
#include <stdio.h>
#include <string.h>
#include "arbiter/reclaim.h"
#include "scene_park.h"

#define COOPERATE WAY_OUT_BIT(WAY_OUT_COOPERATE)
#define CHECKPOINT WAY_OUT_BIT(WAY_OUT_CHECKPOINT)
#define RELEASE WAY_OUT_BIT(WAY_OUT_RELEASE)
#define RESTART WAY_OUT_BIT(WAY_OUT_RESTART)
#define KILL WAY_OUT_BIT(WAY_OUT_KILL)

struct table {
        struct scene s;
        uint32_t card;
        struct reclaim plan;
        struct reason why;
};

static void begin(struct table *t, uint64_t total_bytes)
{
        memset(t, 0, sizeof(*t));
        scene_begin(&t->s);
        t->card = scene_device(&t->s, total_bytes);
        scene_hands(&t->s);
}

/* A lease at work: all that it reserved is in use. Granted long ago, so that no rank of its grant counts any more. */
static uint64_t works(struct table *t, struct ask ask)
{
        uint64_t id = scene_request(&t->s, ask);

        assert_runs(&t->s, id);
        scene_uses(&t->s, id, ask.bytes);
        return id;
}

static void long_after(struct table *t)
{
        for (uint32_t i = 0; i < t->s.world->n_leases; i++)
                if (t->s.world->lease_ids[i] != 0)
                        t->s.world->leases[i].granted_ms -= HOURS(10);
        scene_look(&t->s);
}

static struct holder *holder_of(struct table *t, uint64_t id)
{
        return world_holder_get(t->s.world, scene_lease(&t->s, id)->holder);
}

static void idle_for(struct table *t, uint64_t id, uint64_t seconds, uint64_t keep_alive_s)
{
        struct holder *h = holder_of(t, id);

        h->idle_since_ms = t->s.now_ms - SECONDS(seconds);
        h->keep_alive_ms = SECONDS(keep_alive_s);
}

/* What a demander of this priority would get. */
static bool asks(struct table *t, uint8_t priority, uint64_t bytes)
{
        struct reclaim_demand demand = { .device = t->card, .bytes = bytes, .priority = priority };
        struct reclaim quick;

        world_device_changed(t->s.world, t->card); /* the cases write rows by hand */
        memset(&t->why, 0, sizeof(t->why));
        reclaim_plan(t->s.world, &demand, &t->plan, &t->why);
        /* Where nobody asks why not, the same is found. */
        reclaim_plan(t->s.world, &demand, &quick, NULL);
        assert_int_equal(quick.suffices, t->plan.suffices);
        assert_int_equal(quick.n, t->plan.n);
        for (uint32_t i = 0; i < quick.n; i++) {
                assert_int_equal(quick.steps[i].holder, t->plan.steps[i].holder);
                assert_int_equal(quick.steps[i].way, t->plan.steps[i].way);
                assert_int_equal(quick.steps[i].bytes, t->plan.steps[i].bytes);
        }
        return t->plan.suffices;
}

static bool takes(struct table *t, uint64_t id)
{
        for (uint32_t i = 0; i < t->plan.n; i++)
                if (ref_equal(t->s.world->holders[t->plan.steps[i].holder].lease,
                              world_lease_ref(t->s.world, scene_lease(&t->s, id))))
                        return true;
        return false;
}

static enum way_out_kind way_of(struct table *t, uint32_t holder)
{
        for (uint32_t i = 0; i < t->plan.n; i++)
                if (t->plan.steps[i].holder == holder)
                        return (enum way_out_kind) t->plan.steps[i].way;
        return WAY_OUT_N;
}

static const struct blocker *names(struct table *t, enum reclaim_no no)
{
        for (uint32_t i = 0; i < t->why.n_blockers && i < BLOCKERS_MAX; i++)
                if (t->why.blockers[i].no == no)
                        return &t->why.blockers[i];
        return NULL;
}

#define assert_takes_only(t, id)                                                                                       \
        do {                                                                                                           \
                assert_int_equal((t)->plan.n, 1);                                                                      \
                assert_true(takes((t), (id)));                                                                         \
        } while (0)
#define assert_no(t, reason) assert_non_null(names((t), (reason)))

static uint64_t earliest_s(struct table *t)
{
        return t->plan.earliest_ms == 0 ? 0 : (t->plan.earliest_ms - t->s.now_ms) / 1000;
}

static void C1_filler_first_then_whoever_is_idle(void **state)
{
        (void) state;
        struct table t;
        begin(&t, GiB(24));
        uint64_t f = works(&t, (struct ask){ .bytes = GiB(10), .priority = 5, .proven = CHECKPOINT });
        uint64_t idle = works(&t, (struct ask){ .bytes = GiB(10), .named = COOPERATE });
        long_after(&t);
        idle_for(&t, idle, 1000, 0);

        assert_true(asks(&t, 2, GiB(8)));
        assert_takes_only(&t, f);
        assert_true(asks(&t, 2, GiB(4)));
        assert_int_equal(t.plan.n, 0);
        assert_true(asks(&t, 2, GiB(20)));
        assert_int_equal(t.plan.n, 2);
        assert_true(takes(&t, f) && takes(&t, idle));
        assert_int_equal(t.plan.steps[0].holder, scene_lease(&t.s, f)->holder.index);
        scene_end(&t.s);
}

static void C2_filler_waits_for_the_keep_alive_and_never_takes_from_work(void **state)
{
        (void) state;
        static const struct {
                uint64_t idle_s, keep_alive_s;
                bool released;
                uint64_t earliest_s;
        } rows[] = {
                { 120, 300, false, 180 }, { 299, 300, false, 1 },     { 300, 300, true, 0 },
                { 299, 0, false, 1 },     { 1000, 1200, false, 200 }, { 1200, 1200, true, 0 },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct table t;
                begin(&t, GiB(24));
                uint64_t chat = works(&t, (struct ask){ .bytes = GiB(20), .priority = 2, .named = COOPERATE });
                long_after(&t);
                idle_for(&t, chat, rows[i].idle_s, rows[i].keep_alive_s);
                assert_int_equal(asks(&t, 5, GiB(10)), rows[i].released);
                assert_int_equal(earliest_s(&t), rows[i].earliest_s);
                if (!rows[i].released)
                        assert_no(&t, RECLAIM_LINGER);
                scene_end(&t.s);
        }
        struct table t;
        begin(&t, GiB(24));
        (void) works(&t, (struct ask){ .bytes = GiB(20), .priority = 5, .named = RESTART });
        long_after(&t);
        assert_false(asks(&t, 5, GiB(10)));
        assert_no(&t, RECLAIM_AT_WORK);
        scene_end(&t.s);
}

static void C3_idle_service_lingers_for_its_equals_and_unknown_is_busy(void **state)
{
        (void) state;
        static const struct {
                uint8_t priority;
                uint64_t idle_s;
                bool released;
        } rows[] = { { 3, 30, false }, { 3, 60, true }, { 2, 30, false }, { 1, 1, true } };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct table t;
                begin(&t, GiB(24));
                uint64_t service = works(&t, (struct ask){ .bytes = GiB(20), .priority = 2, .named = COOPERATE });
                long_after(&t);
                idle_for(&t, service, rows[i].idle_s, 0);
                assert_int_equal(asks(&t, rows[i].priority, GiB(10)), rows[i].released);
                scene_end(&t.s);
        }
        struct table t;
        begin(&t, GiB(24));
        (void) works(&t, (struct ask){ .bytes = GiB(20), .priority = 2, .named = COOPERATE });
        scene_tick_to_s(&t.s, 500); /* nobody ever said that it is idle */
        long_after(&t);
        assert_false(asks(&t, 3, GiB(10)));
        scene_end(&t.s);
}

static void C4_busy_work_gives_way_to_who_is_more_important_by_the_margin(void **state)
{
        (void) state;
        struct table t;
        begin(&t, GiB(24));
        uint64_t busy = works(&t, (struct ask){ .bytes = GiB(20), .proven = CHECKPOINT });
        long_after(&t);
        assert_true(asks(&t, 2, GiB(10)));
        assert_takes_only(&t, busy);
        assert_false(asks(&t, 3, GiB(10))); /* however long it waited: its base priority is what is asked for here */
        assert_no(&t, RECLAIM_AT_WORK);
        scene_end(&t.s);

        begin(&t, GiB(24));
        (void) works(&t, (struct ask){ .bytes = GiB(20) });
        long_after(&t);
        assert_false(asks(&t, 2, GiB(10)));
        assert_no(&t, RECLAIM_NO_WAY_OUT);
        scene_end(&t.s);
}

static void C5_rank_of_a_grant_is_kept_for_half_an_hour(void **state)
{
        (void) state;
        struct table t;
        begin(&t, GiB(24));
        uint64_t aged = works(&t, (struct ask){ .bytes = GiB(20), .proven = CHECKPOINT });
        scene_lease(&t.s, aged)->kept_rank = 2;
        scene_lease(&t.s, aged)->granted_ms = SCENE_START_MS;
        scene_tick_to_s(&t.s, 600);
        assert_false(asks(&t, 2, GiB(10)));
        assert_no(&t, RECLAIM_KEEPS_RANK);
        assert_int_equal(t.plan.earliest_ms, SCENE_START_MS + SECONDS(1800));
        assert_true(asks(&t, 1, GiB(10)));
        scene_tick_to_s(&t.s, 1800);
        assert_true(asks(&t, 2, GiB(10)));
        scene_end(&t.s);
}

static void C6_immune_for_some_time_after_a_return(void **state)
{
        (void) state;
        static const struct {
                uint64_t out_s, back_s, ago_s;
                uint8_t priority;
                bool idle, goes;
                uint64_t earliest_s;
        } rows[] = {
                { 5, 10, 59, 2, false, false, 1 },   { 5, 10, 60, 2, false, true, 0 },
                { 40, 50, 119, 2, false, false, 1 }, { 40, 50, 120, 2, false, true, 0 },
                { 5, 10, 20, 1, false, true, 0 },    { 5, 10, 20, 2, true, true, 0 },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct table t;
                begin(&t, GiB(24));
                uint64_t id = works(
                        &t, (struct ask){ .bytes = GiB(20), .uid = ALICE, .consumer = "t.py", .proven = CHECKPOINT });
                long_after(&t);
                scene_cost(&t.s, ALICE, "t.py", WAY_OUT_CHECKPOINT, rows[i].out_s, rows[i].back_s);
                scene_lease(&t.s, id)->park.returned_ms = t.s.now_ms - SECONDS(rows[i].ago_s);
                if (rows[i].idle)
                        idle_for(&t, id, 1000, 0);
                assert_int_equal(asks(&t, rows[i].priority, GiB(10)), rows[i].goes);
                assert_int_equal(earliest_s(&t), rows[i].earliest_s);
                scene_end(&t.s);
        }
}

static void C7_kill_is_immune_from_the_grant_and_restart_is_cheap(void **state)
{
        (void) state;
        static const struct {
                uint64_t ago_s;
                uint8_t priority;
                bool idle, goes;
        } rows[] = {
                { 100, 1, false, false }, { 599, 1, false, false }, { 600, 2, false, true }, { 100, 2, true, true }
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct table t;
                begin(&t, GiB(24));
                uint64_t id = works(&t, (struct ask){ .bytes = GiB(20), .priority = 4, .named = KILL });
                scene_lease(&t.s, id)->granted_ms = t.s.now_ms - SECONDS(rows[i].ago_s);
                if (rows[i].idle)
                        idle_for(&t, id, 90, 0);
                assert_int_equal(asks(&t, rows[i].priority, GiB(10)), rows[i].goes);
                scene_end(&t.s);
        }
        struct table t;
        begin(&t, GiB(24));
        uint64_t id = works(
                &t, (struct ask){ .bytes = GiB(20), .priority = 5, .uid = ALICE, .consumer = "f", .named = RESTART });
        long_after(&t);
        scene_cost(&t.s, ALICE, "f", WAY_OUT_RESTART, 20, 60);
        scene_lease(&t.s, id)->park.returned_ms = t.s.now_ms - SECONDS(5);
        assert_true(asks(&t, 2, GiB(10)));
        assert_false(asks(&t, 4, GiB(10)));
        assert_int_equal(earliest_s(&t), 115);
        scene_end(&t.s);
}

/* Figures in tenths of a GiB. */
static struct holder *tenant(struct table *t, bool with_restart)
{
        struct ways_out ways = { .named = (uint8_t) (RELEASE | (with_restart ? RESTART : 0)) };

        ways.floor_bytes[WAY_OUT_RELEASE] = TENTHS(5);
        struct holder *h = scene_tenant(&t->s, t->card, TENTHS(60), &ways);
        h->idle_since_ms = t->s.now_ms - SECONDS(1000);
        return h;
}

static void C8_floor_stays_and_work_is_never_broken_for_it(void **state)
{
        (void) state;
        struct table t;
        begin(&t, TENTHS(240));
        (void) works(&t, (struct ask){ .bytes = TENTHS(140) });
        long_after(&t);
        struct holder *h = tenant(&t, false);
        assert_true(asks(&t, 2, TENTHS(95)));
        assert_int_equal(way_of(&t, (uint32_t) (h - t.s.world->holders)), WAY_OUT_RELEASE);
        assert_false(asks(&t, 2, TENTHS(96)));
        h->ways.named |= RESTART;
        assert_true(asks(&t, 2, TENTHS(95)));
        assert_int_equal(way_of(&t, (uint32_t) (h - t.s.world->holders)), WAY_OUT_RELEASE);
        assert_true(asks(&t, 2, TENTHS(96)));
        assert_int_equal(way_of(&t, (uint32_t) (h - t.s.world->holders)), WAY_OUT_RESTART);
        h->idle_since_ms = 0;
        assert_false(asks(&t, 2, TENTHS(96)));
        scene_end(&t.s);

        begin(&t, TENTHS(240));
        (void) works(&t, (struct ask){ .bytes = TENTHS(80) });
        long_after(&t);
        struct holder *t1 = tenant(&t, true), *t2 = tenant(&t, true);
        uint32_t row1 = (uint32_t) (t1 - t.s.world->holders), row2 = (uint32_t) (t2 - t.s.world->holders);
        assert_true(asks(&t, 2, TENTHS(150)));
        assert_int_equal(way_of(&t, row1), WAY_OUT_RELEASE);
        assert_int_equal(way_of(&t, row2), WAY_OUT_RELEASE);
        assert_true(asks(&t, 2, TENTHS(155)));
        assert_int_equal(way_of(&t, row1), WAY_OUT_RESTART);
        assert_int_equal(way_of(&t, row2), WAY_OUT_RELEASE);
        assert_true(asks(&t, 2, TENTHS(160)));
        assert_int_equal(way_of(&t, row1), WAY_OUT_RESTART);
        assert_int_equal(way_of(&t, row2), WAY_OUT_RESTART);
        scene_end(&t.s);
}

static void C9_host_memory_has_to_have_room_in_every_way(void **state)
{
        (void) state;
        for (int case_ = 0; case_ < 6; case_++) {
                struct table t;
                begin(&t, GiB(24));
                uint64_t f = works(&t, (struct ask){ .bytes = GiB(10),
                                                     .priority = 5,
                                                     .proven = case_ == 5 ? 0 : CHECKPOINT,
                                                     .named = case_ == 5 ? CHECKPOINT | RESTART : 0 });
                (void) works(&t, (struct ask){ .bytes = GiB(10) });
                long_after(&t);
                enum reclaim_no no = RECLAIM_MAY;
                if (case_ == 1 || case_ == 5) {
                        scene_ledger(&t.s, GiB(24));
                        no = RECLAIM_LEDGER_FULL;
                } else if (case_ == 2) {
                        scene_host(&t.s, GiB(64), GiB(14), false);
                        no = RECLAIM_HOST_MEMORY;
                } else if (case_ == 3) {
                        for (uint32_t i = 0; i < t.s.world->n_processes; i++)
                                t.s.world->processes[i].room_bytes = GiB(9);
                        no = RECLAIM_CGROUP_LIMIT;
                } else if (case_ == 4) {
                        scene_host(&t.s, GiB(64), GiB(50), true);
                        no = RECLAIM_PRESSURE;
                }
                bool goes = asks(&t, 2, GiB(8));
                assert_int_equal(goes, case_ == 0 || case_ == 5);
                if (case_ == 5)
                        assert_int_equal(t.plan.steps[0].way, WAY_OUT_RESTART);
                else if (goes)
                        assert_takes_only(&t, f);
                else
                        assert_no(&t, no);
                scene_end(&t.s);
        }
}

static void gentlest_way_out_is_tried_first_and_among_equals_as_they_were_declared(void **state)
{
        (void) state;
        static const struct {
                const char *declared;
                enum way_out_kind first;
        } rows[] = {
                { "cooperate,checkpoint", WAY_OUT_COOPERATE },
                { "checkpoint,cooperate", WAY_OUT_CHECKPOINT },
                { "restart,checkpoint,cooperate", WAY_OUT_CHECKPOINT },
                { "kill,restart", WAY_OUT_KILL },
                { "restart,kill", WAY_OUT_RESTART },
                { "kill,restart,cooperate", WAY_OUT_COOPERATE },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct table t;
                struct ways_out ways = { 0 };
                uint32_t bad_at;
                begin(&t, GiB(24));
                assert_true(ways_out_parse_declared(rows[i].declared, &ways, &bad_at));
                uint64_t id = works(&t, (struct ask){ .bytes = GiB(20), .priority = 5, .named = ways.named });
                scene_lease(&t.s, id)->ways = ways;
                long_after(&t);
                assert_true(asks(&t, 2, GiB(10)));
                assert_string_equal(way_out_name((enum way_out_kind) t.plan.steps[0].way), way_out_name(rows[i].first));
                scene_end(&t.s);
        }
}

static void C10_small_ones_that_fill_the_ledger_do_not_hide_the_plan_there_is(void **state)
{
        (void) state;
        struct table t;
        for (int full = 0; full <= 1; full++) {
                begin(&t, GiB(24));
                (void) works(&t, (struct ask){ .bytes = GiB(8), .priority = 5, .proven = CHECKPOINT });
                (void) works(&t, (struct ask){ .bytes = GiB(8), .priority = 5, .proven = CHECKPOINT });
                (void) works(&t, (struct ask){ .bytes = GiB(8) });
                long_after(&t);
                scene_ledger(&t.s, GiB(full ? 20 : 16));
                assert_int_equal(asks(&t, 2, GiB(16)), !full);
                if (full)
                        assert_no(&t, RECLAIM_LEDGER_FULL);
                else
                        assert_int_equal(t.plan.n, 2);
                scene_end(&t.s);
        }
        begin(&t, GiB(24));
        uint64_t f = works(
                &t,
                (struct ask){ .bytes = GiB(4), .priority = 5, .uid = ALICE, .consumer = "f", .proven = CHECKPOINT });
        uint64_t g = works(
                &t,
                (struct ask){ .bytes = GiB(12), .priority = 5, .uid = ALICE, .consumer = "g", .proven = CHECKPOINT });
        (void) works(&t, (struct ask){ .bytes = GiB(8) });
        long_after(&t);
        scene_cost(&t.s, ALICE, "f", WAY_OUT_CHECKPOINT, 1, 1);
        scene_cost(&t.s, ALICE, "g", WAY_OUT_CHECKPOINT, 30, 30);
        scene_ledger(&t.s, GiB(20));
        assert_true(asks(&t, 2, GiB(12)));
        assert_takes_only(&t, g);
        (void) f;
        scene_end(&t.s);
}

struct filler {
        uint64_t bytes;
        uint64_t cost_s;
        uint8_t priority;
};

static void fillers(struct table *t, const struct filler *of, size_t n, uint64_t ids[])
{
        static const char *const consumers[] = { "a", "b", "c" };
        uint64_t sum = 0;

        begin(t, GiB(24));
        for (size_t i = 0; i < n; i++) {
                ids[i] = works(t, (struct ask){ .bytes = of[i].bytes,
                                                .priority = of[i].priority,
                                                .uid = ALICE,
                                                .consumer = consumers[i],
                                                .proven = CHECKPOINT });
                scene_cost(&t->s, ALICE, consumers[i], WAY_OUT_CHECKPOINT, of[i].cost_s, of[i].cost_s);
                sum += of[i].bytes;
        }
        (void) works(t, (struct ask){ .bytes = GiB(24) - sum, .priority = 2 });
        long_after(t);
}

static void C11_victims_that_turned_out_unnecessary_are_dropped(void **state)
{
        (void) state;
        static const struct {
                struct filler of[3];
                size_t n;
                uint64_t asks;
                const char *taken;
        } rows[] = {
                { { { GiB(4), 1, 5 }, { GiB(8), 2, 5 } }, 2, GiB(8), "b" },
                { { { GiB(4), 1, 5 }, { GiB(8), 2, 5 } }, 2, GiB(4), "a" },
                { { { GiB(4), 1, 5 }, { GiB(5), 2, 5 }, { GiB(6), 3, 5 } }, 3, GiB(10), "ac" },
                { { { GiB(8), 10, 5 }, { GiB(8), 2, 5 } }, 2, GiB(8), "b" },
                { { { GiB(8), 10, 5 }, { GiB(8), 2, 4 } }, 2, GiB(8), "a" },
                { { { GiB(8), 10, 4 }, { GiB(8), 2, 3 } }, 2, GiB(8), "a" },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct table t;
                uint64_t ids[3];
                char taken[4] = "";
                fillers(&t, rows[i].of, rows[i].n, ids);
                assert_true(asks(&t, 2, rows[i].asks));
                for (size_t k = 0; k < rows[i].n; k++)
                        if (takes(&t, ids[k]))
                                (void) strcat(taken, (const char[]){ (char) ('a' + k), '\0' });
                assert_string_equal(taken, rows[i].taken);
                scene_end(&t.s);
        }
}

static void C12_debt_is_paid_first(void **state)
{
        (void) state;
        for (uint64_t f_bytes = GiB(4); f_bytes <= GiB(6); f_bytes += GiB(2)) {
                struct table t;
                begin(&t, GiB(24));
                uint64_t f = works(&t, (struct ask){ .bytes = f_bytes, .priority = 5, .proven = CHECKPOINT });
                uint64_t untaken = scene_request(&t.s, (struct ask){ .bytes = GiB(10) + GiB(6) - f_bytes });
                scene_uses(&t.s, untaken, GiB(6) - f_bytes);
                (void) scene_stranger(&t.s, t.card, GiB(12)); /* U 18, 10 of it not taken yet: a debt of 4 */
                long_after(&t);
                assert_int_equal(asks(&t, 2, GiB(2)), f_bytes == GiB(6));
                if (f_bytes == GiB(6))
                        assert_takes_only(&t, f);
                scene_end(&t.s);
        }
}

static void C13_second_demander_shares_no_victim_and_counts_the_first_plan_as_done(void **state)
{
        (void) state;
        static const struct {
                uint64_t bytes, cap, host; /* of 64 GiB, 6.4 are kept */
                enum reclaim_no no;
                uint32_t n;
        } rows[] = {
                { GiB(12), GiB(64), GiB(50), RECLAIM_MAY, 0 }, { GiB(14), GiB(64), GiB(50), RECLAIM_MAY, 0 },
                { GiB(15), GiB(64), GiB(50), RECLAIM_MAY, 1 }, { GiB(15), GiB(32), GiB(50), RECLAIM_LEDGER_FULL, 0 },
                { GiB(15), GiB(64), GiB(47), RECLAIM_MAY, 1 }, { GiB(15), GiB(64), GiB(46), RECLAIM_HOST_MEMORY, 0 },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct table t;
                begin(&t, GiB(48));
                t.s.config.ledger_cap_bytes = rows[i].cap;
                scene_config(&t.s);
                scene_host(&t.s, GiB(64), rows[i].host, false);
                uint64_t v1 = works(
                        &t,
                        (struct ask){
                                .bytes = GiB(20), .priority = 5, .uid = ALICE, .consumer = "1", .proven = CHECKPOINT });
                uint64_t v2 = works(
                        &t,
                        (struct ask){
                                .bytes = GiB(20), .priority = 5, .uid = ALICE, .consumer = "2", .proven = CHECKPOINT });
                scene_cost(&t.s, ALICE, "1", WAY_OUT_CHECKPOINT, 1, 1);
                scene_cost(&t.s, ALICE, "2", WAY_OUT_CHECKPOINT, 9, 9);
                long_after(&t);
                scene_next(&t.s, HAND_LOCK, 1, OUTCOME_NONE, HAND_WHY_NONE); /* it stays on its way */
                uint64_t first = scene_request(&t.s, (struct ask){ .bytes = GiB(14), .priority = 2 });
                assert_waits(&t.s, first);
                assert_state(&t.s, v1, LEASE_ASKING);
                assert_bytes(scene_free(&t.s, t.card), 0); /* a claim of 8 */
                assert_int_equal(asks(&t, 2, rows[i].bytes), rows[i].no == RECLAIM_MAY);
                assert_int_equal(t.plan.n, rows[i].n);
                if (rows[i].n != 0)
                        assert_true(takes(&t, v2));
                if (rows[i].no != RECLAIM_MAY)
                        assert_no(&t, rows[i].no);
                scene_end(&t.s);
        }
}

static void C15_who_went_ahead_as_backfill_gives_way_to_that_head(void **state)
{
        (void) state;
        struct table t;
        begin(&t, GiB(24));
        uint64_t busy = works(&t, (struct ask){ .bytes = GiB(20), .priority = 2, .proven = CHECKPOINT });
        long_after(&t);
        struct reclaim_demand demand = { .device = t.card, .bytes = GiB(10), .priority = 3, .entry = { 7, 1 } };
        reclaim_plan(t.s.world, &demand, &t.plan, NULL);
        assert_false(t.plan.suffices); /* it had passed by its priority */
        scene_lease(&t.s, busy)->backfilled = true;
        scene_lease(&t.s, busy)->backfill_for = demand.entry;
        reclaim_plan(t.s.world, &demand, &t.plan, NULL);
        assert_true(t.plan.suffices);
        assert_takes_only(&t, busy);
        demand.priority = 5;
        reclaim_plan(t.s.world, &demand, &t.plan, NULL);
        assert_false(t.plan.suffices);
        scene_end(&t.s);
}

static void C16_nothing_says_that_an_unknown_memory_would_come_back(void **state)
{
        (void) state;
        struct table t;
        begin(&t, GiB(24));
        uint64_t busy = works(&t, (struct ask){ .bytes = GiB(20), .priority = 5, .proven = CHECKPOINT, .named = 0 });
        long_after(&t);
        scene_process_uses(&t.s, scene_owner(&t.s, busy), t.card, GiB(20), ROW_COMPUTE);
        assert_false(asks(&t, 2, GiB(10)));
        assert_no(&t, RECLAIM_UNKNOWN);
        t.s.cards[t.card].used_unknown = true;
        scene_look(&t.s);
        assert_false(asks(&t, 2, GiB(10)));
        scene_end(&t.s);

        begin(&t, GiB(24));
        uint64_t pinned = works(&t, (struct ask){ .bytes = GiB(14), .priority = 5, .proven = CHECKPOINT });
        long_after(&t);
        (void) scene_stranger(&t.s, t.card, GiB(9));
        scene_pin(&t.s, pinned, 0);
        assert_false(asks(&t, 2, GiB(5)));
        assert_bytes(t.why.ceiling_bytes, GiB(10));
        assert_no(&t, RECLAIM_NOT_A_LEASE);
        assert_no(&t, RECLAIM_PINNED);
        assert_bytes(t.plan.earliest_ms, 0);
        scene_end(&t.s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(C1_filler_first_then_whoever_is_idle),
                cmocka_unit_test(C2_filler_waits_for_the_keep_alive_and_never_takes_from_work),
                cmocka_unit_test(C3_idle_service_lingers_for_its_equals_and_unknown_is_busy),
                cmocka_unit_test(C4_busy_work_gives_way_to_who_is_more_important_by_the_margin),
                cmocka_unit_test(C5_rank_of_a_grant_is_kept_for_half_an_hour),
                cmocka_unit_test(C6_immune_for_some_time_after_a_return),
                cmocka_unit_test(C7_kill_is_immune_from_the_grant_and_restart_is_cheap),
                cmocka_unit_test(C8_floor_stays_and_work_is_never_broken_for_it),
                cmocka_unit_test(C9_host_memory_has_to_have_room_in_every_way),
                cmocka_unit_test(gentlest_way_out_is_tried_first_and_among_equals_as_they_were_declared),
                cmocka_unit_test(C10_small_ones_that_fill_the_ledger_do_not_hide_the_plan_there_is),
                cmocka_unit_test(C11_victims_that_turned_out_unnecessary_are_dropped),
                cmocka_unit_test(C12_debt_is_paid_first),
                cmocka_unit_test(C13_second_demander_shares_no_victim_and_counts_the_first_plan_as_done),
                cmocka_unit_test(C15_who_went_ahead_as_backfill_gives_way_to_that_head),
                cmocka_unit_test(C16_nothing_says_that_an_unknown_memory_would_come_back),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
