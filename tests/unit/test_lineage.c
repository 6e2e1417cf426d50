/* SPDX-License-Identifier: Apache-2.0 */
/* Whose child is it: tables of stories that end with parents gone, and a random world in which numbers come back at once. */
#include "senses/lineage.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cm.h"

/* ---- a world that knows the truth ---- */

enum { PIDS = 48, ALL_MAX = 4096, CALLS_MAX = 64 };

struct one {
        uint32_t pid, sid;
        uint64_t start, end;
        int parent; /* who made it */
        int kernel; /* whom the kernel calls its parent: the same, or who took it in */
        bool subreaper, alive;
};

static struct {
        struct one all[ALL_MAX];
        int n;
        uint64_t now;
} truth;

static struct lineage l;
static bool settles; /* who was told of is looked at at once */

static int who_has(uint32_t pid)
{
        for (int i = truth.n - 1; i >= 0; i--)
                if (truth.all[i].alive && truth.all[i].pid == pid)
                        return i;
        return -1;
}

static bool look(void *ctx, uint32_t pid, struct lineage_look *ret)
{
        int i = who_has(pid);

        (void) ctx;
        if (i < 0)
                return false;
        const struct one *one = &truth.all[i];
        *ret = (struct lineage_look){ one->start, one->kernel >= 0 ? truth.all[one->kernel].pid : 0, one->sid };
        return true;
}

/* The kernel gives no number out that anybody has, or that names a session in which somebody lives. */
static bool is_taken(uint32_t pid)
{
        for (int i = 0; i < truth.n; i++)
                if (truth.all[i].alive && (truth.all[i].pid == pid || truth.all[i].sid == pid))
                        return true;
        return false;
}

static int born(int parent, uint32_t pid)
{
        assert_true(truth.n < ALL_MAX);
        truth.all[truth.n] = (struct one){ .pid = pid,
                                           .sid = parent >= 0 ? truth.all[parent].sid : pid,
                                           .start = truth.now,
                                           .parent = parent,
                                           .kernel = parent,
                                           .alive = true };
        return truth.n++;
}

/* Whoever it leaves behind goes to the nearest that takes orphans in. */
static void dies(int i)
{
        truth.all[i].alive = false;
        truth.all[i].end = truth.now;
        for (int k = 0; k < truth.n; k++) {
                if (!truth.all[k].alive || truth.all[k].kernel != i)
                        continue;
                int up = truth.all[i].kernel;
                while (up > 0 && !(truth.all[up].alive && truth.all[up].subreaper))
                        up = truth.all[up].kernel;
                truth.all[k].kernel = up < 0 ? 0 : up;
        }
}

static bool descends_from(int i, uint32_t pid, const struct lineage_who *who)
{
        for (int up = truth.all[i].parent; up >= 0; up = truth.all[up].parent)
                if (truth.all[up].pid == pid && truth.all[up].start >= who->from_ticks &&
                    truth.all[up].start <= who->from_ticks + who->slack_ticks)
                        return true;
        return false;
}

/* ---- what is told of it ---- */

static void begin(void)
{
        memset(&truth, 0, sizeof(truth));
        lineage_init(&l);
        truth.now = 1;
        (void) born(-1, 1);
        truth.now = 1000;
}

static void listen(void)
{
        lineage_scan_begin(&l, truth.now);
        for (int i = 0; i < truth.n; i++) {
                struct lineage_look now;
                if (truth.all[i].alive && look(NULL, truth.all[i].pid, &now))
                        lineage_seen(&l, truth.all[i].pid, &now);
        }
        lineage_scan_end(&l);
}

static int forks(int parent, uint32_t pid)
{
        int child = born(parent, pid);
        struct lineage_look now;

        lineage_fork(&l, truth.all[parent].pid, pid, truth.now);
        if (settles && look(NULL, pid, &now))
                lineage_seen(&l, pid, &now);
        return child;
}

