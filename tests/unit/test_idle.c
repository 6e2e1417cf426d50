/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds and does nothing: the ladder in virtual time, what is no idleness, and that it takes nothing but a way out. */
#include <string.h>
#include "arbiter/idle.h"
#include "arbiter/reclaim.h"
#include "scene_park.h"

#define COMPUTE (ROW_USED_KNOWN | ROW_COMPUTE)
#define CHECKPOINT WAY_OUT_BIT(WAY_OUT_CHECKPOINT)
#define COOPERATE WAY_OUT_BIT(WAY_OUT_COOPERATE)
#define KILL WAY_OUT_BIT(WAY_OUT_KILL)
#define MINUTES(n) ((uint64_t) (n) *60)

struct stage {
        struct scene s;
        uint32_t card;
        uint64_t lease;
};

static void begin_as(struct stage *t, struct ask ask)
{
        memset(t, 0, sizeof(*t));
        scene_begin(&t->s);
        t->card = scene_device(&t->s, GiB(24));
        scene_hands(&t->s);
        t->lease = scene_request(&t->s, ask);
        assert_runs(&t->s, t->lease);
        scene_uses(&t->s, t->lease, ask.bytes);
}

static void begin(struct stage *t)
{
        begin_as(t, (struct ask){ .bytes = GiB(20), .named = CHECKPOINT, .proven = CHECKPOINT });
}

static const struct holder *holder_of(struct stage *t)
{
        return world_holder_get(t->s.world, scene_lease(&t->s, t->lease)->holder);
}

/* What the eyes say of its owner's process from now on: ROW_RESTED, ROW_WORKED, or 0 = nobody knows. */
static void does(struct stage *t, uint32_t flag)
{
        struct scene_row *row = scene_row(&t->s, scene_owner(&t->s, t->lease), t->card);

        assert_non_null(row);
        row->flags = COMPUTE | flag;
        scene_look(&t->s);
}

static bool would_be_taken(struct stage *t, uint8_t priority)
{
        struct reclaim_demand demand = { .device = t->card, .bytes = GiB(10), .priority = priority };
        struct reclaim plan;
        struct reason why = { 0 };

        scene_look(&t->s);
        reclaim_plan(t->s.world, &demand, &plan, &why);
        return plan.suffices && plan.n == 1;
}

static size_t said(struct stage *t, enum rule rule)
{
        return scene_count_rule(&t->s, 0, t->lease, rule);
}

/* 30 min, 60 min, 24 h, each said once; nobody is signalled, nothing is taken while nobody asks. */
static void idle_holder_climbs_the_ladder(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint64_t until_s;
                size_t began, notice, reclaimable, listed;
                bool taken_by_its_equal;
        } rows[] = {
                { "59 s: a pause", 59, 0, 0, 0, 0, false },
                { "a minute", 60, 1, 0, 0, 0, false },
                { "a second before half an hour", MINUTES(30) - 1, 1, 0, 0, 0, false },
                { "half an hour", MINUTES(30), 1, 1, 0, 0, false },
                { "a second before an hour", MINUTES(60) - 1, 1, 1, 0, 0, false },
                { "an hour", MINUTES(60), 1, 1, 1, 0, true },
                { "a second before a day", MINUTES(24 * 60) - 1, 1, 1, 1, 0, true },
                { "a day", MINUTES(24 * 60), 1, 1, 1, 1, true },
                { "two days", MINUTES(48 * 60), 1, 1, 1, 1, true },
        };
        struct stage t;

        begin(&t);
        does(&t, ROW_RESTED);
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                scene_tick_to_s(&t.s, rows[i].until_s);
                assert_int_equal(said(&t, RULE_IDLE_BEGAN), rows[i].began);
                assert_int_equal(said(&t, RULE_IDLE_NOTICE), rows[i].notice);
                assert_int_equal(said(&t, RULE_IDLE_RECLAIMABLE), rows[i].reclaimable);
                assert_int_equal(said(&t, RULE_IDLE_LISTED), rows[i].listed);
                assert_int_equal(would_be_taken(&t, PRIORITY_NORMAL), rows[i].taken_by_its_equal);
                assert_int_equal(idle_is_listed(t.s.world, holder_of(&t)), rows[i].listed != 0);
        }
        assert_int_equal(said(&t, RULE_IDLE_OVER), 0);
        assert_int_equal(scene_n_orders(&t.s, 0, HAND_SIGNAL), 0);
        assert_runs(&t.s, t.lease);
        scene_end(&t.s);
}

