/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Are the files still where they were, and what they were? SQLite goes on writing into a file that somebody has deleted or
 * replaced, and every commit would be acknowledged and then be gone with this process. So each write looks first: whether
 * the folder has changed since (one system call), and only then at the files. Emptying them changes no folder: that is
 * found by the daemon's look once a second.
 */
#include "store/journal_private.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool look(const char *path, const char *suffix, struct place *ret)
{
        char name[PATH_MAX];
        struct stat st;

        if ((size_t) snprintf(name, sizeof(name), "%s%s", path, suffix) >= sizeof(name) || lstat(name, &st) < 0)
                return false;
        *ret = (struct place){ .is_known = true, .dev = st.st_dev, .ino = st.st_ino, .is_empty = st.st_size == 0 };
        return true;
}

static bool folder_is_unchanged(const struct journal *j)
{
        struct stat st;

        return j->folder_fd >= 0 && fstat(j->folder_fd, &st) == 0 && st.st_mtim.tv_sec == j->folder_mtime.tv_sec &&
               st.st_mtim.tv_nsec == j->folder_mtime.tv_nsec;
}

static void folder_note(struct journal *j)
{
        char dir[PATH_MAX];
        struct stat st;

        if (j->folder_fd < 0 && (size_t) snprintf(dir, sizeof(dir), "%s", j->path) < sizeof(dir)) {
                char *slash = strrchr(dir, '/');
                if (slash)
                        slash[slash == dir ? 1 : 0] = '\0';
                j->folder_fd = open(slash ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        }
        if (j->folder_fd >= 0 && fstat(j->folder_fd, &st) == 0)
                j->folder_mtime = st.st_mtim;
}

void journal_place_note(struct journal *j)
{
        if (j->main_place.is_known && j->log_place.is_known)
                return;
        folder_note(j); /* before the files: what changes in between is looked at again */
        if (!j->main_place.is_known)
                (void) look(j->path, "", &j->main_place);
        if (!j->log_place.is_known && look(j->path, "-wal", &j->log_place))
                j->log_place.is_known = !j->log_place.is_empty; /* until the first write it may be */
}

void journal_place_forget(struct journal *j)
{
        j->main_place = j->log_place = (struct place){ 0 };
        if (j->folder_fd >= 0)
                (void) close(j->folder_fd);
        j->folder_fd = -1;
}

static int check(const struct journal *j, const char *suffix, const struct place *before, struct error *err)
{
        struct place now;

        if (!before->is_known)
                return 0;
        if (!look(j->path, suffix, &now))
                return error_set(err, ENOENT, "%s%s was deleted while it was in use", j->path, suffix);
        if (now.dev != before->dev || now.ino != before->ino)
                return error_set(err, ENOENT, "%s%s was replaced while it was in use", j->path, suffix);
        if (now.is_empty)
                return error_set(err, ENOENT, "%s%s was emptied while it was in use", j->path, suffix);
        return 0;
}

int journal_look(struct journal *j, struct error *err)
{
        if (!j->db || j->options.read_only)
                return 0;
        folder_note(j);
        int r = check(j, "", &j->main_place, err);
        return r < 0 ? r : check(j, "-wal", &j->log_place, err);
}

int journal_place_check(struct journal *j, struct error *err)
{
        return folder_is_unchanged(j) ? 0 : journal_look(j, err);
}

/*
 * A log whose very head is not one is passed over by SQLite without a word, and with it everything that was not in the main
 * file yet. Zeros are what a power cut may leave of a log that was never synced: nothing was lost there that was promised.
 */
bool journal_log_is_damaged(const char *path)
{
        char name[PATH_MAX];
        uint32_t head[8], a = 0, b = 0; /* sqlite.org/fileformat2.html#walformat */

        if ((size_t) snprintf(name, sizeof(name), "%s-wal", path) >= sizeof(name))
                return false;
        auto_close int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0 || read(fd, head, sizeof(head)) != sizeof(head))
                return false;

        bool is_zero = true, is_big_endian = (be32toh(head[0]) & 1) != 0;
        for (size_t i = 0; i < 8; i++)
                is_zero = is_zero && head[i] == 0;
        for (size_t i = 0; i < 6; i += 2) {
                a += (is_big_endian ? be32toh(head[i]) : le32toh(head[i])) + b;
                b += (is_big_endian ? be32toh(head[i + 1]) : le32toh(head[i + 1])) + a;
        }
        bool is_log = (be32toh(head[0]) & ~1U) == 0x377f0682 && a == be32toh(head[6]) && b == be32toh(head[7]);
        return !is_zero && !is_log;
}

int journal_begin_anew(struct journal *j, struct error *err)
{
        struct error why = { 0 };

        if (!j->positioned)
                return error_set(err, EINVAL, "the journal is restored before it begins anew");
        if (!j->db)
                (void) error_set(&why, ENOENT, "%s was gone, and a fresh one could not be started", j->path);
        else if (journal_look(j, &why) == 0)
                return 0;
        int r = journal_file_replace(j, why.msg, err);
        if (r < 0)
                return r;
        /* The chain goes on from what is in the world, the sequence too; the snapshot that follows says all. */
        j->segment = 0;
        j->segment_records = 0;
        j->event_seq = 0;
        j->in_doubt = false;
        return 0;
}
