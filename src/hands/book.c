/* SPDX-License-Identifier: Apache-2.0 */
#include "hands/book.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "base/own_folder.h"

enum { HEADER_SIZE = 64, LAYOUT = 4 };

/* A file of another boot or another layout begins anew. */
struct header {
        char magic[8];
        uint32_t layout, reserved;
        char boot_id[BOOT_ID_SIZE];
};
_Static_assert(sizeof(struct header) <= HEADER_SIZE, "the header has its place in the file");

/* Opens and, where it is not of this boot, empties it. */
static int open_file(int folder, const char *name, const struct header *header, int *ret_fd, struct error *err)
{
        auto_close int fd =
                openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
        struct header there = { 0 };
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return error_errno(err, errno, "opening %s in the warden's folder", name);
        if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
                return error_set(err, EPERM, "%s in the warden's folder is no file of its own", name);
        if (pread(fd, &there, sizeof(there), 0) != sizeof(there) || memcmp(&there, header, sizeof(there)) != 0)
                if (ftruncate(fd, 0) < 0 || pwrite(fd, header, sizeof(*header), 0) != sizeof(*header))
                        return error_errno(err, errno, "writing %s in the warden's folder", name);
        *ret_fd = take_fd(fd);
        return 0;
}

static int take_lock(struct book *book, const char *path, struct error *err)
{
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

        book->lock_fd = openat(book->folder, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (book->lock_fd < 0)
                return error_errno(err, errno, "opening the lock in %s", path);
        /* A lock of the process, not of the file: helpers inherit descriptors, and must not hold it for a dead warden. */
        if (fcntl(book->lock_fd, F_SETLK, &lock) < 0)
                return error_set(err, EBUSY, "another lessor-warden works in %s", path);
        return 0;
}

static off_t slot_at(size_t i)
{
        return (off_t) (HEADER_SIZE + i * BOOK_SLOT_SIZE);
}

/* As for a message: what cannot have been written by us is not there. */
static bool slot_is_sane(const struct book_slot *slot)
{
        uint8_t buf[WARDEN_MESSAGE_MAX];
        struct warden_message order = { .kind = WARDEN_ORDER, .order = slot->order };
        struct warden_message answer = { .kind = WARDEN_OUTCOME, .outcome = slot->answer };
        size_t n;

        if (slot->state == BOOK_FREE || slot->state >= BOOK_STATE_N)
                return false;
        return slot->helper_pid > 0 && slot->helper_pid <= INT32_MAX &&
               warden_encode(&order, buf, sizeof(buf), &n, NULL) == 0 &&
               (slot->state == BOOK_RUNNING || (slot->answer.order_id == slot->order.order_id &&
                                                warden_encode(&answer, buf, sizeof(buf), &n, NULL) == 0));
}

void book_reread(struct book *book, size_t i)
{
        struct book_slot slot = { 0 };

        if (pread(book->helpers_fd, &slot, sizeof(slot), slot_at(i)) != sizeof(slot) || !slot_is_sane(&slot))
                slot = (struct book_slot){ 0 };
        book->slots[i] = slot;
}

int book_store(const struct book *book, size_t i)
{
        ssize_t n = pwrite(book->helpers_fd, &book->slots[i], sizeof(book->slots[i]), slot_at(i));
        return n == sizeof(book->slots[i]) ? 0 : n < 0 ? -errno : -ENOSPC;
}

static off_t grace_at(size_t i)
{
        return (off_t) (HEADER_SIZE + i * sizeof(struct grace_entry));
}

void book_store_grace(const struct book *book, const struct grace_entry *entry)
{
        size_t i = (size_t) (entry - book->grace.entries);

        if (pwrite(book->grace_fd, entry, sizeof(*entry), grace_at(i)) != sizeof(*entry))
                log_warning("event=grace-not-stored pid=%u errno=%d", entry->pid, errno);
}

int book_open(struct book *book, const char *folder, struct error *err)
{
        struct header header = { .magic = "lessor-", .layout = LAYOUT };

        memset(book, 0, sizeof(*book));
        book->folder = book->helpers_fd = book->grace_fd = book->lock_fd = -1;
        int r = own_folder_boot_id(header.boot_id, err);
        if (r == 0)
                r = own_folder_open(folder, S_IRWXG | S_IRWXO, &book->folder, err);
        if (r == 0)
                r = take_lock(book, folder, err);
        if (r == 0)
                r = open_file(book->folder, "helpers", &header, &book->helpers_fd, err);
        if (r == 0)
                r = open_file(book->folder, "grace", &header, &book->grace_fd, err);
        if (r < 0)
                return r;
        for (size_t i = 0; i < BOOK_HELPERS_MAX; i++)
                book_reread(book, i);
        /* A short file is a table whose end was never used. */
        if (pread(book->grace_fd, &book->grace, sizeof(book->grace), grace_at(0)) < 0)
                return error_errno(err, errno, "reading the warden's grace table");
        return 0;
}
