/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Unix sockets of SOCK_SEQPACKET: found among what was inherited, or listened at. */
#include <stdbool.h>
#include <sys/types.h>
#include "base/error.h"

bool seqpacket_is(int fd, bool listening);
/* sd_listen_fds(3) for exactly one listening socket; -1 = systemd gave none. */
int seqpacket_of_systemd(void);
/*
 * Born 0600 and given to @owner; whoever else may connect all the same has to be refused by uid. What was at @path is removed. -EPERM:
 * somebody who can write in the folder put something else there meanwhile; it was not given to anybody.
 */
int seqpacket_listen(const char *path, uid_t owner, int *ret_fd, struct error *err);