static void idle_holder_with_no_way_out_is_listed_and_stays(void **state)
{
        (void) state;
        struct stage t;

        begin_as(&t, (struct ask){ .bytes = GiB(20) });
        does(&t, ROW_RESTED);
        scene_tick_to_s(&t.s, MINUTES(25 * 60));
        assert_int_equal(said(&t, RULE_IDLE_LISTED), 1);
        assert_false(would_be_taken(&t, PRIORITY_INTERACTIVE));
        uint64_t b = scene_request(&t.s, (struct ask){ .uid = BOB, .bytes = GiB(20) });
        scene_tick_to_s(&t.s, MINUTES(26 * 60));
        assert_waits(&t.s, b);
        assert_runs(&t.s, t.lease);
        assert_int_equal(scene_n_orders(&t.s, 0, HAND_SIGNAL), 0);
        scene_end(&t.s);
}

static void what_nobody_knows_counts_as_work(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint32_t flag;
                bool rows_unknown;
        } rows[] = {
                { "the driver has no samples", 0, false },
                { "it works", ROW_WORKED, false },
                { "rested on one device, worked on the other list", ROW_RESTED | ROW_WORKED, false },
                { "no figures of processes at all", ROW_RESTED, true },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct stage t;
                begin(&t);
                t.s.cards[t.card].rows_unknown = rows[i].rows_unknown;
                does(&t, rows[i].flag);
                scene_tick_to_s(&t.s, MINUTES(25 * 60));
                assert_int_equal(scene_count(&t.s, 0, t.lease, ACTION_IDLE), 0);
                assert_int_equal(holder_of(&t)->rests_since_ms, 0);
                assert_false(would_be_taken(&t, PRIORITY_NORMAL));
                scene_end(&t.s);
        }
}

static void one_of_its_processes_at_work_is_work(void **state)
{
        (void) state;
        struct stage t;

        begin(&t);
        does(&t, ROW_RESTED);
        uint32_t child = scene_process(&t.s, 0, scene_owner(&t.s, t.lease), 0);
        scene_process_uses(&t.s, child, t.card, MiB(300), COMPUTE | ROW_WORKED);
        assert_int_equal(holder_of(&t)->n_processes, 2);
        scene_tick_to_s(&t.s, MINUTES(120));
        assert_int_equal(scene_count(&t.s, 0, t.lease, ACTION_IDLE), 0);
        scene_process_ends(&t.s, child);
        scene_look(&t.s);
        scene_tick_to_s(&t.s, MINUTES(150));
        assert_int_equal(said(&t, RULE_IDLE_NOTICE), 1);
        scene_end(&t.s);
}

static void nothing_on_the_device_is_not_idle(void **state)
{
        (void) state;
        struct stage t;

        memset(&t, 0, sizeof(t));
        scene_begin(&t.s);
        t.card = scene_device(&t.s, GiB(24));
        t.lease = scene_request(&t.s, (struct ask){ .bytes = GiB(20) });
        scene_tick_to_s(&t.s, MINUTES(120));
        scene_look(&t.s);
        assert_int_equal(scene_count(&t.s, 0, t.lease, ACTION_IDLE), 0);
        scene_end(&t.s);
}

static void one_sign_of_work_begins_it_anew(void **state)
{
        (void) state;
        struct stage t;

        begin(&t);
        does(&t, ROW_RESTED);
        scene_tick_to_s(&t.s, MINUTES(59));
        does(&t, ROW_WORKED);
        scene_tick_to_s(&t.s, MINUTES(59) + 1);
        const struct action *over = scene_last_rule(&t.s, t.lease, RULE_IDLE_OVER);
        assert_non_null(over);
        assert_int_equal(over->why.start_ms, SCENE_START_MS);
        does(&t, ROW_RESTED);
        scene_tick_to_s(&t.s, MINUTES(118));
        assert_int_equal(said(&t, RULE_IDLE_RECLAIMABLE), 0);
        assert_int_equal(said(&t, RULE_IDLE_NOTICE), 2);
        scene_tick_to_s(&t.s, MINUTES(119) + 1);
        assert_int_equal(said(&t, RULE_IDLE_RECLAIMABLE), 1);
        assert_int_equal(said(&t, RULE_IDLE_BEGAN), 2);
        scene_end(&t.s);
}

