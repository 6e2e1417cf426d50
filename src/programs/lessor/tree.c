/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/tree.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/number.h"

enum { DESCENT_MAX = 64 };

static const char folder_prefix[] = "lessor-L"; /* lessor-L17.4711: the lease, and whose it is */

DEFINE_CLEANUP(FILE *, fclose)
DEFINE_CLEANUP(DIR *, closedir)

/* The "0::/…" line: where @pid is in the one hierarchy of version 2. */
static bool cgroup_of(pid_t pid, char *ret_path, size_t path_size)
{
        char file[64], line[768];
        (void) snprintf(file, sizeof(file), "/proc/%d/cgroup", (int) pid);
        auto_call(fclosep) FILE *f = fopen(file, "re");
        if (!f)
                return false;
        while (fgets(line, sizeof(line), f)) {
                if (strncmp(line, "0::/", 4) != 0)
                        continue;
                line[strcspn(line, "\n")] = '\0';
                if (strstr(line, "/../") || strlen(line + 3) >= path_size)
                        return false; /* outside of what this namespace shows */
                memcpy(ret_path, line + 3, strlen(line + 3) + 1);
                return true;
        }
        return false;
}

/* Field @n of a line of mountinfo, counted from 0; the kernel writes blanks inside a field as \040. */
static bool field_of(const char *line, unsigned n, char *ret, size_t ret_size)
{
        while (n-- > 0) {
                line = strchr(line, ' ');
                if (!line)
                        return false;
                line++;
        }
        size_t len = strcspn(line, " \n");
        if (len == 0 || len >= ret_size)
                return false;
        memcpy(ret, line, len);
        ret[len] = '\0';
        return true;
}

/* The folder of cgroup @cgroup in the file system, by the first cgroup2 mount that shows it. */
static bool folder_of(const char *cgroup, char *ret_folder, size_t folder_size)
{
        char line[2048];
        auto_call(fclosep) FILE *f = fopen("/proc/self/mountinfo", "re");
        if (!f)
                return false;
        while (fgets(line, sizeof(line), f)) {
                char root[512], at[512];
                const char *type = strstr(line, " - ");
                if (!type || strncmp(type + 3, "cgroup2 ", 8) != 0)
                        continue;
                if (!field_of(line, 3, root, sizeof(root)) || !field_of(line, 4, at, sizeof(at)) || strchr(at, '\\'))
                        continue;
                size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);
                if (strncmp(cgroup, root, n) != 0 || (cgroup[n] != '/' && cgroup[n] != '\0'))
                        continue;
                const char *rest = strcmp(cgroup + n, "/") == 0 ? "" : cgroup + n;
                int len = snprintf(ret_folder, folder_size, "%s%s", at, rest);
                return len > 0 && (size_t) len < folder_size;
        }
        return false;
}

static bool own_folder(char *ret_folder, size_t folder_size)
{
        char cgroup[512];
        return cgroup_of(getpid(), cgroup, sizeof(cgroup)) && folder_of(cgroup, ret_folder, folder_size);
}

bool tree_scope_possible(char *ret_program, size_t program_size)
{
        char manager[512];
        const char *runtime = getenv("XDG_RUNTIME_DIR"), *path = getenv("PATH");
        if (!runtime || runtime[0] != '/' || !path)
                return false;
        int n = snprintf(manager, sizeof(manager), "%s/systemd/private", runtime);
        if (n < 0 || (size_t) n >= sizeof(manager) || access(manager, W_OK) < 0)
                return false;
        while (*path != '\0') {
                size_t len = strcspn(path, ":");
                int k = snprintf(ret_program, program_size, "%.*s/systemd-run", (int) len, path);
                if (len > 0 && path[0] == '/' && k > 0 && (size_t) k < program_size && access(ret_program, X_OK) == 0)
                        return true;
                path += len + (path[len] == ':');
        }
        return false;
}

static bool inode_of(struct tree *tree)
{
        struct stat st;
        if (stat(tree->path, &st) < 0 || !S_ISDIR(st.st_mode))
                return false;
        tree->cgroup_id = st.st_ino;
        return true;
}

bool tree_make_cgroup(struct tree *tree, const char *lease_id)
{
        char folder[400];
        *tree = (struct tree){ .kind = TREE_CGROUP };
        if (!own_folder(folder, sizeof(folder)))
                return false;
        int n = snprintf(tree->path, sizeof(tree->path), "%s/lessor-%s.%d", folder, lease_id, (int) getpid());
        if (n < 0 || (size_t) n >= sizeof(tree->path) || mkdir(tree->path, 0755) < 0)
                return false;
        if (inode_of(tree))
                return true;
        (void) rmdir(tree->path);
        return false;
}

bool tree_put(struct tree *tree, pid_t pid)
{
        char file[sizeof(tree->path) + 16], text[16];
        (void) snprintf(file, sizeof(file), "%s/cgroup.procs", tree->path);
        auto_close int fd = open(file, O_WRONLY | O_CLOEXEC);
        int n = snprintf(text, sizeof(text), "%d", (int) pid);
        return fd >= 0 && write(fd, text, (size_t) n) == n;
}

