/* SPDX-License-Identifier: Apache-2.0 */
#include "base/proc_text.h"
#include <errno.h>
#include <fcntl.h>
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