/* Its second, as acct(2) rounds it: the clock's whole second less the whole seconds it lasted. */
static void account(int i)
{
        const int64_t off = 37;
        uint64_t lasted = truth.now - truth.all[i].start;
        int64_t begun = ((int64_t) truth.now + off) / 100 * 100 - (int64_t) lasted / 100 * 100 - off;
        int up = truth.all[i].kernel;

        lineage_record(&l, truth.all[i].pid, up >= 0 ? truth.all[up].pid : 0, begun, lasted);
}

static void exits(int i, bool accounted)
{
        if (accounted)
                account(i);
        lineage_exit(&l, truth.all[i].pid, truth.now);
        dies(i);
}

static size_t trace(int i, struct lineage_step steps[32])
{
        struct lineage_look self;

        assert_true(look(NULL, truth.all[i].pid, &self));
        return lineage_trace(&l, truth.all[i].pid, &self, look, NULL, steps, 32);
}

/* "10e 5p 1p": number and evidence of each step. */
static const char *story(int i)
{
        static const char letter[LINEAGE_LINK_N] = { [LINEAGE_PARENT] = 'p',
                                                     [LINEAGE_EVENT] = 'e',
                                                     [LINEAGE_ACCOUNTED] = 'a',
                                                     [LINEAGE_TOKEN] = 't',
                                                     [LINEAGE_SESSION] = 's' };
        static char text[512];
        struct lineage_step steps[32];
        size_t n = trace(i, steps), at = 0;

        text[0] = '\0';
        for (size_t k = 0; k < n; k++) {
                at += (size_t) snprintf(text + at, sizeof(text) - at, "%s%u%c", k ? " " : "", steps[k].who.pid,
                                        letter[steps[k].link]);
                assert_true(steps[k].who.pid == 1 || descends_from(i, steps[k].who.pid, &steps[k].who));
        }
        return text;
}

/* ---- stories ---- */

static void worker_whose_parents_live_is_traced_by_the_kernel_alone(void **state)
{
        (void) state;
        begin();
        int shell = born(0, 10), train = born(shell, 11), worker = born(train, 12);

        assert_string_equal(story(worker), "11p 10p 1p");
        (void) train;
}

static void F54_double_fork_with_the_intermediate_gone_is_traced_by_the_event(void **state)
{
        (void) state;
        begin();
        int shell = born(0, 10);
        listen();
        truth.now += 50;
        int between = forks(shell, 11), worker = forks(between, 12);
        truth.now += 5;
        exits(between, false);
        assert_string_equal(story(worker), "11e 10e 1p");
}

static void disowned_worker_of_two_shells_that_are_gone_is_traced_to_both(void **state)
{
        (void) state;
        begin();
        listen();
        int run = forks(0, 10), outer = forks(run, 11), inner = forks(outer, 12), worker = forks(inner, 13);
        exits(inner, false);
        exits(outer, false);
        assert_string_equal(story(worker), "12e 11e 10e 1e");
        exits(run, false);
        assert_string_equal(story(worker), "12e 11e 10e 1e");
}

static void number_that_was_given_out_again_is_nobodys_parent(void **state)
{
        (void) state;
        begin();
        int shell = born(0, 10);
        listen();
        int between = forks(shell, 11), worker = forks(between, 12);
        exits(between, false);
        truth.now += 1;
        int other = born(0, 20);
        lineage_fork(&l, 1, 20, truth.now);
        int again = forks(other, 11);
        assert_string_equal(story(worker), "11e 10e 1p");
        assert_string_equal(story(again), "20e 1e");
        struct lineage_step steps[32];
        (void) trace(worker, steps);
        assert_true(steps[0].who.from_ticks <= truth.all[between].start); /* the one of then */
}

/* The kernel lets go of the number before it tells of the end. */
static void end_that_is_told_after_its_number_was_given_out_again_ends_nobody_else(void **state)
{
        (void) state;
        for (unsigned settled = 0; settled < 2; settled++) {
                settles = settled;
                begin();
                int shell = born(0, 10);
                listen();
                int before = forks(shell, 11), worker = forks(before, 12);
                dies(before);
                int other = forks(shell, 20), again = forks(other, 11);
                lineage_exit(&l, 11, truth.now);
                int below = forks(again, 13);
                assert_string_equal(story(worker), "11e 10e 1p");
                assert_string_equal(story(below), "11e 20e 10e 1p");
                exits(again, false);
                assert_string_equal(story(below), "11e 20e 10e 1p");
                assert_int_equal(who_has(11), -1);
                int third = forks(shell, 11);
                assert_string_equal(story(third), "10e 1p");
        }
        settles = false;
}

