/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/duration.h"
#include "base/escape.h"
#include "client/consumer.h"
#include "programs/lessor/ask.h"
#include "programs/lessor/cards.h"
#include "programs/lessor/child.h"
#include "programs/lessor/obtain.h"
#include "programs/lessor/show.h"
#include "programs/lessor/verb.h"
#include "programs/lessor/watch.h"

enum {
        LEAVING_MS = 200, /* workers that go when the command went are no news */
        LEAVING_LOOK_MS = 5,
};

const struct option run_options[] = {
        { "booking", "ID", "run in what `lessor book` promised, when it is time", 0, "@leases" },
        { "wait", "TIME", "wait at most so long, then exit 124 (default: for ever)", 0, "1m|10m|1h" },
        { "no-wait", NULL, "run now or exit 124" },
        { "visible", "HOW", "CUDA_VISIBLE_DEVICES for the command: auto, uuid, index, none", 0,
          "auto|uuid|index|none" },
        { "yield-signal", "SIG[:BACK]",
          "cooperate: SIG tells the command to give its memory back, BACK (CONT) that it may have it", 0,
          "USR1|USR2|HUP" },
        { "yield-hook", "URL", "cooperate: the same by a POST to http://127.0.0.1:PORT/PATH or unix:/SOCKET:/PATH" },
        { "if-down", "HOW", "lessord is away: wait (60 s), run without a lease, or fail", 0, "wait|run|fail" },
        { "quiet", NULL, "only errors on stderr: nothing while it waits, nothing about the lease later", 'q' },
        { 0 },
};

const char run_more[] =
        "  lessor run --vram 12G --for 2h -- python3 train.py\n"
        "  lessor run --exclusive -- ./benchmark\n"
        "  lessor run --booking L7 -- python3 train.py\n"
        "\n"
        "Without --vram and --exclusive it asks for what the program's earlier runs came to, or where none are known "
        "for all\n"
        "a device can give, and says which.\n"
        "The command has stdin, stdout, stderr, the terminal and its exit status to itself; lessor speaks on stderr, "
        "and only\n"
        "while it waits, when something is wrong, and when something becomes of the lease: its time (--for) runs out, "
        "it\n"
        "uses more than it asked for or another device, its device is lost, somebody ended it. Signals sent to lessor "
        "are\n"
        "passed on. The lease ends with the command; workers it leaves behind keep it until they end.\n"
        "With --yield-by restart (and --filler) the command is ended when somebody more important needs the memory, "
        "and started\n"
        "again, as it was started first, when there is room: its exit status is that of its last run. While it is "
        "parked, the\n"
        "first Ctrl-C says for whom, the second one ends it.\n"
        "\n"
        "Exit status: the command's own; if a signal ended it, lessor ends by the same one (the shell shows 128+N).\n"
        "  124  the wait is over (--wait, --no-wait)\n"
        "  125  lessor itself: refused, or used wrongly\n"
        "  126  the command cannot be run      127  there is no such command\n"
        "   69  lessord does not answer (after 60 s; see --if-down and LESSOR_IF_DOWN)";

struct terminal {
        bool known;
        struct termios modes;
};

/* ---- options ---- */

static int read_options(const struct verb *verb, int argc, char **argv, struct ask *ask, char ***ret_command)
{
        struct options o;
        struct error err = { 0 };

        if (ask_init(ask, &err) < 0)
                return verb_usage_error(verb, "%s", err.msg);
        options_init(&o, verb, argc, argv);
        o.operands_end_it = true;
        for (;;) {
                int what = options_next(&o);
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_OWN;
                if (what == OPTIONS_END)
                        break;
                if (ask_option(ask, option_name(&o, what), o.value, &err) < 0)
                        return verb_usage_error(verb, "%s", err.msg);
        }
        if (ask_check(ask, &err) < 0)
                return verb_usage_error(verb, "%s", err.msg);
        if (o.at >= argc)
                return verb_usage_error(verb, "which command? lessor run --vram 12G -- COMMAND");
        *ret_command = argv + o.at;
        ask->pid = (uint64_t) getpid();
        ask->collects_itself = true;
        if (ask->consumer[0] == '\0')
                (void) consumer_of_command(*ret_command, ask->consumer);
        return OBTAINED;
}

