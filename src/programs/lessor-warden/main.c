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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/confine.h"
#include "base/log.h"
#include "base/number.h"
#include "hands/settings.h"
#include "programs/lessor-warden/serve.h"

enum { EXIT_USAGE = 2, EXIT_VERSION = 3, EXIT_REFUSED = 78, SYSTEMD_FIRST_FD = 3 };

struct options {
        bool system;
        int fd; /* -1 = none given */
        const char *dir, *socket, *config;
        bool have_brain;
        uid_t brain_uid;
        struct settings settings;
};

static void usage(FILE *out)
{
        (void) fputs(
                "Usage: lessor-warden --fd N --dir DIR [--grace-min-ms N] [--kill-wait-ms N]\n"
                "       lessor-warden --system [--dir DIR] [--socket PATH] [--config FILE] [--brain-uid N]\n"
                "\n"
                "Sends the signals and does the freezing that lessord decides on. lessord or systemd starts it, not a "
                "person.\n"
                "\n"
                "  --fd N             own session: a SOCK_SEQPACKET socket to lessord\n"
                "  --dir DIR          where it remembers what it does (own session: required)\n"
                "  --grace-min-ms N   own session: from SIGTERM to SIGKILL (10000)\n"
                "  --kill-wait-ms N   own session: after each of three SIGKILLs (10000)\n"
                "  --lacks NAME       own session: act as on an old kernel (cgroup.kill)\n"
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

enum {
        OPT_FD = 1,
        OPT_DIR,
        OPT_SYSTEM,
        OPT_SOCKET,
        OPT_CONFIG,
        OPT_BRAIN,
        OPT_GRACE,
        OPT_KILL_WAIT,
        OPT_LACKS,
        OPT_HELP,
        OPT_VERSION
};

static int take_number(const char *name, uint64_t min, uint64_t max, uint64_t *ret)
{
        struct error err = { 0 };
        int r = parse_u64(name, optarg, min, max, ret, &err);

        if (r < 0)
                log_error("error=\"%s\"", err.msg);
        return r;
}

/* What only a test or a session of one's own may change is refused beside --system: there root's file alone decides. */
static int take_option(struct options *o, int c)
{
        uint64_t v = 0;
        int r = 0;

        switch (c) {
        case OPT_FD:
                r = take_number("--fd", 0, 1 << 20, &v);
                o->fd = (int) v;
                return r;
        case OPT_DIR:
                o->dir = optarg;
                return 0;
        case OPT_SYSTEM:
                o->system = true;
                return 0;
        case OPT_SOCKET:
                o->socket = optarg;
                return 0;
        case OPT_CONFIG:
                o->config = optarg;
                return 0;
        case OPT_BRAIN:
                r = take_number("--brain-uid", 0, UINT32_MAX - 2, &v);
                o->brain_uid = (uid_t) v;
                o->have_brain = true;
                return r;
        case OPT_GRACE:
                r = take_number("--grace-min-ms", 1, SETTINGS_GRACE_MOST_MS, &v);
                o->settings.grace_min_ms = (uint32_t) v;
                return r;
        case OPT_KILL_WAIT:
                r = take_number("--kill-wait-ms", 1, SETTINGS_GRACE_MOST_MS, &v);
                o->settings.kill_wait_ms = (uint32_t) v;
                return r;
        case OPT_LACKS:
                o->settings.no_cgroup_kill = strcmp(optarg, "cgroup.kill") == 0;
                return o->settings.no_cgroup_kill ? 0 : -EINVAL;
        case OPT_HELP:
                usage(stdout);
                exit(EXIT_SUCCESS);
        case OPT_VERSION:
                (void) printf("lessor-warden %s\n", LESSOR_WARDEN_VERSION);
                exit(EXIT_SUCCESS);
        default:
                return -EINVAL;
        }
}

static int parse_options(int argc, char **argv, struct options *o)
{
        static const struct option options[] = {
                { "fd", required_argument, NULL, OPT_FD },
                { "dir", required_argument, NULL, OPT_DIR },
                { "system", no_argument, NULL, OPT_SYSTEM },
                { "socket", required_argument, NULL, OPT_SOCKET },
                { "config", required_argument, NULL, OPT_CONFIG },
                { "brain-uid", required_argument, NULL, OPT_BRAIN },
                { "grace-min-ms", required_argument, NULL, OPT_GRACE },
                { "kill-wait-ms", required_argument, NULL, OPT_KILL_WAIT },
                { "lacks", required_argument, NULL, OPT_LACKS },
                { "help", no_argument, NULL, OPT_HELP },
                { "version", no_argument, NULL, OPT_VERSION },
                { 0 },
        };
        bool of_system = false, of_session = false;
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (take_option(o, c) < 0)
                        return -EINVAL;
                of_system |= c == OPT_SOCKET || c == OPT_CONFIG || c == OPT_BRAIN;
                of_session |= c == OPT_FD || c == OPT_GRACE || c == OPT_KILL_WAIT || c == OPT_LACKS;
        }
        if (optind < argc || (o->system ? of_session : of_system) || (!o->system && (o->fd < 0 || !o->dir)))
                return -EINVAL;
        return 0;
}

/* ---- sockets ---- */

static bool is_seqpacket(int fd, bool listening)
{
        int type = 0, accepts = 0;
        socklen_t n_type = sizeof(type), n_accepts = sizeof(accepts);

        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n_type) == 0 && type == SOCK_SEQPACKET &&
               getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &n_accepts) == 0 && (accepts != 0) == listening;
}

