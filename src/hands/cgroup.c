/* SPDX-License-Identifier: Apache-2.0 */
#include "hands/cgroup.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cgroup2.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { DEPTH_MAX = 16 };
static const char made_by_lessor[] = "lessor-";

DEFINE_CLEANUP(DIR *, closedir)

/* ---- finding it ---- */

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
                auto_close int fd = cgroup2_open(root, path);
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
                auto_close int fd = cgroup2_open(root, path);
                if (fd >= 0 && fstat(fd, &st) == 0 && is_ours(path, &st, owner))
                        (void) cgroup2_write(fd, "cgroup.freeze", "0");
                end = strrchr(path, '/');
                end = end ? end : path;
        }
}

/* ---- who is in it ---- */

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
