/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process_file.h"
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "base/cleanup.h"

enum { FOLDER_SIZE = 1024, WHOLE_SIZE = 2048 };

static int open_below(int root, const char *path, bool wait)
{
        struct open_how how = { .flags = O_PATH | O_CLOEXEC,
                                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | (wait ? 0 : RESOLVE_CACHED) };

        return (int) syscall(SYS_openat2, root, path, &how, sizeof(how));
}

static bool look(int fd, struct statx *ret)
{
        const unsigned wanted = STATX_INO | STATX_TYPE;

        return fd >= 0 && statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, wanted, ret) == 0 &&
               (ret->stx_mask & wanted) == wanted;
}

static bool same_file(const struct statx *a, const struct statx *b)
{
        return a->stx_ino == b->stx_ino && a->stx_dev_major == b->stx_dev_major && a->stx_dev_minor == b->stx_dev_minor;
}

/* Its working folder by name, as it stands below its root; false where that name leads elsewhere (in a chroot, or removed). */
static bool folder_name(int proc_dir, int root, bool wait, char ret[FOLDER_SIZE])
{
        auto_close int cwd = openat(proc_dir, "cwd", O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct statx here, named;
        ssize_t n = readlinkat(proc_dir, "cwd", ret, FOLDER_SIZE);

        if (n <= 0 || n >= FOLDER_SIZE)
                return false;
        ret[n] = '\0';
        auto_close int again = open_below(root, ret, wait);
        return look(cwd, &here) && look(again, &named) && same_file(&here, &named);
}

bool process_file_look(int proc_dir, const char *path, bool wait, uint64_t *ret_dev, uint64_t *ret_inode)
{
        char folder[FOLDER_SIZE] = "", whole[WHOLE_SIZE];
        struct statx st;

        auto_close int root = openat(proc_dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (path[0] == '\0' || root < 0 || (path[0] != '/' && !folder_name(proc_dir, root, wait, folder)))
                return false;
        int n = snprintf(whole, sizeof(whole), "%s/%s", folder, path);
        auto_close int fd = n < WHOLE_SIZE ? open_below(root, whole, wait) : -1;
        if (!look(fd, &st) || !S_ISREG(st.stx_mode))
                return false;
        *ret_dev = makedev(st.stx_dev_major, st.stx_dev_minor);
        *ret_inode = st.stx_ino;
        return true;
}