static void daemon_that_set_its_session_is_traced_by_it_without_any_event(void **state)
{
        (void) state;
        begin();
        int shell = born(0, 10), between = born(shell, 11);
        truth.all[between].sid = 11; /* setsid */
        int worker = born(between, 12);
        assert_string_equal(story(worker), "11p 10p 1p");
        /* The leader lives, and the one between it and us is gone. */
        int deep = born(worker, 13), below = born(deep, 14);
        dies(deep);
        assert_int_equal(truth.all[below].kernel, 0);
        assert_string_equal(story(below), "11s 10p 1p");
}

static void dead_leader_is_traced_by_its_record_and_so_is_who_made_it(void **state)
{
        (void) state;
        begin();
        int shell = born(0, 10);
        truth.now += 3000;
        int between = born(shell, 11);
        truth.all[between].sid = 11;
        truth.now += 300;
        int worker = born(between, 12);
        truth.now += 10;
        exits(between, true);
        assert_string_equal(story(worker), "11s 10a 1p");
        truth.now += 1000;
        exits(shell, true);
        assert_string_equal(story(worker), "11s 10a 1a");
}

/* The file has the parent's record behind the child's, so whoever ended next with that number is meant. */
static void record_of_a_later_owner_of_the_number_is_not_taken_for_the_parents(void **state)
{
        (void) state;
        begin();
        int shell = born(0, 10), between = born(shell, 11);
        truth.all[between].sid = 11;
        int worker = born(between, 12);
        truth.now += 5;
        exits(between, true);
        exits(shell, true);
        int other = born(0, 10); /* within the same second */
        truth.now += 5;
        exits(other, true);
        struct lineage_step steps[32];
        assert_int_equal(trace(worker, steps), 3);
        assert_int_equal(steps[1].who.pid, 10);
        assert_true(steps[1].who.from_ticks <= truth.all[shell].start);
        assert_string_equal(story(worker), "11s 10a 1a");
}

static void where_records_are_missing_there_is_no_step_that_could_be_another_ones(void **state)
{
        (void) state;
        begin();
        int shell = born(0, 10), between = born(shell, 11);
        truth.all[between].sid = 11;
        truth.now += 300;
        int worker = born(between, 12);
        truth.now += 150;
        exits(between, true);
        dies(shell); /* nobody wrote that down */
        lineage_record_gap(&l);
        int other = born(0, 10);
        truth.now += 5;
        exits(other, true);
        assert_string_equal(story(worker), "11s"); /* neither 10 can be told from the other */
}

static void accounting_switched_on_after_the_leader_died_proves_nothing(void **state)
{
        (void) state;
        begin();
        int shell = born(0, 10), between = born(shell, 11);
        truth.all[between].sid = 11;
        int worker = born(between, 12);
        dies(between);
        lineage_record_gap(&l);
        assert_string_equal(story(worker), "1p");
        (void) worker;
}

static void events_that_were_lost_are_a_gap_and_no_link(void **state)
{
        (void) state;
        begin();
        int shell = born(0, 10);
        listen();
        int between = born(shell, 11), worker = born(between, 12); /* told to nobody */
        dies(between);
        listen();
        assert_string_equal(story(worker), "1p");
        int more = forks(worker, 13);
        assert_string_equal(story(more), "12e 1p");
}

static void event_behind_a_scan_that_saw_its_process_changes_nothing(void **state)
{
        (void) state;
        begin();
        int shell = born(0, 10), worker = born(shell, 12);
        uint64_t at = truth.now;
        listen();
        lineage_fork(&l, 10, 12, at);
        assert_string_equal(story(worker), "10p 1p");
        assert_int_equal(l.n_nodes, 3);
        /* An end that was told late is not the end of who has the number now. */
        lineage_exit(&l, 12, at - 500);
        assert_string_equal(story(worker), "10p 1p");
}

