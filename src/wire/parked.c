/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/parked.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/own_folder.h"

enum { NAME_SIZE = RECORD_NAME_SIZE + 8, READ_TRIES = 100 };

/* ---- the folder ---- */

static int give_to_readers(int folder, gid_t reader, struct error *err)
{
        if (reader == (gid_t) -1)
                return 0;
        if (fchown(folder, (uid_t) -1, reader) < 0 || fchmod(folder, S_ISGID | S_IRWXU | S_IRGRP | S_IXGRP) < 0)
                return error_errno(err, errno, "giving the folder of parked processes to its readers");
        return 0;
}

int parked_open(const char *path, gid_t reader, int *ret_folder, struct error *err)
{
        auto_close int folder = -1;

        int r = own_folder_open(path, S_IWGRP | S_IWOTH, &folder, err);
        if (r == 0)
                r = give_to_readers(folder, reader, err);
        if (r == 0)
                *ret_folder = take_fd(folder);
        return r;
}

int parked_open_to_read(const char *path, int *ret_folder, struct error *err)
{
        *ret_folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return *ret_folder >= 0 ? 0 : error_errno(err, errno, "opening the folder %s", path);
}

/* ---- one record ---- */

static int check_file(int folder, int fd, struct error *err)
{
        struct stat of_folder, st;

        if (fstat(folder, &of_folder) < 0 || fstat(fd, &st) < 0)
                return error_errno(err, errno, "looking at a record");
        if (st.st_nlink == 0)
                return -EAGAIN; /* replaced by its next step, or removed, since it was opened */
        if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_uid != of_folder.st_uid ||
            (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
                return error_set(err, EPERM, "a record that is not a file of the folder's owner alone");
        return 0;
}

static int read_once(int folder, uint32_t pid, uint64_t start_ticks, struct record *ret, struct error *err)
{
        char name[RECORD_NAME_SIZE], text[RECORD_MAX + 1], boot_id[RECORD_BOOT_ID_SIZE];

        memset(ret, 0, sizeof(*ret));
        record_name(pid, start_ticks, name);
        auto_close int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 && errno == ELOOP)
                return error_set(err, EPERM, "record %s is a link", name);
        if (fd < 0)
                return error_errno(err, errno, "opening record %s", name);
        int r = check_file(folder, fd, err);
        if (r < 0)
                return r;
        ssize_t n = read(fd, text, sizeof(text));
        if (n < 0)
                return error_errno(err, errno, "reading record %s", name);
        r = record_parse(text, (size_t) n, ret, err);
        if (r < 0)
                return r;
        if (ret->pid != pid || ret->start_ticks != start_ticks)
                r = error_set(err, EBADMSG, "record %s is of another process", name);
        else
                r = own_folder_boot_id(boot_id, err);
        if (r == 0 && strcmp(boot_id, ret->boot_id) != 0)
                r = error_set(err, ESTALE, "record %s is of another boot", name);
        if (r < 0 && r != -ESTALE)
                memset(ret, 0, sizeof(*ret));
        return r;
}

int parked_read(int folder, uint32_t pid, uint64_t start_ticks, struct record *ret, struct error *err)
{
        int r = -EAGAIN;

        for (unsigned i = 0; r == -EAGAIN && i < READ_TRIES; i++)
                r = read_once(folder, pid, start_ticks, ret, err);
        return r == -EAGAIN ? error_set(err, EBUSY, "the record of pid %" PRIu32 " does not come to rest", pid) : r;
}

static int write_file(int folder, const char *name, const char *text, size_t n, struct error *err)
{
        struct stat st;

        if (fstat(folder, &st) < 0)
                return error_errno(err, errno, "looking at the folder of records");
        (void) unlinkat(folder, name, 0); /* of who was killed while writing */
        auto_close int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return error_errno(err, errno, "making record %s", name);
        mode_t mode = st.st_mode & S_IRGRP ? 0640 : 0600; /* the group comes with the folder */
        if (fchmod(fd, mode) < 0 || write(fd, text, n) != (ssize_t) n)
                return error_errno(err, errno ? errno : ENOSPC, "writing record %s", name);
        return 0;
}

int parked_write(int folder, struct record *record, struct error *err)
{
        char name[RECORD_NAME_SIZE], temporary[NAME_SIZE], text[RECORD_MAX];
        struct timespec now;
        size_t n = 0;

        int r = own_folder_boot_id(record->boot_id, err);
        if (r < 0)
                return r;
        (void) clock_gettime(CLOCK_REALTIME, &now);
        record->time_s = (uint64_t) now.tv_sec;
        r = record_format(record, text, sizeof(text), &n, err);
        if (r < 0)
                return r;
        record_name(record->pid, record->start_ticks, name);
        (void) snprintf(temporary, sizeof(temporary), ".%s.new", name);
        errno = 0;
        r = write_file(folder, temporary, text, n, err);
        if (r == 0 && renameat(folder, temporary, folder, name) < 0)
                r = error_errno(err, errno, "renaming record %s", name);
        if (r < 0)
                (void) unlinkat(folder, temporary, 0);
        return r;
}

int parked_remove(int folder, uint32_t pid, uint64_t start_ticks)
{
        char name[RECORD_NAME_SIZE];

        record_name(pid, start_ticks, name);
        return unlinkat(folder, name, 0) == 0 || errno == ENOENT ? 0 : -errno;
}

int parked_set_aside(int folder, uint32_t pid, uint64_t start_ticks)
{
        char name[RECORD_NAME_SIZE], aside[NAME_SIZE];

        record_name(pid, start_ticks, name);
        (void) snprintf(aside, sizeof(aside), "%s.aside", name);
        return renameat(folder, name, folder, aside) == 0 ? 0 : -errno;
}

/* ---- all of them ---- */

int parked_each(int folder, parked_fn each, void *ctx)
{
        int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        const struct dirent *e;
        struct record record;
        uint64_t start_ticks;
        uint32_t pid;
        bool goes_on = true;

        if (!dir) {
                int code = errno;
                closep(&fd);
                return -code;
        }
        while (goes_on && (e = readdir(dir)))
                if (record_name_parse(e->d_name, &pid, &start_ticks)) {
                        int r = parked_read(folder, pid, start_ticks, &record, NULL);
                        goes_on = r == -ENOENT || each(ctx, pid, start_ticks, &record, r);
                }
        (void) closedir(dir);
        return 0;
}

int parked_lock(int folder, uint32_t pid, bool wait, int *ret_lock, struct error *err)
{
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = pid, .l_len = 1 };

        *ret_lock = -1;
        auto_close int fd = openat(folder, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return error_errno(err, errno, "opening the lock of the records");
        int r;
        do {
                r = fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock);
        } while (r < 0 && errno == EINTR);
        if (r < 0 && (errno == EAGAIN || errno == EACCES))
                return error_set(err, EBUSY, "another one works on process %u", pid);
        if (r < 0)
                return error_errno(err, errno, "locking process %u", pid);
        *ret_lock = take_fd(fd);
        return 0;
}
