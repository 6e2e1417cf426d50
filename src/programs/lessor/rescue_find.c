/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/rescue_find.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/escape.h"
#include "base/mask.h"
#include "hands/target.h"
#include "programs/lessor/rescue_keeper.h"
#include "wire/parked.h"

enum { ITEMS_STEP = 64, CMDLINE_MAX = 512 };

static const char system_dir[] = "/run/lessor";

/* ---- folders ---- */

static int no_room_for_path(struct error *err, const char *dir)
{
        return error_set(err, ENAMETOOLONG, "the folder's path is too long: %s", dir);
}

/* One more, unless it is there already. */
static int add_folder(struct rescue *r, const char *run_dir, struct error *err)
{
        struct rescue_folder *f = &r->folders[r->n_folders];
        struct stat st;

        for (size_t i = 0; i < r->n_folders; i++)
                if (strcmp(r->folders[i].run_dir, run_dir) == 0)
                        return 0;
        *f = (struct rescue_folder){ .fd = -1 };
        if ((size_t) snprintf(f->run_dir, sizeof(f->run_dir), "%s", run_dir) >= sizeof(f->run_dir))
                return no_room_for_path(err, run_dir);
        (void) snprintf(f->path, sizeof(f->path), "%s/parked", run_dir);
        int e = parked_open_to_read(f->path, &f->fd, err);
        if (e == -EACCES)
                return error_set(err, EACCES, "%s is closed to this user: it is for its owner, and root", f->path);
        if (e < 0 && e != -ENOENT)
                return e;
        r->n_folders++;
        if (f->fd < 0)
                return 0;
        if (fstat(f->fd, &st) < 0)
                return error_errno(err, errno, "looking at the folder %s", f->path);
        f->owner = st.st_uid;
        rescue_keeper_find(f);
        return 0;
}

/* lessord's folder, or by mistake the one with the records in it. */
static int add_named(struct rescue *r, const char *dir, struct error *err)
{
        char real[PATH_MAX];

        if (!realpath(dir, real))
                return error_errno(err, errno, "--folder %s", dir);
        char *last = strrchr(real, '/');
        if (last != real && strcmp(last, "/parked") == 0)
                *last = '\0';
        return add_folder(r, real, err);
}

static int add_of_socket(struct rescue *r, const char *socket, struct error *err)
{
        char dir[PATH_MAX];
        const char *slash = strrchr(socket, '/');

        if (!slash || slash == socket)
                return error_set(err, EINVAL, "LESSOR_SOCKET is no path below a folder: %s", socket);
        if ((size_t) snprintf(dir, sizeof(dir), "%.*s", (int) (slash - socket), socket) >= sizeof(dir))
                return no_room_for_path(err, socket);
        return add_folder(r, dir, err);
}

static int add_usual(struct rescue *r, struct error *err)
{
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        char dir[PATH_MAX];
        int e = 0;

        if (runtime && runtime[0] == '/') {
                if ((size_t) snprintf(dir, sizeof(dir), "%s/lessor", runtime) >= sizeof(dir))
                        return no_room_for_path(err, runtime);
                e = add_folder(r, dir, err);
        }
        if (e == 0)
                e = add_folder(r, system_dir, err);
        /* The system's may be closed to us; what is in our own session is worth telling all the same. */
        return e == -EACCES && r->n_folders > 0 && r->folders[0].fd >= 0 ? 0 : e;
}

/* ---- one record and its process ---- */

__attribute__((format(printf, 3, 4))) static void stands(struct rescue_item *it, enum rescue_standing standing,
                                                         const char *fmt, ...)
{
        va_list args;

        it->standing = standing;
        va_start(args, fmt);
        (void) vsnprintf(it->why, sizeof(it->why), fmt, args);
        va_end(args);
}

static const char delete_it[] = "its record can be deleted";

static void judge_unreadable(struct rescue_item *it, int error)
{
        if (error == -ESTALE)
                stands(it, RESCUE_BOOT, "it was parked before this boot and ended with it; %s", delete_it);
        else
                stands(it, RESCUE_DAMAGED,
                       "%s, so nothing is done by it; whether its process still stands there has to be looked at by "
                       "hand (man lessor-rescue)",
                       error == -EPERM             ? "its record is not a file that the folder's owner wrote"
                       : error == -EBADMSG         ? "its record is damaged"
                       : error == -EPROTONOSUPPORT ? "its record is of another version of lessor"
                                                   : "its record cannot be read");
}

static void judge_process(struct rescue_item *it, const struct target *t)
{
        const struct record *r = &it->record;

        if (t->gone)
                stands(it, RESCUE_GONE, "its process ended; %s", delete_it);
        else if (!t->seen)
                stands(it, RESCUE_UNSEEN, "who process %" PRIu32 " is cannot be seen from here; try it as root",
                       it->pid);
        else if (t->start_ticks != it->start_ticks ||
                 (r->pidfd_inode != 0 && t->pidfd_inode != 0 && t->pidfd_inode != r->pidfd_inode))
                stands(it, RESCUE_OTHER, "process %" PRIu32 " is another one by now, and is left alone; %s", it->pid,
                       delete_it);
        else if (r->uid != t->real_uid)
                stands(it, RESCUE_FOREIGN,
                       "its record says uid %" PRIu32 " and the process is uid %u's: it is not believed, and the "
                       "process is left alone",
                       r->uid, t->real_uid);
        else if (it->folder->owner != 0 && it->folder->owner != r->uid)
                stands(it, RESCUE_FOREIGN,
                       "it is a process of uid %" PRIu32 " in a folder of uid %u, who has no say in it: it is left "
                       "alone",
                       r->uid, it->folder->owner);
        else if (r->step == RECORD_FAILED)
                stands(it, RESCUE_FINAL,
                       "the driver failed on it for good, and every further call would make it worse; ending it "
                       "(`kill -KILL %" PRIu32 "`) is all that helps",
                       it->pid);
        else
                it->standing = r->step == RECORD_RESTORED ? RESCUE_RUNS : RESCUE_PARKED;
}

