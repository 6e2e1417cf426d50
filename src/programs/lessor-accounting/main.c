/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lessor-accounting - has the kernel write down who ends and whose child it was, for lessor-eyes to read. A program of its own because
 * that takes a right which nothing else of lessor has; started only where it is wanted, and on while it runs.
 */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/confine.h"
#include "base/log.h"
#include "programs/lessor-accounting/accounting.h"

enum { EXIT_USAGE = 2, EXIT_REFUSED = 78 };

static void usage(FILE *out)
{
        (void) fputs(
                "Usage: lessor-accounting [--folder DIR] [--group NAME]\n"
                "\n"
                "Switches the kernel's process accounting on for lessord, which traces processes by it through\n"
                "parents that are gone. Started as root, by systemd or by an administrator, and only where that is\n"
                "wanted; when it ends, accounting is off.\n"
                "\n"
                "  --folder DIR       where the records lie (/run/lessor/accounting)\n"
                "  --group NAME       who may read them (lessor)\n"
                "  --help, --version  print and exit\n"
                "\n"
                "Exit status: 0 ended by SIGTERM or SIGINT, 1 failed, or another program took it over, 2 wrong usage,\n"
                "78 refused to start (not root, no such group, another program keeps it).\n",
                out);
}

static int parse_options(int argc, char **argv, struct accounting_options *o, const char **ret_group)
{
        enum { FOLDER = 256, GROUP, HELP, VERSION };
        static const struct option options[] = {
                { "folder", required_argument, NULL, FOLDER },
                { "group", required_argument, NULL, GROUP },
                { "help", no_argument, NULL, HELP },
                { "version", no_argument, NULL, VERSION },
                { NULL, 0, NULL, 0 },
        };
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
                switch (c) {
                case FOLDER:
                        o->folder = optarg;
                        break;
                case GROUP:
                        *ret_group = optarg;
                        break;
                case HELP:
                        usage(stdout);
                        exit(EXIT_SUCCESS);
                case VERSION:
                        (void) puts("lessor-accounting " LESSOR_ACCOUNTING_VERSION);
                        exit(EXIT_SUCCESS);
                default:
                        return -EINVAL;
                }
        }
        return optind == argc ? 0 : -EINVAL;
}

static int start(struct accounting_options *o, const char *group, struct accounting *ret, struct error *err)
{
        if (geteuid() != 0)
                return error_set(err, EPERM, "process accounting is the kernel's: this has to be started as root");
        const struct group *readers = getgrnam(group);
        if (!readers)
                return error_set(err, ENOENT,
                                 "there is no group \"%s\", in which lessord runs; make it, or name it by --group",
                                 group);
        o->readers = readers->gr_gid;
        return accounting_start(o, ret, err);
}

/* 0: we were asked to end, and it has ended. 1: it ended by itself, which it has said. */
static int wait_for_the_end(struct accounting *a, int signals)
{
        enum { SIGNALS, GONE };
        struct pollfd fds[] = { { .fd = signals, .events = POLLIN }, { .fd = a->gone, .events = POLLIN } };

        while (poll(fds, 2, -1) < 0 && errno == EINTR)
                ;
        if (fds[GONE].revents)
                return EXIT_FAILURE;
        (void) close(a->alive);
        while (poll(&fds[GONE], 1, -1) < 0 && errno == EINTR)
                ;
        return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
        struct accounting_options options = { .folder = "/run/lessor/accounting" };
        struct accounting accounting;
        const char *group = "lessor";
        struct error err = { 0 };
        sigset_t ends;

        log_init("lessor-accounting", LOG_LEVEL_INFO);
        if (parse_options(argc, argv, &options, &group) < 0) {
                usage(stderr);
                return EXIT_USAGE;
        }
        (void) umask(0077);
        (void) sigemptyset(&ends);
        (void) sigaddset(&ends, SIGTERM);
        (void) sigaddset(&ends, SIGINT);
        (void) sigprocmask(SIG_BLOCK, &ends, NULL);
        int signals = signalfd(-1, &ends, SFD_CLOEXEC);
        if (signals < 0) {
                log_error("error=\"signalfd: %m\"");
                return EXIT_FAILURE;
        }
        int r = start(&options, group, &accounting, &err);
        if (r < 0) {
                log_error("error=\"%s\"", err.msg);
                return r == -EPERM || r == -ENOENT || r == -EBUSY ? EXIT_REFUSED : EXIT_FAILURE;
        }
        r = confine_unprivileged(&err); /* what is left to do is to wait */
        if (r < 0 && r != -EOPNOTSUPP) {
                log_error("event=not-confined words=\"%s\"", err.msg);
                return EXIT_FAILURE;
        }
        log_info("event=ready folder=%s", options.folder);
        return wait_for_the_end(&accounting, signals);
}
