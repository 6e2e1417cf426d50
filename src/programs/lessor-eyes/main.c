/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lessor-eyes - what the daemon knows of the driver and of /proc, from a child that may hang or crash in its place.
 * Started by lessord with one end of a SOCK_SEQPACKET socketpair; wire/eyes.h is what is said over it. One thread, one
 * loop; a driver call that never returns stops this program only, and lessord replaces it.
 */
#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/confine.h"
#include "base/log.h"
#include "base/number.h"
#include "senses/nvml.h"
#include "senses/watcher.h"
#include "wire/eyes.h"

enum {
        EXIT_USAGE = 2,
        EXIT_VERSION = 3,      /* the daemon speaks another version of the messages */
        PROCESSES_MAX = 16384, /* as many as the core has room for (design 3.1) */
        DESCRIPTORS_KEPT = 64, /* for the driver, /proc and the socket */
        FDS_IN_FLIGHT_WAIT_MS = 10,
};

/* ---- the socket ---- */

/*
 * Waits while the brain is slow: its socket is the only queue there is. When it reads again, everything goes on;
 * when it is gone, EPIPE ends this program.
 */
static int send_message(void *ctx, const struct eyes_message *msg, int fd)
{
        static uint8_t buf[EYES_MESSAGE_MAX];
        int sock = *(int *) ctx;
        struct error err = { 0 };
        size_t n = 0;

        int r = eyes_encode(msg, buf, sizeof(buf), &n, &err);
        if (r < 0) {
                log_error("message=%s error=\"%s\"", eyes_kind_name(msg->kind), err.msg);
                return r;
        }
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(sizeof(int))];
        } control = { 0 };
        struct iovec iov = { .iov_base = buf, .iov_len = n };
        struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
        if (fd >= 0) {
                mh.msg_control = control.bytes;
                mh.msg_controllen = sizeof(control.bytes);
                struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(sizeof(int));
                memcpy(CMSG_DATA(c), &fd, sizeof(fd));
        }
        for (;;) {
                if (sendmsg(sock, &mh, MSG_NOSIGNAL) >= 0)
                        return 0;
                if (errno == EINTR)
                        continue;
                if (errno == ECONNRESET)
                        return -EPIPE;
                if (errno != ETOOMANYREFS && errno != ENOBUFS && errno != ENOMEM && errno != EAGAIN) {
                        r = -errno;
                        if (r != -EPIPE)
                                log_error("message=%s error=\"sendmsg: %s\"", eyes_kind_name(msg->kind), strerror(-r));
                        return r;
                }
                struct pollfd p = { .fd = sock }; /* too many descriptors on their way: until the brain takes some */
                (void) poll(&p, 1, FDS_IN_FLIGHT_WAIT_MS);
                if (p.revents & (POLLHUP | POLLERR))
                        return -EPIPE;
        }
}

/* 1 = a message, 0 = nothing there (only with MSG_DONTWAIT), -EPIPE = the brain is gone, -EBADMSG = not a message. */
static int receive_message(int sock, int flags, struct eyes_message *ret)
{
        static uint8_t buf[EYES_MESSAGE_MAX];
        struct error err = { 0 };
        ssize_t n;

        do {
                n = recv(sock, buf, sizeof(buf), flags | MSG_TRUNC);
        } while (n < 0 && errno == EINTR);
        if (n < 0 && errno == EAGAIN)
                return 0;
        if (n <= 0)
                return -EPIPE;
        int r = eyes_decode(buf, (size_t) n, ret, &err);
        if (r < 0) {
                log_error("error=\"%s\"", err.msg);
                return r;
        }
        return 1;
}

/* ---- the loop ---- */

/* Everything that waits on the socket, as far as the watcher has room for requests. */
static int take_messages(struct watcher *w, int sock, uint64_t now_ms)
{
        static struct eyes_message msg;

        while (w->n_requests < WATCHER_REQUESTS_MAX) {
                int r = receive_message(sock, MSG_DONTWAIT, &msg);
                if (r <= 0)
                        return r;
                r = watcher_message(w, &msg, now_ms);
                if (r < 0) {
                        log_error("message=%s error=\"not for the eyes\"", eyes_kind_name(msg.kind));
                        return r;
                }
        }
        return 0;
}

/* Until the brain is gone (-EPIPE) or something failed, which is logged where it happened. */
static int run(struct watcher *w, int sock)
{
        struct pollfd fds[3] = {
                { .fd = sock, .events = POLLIN },
                { .fd = w->table.epoll_fd, .events = POLLIN },
                { .events = POLLIN },
        };

        for (;;) {
                fds[2].fd = descent_poll_fd(w->descent, clock_now_ms());
                int n = poll(fds, 3, watcher_timeout_ms(w, clock_now_ms()));
                if (n < 0 && errno != EINTR) {
                        log_error("error=\"poll: %s\"", strerror(errno));
                        return -EIO;
                }

                uint64_t now_ms = clock_now_ms();
                watcher_clock(w, clock_asleep_ms(), now_ms);
                int r = n > 0 && fds[0].revents ? take_messages(w, sock, now_ms) : 0;
                if (r < 0)
                        return r;
                r = watcher_turn(w, now_ms);
                if (r < 0)
                        return r;
        }
}

/* ---- start ---- */

