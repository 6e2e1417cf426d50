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

/* The innermost of the socket and its folders that keeps us out. */
static void whose_is_it(const char *path, char *owner, size_t owner_size, const char **ret_group, mode_t *ret_mode)
{
        static char group_name[64];
        char at[SOCKET_PATH_MAX];
        struct stat st;

        (void) snprintf(at, sizeof(at), "%s", path);
        while (stat(at, &st) < 0) {
                char *slash = strrchr(at, '/');
                if (!slash || slash == at) {
                        (void) snprintf(owner, owner_size, "somebody else");
                        *ret_group = NULL;
                        *ret_mode = 0;
                        return;
                }
                *slash = '\0';
        }
        const struct passwd *pw = getpwuid(st.st_uid);
        const struct group *gr = getgrgid(st.st_gid);
        if (gr)
                (void) snprintf(group_name, sizeof(group_name), "%s", gr->gr_name);
        else
                (void) snprintf(group_name, sizeof(group_name), "%u", st.st_gid);
        if (pw)
                (void) snprintf(owner, owner_size, "user %s (uid %u), group %s", pw->pw_name, st.st_uid, group_name);
        else
                (void) snprintf(owner, owner_size, "uid %u, group %s", st.st_uid, group_name);
        *ret_group = group_name;
        *ret_mode = st.st_mode;
}

static const char *permission_cure(const char *path, const char *shown, char *buf, size_t buf_size)
{
        char owner[160], who[64];
        const char *group;
        mode_t mode;

        whose_is_it(path, owner, sizeof(owner), &group, &mode);
        const struct passwd *pw = getpwuid(geteuid());
        if (pw)
                (void) snprintf(who, sizeof(who), "%s", pw->pw_name);
        else
                (void) snprintf(who, sizeof(who), "uid %u", geteuid());
        if (group && (mode & S_IWGRP) != 0 && strcmp(group, "root") != 0)
                (void) snprintf(buf, buf_size,
                                "%s may not use lessord's socket %s: it belongs to %s.\n"
                                "Cure: `sudo usermod -aG %s %s`, then log in again (or `newgrp %s`).",
                                who, shown, owner, group, who, group);
        else
                (void) snprintf(buf, buf_size,
                                "%s may not use lessord's socket %s: it belongs to %s, mode %04o.\n"
                                "Cure: run this as that user, start a lessord of your own (`lessord --dir DIR` with "
                                "LESSOR_SOCKET=DIR/lessor.sock), or ask for membership in its group.",
                                who, shown, owner, mode & 07777);
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
