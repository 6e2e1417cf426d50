/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/rescue_keeper.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "client/client.h"
#include "hands/target.h"

enum { ASK_MS = 2000 };

/* Whoever has a record lock on that file: its pid; 0 = nobody, or not to be seen. */
static uint32_t locked_by(const char *path)
{
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        auto_close int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);

        if (fd < 0 || fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
                return 0;
        return lock.l_pid > 0 ? (uint32_t) lock.l_pid : 0;
}

/* Any answer will do. Who may not even ask may not bring anything back there either. */
static bool lessord_answers(const char *run_dir)
{
        struct client client = { .wake_fd = -1 };
        struct client_answer answer = { 0 };

        if ((size_t) snprintf(client.socket_path, sizeof(client.socket_path), "%s/lessor.sock", run_dir) >=
            sizeof(client.socket_path))
                return false; /* the kernel takes no such path for a socket */
        if (client_call(&client, "GET", "/api/status", NULL, ASK_MS, &answer, NULL) < 0)
                return false;
        client_answer_fini(&answer);
        return true;
}

/* Holds the lock of its own folder as long as it lives (hands/book.h); one that somebody stopped does not answer. */
static bool warden_lives(const char *run_dir, uint32_t *ret_pid)
{
        char path[PATH_MAX];
        struct target t;

        if (strcmp(run_dir, "/run/lessor") == 0)
                (void) snprintf(path, sizeof(path), "/run/lessor-warden/lock");
        else
                (void) snprintf(path, sizeof(path), "%s/warden/lock", run_dir);
        *ret_pid = locked_by(path);
        return *ret_pid != 0 && target_look(*ret_pid, &t) && t.state != 'T' && t.state != 't';
}

void rescue_keeper_find(struct rescue_folder *folder)
{
        if (lessord_answers(folder->run_dir))
                folder->keeper = RESCUE_KEEPER_LESSORD;
        else if (warden_lives(folder->run_dir, &folder->warden_pid))
                folder->keeper = RESCUE_KEEPER_WARDEN;
        else
                folder->keeper = RESCUE_KEEPER_NONE;
}

const char *rescue_keeper_words(const struct rescue_folder *folder, char buf[RESCUE_WHY_MAX])
{
        buf[0] = '\0';
        if (folder->keeper == RESCUE_KEEPER_LESSORD)
                (void) snprintf(buf, RESCUE_WHY_MAX,
                                "lessord answers here and brings back what is parked: ask it, by `lessor thaw ID`; "
                                "--force goes around it");
        else if (folder->keeper == RESCUE_KEEPER_WARDEN)
                (void) snprintf(buf, RESCUE_WHY_MAX,
                                "no lessord answers here, but lessor-warden (pid %u) waits for one: start lessord and "
                                "ask it, or stop both (`systemctl stop lessord lessor-warden`); --force goes around "
                                "them",
                                folder->warden_pid);
        return buf;
}
