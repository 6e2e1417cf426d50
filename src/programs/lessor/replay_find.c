/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/replay_find.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "base/duration.h"
#include "base/escape.h"
#include "base/number.h"
#include "programs/lessord/paths.h"

enum { SHOWN_MAX = 320 };

static const char *shown(const char *text, char buf[SHOWN_MAX])
{
        return text_escape(text, strlen(text), buf, SHOWN_MAX);
}

/* ---- which journal ---- */

/* 1 it is one that could be read, 0 there is none. */
static int look(const char *path, struct error *err)
{
        char safe[SHOWN_MAX];
        struct stat st;

        if (stat(path, &st) < 0)
                return errno == ENOENT || errno == ENOTDIR
                               ? 0
                               : error_errno(err, errno, "looking at %s", shown(path, safe));
        if (!S_ISREG(st.st_mode))
                return error_set(err, EINVAL, "%s is not a regular file, so it is no journal", shown(path, safe));
        return 1;
}

static int in_folder(const char *folder, char *ret, size_t size, struct error *err)
{
        char safe[SHOWN_MAX];

        if ((size_t) snprintf(ret, size, "%s/journal.db", folder) >= size)
                return error_set(err, ENAMETOOLONG, "%s is too long a path", shown(folder, safe));
        return look(ret, err);
}

static int named(const char *word, char *ret, size_t size, struct error *err)
{
        char safe[SHOWN_MAX];
        struct stat st;

        if (stat(word, &st) == 0 && S_ISDIR(st.st_mode)) {
                int r = in_folder(word, ret, size, err);
                return r != 0 ? r : error_set(err, ENOENT, "the folder %s has no journal.db", shown(word, safe));
        }
        if ((size_t) snprintf(ret, size, "%s", word) >= size)
                return error_set(err, ENAMETOOLONG, "%s is too long a path", shown(word, safe));
        int r = look(ret, err);
        return r != 0 ? r : error_set(err, ENOENT, "there is no file %s", shown(word, safe));
}

/* The folder of a socket that was named is that of its lessord (--dir), unless the socket is one of those that are found
 * without a name: their journals lie elsewhere. */
static int beside_socket(const char *socket, const struct paths *known, size_t n_known, char *ret, size_t size,
                         struct error *err)
{
        char folder[sizeof(known->run_dir)];
        const char *slash = strrchr(socket, '/');

        for (size_t i = 0; i < n_known; i++)
                if (strcmp(known[i].socket, socket) == 0) {
                        (void) snprintf(ret, size, "%s", known[i].journal);
                        return look(ret, err);
                }
        size_t n = slash ? (size_t) (slash - socket) : 1;
        if ((size_t) snprintf(folder, sizeof(folder), "%.*s", (int) n, slash ? socket : ".") >= sizeof(folder))
                return error_set(err, ENAMETOOLONG, "LESSOR_SOCKET is too long");
        return in_folder(folder, ret, size, err);
}

static int not_there(struct error *err)
{
        return error_set(err, ENOENT,
                         "there is no journal of a lessord here; name the file, or the folder given to "
                         "lessord --dir");
}

int replay_find_journal(const char *word, char *ret, size_t size, struct error *err)
{
        const char *socket = getenv("LESSOR_SOCKET");
        struct paths known[2];
        size_t n_known = 0;
        struct error unused = { 0 }; /* not everybody has a session */
        int r = 0;

        if (word)
                r = named(word, ret, size, err);
        if (r != 0)
                return r < 0 ? r : 0;
        if (paths_find(PATHS_SESSION, NULL, &known[n_known], &unused) == 0)
                n_known++;
        if (paths_find(PATHS_SYSTEM, NULL, &known[n_known], &unused) == 0)
                n_known++;
        if (socket && socket[0] != '\0') {
                r = beside_socket(socket, known, n_known, ret, size, err);
                return r < 0 ? r : r > 0 ? 0 : not_there(err);
        }
        for (size_t i = 0; i < n_known; i++) {
                (void) snprintf(ret, size, "%s", known[i].journal);
                r = look(ret, err);
                if (r != 0)
                        return r < 0 ? r : 0;
        }
        return not_there(err);
}

/* ---- from where on ---- */

/* Whole text in one of the forms a person writes; days and months that do not exist are refused by mktime's answer. */
static int parse_moment(const char *text, uint64_t now_wall_ms, uint64_t *ret_ms)
{
        static const char *const forms[] = {
                "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M",
                "%Y-%m-%d",          "%H:%M:%S",          "%H:%M"
        };
        enum { FORMS_N = sizeof(forms) / sizeof(forms[0]), FIRST_OF_TODAY = FORMS_N - 2 };
        time_t now = (time_t) (now_wall_ms / 1000);

        for (size_t i = 0; i < FORMS_N; i++) {
                struct tm tm = { 0 };
                if (i >= FIRST_OF_TODAY)
                        (void) (text[strlen(text) - 1] == 'Z' ? gmtime_r(&now, &tm) : localtime_r(&now, &tm));
                tm.tm_sec = 0;
                const char *end = strptime(text, forms[i], &tm);
                bool is_utc = end && strcmp(end, "Z") == 0;
                if (!end || (end[0] != '\0' && !is_utc))
                        continue;
                struct tm asked = tm;
                tm.tm_isdst = -1;
                time_t moment = is_utc ? timegm(&tm) : mktime(&tm);
                if (moment < 0 || tm.tm_mday != asked.tm_mday || tm.tm_mon != asked.tm_mon)
                        return -EINVAL;
                *ret_ms = (uint64_t) moment * 1000;
                return 0;
        }
        return -EINVAL;
}

int replay_parse_since(const char *text, uint64_t now_wall_ms, struct walk_since *ret, struct error *err)
{
        char safe[SHOWN_MAX];
        uint64_t ms = 0;

        if (text[0] != '\0' && text[strspn(text, "0123456789")] == '\0') {
                ret->kind = WALK_SINCE_EVENT;
                return parse_u64("--since", text, 1, INT64_MAX, &ret->value, err);
        }
        ret->kind = WALK_SINCE_WALL_MS;
        if (text[0] != '\0' && parse_moment(text, now_wall_ms, &ret->value) == 0)
                return 0;
        if (duration_parse("--since", text, &ms, NULL) == 0) {
                ret->value = u64_sub0(now_wall_ms, ms);
                return 0;
        }
        return error_set(
                err, EINVAL,
                "--since: %s is not allowed; allowed: a time ago (2h), a moment (\"2026-11-30 14:05\", 14:05), "
                "or the number of an event",
                shown(text, safe));
}
