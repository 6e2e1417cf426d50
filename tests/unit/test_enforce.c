/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The enforcer: what becomes of who has device memory and no lease. By default nothing (S28); where it was switched on, notice, SIGTERM,
 * grace, SIGKILL to the audited identity alone, and in every doubt nothing at all (F48 … F58).
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "scene.h"

#define COMPUTE (ROW_USED_KNOWN | ROW_COMPUTE)
enum { STAY_S = 30, NOTICE_S = 60, GRACE_S = 300, GIVE_UP_S = 60, PYTHON = 0x1234, TRAIN_PY = 0x77, NGINX = 0x4321 };

#define SCRIPT(number) .program = PYTHON, .script = (number), .runs = RUNS_SCRIPT
#define COMMAND(number) .program = PYTHON, .command = (number), .runs = RUNS_COMMAND

/* What the hands do with an order; the ordinary: it is done. */
struct hands {
        enum outcome outcome;
        enum hand_why why;
        bool silent; /* and nothing comes back */
};

static struct hands hands;
static size_t n_answered; /* of the log */

static void answer_orders(struct scene *s)
{
        for (; n_answered < s->n_log; n_answered++)
                if (s->log[n_answered].kind == ACTION_HAND && !hands.silent) {
                        struct action order = s->log[n_answered]; /* the log grows while it is answered */
                        scene_outcome(s, &order, hands.outcome, hands.why);
                }
}

static void begin(struct scene *s)
{
        hands = (struct hands){ .outcome = OUTCOME_DONE };
        n_answered = 0;
        scene_begin(s);
        (void) scene_device(s, GiB(24));
}

static void tick_to(struct scene *s, uint64_t second)
{
        while (scene_s(s) < second) {
                scene_tick_to_s(s, scene_s(s) + 1);
                answer_orders(s);
        }
}

static void call(struct scene *s, struct enforce_call c)
{
        struct input input = { .kind = INPUT_ENFORCE, .enforce = c };

        input.enforce.token = ++s->next_token;
        scene_step_for(s, &input, input.enforce.token);
}

static void mode(struct scene *s, enum enforce_mode m)
{
        call(s, (struct enforce_call){ .is_admin = true, .what = ENFORCE_CALL_MODE, .mode = (uint8_t) m });
        assert_kind(s->answer, ACTION_ENFORCE);
}

/* Facts of a process, by hand. */
static void say_process(struct scene *s, uint32_t pid, struct process facts)
{
        struct input input = { .kind = INPUT_PROCESS, .process = facts };

        input.process.identity = (struct identity){ pid, 7000 + (uint64_t) pid };
        scene_step(s, &input);
}

static uint32_t stranger_with(struct scene *s, struct process facts, uint64_t bytes)
{
        uint32_t pid = s->next_pid++;

        say_process(s, pid, facts);
        scene_process_uses(s, pid, 0, bytes, COMPUTE);
        return pid;
}

static const struct process trainer = { .uid = ALICE, SCRIPT(TRAIN_PY), .comm = "python3" };

static uint32_t stranger(struct scene *s)
{
        return stranger_with(s, trainer, GiB(5));
}

static uint32_t n_sent(const struct scene *s, uint32_t pid, int signal)
{
        uint32_t n = 0;

        for (size_t i = 0; i < s->n_log; i++)
                n += s->log[i].kind == ACTION_HAND && (pid == 0 || s->log[i].process.pid == pid) &&
                     (signal == 0 || s->log[i].signal == signal);
        return n;
}

#define assert_said(s, rule, n) assert_int_equal(scene_count_rule((s), 0, 0, (rule)), (n))

/* ---- what is done ---- */

static void S28_new_installation_only_observes_a_week_of_strangers(void **state)
{
        (void) state;
        struct scene s;
        uint32_t pid = 0;
        begin(&s);
        s.sparse_checks = true;
        for (uint64_t hour = 1; hour <= 7 * 24; hour++) {
                if (hour % 3 == 1)
                        pid = stranger(&s);
                for (uint32_t minute = 0; minute < 60; minute++) {
                        scene_wait_to_s(&s, hour * 3600 + minute * 60ULL);
                        scene_tick(&s);
                }
                if (hour % 3 == 0)
                        scene_process_ends(&s, pid);
        }
        assert_int_equal(n_sent(&s, 0, 0), 0);
        assert_said(&s, RULE_WOULD_END, 56);
        assert_int_equal(s.world->n_audits, 8); /* a day of them */
        scene_end(&s);
}

static void stranger_that_ignores_sigterm_is_killed_once_after_its_grace(void **state)
{
        (void) state;
        struct scene s;
        char text[256];
        begin(&s);
        mode(&s, ENFORCE_ENFORCE);
        tick_to(&s, 100);
        uint32_t pid = stranger(&s);
        tick_to(&s, 100 + STAY_S - 1);
        assert_said(&s, RULE_STRANGER_NOTICED, 0);
        tick_to(&s, 100 + STAY_S);
        assert_said(&s, RULE_STRANGER_NOTICED, 1);
        (void) reason_text(&scene_last_rule(&s, 0, RULE_STRANGER_NOTICED)->why, s.now_ms, text, sizeof(text));
        assert_string_equal(text, "holds 5 GiB without a lease, and is to be ended: SIGTERM in 1 min");
        uint64_t term_s = 100 + STAY_S + NOTICE_S;
        tick_to(&s, term_s - 1);
        assert_int_equal(n_sent(&s, 0, 0), 0);
        tick_to(&s, term_s);
        assert_int_equal(n_sent(&s, pid, SIGTERM), 1);
        tick_to(&s, term_s + GRACE_S - 1);
        assert_int_equal(n_sent(&s, 0, 0), 1);
        tick_to(&s, term_s + GRACE_S);
        assert_int_equal(n_sent(&s, pid, SIGKILL), 1);
        assert_said(&s, RULE_STRANGER_ENDED, 0); /* it is the device that says so */
        scene_process_ends(&s, pid);
        tick_to(&s, term_s + 2 * GRACE_S);
        assert_said(&s, RULE_STRANGER_ENDED, 1);
        assert_said(&s, RULE_STRANGER_UNKILLABLE, 0);
        assert_int_equal(n_sent(&s, 0, 0), 2);
        scene_end(&s);
}

