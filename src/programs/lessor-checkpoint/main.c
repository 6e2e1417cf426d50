/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lessor-checkpoint - forks the helpers that park and thaw processes. Started by lessor-warden (hands/checkpointer.h), which has
 * checked each order; it holds no policy of signals. It never loads the driver's library itself: a helper does, for one call,
 * and lives on when this program and the warden end.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cgroup2.h"
#include "base/cleanup.h"
#include "base/confine.h"
#include "base/log.h"
#include "hands/book.h"
#include "hands/checkpointer.h"
#include "hands/target.h"
#include "programs/lessor-checkpoint/own_order.h"
#include "wire/parked.h"

enum { EXIT_USAGE = 2, TIDY_MS = 10000, SOCK = CHECKPOINTER_SOCKET_FD };

static const char words[] = "lessor-warden starts this program; see lessor-warden(8).";

struct checkpointer {
        struct step_place place;
        bool anything; /* there may be records, or children to reap */
};

/* ---- privileges ---- */

/*
 * CAP_SYS_PTRACE for the driver's channel into other users' processes, CAP_KILL to stop and wake them, CAP_SYS_RESOURCE and
 * CAP_DAC_OVERRIDE to keep them from the OOM killer. In one's own session nothing; root's own session must see its programs.
 *
 * The filter forbids what a driver's library has no business with. It is not a list of what is allowed: nobody outside the
 * driver knows that list.
 */
static int give_up_privileges(bool system, struct error *err)
{
        static const int of_system[] = { CAP_KILL, CAP_SYS_PTRACE, CAP_DAC_OVERRIDE, CAP_SYS_RESOURCE };
        static const int of_root[] = { CAP_SYS_PTRACE };
        static const char *const never[] = { "execve",
                                             "execveat",
                                             "mount",
                                             "umount2",
                                             "pivot_root",
                                             "chroot",
                                             "move_mount",
                                             "open_tree",
                                             "fsopen",
                                             "setns",
                                             "unshare",
                                             "open_by_handle_at",
                                             "init_module",
                                             "finit_module",
                                             "delete_module",
                                             "kexec_load",
                                             "kexec_file_load",
                                             "reboot",
                                             "bpf",
                                             "swapon",
                                             "swapoff",
                                             "acct",
                                             "iopl",
                                             "ioperm",
                                             "add_key",
                                             "request_key",
                                             "keyctl",
                                             "clock_settime",
                                             "settimeofday",
                                             "sethostname",
                                             "setuid",
                                             "setgid",
                                             "setreuid",
                                             "setregid",
                                             "setresuid",
                                             "setresgid",
                                             "setfsuid",
                                             "setfsgid",
                                             "setgroups",
                                             "io_uring_setup",
                                             NULL };
        int r = confine_no_core(err);

        if (r == 0 && system)
                r = confine_capabilities(of_system, sizeof(of_system) / sizeof(of_system[0]), err);
        else if (r == 0)
                r = confine_capabilities(of_root, geteuid() == 0 ? 1 : 0, err);
        if (r < 0)
                return r;
        r = confine_deny(never, err);
        if (r == -EOPNOTSUPP)
                log_warning("event=no-filter words=\"%s\"", err->msg);
        return r == -EOPNOTSUPP ? 0 : r;
}

/* ---- helpers ---- */

/* In the child: no signal of a terminal or a service manager stops it halfway, and the warden's end is seen by who waits for it. */
static void be_quiet(void)
{
        sigset_t all;

        (void) sigfillset(&all);
        (void) sigprocmask(SIG_SETMASK, &all, NULL);
        (void) close(SOCK);
}

static struct warden_answer carry_out(const struct checkpointer *c, const struct warden_order *order,
                                      uint32_t *ret_state)
{
        bool parks = warden_verb_parks(order->verb);
        pid_t parent = getppid();
        struct warden_answer answer =
                parks ? step_run(&c->place, order, STEP_ORDERED) : own_order_prepare_end(&c->place, order);

        if (order->verb == WARDEN_HOLD && answer.result == WARDEN_DONE && getppid() != parent)
                own_order_let_go(&c->place, order->pid,
                                 order->start_ticks); /* they ended before there was a record of it */
        *ret_state = !parks && answer.result == WARDEN_DONE ? BOOK_PREPARED : BOOK_ENDED;
        return answer;
}

