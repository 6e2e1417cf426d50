/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cgroup2.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/clock.h"

enum { EVENTS_MAX = 256 };

int cgroup2_open_root(void)
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

int cgroup2_open(int root, const char *path)
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

int cgroup2_write(int folder, const char *file, const char *value)
{
        auto_close int fd = openat(folder, file, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0 || write(fd, value, strlen(value)) < 0)
                return -errno;
        return 0;
}

bool cgroup2_has_kill(int folder)
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

int cgroup2_wait(int folder, const char *event, char value, uint32_t wait_ms)
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
