/* SPDX-License-Identifier: Apache-2.0 */
#include "card/card.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_WAIT_S 10
/* glibc's __kind of a robust, process-shared mutex: locking a mutex of garbage may hang or assert, so look first. */
#define MUTEX_KIND_ROBUST_SHARED (0x10 | 0x80)

uint64_t card_now_ns(void)
{
        struct timespec ts;
        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

static const char *file_fault(const struct card_file *f)
{
        if (memcmp(f->magic, CARD_MAGIC, sizeof f->magic) != 0)
                return "not a simgpu file";
        if (f->version != CARD_VERSION || f->size_check != sizeof *f)
                return "made by another version of simgpu";
        if (f->n_devices == 0 || f->n_devices > CARD_DEVICES_MAX || f->abi >= CARD_ABI_N ||
            f->n_hidden > CARD_HIDDEN_MAX)
                return "damaged: counts out of range";
        for (uint32_t i = 0; i < f->n_devices; i++) {
                const struct card_device *d = &f->device[i];
                if (!memchr(d->uuid, 0, sizeof d->uuid) || !memchr(d->name, 0, sizeof d->name))
                        return "damaged: a name without an end";
                if (d->total_bytes == 0 || d->total_bytes > UINT64_MAX / 4 || d->driver_reserve_bytes > d->total_bytes)
                        return "damaged: impossible memory sizes";
        }
        for (uint32_t i = 0; i < f->n_hidden; i++)
                if (!memchr(f->hidden[i], 0, sizeof f->hidden[i]))
                        return "damaged: a symbol without an end";
        if (f->lock.__data.__kind != MUTEX_KIND_ROBUST_SHARED)
                return "damaged: its lock is not a lock";
        return NULL;
}

int card_open(struct card *card, const char *path, char *reterr, size_t reterr_size)
{
        *card = (struct card){ 0 };
        if (!path)
                path = getenv("SIMGPU");
        if (!path || !*path) {
                snprintf(reterr, reterr_size, "no card: SIMGPU is not set (simgpu create --file F, then SIMGPU=F)");
                return -ENOENT;
        }
        int fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0) {
                int r = -errno;
                snprintf(reterr, reterr_size, "card %.120s: %s", path, strerror(-r));
                return r;
        }
        struct stat st;
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != (off_t) sizeof(struct card_file)) {
                (void) close(fd);
                snprintf(reterr, reterr_size, "card %.120s: not a simgpu file, or of another version (wrong size)",
                         path);
                return -EINVAL;
        }
        void *map = mmap(NULL, sizeof(struct card_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        int r = map == MAP_FAILED ? -errno : 0;
        (void) close(fd);
        if (r < 0) {
                snprintf(reterr, reterr_size, "card %.120s: mmap: %s", path, strerror(-r));
                return r;
        }
        const char *why = file_fault(map);
        if (why) {
                (void) munmap(map, sizeof(struct card_file));
                snprintf(reterr, reterr_size, "card %.120s: %s", path, why);
                return -EINVAL;
        }
        card->file = map;
        card->n_devices = card->file->n_devices;
        return 0;
}

void card_close(struct card *card)
{
        if (card->file)
                (void) munmap(card->file, sizeof *card->file);
        *card = (struct card){ 0 };
}

static int lock_init(pthread_mutex_t *lock)
{
        pthread_mutexattr_t attr;
        int r = pthread_mutexattr_init(&attr);
        if (r == 0)
                r = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
        if (r == 0)
                r = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
        if (r == 0)
                r = pthread_mutex_init(lock, &attr);
        (void) pthread_mutexattr_destroy(&attr);
        return -r;
}

int card_create(const char *path, const struct card_file *template_file, bool for_all, char *reterr, size_t reterr_size)
{
        /* Under another name first: whoever opens the final name finds a whole card. */
        char tmp[4096];
        if ((size_t) snprintf(tmp, sizeof tmp, "%s.new-%d", path, (int) getpid()) >= sizeof tmp) {
                snprintf(reterr, reterr_size, "the path is too long");
                return -ENAMETOOLONG;
        }
        int fd = open(tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0) {
                int r = -errno;
                snprintf(reterr, reterr_size, "%.120s: %s", tmp, strerror(-r));
                return r;
        }
        int r = 0;
        struct card_file *f = MAP_FAILED;
        if (ftruncate(fd, (off_t) sizeof *f) < 0 || (for_all && fchmod(fd, 0666) < 0))
                r = -errno;
        if (r == 0) {
                f = mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
                r = f == MAP_FAILED ? -errno : 0;
        }
        if (r == 0) {
                /* Only what comes before the lock is given; a whole copy would turn the sparse file into a full one. */
                memcpy((void *) f, template_file, offsetof(struct card_file, lock));
                memcpy(f->magic, CARD_MAGIC, sizeof f->magic);
                f->version = CARD_VERSION;
                f->size_check = sizeof *f;
                if (getrandom(&f->id, sizeof f->id, 0) != (ssize_t) sizeof f->id)
                        f->id = card_now_ns() ^ ((uint64_t) getpid() << 32);
                r = lock_init(&f->lock);
                (void) munmap(f, sizeof *f);
        }
        (void) close(fd);
        if (r == 0 && link(tmp, path) < 0)
                r = -errno;
        (void) unlink(tmp);
        if (r < 0)
                snprintf(reterr, reterr_size, "%.120s: %s", path, strerror(-r));
        return r;
}

int card_lock(struct card *card)
{
        pthread_mutex_t *lock = &card->file->lock;
        if (lock->__data.__kind != MUTEX_KIND_ROBUST_SHARED)
                return -EINVAL;
        int r = pthread_mutex_trylock(lock);
        if (r == EBUSY) {
                struct timespec ts;
                (void) clock_gettime(CLOCK_MONOTONIC, &ts);
                ts.tv_sec += LOCK_WAIT_S;
                r = pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &ts);
        }
        if (r == EOWNERDEAD)
                r = pthread_mutex_consistent(lock); /* nothing to repair: see card.h */
        return -r;
}

void card_unlock(struct card *card)
{
        (void) pthread_mutex_unlock(&card->file->lock);
}
