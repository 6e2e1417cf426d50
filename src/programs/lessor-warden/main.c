/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lessor-warden - the hands of lessor: the only program of it that signals anybody, and the only one with privileges. It does what
 * lessord orders over one socket, after checking each order itself (hands/policy.h), and nothing else.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/confine.h"
#include "base/log.h"
#include "base/number.h"
#include "base/seqpacket.h"
#include "hands/settings.h"
#include "programs/lessor-warden/serve.h"

enum { EXIT_USAGE = 2, EXIT_VERSION = 3, EXIT_REFUSED = 78, NO_NUMBER = UINT32_MAX };

struct options {
        bool system;
        uint32_t fd, brain_uid; /* NO_NUMBER = not given */
        gid_t brain_gid;        /* -1 = not known */
        const char *dir, *parked, *socket, *config, *lacks;
        struct settings settings;
};

static void usage(FILE *out)
{
        (void) fputs(
                "Usage: lessor-warden --fd N --dir DIR [OPTION]...\n"
                "       lessor-warden --system [--dir DIR] [--socket PATH] [--config FILE] [--brain-uid N]\n"
                "\n"
                "Sends the signals and does the freezing that lessord decides on. lessord or systemd starts it, not a "
                "person.\n"
                "\n"
                "  --fd N             own session: a SOCK_SEQPACKET socket to lessord\n"
                "  --dir DIR          where it remembers what it does (own session: required)\n"
                "  --parked DIR       records of parked processes (/run/lessor/parked; own session: beside DIR)\n"
                "  --system           for the whole machine, as root\n"
                "  --socket PATH      listen here (/run/lessor/warden.sock); systemd's socket goes first\n"
                "  --config FILE      what it may do (/etc/lessor/warden.conf)\n"
                "  --brain-uid N      lessord's user (that of the user \"lessor\")\n"
                "  --help, --version  print and exit\n"
                "\n"
                "Exit status: 0 lessord closed the socket, 1 failed, 2 wrong usage, 3 lessord speaks another version,\n"
                "78 refused to start (configuration, folder).\n",
                out);
}

/* ---- options ---- */

enum { OF_SESSION = 1, OF_SYSTEM = 2, OF_BOTH = 3 };

struct row {
        const char *name;
        int of;
        const char **text; /* where it goes: a text, or a number */
        uint32_t *number;
        uint32_t min, max;
};

static int take_row(const struct row *row)
{
        struct error err = { 0 };
        uint64_t v;

        if (row->text) {
                *row->text = optarg;
                return 0;
        }
        int r = parse_u64(row->name, optarg, row->min, row->max, &v, &err);
        if (r < 0)
                log_error("error=\"--%s\"", err.msg);
        else
                *row->number = (uint32_t) v;
        return r;
}

/* What a session of one's own may change is refused beside --system: there root's file alone decides. */
static int parse_options(int argc, char **argv, struct options *o)
{
        const struct row rows[] = {
                { "fd", OF_SESSION, NULL, &o->fd, 0, 1 << 20 },
                { "dir", OF_BOTH, &o->dir },
                { "parked", OF_BOTH, &o->parked },
                { "socket", OF_SYSTEM, &o->socket },
                { "config", OF_SYSTEM, &o->config },
                { "brain-uid", OF_SYSTEM, NULL, &o->brain_uid, 0, UINT32_MAX - 2 },
                { "grace-min-ms", OF_SESSION, NULL, &o->settings.grace_min_ms, 1, SETTINGS_GRACE_MOST_MS },
                { "kill-wait-ms", OF_SESSION, NULL, &o->settings.kill_wait_ms, 1, SETTINGS_GRACE_MOST_MS },
                { "lacks", OF_SESSION, &o->lacks },
        };
        enum { ROWS_N = sizeof(rows) / sizeof(rows[0]), SYSTEM, HELP, VERSION };
        struct option options[ROWS_N + 4] = {
                { "system", no_argument, NULL, SYSTEM },
                { "help", no_argument, NULL, HELP },
                { "version", no_argument, NULL, VERSION },
        };
        int c, given_of = OF_BOTH;

        for (int i = 0; i < ROWS_N; i++)
                options[3 + i] = (struct option){ rows[i].name, required_argument, NULL, i };
        while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (c == HELP)
                        usage(stdout);
                else if (c == VERSION)
                        (void) printf("lessor-warden %s\n", LESSOR_WARDEN_VERSION);
                if (c == HELP || c == VERSION)
                        exit(EXIT_SUCCESS);
                if (c == SYSTEM)
                        o->system = true;
                else if (c >= ROWS_N || take_row(&rows[c]) < 0)
                        return -EINVAL;
                else
                        given_of &= rows[c].of;
        }
        if (optind < argc || (given_of & (o->system ? OF_SYSTEM : OF_SESSION)) == 0)
                return -EINVAL;
        o->settings.no_cgroup_kill = o->lacks && strcmp(o->lacks, "cgroup.kill") == 0;
        if (o->lacks && !o->settings.no_cgroup_kill)
                return -EINVAL;
        return o->system || (o->fd != NO_NUMBER && o->dir) ? 0 : -EINVAL;
}

/* ---- sockets ---- */

static int find_brain(struct options *o, struct error *err)
{
        const struct passwd *user = o->brain_uid != NO_NUMBER ? getpwuid(o->brain_uid) : getpwnam("lessor");

        if (!user && o->brain_uid == NO_NUMBER)
                return error_set(err, ENOENT,
                                 "there is no user \"lessor\", as whom lessord runs; make it, or name it by "
                                 "--brain-uid");
        o->brain_uid = user ? user->pw_uid : o->brain_uid;
        o->brain_gid = user ? user->pw_gid : (gid_t) -1;
        return 0;
}

