/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lessord's end of the hands, on a loop, with the real lessor-warden ($LESSOR_BUILD_DIR/bin) and real processes. Started with
 * `--fd N` this program is itself a warden of another version.
 */
#include "programs/lessord/hands_link.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/confine.h"
#include "base/log.h"
#include "cm.h"
#include "programs/lessord/launcher.h"
#include "senses/process.h"

enum { PATIENCE_MS = 60000, LOOK_MS = 5, OUTCOMES_MAX = 64 };

struct seen {
        uint64_t order_id;
        enum warden_result result;
        enum warden_why why;
};

static char warden_path[4096], dir[64];
static uv_loop_t loop;
static uv_timer_t look;
static struct hands_link *hands;
static struct process_source source;
static struct seen outcomes[OUTCOMES_MAX];
static size_t n_outcomes;
static bool up;
static unsigned n_up, n_down;
static char words[400];
static uint64_t next_id;
static int launcher = -1; /* of a test that talks to one by itself */

/* ---- the daemon around it ---- */

static uint64_t order(enum warden_verb verb, int sig, pid_t pid);

static bool go_on;       /* give an order as soon as an outcome is told before the hands are up */
static uint64_t went_on; /* that order */

static void on_outcome(void *ctx, const struct warden_answer *a)
{
        (void) ctx;
        if (go_on && !up) {
                go_on = false;
                went_on = order(WARDEN_SIGNAL, SIGCONT, getpid());
        }
        assert_true(n_outcomes < OUTCOMES_MAX);
        outcomes[n_outcomes++] = (struct seen){ a->order_id, a->result, a->why };
}

static void on_state(void *ctx, bool is_up, const char *said)
{
        (void) ctx;
        up = is_up;
        n_up += is_up;
        n_down += !is_up;
        (void) snprintf(words, sizeof(words), "%s", said);
}

static void on_look(uv_timer_t *timer)
{
        (void) timer;
}

/* Runs the loop until @fact holds. */
#define until(fact)                                                                                                    \
        do {                                                                                                           \
                uint64_t give_up_ = clock_now_ms() + PATIENCE_MS;                                                      \
                while (!(fact)) {                                                                                      \
                        (void) uv_run(&loop, UV_RUN_ONCE);                                                             \
                        if (clock_now_ms() > give_up_)                                                                 \
                                fail_msg("still not so: %s (%s)", #fact, words);                                       \
                }                                                                                                      \
        } while (0)

static const struct seen *outcome_of(uint64_t id)
{
        for (size_t i = 0; i < n_outcomes; i++)
                if (outcomes[i].order_id == id)
                        return &outcomes[i];
        return NULL;
}

static unsigned times_told(uint64_t id)
{
        unsigned n = 0;
        for (size_t i = 0; i < n_outcomes; i++)
                n += outcomes[i].order_id == id;
        return n;
}

static void make_link(const struct hands_options *options)
{
        static const struct hands_host host = { .on_outcome = on_outcome, .on_state = on_state };
        struct error err = { 0 };

        if (hands_link_new(&hands, &loop, options, &host, &err) < 0)
                fail_msg("%s", err.msg);
}

static const char *const quick[] = { "--grace-min-ms", "1", NULL };

static struct hands_options own(void)
{
        return (struct hands_options){ .program = warden_path, .dir = dir, .version = "0.1.0", .extra = quick };
}

static int begin(void **state)
{
        struct error err = { 0 };

        (void) state;
        n_outcomes = n_up = n_down = 0;
        up = false;
        words[0] = '\0';
        hands = NULL;
        (void) snprintf(dir, sizeof(dir), "/tmp/lessor-h-XXXXXX");
        if (!mkdtemp(dir) || uv_loop_init(&loop) < 0 || process_source_init(&source, "/proc", &err) < 0)
                return -1;
        (void) uv_timer_init(&loop, &look);
        return uv_timer_start(&look, on_look, LOOK_MS, LOOK_MS);
}

static void remove_dir(void)
{
        static const char *const names[] = { "helpers", "grace", "lock" };
        char path[128];

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
                (void) snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
                (void) unlink(path);
        }
        (void) rmdir(dir);
}

