/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own_folder.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cleanup.h"

int own_folder_open(const char *path, mode_t never, int *ret_fd, struct error *err)
{
        struct stat st;

        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return error_errno(err, errno, "making the folder %s", path);
        auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
                return error_set(err, EPERM, "%s is no folder; remove it", path);
        if (fd < 0 || fstat(fd, &st) < 0)
                return error_errno(err, errno, "opening the folder %s", path);
        if (st.st_uid != geteuid() || (st.st_mode & never) != 0)
                return error_set(err, EPERM, "%s is not a folder for its owner alone; chmod %s it, or remove it", path,
                                 never & S_IRGRP ? "0700" : "go-w");
        *ret_fd = take_fd(fd);
        return 0;
}

int own_folder_of_program(char *ret, size_t size, struct error *err)
{
        ssize_t n = readlink("/proc/self/exe", ret, size - 1);
        char *slash = n > 0 ? memrchr(ret, '/', (size_t) n) : NULL;

        if (!slash)
                return error_set(err, EIO, "/proc does not tell where this program lies");
        *slash = '\0';
        return 0;
}

int own_folder_boot_id(char ret[BOOT_ID_SIZE], struct error *err)
{
        auto_close int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

        ret[BOOT_ID_SIZE - 1] = '\0';
        if (fd >= 0 && read(fd, ret, BOOT_ID_SIZE - 1) == BOOT_ID_SIZE - 1)
                return 0;
        return error_set(err, EIO, "/proc does not tell the boot id");
}
