/* SPDX-License-Identifier: Apache-2.0 */
#include "base/root_file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cleanup.h"

static int check_owner(const char *path, const struct stat *st, struct error *err)
{
        bool sticky = S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) != 0;

        if (st->st_uid == 0 && ((st->st_mode & (S_IWGRP | S_IWOTH)) == 0 || sticky))
                return 0;
        return error_set(err, EPERM, "%s can be changed by others than root; chown root and chmod go-w it", path);
}

/* Whoever can write into its folder can take the file away, and what root wrote in it is no more. */
static int check_folder(const char *path, struct error *err)
{
        const char *slash = strrchr(path, '/');
        char folder[4096];
        struct stat st;

        (void) snprintf(folder, sizeof(folder), "%.*s/.", slash ? (int) (slash - path) : 1, slash ? path : ".");
        if (stat(folder, &st) < 0)
                return errno == ENOENT ? 0 : error_errno(err, errno, "looking at %s", folder);
        return check_owner(folder, &st, err);
}

static int read_file(const char *path, char *text, size_t size, struct error *err)
{
        auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        struct stat st;

        if (fd < 0)
                return error_errno(err, errno, "reading %s", path);
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return error_set(err, EINVAL, "%s is no regular file", path);
        int r = check_owner(path, &st, err);
        if (r < 0)
                return r;
        ssize_t n = read(fd, text, size);
        if (n < 0)
                return error_errno(err, errno, "reading %s", path);
        if ((size_t) n == size || memchr(text, '\0', (size_t) n))
                return error_set(err, EINVAL, "%s is longer than %zu bytes, or no text", path, size - 1);
        text[n] = '\0';
        return 0;
}

int root_file_read(const char *path, char *text, size_t size, struct error *err)
{
        int r = check_folder(path, err);

        return r < 0 ? r : read_file(path, text, size, err);
}

int root_file_long_line(const char *text, size_t max, bool comments)
{
        for (int line = 1; *text; line++) {
                size_t n = strcspn(text, "\n");
                char first = text[strspn(text, " \t")];
                if (n > max && (comments || (first != '#' && first != ';')))
                        return line;
                text += n + (text[n] == '\n');
        }
        return 0;
}
