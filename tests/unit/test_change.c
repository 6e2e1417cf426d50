/* SPDX-License-Identifier: Apache-2.0 */
/* What may be changed of a lease that lives, by whom, and what others see of it. All of it or nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "scene.h"

#define RESTART WAY_OUT_BIT(WAY_OUT_RESTART)
#define COMPUTE (ROW_USED_KNOWN | ROW_COMPUTE)

#define renice(s, id, p) scene_change((s), (id), (struct change){ .what = CHANGE_PRIORITY, .priority = (p) })
#define extend(s, id, seconds)                                                                                         \
        scene_change((s), (id), (struct change){ .what = CHANGE_EXTEND, .slot_ms = SECONDS(seconds) })
#define set_slot(s, id, seconds)                                                                                       \
        scene_change((s), (id), (struct change){ .what = CHANGE_SLOT, .slot_ms = SECONDS(seconds) })
#define pin(s, id, seconds) scene_change((s), (id), (struct change){ .what = CHANGE_PIN, .pin_ms = SECONDS(seconds) })

#define assert_changed(s) assert_kind((s)->answer, ACTION_CHANGED)
#define assert_refused(s, r)                                                                                           \
        do {                                                                                                           \
                assert_kind((s)->answer, ACTION_REFUSED);                                                              \
                assert_rule((s)->answer, (r));                                                                         \
        } while (0)

static struct holder *holder(struct scene *s, uint64_t id)
{
        return world_holder_get(s->world, scene_lease(s, id)->holder);
}

/* ---- priority ---- */

static void reniced_request_goes_ahead_and_is_told(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        uint64_t first = scene_request(&s, (struct ask){ .bytes = GiB(20), .priority = 4 });
        uint64_t second = scene_request(&s, (struct ask){ .bytes = GiB(20), .priority = 4 });
        size_t since = s.n_log;
        renice(&s, second, 2);
        assert_changed(&s);
        assert_int_equal(s.answer.priority, 2);
        assert_int_equal(scene_count(&s, since, second, ACTION_WAITING), 1);
        assert_int_equal(scene_last(&s, second, ACTION_WAITING)->why.place, 1);
        since = s.n_log;
        renice(&s, first, 3); /* it stays where it is: told all the same, as who asked wants to know */
        assert_int_equal(scene_count(&s, since, first, ACTION_WAITING), 1);
        assert_int_equal(scene_last(&s, first, ACTION_WAITING)->why.place, 2);
        scene_release(&s, a);
        assert_runs(&s, second);
        assert_waits(&s, first);
        scene_end(&s);
}

/* As head with a start in sight it would stay head: that was said of what it was. */
static void head_that_is_reniced_to_less_lets_the_others_go_first(void **state)
{
        (void) state;
        static const uint8_t to[] = { 4, 5 };
        for (size_t i = 0; i < 2; i++) {
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(20), .slot_s = 600 });
                uint64_t other = scene_request(&s, (struct ask){ .bytes = GiB(20), .priority = 4, .uid = BOB });
                uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(20), .priority = 3, .uid = ALICE });
                assert_true(scene_entry(&s, head)->is_head);
                renice(&s, head, to[i]);
                assert_changed(&s);
                assert_true(scene_entry(&s, other)->is_head);
                assert_false(scene_entry(&s, head)->is_head);
                scene_release(&s, a);
                assert_runs(&s, other);
                assert_waits(&s, head);
                scene_end(&s);
        }
}

static void reniced_holder_ranks_as_its_new_priority(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .bytes = GiB(20), .priority = 3 });
        renice(&s, a, 5);
        assert_changed(&s);
        assert_int_equal(scene_lease(&s, a)->priority, 5);
        assert_int_equal(scene_lease(&s, a)->kept_rank, 5); /* not the rank of its grant for 30 min */
        renice(&s, a, 2);
        assert_int_equal(scene_lease(&s, a)->kept_rank, 2);
        scene_end(&s);
}

