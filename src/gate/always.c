/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/always.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/cgroup2.h"
#include "base/cleanup.h"
#include "base/log.h"

enum { DEPTH_MAX = 16, SESSION_FILE_MAX = 4096 };

/* Where logind puts sessions. */
static const char session_pattern[] = "user.slice/user-*.slice/session-*.scope";

DEFINE_CLEANUP(DIR *, closedir)

static void look_into(struct always *a, const char *path, unsigned depth, uint64_t now_ms);

/* ---- sessions ---- */

int always_session_has_seat(const char *text)
{
        bool whole = false;

        for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
                if (strncmp(line, "SEAT=", 5) == 0)
                        return line[5] != '\0' && line[5] != '\n';
                whole = whole || strncmp(line, "ACTIVE=", 7) == 0; /* written in one go, this among the first lines */
        }
        return whole ? 0 : -1;
}

/* "…/session-c2.scope" → "c2" */
static bool session_id(const char *path, char *ret, size_t size)
{
        const char *name = strrchr(path, '/');
        size_t n;

        name = name ? name + 1 : path;
        if (strncmp(name, "session-", 8) != 0)
                return false;
        name += 8;
        n = strlen(name);
        if (n <= 6 || strcmp(name + n - 6, ".scope") != 0 || n - 6 >= size)
                return false;
        memcpy(ret, name, n - 6);
        ret[n - 6] = '\0';
        return true;
}

static int seat_of(const struct always *a, const char *id)
{
        char path[512], text[SESSION_FILE_MAX];
        (void) snprintf(path, sizeof(path), "%s/%s", a->sessions, id);
        auto_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

        if (n < 0)
                return -1;
        text[n] = '\0';
        return always_session_has_seat(text);
}

static void consider_session(struct always *a, const char *id, uint64_t cgroup_id, uint64_t now_ms)
{
        int seat = seat_of(a, id);

        if (seat == 0)
                return;
        a->host.pass(a->host.ctx, cgroup_id, true);
        if (seat > 0 || a->n_doubts == ALWAYS_DOUBTS_MAX)
                return;
        a->doubts[a->n_doubts].cgroup_id = cgroup_id;
        a->doubts[a->n_doubts].until_ms = now_ms + ALWAYS_DOUBT_MS;
        (void) snprintf(a->doubts[a->n_doubts++].id, sizeof(a->doubts[0].id), "%s", id);
}

uint64_t always_tick(struct always *a, uint64_t now_ms)
{
        for (size_t i = 0; i < a->n_doubts;) {
                int seat = seat_of(a, a->doubts[i].id);
                if (seat < 0 && now_ms < a->doubts[i].until_ms) {
                        i++;
                        continue;
                }
                if (seat <= 0)
                        a->host.pass(a->host.ctx, a->doubts[i].cgroup_id, false);
                a->doubts[i] = a->doubts[--a->n_doubts];
        }
        return a->n_doubts ? now_ms + ALWAYS_AGAIN_MS : 0;
}

/* ---- folders ---- */

static void watch(struct always *a, const char *path, int folder)
{
        char link[32];

        if (a->inotify < 0 || a->n_watches == ALWAYS_WATCHES_MAX)
                return;
        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", folder);
        int wd = inotify_add_watch(a->inotify, link, IN_CREATE | IN_ONLYDIR);
        for (size_t i = 0; wd >= 0 && i < a->n_watches; i++)
                if (a->watches[i].wd == wd)
                        return; /* watched already */
        if (wd < 0)
                return;
        a->watches[a->n_watches].wd = wd;
        (void) snprintf(a->watches[a->n_watches++].path, ALWAYS_PATH_SIZE, "%s", path);
}

