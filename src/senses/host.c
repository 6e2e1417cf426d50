/* SPDX-License-Identifier: Apache-2.0 */
#include "senses/host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/proc_text.h"
#include "senses/proc.h"

enum {
        SMALL_FILE_MAX = 4096,
        CGROUP_FILE_MAX = 2 * EYES_PATH_SIZE,
        MOUNTINFO_MAX = 1024 * 1024, /* thousands of container mounts are normal */
};

/* v1 keeps its limit in pages and has no word for none: the most it can count, whatever the page size. */
#define V1_NO_LIMIT ((uint64_t) INT64_MAX - (1 << 20))

/* ---- text ---- */

static const char *line_end(const char *at, const char *end)
{
        const char *nl = memchr(at, '\n', (size_t) (end - at));
        return nl ? nl : end;
}

static bool starts_with(const char *at, const char *end, const char *prefix)
{
        size_t n = strlen(prefix);
        return (size_t) (end - at) >= n && memcmp(at, prefix, n) == 0;
}

/* Digits at *at, which moves behind them. */
static bool take_u64(const char **at, const char *end, uint64_t *ret)
{
        const char *p = *at;
        uint64_t v = 0;

        for (; p < end && *p >= '0' && *p <= '9'; p++)
                if (__builtin_mul_overflow(v, 10U, &v) || __builtin_add_overflow(v, (unsigned) (*p - '0'), &v))
                        return false;
        if (p == *at)
                return false;
        *at = p;
        *ret = v;
        return true;
}

/* "   24684084 kB" */
static bool kilobytes(const char *at, const char *end, uint64_t *ret_bytes)
{
        uint64_t kb;

        while (at < end && *at == ' ')
                at++;
        if (!take_u64(&at, end, &kb) || end - at != 3 || memcmp(at, " kB", 3) != 0)
                return false;
        return !__builtin_mul_overflow(kb, 1024U, ret_bytes);
}

int host_parse_meminfo(const void *text, size_t n, struct host_memory *ret)
{
        static const char total[] = "MemTotal:", available[] = "MemAvailable:";
        struct host_memory found = { 0 };
        bool has_total = false, has_available = false;
        const char *at = text, *end = n > 0 ? at + n : at;

        for (; at < end && !(has_total && has_available); at++) {
                const char *eol = line_end(at, end);
                bool is_total = starts_with(at, eol, total), is_available = starts_with(at, eol, available);
                if (is_total && !kilobytes(at + sizeof(total) - 1, eol, &found.total_bytes))
                        return -EBADMSG;
                if (is_available && !kilobytes(at + sizeof(available) - 1, eol, &found.available_bytes))
                        return -EBADMSG;
                has_total = has_total || is_total;
                has_available = has_available || is_available;
                at = eol;
        }
        if (!has_total || !has_available)
                return -ENOENT;
        if (found.total_bytes == 0 || found.available_bytes > found.total_bytes)
                return -EBADMSG;
        *ret = found;
        return 0;
}

/* "some avg10=1.53 avg60=…": two digits behind the point, always. */
int host_parse_pressure(const void *text, size_t n, uint64_t *ret_milli)
{
        static const char some[] = "some avg10=";
        const char *at = text, *end = n > 0 ? at + n : at;
        uint64_t whole = 0;

        for (; at < end; at++) {
                const char *eol = line_end(at, end);
                if (!starts_with(at, eol, some)) {
                        at = eol;
                        continue;
                }
                at += sizeof(some) - 1;
                if (!take_u64(&at, eol, &whole) || whole > 100 || eol - at < 3 || at[0] != '.' || at[1] < '0' ||
                    at[1] > '9' || at[2] < '0' || at[2] > '9' || (eol - at > 3 && at[3] != ' '))
                        return -EBADMSG;
                *ret_milli = whole * 1000 + (uint64_t) (at[1] - '0') * 100 + (uint64_t) (at[2] - '0') * 10;
                return 0;
        }
        return -ENOENT;
}

bool host_is_short(bool was, bool known, uint64_t some_milli)
{
        return known && some_milli >= 1000 * (uint64_t) (was ? HOST_RELIEF_PERCENT : HOST_PRESSURE_PERCENT);
}