static void priority_above_the_callers_ceiling_is_refused(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint32_t uid, quota;
                bool admin;
                uint8_t priority;
                enum rule rule;
                uint32_t limit;
        } rows[] = {
                { "everyone, 2", ALICE, 0, false, 2, RULE_NONE, 0 },
                { "everyone, 1", ALICE, 0, false, 1, RULE_PRIORITY_CEILING, 2 },
                { "0 is none", ALICE, 0, false, 0, RULE_PRIORITY_CEILING, 2 },
                { "a student, 4", ALICE, 1, false, 4, RULE_NONE, 0 },
                { "a student, 3", ALICE, 1, false, 3, RULE_PRIORITY_CEILING, 4 },
                { "an operator, 1", ALICE, 2, false, 1, RULE_NONE, 0 },
                { "an administrator in a student's row, 1", BOB, 1, true, 1, RULE_NONE, 0 },
                { "somebody else, 4", BOB, 0, false, 4, RULE_NOT_OWNER, 0 },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                s.config.n_quotas = 2;
                s.config.quotas[0] = (struct quota){ .priority_min = 4, .leases_max = 9, .waiting_max = 9 };
                s.config.quotas[1] = (struct quota){ .priority_min = 1, .leases_max = 9, .waiting_max = 9 };
                scene_config(&s);
                uint64_t x = scene_request(
                        &s, (struct ask){ .uid = ALICE, .bytes = GiB(2), .slot_s = 600, .named = RESTART });
                scene_change(&s, x,
                             (struct change){ .what = CHANGE_PRIORITY,
                                              .priority = rows[i].priority,
                                              .uid = rows[i].uid,
                                              .quota = rows[i].quota,
                                              .is_admin = rows[i].admin });
                if (rows[i].rule == RULE_NONE)
                        assert_changed(&s);
                else
                        assert_refused(&s, rows[i].rule);
                assert_int_equal(s.answer.why.limit, rows[i].rule == RULE_NONE ? CHANGE_PRIORITY : rows[i].limit);
                assert_int_equal(scene_lease(&s, x)->priority, rows[i].rule == RULE_NONE ? rows[i].priority : 3);
                scene_end(&s);
        }
}

static void urgent_lease_never_is_without_an_end_and_a_way_to_it(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint8_t priority;
                uint64_t slot_s;
                uint8_t named;
                bool kill_at_end;
                struct change change;
                bool may;
        } rows[] = {
                { "no slot", 3, 0, RESTART, false, { .what = CHANGE_PRIORITY, .priority = 1 }, false },
                { "slot, no way out", 3, 600, 0, false, { .what = CHANGE_PRIORITY, .priority = 1 }, false },
                { "slot, way out", 3, 600, RESTART, false, { .what = CHANGE_PRIORITY, .priority = 1 }, true },
                { "slot, ended at its end", 3, 600, 0, true, { .what = CHANGE_PRIORITY, .priority = 1 }, true },
                { "slot with it",
                  3,
                  0,
                  RESTART,
                  false,
                  { .what = CHANGE_PRIORITY | CHANGE_SLOT, .priority = 1, .slot_ms = SECONDS(60) },
                  true },
                { "slot taken off with it",
                  3,
                  600,
                  RESTART,
                  false,
                  { .what = CHANGE_PRIORITY | CHANGE_SLOT, .priority = 1 },
                  false },
                { "slot taken off an urgent one", 1, 600, RESTART, false, { .what = CHANGE_SLOT }, false },
                { "slot taken off one that is urgent no more",
                  1,
                  600,
                  RESTART,
                  false,
                  { .what = CHANGE_PRIORITY | CHANGE_SLOT, .priority = 2 },
                  true },
                { "another slot", 1, 600, RESTART, false, { .what = CHANGE_SLOT, .slot_ms = SECONDS(60) }, true },
        };
        for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(*rows); i++) {
                bool waiting = i % 2 != 0;
                const __typeof__(rows[0]) *row = &rows[i / 2];
                print_message("# %s, %s\n", row->name, waiting ? "waiting" : "running");
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                if (waiting)
                        (void) scene_stranger(&s, 0, GiB(23));
                uint64_t x = scene_request(&s, (struct ask){ .admin = true,
                                                             .priority = row->priority,
                                                             .bytes = GiB(2),
                                                             .slot_s = row->slot_s,
                                                             .named = row->named,
                                                             .kill_at_end = row->kill_at_end });
                assert_int_not_equal(x, 0);
                struct change change = row->change;
                change.is_admin = true;
                scene_change(&s, x, change);
                if (row->may)
                        assert_changed(&s);
                else
                        assert_refused(&s, RULE_URGENT_NEEDS_SLOT);
                const struct lease *lease = scene_lease(&s, x);
                if (lease->priority == 1)
                        assert_true(lease->slot_ms != 0 && (lease->ways.named != 0 || lease->kill_at_end));
                scene_end(&s);
        }
}

