/* SPDX-License-Identifier: Apache-2.0 */
#include "senses/descent.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/number.h"
#include "senses/proc.h"
#include "wire/acct.h"
#include "wire/proc_event.h"

enum {
        RECEIVE_BYTES = 1 << 20,
        DATAGRAM_MAX = 8192,
        TRACES_MAX = 3,
        RECORDS_AT_ONCE = 64,
        TICK_NS = 10000000,
        CLOCKS_DIFFER_TICKS = 10, /* two readings one after the other differ by less; more is a step, or sleep */
};
#define S_NS UINT64_C(1000000000)

/* ---- clocks ---- */

static uint64_t read_ns(clockid_t clock)
{
        struct timespec ts = { 0 };

        (void) clock_gettime(clock, &ts);
        return (uint64_t) ts.tv_sec * S_NS + (uint64_t) ts.tv_nsec;
}

static uint64_t now_ticks(void)
{
        return read_ns(CLOCK_BOOTTIME) / TICK_NS;
}

static bool differs(int64_t a, int64_t b)
{
        return a - b > CLOCKS_DIFFER_TICKS || b - a > CLOCKS_DIFFER_TICKS;
}

/* The machine slept, or its clock was set: what was dated by the old difference is not dated by the new one. */
static void look_at_clocks(struct descent *d)
{
        uint64_t boot_ns = read_ns(CLOCK_BOOTTIME), asleep_ns = u64_sub0(boot_ns, read_ns(CLOCK_MONOTONIC));
        int64_t wall_ticks = (int64_t) (read_ns(CLOCK_REALTIME) / TICK_NS) - (int64_t) (boot_ns / TICK_NS);

        if (differs((int64_t) (asleep_ns / TICK_NS), (int64_t) (d->offset_ns / TICK_NS)))
                d->lost = true;
        if (differs(wall_ticks, d->wall_ticks))
                lineage_record_gap(&d->lineage);
        d->offset_ns = asleep_ns;
        d->wall_ticks = wall_ticks;
}

/* ---- /proc ---- */

/*
 * Who has the number now. One that lives and that this /proc does not show (hidepid) is not "nobody": it has started later
 * than anybody, so nothing is concluded from it.
 */
static bool look(void *ctx, uint32_t pid, struct lineage_look *ret)
{
        const struct descent *d = ctx;
        auto_close int dir = -1;
        auto_close int pidfd = -1;
        struct proc_stat st;

        if (proc_open_pid(d->source->proc_root, pid, &dir) == 0 && proc_read_stat(dir, &st) == 0 && st.pid == pid) {
                *ret = (struct lineage_look){ st.start_ticks, st.ppid, st.session };
                return true;
        }
        *ret = (struct lineage_look){ .start_ticks = UINT64_MAX };
        int r = process_open_pidfd(pid, &pidfd);
        return r == 0 || (r != -ESRCH && r != -EINVAL && r != -ENOENT);
}

static void scan(struct descent *d, uint64_t now_ms)
{
        DIR *dir = opendir(d->source->proc_root);
        const struct dirent *entry;
        uint64_t pid;

        d->lost = false; /* or again, by what overflows meanwhile */
        d->scanned_ms = now_ms ? now_ms : 1;
        d->n_fresh = 0;
        lineage_scan_begin(&d->lineage, now_ticks());
        while (dir && (entry = readdir(dir))) { /* in the order of their numbers: parents mostly come first */
                struct lineage_look now;
                if (parse_u64("pid", entry->d_name, 1, EYES_PID_MAX, &pid, NULL) == 0 &&
                    look(d, (uint32_t) pid, &now) && now.start_ticks != UINT64_MAX)
                        lineage_seen(&d->lineage, (uint32_t) pid, &now);
        }
        lineage_scan_end(&d->lineage);
        if (dir)
                (void) closedir(dir);
}

/* ---- process events ---- */

