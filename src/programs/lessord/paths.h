/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where everything lies (design 7): one private folder with --dir, the user's own session, or the system's. */
#include <stdbool.h>
#include <sys/types.h>
#include "base/error.h"

enum paths_mode { PATHS_SESSION, PATHS_DIR, PATHS_SYSTEM };

struct paths {
        enum paths_mode mode;
        char run_dir[256];   /* socket */
        char state_dir[256]; /* journal; with --dir the same folder */
        char socket[320];
        char locks[2][320]; /* of both folders */
        char journal[320];
        char clock[320];
        char conf[320];
        char conf_accepted[320];                                       /* the last one that was good (reload.h) */
        char tenants[320], tenants_folder[320], tenants_accepted[320]; /* the same of tenants (tenants_kept.h) */
};

/* @dir: for PATHS_DIR. Fails when the socket's path is longer than the kernel takes. */
int paths_find(enum paths_mode mode, const char *dir, struct paths *ret, struct error *err);
/* Creates the folders (0700; the system's run folder 0755) and refuses ones that others could write to. */
int paths_make(const struct paths *paths, struct error *err);
/* One daemon a folder, the state's too: two sessions of a user have two sockets and one journal. Open-file locks that go with
 * the process, however it ends; the descriptors stay open (-1: not needed). */
int paths_lock(const struct paths *paths, int ret_fds[2], struct error *err);
/* A listening, non-blocking socket; a stale one is replaced. Only while the lock is held. @group: whose members may use it
 * too (0660); NULL: nobody but us (0600). -EPERM: that group cannot be given. */
int paths_listen(const struct paths *paths, const gid_t *group, int *ret_fd, struct error *err);
