/* SPDX-License-Identifier: Apache-2.0 */
#include "store/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "base/cleanup.h"

static const char *const companions[] = { "", "-wal", "-shm", "-journal" };
enum { COMPANION_N = sizeof(companions) / sizeof(*companions), NAMES_TRIED_MAX = 1000 };

static int name_make(char *buf, size_t size, const char *base, const char *suffix, struct error *err)
{
        int n = snprintf(buf, size, "%s%s", base, suffix);
        if (n < 0 || (size_t) n >= size)
                return error_set(err, ENAMETOOLONG, "the name of %s%s is too long", base, suffix);
        return 0;
}

static bool name_is_taken(const char *base)
{
        char name[PATH_MAX];
        struct stat st;

        for (size_t i = 0; i < COMPANION_N; i++)
                if (name_make(name, sizeof(name), base, companions[i], NULL) < 0 || lstat(name, &st) == 0)
                        return true;
        return false;
}

void aside_directory_sync(const char *path)
{
        char dir[PATH_MAX];

        if (snprintf(dir, sizeof(dir), "%s", path) >= (int) sizeof(dir))
                return;
        char *slash = strrchr(dir, '/');
        if (slash)
                slash[slash == dir ? 1 : 0] = '\0';
        auto_close int fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
                (void) fsync(fd); /* the renames themselves stood; only a power cut right now could undo them */
}

static int base_find(const char *path, uint64_t wall_ms, char *ret_name, size_t name_size, struct error *err)
{
        time_t seconds = (time_t) (wall_ms / 1000);
        struct tm tm;
        char date[32], suffix[64];

        if (!gmtime_r(&seconds, &tm) || strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", &tm) == 0)
                (void) snprintf(date, sizeof(date), "undated");
        for (int i = 1; i <= NAMES_TRIED_MAX; i++) {
                if (i == 1)
                        (void) snprintf(suffix, sizeof(suffix), ".aside-%s", date);
                else
                        (void) snprintf(suffix, sizeof(suffix), ".aside-%s.%d", date, i);
                int r = name_make(ret_name, name_size, path, suffix, err);
                if (r < 0)
                        return r;
                if (!name_is_taken(ret_name))
                        return 0;
        }
        return error_set(err, EEXIST, "%s: %d files of today are already aside; clear them away", path,
                         NAMES_TRIED_MAX);
}

int aside_move(const char *path, uint64_t wall_ms, char *ret_name, size_t name_size, struct error *err)
{
        char from[PATH_MAX], to[PATH_MAX];
        int r = base_find(path, wall_ms, ret_name, name_size, err);
        if (r < 0)
                return r;

        for (size_t i = 0; i < COMPANION_N; i++) {
                r = name_make(from, sizeof(from), path, companions[i], err);
                if (r < 0)
                        return r;
                r = name_make(to, sizeof(to), ret_name, companions[i], err);
                if (r < 0)
                        return r;
                if (rename(from, to) < 0 && errno != ENOENT)
                        return error_errno(err, errno, "moving %s aside to %s", from, to);
        }
        aside_directory_sync(path);
        return 0;
}

static bool file_has_bytes(const char *path, const char *suffix)
{
        char name[PATH_MAX];
        struct stat st;

        return name_make(name, sizeof(name), path, suffix, NULL) == 0 && lstat(name, &st) == 0 && st.st_size > 0;
}

bool aside_can_roll_back(const char *path)
{
        return file_has_bytes(path, "-journal");
}

bool aside_is_orphaned(const char *path)
{
        return !file_has_bytes(path, "") && file_has_bytes(path, "-wal");
}