/* ---- slot ---- */

static void slot_moves_by_what_is_asked(void **state)
{
        (void) state;
        enum { WAITS, RUNS };
        static const struct {
                const char *name;
                int how;
                uint64_t slot_s, at_s;
                struct change change;
                enum rule rule;
                uint64_t end_s, slot_after_s; /* 0: none */
                bool over_after;
        } rows[] = {
                { "extended in time",
                  RUNS,
                  100,
                  40,
                  { .what = CHANGE_EXTEND, .slot_ms = SECONDS(30) },
                  0,
                  130,
                  130,
                  0 },
                { "extended after its end",
                  RUNS,
                  100,
                  150,
                  { .what = CHANGE_EXTEND, .slot_ms = SECONDS(30) },
                  0,
                  180,
                  180,
                  0 },
                { "extended by nothing after its end", RUNS, 100, 150, { .what = CHANGE_EXTEND }, 0, 150, 150, true },
                { "another one from now on",
                  RUNS,
                  100,
                  40,
                  { .what = CHANGE_SLOT, .slot_ms = SECONDS(200) },
                  0,
                  240,
                  240,
                  0 },
                { "a shorter one", RUNS, 100, 40, { .what = CHANGE_SLOT, .slot_ms = SECONDS(10) }, 0, 50, 50, 0 },
                { "one after its end",
                  RUNS,
                  100,
                  150,
                  { .what = CHANGE_SLOT, .slot_ms = SECONDS(10) },
                  0,
                  160,
                  160,
                  0 },
                { "none any more", RUNS, 100, 40, { .what = CHANGE_SLOT }, 0, 0, 0, 0 },
                { "none any more, after its end", RUNS, 100, 150, { .what = CHANGE_SLOT }, 0, 0, 0, 0 },
                { "one where there was none",
                  RUNS,
                  0,
                  40,
                  { .what = CHANGE_SLOT, .slot_ms = SECONDS(9) },
                  0,
                  49,
                  49,
                  0 },
                { "extended without one",
                  RUNS,
                  0,
                  40,
                  { .what = CHANGE_EXTEND, .slot_ms = SECONDS(9) },
                  RULE_NO_SLOT,
                  0,
                  0,
                  0 },
                { "extended while it waits",
                  WAITS,
                  100,
                  40,
                  { .what = CHANGE_EXTEND, .slot_ms = SECONDS(30) },
                  0,
                  0,
                  130,
                  0 },
                { "another while it waits",
                  WAITS,
                  100,
                  40,
                  { .what = CHANGE_SLOT, .slot_ms = SECONDS(30) },
                  0,
                  0,
                  30,
                  0 },
                { "extended without one while it waits",
                  WAITS,
                  0,
                  40,
                  { .what = CHANGE_EXTEND, .slot_ms = SECONDS(9) },
                  RULE_NO_SLOT,
                  0,
                  0,
                  0 },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                if (rows[i].how == WAITS)
                        (void) scene_stranger(&s, 0, GiB(23));
                uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(2), .slot_s = rows[i].slot_s });
                scene_tick_to_s(&s, rows[i].at_s);
                if (rows[i].at_s > 100 && rows[i].slot_s)
                        assert_true(scene_lease(&s, x)->over_time);
                scene_change(&s, x, rows[i].change);
                if (rows[i].rule != RULE_NONE)
                        assert_refused(&s, rows[i].rule);
                else
                        assert_changed(&s);
                const struct lease *lease = scene_lease(&s, x);
                assert_bytes(lease->slot_end_ms, rows[i].end_s ? SCENE_START_MS + SECONDS(rows[i].end_s) : 0);
                assert_bytes(lease->slot_ms, SECONDS(rows[i].slot_after_s));
                assert_int_equal(lease->over_time, rows[i].over_after);
                if (rows[i].how == WAITS)
                        assert_bytes(scene_entry(&s, x)->limit_ms, SECONDS(rows[i].slot_after_s));
                scene_end(&s);
        }
}