bool tree_find_scope(struct tree *tree, pid_t pid)
{
        char theirs[512], ours[512];
        *tree = (struct tree){ .kind = TREE_SCOPE };
        return cgroup_of(pid, theirs, sizeof(theirs)) && cgroup_of(getpid(), ours, sizeof(ours)) &&
               strcmp(theirs, ours) != 0 && folder_of(theirs, tree->path, sizeof(tree->path)) && inode_of(tree);
}

static size_t count_cgroup(const struct tree *tree, pid_t *ret_first)
{
        char file[sizeof(tree->path) + 16];
        size_t n = 0;
        int pid;
        (void) snprintf(file, sizeof(file), "%s/cgroup.procs", tree->path);
        auto_call(fclosep) FILE *f = fopen(file, "re");
        while (f && fscanf(f, "%d", &pid) == 1)
                if (n++ == 0)
                        *ret_first = pid;
        return n;
}

size_t tree_count(const struct tree *tree, pid_t *ret_first)
{
        *ret_first = 0;
        if (tree->kind != TREE_DESCENT)
                return count_cgroup(tree, ret_first);
        siginfo_t info = { 0 };
        while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0)
                info.si_pid = 0; /* one more that ended */
        return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 ? 1 : 0;
}

/* Whose child it is; 0 = it is gone. The name before that may hold anything, so what counts is behind its last bracket. */
static pid_t parent_of(pid_t pid)
{
        char file[64], text[512];
        uint64_t parent;
        (void) snprintf(file, sizeof(file), "/proc/%d/stat", (int) pid);
        auto_close int fd = open(file, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
        if (n <= 0)
                return 0;
        text[n] = '\0';
        char *at = strrchr(text, ')');
        if (!at || strlen(at) < 5)
                return 0;
        at += 4; /* ") S " */
        at[strcspn(at, " ")] = '\0';
        return parse_u64("ppid", at, 0, INT32_MAX, &parent, NULL) < 0 ? 0 : (pid_t) parent;
}

pid_t tree_any(const struct tree *tree)
{
        pid_t first = 0;

        if (tree_count(tree, &first) == 0 || tree->kind != TREE_DESCENT)
                return first;
        auto_call(closedirp) DIR *dir = opendir("/proc");
        const struct dirent *entry;
        while (dir && (entry = readdir(dir))) {
                uint64_t pid;
                if (parse_u64("pid", entry->d_name, 2, INT32_MAX, &pid, NULL) == 0 &&
                    parent_of((pid_t) pid) == getpid())
                        return (pid_t) pid;
        }
        return 0;
}

static bool is_of(const struct tree *tree, pid_t root, pid_t pid)
{
        char cgroup[512], folder[sizeof(tree->path)];
        if (tree->kind != TREE_DESCENT)
                return cgroup_of(pid, cgroup, sizeof(cgroup)) && folder_of(cgroup, folder, sizeof(folder)) &&
                       strncmp(folder, tree->path, strlen(tree->path)) == 0 &&
                       strchr("/", folder[strlen(tree->path)]) != NULL; /* its end, or a folder below */
        for (int hops = 0; pid > 1 && hops < DESCENT_MAX; hops++) {
                if (pid == root)
                        return true;
                pid = parent_of(pid);
        }
        return false;
}

size_t tree_signal(const struct tree *tree, pid_t root, int signal_number)
{
        auto_call(closedirp) DIR *dir = opendir("/proc");
        const struct dirent *entry;
        size_t n = 0;
        while (dir && (entry = readdir(dir))) {
                uint64_t pid;
                if (parse_u64("pid", entry->d_name, 2, INT32_MAX, &pid, NULL) < 0 || !is_of(tree, root, (pid_t) pid) ||
                    (pid_t) pid == getpid())
                        continue;
                auto_close int fd = pidfd_open((pid_t) pid, 0);
                n += fd >= 0 && is_of(tree, root, (pid_t) pid) && pidfd_send_signal(fd, signal_number, NULL, 0) == 0;
        }
        return n;
}

void tree_remove(struct tree *tree)
{
        if (tree->kind == TREE_CGROUP && tree->path[0] != '\0')
                (void) rmdir(tree->path); /* not while a worker is in it: the next wrapper sweeps */
        tree->path[0] = '\0';
}

/* "lessor-L17.4711": the wrapper's pid; 0 = not one of ours. */
static pid_t wrapper_of(const char *name)
{
        uint64_t pid;
        const char *dot = strchr(name, '.');
        if (strncmp(name, folder_prefix, sizeof(folder_prefix) - 1) != 0 || !dot ||
            parse_u64("pid", dot + 1, 1, INT32_MAX, &pid, NULL) < 0)
                return 0;
        return (pid_t) pid;
}

void tree_sweep(void)
{
        char folder[400];
        if (!own_folder(folder, sizeof(folder)))
                return;
        auto_call(closedirp) DIR *dir = opendir(folder);
        const struct dirent *entry;
        while (dir && (entry = readdir(dir))) {
                char proc[32];
                pid_t pid = wrapper_of(entry->d_name);
                if (pid == 0)
                        continue;
                (void) snprintf(proc, sizeof(proc), "/proc/%d", (int) pid);
                if (access(proc, F_OK) < 0) /* a living one may be about to use it */
                        (void) unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
        }
}