/* sd_listen_fds(3) for exactly one socket; -1 = systemd gave none. */
static int socket_of_systemd(void)
{
        const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
        uint64_t v;

        if (!pid || !n || parse_u64("LISTEN_PID", pid, 1, INT_MAX, &v, NULL) < 0 || (pid_t) v != getpid())
                return -1;
        return strcmp(n, "1") == 0 && is_seqpacket(SYSTEMD_FIRST_FD, true) ? SYSTEMD_FIRST_FD : -1;
}

/* Born 0600 and given to lessord's user; whoever else could connect is refused by uid (serve_take_peer). */
static int listen_at(const char *path, uid_t brain, int *ret_fd, struct error *err)
{
        struct sockaddr_un addr = { .sun_family = AF_UNIX };
        auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return error_errno(err, errno, "a socket");
        if (strlen(path) >= sizeof(addr.sun_path))
                return error_set(err, ENAMETOOLONG, "the socket's path %s is longer than %zu bytes", path,
                                 sizeof(addr.sun_path) - 1);
        (void) snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
        (void) unlink(path);
        mode_t before = umask(0177);
        int r = bind(fd, (struct sockaddr *) &addr, sizeof(addr));
        int code = errno;
        (void) umask(before);
        if (r < 0)
                return error_errno(err, code, "listening at %s", path);
        if (lchown(path, brain, (gid_t) -1) < 0 || listen(fd, 4) < 0)
                return error_errno(err, errno, "listening at %s", path);
        *ret_fd = take_fd(fd);
        return 0;
}

static int find_brain(struct options *o, struct error *err)
{
        if (o->have_brain)
                return 0;
        const struct passwd *user = getpwnam("lessor");
        if (!user)
                return error_set(err, ENOENT,
                                 "there is no user \"lessor\", as whom lessord runs; make it, or name it by "
                                 "--brain-uid");
        o->brain_uid = user->pw_uid;
        return 0;
}

static int open_socket(struct options *o, struct serve *s, int *ret_listener, struct error *err)
{
        *ret_listener = -1;
        s->brain_uid = getuid();
        if (!o->system)
                return is_seqpacket(o->fd, false)
                               ? 0
                               : error_set(err, EINVAL, "--fd %d is no SOCK_SEQPACKET socket", o->fd);
        int r = find_brain(o, err);
        if (r < 0)
                return r;
        s->brain_uid = o->brain_uid;
        *ret_listener = socket_of_systemd();
        return *ret_listener >= 0 ? 0 : listen_at(o->socket, o->brain_uid, ret_listener, err);
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
        static const char *const calls[] = { "accept4",
                                             "brk",
                                             "clock_gettime",
                                             "clone",
                                             "clone3",
                                             "close",
                                             "dup",
                                             "exit",
                                             "exit_group",
                                             "faccessat",
                                             "faccessat2",
                                             "fcntl",
                                             "fork",
                                             "fstat",
                                             "fstatfs",
                                             "ftruncate",
                                             "futex",
                                             "getdents64",
                                             "geteuid",
                                             "getpid",
                                             "getsockopt",
                                             "gettid",
                                             "getuid",
                                             "lseek",
                                             "madvise",
                                             "mkdir",
                                             "mkdirat",
                                             "mmap",
                                             "mprotect",
                                             "munmap",
                                             "newfstatat",
                                             "open",
                                             "openat",
                                             "openat2",
                                             "pidfd_open",
                                             "pidfd_send_signal",
                                             "pipe2",
                                             "poll",
                                             "ppoll",
                                             "pread64",
                                             "pwrite64",
                                             "read",
                                             "readlink",
                                             "readlinkat",
                                             "recvfrom",
                                             "restart_syscall",
                                             "rseq",
                                             "rt_sigaction",
                                             "rt_sigprocmask",
                                             "rt_sigreturn",
                                             "sendto",
                                             "set_robust_list",
                                             "stat",
                                             "statx",
                                             "wait4",
                                             "waitid",
                                             "write",
                                             "writev",
                                             NULL };
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

        if (r == 0)
                r = open_socket(o, s, &listener, err);
        if (r == 0)
                r = give_up_privileges(o, err);
        if (r == 0)
                r = carry_open(&s->carry, &o->settings, o->dir, err);
        s->carry.listener = listener;
        return r;
}

int main(int argc, char **argv)
{
        static struct serve serve;
        static struct options options = { .fd = -1,
                                          .socket = "/run/lessor/warden.sock",
                                          .config = "/etc/lessor/warden.conf" };
        struct error err = { 0 };

        log_init("lessor-warden", LOG_LEVEL_INFO);
        settings_own(&options.settings, getuid());
        if (parse_options(argc, argv, &options) < 0) {
                usage(stderr);
                return EXIT_USAGE;
        }
        if (options.system) {
                settings_system(&options.settings);
                options.dir = options.dir ? options.dir : "/run/lessor-warden";
        } else {
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
        if (!options.system && serve_take_peer(&serve, options.fd) < 0)
                return EXIT_FAILURE;
        int r = serve_run(&serve);
        if (r == -EPROTONOSUPPORT)
                return EXIT_VERSION;
        return r == 0 || r == -EPIPE || r == -ECONNRESET ? EXIT_SUCCESS : EXIT_FAILURE;
}