/* Before the first message and before the driver: both are what somebody else wrote. */
static int give_up_rights(void)
{
        struct error err = { 0 };
        int r = confine_unprivileged(&err);

        if (r == -EOPNOTSUPP)
                log_debug("event=not-filtered words=\"%s\"", err.msg); /* lessord warned of it, once */
        else if (r < 0)
                log_error("event=not-confined words=\"%s\"", err.msg);
        return r == -EOPNOTSUPP ? 0 : r;
}

/* Each process costs a descriptor: take as many as we may have. Returns how many processes that allows. */
static size_t raise_descriptor_limit(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return DESCRIPTORS_KEPT;
        rlim_t want = PROCESSES_MAX + DESCRIPTORS_KEPT;
        limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
        (void) setrlimit(RLIMIT_NOFILE, &limit);
        return limit.rlim_cur > 2 * (rlim_t) DESCRIPTORS_KEPT ? (size_t) limit.rlim_cur - DESCRIPTORS_KEPT
                                                              : DESCRIPTORS_KEPT;
}

static void usage(FILE *out)
{
        (void) fputs("Usage: lessor-eyes --fd N [OPTION]...\n"
                     "\n"
                     "Reads the GPUs (NVML) and /proc for lessord, which starts it; not meant to be started by hand.\n"
                     "\n"
                     "  --fd N      the descriptor of a SOCK_SEQPACKET socket to lessord\n"
                     "  --accounting DIR  where lessor-accounting keeps its records\n"
                     "  --verbose   log more, to stderr\n"
                     "  --help      show this text\n"
                     "\n"
                     "Exit status: 0 lessord closed the socket, 1 failed, 2 wrong usage, 3 lessord speaks another "
                     "version.\n",
                     out);
}

static int parse_options(int argc, char **argv, int *ret_fd, const char **ret_accounting)
{
        static const struct option options[] = {
                { "fd", required_argument, NULL, 'f' },
                { "accounting", required_argument, NULL, 'a' },
                { "verbose", no_argument, NULL, 'v' },
                { "help", no_argument, NULL, 'h' },
                { 0 },
        };
        struct error err = { 0 };
        uint64_t fd = 0;
        bool have_fd = false;
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
                if (c == 'h') {
                        usage(stdout);
                        exit(EXIT_SUCCESS);
                } else if (c == 'a') {
                        *ret_accounting = optarg;
                } else if (c == 'v') {
                        log_init("lessor-eyes", LOG_LEVEL_DEBUG);
                } else if (c == 'f') {
                        if (parse_u64("--fd", optarg, 0, 1 << 20, &fd, &err) < 0) {
                                log_error("error=\"%s\"", err.msg);
                                return -EINVAL;
                        }
                        have_fd = true;
                } else {
                        usage(stderr);
                        return -EINVAL;
                }
        }
        if (!have_fd || optind < argc) {
                usage(stderr);
                return -EINVAL;
        }
        *ret_fd = (int) fd;
        return 0;
}

static int check_socket(int fd)
{
        int type = 0;
        socklen_t n = sizeof(type);

        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_SEQPACKET)
                return 0;
        log_error("error=\"--fd %d is no SOCK_SEQPACKET socket; lessord starts this program, not a person\"", fd);
        return -EINVAL;
}

int main(int argc, char **argv)
{
        static struct watcher watcher;
        static struct nvml nvml;
        static struct eyes_message hello;
        static struct descent descent;
        struct error err = { 0 };
        const char *accounting = NULL;
        int sock = -1;

        log_init("lessor-eyes", LOG_LEVEL_INFO);
        if (parse_options(argc, argv, &sock, &accounting) < 0 || check_socket(sock) < 0)
                return EXIT_USAGE;
        /* The socket's end ends this program; while a driver call hangs, only the kernel can: no pile of orphans (F22). */
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) signal(SIGPIPE, SIG_IGN);
        descent_listen(
                &descent); /* what the kernel tells everybody, or who has a capability for it: asked while we may have it */
        if (give_up_rights() < 0)
                return EXIT_FAILURE;

        int r = receive_message(sock, 0, &hello);
        if (r == -EPIPE)
                return EXIT_SUCCESS;
        if (r == -EPROTONOSUPPORT ||
            (r == 1 && hello.kind == EYES_BRAIN_HELLO && hello.brain_hello.version != EYES_VERSION))
                return EXIT_VERSION;
        if (r < 0 || hello.kind != EYES_BRAIN_HELLO) {
                log_error("error=\"the first message is not the daemon's hello\"");
                return EXIT_FAILURE;
        }
        r = watcher_init(&watcher, &nvml_ops, &nvml, "/proc", raise_descriptor_limit(), send_message, &sock, &err);
        if (r < 0) {
                log_error("error=\"%s\"", err.msg);
                return EXIT_FAILURE;
        }
        descent_account_at(&descent, accounting);
        watcher_descent(&watcher, &descent, clock_now_ms());
        r = watcher_hello(&watcher, clock_now_ms());
        log_info("driver=%s version=\"%s\" devices=%u hidden=%u words=\"%s\"",
                 eyes_driver_state_name(watcher.driver.state), watcher.driver.version, watcher.n_devices,
                 watcher.n_hidden, watcher.driver.words);
        if (r == 0)
                r = run(&watcher, sock);
        watcher_fini(&watcher);
        descent_fini(&descent);
        return r == -EPIPE ? EXIT_SUCCESS : EXIT_FAILURE;
}
