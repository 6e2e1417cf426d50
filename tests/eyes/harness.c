/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

uint64_t now_ms(void)
{
        struct timespec ts;
        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}

static const char *program(const char *variable)
{
        const char *path = getenv(variable);
        if (!path || access(path, X_OK) < 0)
                fail_msg("%s must name a program; meson test sets it", variable);
        return path;
}

/* ---- the card ---- */

static void simgpu(const char *verb, const struct card *card, const char *words)
{
        char cmd[1024];

        (void) snprintf(cmd, sizeof(cmd), "'%s' %s --file '%s' %s >/dev/null", program("LESSOR_SIMGPU"), verb,
                        card->file, words);
        if (system(cmd) != 0)
                fail_msg("failed: %s", cmd);
}

void card_create(struct card *card, const char *options)
{
        memset(card, 0, sizeof(*card));
        (void) snprintf(card->dir, sizeof(card->dir), "/tmp/lessor-eyes-XXXXXX");
        assert_non_null(mkdtemp(card->dir));
        (void) snprintf(card->file, sizeof(card->file), "%s/card", card->dir);
        simgpu("create", card, options);
}

void card_destroy(struct card *card)
{
        while (card->n_hogs > 0)
                card_end_hog(card, card->hogs[0]);
        char cmd[128];
        (void) snprintf(cmd, sizeof(cmd), "rm -rf '%s'", card->dir);
        assert_int_equal(system(cmd), 0);
}

void card_fault(const struct card *card, const char *words)
{
        simgpu("fault", card, words);
}

void card_clear(const struct card *card)
{
        simgpu("fault", card, "clear");
}

pid_t card_hog(struct card *card, const char *size, const char *options)
{
        int out[2];
        char cmd[1024], line[64];

        assert_true(card->n_hogs < sizeof(card->hogs) / sizeof(*card->hogs));
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        (void) snprintf(cmd, sizeof(cmd), "exec '%s' run --file '%s' -- '%s' hog --alloc %s %s",
                        program("LESSOR_SIMGPU"), card->file, program("LESSOR_SIMGPU"), size, options);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) dup2(out[1], STDOUT_FILENO);
                (void) execl("/bin/sh", "sh", "-c", cmd, (char *) NULL);
                _exit(127);
        }
        (void) close(out[1]);
        ssize_t n = read(out[0], line, sizeof(line) - 1); /* "holding N bytes …" once it does */
        (void) close(out[0]);
        card->hogs[card->n_hogs++] = pid;
        assert_true(n > 8);
        assert_memory_equal(line, "holding ", 8);
        return pid;
}

void card_end_hog(struct card *card, pid_t pid)
{
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        for (size_t i = 0; i < card->n_hogs; i++)
                if (card->hogs[i] == pid) {
                        card->hogs[i] = card->hogs[--card->n_hogs];
                        return;
                }
}

/* ---- the eyes ---- */

void brain_send(struct brain *b, const struct eyes_message *msg)
{
        static uint8_t buf[EYES_MESSAGE_MAX];
        size_t n = 0;

        assert_int_equal(eyes_encode(msg, buf, sizeof(buf), &n, NULL), 0);
        if (send(b->sock, buf, n, MSG_NOSIGNAL) < 0)
                b->closed = true;
}

void brain_start(struct brain *b, const struct card *card)
{
        int pair[2];
        const char *eyes = program("LESSOR_EYES");
        const struct eyes_message hello = { .kind = EYES_BRAIN_HELLO, .brain_hello = { EYES_VERSION } };

        memset(b, 0, sizeof(*b));
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        b->pid = fork();
        assert_true(b->pid >= 0);
        if (b->pid == 0) {
                int fd = fcntl(pair[1], F_DUPFD, 100); /* loses CLOEXEC, and cannot be the target already */
                (void) dup2(fd, 3);
                (void) close(fd);
                if (card)
                        (void) execl(program("LESSOR_SIMGPU"), "simgpu", "run", "--file", card->file, "--", eyes,
                                     "--fd", "3", (char *) NULL);
                else
                        (void) execl(eyes, eyes, "--fd", "3", (char *) NULL);
                _exit(127);
        }
        (void) close(pair[1]);
        b->sock = pair[0];
        brain_send(b, &hello);
}

int brain_stop(struct brain *b)
{
        int status = 0;
        uint64_t until = now_ms() + DEADLINE_MS;

        (void) close(b->sock);
        for (size_t i = 0; i < b->n_processes; i++)
                (void) close(b->processes[i].pidfd);
        while (waitpid(b->pid, &status, WNOHANG) == 0) {
                if (now_ms() > until)
                        (void) kill(b->pid, SIGKILL);
                (void) poll(NULL, 0, 1);
        }
        return status;
}

struct process_seen *find_process(struct brain *b, pid_t pid)
{
        for (size_t i = b->n_processes; i > 0; i--) /* the newest owner of the number */
                if (b->processes[i - 1].process.pid == (uint32_t) pid)
                        return &b->processes[i - 1];
        return NULL;
}

const struct eyes_row *find_row(const struct eyes_reading *reading, pid_t pid)
{
        for (uint32_t i = 0; i < reading->n_rows; i++)
                if (reading->rows[i].pid == (uint32_t) pid)
                        return &reading->rows[i];
        return NULL;
}

