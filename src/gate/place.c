/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/place.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cgroup2.h"
#include "base/cleanup.h"
#include "gate/fence.h"
#include "hands/target.h"

enum { PATH_SIZE = 1024, HANDLE_OF_KERNFS = 0xfe };

int place_open_id(int root, uint64_t cgroup_id)
{
        union {
                struct file_handle handle;
                char room[sizeof(struct file_handle) + sizeof(uint64_t)];
        } u = { 0 };

        u.handle.handle_bytes = sizeof(uint64_t);
        u.handle.handle_type = HANDLE_OF_KERNFS;
        memcpy(u.room + offsetof(struct file_handle, f_handle), &cgroup_id, sizeof(cgroup_id));
        return open_by_handle_at(root, &u.handle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool name_of(int fd, char ret[PATH_SIZE])
{
        char link[32];

        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, ret, PATH_SIZE);
        if (n <= 0 || n >= PATH_SIZE)
                return false;
        ret[n] = '\0';
        return true;
}

bool place_path(int root, int folder, char ret[PATH_SIZE])
{
        char top[PATH_SIZE], path[PATH_SIZE];

        if (!name_of(root, top) || !name_of(folder, path))
                return false;
        size_t n = strlen(top);
        if (strncmp(path, top, n) != 0 || (path[n] != '/' && path[n] != '\0') || strstr(path, " (deleted)"))
                return false;
        (void) snprintf(ret, PATH_SIZE, "%s", path + n + (path[n] == '/'));
        return true;
}

static uint64_t inode_of(int folder)
{
        struct stat st;
        return folder >= 0 && fstat(folder, &st) == 0 ? st.st_ino : 0;
}

size_t place_around(int root, const char *path, uint64_t *ret, size_t max)
{
        char at[PATH_SIZE];
        size_t n = 0;

        (void) snprintf(at, sizeof(at), "%s", path);
        while (at[0] && n < max) {
                auto_close int folder = cgroup2_open(root, at);
                uint64_t inode = inode_of(folder);
                if (inode != 0)
                        ret[n++] = inode;
                char *slash = strrchr(at, '/');
                *(slash ? slash : at) = '\0';
        }
        return n;
}

/* ---- whose ---- */

/* Is the lease's process there, the very one, and that user's? Without one: nobody is. */
static enum gate_why look_at_process(const struct gate_allow *a, struct target *t)
{
        auto_close int pidfd = -1;

        if (a->pid == 0)
                return GATE_WHY_GONE;
        target_open(a->pid, t, &pidfd);
        if (t->gone || !t->seen || t->start_ticks != a->start_ticks)
                return GATE_WHY_GONE;
        return t->real_uid == a->owner_uid ? GATE_WHY_NONE : GATE_WHY_OWNER;
}

/* "/user.slice/x" is in, or below, "user.slice". */
static bool lies_in(const char *cgroup, const char *path)
{
        size_t n = strlen(path);

        if (cgroup[0] != '/')
                return false;
        return strncmp(cgroup + 1, path, n) == 0 && (cgroup[n + 1] == '\0' || cgroup[n + 1] == '/');
}

static bool may_have(const char *path, const struct stat *st, const struct gate_allow *a)
{
        struct target t;

        if (st->st_uid == a->owner_uid)
                return true;
        return look_at_process(a, &t) == GATE_WHY_NONE && lies_in(t.cgroup, path);
}

/* Whoever lets all below a gated cgroup through lets everybody through. */
static bool is_whole_gate(int root, const struct gate_conf *conf, uint64_t cgroup_id)
{
        uint64_t around[64];

        for (uint32_t i = 0; i < conf->n_cgroups; i++) {
                size_t n = place_around(root, conf->cgroups[i], around, sizeof(around) / sizeof(around[0]));
                for (size_t k = 0; k < n; k++)
                        if (around[k] == cgroup_id)
                                return true;
        }
        return cgroup_id == inode_of(root);
}

static enum gate_why find_folder(int root, const struct gate_conf *conf, const struct gate_allow *a,
                                 struct gate_place *ret)
{
        auto_close int folder = place_open_id(root, a->cgroup_id);
        char path[PATH_SIZE];
        struct stat st;

        if (folder < 0)
                return errno == ESTALE || errno == ENOENT ? GATE_WHY_GONE : GATE_WHY_SYSTEM;
        if (fstat(folder, &st) < 0 || st.st_ino != a->cgroup_id || !place_path(root, folder, path))
                return GATE_WHY_GONE;
        if (is_whole_gate(root, conf, a->cgroup_id))
                return GATE_WHY_WHOLE_GATE;
        if (!may_have(path, &st, a))
                return GATE_WHY_NOT_OURS;
        *ret = (struct gate_place){ a->cgroup_id, FENCE_EXACT | FENCE_BELOW, gate_conf_covers(conf, path) };
        return GATE_WHY_NONE;
}

enum gate_why place_find(int root, const struct gate_conf *conf, const struct gate_allow *a, struct gate_place *ret)
{
        struct target t;

        *ret = (struct gate_place){ 0 };
        if (root < 0)
                return GATE_WHY_NO_CGROUP;
        if (a->cgroup_id != 0)
                return find_folder(root, conf, a, ret);
        enum gate_why why = look_at_process(a, &t);
        if (why != GATE_WHY_NONE)
                return why;
        if (t.cgroup[0] != '/' || strncmp(t.cgroup, "/..", 3) == 0)
                return GATE_WHY_NO_CGROUP;
        auto_close int folder = cgroup2_open(root, t.cgroup + 1);
        uint64_t inode = inode_of(folder);
        if (inode == 0)
                return GATE_WHY_GONE;
        *ret = (struct gate_place){ inode, FENCE_EXACT, gate_conf_covers(conf, t.cgroup + 1) };
        return GATE_WHY_NONE;
}