/* ---- the command can be found: known before anybody waits for it ---- */

static int cannot_run(const char *name, int code)
{
        char shown[128];
        (void) fprintf(stderr, "lessor run: %s: %s\n", text_escape(name, strlen(name), shown, sizeof(shown)),
                       code == ENOENT ? "no such command" : strerrordesc_np(code));
        return code == ENOENT || code == ENOTDIR ? LESSOR_EXIT_NOT_FOUND : LESSOR_EXIT_CANNOT_RUN;
}

static int try_file(const char *path)
{
        struct stat st;
        if (stat(path, &st) < 0)
                return errno;
        if (S_ISDIR(st.st_mode))
                return EISDIR;
        return access(path, X_OK) < 0 ? errno : 0;
}

/* 0, or the errno execvp would end with. */
static int find_command(const char *name)
{
        const char *path = getenv("PATH");
        int found = ENOENT;
        if (name[0] == '\0')
                return ENOENT;
        if (strchr(name, '/'))
                return try_file(name);
        for (path = path ? path : "/bin:/usr/bin";; path++) {
                char file[4096];
                size_t n = strcspn(path, ":");
                int len = snprintf(file, sizeof(file), "%.*s/%s", n > 0 ? (int) n : 1, n > 0 ? path : ".", name);
                int code = len > 0 && (size_t) len < sizeof(file) ? try_file(file) : ENOENT;
                if (code == 0)
                        return 0;
                if (code == EACCES)
                        found = EACCES;
                path += n;
                if (*path == '\0')
                        return found;
        }
}

/* ---- one run ---- */

/* What workers carry with them, wherever they go. */
static void set_token(const struct obtain *o)
{
        uint64_t bits[2] = { 0 };
        char token[64];
        (void) !getrandom(bits, sizeof(bits), 0);
        (void) snprintf(token, sizeof(token), "%s-%016" PRIx64 "%016" PRIx64, o->id, bits[0], bits[1]);
        (void) setenv("LESSOR_LEASE", o->id, 1);
        (void) setenv("LESSOR_TOKEN", token, 1);
}

/* Asked, waited, started up to the barrier, activated. OBTAINED, OBTAIN_WITHOUT or an exit code. */
static int make_ready(struct obtain *o, struct child *child, char **command)
{
        for (;;) {
                struct error err = { 0 };
                int code = obtain_lease(o);
                if (code != OBTAINED)
                        return code;
                code = cards_set_visible(o);
                if (code != OBTAINED) {
                        obtain_release(o);
                        return code == OBTAIN_WITHOUT ? LESSOR_EXIT_AWAY : code;
                }
                set_token(o);
                if (child_prepare(child, o->signals, command, o->id, &err) < 0) {
                        (void) fprintf(stderr, "lessor run: %s\n", err.msg);
                        obtain_release(o);
                        return LESSOR_EXIT_OWN;
                }
                code = obtain_activate(o, (uint64_t) child->pid, child->tree.cgroup_id);
                if (code == OBTAINED)
                        return code;
                child_abandon(child);
                if (code != OBTAIN_AGAIN) {
                        obtain_release(o);
                        return code;
                }
        }
}

static void say_granted(struct obtain *o)
{
        char size[SIZE_TEXT_MAX], waited[DURATION_TEXT_MAX], device[128], more[48] = "";
        if (o->n_devices > 1)
                (void) snprintf(more, sizeof(more), " and on each of %d more", o->n_devices - 1);
        if (o->waited)
                progress_say(&o->progress, "%s has %s on %s%s after %s", o->id, size_text(o->bytes, size),
                             text_escape(o->device, strlen(o->device), device, sizeof(device)), more,
                             duration_text(clock_now_ms() - o->asked_ms, waited));
}

/*
 * lessord knows workers by their memory on a device. One that has none yet would be nobody when we are gone: it is named, as
 * what the lease is for from now on. Not where what is left is to be ended, which begins when the command is gone.
 */
static void name_worker(const struct obtain *o, const struct child *child)
{
        pid_t worker = o->ask->kill_left ? 0 : tree_any(&child->tree);

        if (worker > 0)
                (void) lessor_lease_activate(o->lease, (int) worker, child->tree.cgroup_id, NULL);
}

