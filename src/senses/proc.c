/* SPDX-License-Identifier: Apache-2.0 */
#include "senses/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"

/* PROC_PID_INIT_INO: the inode number of the initial pid namespace is part of the kernel's ABI. */
#define INITIAL_PID_NAMESPACE "pid:[4026531836]"

/* ---- text ---- */

/* What is left to read of one text or line. */
struct span {
        const char *at;
        const char *end;
};

static struct span span_of(const void *text, size_t n)
{
        const char *p = text;
        return (struct span){ p, n > 0 ? p + n : p };
}

static size_t span_len(struct span s)
{
        return (size_t) (s.end - s.at);
}

/* What lies before the next @separator, or up to the end; false when nothing is left. */
static bool next_piece(struct span *text, char separator, struct span *ret)
{
        if (text->at == text->end)
                return false;
        const char *p = memchr(text->at, separator, span_len(*text));
        *ret = (struct span){ text->at, p ? p : text->end };
        text->at = p ? p + 1 : text->end;
        return true;
}

static bool next_line(struct span *text, struct span *ret)
{
        return next_piece(text, '\n', ret);
}

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\n';
}

/* The next word between blanks; never empty. */
static bool next_word(struct span *text, struct span *ret)
{
        while (text->at < text->end && is_blank(*text->at))
                text->at++;
        ret->at = text->at;
        while (text->at < text->end && !is_blank(*text->at))
                text->at++;
        ret->end = text->at;
        return ret->at < ret->end;
}

static bool span_is(struct span s, const char *text)
{
        size_t n = strlen(text);
        return span_len(s) == n && memcmp(s.at, text, n) == 0;
}

static bool skip_prefix(struct span *s, const char *prefix)
{
        size_t n = strlen(prefix);
        if (span_len(*s) < n || memcmp(s->at, prefix, n) != 0)
                return false;
        s->at += n;
        return true;
}

static bool word_u64(struct span word, uint64_t *ret)
{
        uint64_t v = 0;

        if (word.at == word.end)
                return false;
        for (; word.at < word.end; word.at++) {
                if (*word.at < '0' || *word.at > '9')
                        return false;
                if (__builtin_mul_overflow(v, 10U, &v) || __builtin_add_overflow(v, (unsigned) (*word.at - '0'), &v))
                        return false;
        }
        *ret = v;
        return true;
}

static bool word_u32(struct span word, uint32_t *ret)
{
        uint64_t v;

        if (!word_u64(word, &v) || v > UINT32_MAX)
                return false;
        *ret = (uint32_t) v;
        return true;
}

/* A pid as the kernel prints it; the kernel's -1 ("none") becomes 0. */
static bool word_pid(struct span word, uint32_t *ret)
{
        if (span_is(word, "-1")) {
                *ret = 0;
                return true;
        }
        return word_u32(word, ret) && *ret <= INT_MAX;
}

static int copy_out(struct span s, char *dst, size_t dst_size)
{
        if (memchr(s.at, '\0', span_len(s)))
                return -EBADMSG;
        if (span_len(s) >= dst_size)
                return -ENAMETOOLONG;
        memcpy(dst, s.at, span_len(s));
        dst[span_len(s)] = '\0';
        return 0;
}

/* ---- stat ---- */

static bool word_is_number(struct span word)
{
        if (word.at < word.end && *word.at == '-')
                word.at++;
        if (word.at == word.end)
                return false;
        for (; word.at < word.end; word.at++)
                if (*word.at < '0' || *word.at > '9')
                        return false;
        return true;
}

/* Fields as proc(5) counts them: 3 is the state, the first after the name. */
enum {
        FIELD_STATE = 3,
        FIELD_PPID = 4,
        FIELD_PGRP = 5,
        FIELD_SESSION = 6,
        FIELD_FLAGS = 9,
        FIELD_UTIME = 14,
        FIELD_CHILDREN_STIME = 17, /* between them: stime, and both of the children */
        FIELD_N_THREADS = 20,
        FIELD_START = 22
};