int host_parse_limit(const void *text, size_t n, uint64_t *ret_bytes)
{
        const char *at = text, *end = n > 0 ? at + n : at, *eol = n > 0 ? line_end(at, end) : end;
        uint64_t v;

        if (eol - at == 3 && memcmp(at, "max", 3) == 0) {
                *ret_bytes = HOST_NO_LIMIT;
                return 0;
        }
        if (!take_u64(&at, eol, &v) || at != eol)
                return -EBADMSG;
        *ret_bytes = v >= V1_NO_LIMIT ? HOST_NO_LIMIT : v;
        return 0;
}

/* Is @word one of the names between commas? */
static bool has_word(const char *at, const char *end, const char *word)
{
        size_t n = strlen(word);

        while (at < end) {
                const char *comma = memchr(at, ',', (size_t) (end - at));
                const char *stop = comma ? comma : end;
                if ((size_t) (stop - at) == n && memcmp(at, word, n) == 0)
                        return true;
                at = comma ? comma + 1 : end;
        }
        return false;
}

static int keep_path(const char *at, const char *end, char *ret, size_t size)
{
        size_t n = (size_t) (end - at);

        if (n == 0 || at[0] != '/' || memchr(at, '\0', n))
                return -EBADMSG;
        if (n >= size)
                return -ENAMETOOLONG;
        memcpy(ret, at, n);
        ret[n] = '\0';
        return 0;
}

int host_parse_cgroup_v1(const void *text, size_t n, char *ret_path, size_t path_size)
{
        const char *at = text, *end = n > 0 ? at + n : at;

        for (; at < end; at++) {
                const char *eol = line_end(at, end);
                const char *list = memchr(at, ':', (size_t) (eol - at));
                const char *path = list ? memchr(list + 1, ':', (size_t) (eol - list - 1)) : NULL;
                if (!path)
                        return -EBADMSG;
                if (has_word(list + 1, path, "memory"))
                        return keep_path(path + 1, eol, ret_path, path_size);
                at = eol;
        }
        return -ENOENT;
}

/* Up to the next blank; the rest of the line stays in *at. */
static bool next_field(const char **at, const char *end, const char **ret, const char **ret_end)
{
        const char *blank = memchr(*at, ' ', (size_t) (end - *at));

        if (*at == end)
                return false;
        *ret = *at;
        *ret_end = blank ? blank : end;
        *at = blank ? blank + 1 : end;
        return *ret_end > *ret;
}

/* A mount point with a blank in it is written \040: such a one is passed over, nobody mounts cgroups there. */
static bool is_v1_memory(const char *at, const char *end, char *ret_point, char *ret_root, size_t size)
{
        const char *field[5], *stop[5], *word, *word_end, *fs, *fs_end;

        for (size_t i = 0; i < 5; i++)
                if (!next_field(&at, end, &field[i], &stop[i]))
                        return false;
        do { /* optional fields, then "-" */
                if (!next_field(&at, end, &word, &word_end))
                        return false;
        } while (word_end - word != 1 || *word != '-');
        if (!next_field(&at, end, &fs, &fs_end) || fs_end - fs != 6 || memcmp(fs, "cgroup", 6) != 0)
                return false;
        if (!next_field(&at, end, &word, &word_end) || !next_field(&at, end, &word, &word_end))
                return false;
        return has_word(word, word_end, "memory") && !memchr(field[4], '\\', (size_t) (stop[4] - field[4])) &&
               keep_path(field[4], stop[4], ret_point, size) == 0 && keep_path(field[3], stop[3], ret_root, size) == 0;
}

int host_parse_mount_v1(const void *text, size_t n, char *ret_point, char *ret_root, size_t each_size)
{
        const char *at = text, *end = n > 0 ? at + n : at;

        for (; at < end; at++) {
                const char *eol = line_end(at, end);
                if (is_v1_memory(at, eol, ret_point, ret_root, each_size))
                        return 0;
                at = eol;
        }
        return -ENOENT;
}

/* ---- files ---- */

static int read_below(const char *dir, const char *file, char *buf, size_t size, size_t *ret_n)
{
        char path[2 * EYES_PATH_SIZE + 64];
        bool cut = false;
        int n = snprintf(path, sizeof(path), "%s/%s", dir, file);

        if (n < 0 || (size_t) n >= sizeof(path))
                return -ENAMETOOLONG;
        return proc_read(AT_FDCWD, path, buf, size, ret_n, &cut);
}