/* Workers that outlive the command keep the lease: it is theirs now, and ends with the last of them. */
static bool leaves_workers(struct obtain *o, const struct child *child)
{
        pid_t first;
        char who[80] = "";
        uint64_t until_ms = clock_now_ms() + LEAVING_MS;
        size_t n = tree_count(&child->tree, &first);
        while (n > 0 && clock_now_ms() < until_ms) { /* a Ctrl-C ends them all, but not all at once */
                (void) poll(NULL, 0, LEAVING_LOOK_MS);
                n = tree_count(&child->tree, &first);
        }
        if (n == 0)
                return false;
        name_worker(o, child);
        if (first > 0)
                (void) snprintf(who, sizeof(who), " (%zu, pid %d%s)", n, (int) first, n > 1 ? " and others" : "");
        progress_say(
                &o->progress,
                "the command ended, but processes it started are still alive%s: %s goes on, as orphaned, until they "
                "end",
                who, o->id);
        return true;
}

/* ---- ended for others, and started again ---- */

/* How the terminal was when the command was started: one that was ended in the middle leaves it as it needed it. */
static void keep_terminal(struct terminal *t)
{
        t->known = tcgetattr(STDIN_FILENO, &t->modes) == 0 && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* @ended: the command, which may have led a group of its own. A shell that has the terminal meanwhile keeps it. */
static void take_terminal_back(const struct terminal *t, pid_t ended)
{
        pid_t foreground = t->known ? tcgetpgrp(STDIN_FILENO) : -1;

        if (foreground == ended && ended > 0)
                (void) tcsetpgrp(STDIN_FILENO, getpgrp());
        else if (foreground != getpgrp())
                return;
        (void) tcsetattr(STDIN_FILENO, TCSADRAIN, &t->modes);
}

static bool stops_a_job(uint32_t signal_number)
{
        return signal_number == SIGTSTP || signal_number == SIGTTIN || signal_number == SIGTTOU;
}

/* Nothing runs: a signal is ours. Returns only where that goes on. */
static void take_signal(struct obtain *o, struct watch *watch, const struct signalfd_siginfo *info)
{
        uint32_t n = info->ssi_signo;

        if (stops_a_job(n))
                signals_stop_by((int) n);
        if (n == SIGINT && !watch->yield.explained) {
                yield_explain(&watch->yield);
                return;
        }
        if (n != SIGINT && n != SIGTERM && n != SIGHUP && n != SIGQUIT)
                return;
        obtain_release(o);
        signals_die_by((int) n);
}

/* The command is not there. OBTAINED: it may be started again; OBTAIN_AGAIN: its lease has to be asked for anew; else an exit
 * code. */
static int stay_away(struct obtain *o, struct watch *watch)
{
        while (!watch->yield.may_start) {
                struct pollfd fds[1 + WATCH_FDS] = { { .fd = o->signals->fd, .events = POLLIN } };
                struct signalfd_siginfo info;
                int timeout_ms = -1;
                if (watch->over)
                        return watch->books_new ? OBTAIN_AGAIN : LESSOR_EXIT_OWN;
                nfds_t n = 1 + watch_wants(watch, fds + 1, &timeout_ms);
                (void) poll(fds, n, timeout_ms);
                while (waitpid(-1, NULL, WNOHANG) > 0)
                        ; /* what its tree left to us */
                while (signals_next(o->signals, &info))
                        take_signal(o, watch, &info);
                watch_go_on(watch);
        }
        return OBTAINED;
}

/* The same command under the same lease: in the environment, folder and limits that this process still has. */
static int start_again(struct obtain *o, struct child *child, char **command)
{
        struct error err = { 0 };

        if (child_prepare(child, o->signals, command, o->id, &err) < 0) {
                (void) fprintf(stderr, "lessor run: %s\n", err.msg);
                obtain_release(o);
                return LESSOR_EXIT_OWN;
        }
        int code = obtain_activate(o, (uint64_t) child->pid, child->tree.cgroup_id);
        if (code != OBTAINED)
                child_abandon(child);
        return code;
}

static int return_to_work(struct obtain *o, struct child *child, struct watch *watch, char **command)
{
        int code = stay_away(o, watch);

        child_fini(child);
        if (code == OBTAINED || code == OBTAIN_AGAIN)
                signals_take_few(o->signals); /* until it runs, a signal is for the wait, and Ctrl-Z stops it */
        if (code == OBTAINED)
                code = start_again(o, child, command);
        if (code == OBTAIN_AGAIN) {
                watch_fini(watch);
                code = make_ready(o, child, command);
                if (code == OBTAINED)
                        watch_init(watch, o, child);
        }
        return code == OBTAIN_WITHOUT ? LESSOR_EXIT_AWAY : code;
}

/*
 * Until the command ends, for good. What becomes of its lease meanwhile is told, and never at its cost: a stderr that nobody
 * reads any more is no reason to end, and none to wait. OBTAINED and its wait status, or an exit code.
 */
static int stand_beside(struct obtain *o, struct child *child, char **command, int *ret_status)
{
        struct terminal terminal;
        struct watch watch;
        int code = OBTAINED;

        (void) signal(SIGPIPE, SIG_IGN);
        keep_terminal(&terminal);
        watch_init(&watch, o, child);
        for (;;) {
                *ret_status = child_wait(child, o->signals, &watch);
                if (!yield_child_ended(&watch.yield))
                        break;
                take_terminal_back(&terminal, child->pid);
                code = return_to_work(o, child, &watch, command);
                if (code != OBTAINED)
                        break;
                signals_take_all(o->signals);
                int r = child_go(child);
                if (r < 0) {
                        obtain_release(o);
                        (void) child_wait(child, o->signals, NULL);
                        code = cannot_run(command[0], -r);
                        break;
                }
                yield_started(&watch.yield);
        }
        watch_fini(&watch);
        return code;
}

/* Not by being told to end, which is how a server ends. */
static bool failed(int status)
{
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;

        return code != 0 && code != 128 + SIGINT && code != 128 + SIGTERM;
}

static int run_under_lease(struct obtain *o, struct child *child, char **command)
{
        int status = 0;

        say_granted(o);
        signals_take_all(o->signals);
        int r = child_go(child);
        if (r < 0) {
                (void) child_wait(child, o->signals, NULL);
                obtain_release(o);
                child_fini(child);
                return cannot_run(command[0], -r);
        }
        int code = stand_beside(o, child, command, &status);
        if (code != OBTAINED) {
                child_fini(child);
                return code;
        }
        if (failed(status))
                lessor_lease_set_failed(o->lease);
        /* One that was killed gave nothing back: its lease ends with us, and `lessor why` tells it so. */
        if (!leaves_workers(o, child) && !WIFSIGNALED(status))
                obtain_release(o);
        child_fini(child);
        if (WIFSIGNALED(status))
                signals_die_by(WTERMSIG(status));
        return WEXITSTATUS(status);
}

static int run_without_lease(const struct signals *signals, char **command)
{
        (void) fprintf(stderr, "lessor run: lessord does not answer: running without a lease\n");
        (void) unsetenv("LESSOR_LEASE");
        (void) unsetenv("LESSOR_TOKEN");
        signals_give_back(signals);
        (void) execvp(command[0], command);
        return cannot_run(command[0], errno);
}

int verb_run_main(const struct verb *verb, int argc, char **argv)
{
        struct ask ask;
        struct obtain o;
        struct signals signals;
        struct child child;
        char **command = NULL;

        int code = read_options(verb, argc, argv, &ask, &command);
        if (code != OBTAINED)
                return code;
        int cause = find_command(command[0]);
        if (cause != 0)
                return cannot_run(command[0], cause);
        if (signals_init(&signals) < 0)
                return verb_usage_error(verb, "cannot watch signals");
        code = obtain_init(&o, &ask, &signals, verb->name);
        if (code == OBTAINED && ask.booking[0] == '\0')
                code = cards_apply_constraint(&o, &ask);
        if (code == OBTAINED)
                code = make_ready(&o, &child, command);
        if (code == OBTAINED)
                code = run_under_lease(&o, &child, command);
        obtain_fini(&o);
        return code == OBTAIN_WITHOUT ? run_without_lease(&signals, command) : code;
}