static void stranger_that_honours_sigterm_is_never_killed(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        mode(&s, ENFORCE_ENFORCE);
        uint32_t pid = stranger(&s);
        tick_to(&s, STAY_S + NOTICE_S + GRACE_S - 5);
        assert_int_equal(n_sent(&s, pid, SIGTERM), 1);
        scene_process_ends(&s, pid);
        tick_to(&s, 3600);
        assert_int_equal(n_sent(&s, 0, 0), 1);
        assert_said(&s, RULE_STRANGER_ENDED, 1);
        scene_end(&s);
}

static void grace_that_a_person_set_for_scripts_or_places_counts(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                struct process facts;
                uint64_t grace_s;
        } rows[] = {
                { "a program", { .uid = ALICE, .program = NGINX }, 100 },
                { "a script", { .uid = ALICE, SCRIPT(TRAIN_PY) }, 200 },
                { "a unit's script", { .uid = ALICE, SCRIPT(TRAIN_PY), .place = 9 }, 400 },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                print_message("# %s\n", rows[i].name);
                begin(&s);
                for (uint32_t class = 0; class < GRACE_CLASS_N; class ++)
                        s.config.enforce_grace_ms[class] = SECONDS(100) << class;
                scene_config(&s);
                mode(&s, ENFORCE_ENFORCE);
                (void) stranger_with(&s, rows[i].facts, GiB(5));
                tick_to(&s, STAY_S + NOTICE_S + rows[i].grace_s - 1);
                assert_int_equal(n_sent(&s, 0, SIGKILL), 0);
                tick_to(&s, STAY_S + NOTICE_S + rows[i].grace_s);
                assert_int_equal(n_sent(&s, 0, SIGKILL), 1);
                scene_end(&s);
        }
}

static void warning_is_said_once_and_nothing_is_sent(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        mode(&s, ENFORCE_WARN);
        (void) stranger(&s);
        tick_to(&s, 7200);
        assert_said(&s, RULE_STRANGER_WARNED, 1);
        assert_int_equal(n_sent(&s, 0, 0), 0);
        scene_end(&s);
}

/* ---- who is never touched ---- */

static void S10_F53_whom_something_speaks_for_gets_no_signal(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                struct process facts;
                uint64_t bytes;
                uint32_t flags;
        } rows[] = {
                { "S10: an open descriptor alone", { .uid = BOB, .program = NGINX }, 0, COMPUTE },
                { "a byte below the threshold", { .uid = BOB, .program = NGINX }, MiB(256) - 1, COMPUTE },
                { "I7: how much it has is unknown", { .uid = BOB, .program = NGINX }, GiB(9), ROW_COMPUTE },
                { "F53: it draws a screen too", { .uid = BOB, .program = NGINX }, GiB(9), COMPUTE | ROW_GRAPHICS },
                { "a ghost", { .uid = BOB, .program = NGINX }, GiB(9), COMPUTE | ROW_GHOST },
                { "a kernel thread", { .guard = GUARD_KERNEL }, GiB(9), COMPUTE },
                { "lessor", { .guard = GUARD_LESSOR }, GiB(9), COMPUTE },
                { "a display server", { .guard = GUARD_DISPLAY, .comm = "trainer" }, GiB(9), COMPUTE },
                { "sshd", { .guard = GUARD_SSHD }, GiB(9), COMPUTE },
                { "of another pid namespace", { .uid = BOB, .guard = GUARD_FOREIGN }, GiB(9), COMPUTE },
                { "F50: not seen", { .uid = BOB, .guard = GUARD_UNSEEN }, GiB(9), COMPUTE },
                { "whose is unknown", { .uid = UINT32_MAX, .program = NGINX }, GiB(9), COMPUTE },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                print_message("# %s\n", rows[i].name);
                begin(&s);
                mode(&s, ENFORCE_ENFORCE);
                uint32_t pid = s.next_pid++;
                say_process(&s, pid, rows[i].facts);
                scene_process_uses(&s, pid, 0, rows[i].bytes, rows[i].flags);
                tick_to(&s, 3600);
                assert_int_equal(n_sent(&s, 0, 0), 0);
                assert_said(&s, RULE_STRANGER_NOTICED, 0);
                scene_end(&s);
        }
}

static void F58_a_name_exempts_nobody(void **state)
{
        (void) state;
        static const char *const names[] = { "Xorg", "ollama serve", "sshd", "systemd", "a) R 1 1" };
        struct scene s;
        begin(&s);
        mode(&s, ENFORCE_ENFORCE);
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                struct process facts = { .uid = BOB, .program = NGINX };
                (void) snprintf(facts.comm, sizeof(facts.comm), "%s", names[i]);
                (void) stranger_with(&s, facts, GiB(1));
        }
        tick_to(&s, 200);
        assert_int_equal(n_sent(&s, 0, SIGTERM), 5);
        scene_end(&s);
}

static void F52_shell_and_siblings_of_a_stranger_are_left_alone(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        mode(&s, ENFORCE_ENFORCE);
        uint32_t shell = scene_process_of(&s, ALICE, 0, 0, 4711), rogue = s.next_pid++;
        for (uint32_t i = 0; i < 50; i++)
                (void) scene_process_of(&s, ALICE, 0, shell, 4711);
        struct process facts = trainer;
        facts.cgroup_id = 4711;
        facts.ppid = shell;
        say_process(&s, rogue, facts);
        scene_process_uses(&s, rogue, 0, GiB(5), COMPUTE);
        tick_to(&s, 3600);
        assert_int_equal(n_sent(&s, 0, 0), n_sent(&s, rogue, 0));
        assert_int_equal(n_sent(&s, rogue, 0), 2);
        for (size_t i = 0; i < s.n_log; i++)
                if (s.log[i].kind == ACTION_HAND) {
                        assert_int_equal(s.log[i].hand, HAND_SIGNAL);
                        assert_int_equal(s.log[i].cgroup_id, 0);
                }
        scene_end(&s);
}