int host_read_memory(const char *proc_root, struct host_memory *ret)
{
        char buf[SMALL_FILE_MAX];
        size_t n = 0;
        int r = read_below(proc_root, "meminfo", buf, sizeof(buf), &n);

        return r < 0 ? r : host_parse_meminfo(buf, n, ret);
}

int host_read_pressure(const char *proc_root, uint64_t *ret_milli)
{
        char buf[SMALL_FILE_MAX];
        size_t n = 0;
        int r = read_below(proc_root, "pressure/memory", buf, sizeof(buf), &n);

        return r < 0 ? r : host_parse_pressure(buf, n, ret_milli);
}

void host_limits_find(struct host_limits *ret, const char *proc_root)
{
        auto_free char *mounts = malloc(MOUNTINFO_MAX);
        size_t n = 0;

        *ret = (struct host_limits){ 0 };
        if (!mounts || read_below(proc_root, "self/mountinfo", mounts, MOUNTINFO_MAX, &n) < 0)
                return;
        ret->v1_known = host_parse_mount_v1(mounts, n, ret->v1_point, ret->v1_root, sizeof(ret->v1_point)) == 0;
        ret->v2_known = proc_parse_cgroup_mount(mounts, n, ret->v2_point, ret->v2_root, sizeof(ret->v2_point)) == 0;
}

static int read_limit(const char *dir, const char *file, uint64_t *ret)
{
        char buf[64];
        size_t n = 0;
        int r = read_below(dir, file, buf, sizeof(buf), &n);

        return r < 0 ? r : host_parse_limit(buf, n, ret);
}

/*
 * From the process's cgroup up to the mount: @dir is cut shorter step by step. A folder without the files has no limit of its
 * own (the root, or the controller is not switched on there); one whose files are not what they should be is unknown.
 */
static uint64_t room_below(const char *point, const char *root, const char *path, const char *max, const char *current)
{
        char dir[2 * EYES_PATH_SIZE];
        size_t n_root = strcmp(root, "/") == 0 ? 0 : strlen(root), n_point = strlen(point);
        uint64_t room = HOST_NO_LIMIT;

        if (strncmp(path, root, n_root) != 0)
                return 0; /* not below what is mounted here */
        int n = snprintf(dir, sizeof(dir), "%s%s", point, path + n_root);
        if (n < 0 || (size_t) n >= sizeof(dir))
                return 0;
        for (;;) {
                uint64_t most, used;
                int r = read_limit(dir, max, &most);
                if (r == 0 && most != HOST_NO_LIMIT)
                        r = read_limit(dir, current, &used);
                if (r < 0 && r != -ENOENT)
                        return 0;
                if (r == 0 && most != HOST_NO_LIMIT) {
                        uint64_t left = most > used ? most - used : 1;
                        room = left < room ? left : room;
                }
                char *slash = strrchr(dir, '/');
                if (!slash || (size_t) (slash - dir) < n_point)
                        return room;
                *slash = '\0';
        }
}

uint64_t host_room_of(const struct host_limits *limits, const char *proc_root, uint32_t pid)
{
        char text[CGROUP_FILE_MAX], path[EYES_PATH_SIZE];
        uint64_t v1 = HOST_NO_LIMIT, v2 = HOST_NO_LIMIT;
        auto_close int pid_fd = -1;
        size_t n = 0;
        bool cut = false;

        if (!limits->v1_known && !limits->v2_known)
                return HOST_NO_LIMIT;
        if (proc_open_pid(proc_root, pid, &pid_fd) < 0 ||
            proc_read(pid_fd, "cgroup", text, sizeof(text), &n, &cut) < 0 || cut)
                return 0;
        if (limits->v1_known && host_parse_cgroup_v1(text, n, path, sizeof(path)) == 0)
                v1 = room_below(limits->v1_point, limits->v1_root, path, "memory.limit_in_bytes",
                                "memory.usage_in_bytes");
        if (limits->v2_known && proc_text_cgroup(text, n, path, sizeof(path)) == 0)
                v2 = room_below(limits->v2_point, limits->v2_root, path, "memory.max", "memory.current");
        return v1 < v2 ? v1 : v2;
}
