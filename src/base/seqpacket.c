/* SPDX-License-Identifier: Apache-2.0 */
#include "base/seqpacket.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/number.h"

enum { SYSTEMD_FIRST_FD = 3 };

bool seqpacket_is(int fd, bool listening)
{
        int type = 0, accepts = 0;
        socklen_t n_type = sizeof(type), n_accepts = sizeof(accepts);

        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n_type) == 0 && type == SOCK_SEQPACKET &&
               getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &n_accepts) == 0 && (accepts != 0) == listening;
}

int seqpacket_of_systemd(void)
{
        const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
        uint64_t v;

        if (!pid || !n || parse_u64("LISTEN_PID", pid, 1, INT_MAX, &v, NULL) < 0 || (pid_t) v != getpid())
                return -1;
        return strcmp(n, "1") == 0 && seqpacket_is(SYSTEMD_FIRST_FD, true) ? SYSTEMD_FIRST_FD : -1;
}

int seqpacket_listen(const char *path, uid_t owner, int *ret_fd, struct error *err)
{
        struct sockaddr_un addr = { .sun_family = AF_UNIX };
        struct stat st;
        auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return error_errno(err, errno, "a socket");
        if (strlen(path) >= sizeof(addr.sun_path))
                return error_set(err, ENAMETOOLONG, "the socket's path %s is longer than %zu bytes", path,
                                 sizeof(addr.sun_path) - 1);
        (void) snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
        (void) unlink(path);
        mode_t before = umask(0177);
        int r = bind(fd, (struct sockaddr *) &addr, sizeof(addr));
        int code = errno;
        (void) umask(before);
        if (r < 0)
                return error_errno(err, code, "listening at %s", path);
        /* The folder may be lessord's: what it put there meanwhile is not given to it. */
        auto_close int made = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (made < 0 || fstat(made, &st) < 0 || !S_ISSOCK(st.st_mode) || st.st_nlink != 1 || st.st_uid != geteuid())
                return error_set(err, EPERM, "somebody put something else at %s", path);
        if (fchownat(made, "", owner, (gid_t) -1, AT_EMPTY_PATH) < 0 || listen(fd, 4) < 0)
                return error_errno(err, errno, "listening at %s", path);
        *ret_fd = take_fd(fd);
        return 0;
}