static void one_persons_daemon_ends_only_that_persons(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        s.config.enforce_own_uid = ALICE;
        scene_config(&s);
        mode(&s, ENFORCE_ENFORCE);
        struct process of_bob = trainer;
        of_bob.uid = BOB;
        uint32_t alices = stranger(&s), bobs = stranger_with(&s, of_bob, GiB(5));
        tick_to(&s, 3600);
        assert_int_equal(n_sent(&s, alices, 0), 2);
        assert_int_equal(n_sent(&s, bobs, 0), 0);
        scene_end(&s);
}

/* Nothing on the card changes, so that no reading would tell of it again. */
static void who_was_spared_by_the_configuration_before_is_judged_by_the_new_one(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        s.config.enforce_min_bytes = GiB(6);
        scene_config(&s);
        mode(&s, ENFORCE_ENFORCE);
        uint32_t pid = stranger(&s);
        tick_to(&s, 100);
        assert_int_equal(s.world->n_audits, 0);
        s.config.enforce_min_bytes = GiB(5);
        scene_config(&s);
        assert_int_equal(s.world->n_audits, 1);
        tick_to(&s, 100 + STAY_S + NOTICE_S + 5);
        assert_int_equal(n_sent(&s, pid, SIGTERM), 1);
        scene_end(&s);
}

static void I3_leases_and_their_memory_elsewhere_are_not_strangers(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        uint32_t other = scene_device(&s, GiB(24));
        mode(&s, ENFORCE_ENFORCE);
        uint64_t x = scene_request(&s, (struct ask){ .bytes = GiB(4) });
        scene_process_uses(&s, scene_owner(&s, x), 0, GiB(4), COMPUTE);
        scene_process_uses(&s, scene_owner(&s, x), other, GiB(4), COMPUTE);
        tick_to(&s, 3600);
        scene_release(&s, x); /* it drains */
        tick_to(&s, 7200);
        assert_int_equal(n_sent(&s, 0, 0), 0);
        scene_end(&s);
}

static void stranger_that_is_adopted_in_its_notice_or_grace_is_spared(void **state)
{
        (void) state;
        for (uint64_t second = 40; second <= 200; second += 160) {
                struct scene s;
                begin(&s);
                mode(&s, ENFORCE_ENFORCE);
                uint32_t pid = stranger(&s);
                tick_to(&s, second);
                uint64_t x = scene_adopt(&s, (struct ask){ .uid = ALICE, .pid = pid });
                assert_int_not_equal(x, 0);
                tick_to(&s, 3600);
                assert_int_equal(n_sent(&s, 0, SIGKILL), 0);
                assert_said(&s, RULE_STRANGER_SPARED, 1);
                assert_int_equal(scene_last_rule(&s, 0, RULE_STRANGER_SPARED)->why.limit, VERDICT_WHY_LEASE);
                scene_end(&s);
        }
}

/* ---- doubt ---- */

static void F44_nobody_is_signalled_before_all_was_seen_after_a_start(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        uint32_t other = scene_device(&s, GiB(24));
        mode(&s, ENFORCE_ENFORCE);
        uint32_t pid = stranger(&s);
        tick_to(&s, STAY_S + NOTICE_S - 10);
        scene_restart(&s, (struct restart_facts){ 0 });
        s.eyes_closed = true;
        say_process(&s, pid, trainer);
        for (uint64_t until = scene_s(&s) + 60; scene_s(&s) < until;) {
                scene_look_at(&s, 0); /* the other one is not seen */
                tick_to(&s, scene_s(&s) + 1);
        }
        assert_int_equal(n_sent(&s, 0, 0), 0);
        scene_look_at(&s, other);
        s.eyes_closed = false;
        tick_to(&s, scene_s(&s) + 2);
        assert_int_equal(n_sent(&s, pid, SIGTERM), 1);
        scene_end(&s);
}

static void who_is_not_confirmed_since_a_restart_is_left_alone(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        mode(&s, ENFORCE_ENFORCE);
        uint32_t pid = stranger(&s);
        tick_to(&s, STAY_S + NOTICE_S - 1);
        scene_restart(&s, (struct restart_facts){ 0 });
        tick_to(&s, 1000);
        assert_int_equal(n_sent(&s, 0, 0), 0);
        say_process(&s, pid, trainer);
        tick_to(&s, 1001);
        assert_int_equal(n_sent(&s, pid, SIGTERM), 1);
        scene_end(&s);
}

static void S08_another_program_in_the_same_process_begins_anew(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                struct process facts;
        } rows[] = {
                { "another program", { .uid = ALICE, .program = NGINX } },
                { "as somebody else", { .uid = BOB, SCRIPT(TRAIN_PY) } },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                begin(&s);
                mode(&s, ENFORCE_ENFORCE);
                uint32_t pid = stranger(&s);
                tick_to(&s, STAY_S + NOTICE_S + 10);
                assert_int_equal(n_sent(&s, pid, SIGTERM), 1);
                scene_restart(&s, (struct restart_facts){ 0 });
                print_message("# %s\n", rows[i].name);
                say_process(&s, pid, rows[i].facts);
                uint64_t since_s = scene_s(&s);
                tick_to(&s, since_s + STAY_S + NOTICE_S - 1);
                assert_int_equal(n_sent(&s, 0, 0), 1);
                assert_said(&s, RULE_STRANGER_NOTICED, 2);
                tick_to(&s, since_s + STAY_S + NOTICE_S + 1);
                assert_int_equal(n_sent(&s, pid, SIGTERM), 2);
                scene_end(&s);
        }
}

