/* SPDX-License-Identifier: Apache-2.0 */
#include "card/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "card/memory.h"
#include "card/trace.h"

/* A small /proc file into @buf, NUL-terminated. Plain read(2): this runs at every look, for every process. */
static ssize_t read_proc(const char *path, char *buf, size_t size)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -1;
        ssize_t n = read(fd, buf, size - 1);
        (void) close(fd);
        if (n > 0)
                buf[n] = 0;
        return n;
}

uint64_t proc_start_ticks(uint32_t pid, uint32_t tid)
{
        char path[64], buf[1024];
        if (tid)
                snprintf(path, sizeof path, "/proc/%u/task/%u/stat", pid, tid);
        else
                snprintf(path, sizeof path, "/proc/%u/stat", pid);
        if (read_proc(path, buf, sizeof buf) <= 0)
                return 0;
        char *p = strrchr(buf, ')'); /* a name may hold anything, also ")" */
        if (!p || p[1] != ' ')
                return 0;
        p += 2; /* field 3, the state */
        if (*p == 'Z' || *p == 'X')
                return 0;
        for (int field = 3; field < 22; field++) {
                p = strchr(p, ' ');
                if (!p)
                        return 0;
                p++;
        }
        return strtoull(p, NULL, 10);
}

uint32_t proc_tgid(uint32_t tid)
{
        char path[64], buf[4096];
        snprintf(path, sizeof path, "/proc/%u/status", tid);
        if (read_proc(path, buf, sizeof buf) <= 0)
                return 0;
        const char *p = strstr(buf, "\nTgid:");
        return p ? (uint32_t) strtoul(p + 6, NULL, 10) : 0;
}

/* The number of our pid namespace; 0 = unknown, which is nobody's. */
static uint64_t pid_namespace(void)
{
        struct stat st;
        return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t) st.st_ino : 0;
}

static bool is_alive(const struct card_proc *p, uint32_t pid)
{
        uint64_t ticks = proc_start_ticks(pid, p->helper_tid);
        return ticks != 0 && ticks == p->helper_start_ticks;
}

static uint32_t procs_high(const struct card *card)
{
        uint32_t n = atomic_load(&card->file->procs_high);
        return n < CARD_PROCS_MAX ? n : CARD_PROCS_MAX;
}

struct card_proc *proc_register(struct card *card, bool graphics)
{
        proc_reap(card);
        if (card_lock(card) < 0)
                return NULL;
        struct card_proc *got = NULL;
        uint32_t i;
        for (i = 0; i < CARD_PROCS_MAX && !got; i++)
                if (atomic_load(&card->file->proc[i].pid) == 0)
                        got = &card->file->proc[i];
        if (got) {
                uint32_t pid = (uint32_t) getpid();
                memset((void *) got, 0, sizeof *got);
                got->helper_tid = (uint32_t) gettid();
                got->start_ticks = proc_start_ticks(pid, 0);
                got->helper_start_ticks = proc_start_ticks(pid, got->helper_tid);
                got->uid = (uint32_t) geteuid();
                got->pid_namespace = pid_namespace();
                got->graphics = graphics;
                atomic_store(&got->pid, pid);
                if (i > procs_high(card))
                        atomic_store(&card->file->procs_high, i);
                trace_add_locked(card, (struct card_trace){ .kind = TRACE_START, .pid = pid, .device = -1 });
        }
        card_unlock(card);
        return got;
}