/* Work between two ticks, and idle again at the second: two spans, not one. */
static void work_that_no_tick_saw_ends_the_span(void **state)
{
        (void) state;
        struct stage t;

        begin(&t);
        does(&t, ROW_RESTED);
        scene_tick_to_s(&t.s, MINUTES(40));
        t.s.now_ms += 200;
        does(&t, ROW_WORKED);
        t.s.now_ms += 200;
        does(&t, ROW_RESTED);
        scene_tick_to_s(&t.s, MINUTES(45));
        assert_int_equal(said(&t, RULE_IDLE_OVER), 1);
        assert_int_equal(said(&t, RULE_IDLE_BEGAN), 2);
        assert_int_equal(said(&t, RULE_IDLE_NOTICE), 1);
        scene_end(&t.s);
}

static void each_class_has_its_own_ladder(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint8_t priority;
                struct idle_ladder ladder;
                uint64_t until_s;
                size_t notice, reclaimable, listed;
        } rows[] = {
                { "batch: a minute and two", PRIORITY_BATCH, { 60000, 120000, 180000 }, 179, 0, 1, 0 },
                { "interactive: as for everyone", PRIORITY_INTERACTIVE, { 1800000, 3600000, 86400000 }, 1799, 0, 0, 0 },
                { "never reclaimable", PRIORITY_NORMAL, { 1800000, 0, 86400000 }, 7200, 1, 0, 0 },
                { "nothing at all", PRIORITY_NORMAL, { 0, 0, 0 }, 100000, 0, 0, 0 },
                { "listed only", PRIORITY_NORMAL, { 0, 0, 60000 }, 100, 0, 0, 1 },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct stage t;
                begin_as(&t, (struct ask){ .bytes = GiB(20), .priority = rows[i].priority, .named = CHECKPOINT });
                t.s.config.idle[rows[i].priority - 1] = rows[i].ladder;
                scene_config(&t.s);
                does(&t, ROW_RESTED);
                scene_tick_to_s(&t.s, rows[i].until_s);
                /* A step that falls together with the first word of it is said at once; one that was overtaken is not. */
                assert_in_range(said(&t, RULE_IDLE_NOTICE), rows[i].notice, rows[i].notice + (i == 0));
                assert_int_equal(said(&t, RULE_IDLE_RECLAIMABLE), rows[i].reclaimable);
                assert_int_equal(said(&t, RULE_IDLE_LISTED), rows[i].listed);
                /* By its equal, who stops nobody at work. */
                assert_int_equal(would_be_taken(&t, rows[i].priority), rows[i].reclaimable != 0);
                scene_end(&t.s);
        }
}

/* A program that tells when it is idle is believed in both: what it looks like from outside is another thing. */
static void its_own_word_goes_before_what_is_seen(void **state)
{
        (void) state;
        struct stage t;

        begin(&t);
        scene_says(&t.s, t.lease, PARK_CALL_BUSY, 0);
        does(&t, ROW_RESTED);
        scene_tick_to_s(&t.s, MINUTES(90));
        assert_int_equal(scene_count(&t.s, 0, t.lease, ACTION_IDLE), 0);
        assert_false(would_be_taken(&t, PRIORITY_NORMAL));

        scene_says(&t.s, t.lease, PARK_CALL_IDLE, 0);
        does(&t, ROW_WORKED);
        scene_tick_to_s(&t.s, MINUTES(92));
        assert_int_equal(said(&t, RULE_IDLE_BEGAN), 1);
        assert_true(would_be_taken(&t, PRIORITY_NORMAL)); /* a minute is all it owes */
        scene_tick_to_s(&t.s, MINUTES(160));
        assert_int_equal(said(&t, RULE_IDLE_NOTICE), 1);
        assert_int_equal(said(&t, RULE_IDLE_RECLAIMABLE), 0);
        scene_says(&t.s, t.lease, PARK_CALL_BUSY, 0);
        scene_tick_to_s(&t.s, MINUTES(161));
        assert_int_equal(said(&t, RULE_IDLE_OVER), 1);
        scene_end(&t.s);
}