static void process_whose_first_thread_ended_is_still_the_parent(void **state)
{
        (void) state;
        begin();
        int shell = born(0, 10);
        listen();
        int many = forks(shell, 11), first = forks(many, 12);
        lineage_exit(&l, 11, truth.now); /* the thread, not the process */
        int second = forks(many, 13);
        assert_string_equal(story(second), "11e 10e 1p");
        assert_string_equal(story(first), "11e 10e 1p");
}

static void who_forks_itself_anew_for_ever_fills_no_memory(void **state)
{
        (void) state;
        begin();
        int shell = born(0, 10);
        listen();
        int at = forks(shell, 100), n = 0;
        for (int i = 0; i < 3000; i++) {
                int next = forks(at, 100 + (uint32_t) (i + 1) % 900);
                exits(at, false);
                at = next;
                truth.now++;
                n = (int) l.n_nodes;
                assert_in_range(n, 3, 12);
        }
        const char *told = story(at);
        assert_non_null(strstr(told, " 10e 1p")); /* and its origin is not forgotten */
}

static void full_memory_learns_nothing_and_forgets_nothing(void **state)
{
        (void) state;
        struct lineage_look of_init = { 1, 0, 1 };
        begin();
        lineage_seen(&l, 1, &of_init);
        for (uint32_t i = 0; i < LINEAGE_NODES + 100; i++)
                lineage_fork(&l, 1, 1000 + i, 2000);
        assert_int_equal(l.n_nodes, LINEAGE_NODES);
        assert_int_equal(l.n_refused, 101);
        for (uint32_t i = 0; i < LINEAGE_NODES + 100; i++)
                lineage_exit(&l, 1000 + i, 3000);
        assert_int_equal(l.n_nodes, 1);
}

/* ---- at random ---- */

static uint32_t seed;

static uint32_t next_random(uint32_t n)
{
        seed = seed * 1664525U + 1013904223U;
        return (seed >> 8) % n;
}

static int some_living(void)
{
        for (int tries = 0; tries < 200; tries++) {
                int i = truth.n > 60 ? truth.n - 1 - (int) next_random(60) : (int) next_random((uint32_t) truth.n);
                if (truth.all[i].alive)
                        return i;
        }
        return 0;
}

static int living(void)
{
        int n = 0;
        for (int i = 0; i < truth.n; i++)
                n += truth.all[i].alive;
        return n;
}

/* What ends and comes back within one tick is one identity, whose books a scan cannot part. */
static bool ended_now(uint32_t pid)
{
        for (int i = 0; i < truth.n; i++)
                if (!truth.all[i].alive && truth.all[i].pid == pid && truth.all[i].end == truth.now)
                        return true;
        return false;
}

static uint32_t late[16]; /* who ended, and it is still to be told */
static unsigned n_late;

static void tell_late(uint32_t pid)
{
        for (unsigned i = 0; i < n_late;) {
                if (pid != 0 && late[i] != pid) {
                        i++;
                        continue;
                }
                lineage_exit(&l, late[i], truth.now);
                late[i] = late[--n_late];
        }
}

