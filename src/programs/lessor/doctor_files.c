/* SPDX-License-Identifier: Apache-2.0 */
/* What the checks read: small files of the kernel, and who runs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/number.h"
#include "programs/lessor/doctor.h"

enum { PATH_MAX_BYTES = 512, STATUS_MAX = 8192, COMM_MAX = 64, PID_MAX = 4194304 };

const char *doctor_root(void)
{
        const char *root = secure_getenv("LESSOR_DOCTOR_ROOT");
        return root && root[0] == '/' ? root : "";
}

const char *doctor_path(const char *path, char *buf, size_t size)
{
        (void) snprintf(buf, size, "%s%s", doctor_root(), path);
        return buf;
}

bool doctor_read(const char *path, char *buf, size_t size)
{
        char whole[PATH_MAX_BYTES];
        size_t n = 0;

        buf[0] = '\0';
        auto_close int fd = open(doctor_path(path, whole, sizeof(whole)), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return false;
        while (n < size - 1) {
                ssize_t part = read(fd, buf + n, size - 1 - n);
                if (part < 0 && errno == EINTR)
                        continue;
                if (part <= 0)
                        break;
                n += (size_t) part;
        }
        while (n > 0 && buf[n - 1] == '\n')
                n--;
        buf[n] = '\0';
        return true;
}

bool doctor_exists(const char *path)
{
        char whole[PATH_MAX_BYTES];
        struct stat st;
        return stat(doctor_path(path, whole, sizeof(whole)), &st) == 0;
}

static bool is_called(const char *comm, const char *wanted)
{
        size_t n = strlen(wanted);
        if (n > 0 && wanted[n - 1] == '*')
                return strncmp(comm, wanted, n - 1) == 0;
        return strcmp(comm, wanted) == 0;
}

size_t doctor_find_processes(const char *comm, pid_t *ret, size_t max)
{
        char proc[PATH_MAX_BYTES], path[64], called[COMM_MAX];
        size_t n = 0;
        uint64_t pid;

        DIR *dir = opendir(doctor_path("/proc", proc, sizeof(proc)));
        if (!dir)
                return 0;
        for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
                if (parse_u64("pid", entry->d_name, 1, PID_MAX, &pid, NULL) < 0)
                        continue;
                (void) snprintf(path, sizeof(path), "/proc/%" PRIu64 "/comm", pid);
                if (!doctor_read(path, called, sizeof(called)) || !is_called(called, comm))
                        continue;
                if (n < max)
                        ret[n] = (pid_t) pid;
                n++;
        }
        (void) closedir(dir);
        return n;
}

bool doctor_mask(pid_t pid, const char *key, uint64_t *ret)
{
        char path[64], text[STATUS_MAX], *end;
        (void) snprintf(path, sizeof(path), "/proc/%d/status", (int) pid);
        if (!doctor_read(path, text, sizeof(text)))
                return false;
        const char *at = strstr(text, key);
        if (!at)
                return false;
        errno = 0;
        *ret = strtoull(at + strlen(key), &end, 16);
        return errno == 0 && (*end == '\n' || *end == '\0');
}