static uint64_t ticks_of(const struct descent *d, uint64_t monotonic_ns)
{
        return (monotonic_ns + d->offset_ns) / TICK_NS;
}

static void take_event(struct descent *d, const struct proc_event *e)
{
        if (e->pid != e->tgid)
                return; /* a thread */
        if (e->kind == PROC_EVENT_EXIT) {
                lineage_exit(&d->lineage, e->pid, ticks_of(d, e->at_ns));
        } else if (e->kind == PROC_EVENT_FORK) {
                lineage_fork(&d->lineage, e->parent_tgid, e->pid, ticks_of(d, e->at_ns));
                if (d->n_fresh < DESCENT_SETTLE_MAX)
                        d->fresh[d->n_fresh++] = e->pid;
        }
}

/* One datagram: its length, 0 = nothing there; -ENOBUFS: some were lost. Who else than the kernel sends one is passed over. */
static ssize_t receive(int fd, uint8_t *buf, size_t size, bool *ret_of_kernel)
{
        struct sockaddr_nl from = { 0 };
        socklen_t n_from = sizeof(from);
        ssize_t n;

        do {
                n = recvfrom(fd, buf, size, MSG_DONTWAIT | MSG_TRUNC, (struct sockaddr *) &from, &n_from);
        } while (n < 0 && errno == EINTR);
        *ret_of_kernel = n_from == sizeof(from) && from.nl_family == AF_NETLINK && from.nl_pid == 0;
        if (n < 0)
                return errno == EAGAIN ? 0 : -errno;
        return n;
}

static void take_events(struct descent *d, uint64_t now_ms)
{
        uint8_t buf[DATAGRAM_MAX];
        struct proc_event e;
        bool of_kernel;
        ssize_t n;

        while (d->events_fd >= 0 && (n = receive(d->events_fd, buf, sizeof(buf), &of_kernel)) != 0) {
                if (n == -ENOBUFS || n > (ssize_t) sizeof(buf)) {
                        d->lost = true;
                } else if (n < 0) {
                        (void) close(take_fd(d->events_fd));
                        d->lost = true;
                        d->events = EYES_EVENTS_MISSING;
                        d->events_errno = (int) -n;
                        return;
                }
                d->taken_ms = now_ms ? now_ms : 1;
                if (n < 0 || !of_kernel)
                        continue;
                int r = 0;
                for (size_t at = 0; !d->lost && (r = proc_event_next(buf, (size_t) n, &at, &e)) > 0;)
                        take_event(d, &e);
                d->lost = d->lost || r < 0;
        }
}

/* Who was forked and still lives, to the tick: a scan can know it again only by that. */
static void settle(struct descent *d)
{
        for (uint32_t i = 0; i < d->n_fresh; i++) {
                struct lineage_look now;
                if (look(d, d->fresh[i], &now) && now.start_ticks != UINT64_MAX)
                        lineage_seen(&d->lineage, d->fresh[i], &now);
        }
        d->n_fresh = 0;
}

/* The kernel acknowledges within the call; who is in another namespace is not answered. */
static bool is_answered(int fd)
{
        uint8_t buf[DATAGRAM_MAX];
        bool of_kernel;

        return receive(fd, buf, sizeof(buf), &of_kernel) > 0 && of_kernel;
}

static int open_events(int *ret_errno)
{
        struct sockaddr_nl at = { .nl_family = AF_NETLINK, .nl_groups = PROC_EVENT_GROUP };
        uint8_t ask[PROC_EVENT_ASK_MAX];
        int size = RECEIVE_BYTES;

        auto_close int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
        *ret_errno = errno;
        if (fd < 0)
                return -1;
        if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0) /* else as much as everybody may */
                (void) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
        if (bind(fd, (struct sockaddr *) &at, sizeof(at)) < 0 || send(fd, ask, proc_event_listen(ask, false), 0) < 0) {
                *ret_errno = errno;
                return -1;
        }
        *ret_errno = 0;
        if (!is_answered(fd))
                return -1;
        (void) send(fd, ask, proc_event_listen(ask, true), 0);
        return take_fd(fd);
}

