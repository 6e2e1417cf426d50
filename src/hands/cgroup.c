/* SPDX-License-Identifier: Apache-2.0 */
#include "hands/cgroup.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"

enum { DEPTH_MAX = 16, EVENTS_MAX = 256 };
static const char made_by_lessor[] = "lessor-";

DEFINE_CLEANUP(DIR *, closedir)

int cgroup_open_root(void)
{
        static const char *const places[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
        struct statfs fs;

        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
                auto_close int fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
                        return take_fd(fd);
        }
        return -1;
}

/* ---- finding it ---- */

/* Step by step, no step through a link or up: what openat2(2) would do, on any kernel. */
static int open_beneath(int root, const char *path)
{
        auto_close int at = dup(root);
        char step[NAME_MAX + 1];

        while (at >= 0 && *path) {
                size_t n = strcspn(path, "/");
                if (n >= sizeof(step) || n == 0 || (n <= 2 && strncmp(path, "..", n) == 0))
                        return -1;
                memcpy(step, path, n);
                step[n] = '\0';
                int next = openat(at, step, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                (void) close(at);
                at = next;
                path += n + (path[n] == '/');
        }
        return take_fd(at);
}

static bool is_ours(const char *path, const struct stat *st, uid_t owner)
{
        const char *name = strrchr(path, '/');

        name = name ? name + 1 : path;
        return strncmp(name, made_by_lessor, sizeof(made_by_lessor) - 1) == 0 &&
               (st->st_uid == owner || st->st_uid == 0);
}

enum warden_why cgroup_find(int root, const struct target *t, uint64_t cgroup_id, uid_t owner, int *ret_fd)
{
        char path[TARGET_CGROUP_SIZE];
        struct stat top;

        *ret_fd = -1;
        if (root < 0 || t->cgroup[0] != '/' || fstat(root, &top) < 0)
                return WARDEN_WHY_NO_CGROUP;
        (void) snprintf(path, sizeof(path), "%s", t->cgroup + 1); /* "../x": outside of what this namespace shows */
        for (char *end = path; path[0]; *end = '\0') {
                auto_close int fd = open_beneath(root, path);
                struct stat st;
                /* Of the same file system: what is mounted on a folder of the hierarchy is none. */
                if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == top.st_dev && st.st_ino == cgroup_id) {
                        if (!is_ours(path, &st, owner))
                                return WARDEN_WHY_CGROUP_NOT_OURS;
                        *ret_fd = take_fd(fd);
                        return WARDEN_WHY_NONE;
                }
                end = strrchr(path, '/');
                end = end ? end : path;
        }
        return WARDEN_WHY_CGROUP_NOT_MEMBER;
}

void cgroup_thaw_above(int root, const struct target *t, uid_t owner)
{
        char path[TARGET_CGROUP_SIZE];
        struct stat st;

        (void) snprintf(path, sizeof(path), "%s", t->cgroup[0] == '/' ? t->cgroup + 1 : "");
        for (char *end = path; path[0]; *end = '\0') {
                auto_close int fd = open_beneath(root, path);
                if (fd >= 0 && fstat(fd, &st) == 0 && is_ours(path, &st, owner))
                        (void) cgroup_write(fd, "cgroup.freeze", "0");
                end = strrchr(path, '/');
                end = end ? end : path;
        }
}

/* ---- its files ---- */

int cgroup_write(int folder, const char *file, const char *value)
{
        auto_close int fd = openat(folder, file, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0 || write(fd, value, strlen(value)) < 0)
                return -errno;
        return 0;
}