static void S25_damaged_books_or_a_silent_driver_stop_it(void **state)
{
        (void) state;
        for (int silent = 0; silent < 2; silent++) {
                struct scene s;
                begin(&s);
                mode(&s, ENFORCE_ENFORCE);
                uint32_t pid = stranger(&s);
                tick_to(&s, STAY_S + NOTICE_S - 10);
                if (silent)
                        scene_eyes(&s, false);
                else
                        scene_restart(&s, (struct restart_facts){ .degraded = true });
                say_process(&s, pid, trainer);
                tick_to(&s, 1000);
                assert_int_equal(n_sent(&s, 0, 0), 0);
                assert_said(&s, RULE_ENFORCE_DOUBT, 1);
                if (silent)
                        scene_eyes(&s, true);
                else
                        scene_restart(&s, (struct restart_facts){ 0 });
                say_process(&s, pid, trainer);
                tick_to(&s, 1000 + 16);
                assert_int_equal(n_sent(&s, pid, SIGTERM), 1);
                assert_said(&s, RULE_ENFORCE_DOUBT, 2);
                scene_end(&s);
        }
}

static void I7_old_or_unsettled_reading_delays_a_signal_and_sends_none(void **state)
{
        (void) state;
        for (int unsettled = 0; unsettled < 2; unsettled++) {
                struct scene s;
                begin(&s);
                mode(&s, ENFORCE_ENFORCE);
                uint32_t pid = stranger(&s);
                tick_to(&s, STAY_S + NOTICE_S - 10);
                s.cards[0].unsettled = unsettled;
                s.cards[0].taken_ago_ms = unsettled ? 0 : 5000;
                scene_look(&s);
                tick_to(&s, 600);
                assert_int_equal(n_sent(&s, 0, 0), 0);
                s.cards[0].unsettled = false;
                s.cards[0].taken_ago_ms = 0;
                tick_to(&s, 602);
                assert_int_equal(n_sent(&s, pid, SIGTERM), 1);
                scene_end(&s);
        }
}

static void F50_what_cannot_be_seen_is_said_and_is_nobodys_end(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        mode(&s, ENFORCE_ENFORCE);
        uint32_t hidden = stranger_with(&s, (struct process){ .uid = BOB, .guard = GUARD_UNSEEN }, GiB(8));
        tick_to(&s, 10);
        assert_said(&s, RULE_ENFORCE_DOUBT, 0); /* who is dying is hidden for a moment */
        uint32_t seen = stranger(&s);
        tick_to(&s, 200);
        assert_said(&s, RULE_ENFORCE_DOUBT, 1);
        assert_int_equal(scene_last_rule(&s, 0, RULE_ENFORCE_DOUBT)->why.limit, DOUBT_BLIND);
        assert_int_equal(n_sent(&s, hidden, 0), 0);
        assert_int_equal(n_sent(&s, seen, SIGTERM), 1); /* the others are looked at all the same */
        scene_process_ends(&s, hidden);
        tick_to(&s, 210);
        assert_said(&s, RULE_ENFORCE_DOUBT, 2);
        scene_end(&s);
}

/* ---- signals ---- */

static void F48_recycled_pid_gets_no_signal(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        mode(&s, ENFORCE_ENFORCE);
        uint32_t pid = stranger(&s);
        tick_to(&s, STAY_S + NOTICE_S + 10);
        scene_process_ends(&s, pid);
        /* The number is somebody else's: another start time. */
        struct input input = { .kind = INPUT_PROCESS,
                               .process = { .identity = { pid, 99999 }, .uid = BOB, .program = NGINX } };
        scene_step(&s, &input);
        scene_process_uses(&s, pid, 0, GiB(5), COMPUTE);
        s.rows[s.n_rows - 1].identity.start_ticks = 99999;
        scene_look(&s);
        uint64_t since_s = scene_s(&s);
        tick_to(&s, since_s + STAY_S + NOTICE_S - 1);
        assert_int_equal(n_sent(&s, 0, 0), 1); /* nothing is left over from before */
        assert_said(&s, RULE_STRANGER_ENDED, 1);
        scene_end(&s);
}

static void F51_memory_that_is_gone_before_the_signal_saves_it(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        mode(&s, ENFORCE_ENFORCE);
        uint32_t pid = stranger(&s);
        tick_to(&s, STAY_S + NOTICE_S - 1);
        scene_row(&s, pid, 0)->bytes = MiB(10); /* nobody has looked yet */
        tick_to(&s, 1000);
        assert_int_equal(n_sent(&s, 0, 0), 0);
        assert_said(&s, RULE_STRANGER_SPARED, 1);
        scene_process_uses(&s, pid, 0, GiB(5), COMPUTE);
        tick_to(&s, 1000 + STAY_S + NOTICE_S - 1);
        assert_int_equal(n_sent(&s, 0, 0), 0); /* from the beginning */
        tick_to(&s, 1000 + STAY_S + NOTICE_S + 1);
        assert_int_equal(n_sent(&s, 0, 0), 1);
        scene_end(&s);
}

static void F55_unkillable_gets_three_signals_at_most_and_one_alarm(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        mode(&s, ENFORCE_ENFORCE);
        uint32_t pid = stranger(&s);
        tick_to(&s, STAY_S + NOTICE_S + GRACE_S - 1);
        hands.silent = true; /* the kill leaves, and lessord dies */
        tick_to(&s, STAY_S + NOTICE_S + GRACE_S + 1);
        for (uint32_t i = 0; i < 5; i++) {
                scene_restart(&s, (struct restart_facts){ 0 });
                say_process(&s, pid, trainer);
                tick_to(&s, scene_s(&s) + 120);
        }
        hands.silent = false;
        tick_to(&s, 7200);
        assert_int_equal(n_sent(&s, 0, 0), 3);
        assert_said(&s, RULE_STRANGER_UNKILLABLE, 1);
        assert_bytes(s.world->devices[0].used_bytes, GiB(5)); /* it stays counted */
        scene_end(&s);
}