static void extended_lease_is_warned_and_told_of_its_end_again(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(2), .slot_s = 3600 });
        scene_tick_to_s(&s, 3700);
        assert_int_equal(scene_count_rule(&s, 0, x, RULE_SLOT_OVER), 1);
        extend(&s, x, 3600);
        assert_changed(&s);
        scene_tick_to_s(&s, 7299);
        assert_int_equal(scene_count_rule(&s, 0, x, RULE_SLOT_WARNING), 2);
        assert_int_equal(scene_count_rule(&s, 0, x, RULE_SLOT_OVER), 1);
        scene_tick_to_s(&s, 7300);
        assert_int_equal(scene_count_rule(&s, 0, x, RULE_SLOT_OVER), 2);
        scene_end(&s);
}

/* 100 s at most. What it ran beyond its end counts: else whoever is late could have all the time there is. */
static void slot_limit_cannot_be_walked_around(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                uint64_t at_s;
                struct change change;
                bool may;
        } rows[] = {
                { "extended to the limit", 10, { .what = CHANGE_EXTEND, .slot_ms = SECONDS(50) }, true },
                { "extended beyond it", 10, { .what = CHANGE_EXTEND, .slot_ms = SECONDS(50) + 1 }, false },
                { "another to the limit", 30, { .what = CHANGE_SLOT, .slot_ms = SECONDS(70) }, true },
                { "another beyond it", 30, { .what = CHANGE_SLOT, .slot_ms = SECONDS(71) }, false },
                { "none any more", 30, { .what = CHANGE_SLOT }, false },
                { "late, to the limit", 80, { .what = CHANGE_EXTEND, .slot_ms = SECONDS(20) }, true },
                { "late, beyond it", 90, { .what = CHANGE_EXTEND, .slot_ms = SECONDS(20) }, false },
                { "an administrator", 90, { .what = CHANGE_EXTEND, .slot_ms = HOURS(9), .is_admin = true }, true },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                char text[256];
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                s.config.slot_max_ms = SECONDS(100);
                scene_config(&s);
                uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(2), .slot_s = 50 });
                scene_tick_to_s(&s, rows[i].at_s);
                scene_change(&s, x, rows[i].change);
                if (rows[i].may) {
                        assert_changed(&s);
                } else {
                        assert_refused(&s, RULE_LIMIT_SLOT);
                        (void) reason_text(&s.answer.why, s.now_ms, text, sizeof(text));
                        assert_non_null(strstr(text, "1 min 40 s"));
                }
                scene_end(&s);
        }
}

static void backfill_keeps_its_word_while_its_head_waits(void **state)
{
        (void) state;
        struct scene s;
        char text[256];
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        (void) scene_request(&s, (struct ask){ .bytes = GiB(10), .slot_s = 600 });
        uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(10), .slot_s = 300 });
        assert_true(scene_lease(&s, x)->backfilled);
        extend(&s, x, 1);
        assert_refused(&s, RULE_BACKFILL_KEEPS_SLOT);
        assert_bytes(s.answer.why.head_lease_id, head);
        (void) reason_text(&s.answer.why, s.now_ms, text, sizeof(text));
        assert_string_equal(text, "it went ahead of L2 on its word to end in time, and L2 still waits");
        set_slot(&s, x, 0);
        assert_refused(&s, RULE_BACKFILL_KEEPS_SLOT);
        set_slot(&s, x, 301);
        assert_refused(&s, RULE_BACKFILL_KEEPS_SLOT);
        set_slot(&s, x, 200); /* shorter is fine */
        assert_changed(&s);
        scene_tick_to_s(&s, 100);
        set_slot(&s, x, 100); /* no longer than it was */
        assert_changed(&s);
        set_slot(&s, x, 101);
        assert_refused(&s, RULE_BACKFILL_KEEPS_SLOT);
        scene_tick_to_s(&s, 250); /* its end has passed */
        extend(&s, x, 100);
        assert_refused(&s, RULE_BACKFILL_KEEPS_SLOT);
        assert_true(scene_lease(&s, x)->over_time);
        scene_release(&s, head);
        extend(&s, x, 100);
        assert_changed(&s);
        scene_end(&s);
}