static void end_link(void)
{
        if (hands) {
                hands_link_stop(hands);
                (void) uv_run(&loop, UV_RUN_NOWAIT);
                hands_link_free(hands);
        }
        hands = NULL;
}

static int end(void **state)
{
        (void) state;
        end_link();
        if (launcher >= 0)
                (void) close(launcher);
        launcher = -1;
        while (waitpid(-1, NULL, 0) > 0) /* a warden ends by itself when its socket is closed */
                ;
        uv_close((uv_handle_t *) &look, NULL);
        (void) uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&loop), 0); /* nothing of the link is left in the loop */
        remove_dir();
        return 0;
}

static pid_t sleeper(void)
{
        pid_t pid = fork();
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
                (void) signal(SIGTERM, SIG_DFL);
                for (;;)
                        (void) pause();
        }
        return pid;
}

static uint64_t order(enum warden_verb verb, int sig, pid_t pid)
{
        struct warden_order o = { .order_id = ++next_id,
                                  .verb = verb,
                                  .signal = (uint32_t) sig,
                                  .pid = (uint32_t) pid,
                                  .owner_uid = getuid() };

        assert_int_equal(process_start_ticks(&source, (uint32_t) pid, &o.start_ticks), 0);
        hands_link_order(hands, &o);
        return o.order_id;
}

static bool was(uint64_t id, enum warden_result result, enum warden_why why)
{
        const struct seen *o = outcome_of(id);
        if (!o)
                return false;
        if (o->result != result || o->why != why)
                fail_msg("order %u: %s %s", (unsigned) id, warden_result_name(o->result), warden_why_name(o->why));
        return true;
}

/* Found by what it is: our child of that name, whatever its number (they are given out anew from the beginning). 0: nobody. */
static pid_t child_called(const char *name)
{
        pid_t found = 0;
        DIR *processes = opendir("/proc");

        assert_non_null(processes);
        for (const struct dirent *e = readdir(processes); e; e = readdir(processes)) {
                struct eyes_process facts;
                pid_t pid = (pid_t) strtol(e->d_name, NULL, 10);
                if (pid <= 0 || process_identify(&source, (uint32_t) pid, &facts, NULL, NULL) < 0 ||
                    strcmp(facts.comm, name) != 0 || facts.ppid != (uint32_t) getpid())
                        continue;
                assert_int_equal(found, 0); /* never two */
                found = pid;
        }
        (void) closedir(processes);
        return found;
}

static pid_t warden_pid(void)
{
        pid_t pid = child_called("lessor-warden");

        assert_int_not_equal(pid, 0); /* whom a signal is for: 0 is all of us */
        return pid;
}

static void reap(pid_t pid)
{
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
}

/* ---- tests ---- */

static void order_before_there_are_hands_is_blocked_at_once(void **state)
{
        const struct hands_options options = own();
        (void) state;
        make_link(&options);
        uint64_t id = order(WARDEN_SIGNAL, SIGTERM, getpid());
        assert_true(was(id, WARDEN_BLOCKED, WARDEN_WHY_AWAY));
        assert_false(hands_link_is_up(hands));
}

static void order_is_carried_out_and_told_once(void **state)
{
        const struct hands_options options = own();
        pid_t child = sleeper();
        int status = 0;

        (void) state;
        make_link(&options);
        hands_link_start(hands);
        until(up);
        assert_non_null(strstr(hands_link_words(hands), "lessor-warden 0."));
        uint64_t id = order(WARDEN_SIGNAL, SIGTERM, child);
        until(was(id, WARDEN_DONE, WARDEN_WHY_NONE));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
        hands_link_settled(hands, id); /* of one that nobody keeps: nothing */
        assert_int_equal(times_told(id), 1);
}