static void I4_what_could_not_be_tried_is_tried_again_and_is_no_strike(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        mode(&s, ENFORCE_ENFORCE);
        uint32_t pid = stranger(&s);
        hands = (struct hands){ .outcome = OUTCOME_BLOCKED, .why = HAND_WHY_AWAY };
        tick_to(&s, 600);
        assert_true(n_sent(&s, pid, SIGTERM) > 40 && n_sent(&s, pid, SIGTERM) <= 60); /* every ten seconds */
        assert_int_equal(n_sent(&s, pid, SIGKILL), 0);
        assert_said(&s, RULE_STRANGER_BLOCKED, 1);
        hands = (struct hands){ .outcome = OUTCOME_DONE };
        tick_to(&s, 615 + GRACE_S - 10);
        assert_int_equal(n_sent(&s, pid, SIGKILL), 0); /* the whole grace from the one that was sent */
        tick_to(&s, 615 + GRACE_S);
        assert_int_equal(n_sent(&s, pid, SIGKILL), 1);
        scene_end(&s);
}

static void kill_that_the_hands_cannot_justify_begins_with_sigterm_again(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        mode(&s, ENFORCE_ENFORCE);
        uint32_t pid = stranger(&s);
        tick_to(&s, STAY_S + NOTICE_S + GRACE_S - 1);
        hands = (struct hands){ .outcome = OUTCOME_BLOCKED, .why = HAND_WHY_GRACE };
        tick_to(&s, STAY_S + NOTICE_S + GRACE_S);
        hands = (struct hands){ .outcome = OUTCOME_DONE };
        tick_to(&s, STAY_S + NOTICE_S + GRACE_S + 15);
        assert_int_equal(n_sent(&s, pid, SIGTERM), 2);
        tick_to(&s, STAY_S + NOTICE_S + 2 * GRACE_S + 15);
        assert_int_equal(n_sent(&s, pid, SIGKILL), 2);
        scene_end(&s);
}

/* A machine that sleeps has no ticks, and its clock (CLOCK_MONOTONIC) stands still: the grace is what the process had. */
static void sleep_of_the_machine_is_no_grace(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        mode(&s, ENFORCE_ENFORCE);
        uint32_t pid = stranger(&s);
        tick_to(&s, STAY_S + NOTICE_S + 100);
        scene_tick(&s); /* eight hours later by the wall, and not by this clock */
        answer_orders(&s);
        assert_int_equal(n_sent(&s, pid, SIGKILL), 0);
        tick_to(&s, STAY_S + NOTICE_S + GRACE_S - 1);
        assert_int_equal(n_sent(&s, pid, SIGKILL), 0);
        tick_to(&s, STAY_S + NOTICE_S + GRACE_S);
        assert_int_equal(n_sent(&s, pid, SIGKILL), 1);
        scene_end(&s);
}

static void mode_that_is_taken_back_stops_what_had_begun(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        mode(&s, ENFORCE_ENFORCE);
        (void) stranger(&s);
        tick_to(&s, STAY_S + NOTICE_S + 10);
        mode(&s, ENFORCE_OBSERVE);
        tick_to(&s, 3600);
        assert_int_equal(n_sent(&s, 0, SIGKILL), 0);
        assert_said(&s, RULE_STRANGER_SPARED, 1);
        s.config.enforce_ceiling = ENFORCE_WARN;
        scene_config(&s);
        call(&s, (struct enforce_call){ .is_admin = true, .what = ENFORCE_CALL_MODE, .mode = ENFORCE_ENFORCE });
        assert_rule(s.answer, RULE_MODE_CEILING);
        scene_end(&s);
}

static void what_its_unit_starts_again_is_ended_once_more_and_then_left(void **state)
{
        (void) state;
        struct process unit = trainer;
        unit.place = 0x99;
        struct scene s;
        begin(&s);
        mode(&s, ENFORCE_ENFORCE);
        for (uint32_t i = 0; i < 5; i++) {
                uint32_t pid = stranger_with(&s, unit, GiB(5));
                tick_to(&s, scene_s(&s) + STAY_S + NOTICE_S + 10);
                scene_process_ends(&s, pid);
        }
        assert_int_equal(n_sent(&s, 0, SIGTERM), 2);
        assert_said(&s, RULE_STRANGER_RETURNS, 3);
        (void) stranger(&s); /* what a person starts by hand is in no unit */
        mode(&s, ENFORCE_ENFORCE);
        (void) stranger_with(&s, unit, GiB(5)); /* a person said: once more */
        tick_to(&s, scene_s(&s) + STAY_S + NOTICE_S + 10);
        assert_int_equal(n_sent(&s, 0, SIGTERM), 4);
        scene_end(&s);
}

/* The driver leaves each of them out of one list while it ends: it has ended all the same, and was sent something. */
static void what_its_unit_starts_again_is_left_also_where_it_was_missing_once(void **state)
{
        (void) state;
        struct process unit = trainer;
        unit.place = 0x99;
        struct scene s;
        begin(&s);
        mode(&s, ENFORCE_ENFORCE);
        for (uint32_t i = 0; i < 5; i++) {
                uint32_t pid = stranger_with(&s, unit, GiB(5));
                tick_to(&s, scene_s(&s) + STAY_S + NOTICE_S + 10);
                scene_process_vanishes(&s, pid);
                scene_look(&s);
                scene_process_uses(&s, pid, 0, GiB(5), ROW_USED_KNOWN | ROW_COMPUTE);
                scene_process_ends(&s, pid);
        }
        assert_int_equal(n_sent(&s, 0, SIGTERM), 2);
        scene_end(&s);
}

/* ---- approvals ---- */