static void backfill_without_a_slot_may_be_given_one(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        (void) scene_request(&s, (struct ask){ .bytes = GiB(10), .slot_s = 600 });
        (void) scene_request(&s, (struct ask){ .bytes = GiB(20) });
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(10), .named = RESTART });
        assert_rule(s.answer, RULE_RECLAIMABLE);
        set_slot(&s, x, 10); /* it promised to give way, not to run for ever */
        assert_changed(&s);
        scene_end(&s);
}

/* ---- pins ---- */

static void pins_have_limits(void **state)
{
        (void) state;
        struct scene s;
        char text[256];
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(2) });
        uint64_t b = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(2) });
        uint64_t c = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(2) });
        uint64_t bobs = scene_request(&s, (struct ask){ .uid = BOB, .bytes = GiB(2) });
        pin(&s, a, 60);
        assert_changed(&s);
        pin(&s, b, 86400);
        assert_changed(&s);
        pin(&s, c, 60);
        assert_refused(&s, RULE_LIMIT_PINS);
        (void) reason_text(&s.answer.why, s.now_ms, text, sizeof(text));
        assert_string_equal(text, "this user may pin 2 leases at a time; unpin one first");
        pin(&s, bobs, 60); /* another user's do not count */
        assert_changed(&s);
        pin(&s, a, 120); /* nor does its own */
        assert_changed(&s);
        assert_bytes(holder(&s, a)->pin_end_ms, SCENE_START_MS + SECONDS(120));
        pin(&s, a, 86401);
        assert_refused(&s, RULE_LIMIT_PIN_TIME);
        (void) reason_text(&s.answer.why, s.now_ms, text, sizeof(text));
        assert_string_equal(text, "this user may pin for 1 d at most");
        pin(&s, a, 0); /* without an end */
        assert_refused(&s, RULE_LIMIT_PIN_TIME);
        assert_bytes(holder(&s, a)->pin_end_ms, SCENE_START_MS + SECONDS(120));
        scene_change(&s, c, (struct change){ .what = CHANGE_PIN, .is_admin = true });
        assert_changed(&s);
        scene_change(&s, b, (struct change){ .what = CHANGE_UNPIN });
        assert_changed(&s);
        assert_false(holder(&s, b)->pinned);
        pin(&s, b, 60);
        assert_refused(&s, RULE_LIMIT_PINS); /* the administrator's is this user's */
        scene_release(&s, c);
        pin(&s, b, 60);
        assert_changed(&s);
        scene_end(&s);
}

/* What that is, the core says under the configuration that counts when it decides: a replay under another one differs. */
static void pin_as_long_as_one_may_is_what_the_configuration_says_then(void **state)
{
        (void) state;
        static const struct change longest = { .what = CHANGE_PIN, .pin_ms = CHANGE_PIN_LONGEST };
        struct change admins = longest;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t a = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(2) });
        scene_change(&s, a, longest);
        assert_changed(&s);
        assert_bytes(holder(&s, a)->pin_end_ms, SCENE_START_MS + HOURS(24));
        s.config.pin_max_ms = HOURS(1);
        scene_config(&s);
        scene_change(&s, a, longest);
        assert_changed(&s);
        assert_bytes(holder(&s, a)->pin_end_ms, SCENE_START_MS + HOURS(1));
        s.config.pin_max_ms = 0; /* also without an end */
        scene_config(&s);
        scene_change(&s, a, longest);
        assert_true(holder(&s, a)->pinned && holder(&s, a)->pin_end_ms == 0);
        s.config.pin_max_ms = HOURS(1);
        scene_config(&s);
        admins.is_admin = true;
        scene_change(&s, a, admins);
        assert_true(holder(&s, a)->pinned && holder(&s, a)->pin_end_ms == 0);
        scene_end(&s);
}