static void time_in_which_nobody_looked_is_not_counted_blindly(void **state)
{
        (void) state;
        struct stage t;

        begin(&t);
        does(&t, ROW_RESTED);
        scene_tick_to_s(&t.s, MINUTES(20));
        scene_eyes(&t.s, false);
        scene_tick_to_s(&t.s, MINUTES(50));
        assert_int_equal(said(&t, RULE_IDLE_NOTICE), 0); /* the driver is silent: nobody knows */
        scene_eyes(&t.s, true);
        scene_tick_to_s(&t.s, MINUTES(50) + 1);
        assert_int_equal(said(&t, RULE_IDLE_NOTICE), 1); /* the same eyes saw no work of it meanwhile */

        scene_eyes(&t.s, false);
        scene_tick_to_s(&t.s, MINUTES(55));
        struct scene_row *row = scene_row(&t.s, scene_owner(&t.s, t.lease), t.card);
        row->flags = COMPUTE; /* new eyes do not know yet */
        scene_eyes(&t.s, true);
        scene_look(&t.s);
        scene_tick_to_s(&t.s, MINUTES(55) + 2);
        assert_int_equal(said(&t, RULE_IDLE_OVER), 1);
        scene_end(&t.s);
}

static void restart_of_lessord_begins_it_anew(void **state)
{
        (void) state;
        struct stage t;

        begin(&t);
        does(&t, ROW_RESTED);
        scene_tick_to_s(&t.s, MINUTES(20));
        t.s.now_ms += HOURS(10); /* away, or asleep */
        scene_restart(&t.s, (struct restart_facts){ 0 });
        assert_int_equal(holder_of(&t)->rests_since_ms, 0);
        scene_tick(&t.s);
        assert_int_equal(said(&t, RULE_IDLE_RECLAIMABLE), 0);
        scene_end(&t.s);
}

static void parked_lease_is_not_held_idle(void **state)
{
        (void) state;
        struct stage t;

        begin(&t);
        does(&t, ROW_RESTED);
        scene_tick_to_s(&t.s, MINUTES(31));
        assert_int_equal(said(&t, RULE_IDLE_NOTICE), 1);
        scene_says(&t.s, t.lease, PARK_CALL_PARK, 0);
        scene_tick_to_s(&t.s, MINUTES(32));
        assert_state(&t.s, t.lease, LEASE_PARKED);
        assert_int_equal(said(&t, RULE_IDLE_OVER), 1);
        assert_int_equal(idle_since_ms(t.s.world, holder_of(&t)), 0);
        scene_tick_to_s(&t.s, MINUTES(32 + 25 * 60));
        assert_int_equal(said(&t, RULE_IDLE_LISTED), 0);
        assert_int_equal(said(&t, RULE_IDLE_BEGAN), 1);
        scene_end(&t.s);
}

/* Its program said that it has nothing to do, and its memory says otherwise. What it gives back, or the driver's few pages, says
 * nothing; from what it went down to on, growth counts. */
static void memory_that_grows_is_work_whatever_the_program_said(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint64_t then_mib[3]; /* after 4 GiB; 0 = no more */
                bool idle;
        } rows[] = {
                { "as it was", { 4096 }, true },
                { "16 MiB more", { 4096 + 16 }, true },
                { "17 MiB more", { 4096 + 17 }, false },
                { "17 MiB more, in two steps", { 4096 + 10, 4096 + 17 }, false },
                { "less", { 2048 }, true },
                { "less, and all of it again", { 2048, 4096 }, false },
                { "more, and as it was again", { 6144, 4096 }, false },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct stage t;
                begin(&t);
                scene_uses(&t.s, t.lease, GiB(4));
                scene_says(&t.s, t.lease, PARK_CALL_IDLE, 0);
                print_message("# %s\n", rows[i].name);
                assert_int_not_equal(idle_since_ms(t.s.world, holder_of(&t)), 0);
                for (size_t k = 0; k < 3 && rows[i].then_mib[k] != 0; k++)
                        scene_uses(&t.s, t.lease, MiB(rows[i].then_mib[k]));
                assert_int_equal(idle_since_ms(t.s.world, holder_of(&t)) != 0, rows[i].idle);
                scene_tick_to_s(&t.s, 61);
                assert_int_equal(would_be_taken(&t, PRIORITY_NORMAL), rows[i].idle);
                scene_end(&t.s);
        }
}

