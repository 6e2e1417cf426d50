/* SPDX-License-Identifier: Apache-2.0 */
#include "fault_vfs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES_MAX = 32, SECTOR_BYTES = 512 };

/* What happened to a file since it was last synced, and what it was then. */
struct change {
        bool is_truncation;
        size_t at, n;
        uint8_t *data;
};
struct shadow {
        char *path;
        uint8_t *synced;
        size_t n_synced;
        struct change *changes;
        size_t n_changes;
};

struct fault_file {
        sqlite3_file base;
        struct shadow *shadow; /* NULL: a file without a name */
        sqlite3_file *real;
};

static sqlite3_vfs *real_vfs;
static sqlite3_vfs vfs;
static sqlite3_io_methods methods;
static struct shadow shadows[FILES_MAX];
static size_t n_shadows;
static enum fault fault;
static unsigned at, count;
static uint32_t random_state;
static bool dead;

const char *fault_name(enum fault f)
{
        static const char *const names[FAULT_N] = { "none", "full",       "eio",   "short",
                                                    "kill", "kill in it", "power", "power, torn" };
        return names[f];
}

static bool coin(void)
{
        random_state = random_state * 1664525 + 1013904223;
        return (random_state >> 20 & 1) != 0;
}

/* ---- what is not synced yet ---- */

static void shadow_forget(struct shadow *s)
{
        for (size_t i = 0; i < s->n_changes; i++)
                free(s->changes[i].data);
        free(s->changes);
        free(s->synced);
        s->changes = NULL;
        s->synced = NULL;
        s->n_changes = s->n_synced = 0;
}

static struct shadow *shadow_of(const char *path)
{
        for (size_t i = 0; i < n_shadows; i++)
                if (strcmp(shadows[i].path, path) == 0)
                        return &shadows[i];
        assert(n_shadows < FILES_MAX);
        struct shadow *s = &shadows[n_shadows++];
        *s = (struct shadow){ .path = strdup(path) };
        assert(s->path);
        return s;
}

static void shadow_change(struct shadow *s, bool is_truncation, const void *data, size_t offset, size_t n)
{
        if (!s)
                return;
        if (s->n_changes == 0) {
                FILE *f = fopen(s->path, "rbe");
                assert(f && fseek(f, 0, SEEK_END) == 0);
                s->n_synced = (size_t) ftell(f);
                s->synced = malloc(s->n_synced + 1);
                assert(s->synced && fseek(f, 0, SEEK_SET) == 0);
                assert(fread(s->synced, 1, s->n_synced, f) == s->n_synced);
                (void) fclose(f);
        }
        s->changes = realloc(s->changes, (s->n_changes + 1) * sizeof(*s->changes));
        assert(s->changes);
        struct change *c = &s->changes[s->n_changes++];
        *c = (struct change){ .is_truncation = is_truncation, .at = offset, .n = n };
        if (data) {
                c->data = malloc(n);
                assert(c->data);
                memcpy(c->data, data, n);
        }
}

static void power_cut(struct shadow *s, bool is_torn)
{
        if (s->n_changes == 0 || access(s->path, F_OK) < 0)
                return;
        int fd = open(s->path, O_RDWR | O_TRUNC | O_CLOEXEC);
        assert(fd >= 0 && pwrite(fd, s->synced, s->n_synced, 0) == (ssize_t) s->n_synced);
        for (size_t i = 0; is_torn && i < s->n_changes; i++) {
                const struct change *c = &s->changes[i];
                if (c->is_truncation && coin())
                        assert(ftruncate(fd, (off_t) c->at) == 0);
                for (size_t k = 0; c->data && k < c->n; k += SECTOR_BYTES) {
                        size_t n = c->n - k < SECTOR_BYTES ? c->n - k : SECTOR_BYTES;
                        if (coin())
                                assert(pwrite(fd, c->data + k, n, (off_t) (c->at + k)) == (ssize_t) n);
                }
        }
        assert(close(fd) == 0);
}

/* ---- when it happens ---- */

enum hit { HIT_NOT, HIT_FAILS, HIT_HALF };

static enum hit count_one(void)
{
        if (dead)
                return HIT_FAILS;
        count++;
        if (fault == FAULT_NONE || count < at || (count > at && fault != FAULT_FULL))
                return HIT_NOT;
        dead = fault >= FAULT_KILL;
        return fault == FAULT_SHORT || fault == FAULT_KILL_TORN ? HIT_HALF : HIT_FAILS;
}

/* What errno would have been. */
static int x_last_error(sqlite3_vfs *v, int n, char *words)
{
        (void) v;
        if (fault_has_hit())
                return fault == FAULT_FULL ? ENOSPC : EIO;
        return real_vfs->xGetLastError(real_vfs, n, words);
}

static int code(int otherwise)
{
        return fault == FAULT_FULL && !dead ? SQLITE_FULL : otherwise;
}

/* ---- files ---- */

static sqlite3_file *real_of(sqlite3_file *file)
{
        return ((struct fault_file *) file)->real;
}

static int x_close(sqlite3_file *file)
{
        sqlite3_file *real = real_of(file);
        return real->pMethods ? real->pMethods->xClose(real) : SQLITE_OK;
}

static int x_read(sqlite3_file *file, void *data, int n, sqlite3_int64 offset)
{
        return dead ? SQLITE_IOERR_READ : real_of(file)->pMethods->xRead(real_of(file), data, n, offset);
}

