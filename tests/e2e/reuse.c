/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reuse ROUNDS [FILE]: processes whose numbers are given out again on purpose (clone3 with set_tid), and what senses/descent.h says of the
 * ancestors of those that live. Without FILE in this pid namespace, by process events; with FILE in one of its own, by sessions and
 * the process accounting that is written to FILE.
 *
 * A round: this program makes parent, which makes middle, which makes worker. Parent and middle end, in any order, and their numbers are
 * given to others, who have another ancestry. Then the worker and the others are asked about. Prints {"rounds":…}; a step that leads to
 * anybody else than a true ancestor is "wrong". After a minute it has played enough of them. Exit status: 0 done, 77 cannot be done here (stderr says why), 1 broken.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/number.h"
#include "senses/descent.h"

enum {
        PARENT,
        MIDDLE,
        WORKER,
        OTHER,
        TAKER,
        N_ROLES,
        EXIT_SKIP = 77,
        WAIT_MS = 20000,
        ABOVE_MAX = 64,
        ENOUGH_MS = 60000
};

static struct {
        uint32_t pid[N_ROLES];                 /* the numbers that are given out again and again */
        uint32_t taken;                        /* the one that the taker has: the parent's or the middle's */
        int go[N_ROLES][2];                    /* a byte: end */
        int ready[2];                          /* a byte: this role lives, and waits */
        bool session[N_ROLES];                 /* it begins one */
        struct eyes_ancestor true_of[N_ROLES]; /* who they are; pid 0 = not in this round */
        struct eyes_ancestor above[ABOVE_MAX]; /* this program and its own ancestors */
        size_t n_above;
        uint64_t n_rounds, n_steps, n_wrong, n_middle, n_parent;
        uint32_t seed;
} t;
static struct descent descent;
static struct process_source source;

static _Noreturn void die(int status, const char *what)
{
        (void) fprintf(stderr, "reuse: %s: %s\n", what, strerror(errno));
        exit(status);
}

static uint32_t some(uint32_t n)
{
        t.seed = t.seed * 1664525 + 1013904223;
        return (t.seed >> 8) % n;
}

/* As fork(2), with that number. The number of one that just ended is taken for some moments. */
static pid_t fork_as(uint32_t pid)
{
        pid_t tid = (pid_t) pid;
        struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (uint64_t) (uintptr_t) &tid, .set_tid_size = 1 };
        uint64_t give_up_ms = clock_now_ms() + WAIT_MS;
        long r;

        do {
                r = syscall(SYS_clone3, &args, sizeof(args));
                if (r < 0 && errno == EEXIST)
                        (void) sched_yield();
        } while (r < 0 && errno == EEXIST && clock_now_ms() < give_up_ms);
        return (pid_t) r;
}

static _Noreturn void wait_for_the_end(int role)
{
        char byte = 0;

        for (int i = 0; i < N_ROLES; i++)
                (void) close(t.go[i][1]); /* so that the end of this program is theirs, too */
        (void) !write(t.ready[1], &byte, 1);
        (void) !read(t.go[role][0], &byte, 1);
        _exit(0);
}

static _Noreturn void live(int role)
{
        for (bool made = true; made;) {
                if (t.session[role])
                        (void) setsid();
                if (role == WORKER || role == TAKER)
                        break;
                int child = role + 1;
                pid_t r = fork_as(child == TAKER ? t.taken : t.pid[child]);
                if (r < 0)
                        die(errno == EEXIST ? EXIT_SKIP : 1, "clone3, a number that is somebody else's");
                made = r == 0;
                role = made ? child : role;
        }
        wait_for_the_end(role);
}

static void begin(int role)
{
        pid_t r = fork_as(t.pid[role]);
        if (r == 0)
                live(role);
        if (r < 0)
                die(errno == EPERM || errno == EINVAL || errno == ENOSYS || errno == EEXIST ? EXIT_SKIP : 1,
                    "clone3 with set_tid");
}

/* Who begins a session, and whose number is given out again: that of a session is not, while somebody lives in it. */
static void choose(void)
{
        for (int role = PARENT; role <= WORKER; role++)
                t.session[role] = some(2) == 0;
        bool middle = !t.session[MIDDLE] || t.session[WORKER];
        bool parent = !t.session[PARENT] || t.session[MIDDLE] || t.session[WORKER];
        t.taken = t.pid[middle && (!parent || some(2)) ? MIDDLE : PARENT];
}