static void hands_that_die_are_replaced_and_what_they_had_not_done_is_lost(void **state)
{
        const struct hands_options options = own();
        pid_t child = sleeper();

        (void) state;
        make_link(&options);
        hands_link_start(hands);
        until(up);
        pid_t first = warden_pid();
        (void) kill(first, SIGSTOP); /* so that the order lies in its socket */
        uint64_t id = order(WARDEN_SIGNAL, SIGTERM, child);
        (void) kill(first, SIGKILL);
        until(n_down == 1);
        uint64_t refused = order(WARDEN_SIGNAL, SIGTERM, child);
        assert_true(was(refused, WARDEN_BLOCKED, WARDEN_WHY_AWAY));
        assert_null(outcome_of(id)); /* not known before the next ones were asked */
        until(n_up == 2);
        assert_true(was(id, WARDEN_FAILED, WARDEN_WHY_LOST));
        assert_int_not_equal(warden_pid(), first);
        id = order(WARDEN_SIGNAL, SIGTERM, child);
        until(was(id, WARDEN_DONE, WARDEN_WHY_NONE));
        reap(child);
}

static void hands_that_do_not_answer_are_replaced(void **state)
{
        struct hands_options options = own();

        (void) state;
        options.tick_ms = 50;
        make_link(&options);
        hands_link_start(hands);
        until(up);
        /* On a busy machine 50 ms may have been too short before. */
        unsigned n_down_before = n_down, n_up_before = n_up;
        (void) kill(warden_pid(), SIGSTOP);
        until(n_down > n_down_before);
        assert_string_equal(words, "lessor-warden does not answer");
        until(n_up > n_up_before);
}

/* Ends @child by KILL_TREE and returns the id of the order, told and not settled. */
static uint64_t kill_tree(pid_t child)
{
        uint64_t id = order(WARDEN_SIGNAL, SIGCONT, child);
        until(was(id, WARDEN_DONE, WARDEN_WHY_NONE));
        id = order(WARDEN_SIGNAL, SIGTERM, child);
        until(was(id, WARDEN_DONE, WARDEN_WHY_NONE));
        do {
                id = order(WARDEN_KILL_TREE, 0, child);
                until(outcome_of(id));
        } while (outcome_of(id)->why == WARDEN_WHY_NO_GRACE);
        assert_true(was(id, WARDEN_DONE, WARDEN_WHY_NONE));
        return id;
}

/* A process that survives its SIGTERM. */
static pid_t stubborn(void)
{
        int ready[2];
        char byte;

        assert_int_equal(pipe(ready), 0);
        pid_t pid = fork();
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) signal(SIGTERM, SIG_IGN);
                (void) !write(ready[1], "r", 1);
                for (;;)
                        (void) pause();
        }
        (void) close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        (void) close(ready[0]);
        return pid;
}

static void outcome_that_comes_again_is_not_told_again(void **state)
{
        const struct hands_options options = own();
        pid_t child = stubborn();

        (void) state;
        make_link(&options);
        hands_link_start(hands);
        until(up);
        uint64_t id = kill_tree(child);
        (void) kill(warden_pid(), SIGKILL);
        until(n_down == 1);
        until(n_up == 2);
        assert_int_equal(times_told(id), 1);
        (void) kill(warden_pid(), SIGKILL);
        until(n_down == 2);
        hands_link_settled(hands, id); /* while they are away: said later */
        until(n_up == 3);
        (void) waitpid(child, NULL, 0);

        /* A daemon that knows nothing of before is told what was not settled: nothing. */
        size_t before = n_outcomes;
        uint64_t ping = order(WARDEN_SIGNAL, SIGCONT, getpid()); /* answered after the SETTLED was taken */
        until(outcome_of(ping));
        end_link();
        make_link(&options);
        hands_link_start(hands);
        until(n_up == 4);
        assert_int_equal(n_outcomes, before + 1);
}

static void outcome_of_an_earlier_daemon_is_told_and_can_be_settled(void **state)
{
        const struct hands_options options = own();
        pid_t child = stubborn();

        (void) state;
        make_link(&options);
        hands_link_start(hands);
        until(up);
        uint64_t id = kill_tree(child);
        (void) waitpid(child, NULL, 0);
        for (unsigned round = 2; round <= 3; round++) {
                end_link();
                make_link(&options);
                hands_link_start(hands);
                until(n_up == round);
                assert_int_equal(times_told(id), round); /* once for each daemon, until settled */
        }
        hands_link_settled(hands, id);
        uint64_t after = order(WARDEN_SIGNAL, SIGCONT, getpid());
        until(outcome_of(after));
        end_link();
        make_link(&options);
        hands_link_start(hands);
        until(n_up == 4);
        assert_int_equal(times_told(id), 3);
}