enum { FLAG_KERNEL_THREAD = 0x00200000 }; /* ps(1) and systemd rely on it too */

static bool word_flags(struct span word, bool *ret_kernel_thread)
{
        uint32_t flags;

        if (!word_u32(word, &flags))
                return false;
        *ret_kernel_thread = (flags & FLAG_KERNEL_THREAD) != 0;
        return true;
}

/* A time that the kernel writes as a signed number is 0 where it is below that. */
static bool add_ticks(struct span word, uint64_t *sum)
{
        uint64_t ticks = 0;

        if (!word_is_number(word))
                return false;
        if (*word.at != '-' && !word_u64(word, &ticks))
                return false;
        *sum = u64_add_sat(*sum, ticks);
        return true;
}

static bool stat_field(struct proc_stat *st, int field, struct span word)
{
        if (field >= FIELD_UTIME && field <= FIELD_CHILDREN_STIME)
                return add_ticks(word, &st->cpu_ticks);
        switch (field) {
        case FIELD_STATE:
                st->state = *word.at;
                return span_len(word) == 1 &&
                       ((st->state >= 'A' && st->state <= 'Z') || (st->state >= 'a' && st->state <= 'z'));
        case FIELD_PPID:
                return word_pid(word, &st->ppid);
        case FIELD_PGRP:
                return word_pid(word, &st->pgrp);
        case FIELD_SESSION:
                return word_pid(word, &st->session);
        case FIELD_FLAGS:
                return word_flags(word, &st->kernel_thread);
        case FIELD_N_THREADS:
                return word_u32(word, &st->n_threads);
        case FIELD_START:
                return word_u64(word, &st->start_ticks);
        default:
                return word_is_number(word);
        }
}

int proc_parse_stat(const void *text, size_t n, struct proc_stat *ret)
{
        struct proc_stat st = { 0 };
        struct span all = span_of(text, n), word;

        const char *open = n > 0 ? memchr(text, '(', n) : NULL;
        const char *close = n > 0 ? memrchr(text, ')', n) : NULL;
        if (!open || !close || close < open || open == all.at || open[-1] != ' ')
                return -EBADMSG;
        if (!word_u32((struct span){ all.at, open - 1 }, &st.pid) || st.pid == 0 || st.pid > INT_MAX)
                return -EBADMSG;
        if (copy_out((struct span){ open + 1, close }, st.comm, sizeof(st.comm)) < 0)
                return -EBADMSG;

        struct span rest = { close + 1, all.end };
        if (!skip_prefix(&rest, " "))
                return -EBADMSG;
        for (int field = FIELD_STATE; field <= FIELD_START; field++)
                if (!next_word(&rest, &word) || !stat_field(&st, field, word))
                        return -EBADMSG;
        *ret = st;
        return 0;
}

/* ---- status ---- */

static bool line_kib(struct span line, struct proc_bytes *ret)
{
        struct span word;
        uint64_t kib, bytes;

        if (!next_word(&line, &word) || !word_u64(word, &kib))
                return false;
        if (!next_word(&line, &word) || !span_is(word, "kB"))
                return false;
        if (__builtin_mul_overflow(kib, 1024U, &bytes))
                return false;
        *ret = (struct proc_bytes){ .known = true, .bytes = bytes };
        return true;
}

static bool line_pid(struct span line, uint32_t *ret)
{
        struct span word;
        return next_word(&line, &word) && word_pid(word, ret);
}

static bool line_uids(struct span line, struct proc_status *st)
{
        struct span real, effective;

        if (!next_word(&line, &real) || !next_word(&line, &effective))
                return false;
        st->uid_known = true;
        return word_u32(real, &st->real_uid) && word_u32(effective, &st->effective_uid);
}

static bool line_ns_pids(struct span line, struct proc_status *st)
{
        struct span word;

        st->n_ns_pids = 0;
        while (next_word(&line, &word)) {
                if (st->n_ns_pids == PROC_NS_PIDS_MAX || !word_pid(word, &st->ns_pids[st->n_ns_pids]))
                        return false;
                st->n_ns_pids++;
        }
        return true;
}