static void random_life(uint32_t first_seed, bool events, bool records, bool lossy, size_t *ret_links)
{
        n_late = 0;
        bool lost = false;

        seed = first_seed;
        settles = lossy;
        begin();
        if (events)
                listen();
        for (int step = 0; step < 1500 && truth.n < ALL_MAX - 2; step++) {
                int i = some_living();
                uint32_t pid = 2 + next_random(PIDS);
                switch (next_random(8)) {
                case 0:
                case 1:
                case 2:
                        if (is_taken(pid) || living() > 24 || (lossy && ended_now(pid)))
                                break;
                        if (events && !lost) {
                                (void) forks(i, pid);
                                tell_late(pid);
                        } else {
                                (void) born(i, pid);
                        }
                        break;
                case 3:
                case 4:
                        if (i == 0)
                                break;
                        if (records && !(lossy && next_random(6) == 0))
                                account(i);
                        else
                                lineage_record_gap(&l);
                        if (events && !lost && n_late < sizeof(late) / sizeof(late[0]) && next_random(3) == 0)
                                late[n_late++] = truth.all[i].pid;
                        else if (events && !lost)
                                lineage_exit(&l, truth.all[i].pid, truth.now);
                        dies(i);
                        break;
                case 5:
                        if (i != 0 && truth.all[i].sid != truth.all[i].pid)
                                truth.all[i].sid = truth.all[i].pid;
                        else if (i != 0 && next_random(4) == 0)
                                truth.all[i].subreaper = true;
                        break;
                case 6:
                        tell_late(0);
                        truth.now += next_random(40);
                        if (lossy && events && next_random(10) == 0) {
                                lost = !lost;
                                if (!lost)
                                        listen();
                        }
                        break;
                case 7: {
                        struct lineage_step steps[32];
                        tell_late(0);
                        if (lost) { /* a trace never comes before the scan */
                                listen();
                                lost = false;
                        }
                        size_t n = trace(i, steps);
                        for (size_t k = 0; k < n; k++) {
                                if (steps[k].who.pid != 1 && !descends_from(i, steps[k].who.pid, &steps[k].who))
                                        fail_msg("seed %u step %d: pid %u (%d) is no descendant of %u by %d",
                                                 first_seed, step, truth.all[i].pid, i, steps[k].who.pid,
                                                 (int) steps[k].link);
                                *ret_links += steps[k].link != LINEAGE_PARENT;
                        }
                        break;
                }
                }
        }
}

static void no_step_is_ever_wrong_in_a_world_of_few_numbers(void **state)
{
        (void) state;
        size_t links[8] = { 0 };

        for (uint32_t s = 1; s <= 400; s++)
                for (unsigned how = 0; how < 8; how++)
                        random_life(s * 8 + how, how & 1, how & 2, how & 4, &links[how]);
        for (unsigned how = 0; how < 8; how++)
                print_message("# events %d records %d lossy %d: %zu steps that /proc alone does not give\n",
                              !!(how & 1), !!(how & 2), !!(how & 4), links[how]);
        for (unsigned how = 1; how < 8; how++)
                assert_true(links[how] > links[0] / 2 || how == 4);
        assert_true(links[1] > 4 * links[0] && links[2] > links[0]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(worker_whose_parents_live_is_traced_by_the_kernel_alone),
                cmocka_unit_test(F54_double_fork_with_the_intermediate_gone_is_traced_by_the_event),
                cmocka_unit_test(disowned_worker_of_two_shells_that_are_gone_is_traced_to_both),
                cmocka_unit_test(number_that_was_given_out_again_is_nobodys_parent),
                cmocka_unit_test(end_that_is_told_after_its_number_was_given_out_again_ends_nobody_else),
                cmocka_unit_test(daemon_that_set_its_session_is_traced_by_it_without_any_event),
                cmocka_unit_test(dead_leader_is_traced_by_its_record_and_so_is_who_made_it),
                cmocka_unit_test(record_of_a_later_owner_of_the_number_is_not_taken_for_the_parents),
                cmocka_unit_test(where_records_are_missing_there_is_no_step_that_could_be_another_ones),
                cmocka_unit_test(accounting_switched_on_after_the_leader_died_proves_nothing),
                cmocka_unit_test(events_that_were_lost_are_a_gap_and_no_link),
                cmocka_unit_test(event_behind_a_scan_that_saw_its_process_changes_nothing),
                cmocka_unit_test(process_whose_first_thread_ended_is_still_the_parent),
                cmocka_unit_test(who_forks_itself_anew_for_ever_fills_no_memory),
                cmocka_unit_test(full_memory_learns_nothing_and_forgets_nothing),
                cmocka_unit_test(no_step_is_ever_wrong_in_a_world_of_few_numbers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
