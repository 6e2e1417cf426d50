/* SPDX-License-Identifier: Apache-2.0 */
#include "client/socket_path.h"
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/escape.h"

enum { NSS_WORDS = 4096, WHO_MAX = 64 };

static const char system_path[] = "/run/lessor/lessor.sock";

const char *socket_path_find(char *buf, size_t buf_size)
{
        const char *told = getenv("LESSOR_SOCKET");
        const char *runtime = getenv("XDG_RUNTIME_DIR");
        if (told && told[0] != '\0') {
                (void) snprintf(buf, buf_size, "%s", told);
                return buf;
        }
        if (runtime && runtime[0] == '/') {
                (void) snprintf(buf, buf_size, "%s/lessor/lessor.sock", runtime);
                if (access(buf, F_OK) == 0)
                        return buf;
        }
        (void) snprintf(buf, buf_size, "%s", system_path);
        return buf;
}

/* Who: whoever the databases of users and groups know by that number. Their words are long with a domain behind them, and they
 * are asked with memory of our own: the caller may have threads. */
static void user_name(uid_t uid, char *buf, size_t buf_size)
{
        char words[NSS_WORDS];
        struct passwd pw, *found = NULL;
        if (getpwuid_r(uid, &pw, words, sizeof(words), &found) == 0 && found)
                (void) snprintf(buf, buf_size, "%s", pw.pw_name);
        else
                buf[0] = '\0';
}

static void group_name(gid_t gid, char *buf, size_t buf_size)
{
        char words[NSS_WORDS];
        struct group gr, *found = NULL;
        if (getgrgid_r(gid, &gr, words, sizeof(words), &found) == 0 && found)
                (void) snprintf(buf, buf_size, "%s", gr.gr_name);
        else
                (void) snprintf(buf, buf_size, "%u", gid);
}

struct belongs_to {
        char owner[160];
        char group[WHO_MAX]; /* "" = not known */
        mode_t mode;
};

/* The innermost of the socket and its folders that keeps us out. */
static void whose_is_it(const char *path, struct belongs_to *ret)
{
        char at[SOCKET_PATH_MAX], user[WHO_MAX];
        struct stat st;

        (void) snprintf(at, sizeof(at), "%s", path);
        while (stat(at, &st) < 0) {
                char *slash = strrchr(at, '/');
                if (!slash || slash == at) {
                        *ret = (struct belongs_to){ .owner = "somebody else" };
                        return;
                }
                *slash = '\0';
        }
        user_name(st.st_uid, user, sizeof(user));
        group_name(st.st_gid, ret->group, sizeof(ret->group));
        if (user[0] != '\0')
                (void) snprintf(ret->owner, sizeof(ret->owner), "user %s (uid %u), group %s", user, st.st_uid,
                                ret->group);
        else
                (void) snprintf(ret->owner, sizeof(ret->owner), "uid %u, group %s", st.st_uid, ret->group);
        ret->mode = st.st_mode;
}

static const char *permission_cure(const char *path, const char *shown, char *buf, size_t buf_size)
{
        struct belongs_to its;
        char who[WHO_MAX];

        whose_is_it(path, &its);
        user_name(geteuid(), who, sizeof(who));
        if (who[0] == '\0')
                (void) snprintf(who, sizeof(who), "uid %u", geteuid());
        if (its.group[0] != '\0' && (its.mode & S_IWGRP) != 0 && strcmp(its.group, "root") != 0)
                (void) snprintf(buf, buf_size,
                                "%s may not use lessord's socket %s: it belongs to %s.\n"
                                "Cure: `sudo usermod -aG %s %s`, then log in again (or `newgrp %s`).",
                                who, shown, its.owner, its.group, who, its.group);
        else
                (void) snprintf(buf, buf_size,
                                "%s may not use lessord's socket %s: it belongs to %s, mode %04o.\n"
                                "Cure: run this as that user, start a lessord of your own (`lessord --dir DIR` with "
                                "LESSOR_SOCKET=DIR/lessor.sock), or ask for membership in its group.",
                                who, shown, its.owner, its.mode & 07777);
        return buf;
}

const char *socket_path_cure(const char *path, int r, char *buf, size_t buf_size)
{
        char shown[SOCKET_PATH_MAX];
        (void) text_escape(path, strlen(path), shown, sizeof(shown));

        if (r == -EACCES || r == -EPERM)
                return permission_cure(path, shown, buf, buf_size);
        if (r == -ENAMETOOLONG) {
                (void) snprintf(buf, buf_size,
                                "the socket's path %s is too long: the kernel allows 107 bytes.\n"
                                "Cure: use a shorter folder, or a link to it, in LESSOR_SOCKET.",
                                shown);
                return buf;
        }
        const char *why = r == -ENOENT         ? "there is no socket"
                          : r == -ECONNREFUSED ? "nobody listens on it"
                          : r == -ETIMEDOUT    ? "it does not answer"
                          : r == -ECONNRESET   ? "it went away in the middle of an answer"
                          : r == -EPROTO       ? "what listens there is not lessord"
                                               : strerrordesc_np(-r);
        (void) snprintf(buf, buf_size,
                        "lessord does not answer on %s: %s.\n"
                        "Cure: `sudo systemctl start lessord`, or a private one: `lessord --dir DIR` and "
                        "LESSOR_SOCKET=DIR/lessor.sock.",
                        shown, why ? why : "unknown error");
        return buf;
}