/* Approves who looks like @first, lets him end, and sees whether who looks like @then is left alone. */
static bool is_spared_after(struct process first, bool here, struct process then)
{
        struct scene s;

        begin(&s);
        uint32_t pid = stranger_with(&s, first, GiB(5));
        call(&s,
             (struct enforce_call){
                     .is_admin = true, .what = ENFORCE_CALL_APPROVE, .here = here, .process = { pid, 7000 + pid } });
        assert_rule(s.answer, RULE_APPROVED);
        scene_process_ends(&s, pid);
        mode(&s, ENFORCE_ENFORCE);
        (void) stranger_with(&s, then, GiB(5));
        tick_to(&s, 200);
        uint32_t n = n_sent(&s, 0, 0);
        assert_in_range(n, 0, 1);
        scene_end(&s);
        return n == 0;
}

static void approval_covers_that_users_program_and_script_and_no_name(void **state)
{
        (void) state;
        static const struct process train = { .uid = ALICE, SCRIPT(TRAIN_PY), .comm = "python3" },
                                    code = { .uid = ALICE, COMMAND(0x55), .comm = "python3" },
                                    nginx = { .uid = ALICE, .program = NGINX, .runs = RUNS_PROGRAM, .comm = "nginx" };
        static const struct {
                const char *name;
                const struct process *approved;
                struct process facts;
                bool spared;
        } rows[] = {
                { "the same again", &train, { .uid = ALICE, SCRIPT(TRAIN_PY), .place = 3 }, true },
                { "another name", &train, { .uid = ALICE, SCRIPT(TRAIN_PY), .comm = "x" }, true },
                { "another command line", &train, { .uid = ALICE, SCRIPT(TRAIN_PY), .command = 9 }, true },
                { "somebody else's", &train, { .uid = BOB, SCRIPT(TRAIN_PY), .comm = "python3" }, false },
                { "another script", &train, { .uid = ALICE, SCRIPT(0x78), .comm = "python3" }, false },
                { "a script that was not seen", &train, { .uid = ALICE, .program = PYTHON }, false },
                { "code instead", &train, { .uid = ALICE, COMMAND(0x55) }, false },
                { "taken for no interpreter",
                  &train,
                  { .uid = ALICE, .program = PYTHON, .runs = RUNS_PROGRAM },
                  false },
                { "the same name", &train, { .uid = ALICE, .program = NGINX, .runs = RUNS_PROGRAM }, false },
                { "that script by another program",
                  &train,
                  { .uid = ALICE, .program = NGINX, .script = TRAIN_PY, .runs = RUNS_SCRIPT },
                  false },
                { "the same code", &code, { .uid = ALICE, COMMAND(0x55) }, true },
                { "other code", &code, { .uid = ALICE, COMMAND(0x56) }, false },
                { "a script instead", &code, { .uid = ALICE, SCRIPT(TRAIN_PY), .command = 0x55 }, false },
                { "code that was not seen", &code, { .uid = ALICE, .program = PYTHON, .command = 0x55 }, false },
                { "a program, whatever it is told",
                  &nginx,
                  { .uid = ALICE, .program = NGINX, .command = 9, .runs = RUNS_PROGRAM },
                  true },
                { "a program, given a script",
                  &nginx,
                  { .uid = ALICE, .program = NGINX, .script = TRAIN_PY, .runs = RUNS_SCRIPT },
                  false },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                assert_int_equal(is_spared_after(*rows[i].approved, false, rows[i].facts), rows[i].spared);
        }
}

static void script_that_cannot_be_seen_is_approved_in_its_place_alone(void **state)
{
        (void) state;
        static const struct process hidden = { .uid = ALICE, .program = PYTHON, .place = 5 };
        struct scene s;
        begin(&s);
        uint32_t pid = stranger_with(&s, hidden, GiB(5));
        struct enforce_call c = { .is_admin = true, .what = ENFORCE_CALL_APPROVE, .process = { pid, 7000 + pid } };
        call(&s, c);
        assert_rule(s.answer, RULE_SCRIPT_UNKNOWN);
        assert_int_equal(s.world->n_approvals, 0);
        c.here = true;
        call(&s, c);
        assert_rule(s.answer, RULE_APPROVED);
        scene_end(&s);
        assert_true(is_spared_after(hidden, true, hidden));
        assert_true(is_spared_after(hidden, true, (struct process){ .uid = ALICE, SCRIPT(TRAIN_PY), .place = 5 }));
        assert_false(is_spared_after(hidden, true, (struct process){ .uid = ALICE, .program = PYTHON, .place = 6 }));
        assert_false(is_spared_after(hidden, true, (struct process){ .uid = ALICE, SCRIPT(TRAIN_PY) }));
}

/* A command line is its process's own, to change as it likes. */
static void script_that_a_process_names_later_is_not_believed(void **state)
{
        (void) state;
        static const struct {
                const char *name;
                struct process first, then;
                bool spared;
        } rows[] = {
                { "it names the approved one",
                  { .uid = ALICE, SCRIPT(0x78) },
                  { .uid = ALICE, SCRIPT(TRAIN_PY) },
                  false },
                { "the approved one names another",
                  { .uid = ALICE, SCRIPT(TRAIN_PY) },
                  { .uid = ALICE, SCRIPT(0x78) },
                  true },
                { "the approved one names none",
                  { .uid = ALICE, SCRIPT(TRAIN_PY) },
                  { .uid = ALICE, .program = PYTHON },
                  true },
                { "its title, and who it is unseen", { .uid = ALICE, SCRIPT(TRAIN_PY) }, { .uid = ALICE }, true },
                { "seen late", { .uid = ALICE, .program = PYTHON }, { .uid = ALICE, SCRIPT(TRAIN_PY) }, true },
                { "another program with that script",
                  { .uid = ALICE, SCRIPT(TRAIN_PY) },
                  { .uid = ALICE, .program = NGINX, .runs = RUNS_UNKNOWN },
                  false },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                struct scene s;
                print_message("# %s\n", rows[i].name);
                begin(&s);
                uint32_t approved = stranger(&s);
                call(&s, (struct enforce_call){ .is_admin = true,
                                                .what = ENFORCE_CALL_APPROVE,
                                                .process = { approved, 7000 + approved } });
                assert_rule(s.answer, RULE_APPROVED);
                scene_process_ends(&s, approved);
                uint32_t pid = stranger_with(&s, rows[i].first, GiB(5));
                scene_restart(&s, (struct restart_facts){ 0 });
                say_process(&s, pid, rows[i].then);
                mode(&s, ENFORCE_ENFORCE);
                tick_to(&s, 300);
                assert_int_equal(n_sent(&s, 0, 0), rows[i].spared ? 0 : 1);
                scene_end(&s);
        }
}

