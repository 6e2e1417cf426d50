/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "programs/lessord/paths.h"

enum { SOCKET_BACKLOG = 256, SOCKET_PATH_MAX = sizeof(((struct sockaddr_un *) 0)->sun_path) - 1 };

#define join(buf, dir, name) ((size_t) snprintf(buf, sizeof(buf), "%s/%s", dir, name) < sizeof(buf))

static bool session_dirs(struct paths *p, struct error *err)
{
        const char *run = getenv("XDG_RUNTIME_DIR"), *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

        if (!run || run[0] != '/') {
                (void) error_set(err, ENOENT,
                                 "XDG_RUNTIME_DIR is not set, so there is no place for this session's "
                                 "socket; use --dir DIR, or log in through a session manager");
                return false;
        }
        bool fits = join(p->run_dir, run, "lessor");
        if (state && state[0] == '/')
                fits = fits && join(p->state_dir, state, "lessor");
        else if (home && home[0] == '/')
                fits = fits && join(p->state_dir, home, ".local/state/lessor");
        else {
                (void) error_set(err, ENOENT, "neither XDG_STATE_HOME nor HOME is set; use --dir DIR");
                return false;
        }
        if (!fits)
                (void) error_set(err, ENAMETOOLONG, "XDG_RUNTIME_DIR or XDG_STATE_HOME is too long; use --dir DIR");
        return fits;
}

int paths_find(enum paths_mode mode, const char *dir, struct paths *ret, struct error *err)
{
        struct paths p = { .mode = mode };
        const char *conf_dir = "/etc/lessor";
        char conf_home[256];
        bool fits = true;

        switch (mode) {
        case PATHS_DIR:
                fits = (size_t) snprintf(p.run_dir, sizeof(p.run_dir), "%s", dir) < sizeof(p.run_dir);
                memcpy(p.state_dir, p.run_dir, sizeof(p.state_dir));
                conf_dir = p.run_dir;
                break;
        case PATHS_SYSTEM:
                (void) snprintf(p.run_dir, sizeof(p.run_dir), "/run/lessor");
                (void) snprintf(p.state_dir, sizeof(p.state_dir), "/var/lib/lessor");
                break;
        case PATHS_SESSION: {
                const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
                if (!session_dirs(&p, err))
                        return -err->code;
                if (config && config[0] == '/')
                        fits = join(conf_home, config, "lessor");
                else
                        fits = join(conf_home, home ? home : "", ".config/lessor");
                conf_dir = conf_home;
                break;
        }
        }
        fits = fits && join(p.socket, p.run_dir, "lessor.sock") && join(p.locks[0], p.run_dir, "lessord.lock") &&
               join(p.locks[1], p.state_dir, "lessord.lock") && join(p.journal, p.state_dir, "journal.db") &&
               join(p.clock, p.state_dir, "clock") && join(p.conf, conf_dir, "lessord.conf") &&
               join(p.conf_accepted, p.state_dir, "lessord.conf.accepted") &&
               join(p.tenants, conf_dir, "tenants.json") && join(p.tenants_folder, conf_dir, "tenants.d") &&
               join(p.tenants_accepted, p.state_dir, "tenants.json.accepted");
        if (!fits || strlen(p.socket) > SOCKET_PATH_MAX)
                return error_set(err, ENAMETOOLONG,
                                 "the socket's path has %zu bytes and the kernel takes %d: %s; use a shorter folder",
                                 strlen(p.socket), SOCKET_PATH_MAX, p.socket);
        *ret = p;
        return 0;
}