void descent_listen(struct descent *d)
{
        lineage_init(&d->lineage);
        d->accounting_fd = -1;
        d->events_fd = open_events(&d->events_errno);
        if (d->events_fd >= 0)
                d->events = EYES_EVENTS_TOLD;
        else if (d->events_errno == EPERM || d->events_errno == EACCES)
                d->events = EYES_EVENTS_REFUSED;
        else
                d->events = d->events_errno == 0 ? EYES_EVENTS_NAMESPACE : EYES_EVENTS_MISSING;
}

/* ---- accounting ---- */

static void take_record(struct descent *d, const uint8_t *bytes)
{
        struct acct_record r;

        if (acct_parse(bytes, ACCT_RECORD_SIZE, &r) == 0)
                lineage_record(&d->lineage, r.pid, r.ppid, (int64_t) r.begun_s * PROC_TICKS_PER_S - d->wall_ticks,
                               r.lasted_ms * PROC_TICKS_PER_S / 1000);
}

/* What lies in @buf; returns how far it went. A part of a record at the end stays: the rest may follow. */
static size_t take_buffer(struct descent *d, const uint8_t *buf, size_t n, bool *ret_any)
{
        size_t at = 0, next;

        while (at < n && (next = acct_find(buf, n, at)) < n) {
                if (next != at)
                        lineage_record_gap(&d->lineage);
                take_record(d, buf + next);
                *ret_any = true;
                at = next + ACCT_RECORD_SIZE;
        }
        if (at == 0 && n == RECORDS_AT_ONCE * ACCT_RECORD_SIZE) {
                lineage_record_gap(&d->lineage); /* no record in all of it */
                at = n - ACCT_RECORD_SIZE;
        }
        return at;
}

/* True when there was something new. */
static bool take_records(struct descent *d)
{
        uint8_t buf[RECORDS_AT_ONCE * ACCT_RECORD_SIZE];
        struct stat st;
        bool any = false;

        if (d->accounting_fd < 0)
                return false;
        if (fstat(d->accounting_fd, &st) == 0 && (uint64_t) st.st_size < d->accounting_at) {
                d->accounting_at = 0; /* somebody cut it off */
                lineage_record_gap(&d->lineage);
        }
        for (;;) {
                ssize_t n = pread(d->accounting_fd, buf, sizeof(buf), (off_t) d->accounting_at);
                size_t taken = n > 0 ? take_buffer(d, buf, (size_t) n, &any) : 0;
                if (taken == 0)
                        return any;
                d->accounting_at += taken;
        }
}

void descent_account(struct descent *d, int fd, bool follows)
{
        (void) take_records(d); /* the last of the old one */
        if (d->accounting_fd >= 0)
                (void) close(d->accounting_fd);
        d->accounting_fd = fd;
        d->accounting_at = 0;
        if (!follows || fd < 0)
                lineage_record_gap(&d->lineage);
}

void descent_account_at(struct descent *d, const char *folder)
{
        d->accounting_folder = folder;
}