static void approval_for_a_place_ends_where_that_does(void **state)
{
        (void) state;
        struct process here = trainer, there = trainer;
        here.place = 5;
        there.place = 6;
        struct scene s;
        begin(&s);
        uint32_t a = stranger_with(&s, here, GiB(2)), b = stranger_with(&s, there, GiB(2));
        call(&s, (struct enforce_call){
                         .is_admin = true, .what = ENFORCE_CALL_APPROVE, .here = true, .process = { a, 7000 + a } });
        mode(&s, ENFORCE_ENFORCE);
        tick_to(&s, 200);
        assert_int_equal(n_sent(&s, a, 0), 0);
        assert_int_equal(n_sent(&s, b, 0), 1);
        scene_end(&s);
}

static void approval_that_lapsed_warns_for_a_day_and_then_ends(void **state)
{
        (void) state;
        const uint64_t day_s = 24 * 3600;
        struct scene s;
        begin(&s);
        s.sparse_checks = true;
        uint32_t pid = stranger(&s);
        call(&s, (struct enforce_call){ .is_admin = true,
                                        .what = ENFORCE_CALL_APPROVE,
                                        .for_ms = SECONDS(1000),
                                        .process = { pid, 7000 + pid } });
        mode(&s, ENFORCE_ENFORCE);
        tick_to(&s, 999);
        assert_said(&s, RULE_STRANGER_WARNED, 0);
        tick_to(&s, 1000 + STAY_S + 1);
        assert_said(&s, RULE_APPROVAL_LAPSED, 1);
        assert_said(&s, RULE_STRANGER_WARNED, 1);
        tick_to(&s, 1000 + day_s - 1);
        assert_said(&s, RULE_STRANGER_NOTICED, 0);
        tick_to(&s, 1000 + day_s + NOTICE_S + 5);
        assert_int_equal(n_sent(&s, pid, SIGTERM), 1);
        scene_look(&s);
        assert_int_equal(s.world->n_approvals, 0);
        scene_end(&s);
}

static void calls_that_are_refused_say_why_and_change_nothing(void **state)
{
        (void) state;
        struct scene s;
        begin(&s);
        uint32_t hidden = stranger_with(&s, (struct process){ .uid = BOB }, GiB(1)), pid = stranger(&s);
        uint32_t bare = stranger_with(&s, (struct process){ .uid = BOB, .program = PYTHON }, GiB(1));
        const struct {
                const char *name;
                struct enforce_call call;
                enum rule rule;
        } rows[] = {
                { "not an administrator", { .what = ENFORCE_CALL_MODE, .mode = ENFORCE_ENFORCE }, RULE_ADMIN_ONLY },
                { "nobody",
                  { .is_admin = true, .what = ENFORCE_CALL_APPROVE, .process = { 1, 1 } },
                  RULE_NOT_A_STRANGER },
                { "of another start",
                  { .is_admin = true, .what = ENFORCE_CALL_APPROVE, .process = { pid, 1 } },
                  RULE_NOT_A_STRANGER },
                { "by a name alone",
                  { .is_admin = true, .what = ENFORCE_CALL_APPROVE, .process = { hidden, 7000 + hidden } },
                  RULE_PROGRAM_UNKNOWN },
                { "an interpreter, and nobody knows of what",
                  { .is_admin = true, .what = ENFORCE_CALL_APPROVE, .process = { bare, 7000 + bare } },
                  RULE_SCRIPT_UNKNOWN },
                { "here, and nobody knows where",
                  { .is_admin = true, .what = ENFORCE_CALL_APPROVE, .here = true, .process = { pid, 7000 + pid } },
                  RULE_PLACE_UNKNOWN },
                { "no approval",
                  { .is_admin = true, .what = ENFORCE_CALL_UNAPPROVE, .approval_id = 3 },
                  RULE_NO_APPROVAL },
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                print_message("# %s\n", rows[i].name);
                call(&s, rows[i].call);
                assert_kind(s.answer, ACTION_REFUSED);
                assert_rule(s.answer, rows[i].rule);
                assert_int_equal(s.world->enforce.mode, ENFORCE_OBSERVE);
                assert_int_equal(s.world->n_approvals, 0);
        }
        for (uint32_t i = 0; i <= APPROVALS_MAX; i++) {
                say_process(&s, pid, (struct process){ .uid = ALICE, .program = 100 + i, .runs = RUNS_PROGRAM });
                call(&s, (struct enforce_call){
                                 .is_admin = true, .what = ENFORCE_CALL_APPROVE, .process = { pid, 7000 + pid } });
                assert_rule(s.answer, i < APPROVALS_MAX ? RULE_APPROVED : RULE_LIMIT_APPROVALS);
        }
        scene_end(&s);
}

/* ---- the property ---- */

static uint64_t random_state = 1;

static uint32_t some(uint32_t below)
{
        uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        return (uint32_t) ((z ^ (z >> 27)) >> 33) % below;
}

