/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The process that an order is about: taken hold of by a pidfd first, looked at second, and looked at again, so that what is
 * known and what will be signalled are one and the same process. The hands have their own small reader of /proc: it is
 * what stands between an order and a signal.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { TARGET_CGROUP_SIZE = 2048, TARGET_EXE_SIZE = 512 };

/* A file as the kernel names it, whatever it is called; dev and inode both 0 = none, inode alone: some file of that device. */
struct program_id {
        dev_t dev;
        ino_t inode;
};

struct target {
        bool gone;     /* nobody has the pid, or it is dead; nothing else is known then */
        bool no_pidfd; /* this kernel has none */
        int error;     /* taking hold of it failed for want of something: errno */
        bool seen;     /* start time and uid are known */
        bool kernel_thread;
        bool exiting; /* on its way out: its program is gone already, and no signal reaches it any more */
        uint32_t pid, ppid;
        char state; /* R S D Z T … */
        uint64_t start_ticks;
        uint64_t pidfd_inode;
        uid_t real_uid;
        bool program_known; /* which file it runs; a kernel thread has none */
        struct program_id program;
        bool program_removed; /* its file has no name left, and root owned it */
        char program_path
                [TARGET_EXE_SIZE];       /* what the link says; "" when longer. A name only: proves nothing by itself */
        char cgroup[TARGET_CGROUP_SIZE]; /* its v2 line, "/…"; "" = unknown */
};

/* Always fills @ret; @ret_pidfd is -1 when there is nothing to hold, else the caller's to close. */
void target_open(uint32_t pid, struct target *ret, int *ret_pidfd);
/* Which regular file the process means by @path (base/process_file.h); untouched where there is none, or none in the kernel's memory.
 * Whoever has the pid now: the caller holds the pidfd, and looks afterwards whether it is alive. */
void target_file(const struct target *t, const char *path, uint64_t *ret_dev, uint64_t *ret_inode);
/* Of a pidfd: true when the process is dead (a zombie, or reaped). */
bool target_is_dead(int pidfd);
/* pidfd_send_signal(2); 0 or a negative errno. The only way in which the hands send a signal. */
int target_signal(int pidfd, int signal);

/* "0000 (name) S 1 …" of /proc/PID/stat, read from its last ')' on: names hold anything (failures F57). */
bool target_parse_stat(const char *text, size_t n, struct target *ret);
/* Start time and parent of whoever has the pid now; false = nobody, or not to be seen. */
bool target_look(uint32_t pid, struct target *ret);

static inline bool program_id_equal(struct program_id a, struct program_id b)
{
        return a.dev == b.dev && a.inode == b.inode;
}