static void await_ready(int n)
{
        struct pollfd p = { .fd = t.ready[0], .events = POLLIN };
        char byte;

        for (int i = 0; i < n; i++) {
                if (poll(&p, 1, 2 * WAIT_MS) != 1) { /* one of them found its number taken, and said so */
                        errno = EEXIST;
                        die(EXIT_SKIP, "not all of them came");
                }
                if (read(t.ready[0], &byte, 1) != 1)
                        die(1, "ready");
        }
}

static void note(int role, uint32_t pid)
{
        uint64_t ticks;

        t.true_of[role] = (struct eyes_ancestor){ 0 };
        if (process_start_ticks(&source, pid, &ticks) == 0)
                t.true_of[role] = (struct eyes_ancestor){ .pid = pid, .start_ticks = ticks };
}

static void end(int role)
{
        int pidfd = -1;
        char byte = 0;

        if (t.true_of[role].pid == 0 || process_open_pidfd(t.true_of[role].pid, &pidfd) < 0)
                return;
        (void) !write(t.go[role][1], &byte, 1);
        struct pollfd p = { .fd = pidfd, .events = POLLIN };
        if (poll(&p, 1, WAIT_MS) != 1)
                die(1, "it does not end");
        (void) close(pidfd);
}

/* ---- what is said of them ---- */

static bool is(const struct eyes_ancestor *said, const struct eyes_ancestor *who)
{
        return said->pid == who->pid && who->start_ticks >= said->start_ticks &&
               who->start_ticks - said->start_ticks <= said->slack_ticks;
}

static void check(int role, const int *roles, size_t n_roles)
{
        struct eyes_process facts;

        if (t.true_of[role].pid == 0 || process_identify(&source, t.true_of[role].pid, &facts, NULL, NULL) < 0)
                return;
        descent_trace(&descent, &facts, clock_now_ms());
        for (uint32_t i = 0; i < facts.n_ancestors; i++) {
                const struct eyes_ancestor *said = &facts.ancestors[i];
                bool right = false;
                for (size_t k = 0; k < n_roles && !right; k++) {
                        right = t.true_of[roles[k]].pid != 0 && is(said, &t.true_of[roles[k]]);
                        t.n_middle += right && role == WORKER && roles[k] == MIDDLE;
                        t.n_parent += right && role == WORKER && roles[k] == PARENT;
                }
                for (size_t k = 0; k < t.n_above && !right; k++)
                        right = is(said, &t.above[k]);
                t.n_steps++;
                t.n_wrong += !right;
                if (!right)
                        (void) fprintf(stderr,
                                       "round %llu: pid %u, started %llu (+%u), is no ancestor of %u (step %u, link "
                                       "%u; parent %u/%llu "
                                       "middle %u/%llu worker %u/%llu other %u/%llu)\n",
                                       (unsigned long long) t.n_rounds, said->pid,
                                       (unsigned long long) said->start_ticks, said->slack_ticks, facts.pid, i,
                                       said->link, t.true_of[0].pid, (unsigned long long) t.true_of[0].start_ticks,
                                       t.true_of[1].pid, (unsigned long long) t.true_of[1].start_ticks,
                                       t.true_of[2].pid, (unsigned long long) t.true_of[2].start_ticks,
                                       t.true_of[3].pid, (unsigned long long) t.true_of[3].start_ticks);
        }
}

static void round_of_all(void)
{
        memset(t.true_of, 0, sizeof(t.true_of));
        choose();
        begin(PARENT);
        await_ready(3);
        note(PARENT, t.pid[PARENT]);
        note(MIDDLE, t.pid[MIDDLE]);
        note(WORKER, t.pid[WORKER]);
        if (some(2))
                descent_turn(&descent, clock_now_ms());
        int first = (int) some(2);
        end(first);
        if (some(2))
                descent_turn(&descent, clock_now_ms());
        end(1 - first);
        begin(OTHER);
        await_ready(2);
        note(OTHER, t.pid[OTHER]);
        note(TAKER, t.taken);
        check(WORKER, (const int[]){ MIDDLE, PARENT }, 2);
        check(TAKER, (const int[]){ OTHER }, 1);
        check(OTHER, NULL, 0);
        end(WORKER);
        end(TAKER);
        end(OTHER);
        t.n_rounds++;
}