static int x_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 offset)
{
        struct fault_file *f = (struct fault_file *) file;
        enum hit hit = count_one();

        if (hit == HIT_HALF) {
                n /= 2;
                shadow_change(f->shadow, false, data, (size_t) offset, (size_t) n);
                (void) f->real->pMethods->xWrite(f->real, data, n, offset);
        }
        if (hit != HIT_NOT)
                return code(SQLITE_IOERR_WRITE);
        shadow_change(f->shadow, false, data, (size_t) offset, (size_t) n);
        return f->real->pMethods->xWrite(f->real, data, n, offset);
}

static int x_truncate(sqlite3_file *file, sqlite3_int64 size)
{
        struct fault_file *f = (struct fault_file *) file;

        if (count_one() != HIT_NOT)
                return code(SQLITE_IOERR_TRUNCATE);
        shadow_change(f->shadow, true, NULL, (size_t) size, 0);
        return f->real->pMethods->xTruncate(f->real, size);
}

static int x_sync(sqlite3_file *file, int flags)
{
        struct fault_file *f = (struct fault_file *) file;

        (void) flags;
        if (count_one() != HIT_NOT)
                return code(SQLITE_IOERR_FSYNC);
        if (f->shadow)
                shadow_forget(f->shadow);
        return SQLITE_OK; /* the machine that runs this test stays up */
}

static int x_file_size(sqlite3_file *file, sqlite3_int64 *ret)
{
        return real_of(file)->pMethods->xFileSize(real_of(file), ret);
}

static int x_lock(sqlite3_file *file, int kind)
{
        return real_of(file)->pMethods->xLock(real_of(file), kind);
}

static int x_unlock(sqlite3_file *file, int kind)
{
        return real_of(file)->pMethods->xUnlock(real_of(file), kind);
}

static int x_check_reserved(sqlite3_file *file, int *ret)
{
        return real_of(file)->pMethods->xCheckReservedLock(real_of(file), ret);
}

static int x_file_control(sqlite3_file *file, int op, void *arg)
{
        return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int x_sector_size(sqlite3_file *file)
{
        return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int x_characteristics(sqlite3_file *file)
{
        return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int x_shm_map(sqlite3_file *file, int page, int page_size, int extends, void volatile **ret)
{
        if (extends && count_one() != HIT_NOT)
                return SQLITE_IOERR_SHMSIZE;
        return real_of(file)->pMethods->xShmMap(real_of(file), page, page_size, extends, ret);
}

static int x_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
        return real_of(file)->pMethods->xShmLock(real_of(file), offset, n, flags);
}

static void x_shm_barrier(sqlite3_file *file)
{
        real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int x_shm_unmap(sqlite3_file *file, int deletes)
{
        return real_of(file)->pMethods->xShmUnmap(real_of(file), dead ? 0 : deletes);
}

static int x_open(sqlite3_vfs *v, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
        struct fault_file *f = (struct fault_file *) file;

        (void) v;
        f->base.pMethods = NULL;
        f->real = (sqlite3_file *) (f + 1);
        memset(f->real, 0, (size_t) real_vfs->szOsFile);
        if (name && (flags & SQLITE_OPEN_CREATE) && access(name, F_OK) < 0 && count_one() != HIT_NOT)
                return SQLITE_CANTOPEN;
        int rc = real_vfs->xOpen(real_vfs, name, f->real, flags, ret_flags);
        if (rc != SQLITE_OK)
                return rc;
        f->shadow = name ? shadow_of(name) : NULL;
        f->base.pMethods = &methods;
        return SQLITE_OK;
}

static int x_delete(sqlite3_vfs *v, const char *name, int syncs)
{
        (void) v;
        if (count_one() != HIT_NOT)
                return SQLITE_IOERR_DELETE;
        shadow_forget(shadow_of(name));
        return real_vfs->xDelete(real_vfs, name, syncs);
}

void fault_vfs_install(void)
{
        real_vfs = sqlite3_vfs_find(NULL);
        vfs = *real_vfs;
        vfs.zName = "fault";
        vfs.szOsFile = (int) sizeof(struct fault_file) + real_vfs->szOsFile;
        vfs.xOpen = x_open;
        vfs.xDelete = x_delete;
        vfs.xGetLastError = x_last_error;
        methods = (sqlite3_io_methods){
                .iVersion = 2, /* nothing is mapped */
                .xClose = x_close,
                .xRead = x_read,
                .xWrite = x_write,
                .xTruncate = x_truncate,
                .xSync = x_sync,
                .xFileSize = x_file_size,
                .xLock = x_lock,
                .xUnlock = x_unlock,
                .xCheckReservedLock = x_check_reserved,
                .xFileControl = x_file_control,
                .xSectorSize = x_sector_size,
                .xDeviceCharacteristics = x_characteristics,
                .xShmMap = x_shm_map,
                .xShmLock = x_shm_lock,
                .xShmBarrier = x_shm_barrier,
                .xShmUnmap = x_shm_unmap,
        };
        assert(sqlite3_vfs_register(&vfs, 1) == SQLITE_OK);
}

void fault_begin(enum fault f, unsigned k, uint32_t seed)
{
        for (size_t i = 0; i < n_shadows; i++) {
                shadow_forget(&shadows[i]);
                free(shadows[i].path);
        }
        n_shadows = 0;
        fault = f;
        at = k;
        random_state = seed;
        count = 0;
        dead = false;
}

unsigned fault_count(void)
{
        return count;
}

bool fault_has_hit(void)
{
        return fault != FAULT_NONE && count >= at;
}

bool fault_is_dead(void)
{
        return dead;
}

void fault_end(void)
{
        bool is_cut = dead && (fault == FAULT_POWER || fault == FAULT_POWER_TORN);

        for (size_t i = 0; i < n_shadows; i++) {
                if (is_cut)
                        power_cut(&shadows[i], fault == FAULT_POWER_TORN);
                shadow_forget(&shadows[i]);
        }
        fault = FAULT_NONE;
        dead = false;
}