static void held_in_place_is_not_held_idle(void **state)
{
        (void) state;
        struct stage t;

        begin_as(&t,
                 (struct ask){
                         .bytes = GiB(10), .priority = PRIORITY_FILLER, .named = CHECKPOINT, .proven = CHECKPOINT });
        t.s.config.hold_in_place = true;
        scene_config(&t.s);
        does(&t, ROW_RESTED);
        scene_tick_to_s(&t.s, MINUTES(31));
        uint64_t b =
                scene_request(&t.s, (struct ask){ .uid = BOB, .bytes = GiB(10), .priority = PRIORITY_INTERACTIVE });
        scene_says_as(&t.s, b, PARK_CALL_BUSY, 0, BOB);
        scene_tick_to_s(&t.s, MINUTES(31) + 2);
        assert_state(&t.s, t.lease, LEASE_HELD);
        assert_int_equal(idle_since_ms(t.s.world, holder_of(&t)), 0);
        scene_tick_to_s(&t.s, MINUTES(25 * 60));
        assert_int_equal(said(&t, RULE_IDLE_OVER), 1);
        assert_int_equal(said(&t, RULE_IDLE_LISTED), 0);
        scene_end(&t.s);
}

/* After an hour its equal gets the memory, by its own way out; back it comes when there is room, and stops nobody for that. */
static void idle_for_an_hour_gives_way_to_its_equal_and_comes_back(void **state)
{
        (void) state;
        struct stage t;

        begin(&t);
        does(&t, ROW_RESTED);
        scene_tick_to_s(&t.s, 10);
        uint64_t b = scene_request(
                &t.s, (struct ask){ .uid = BOB, .bytes = GiB(20), .named = CHECKPOINT, .proven = CHECKPOINT });
        assert_waits(&t.s, b);
        scene_tick_to_s(&t.s, MINUTES(60) - 1);
        assert_waits(&t.s, b);
        scene_tick_to_s(&t.s, MINUTES(60) + 5);
        assert_state(&t.s, t.lease, LEASE_PARKED);
        assert_runs(&t.s, b);
        scene_uses(&t.s, b, GiB(20));
        scene_tick_to_s(&t.s, MINUTES(180));
        assert_runs(&t.s, b);
        assert_state(&t.s, t.lease, LEASE_PARKED);
        scene_process_ends(&t.s, scene_owner(&t.s, b));
        scene_release(&t.s, b);
        scene_tick_to_s(&t.s, MINUTES(185));
        assert_runs(&t.s, t.lease);
        assert_int_equal(scene_n_orders(&t.s, 0, HAND_SIGNAL), 0);
        scene_end(&t.s);
}

/* It never says that it has work again, so it is not waited for. */
static void seen_idle_and_asked_to_cooperate_comes_back_by_itself(void **state)
{
        (void) state;
        struct stage t;

        begin_as(&t, (struct ask){ .bytes = GiB(20), .named = COOPERATE });
        does(&t, ROW_RESTED);
        scene_tick_to_s(&t.s, MINUTES(61));
        uint64_t b = scene_request(&t.s, (struct ask){ .uid = BOB, .bytes = GiB(20) });
        assert_state(&t.s, t.lease, LEASE_ASKING);
        scene_yields(&t.s, t.lease);
        scene_tick_to_s(&t.s, MINUTES(61) + 5);
        assert_runs(&t.s, b);
        assert_true(!ref_is_none(scene_lease(&t.s, t.lease)->entry));
        scene_release(&t.s, b);
        scene_tick_to_s(&t.s, MINUTES(61) + 20);
        assert_state(&t.s, t.lease, LEASE_THAWING);
        scene_end(&t.s);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(idle_holder_climbs_the_ladder),
                cmocka_unit_test(idle_holder_with_no_way_out_is_listed_and_stays),
                cmocka_unit_test(what_nobody_knows_counts_as_work),
                cmocka_unit_test(one_of_its_processes_at_work_is_work),
                cmocka_unit_test(nothing_on_the_device_is_not_idle),
                cmocka_unit_test(one_sign_of_work_begins_it_anew),
                cmocka_unit_test(work_that_no_tick_saw_ends_the_span),
                cmocka_unit_test(each_class_has_its_own_ladder),
                cmocka_unit_test(its_own_word_goes_before_what_is_seen),
                cmocka_unit_test(time_in_which_nobody_looked_is_not_counted_blindly),
                cmocka_unit_test(restart_of_lessord_begins_it_anew),
                cmocka_unit_test(parked_lease_is_not_held_idle),
                cmocka_unit_test(memory_that_grows_is_work_whatever_the_program_said),
                cmocka_unit_test(held_in_place_is_not_held_idle),
                cmocka_unit_test(idle_for_an_hour_gives_way_to_its_equal_and_comes_back),
                cmocka_unit_test(seen_idle_and_asked_to_cooperate_comes_back_by_itself),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
