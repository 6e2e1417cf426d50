/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * /proc as text -> structs. The proc_parse_* are pure over bytes and take hostile input: every name, path and command
 * line in /proc was chosen by a stranger (failures F57). Their result is written on success only; -EBADMSG means that the
 * text is not what the kernel writes, -ENOENT that the thing looked for is not in it.
 * proc_read() gets the bytes; its root is "/proc" outside tests.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

enum {
        PROC_COMM_SIZE = 64,   /* 15 bytes for programs, up to 63 for kernel threads */
        PROC_NS_PIDS_MAX = 32, /* the kernel nests pid namespaces at most 32 deep */
        PROC_STAT_MAX = 4096,  /* 52 numbers and a name come to 1.2 KiB at the very most */
        PROC_STATUS_MAX = 16384,
        PROC_BOOT_ID_SIZE = 37,
        PROC_TICKS_PER_S = 100, /* USER_HZ: fixed on x86-64 and arm64 */
};

/* One fact of which /proc may not tell us: "not there" is never 0. */
struct proc_bytes {
        bool known;
        uint64_t bytes;
};

struct proc_stat {
        uint32_t pid;
        char comm[PROC_COMM_SIZE]; /* any bytes but NUL */
        char state;                /* R S D Z T t X I … */
        uint32_t ppid;             /* 0: none, or outside this pid namespace */
        uint32_t pgrp;
        uint32_t session;
        bool kernel_thread;
        uint32_t n_threads;
        uint64_t cpu_ticks;   /* on a CPU so far, of it and of its children that ended and were waited for; 1/100 s */
        uint64_t start_ticks; /* since boot, 1/100 s */
};

struct proc_status {
        bool uid_known;
        uint32_t real_uid, effective_uid;
        bool ppid_known;
        uint32_t ppid;
        uint32_t tracer_pid; /* 0: not traced (or not told) */
        uint32_t n_ns_pids;  /* outermost first; 0 on kernels that do not tell */
        uint32_t ns_pids[PROC_NS_PIDS_MAX];
        struct proc_bytes vm_rss, rss_anon, rss_shmem, vm_swap; /* unknown for kernel threads and zombies */
};

/* Parsed from the *last* ')': "x) R 1 (" is a legal name. */
int proc_parse_stat(const void *text, size_t n, struct proc_stat *ret);
/* Unknown keys pass; a key that is known and malformed is -EBADMSG. The kernel escapes newlines in Name:. */
int proc_parse_status(const void *text, size_t n, struct proc_status *ret);
/* First mount of type cgroup2: where it is and which part of the hierarchy it shows ("/" = all). */
int proc_parse_cgroup_mount(const void *text, size_t n, char *ret_point, char *ret_root, size_t each_size);
/* MemAvailable of /proc/meminfo, in bytes. */
int proc_parse_mem_available(const void *text, size_t n, uint64_t *ret_bytes);
/* /proc/sys/kernel/random/boot_id: 36 hex digits and dashes. */
int proc_parse_boot_id(const void *text, size_t n, char ret_id[PROC_BOOT_ID_SIZE]);
/* Value of @name in an environment block (NUL-separated). The first one counts, as for getenv(). */
int proc_find_environ(const void *block, size_t n, const char *name, char *ret_value, size_t value_size);

/*
 * proc_read - a whole small file below an open directory
 * @dir_fd  directory (AT_FDCWD with an absolute path is fine)
 * At most @size bytes are read; *ret_cut tells that there was more. Not NUL-terminated. Negative errno: -ENOENT and
 * -ESRCH when the process is gone, -EACCES or -EPERM when it is not ours to see.
 */
int proc_read(int dir_fd, const char *path, void *buf, size_t size, size_t *ret_n, bool *ret_cut);
/* <root>/<pid> opened once: what is read below it is that process or nothing, never the next owner of the number. */
int proc_open_pid(const char *root, uint32_t pid, int *ret_fd);
int proc_read_stat(int pid_fd, struct proc_stat *ret);
int proc_read_status(int pid_fd, struct proc_status *ret);
int proc_read_boot_id(const char *root, char ret_id[PROC_BOOT_ID_SIZE]);
/* The kernel is Windows' own ("…-microsoft-standard-WSL2"): false when its release cannot be read. */
bool proc_kernel_is_wsl(const char *root);
/* True when this process sees the host's pids: its pid namespace is the initial one. False also when unknown. */
bool proc_sees_host_pids(const char *root);
