/* SPDX-License-Identifier: Apache-2.0 */
#include "base/proc_text.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "base/cleanup.h"

bool proc_text_read(int dir, const char *name, char *buf, size_t size, size_t *ret_n)
{
        auto_close int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        size_t n = 0;
        ssize_t got;

        if (fd < 0)
                return false;
        while (n < size - 1 && (got = read(fd, buf + n, size - 1 - n)) != 0) {
                if (got < 0 && errno != EINTR)
                        return false;
                n += got > 0 ? (size_t) got : 0;
        }
        buf[n] = '\0';
        *ret_n = n;
        return n < size - 1;
}

int proc_text_cgroup(const void *text, size_t n, char *ret_path, size_t path_size)
{
        const char *line = text, *end = n > 0 ? line + n : line, *stop;

        for (; line < end; line = stop < end ? stop + 1 : end) {
                stop = memchr(line, '\n', (size_t) (end - line));
                stop = stop ? stop : end;
                size_t len = (size_t) (stop - line);
                if (len < 3 || memcmp(line, "0::", 3) != 0)
                        continue;
                if (len == 3 || line[3] != '/' || memchr(line, '\0', len))
                        return -EBADMSG;
                if (len - 3 >= path_size)
                        return -ENAMETOOLONG;
                memcpy(ret_path, line + 3, len - 3);
                ret_path[len - 3] = '\0';
                return 0;
        }
        return -ENOENT;
}

bool proc_text_number(const char **at, uint64_t *ret)
{
        uint64_t v = 0;
        const char *p = *at;

        if (*p < '0' || *p > '9')
                return false;
        for (; *p >= '0' && *p <= '9'; p++)
                if (__builtin_mul_overflow(v, 10U, &v) || __builtin_add_overflow(v, (unsigned) (*p - '0'), &v))
                        return false;
        *at = p + (*p == ' ' || *p == '\t');
        *ret = v;
        return true;
}

const char *proc_text_skip(const char *p, unsigned n)
{
        while (n > 0 && *p)
                n -= *p++ == ' ';
        return p;
}