/* A table of processes with memory, all for long enough, in the mode that ends them. */
static void F49_protected_process_is_never_chosen_in_100000_tables(void **state)
{
        (void) state;
        struct scene s;
        uint64_t n_ended = 0, n_guarded = 0;
        begin(&s);
        s.sparse_checks = true;
        mode(&s, ENFORCE_ENFORCE);
        tick_to(&s, 100);
        struct world *w = s.world;
        for (uint32_t table = 0; table < 100000; table++) {
                w->n_processes = w->n_occupancies = w->n_audits = 0;
                uint32_t n = 1 + some(6);
                for (uint32_t i = 0; i < n; i++) {
                        struct identity who = { 1 + some(3) + 10 * i, 5 };
                        struct process p = { .identity = who,
                                             .uid = some(3) ? 1000 + some(3) : 0,
                                             .program = some(3),
                                             .state = some(4) ? PROCESS_LIVE : PROCESS_UNCONFIRMED,
                                             .guard = (uint8_t) (some(2) ? some(GUARD_N) : 0) };
                        w->processes[w->n_processes++] = p;
                        w->occupancies[w->n_occupancies++] =
                                (struct occupancy){ .identity = who,
                                                    .used_bytes = some(2) ? GiB(some(20)) : MiB(some(512)),
                                                    .flags = some(5) ? COMPUTE : some(ROW_GHOST * 2) };
                        w->audits[w->n_audits++] = (struct audit){ .identity = who,
                                                                   .uid = p.uid,
                                                                   .program = p.program,
                                                                   .over_ms = 1,
                                                                   .noticed_ms = 1,
                                                                   .term_ms = some(2),
                                                                   .n_signals = 1 };
                }
                s.out->n = 0;
                w->devices[0].reading_ms = w->now_ms;
                struct input input = { .kind = INPUT_TICK, .now_ms = w->now_ms };
                arbiter_step(w, &input, s.out);
                for (uint32_t i = 0; i < s.out->n; i++) {
                        const struct action *a = &s.out->items[i];
                        if (a->kind != ACTION_HAND)
                                continue;
                        const struct process *p = world_process_find(w, a->process);
                        assert_non_null(p);
                        assert_int_equal(p->guard, GUARD_NONE);
                        assert_int_not_equal(p->identity.pid, 1);
                        assert_int_equal(p->state, PROCESS_LIVE);
                        const struct occupancy *row = world_occupancy_find(w, 0, a->process);
                        assert_true(row->used_bytes >= MiB(256) && (row->flags & ROW_USED_KNOWN) &&
                                    !(row->flags & (ROW_GRAPHICS | ROW_GHOST)));
                        n_ended++;
                }
                for (uint32_t i = 0; i < n; i++)
                        n_guarded += w->processes[i].guard != GUARD_NONE;
        }
        assert_true(n_ended > 50000 && n_guarded > 100000);
        w->n_processes = w->n_occupancies = w->n_audits = 0;
        scene_end(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(S28_new_installation_only_observes_a_week_of_strangers),
                cmocka_unit_test(stranger_that_ignores_sigterm_is_killed_once_after_its_grace),
                cmocka_unit_test(stranger_that_honours_sigterm_is_never_killed),
                cmocka_unit_test(grace_that_a_person_set_for_scripts_or_places_counts),
                cmocka_unit_test(warning_is_said_once_and_nothing_is_sent),
                cmocka_unit_test(S10_F53_whom_something_speaks_for_gets_no_signal),
                cmocka_unit_test(F58_a_name_exempts_nobody),
                cmocka_unit_test(F52_shell_and_siblings_of_a_stranger_are_left_alone),
                cmocka_unit_test(one_persons_daemon_ends_only_that_persons),
                cmocka_unit_test(who_was_spared_by_the_configuration_before_is_judged_by_the_new_one),
                cmocka_unit_test(I3_leases_and_their_memory_elsewhere_are_not_strangers),
                cmocka_unit_test(stranger_that_is_adopted_in_its_notice_or_grace_is_spared),
                cmocka_unit_test(F44_nobody_is_signalled_before_all_was_seen_after_a_start),
                cmocka_unit_test(who_is_not_confirmed_since_a_restart_is_left_alone),
                cmocka_unit_test(S08_another_program_in_the_same_process_begins_anew),
                cmocka_unit_test(S25_damaged_books_or_a_silent_driver_stop_it),
                cmocka_unit_test(I7_old_or_unsettled_reading_delays_a_signal_and_sends_none),
                cmocka_unit_test(F50_what_cannot_be_seen_is_said_and_is_nobodys_end),
                cmocka_unit_test(F48_recycled_pid_gets_no_signal),
                cmocka_unit_test(F51_memory_that_is_gone_before_the_signal_saves_it),
                cmocka_unit_test(F55_unkillable_gets_three_signals_at_most_and_one_alarm),
                cmocka_unit_test(I4_what_could_not_be_tried_is_tried_again_and_is_no_strike),
                cmocka_unit_test(kill_that_the_hands_cannot_justify_begins_with_sigterm_again),
                cmocka_unit_test(sleep_of_the_machine_is_no_grace),
                cmocka_unit_test(mode_that_is_taken_back_stops_what_had_begun),
                cmocka_unit_test(what_its_unit_starts_again_is_ended_once_more_and_then_left),
                cmocka_unit_test(what_its_unit_starts_again_is_left_also_where_it_was_missing_once),
                cmocka_unit_test(approval_covers_that_users_program_and_script_and_no_name),
                cmocka_unit_test(script_that_cannot_be_seen_is_approved_in_its_place_alone),
                cmocka_unit_test(script_that_a_process_names_later_is_not_believed),
                cmocka_unit_test(approval_for_a_place_ends_where_that_does),
                cmocka_unit_test(approval_that_lapsed_warns_for_a_day_and_then_ends),
                cmocka_unit_test(calls_that_are_refused_say_why_and_change_nothing),
                cmocka_unit_test(F49_protected_process_is_never_chosen_in_100000_tables),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