/* "python3 train.py --token=*****" */
static void look_at_command(struct rescue_item *it)
{
        char path[64], words[CMDLINE_MAX];

        (void) snprintf(path, sizeof(path), "/proc/%" PRIu32 "/cmdline", it->pid);
        auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        ssize_t n = fd < 0 ? -1 : read(fd, words, sizeof(words));
        if (n <= 0)
                return;
        (void) mask_arguments(words, (size_t) n);
        while (n > 0 && words[n - 1] == '\0')
                n--;
        for (ssize_t i = 0; i < n; i++)
                if (words[i] == '\0')
                        words[i] = ' ';
        (void) text_escape(words, (size_t) n, it->command, sizeof(it->command));
}

static void judge(struct rescue_item *it, int error)
{
        struct target t;
        int pidfd;

        if (error < 0) {
                judge_unreadable(it, error);
                return;
        }
        target_open(it->pid, &t, &pidfd);
        judge_process(it, &t);
        if (it->standing <= RESCUE_FINAL)
                look_at_command(it); /* of whom the pidfd holds */
        closep(&pidfd);
}

/* ---- all of them ---- */

struct walk {
        struct rescue *rescue;
        const struct rescue_folder *folder;
        bool no_memory;
};

static bool add_item(void *ctx, uint32_t pid, uint64_t start_ticks, const struct record *record, int error)
{
        struct walk *w = ctx;
        struct rescue *r = w->rescue;

        if (r->n_items % ITEMS_STEP == 0) {
                struct rescue_item *more = reallocarray(r->items, r->n_items + ITEMS_STEP, sizeof(*more));
                w->no_memory = !more;
                if (!more)
                        return false;
                r->items = more;
        }
        struct rescue_item *it = &r->items[r->n_items++];
        *it = (struct rescue_item){ .folder = w->folder, .pid = pid, .start_ticks = start_ticks, .record = *record };
        judge(it, error);
        return true;
}

static int compare(const void *va, const void *vb)
{
        const struct rescue_item *a = va, *b = vb;

        if (a->folder != b->folder)
                return a->folder < b->folder ? -1 : 1;
        if (a->record.lease_id != b->record.lease_id)
                return a->record.lease_id < b->record.lease_id ? -1 : 1;
        if (a->record.time_s != b->record.time_s)
                return a->record.time_s < b->record.time_s ? -1 : 1;
        return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static int read_folders(struct rescue *r, struct error *err)
{
        for (size_t i = 0; i < r->n_folders; i++) {
                struct walk w = { .rescue = r, .folder = &r->folders[i] };
                int e = w.folder->fd < 0 ? 0 : parked_each(w.folder->fd, add_item, &w);
                if (e == 0 && w.no_memory)
                        e = -ENOMEM;
                if (e < 0)
                        return error_errno(err, -e, "reading the folder %s", w.folder->path);
        }
        if (r->n_items > 0)
                qsort(r->items, r->n_items, sizeof(r->items[0]), compare);
        return 0;
}

int rescue_find(struct rescue *ret, const char *dir, struct error *err)
{
        const char *socket = getenv("LESSOR_SOCKET");

        *ret = (struct rescue){ 0 };
        int r = dir                           ? add_named(ret, dir, err)
                : socket && socket[0] != '\0' ? add_of_socket(ret, socket, err)
                                              : add_usual(ret, err);
        return r < 0 ? r : read_folders(ret, err);
}

void rescue_free(struct rescue *rescue)
{
        for (size_t i = 0; i < rescue->n_folders; i++)
                closep(&rescue->folders[i].fd);
        free(rescue->items);
        *rescue = (struct rescue){ 0 };
}

const char *rescue_standing_name(enum rescue_standing standing)
{
        static const char *const names[RESCUE_STANDING_N] = {
                [RESCUE_PARKED] = "parked",   [RESCUE_RUNS] = "runs",       [RESCUE_FINAL] = "final",
                [RESCUE_BOOT] = "other_boot", [RESCUE_GONE] = "gone",       [RESCUE_OTHER] = "other_process",
                [RESCUE_DAMAGED] = "damaged", [RESCUE_FOREIGN] = "foreign", [RESCUE_UNSEEN] = "unseen",
        };
        return (size_t) standing < RESCUE_STANDING_N ? names[standing] : "unknown";
}

const char *rescue_end_name(enum rescue_end end)
{
        static const char *const names[RESCUE_END_N] = {
                [RESCUE_NOT_TRIED] = "not_tried",
                [RESCUE_BACK] = "back",
                [RESCUE_BLOCKED] = "blocked",
                [RESCUE_FAILED] = "failed",
        };
        return (size_t) end < RESCUE_END_N ? names[end] : "unknown";
}
