/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/terminals.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/escape.h"

enum { PTY_FIRST = 136, PTY_LAST = 143 }; /* major numbers of Unix98 pseudo-terminals (admin-guide/devices.txt) */

static bool is_theirs(const struct stat *st, uint32_t uid)
{
        unsigned number = major(st->st_rdev);

        return S_ISCHR(st->st_mode) && number >= PTY_FIRST && number <= PTY_LAST && st->st_uid == uid &&
               (st->st_mode & S_IWGRP) != 0;
}

static bool tell(int folder, const char *name, uint32_t uid, const char *text, size_t n)
{
        struct stat st;

        if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !is_theirs(&st, uid))
                return false;
        auto_close int fd = openat(folder, name, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        /* Again, of what was opened. */
        return fd >= 0 && fstat(fd, &st) == 0 && is_theirs(&st, uid) && write(fd, text, n) == (ssize_t) n;
}

unsigned terminals_tell(const char *path, uint32_t uid, const char *line)
{
        char text[TERMINAL_LINE_MAX + 8];
        unsigned n_told = 0;

        if (!text_is_plain(line, strlen(line)) || strlen(line) >= TERMINAL_LINE_MAX)
                return 0;
        int n = snprintf(text, sizeof(text), "\r\n%s\r\n", line);
        int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = folder >= 0 ? fdopendir(folder) : NULL;
        if (!dir) {
                if (folder >= 0)
                        (void) close(folder);
                return 0;
        }
        for (const struct dirent *e = readdir(dir); e && n_told < TERMINALS_MOST; e = readdir(dir))
                if (e->d_name[0] >= '0' && e->d_name[0] <= '9')
                        n_told += tell(dirfd(dir), e->d_name, uid, text, (size_t) n);
        (void) closedir(dir);
        return n_told;
}