/* Root's, and nobody else's to write. -1: there is none. */
static int open_records(int folder, const char *name, struct stat *ret)
{
        auto_close int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

        if (fd < 0 || fstat(fd, ret) < 0 || !S_ISREG(ret->st_mode) || ret->st_uid != 0 || (ret->st_mode & 022) != 0)
                return -1;
        return take_fd(fd);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Which file is written now? It follows the one before where that has its second name. */
static void look_for_records(struct descent *d, uint64_t now_ms)
{
        struct stat now, before, ours;

        if (!d->accounting_folder ||
            (d->accounting_looked_ms != 0 && now_ms < d->accounting_looked_ms + DESCENT_ACCOUNT_EVERY_MS))
                return;
        d->accounting_looked_ms = now_ms ? now_ms : 1;
        auto_close int folder = open(d->accounting_folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        auto_close int fd = folder >= 0 ? open_records(folder, "records", &now) : -1;
        bool has = d->accounting_fd >= 0 && fstat(d->accounting_fd, &ours) == 0;
        if (fd < 0 && !has)
                return;
        if (fd >= 0 && has && is_same(&now, &ours))
                return;
        auto_close int old = fd >= 0 && has ? open_records(folder, "records.1", &before) : -1;
        descent_account(d, take_fd(fd), old >= 0 && is_same(&before, &ours));
}

/* ---- the caller's side ---- */

void descent_begin(struct descent *d, const struct process_source *source, uint64_t now_ms)
{
        d->source = source;
        look_at_clocks(d);
        d->lost = true;
        take_events(d, now_ms);
        if (d->events_fd >= 0)
                scan(d, now_ms);
        lineage_record_gap(&d->lineage);
        look_for_records(d, now_ms);
}

void descent_fini(struct descent *d)
{
        if (d->events_fd >= 0)
                (void) close(take_fd(d->events_fd));
        if (d->accounting_fd >= 0)
                (void) close(take_fd(d->accounting_fd));
}

static bool is_pausing(const struct descent *d, uint64_t now_ms)
{
        return d->taken_ms != 0 && now_ms < d->taken_ms + DESCENT_PAUSE_MS;
}

int descent_poll_fd(const struct descent *d, uint64_t now_ms)
{
        return is_pausing(d, now_ms) ? -1 : d->events_fd;
}

int descent_timeout_ms(const struct descent *d, uint64_t now_ms)
{
        if (d->events_fd < 0)
                return -1;
        if (is_pausing(d, now_ms))
                return (int) (d->taken_ms + DESCENT_PAUSE_MS - now_ms);
        return d->lost ? DESCENT_SCAN_EVERY_MS : -1;
}

static void catch_up(struct descent *d, uint64_t now_ms, bool scan_at_once)
{
        look_at_clocks(d);
        take_events(d, now_ms);
        settle(d);
        if (d->lost && d->events_fd >= 0 &&
            (scan_at_once || d->scanned_ms == 0 || now_ms >= d->scanned_ms + DESCENT_SCAN_EVERY_MS)) {
                scan(d, now_ms);
                take_events(d, now_ms);
                settle(d);
        }
        look_for_records(d, now_ms);
        (void) take_records(d);
}

void descent_turn(struct descent *d, uint64_t now_ms)
{
        if (is_pausing(d, now_ms))
                return;
        catch_up(d, now_ms, false);
}

void descent_trace(struct descent *d, struct eyes_process *facts, uint64_t now_ms)
{
        struct lineage_step steps[EYES_ANCESTORS_MAX];
        struct lineage_look self = { facts->start_ticks, facts->ppid, facts->sid };
        size_t n = 0;

        catch_up(d, now_ms, true);
        for (unsigned i = 0; i < TRACES_MAX; i++) {
                n = lineage_trace(&d->lineage, facts->pid, &self, look, d, steps, EYES_ANCESTORS_MAX);
                if (!take_records(d))
                        break; /* what was looked for and is gone was written down before: nothing was missing */
                if (i == TRACES_MAX - 2)
                        lineage_record_gap(
                                &d->lineage); /* they come too fast: only what needs no completeness counts */
        }
        facts->n_ancestors = (uint32_t) n;
        for (size_t i = 0; i < n; i++)
                facts->ancestors[i] =
                        (struct eyes_ancestor){ .pid = steps[i].who.pid,
                                                .start_ticks = steps[i].who.from_ticks,
                                                .slack_ticks = (uint32_t) u64_min(steps[i].who.slack_ticks, UINT32_MAX),
                                                .link = (uint8_t) steps[i].link };
}