static int open_socket(struct options *o, struct serve *s, int *ret_listener, struct error *err)
{
        *ret_listener = -1;
        s->brain_uid = getuid();
        if (!o->system)
                return seqpacket_is((int) o->fd, false)
                               ? 0
                               : error_set(err, EINVAL, "--fd %u is no SOCK_SEQPACKET socket", o->fd);
        s->brain_uid = o->brain_uid;
        *ret_listener = seqpacket_of_systemd();
        return *ret_listener >= 0 ? 0 : seqpacket_listen(o->socket, o->brain_uid, ret_listener, err);
}

/* ---- privileges ---- */

/*
 * CAP_KILL to signal other users' processes, CAP_SYS_PTRACE to see which program they run, CAP_DAC_OVERRIDE because the
 * files of a user's own cgroup are that user's. In one's own session nothing; root's own session must still see the
 * programs of root's processes, which have capabilities of their own.
 */
static int give_up_privileges(const struct options *o, struct error *err)
{
        static const int of_system[] = { CAP_KILL, CAP_SYS_PTRACE, CAP_DAC_OVERRIDE }, of_root[] = { CAP_SYS_PTRACE };
        /* clang-format off */
        static const char *const calls[] = {
                "accept4", "brk", "clock_gettime", "clone", "clone3", "close", "dup", "exit", "exit_group", "faccessat",
                "faccessat2", "fcntl", "fork", "fstat", "futex", "getdents64", "geteuid", "getpid",
                "getsockopt", "gettid", "getuid", "lseek", "madvise", "mmap", "mprotect", "munmap",
                "newfstatat", "open", "openat", "openat2", "pidfd_open", "pidfd_send_signal", "pipe2", "poll", "ppoll",
                "pread64", "pwrite64", "read", "readlinkat", "recvfrom", "restart_syscall", "rseq",
                "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sendto", "set_robust_list", "stat", "statx", "wait4",
                "waitid", "write", "writev", NULL
        };
        /* clang-format on */
        int r = confine_no_core(err);

        if (r == 0 && o->system)
                r = confine_capabilities(of_system, sizeof(of_system) / sizeof(of_system[0]), err);
        else if (r == 0)
                r = confine_capabilities(of_root, geteuid() == 0 ? 1 : 0, err);
        if (r < 0)
                return r;
#ifdef LESSOR_SANITIZED /* a sanitizer makes calls of its own when the program ends */
        (void) calls;
        return 0;
#else
        r = confine_allow(calls, CONFINE_REFUSE, err);
        if (r == -EOPNOTSUPP)
                log_warning("event=no-filter words=\"%s\"", err->msg);
        return r == -EOPNOTSUPP ? 0 : r;
#endif
}

static int start(struct options *o, struct serve *s, struct error *err)
{
        int listener = -1;
        int r = o->system ? settings_load(&o->settings, o->config, err) : 0;

        if (r == 0 && o->system)
                r = find_brain(o, err);
        const struct carry_where where = { o->dir, o->parked, o->brain_gid, o->system };
        if (r == 0) /* before the socket: a second one of us takes nothing from the first */
                r = carry_open(&s->carry, &o->settings, &where, err);
        if (r == 0)
                r = open_socket(o, s, &listener, err);
        if (r == 0)
                r = give_up_privileges(o, err);
        s->carry.listener = listener;
        return r;
}

int main(int argc, char **argv)
{
        static struct serve serve;
        static struct options options = { .fd = NO_NUMBER,
                                          .brain_uid = NO_NUMBER,
                                          .brain_gid = (gid_t) -1,
                                          .socket = "/run/lessor/warden.sock",
                                          .config = "/etc/lessor/warden.conf" };
        struct error err = { 0 };
        char beside[PATH_MAX + 16];

        log_init("lessor-warden", LOG_LEVEL_INFO);
        settings_own(&options.settings, getuid());
        if (parse_options(argc, argv, &options) < 0) {
                usage(stderr);
                return EXIT_USAGE;
        }
        if (options.system) {
                settings_system(&options.settings);
                options.dir = options.dir ? options.dir : "/run/lessor-warden";
                options.parked = options.parked ? options.parked : "/run/lessor/parked";
        } else {
                (void) snprintf(beside, sizeof(beside), "%s/../parked", options.dir);
                options.parked = options.parked ? options.parked : beside;
                (void) setsid(); /* the terminal's Ctrl-C is lessord's to answer */
        }
        (void) signal(SIGPIPE, SIG_IGN);
        (void) signal(SIGCHLD, SIG_DFL);
        (void) umask(0077);
        serve.program = LESSOR_WARDEN_VERSION;
        if (start(&options, &serve, &err) < 0) {
                log_error("error=\"%s\"", err.msg);
                return err.code == EPERM || err.code == EINVAL || err.code == ENOENT ? EXIT_REFUSED : EXIT_FAILURE;
        }
        log_info("event=ready mode=%s", options.system ? "system" : "session");
        if (!options.system && serve_take_peer(&serve, (int) options.fd) < 0)
                return EXIT_FAILURE;
        int r = serve_run(&serve);
        if (r == -EPROTONOSUPPORT)
                return EXIT_VERSION;
        return r == 0 || r == -EPIPE || r == -ECONNRESET ? EXIT_SUCCESS : EXIT_FAILURE;
}