__attribute__((noreturn)) static void be_helper(struct checkpointer *c, uint32_t i, int go)
{
        struct book book = { .helpers_fd = CHECKPOINTER_BOOK_FD };
        struct book_slot *slot = &book.slots[i];
        char byte;

        be_quiet();
        if (read(go, &byte, 1) != 1)
                _exit(EXIT_FAILURE); /* the warden ended before the order was in the book: nothing was done */
        book_reread(&book, i);
        if (slot->state != BOOK_RUNNING || slot->helper_pid != (uint32_t) getpid())
                _exit(EXIT_FAILURE);
        slot->answer = carry_out(c, &slot->order, &slot->state);
        slot->answer.kept = true;
        _exit(book_store(&book, i) < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* Forks one that waits; it keeps its number until we know whether it may begin, because we do not reap in between. */
static int prepare(struct checkpointer *c, uint32_t slot)
{
        struct checkpointer_message next = { 0 };
        int go[2];

        int32_t answer = slot >= BOOK_HELPERS_MAX ? -EINVAL : pipe2(go, O_CLOEXEC) < 0 ? -errno : 0;
        if (answer < 0)
                return send(SOCK, &answer, sizeof(answer), MSG_NOSIGNAL) < 0 ? -errno : 0;
        auto_close int wait_end = go[0];
        auto_close int go_end = go[1];
        pid_t pid = fork();
        if (pid == 0) {
                closep(&go_end);
                be_helper(c, slot, take_fd(wait_end));
        }
        answer = pid < 0 ? -errno : pid;
        if (send(SOCK, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
                return -errno;
        if (pid < 0)
                return 0;
        if (recv(SOCK, &next, sizeof(next), 0) != sizeof(next))
                return -EPIPE;
        if (next.word == CHECKPOINTER_GO && next.slot == slot)
                (void) !write(go_end, "g", 1); /* fails only if it died: its pidfd says so */
        return 0;
}

static bool let_one_go(void *ctx, uint32_t pid, uint64_t start_ticks, const struct record *record, int error)
{
        struct checkpointer *c = ctx;

        /* Also one that is only about to be held: whoever locks it has the process until it is. */
        bool held = error == 0 && record->hold &&
                    (record->step == RECORD_HELD || record->step == RECORD_LOCKING || record->step == RECORD_UNLOCKING);
        if (!held || fork() != 0)
                return true;
        be_quiet();
        own_order_let_go(&c->place, pid, start_ticks);
        _exit(EXIT_SUCCESS);
}

/* ---- the records ---- */

static bool tidy_one(void *ctx, uint32_t pid, uint64_t start_ticks, const struct record *record, int error)
{
        struct checkpointer *c = ctx;
        struct target t;
        int pidfd, lock;

        c->anything = true;
        if (error == -ESTALE) {
                log_warning("event=record-of-another-boot pid=%" PRIu32 " step=%s", pid,
                            record_step_name(record->step));
                (void) parked_set_aside(c->place.parked, pid, start_ticks);
                return true;
        }
        target_open(pid, &t, &pidfd);
        closep(&pidfd);
        if (!t.gone && (!t.seen || t.start_ticks == start_ticks)) {
                if (error < 0)
                        log_error("event=record-damaged pid=%" PRIu32 " errno=%d", pid, -error);
                return true;
        }
        if (parked_lock(c->place.parked, pid, false, &lock, NULL) < 0)
                return true; /* its helper says so itself */
        log_info("event=record-of-the-dead pid=%" PRIu32 " step=%s", pid, record_step_name(record->step));
        (void) parked_remove(c->place.parked, pid, start_ticks);
        closep(&lock);
        return true;
}

static void tidy(struct checkpointer *c)
{
        c->anything = false;
        while (waitpid(-1, NULL, WNOHANG) > 0)
                ;
        c->anything = waitpid(-1, NULL, WNOHANG) == 0;
        (void) parked_each(c->place.parked, tidy_one, c);
}

/* ---- the loop ---- */

static int hear(struct checkpointer *c)
{
        struct checkpointer_message msg;
        ssize_t n = recv(SOCK, &msg, sizeof(msg), 0);

        if (n < 0 && errno == EINTR)
                return 0;
        if (n != sizeof(msg))
                return -EPIPE;
        c->anything = true;
        if (msg.word == CHECKPOINTER_PREPARE)
                return prepare(c, msg.slot);
        if (msg.word == CHECKPOINTER_LET_GO)
                (void) parked_each(c->place.parked, let_one_go, c);
        else
                return -EBADMSG;
        return 0;
}

static void run(struct checkpointer *c)
{
        struct pollfd p = { .fd = SOCK, .events = POLLIN };
        int r = 0;

        tidy(c);
        while (r == 0) {
                int n = poll(&p, 1, c->anything ? TIDY_MS : -1);
                if (n == 0)
                        tidy(c);
                else if (n > 0)
                        r = hear(c);
                else if (errno != EINTR)
                        r = -errno;
        }
        (void) parked_each(c->place.parked, let_one_go, c); /* the warden has ended, and nobody may know of them */
}

static int parse_options(int argc, char **argv, bool *ret_system)
{
        enum { SYSTEM, HELP, VERSION };
        static const struct option options[] = { { "system", no_argument, NULL, SYSTEM },
                                                 { "help", no_argument, NULL, HELP },
                                                 { "version", no_argument, NULL, VERSION },
                                                 { 0 } };
        int o;

        while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (o == HELP || o == VERSION) {
                        (void) puts(o == HELP ? words : "lessor-checkpoint " LESSOR_CHECKPOINT_VERSION);
                        exit(EXIT_SUCCESS);
                }
                if (o != SYSTEM)
                        return -EINVAL;
                *ret_system = true;
        }
        bool there = fcntl(CHECKPOINTER_SOCKET_FD, F_GETFD) >= 0 && fcntl(CHECKPOINTER_BOOK_FD, F_GETFD) >= 0 &&
                     fcntl(CHECKPOINTER_PARKED_FD, F_GETFD) >= 0;
        return optind == argc && there ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
        static struct checkpointer c;
        struct error err = { 0 };
        bool system = false;

        log_init("lessor-checkpoint", LOG_LEVEL_INFO);
        if (parse_options(argc, argv, &system) < 0) {
                (void) fprintf(stderr, "%s\n", words);
                return EXIT_USAGE;
        }
        (void) signal(SIGPIPE, SIG_IGN);
        (void) signal(SIGCHLD, SIG_DFL);
        if (give_up_privileges(system, &err) < 0) {
                log_error("error=\"%s\"", err.msg);
                return EXIT_FAILURE;
        }
        c.place = (struct step_place){ .parked = CHECKPOINTER_PARKED_FD, .cgroup_root = cgroup2_open_root() };
        run(&c);
        return EXIT_SUCCESS;
}