static void consider(struct always *a, const char *path, unsigned depth, uint64_t now_ms)
{
        bool deeper = false, any_deeper = false, named = false;
        char id[32];
        struct stat st;

        for (uint32_t i = 0; i < a->conf->n_always; i++) {
                named = gate_pattern_matches(a->conf->always[i], path, &deeper) || named;
                any_deeper = any_deeper || deeper;
        }
        bool is_session = gate_pattern_matches(session_pattern, path, &deeper) && session_id(path, id, sizeof(id));
        any_deeper = any_deeper || deeper;
        if (!named && !is_session && !any_deeper)
                return;
        auto_close int folder = cgroup2_open(a->root, path);
        if (folder < 0 || fstat(folder, &st) < 0)
                return; /* gone again */
        if (named)
                a->host.pass(a->host.ctx, st.st_ino, true);
        else if (is_session)
                consider_session(a, id, st.st_ino, now_ms);
        if (any_deeper)
                look_into(a, path, depth, now_ms);
}

/* Watched first and looked at then: what is made in between is seen twice, not never. */
static void look_into(struct always *a, const char *path, unsigned depth, uint64_t now_ms)
{
        auto_close int folder = cgroup2_open(a->root, path);
        int again = folder >= 0 ? openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        auto_call(closedirp) DIR *dir = again >= 0 ? fdopendir(again) : NULL;
        const struct dirent *entry;

        if (!dir || depth == 0) {
                if (again >= 0 && !dir)
                        (void) close(again);
                return;
        }
        watch(a, path, folder);
        while ((entry = readdir(dir))) {
                char below[ALWAYS_PATH_SIZE];
                if (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                int n = snprintf(below, sizeof(below), "%s%s%s", path, path[0] ? "/" : "", entry->d_name);
                if (n > 0 && (size_t) n < sizeof(below))
                        consider(a, below, depth - 1, now_ms);
        }
}

/* ---- events ---- */

static void forget_watch(struct always *a, int wd)
{
        for (size_t i = 0; i < a->n_watches; i++) {
                if (a->watches[i].wd == wd) {
                        a->watches[i] = a->watches[--a->n_watches];
                        return;
                }
        }
}

static void on_event(struct always *a, const struct inotify_event *event, uint64_t now_ms)
{
        char path[ALWAYS_PATH_SIZE];

        if (event->mask & IN_Q_OVERFLOW)
                a->overflowed = true;
        if (event->mask & IN_IGNORED)
                forget_watch(a, event->wd);
        if (!(event->mask & IN_CREATE) || !(event->mask & IN_ISDIR) || event->len == 0)
                return;
        for (size_t i = 0; i < a->n_watches; i++) {
                if (a->watches[i].wd != event->wd)
                        continue;
                int n = snprintf(path, sizeof(path), "%s%s%s", a->watches[i].path, a->watches[i].path[0] ? "/" : "",
                                 event->name);
                if (n > 0 && (size_t) n < sizeof(path))
                        consider(a, path, DEPTH_MAX, now_ms);
                return;
        }
}

void always_hear(struct always *a, uint64_t now_ms)
{
        _Alignas(struct inotify_event) char buf[4096];
        ssize_t n;

        /* One buffer a call: who makes folders without end must not keep lessord from being heard. */
        if (a->inotify >= 0 && (n = read(a->inotify, buf, sizeof(buf))) > 0) {
                for (char *at = buf; at < buf + n;) {
                        const struct inotify_event *event = (const struct inotify_event *) (void *) at;
                        on_event(a, event, now_ms);
                        at += sizeof(*event) + event->len;
                }
        }
        if (a->overflowed) {
                a->overflowed = false;
                look_into(a, "", DEPTH_MAX, now_ms);
        }
}

/* ---- life ---- */

void always_init(struct always *a, int root, const char *sessions, const struct always_host *host)
{
        *a = (struct always){ .root = root, .inotify = -1, .sessions = sessions, .host = *host };
}

void always_end(struct always *a)
{
        closep(&a->inotify);
        a->inotify = -1;
        a->n_watches = a->n_doubts = 0;
}

int always_begin(struct always *a, const struct gate_conf *conf, uint64_t now_ms, struct error *err)
{
        always_end(a);
        a->conf = conf;
        a->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        int r = a->inotify < 0 ? error_errno(err, errno, "watching for cgroups that are made") : 0;
        look_into(a, "", DEPTH_MAX, now_ms);
        return r;
}