bool cgroup_has_kill(int folder)
{
        return faccessat(folder, "cgroup.kill", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* "populated 1\nfrozen 0\n" */
static int read_event(int fd, const char *event, char *ret)
{
        char text[EVENTS_MAX];
        ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

        if (n < 0)
                return -errno;
        text[n] = '\0';
        const char *line = strstr(text, event);
        if (!line || line[strlen(event)] != ' ')
                return -ENOTSUP;
        *ret = line[strlen(event) + 1];
        return 0;
}

int cgroup_wait(int folder, const char *event, char value, uint32_t wait_ms)
{
        auto_close int fd = openat(folder, "cgroup.events", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        uint64_t end_ms = clock_now_ms() + wait_ms;
        char now = '\0';

        if (fd < 0)
                return -errno;
        for (;;) {
                struct pollfd p = { .fd = fd, .events = POLLPRI };
                int r = read_event(fd, event, &now);
                if (r < 0 || now == value)
                        return r < 0 ? r : 1;
                uint64_t now_ms = clock_now_ms();
                if (now_ms >= end_ms)
                        return 0;
                (void) poll(&p, 1, (int) (end_ms - now_ms)); /* wakes when the file changes */
        }
}

struct walk {
        enum warden_why (*each)(void *ctx, uint32_t pid);
        void *ctx;
        uint64_t until_ms;
};

/* Whoever makes processes or folders faster than they are looked at would never be through. */
static enum warden_why in_time(const struct walk *walk)
{
        if (clock_now_ms() < walk->until_ms)
                return WARDEN_WHY_NONE;
        errno = ETIME;
        return WARDEN_WHY_SYSTEM;
}

/* A folder below the first one that lists nobody: removed meanwhile, so it was empty; or threaded, and then a folder above
 * it, which is not above the first one, lists whoever is in it. */
static enum warden_why not_listed(const struct walk *walk, bool first)
{
        bool fine = !first && (errno == ENOENT || errno == ENODEV || errno == EOPNOTSUPP);
        return fine ? in_time(walk) : WARDEN_WHY_SYSTEM;
}

static enum warden_why each_in(int folder, const struct walk *walk, bool first)
{
        auto_close int fd = openat(folder, "cgroup.procs", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        char buf[4096];
        uint32_t pid = 0;
        ssize_t n;

        if (fd < 0)
                return not_listed(walk, first);
        while ((n = read(fd, buf, sizeof(buf))) > 0) {
                for (ssize_t i = 0; i < n; i++) {
                        if (buf[i] >= '0' && buf[i] <= '9') {
                                pid = pid * 10 + (uint32_t) (buf[i] - '0');
                                continue;
                        }
                        enum warden_why why = in_time(walk);
                        /* "0": a process that this pid namespace does not show; nobody can answer for it */
                        if (why == WARDEN_WHY_NONE)
                                why = walk->each(walk->ctx, pid);
                        if (why != WARDEN_WHY_NONE)
                                return why;
                        pid = 0;
                }
        }
        return n < 0 ? not_listed(walk, first) : WARDEN_WHY_NONE;
}

static enum warden_why each_below(int folder, unsigned depth, const struct walk *walk)
{
        enum warden_why why = each_in(folder, walk, depth == DEPTH_MAX);
        if (why != WARDEN_WHY_NONE)
                return why;
        if (depth == 0) {
                errno = ELOOP;
                return WARDEN_WHY_SYSTEM;
        }
        int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        auto_call(closedirp) DIR *dir = again >= 0 ? fdopendir(again) : NULL;
        const struct dirent *entry;
        if (!dir)
                return WARDEN_WHY_SYSTEM;
        while ((entry = readdir(dir))) {
                const char *name = entry->d_name; /* ".x" is a folder like any other */
                if (entry->d_type != DT_DIR || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
                        continue;
                auto_close int below = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (below < 0 && errno == ENOENT)
                        continue; /* removed meanwhile: it was empty */
                why = below < 0 ? WARDEN_WHY_SYSTEM : each_below(below, depth - 1, walk);
                if (why != WARDEN_WHY_NONE)
                        return why;
        }
        return WARDEN_WHY_NONE;
}

enum warden_why cgroup_each(int folder, uint32_t most_ms, enum warden_why (*each)(void *ctx, uint32_t pid), void *ctx)
{
        const struct walk walk = { each, ctx, clock_now_ms() + most_ms };
        return each_below(folder, DEPTH_MAX, &walk);
}