/* The dead one's figures go to the trace, per device, then its slot is free. Under the lock. */
static void bury(struct card *card, struct card_proc *p, uint32_t pid)
{
        bool had = false;
        struct card_trace entry[CARD_DEVICES_MAX];
        for (uint32_t d = 0; d < card->n_devices; d++)
                entry[d] = (struct card_trace){
                        .kind = TRACE_DEATH,
                        .pid = pid,
                        .device = (int32_t) d,
                        .bytes = memory_of(card, p, d),
                        .used_before = memory_used_locked(card, d),
                        .listed_before = memory_listed(card, p, d),
                };
        atomic_store(&p->pid, 0);
        for (uint32_t d = 0; d < card->n_devices; d++) {
                if (entry[d].bytes == 0 && atomic_load(&p->use[d].contexts) == 0)
                        continue;
                entry[d].used_after = memory_used_locked(card, d);
                trace_add_locked(card, entry[d]);
                had = true;
        }
        if (!had)
                trace_add_locked(card, (struct card_trace){ .kind = TRACE_DEATH, .pid = pid, .device = -1 });
}

void proc_reap(struct card *card)
{
        /* Looking takes time and is done without the lock; burying takes none and checks again that it is the same one. */
        uint32_t high = procs_high(card);
        uint64_t here = pid_namespace();
        for (uint32_t i = 0; i < high; i++) {
                struct card_proc *p = &card->file->proc[i];
                uint32_t pid = atomic_load(&p->pid);
                uint64_t helper_start = p->helper_start_ticks;
                if (pid == 0 || p->pid_namespace != here || is_alive(p, pid))
                        continue;
                if (card_lock(card) < 0)
                        return;
                if (atomic_load(&p->pid) == pid && p->helper_start_ticks == helper_start)
                        bury(card, p, pid);
                card_unlock(card);
        }
}

struct card_proc *proc_find(struct card *card, uint32_t pid)
{
        proc_reap(card);
        uint32_t high = procs_high(card);
        for (uint32_t i = 0; pid != 0 && i < high; i++)
                if (atomic_load(&card->file->proc[i].pid) == pid)
                        return &card->file->proc[i];
        return NULL;
}

static bool viewer_is_alive(const struct card_viewer *v)
{
        uint32_t pid = atomic_load(&v->pid);
        return pid != 0 && (v->pid_namespace != pid_namespace() || proc_start_ticks(pid, 0) == v->start_ticks);
}

void driver_settle(struct card *card)
{
        proc_reap(card);
        for (uint32_t i = 0; i < procs_high(card); i++)
                if (atomic_load(&card->file->proc[i].pid) != 0)
                        return;
        for (uint32_t i = 0; i < CARD_VIEWERS_MAX; i++)
                if (viewer_is_alive(&card->file->viewer[i]))
                        return;
        if (card_lock(card) < 0)
                return;
        static const struct card_settings none;
        for (uint32_t d = 0; d < card->n_devices; d++) {
                struct card_device *dev = &card->file->device[d];
                if (dev->persistence || memcmp(&dev->settings, &none, sizeof none) == 0)
                        continue;
                dev->settings = none;
                trace_add_locked(card, (struct card_trace){ .kind = TRACE_UNLOAD, .device = (int32_t) d });
        }
        card_unlock(card);
}

void viewer_enter(struct card *card)
{
        driver_settle(card);
        if (card_lock(card) < 0)
                return;
        uint32_t pid = (uint32_t) getpid();
        for (uint32_t i = 0; i < CARD_VIEWERS_MAX; i++) {
                struct card_viewer *v = &card->file->viewer[i];
                uint32_t have = atomic_load(&v->pid);
                if (have != 0 && have != pid && viewer_is_alive(v))
                        continue;
                v->start_ticks = proc_start_ticks(pid, 0);
                v->pid_namespace = pid_namespace();
                atomic_store(&v->pid, pid);
                break; /* a full table loses nothing but the driver's long memory */
        }
        card_unlock(card);
}

void viewer_leave(struct card *card)
{
        uint32_t pid = (uint32_t) getpid();
        for (uint32_t i = 0; i < CARD_VIEWERS_MAX; i++)
                if (atomic_load(&card->file->viewer[i].pid) == pid)
                        atomic_store(&card->file->viewer[i].pid, 0);
        driver_settle(card);
}