static void order_that_follows_from_an_outcome_of_before_does_not_find_the_hands_away(void **state)
{
        const struct hands_options options = own();
        pid_t child = stubborn();

        (void) state;
        make_link(&options);
        hands_link_start(hands);
        until(up);
        (void) kill_tree(child);
        (void) waitpid(child, NULL, 0);
        end_link();
        make_link(&options);
        up = false;
        went_on = 0;
        go_on = true;
        hands_link_start(hands);
        until(n_up == 2);
        assert_true(went_on != 0);
        until(outcome_of(went_on));
        assert_true(outcome_of(went_on)->why != WARDEN_WHY_AWAY);
        assert_int_equal(times_told(went_on), 1);
}

static void hands_of_another_version_are_named_by_lessord(void **state)
{
        struct hands_options options = own();

        (void) state;
        options.program = "/proc/self/exe";
        options.extra = NULL;
        make_link(&options);
        hands_link_start(hands);
        until(n_down == 1);
        assert_non_null(strstr(words, "lessor-warden 0.9.7 speaks version 4, lessord 0.1.0 speaks version 3"));
        assert_int_equal(n_up, 0);
        assert_int_equal(n_down, 1);
}

static void program_that_is_not_there_is_said_so_once(void **state)
{
        struct hands_options options = own();

        (void) state;
        options.program = "/nowhere/lessor-warden";
        make_link(&options);
        hands_link_start(hands);
        until(n_down == 1);
        assert_true(words[0] != '\0');
}

static void systems_hands_are_connected_to_when_they_come(void **state)
{
        char socket_path[128], folder[128], config[128];
        struct hands_options options = { .socket = socket_path, .version = "0.1.0" };

        (void) state;
        (void) snprintf(socket_path, sizeof(socket_path), "%s.sock", dir);
        (void) snprintf(folder, sizeof(folder), "%s", dir);
        (void) snprintf(config, sizeof(config), "%s.none", dir);
        make_link(&options);
        hands_link_start(hands);
        until(n_down == 1);
        assert_non_null(strstr(words, "connecting to lessor-warden at"));
        if (geteuid() != 0) {
                print_message("# the system's hands are root's: the rest needs root\n");
                return;
        }
        pid_t pid = fork();
        if (pid == 0) {
                execl(warden_path, "lessor-warden", "--system", "--brain-uid", "0", "--dir", folder, "--socket",
                      socket_path, "--config", config, (char *) NULL);
                _exit(127);
        }
        until(up);
        uint64_t id = order(WARDEN_SIGNAL, SIGTERM, getpid());
        until(was(id, WARDEN_BLOCKED, WARDEN_WHY_PROTECTED_LESSOR));
        reap(pid);
        until(n_down == 2);
        (void) unlink(socket_path);
}

/* Root's processes have capabilities; a warden that was started by a confined lessord does not see what they run. */
static int launched_order(bool with_launcher)
{
        struct hands_options options = own();
        struct error err = { 0 };
        pid_t child = sleeper(), again = sleeper(); /* before this program is one that its own user cannot look into */

        if (with_launcher && launcher_start(warden_path, dir, &options.launcher, &err) < 0)
                return 10;
        options.has_launcher = with_launcher;
        int r = confine_unprivileged(&err);
        if (r < 0 && r != -EOPNOTSUPP)
                return 11;
        make_link(&options);
        hands_link_start(hands);
        until(up);
        uint64_t id = order(WARDEN_SIGNAL, SIGTERM, child);
        until(outcome_of(id));
        int first = (int) outcome_of(id)->why;
        unsigned rounds = n_up;
        end_link(); /* and a second one by the same launcher */
        make_link(&options);
        hands_link_start(hands);
        until(n_up == rounds + 1);
        id = order(WARDEN_SIGNAL, SIGTERM, again);
        until(outcome_of(id));
        int second = (int) outcome_of(id)->why;
        end_link();
        return first == second ? first : 12;
}