static void pin_runs_out_by_itself_and_is_told(void **state)
{
        (void) state;
        struct scene s;
        char text[256];
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(2), .slot_s = 900 });
        pin(&s, x, 60);
        (void) reason_text(&s.answer.why, s.now_ms, text, sizeof(text));
        assert_string_equal(text, "changed by request: pinned");
        uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(24) });
        assert_bytes(scene_entry(&s, head)->start_ms, 0); /* pinned: its slot is no end */
        scene_tick_to_s(&s, 59);
        assert_true(holder(&s, x)->pinned);
        scene_tick_to_s(&s, 60);
        assert_false(holder(&s, x)->pinned);
        assert_int_equal(scene_count(&s, 0, x, ACTION_CHANGED), 2);
        (void) reason_text(&scene_last(&s, x, ACTION_CHANGED)->why, s.now_ms, text, sizeof(text));
        assert_string_equal(text, "its pin has run out: it may be taken back as before");
        assert_bytes(scene_entry(&s, head)->start_ms, SCENE_START_MS + SECONDS(900));
        scene_end(&s);
}

static void who_waits_is_told_when_a_pin_takes_what_he_needs(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(10), .slot_s = 600 });
        uint64_t head = scene_request(&s, (struct ask){ .bytes = GiB(20) });
        scene_change(&s, x, (struct change){ .what = CHANGE_PIN, .is_admin = true });
        assert_changed(&s);
        const struct action *told = scene_last(&s, head, ACTION_WAITING);
        assert_non_null(told);
        assert_rule(*told, RULE_ABOVE_CEILING);
        assert_bytes(told->why.ceiling_bytes, GiB(14));
        assert_int_equal(told->why.blockers[0].kind, BLOCKER_PINNED);
        assert_bytes(told->why.blockers[0].lease_id, x);
        assert_null(scene_head_claim(&s, 0));
        assert_int_equal(scene_request(&s, (struct ask){ .bytes = GiB(20) }), 0);
        assert_rule(s.answer, RULE_NEVER_FITS);
        scene_change(&s, x, (struct change){ .what = CHANGE_UNPIN });
        assert_rule(*scene_last(&s, head, ACTION_WAITING), RULE_NO_ROOM);
        assert_true(scene_entry(&s, head)->is_head);
        scene_end(&s);
}

static void pin_ends_with_its_lease_and_not_with_its_memory(void **state)
{
        (void) state;
        struct scene s;
        scene_begin(&s);
        (void) scene_device(&s, GiB(24));
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(10) });
        scene_uses(&s, x, GiB(10));
        scene_change(&s, x, (struct change){ .what = CHANGE_PIN, .is_admin = true });
        scene_release(&s, x);
        assert_state(&s, x, LEASE_DRAINING);
        uint64_t next = scene_request(&s, (struct ask){ .bytes = GiB(20) }); /* not "never fits" */
        assert_waits(&s, next);
        assert_true(scene_entry(&s, next)->start_ms != 0);
        scene_end(&s);
}

/* ---- who and when ---- */

static void change_of_what_is_over_or_being_ended_is_refused(void **state)
{
        (void) state;
        enum { GONE, DRAINING, ENDING, QUEUED_PIN, N };
        static const enum rule rules[N] = { RULE_NOT_FOUND, RULE_WRONG_STATE, RULE_WRONG_STATE, RULE_WRONG_STATE };
        for (int i = 0; i < N; i++) {
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                if (i == QUEUED_PIN)
                        (void) scene_stranger(&s, 0, GiB(23));
                uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(2), .slot_s = 60, .kill_at_end = true });
                if (i == DRAINING || i == ENDING)
                        scene_uses(&s, x, GiB(1));
                if (i == GONE || i == DRAINING)
                        scene_release(&s, x);
                if (i == ENDING)
                        scene_tick_to_s(&s, 62);
                scene_change(&s, x,
                             (struct change){ .what = i == QUEUED_PIN ? CHANGE_PIN : CHANGE_EXTEND,
                                              .slot_ms = SECONDS(60),
                                              .pin_ms = SECONDS(60),
                                              .is_admin = true });
                assert_refused(&s, rules[i]);
                scene_end(&s);
        }
}