/* ---- where it happens ---- */

static void enter_own_namespace(const char *file)
{
        if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
                die(EXIT_SKIP, "a pid namespace");
        pid_t pid = fork();
        if (pid != 0) {
                int status = 0;
                if (pid < 0 || waitpid(pid, &status, 0) < 0)
                        die(1, "fork");
                exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
        }
        if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("proc", "/proc", "proc", 0, NULL) < 0)
                die(EXIT_SKIP, "/proc of a pid namespace");
        int fd = open(file, O_RDONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0)
                die(1, file);
        if (acct(file) < 0)
                die(EXIT_SKIP, "process accounting");
        descent_account(&descent, fd, false);
}

static void note_above(void)
{
        struct eyes_process facts;

        for (uint32_t pid = (uint32_t) getpid(); pid != 0 && t.n_above < ABOVE_MAX; pid = facts.ppid) {
                if (process_identify(&source, pid, &facts, NULL, NULL) < 0)
                        break;
                t.above[t.n_above++] = (struct eyes_ancestor){ .pid = pid, .start_ticks = facts.start_ticks };
        }
        /* Who began its session, and is above it no more by what the kernel says. */
        if (process_identify(&source, (uint32_t) getpid(), &facts, NULL, NULL) < 0)
                die(1, "who am I");
        descent_trace(&descent, &facts, clock_now_ms());
        for (uint32_t i = 0; i < facts.n_ancestors && t.n_above < ABOVE_MAX; i++)
                t.above[t.n_above++] = facts.ancestors[i];
}

/* The highest there are: the last that the kernel gives out by itself. Others of this program have others. */
static void choose_numbers(void)
{
        FILE *f = fopen("/proc/sys/kernel/pid_max", "re");
        char line[32] = "";
        uint64_t max = 0;

        if (!f || !fgets(line, sizeof(line), f))
                die(1, "pid_max");
        (void) fclose(f);
        line[strcspn(line, "\n")] = '\0';
        if (parse_u64("pid_max", line, 256, UINT32_MAX, &max, NULL) < 0)
                die(1, "pid_max");
        for (int i = 0; i < N_ROLES; i++)
                t.pid[i] = (uint32_t) max - 8 - 8 * ((uint32_t) getpid() % 16) + (uint32_t) i;
}

int main(int argc, char **argv)
{
        struct error err = { 0 };
        uint64_t rounds = 0;

        if (argc < 2 || parse_u64("ROUNDS", argv[1], 1, 1000000, &rounds, NULL) < 0)
                return 2;
        descent_listen(&descent);
        if (argc > 2)
                enter_own_namespace(argv[2]);
        else if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || descent.events_fd < 0)
                die(EXIT_SKIP, "process events");
        (void) signal(SIGCHLD, SIG_IGN); /* who ends is gone at once, its number too */
        (void) setsid();
        if (process_source_init(&source, "/proc", &err) < 0 || pipe2(t.ready, O_CLOEXEC) < 0)
                die(1, "begin");
        for (int i = 0; i < N_ROLES; i++)
                if (pipe2(t.go[i], O_CLOEXEC) < 0)
                        die(1, "pipe");
        choose_numbers();
        descent_begin(&descent, &source, clock_now_ms());
        note_above();
        t.seed = 1;
        uint64_t enough_ms = clock_now_ms() + ENOUGH_MS;
        while (t.n_rounds < rounds && (t.n_rounds == 0 || clock_now_ms() < enough_ms))
                round_of_all();
        (void) printf("{\"rounds\":%llu,\"steps\":%llu,\"wrong\":%llu,\"middle\":%llu,\"parent\":%llu}\n",
                      (unsigned long long) t.n_rounds, (unsigned long long) t.n_steps, (unsigned long long) t.n_wrong,
                      (unsigned long long) t.n_middle, (unsigned long long) t.n_parent);
        return t.n_wrong == 0 ? 0 : 1;
}