static int in_a_child(bool with_launcher)
{
        int status = 0;
        pid_t pid = fork();

        if (pid == 0)
                _exit(launched_order(with_launcher));
        (void) waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static void launched_hands_have_the_rights_that_lessord_gave_up(void **state)
{
        (void) state;
        assert_int_equal(in_a_child(true), WARDEN_WHY_NONE);
        if (geteuid() == 0) /* why there is a launcher at all */
                assert_int_equal(in_a_child(false), WARDEN_WHY_UNSEEN);
}

/* ---- a launcher in the hands of a lessord that was taken over ---- */

static uint64_t mask_of(pid_t pid, const char *name)
{
        char path[64], text[8192];

        (void) snprintf(path, sizeof(path), "/proc/%d/status", (int) pid);
        FILE *f = fopen(path, "re");
        assert_non_null(f);
        text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
        (void) fclose(f);
        const char *line = strstr(text, name);
        assert_non_null(line);
        return strtoull(line + strlen(name), NULL, 16);
}

static char state_of(pid_t pid)
{
        char path[64], text[1024], state = '-';

        (void) snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
        FILE *f = fopen(path, "re");
        if (!f)
                return '-';
        text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
        (void) fclose(f);
        const char *paren = strrchr(text, ')');
        if (paren)
                state = paren[2];
        return state;
}

static unsigned descriptors_of(pid_t pid)
{
        char path[64];
        unsigned n = 0;

        (void) snprintf(path, sizeof(path), "/proc/%d/fd", (int) pid);
        DIR *folder = opendir(path);
        assert_non_null(folder);
        while (readdir(folder))
                n++;
        (void) closedir(folder);
        return n - 2;
}

/* One datagram with @n_fds copies of descriptor 0, which is what lessord's end never sends. */
static void send_raw(int sock, const char *data, size_t n, int n_fds)
{
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = { 0 };
        char copy[64];
        struct iovec iov = { .iov_base = copy, .iov_len = n };
        struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control };

        memcpy(copy, data, n);
        msg.msg_controllen = CMSG_SPACE((size_t) n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN((size_t) n_fds * sizeof(int));
        assert_int_equal(sendmsg(sock, &msg, MSG_NOSIGNAL), (ssize_t) n);
}

static void close_child(struct eyes_child *child)
{
        (void) close(child->pidfd);
        (void) close(child->sock);
}

static void S23_launcher_keeps_roots_sight_and_no_other_right(void **state)
{
        const uint64_t sight = geteuid() == 0 ? UINT64_C(1) << 19 : 0;
        struct eyes_child child;
        struct error err = { 0 };
        int leaked = dup(STDIN_FILENO);

        (void) state;
        assert_int_equal(launcher_start(warden_path, dir, &launcher, &err), 0);
        assert_int_equal(launcher_spawn(launcher, &child, &err), 0); /* it has begun its work */
        pid_t pid = child_called("lessor-launcher");
        assert_int_equal(mask_of(pid, "CapEff:\t"), sight);
        assert_int_equal(mask_of(pid, "CapPrm:\t"), sight);
        assert_int_equal(mask_of(pid, "CapInh:\t"), 0);
        assert_int_equal(mask_of(pid, "NoNewPrivs:\t"), 1);
        if (geteuid() == 0)
                until(descriptors_of(pid) == 4); /* three, and its socket: nothing else that was open here */
        close_child(&child);
        (void) close(leaked);
}

static void S22_launcher_takes_no_option_from_a_lessord_that_was_taken_over(void **state)
{
        static const char injected[] = "lessor-warden\0--system\0--brain-uid\0"
                                       "0";
        int status = 0;
        struct error err = { 0 };
        char byte;

        (void) state;
        assert_int_equal(launcher_start(warden_path, dir, &launcher, &err), 0);
        pid_t pid = 0;
        until((pid = child_called("lessor-launcher")) != 0);
        send_raw(launcher, injected, sizeof(injected), 1);
        assert_int_equal(recv(launcher, &byte, 1, 0), 0); /* it is gone: no pid, no pidfd, no process */
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
}

static void launcher_takes_one_descriptor_and_keeps_none(void **state)
{
        struct error err = { 0 };
        char byte;

        (void) state;
        assert_int_equal(launcher_start(warden_path, dir, &launcher, &err), 0);
        send_raw(launcher, "launch", sizeof("launch"), 2);
        assert_int_equal(recv(launcher, &byte, 1, 0), 0);
}

static void F48_pid_of_a_launched_warden_is_nobody_elses_until_the_next_one(void **state)
{
        struct eyes_child first, second;
        struct error err = { 0 };

        (void) state;
        assert_int_equal(launcher_start(warden_path, dir, &launcher, &err), 0);
        assert_int_equal(launcher_spawn(launcher, &first, &err), 0);
        eyes_child_kill(&first);
        until(process_is_dead(first.pidfd));
        assert_int_equal(state_of(first.pid), 'Z'); /* else its number could go round before it was held by a pidfd */
        assert_int_equal(launcher_spawn(launcher, &second, &err), 0);
        assert_int_equal(state_of(first.pid), '-');
        close_child(&first);
        close_child(&second);
}

/* ---- */

static int be_old_warden(int fd)
{
        struct warden_message hello = { .kind = WARDEN_HELLO,
                                        .hello = { .version = WARDEN_VERSION + 1, .program = "0.9.7" } };
        uint8_t buf[WARDEN_MESSAGE_MAX];
        size_t n = 0;

        if (warden_encode(&hello, buf, sizeof(buf), &n, NULL) < 0 || send(fd, buf, n, MSG_NOSIGNAL) < 0)
                return EXIT_FAILURE;
        while (recv(fd, buf, sizeof(buf), 0) > 0)
                ;
        return 3;
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(order_before_there_are_hands_is_blocked_at_once, begin, end),
                cmocka_unit_test_setup_teardown(order_is_carried_out_and_told_once, begin, end),
                cmocka_unit_test_setup_teardown(hands_that_die_are_replaced_and_what_they_had_not_done_is_lost, begin,
                                                end),
                cmocka_unit_test_setup_teardown(hands_that_do_not_answer_are_replaced, begin, end),
                cmocka_unit_test_setup_teardown(outcome_that_comes_again_is_not_told_again, begin, end),
                cmocka_unit_test_setup_teardown(outcome_of_an_earlier_daemon_is_told_and_can_be_settled, begin, end),
                cmocka_unit_test_setup_teardown(
                        order_that_follows_from_an_outcome_of_before_does_not_find_the_hands_away, begin, end),
                cmocka_unit_test_setup_teardown(hands_of_another_version_are_named_by_lessord, begin, end),
                cmocka_unit_test_setup_teardown(program_that_is_not_there_is_said_so_once, begin, end),
                cmocka_unit_test_setup_teardown(systems_hands_are_connected_to_when_they_come, begin, end),
                cmocka_unit_test_setup_teardown(launched_hands_have_the_rights_that_lessord_gave_up, begin, end),
                cmocka_unit_test_setup_teardown(S23_launcher_keeps_roots_sight_and_no_other_right, begin, end),
                cmocka_unit_test_setup_teardown(S22_launcher_takes_no_option_from_a_lessord_that_was_taken_over, begin,
                                                end),
                cmocka_unit_test_setup_teardown(launcher_takes_one_descriptor_and_keeps_none, begin, end),
                cmocka_unit_test_setup_teardown(F48_pid_of_a_launched_warden_is_nobody_elses_until_the_next_one, begin,
                                                end),
        };
        const char *build = getenv("LESSOR_BUILD_DIR");

        if (argc > 2 && strcmp(argv[1], "--fd") == 0)
                return be_old_warden(argv[2][0] - '0');
        log_init("test_hands_link", LOG_LEVEL_ERROR);
        (void) signal(SIGPIPE, SIG_IGN);
        (void) snprintf(warden_path, sizeof(warden_path), "%s/bin/lessor-warden", build ? build : "build");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
