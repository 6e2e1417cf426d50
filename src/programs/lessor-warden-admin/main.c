/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lessor-warden-admin - keeps the gate (docs/decisions/0009): has the kernel refuse the device to processes of configured cgroups that
 * have no lease. A program of its own because that takes rights which the hands have no use for; started only where it is wanted.
 */
#include <errno.h>
#include <getopt.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/confine.h"
#include "base/log.h"
#include "base/number.h"
#include "base/pidfd.h"
#include "base/seqpacket.h"
#include "programs/lessor-warden-admin/serve.h"

enum { EXIT_USAGE = 2, EXIT_REFUSED = 78, NO_NUMBER = UINT32_MAX };

struct options {
        uint32_t brain_uid; /* NO_NUMBER = not given */
        const char *socket, *config, *sessions;
};

static void usage(FILE *out)
{
        (void) fputs("Usage: lessor-warden-admin [--socket PATH] [--config FILE] [--brain-uid N]\n"
                     "\n"
                     "Keeps the gate: processes of the cgroups that [gate] of lessord.conf names open the device only "
                     "under a\n"
                     "lease. Started as root, by systemd or by an administrator, and only where that is wanted.\n"
                     "\n"
                     "  --socket PATH      listen here (/run/lessor/warden-admin.sock); systemd's socket goes first\n"
                     "  --config FILE      what may be gated (/etc/lessor/lessord.conf)\n"
                     "  --brain-uid N      lessord's user (that of the user \"lessor\")\n"
                     "  --sessions DIR     what logind knows of logins (/run/systemd/sessions)\n"
                     "  --help, --version  print and exit\n"
                     "\n"
                     "When it ends, everybody passes. Exit status: 1 failed, 2 wrong usage, 78 refused to start.\n",
                     out);
}

static int parse_options(int argc, char **argv, struct options *o)
{
        enum { SOCKET = 256, CONFIG, BRAIN_UID, SESSIONS, HELP, VERSION };
        static const struct option options[] = {
                { "socket", required_argument, NULL, SOCKET },
                { "config", required_argument, NULL, CONFIG },
                { "brain-uid", required_argument, NULL, BRAIN_UID },
                { "sessions", required_argument, NULL, SESSIONS },
                { "help", no_argument, NULL, HELP },
                { "version", no_argument, NULL, VERSION },
                { NULL, 0, NULL, 0 },
        };
        uint64_t v;
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
                switch (c) {
                case SOCKET:
                        o->socket = optarg;
                        break;
                case CONFIG:
                        o->config = optarg;
                        break;
                case SESSIONS:
                        o->sessions = optarg;
                        break;
                case BRAIN_UID:
                        if (parse_u64("--brain-uid", optarg, 0, UINT32_MAX - 1, &v, NULL) < 0)
                                return -EINVAL;
                        o->brain_uid = (uint32_t) v;
                        break;
                case HELP:
                        usage(stdout);
                        exit(EXIT_SUCCESS);
                case VERSION:
                        (void) puts("lessor-warden-admin " LESSOR_WARDEN_ADMIN_VERSION);
                        exit(EXIT_SUCCESS);
                default:
                        return -EINVAL;
                }
        }
        return optind == argc ? 0 : -EINVAL;
}

static int find_brain(struct options *o, struct error *err)
{
        if (o->brain_uid != NO_NUMBER)
                return 0;
        const struct passwd *user = getpwnam("lessor");
        if (!user)
                return error_set(err, ENOENT,
                                 "there is no user \"lessor\", as whom lessord runs; make it, or name it by "
                                 "--brain-uid");
        o->brain_uid = user->pw_uid;
        return 0;
}

/*
 * CAP_BPF to load the program, CAP_NET_ADMIN because the kernel wants it for programs of this kind, CAP_DAC_READ_SEARCH to open a
 * cgroup by its number and to see into the folders of other users' managers.
 */
static int give_up_privileges(struct error *err)
{
        static const int kept[] = { CAP_BPF, CAP_NET_ADMIN, CAP_DAC_READ_SEARCH };
        /* clang-format off */
        static const char *const calls[] = {
                "accept4", "bpf", "brk", "clock_gettime", "close", "dup", "exit", "exit_group", "fcntl", "fstat", "fstatfs",
                "futex", "getdents64", "getpid", "getsockopt", "gettid", "inotify_add_watch", "inotify_init1",
                "inotify_rm_watch", "lseek", "madvise", "mmap", "mprotect", "munmap", "newfstatat", "open",
                "open_by_handle_at", "openat", "pidfd_open", "poll", "ppoll", "pread64", "read", "readlink", "readlinkat",
                "recvfrom", "restart_syscall", "rseq", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sendto",
                "set_robust_list", "stat", "statx", "write", "writev", NULL
        };
        /* clang-format on */
        int r = confine_no_core(err);

        if (r == 0)
                r = confine_capabilities(kept, sizeof(kept) / sizeof(kept[0]), err);
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
        int r = geteuid() == 0 ? pidfd_check_usable(err)
                               : error_set(err, EPERM, "the gate is the kernel's: this has to be started as root");

        if (r == 0)
                r = find_brain(o, err);
        if (r < 0)
                return r;
        s->brain_uid = o->brain_uid;
        s->listener = seqpacket_of_systemd();
        r = s->listener >= 0 ? 0 : seqpacket_listen(o->socket, o->brain_uid, &s->listener, err);
        if (r == 0)
                r = give_up_privileges(err);
        if (r == 0) /* with the rights that are left, so that what they do not suffice for is known at once */
                keeper_init(&s->keeper, o->config, o->sessions);
        return r;
}

int main(int argc, char **argv)
{
        static struct serve serve = { .peer = -1, .listener = -1, .program = LESSOR_WARDEN_ADMIN_VERSION };
        static struct options options = { .brain_uid = NO_NUMBER,
                                          .socket = "/run/lessor/warden-admin.sock",
                                          .config = "/etc/lessor/lessord.conf",
                                          .sessions = "/run/systemd/sessions" };
        struct error err = { 0 };

        log_init("lessor-warden-admin", LOG_LEVEL_INFO);
        if (parse_options(argc, argv, &options) < 0) {
                usage(stderr);
                return EXIT_USAGE;
        }
        (void) signal(SIGPIPE, SIG_IGN);
        (void) umask(0077);
        if (start(&options, &serve, &err) < 0) {
                log_error("error=\"%s\"", err.msg);
                return err.code == EPERM || err.code == EINVAL || err.code == ENOENT ? EXIT_REFUSED : EXIT_FAILURE;
        }
        log_info("event=ready socket=%s", options.socket);
        return serve_run(&serve) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