static void change_that_fails_in_part_changes_nothing(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                struct change change;
                enum rule rule;
        } rows[] = {
                { "priority good, slot bad",
                  { .what = CHANGE_PRIORITY | CHANGE_EXTEND, .priority = 4, .slot_ms = HOURS(9) },
                  RULE_LIMIT_SLOT },
                { "slot good, priority bad",
                  { .what = CHANGE_PRIORITY | CHANGE_EXTEND, .priority = 1, .slot_ms = 1 },
                  RULE_PRIORITY_CEILING },
                { "priority and slot good, pin bad",
                  { .what = CHANGE_PRIORITY | CHANGE_EXTEND | CHANGE_PIN, .priority = 4, .slot_ms = 1 },
                  RULE_LIMIT_PIN_TIME },
                { "slot good, pin bad",
                  { .what = CHANGE_SLOT | CHANGE_PIN, .slot_ms = SECONDS(60) },
                  RULE_LIMIT_PIN_TIME },
                { "all good, somebody else's",
                  { .what = CHANGE_PRIORITY | CHANGE_EXTEND | CHANGE_PIN,
                    .priority = 4,
                    .slot_ms = 1,
                    .pin_ms = 1,
                    .uid = BOB },
                  RULE_NOT_OWNER },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                struct scene s;
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                s.config.slot_max_ms = HOURS(1);
                scene_config(&s);
                uint64_t x = scene_request(&s, (struct ask){ .uid = ALICE, .bytes = GiB(2), .slot_s = 600 });
                struct world *before = malloc(sizeof(*before));
                assert_non_null(before);
                memcpy(before, s.world, sizeof(*before));
                scene_change(&s, x, rows[i].change);
                assert_refused(&s, rows[i].rule);
                assert_true(scene_books_same(before, s.world));
                free(before);
                scene_end(&s);
        }
}

static void changes_are_told_with_their_figures(void **state)
{
        (void) state;
        static const struct {
                struct change change;
                const char *text;
        } rows[] = {
                { { .what = CHANGE_PRIORITY, .priority = 4 }, "changed by request: priority" },
                { { .what = CHANGE_EXTEND, .slot_ms = SECONDS(60) }, "changed by request: slot, which ends in 11 min" },
                { { .what = CHANGE_SLOT }, "changed by request: slot" },
                { { .what = CHANGE_PIN, .pin_ms = SECONDS(60) }, "changed by request: pinned" },
                { { .what = CHANGE_UNPIN }, "changed by request: no longer pinned" },
                { { .what = CHANGE_PRIORITY | CHANGE_SLOT | CHANGE_PIN,
                    .priority = 2,
                    .slot_ms = SECONDS(60),
                    .pin_ms = SECONDS(60) },
                  "changed by request: priority, slot, which ends in 1 min, pinned" },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                char text[256];
                scene_begin(&s);
                (void) scene_device(&s, GiB(24));
                uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(2), .slot_s = 600 });
                scene_change(&s, x, rows[i].change);
                assert_changed(&s);
                (void) reason_text(&s.answer.why, s.now_ms, text, sizeof(text));
                assert_string_equal(text, rows[i].text);
                scene_end(&s);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reniced_request_goes_ahead_and_is_told),
                cmocka_unit_test(head_that_is_reniced_to_less_lets_the_others_go_first),
                cmocka_unit_test(reniced_holder_ranks_as_its_new_priority),
                cmocka_unit_test(priority_above_the_callers_ceiling_is_refused),
                cmocka_unit_test(urgent_lease_never_is_without_an_end_and_a_way_to_it),
                cmocka_unit_test(slot_moves_by_what_is_asked),
                cmocka_unit_test(extended_lease_is_warned_and_told_of_its_end_again),
                cmocka_unit_test(slot_limit_cannot_be_walked_around),
                cmocka_unit_test(backfill_keeps_its_word_while_its_head_waits),
                cmocka_unit_test(backfill_without_a_slot_may_be_given_one),
                cmocka_unit_test(pins_have_limits),
                cmocka_unit_test(pin_as_long_as_one_may_is_what_the_configuration_says_then),
                cmocka_unit_test(pin_runs_out_by_itself_and_is_told),
                cmocka_unit_test(who_waits_is_told_when_a_pin_takes_what_he_needs),
                cmocka_unit_test(pin_ends_with_its_lease_and_not_with_its_memory),
                cmocka_unit_test(change_of_what_is_over_or_being_ended_is_refused),
                cmocka_unit_test(change_that_fails_in_part_changes_nothing),
                cmocka_unit_test(changes_are_told_with_their_figures),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