static bool status_line(struct proc_status *st, struct span line)
{
        if (skip_prefix(&line, "Uid:\t"))
                return line_uids(line, st);
        if (skip_prefix(&line, "PPid:\t"))
                return st->ppid_known = line_pid(line, &st->ppid);
        if (skip_prefix(&line, "TracerPid:\t"))
                return line_pid(line, &st->tracer_pid);
        if (skip_prefix(&line, "NSpid:\t"))
                return line_ns_pids(line, st);
        if (skip_prefix(&line, "VmRSS:\t"))
                return line_kib(line, &st->vm_rss);
        if (skip_prefix(&line, "RssAnon:\t"))
                return line_kib(line, &st->rss_anon);
        if (skip_prefix(&line, "RssShmem:\t"))
                return line_kib(line, &st->rss_shmem);
        if (skip_prefix(&line, "VmSwap:\t"))
                return line_kib(line, &st->vm_swap);
        return true;
}

int proc_parse_status(const void *text, size_t n, struct proc_status *ret)
{
        struct proc_status st = { 0 };
        struct span all = span_of(text, n), line;

        if (n < 5 || memcmp(text, "Name:", 5) != 0)
                return -EBADMSG;
        while (next_line(&all, &line))
                if (!status_line(&st, line))
                        return -EBADMSG;
        *ret = st;
        return 0;
}

/* ---- mounts, memory, boot ---- */

/* mountinfo writes blank, tab, newline and backslash as \ooo. */
static int copy_unescaped(struct span s, char *dst, size_t dst_size)
{
        size_t n = 0;

        while (s.at < s.end) {
                unsigned c = (unsigned char) *s.at++;

                if (c == '\\') {
                        if (span_len(s) < 3)
                                return -EBADMSG;
                        c = 0;
                        for (int i = 0; i < 3; i++, s.at++) {
                                if (*s.at < '0' || *s.at > '7')
                                        return -EBADMSG;
                                c = c * 8 + (unsigned) (*s.at - '0');
                        }
                }
                if (c == 0 || c > 255)
                        return -EBADMSG;
                if (n + 1 >= dst_size)
                        return -ENAMETOOLONG;
                dst[n++] = (char) c;
        }
        dst[n] = '\0';
        return 0;
}

/* "29 23 0:26 ROOT POINT options [optional…] - TYPE source options" */
static bool mount_line_is_cgroup2(struct span line, struct span *ret_root, struct span *ret_point)
{
        struct span word;

        for (int field = 1; field <= 6; field++) {
                if (!next_word(&line, &word))
                        return false;
                if (field == 4)
                        *ret_root = word;
                else if (field == 5)
                        *ret_point = word;
        }
        while (next_word(&line, &word))
                if (span_is(word, "-"))
                        return next_word(&line, &word) && span_is(word, "cgroup2");
        return false;
}

int proc_parse_cgroup_mount(const void *text, size_t n, char *ret_point, char *ret_root, size_t each_size)
{
        struct span all = span_of(text, n), line, root, point;

        while (next_line(&all, &line)) {
                if (!mount_line_is_cgroup2(line, &root, &point))
                        continue;
                int r = copy_unescaped(point, ret_point, each_size);
                if (r < 0)
                        return r;
                return copy_unescaped(root, ret_root, each_size);
        }
        return -ENOENT;
}

int proc_parse_mem_available(const void *text, size_t n, uint64_t *ret_bytes)
{
        struct span all = span_of(text, n), line;
        struct proc_bytes found;

        while (next_line(&all, &line)) {
                if (!skip_prefix(&line, "MemAvailable:"))
                        continue;
                if (!line_kib(line, &found))
                        return -EBADMSG;
                *ret_bytes = found.bytes;
                return 0;
        }
        return -ENOENT;
}