static int make_dir(const char *path, mode_t mode, struct error *err)
{
        char part[256];
        struct stat st;

        /* Parents as the umask has them: only the last folder is ours. */
        for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                (void) snprintf(part, sizeof(part), "%.*s", (int) (slash - path), path);
                (void) mkdir(part, 0700);
        }
        if (mkdir(path, mode) < 0) {
                if (errno != EEXIST)
                        return error_errno(err, errno, "creating the folder %s", path);
        } else if (chmod(path, mode) < 0) { /* mkdir() had our umask take away what others need */
                return error_errno(err, errno, "setting the mode of the folder %s", path);
        }
        if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && st.st_uid != geteuid() && st.st_uid != 0)
                return error_set(err, EPERM, "%s is a link that another user made (uid %u); name the folder itself",
                                 path, st.st_uid);
        if (stat(path, &st) < 0)
                return error_errno(err, errno, "looking at the folder %s", path);
        if (!S_ISDIR(st.st_mode))
                return error_set(err, ENOTDIR, "%s is not a folder", path);
        if (st.st_uid != geteuid())
                return error_set(err, EPERM, "the folder %s belongs to another user (uid %u); name one of your own",
                                 path, st.st_uid);
        if (st.st_mode & 022)
                return error_set(err, EPERM, "others can write to the folder %s; chmod 700 it, or name another", path);
        return 0;
}

int paths_make(const struct paths *p, struct error *err)
{
        int r = make_dir(p->run_dir, p->mode == PATHS_SYSTEM ? 0755 : 0700, err);
        return r < 0 ? r : make_dir(p->state_dir, 0700, err);
}

static int lock_folder(const char *lock, const char *folder, int *ret_fd, struct error *err)
{
        auto_close int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
        struct stat st;
        struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        char text[32];

        if (fd < 0)
                return error_errno(err, errno, "opening the lock %s", lock);
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return error_set(err, EINVAL, "the lock %s is no regular file; move it away", lock);
        if (fcntl(fd, F_OFD_SETLK, &whole) < 0) {
                if (errno != EAGAIN && errno != EACCES)
                        return error_errno(err, errno, "locking %s", lock);
                ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
                text[n > 0 ? n : 0] = '\0';
                text[strspn(text, "0123456789")] = '\0';
                return error_set(err, EBUSY,
                                 "another lessord (pid %s) already serves %s; stop it, or use another --dir",
                                 text[0] ? text : "unknown", folder);
        }
        int n = snprintf(text, sizeof(text), "%d\n", (int) getpid());
        /* With another name elsewhere it is left unwritten (S12): it locks all the same. */
        if (st.st_nlink == 1 && (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t) n, 0) != n))
                return error_errno(err, errno, "writing the lock %s", lock);
        *ret_fd = take_fd(fd);
        return 0;
}

int paths_lock(const struct paths *p, int ret_fds[2], struct error *err)
{
        int r = lock_folder(p->locks[0], p->run_dir, &ret_fds[0], err);

        if (r < 0 || strcmp(p->run_dir, p->state_dir) == 0)
                return r;
        return lock_folder(p->locks[1], p->state_dir, &ret_fds[1], err);
}

int paths_listen(const struct paths *p, const gid_t *group, int *ret_fd, struct error *err)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct stat st;

        if (lstat(p->socket, &st) == 0) {
                if (!S_ISSOCK(st.st_mode))
                        return error_set(err, EEXIST, "%s is there and is no socket; move it away", p->socket);
                if (unlink(p->socket) < 0)
                        return error_errno(err, errno, "removing the stale socket %s", p->socket);
        }
        auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return error_errno(err, errno, "creating the socket");
        memcpy(address.sun_path, p->socket, strlen(p->socket) + 1);            /* it fits: paths_find() */
        if (bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0) /* umask 0077: nobody else yet */
                return error_errno(err, errno, "binding the socket %s", p->socket);
        if (group && chown(p->socket, (uid_t) -1, *group) < 0)
                return error_errno(err, errno, "giving the socket %s to group %u", p->socket, *group);
        if (chmod(p->socket, group ? 0660 : 0600) < 0)
                return error_errno(err, errno, "setting the mode of %s", p->socket);
        if (listen(fd, SOCKET_BACKLOG) < 0)
                return error_errno(err, errno, "listening on %s", p->socket);
        *ret_fd = take_fd(fd);
        return 0;
}