static struct device_seen *find_device(struct brain *b, const char *uuid)
{
        for (uint32_t i = 0; i < b->n_devices; i++)
                if (strcmp(b->devices[i].device.uuid, uuid) == 0)
                        return &b->devices[i];
        return NULL;
}

static void hear_device(struct brain *b, const struct eyes_device *m)
{
        struct device_seen *dev = find_device(b, m->uuid);

        assert_true(b->has_hello);
        if (!dev) {
                assert_true(b->n_devices < 8);
                dev = &b->devices[b->n_devices++];
        }
        dev->device = *m;
}

static void hear_reading(struct brain *b, const struct eyes_reading *m)
{
        struct device_seen *dev = find_device(b, m->uuid);

        assert_non_null(dev); /* a device is told before it is read */
        for (uint32_t i = 0; i < m->n_rows; i++) {
                const struct eyes_row *row = &m->rows[i];

                if (row->flags & (EYES_ROW_GHOST | EYES_ROW_FOREIGN | EYES_ROW_UNIDENTIFIED))
                        continue;
                const struct process_seen *p = find_process(b, (pid_t) row->pid);
                assert_non_null(p); /* and so is a process */
                assert_true(p->process.start_ticks == row->start_ticks);
                assert_false(p->exited);
        }
        dev->reading = *m;
        dev->has_reading = true;
}

static void hear_process(struct brain *b, const struct eyes_process *m, int fd)
{
        const struct process_seen *before = find_process(b, (pid_t) m->pid);

        assert_true(fd >= 0);
        if (before)
                assert_true(before->process.start_ticks != m->start_ticks); /* once per identity */
        assert_true(b->n_processes < HARNESS_PROCESSES_MAX);
        b->processes[b->n_processes++] = (struct process_seen){ .process = *m, .pidfd = fd };
}

static void hear_exited(struct brain *b, const struct eyes_exited *m)
{
        struct process_seen *p = find_process(b, (pid_t) m->pid);
        struct pollfd pfd = { .fd = p ? p->pidfd : -1, .events = POLLIN };

        assert_non_null(p);
        assert_false(p->exited);
        assert_true(p->process.start_ticks == m->start_ticks);
        assert_int_equal(poll(&pfd, 1, 0), 1); /* it is true, too */
        p->exited = true;
}

/* Returns the kind heard, EYES_NOTHING on silence or the end. */
static enum eyes_kind hear(struct brain *b, int ms, struct eyes_message *msg, int *ret_fd)
{
        static uint8_t buf[EYES_MESSAGE_MAX];
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec iov = { .iov_base = buf, .iov_len = sizeof(buf) };
        struct msghdr mh = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control)
        };
        struct pollfd pfd = { .fd = b->sock, .events = POLLIN };
        struct error err = { 0 };

        *ret_fd = -1;
        if (b->closed || poll(&pfd, 1, ms) <= 0)
                return EYES_NOTHING;
        ssize_t n = recvmsg(b->sock, &mh, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (n <= 0) {
                b->closed = true;
                return EYES_NOTHING;
        }
        const struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
        if (c && c->cmsg_type == SCM_RIGHTS)
                memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
        if (eyes_decode(buf, (size_t) n, msg, &err) < 0)
                fail_msg("%s", err.msg);
        return msg->kind;
}

static enum eyes_kind hear_and_keep(struct brain *b, int ms, struct eyes_message *msg)
{
        int fd;
        enum eyes_kind kind = hear(b, ms, msg, &fd);

        if (kind != EYES_PROCESS)
                assert_int_equal(fd, -1);
        switch (kind) {
        case EYES_HELLO:
                b->hello = msg->hello;
                b->has_hello = true;
                b->n_hellos++;
                break;
        case EYES_DEVICE:
                hear_device(b, &msg->device);
                break;
        case EYES_READING:
                hear_reading(b, &msg->reading);
                break;
        case EYES_EXITED:
                hear_exited(b, &msg->exited);
                break;
        case EYES_ALARM:
                b->n_alarms[msg->alarm.kind]++;
                break;
        case EYES_PROCESS:
                hear_process(b, &msg->process, fd);
                break;
        case EYES_DONE:
        case EYES_NOTHING:
        case EYES_BRAIN_HELLO:
        case EYES_INTERVAL:
        case EYES_READ:
        case EYES_KIND_N:
                break;
        }
        return kind;
}

bool brain_hear(struct brain *b, int ms)
{
        static struct eyes_message msg;
        return hear_and_keep(b, ms, &msg) != EYES_NOTHING;
}

bool brain_ask(struct brain *b, int ms)
{
        static struct eyes_message msg;
        const struct eyes_message read = { .kind = EYES_READ, .read = { .request_id = ++b->last_request } };
        uint64_t until = now_ms() + (uint64_t) ms;

        brain_send(b, &read);
        for (;;) {
                uint64_t now = now_ms();
                enum eyes_kind kind = hear_and_keep(b, now < until ? (int) (until - now) : 0, &msg);
                if (kind == EYES_NOTHING)
                        return false;
                if (kind == EYES_DONE && msg.done.request_id == b->last_request)
                        return true;
        }
}