int proc_parse_boot_id(const void *text, size_t n, char ret_id[PROC_BOOT_ID_SIZE])
{
        const char *p = text;

        if (n != 36 && !(n == 37 && p[36] == '\n'))
                return -EBADMSG;
        for (size_t i = 0; i < 36; i++) {
                bool dash = i == 8 || i == 13 || i == 18 || i == 23;
                bool hex = (p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f');
                if (dash ? p[i] != '-' : !hex)
                        return -EBADMSG;
        }
        memcpy(ret_id, p, 36);
        ret_id[36] = '\0';
        return 0;
}

int proc_find_environ(const void *block, size_t n, const char *name, char *ret_value, size_t value_size)
{
        struct span all = span_of(block, n), entry;

        while (next_piece(&all, '\0', &entry))
                if (skip_prefix(&entry, name) && skip_prefix(&entry, "="))
                        return copy_out(entry, ret_value, value_size);
        return -ENOENT;
}

/* ---- files ---- */

int proc_read(int dir_fd, const char *path, void *buf, size_t size, size_t *ret_n, bool *ret_cut)
{
        auto_close int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return -errno;

        size_t n = 0;
        bool cut = false;
        while (!cut) {
                char extra;
                ssize_t got = n < size ? read(fd, (char *) buf + n, size - n) : read(fd, &extra, 1);
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0)
                        return -errno;
                if (got == 0)
                        break;
                if (n == size)
                        cut = true;
                else
                        n += (size_t) got;
        }
        *ret_n = n;
        *ret_cut = cut;
        return 0;
}

int proc_open_pid(const char *root, uint32_t pid, int *ret_fd)
{
        char path[PATH_MAX];

        if (snprintf(path, sizeof(path), "%s/%" PRIu32, root, pid) >= (int) sizeof(path))
                return -ENAMETOOLONG;
        int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

int proc_read_stat(int pid_fd, struct proc_stat *ret)
{
        char buf[PROC_STAT_MAX];
        size_t n = 0;
        bool cut = false;

        int r = proc_read(pid_fd, "stat", buf, sizeof(buf), &n, &cut);
        if (r < 0)
                return r;
        return cut ? -EBADMSG : proc_parse_stat(buf, n, ret);
}

int proc_read_status(int pid_fd, struct proc_status *ret)
{
        char buf[PROC_STATUS_MAX];
        size_t n = 0;
        bool cut = false;

        int r = proc_read(pid_fd, "status", buf, sizeof(buf), &n, &cut);
        if (r < 0)
                return r;
        while (cut && n > 0 &&
               buf[n - 1] != '\n') /* thousands of groups: what follows them stays unknown, not half read */
                n--;
        return proc_parse_status(buf, n, ret);
}

static int read_below(const char *root, const char *name, char *buf, size_t size, size_t *ret_n)
{
        char path[PATH_MAX];
        bool cut = false;

        if (snprintf(path, sizeof(path), "%s/%s", root, name) >= (int) sizeof(path))
                return -ENAMETOOLONG;
        return proc_read(AT_FDCWD, path, buf, size, ret_n, &cut);
}

int proc_read_boot_id(const char *root, char ret_id[PROC_BOOT_ID_SIZE])
{
        char buf[64];
        size_t n = 0;

        int r = read_below(root, "sys/kernel/random/boot_id", buf, sizeof(buf), &n);
        return r < 0 ? r : proc_parse_boot_id(buf, n, ret_id);
}

bool proc_kernel_is_wsl(const char *root)
{
        char buf[256];
        size_t n = 0;

        if (read_below(root, "sys/kernel/osrelease", buf, sizeof(buf) - 1, &n) < 0)
                return false;
        buf[n] = '\0';
        return strcasestr(buf, "microsoft") != NULL; /* WSL 1 writes it with a capital */
}

bool proc_sees_host_pids(const char *root)
{
        char path[PATH_MAX], target[64];

        if (snprintf(path, sizeof(path), "%s/self/ns/pid", root) >= (int) sizeof(path))
                return false;
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        if (n < 0)
                return false;
        target[n] = '\0';
        return strcmp(target, INITIAL_PID_NAMESPACE) == 0;
}
