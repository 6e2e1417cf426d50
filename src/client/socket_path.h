/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where lessord listens, and what to do when it does not. */
#include <stddef.h>

enum { SOCKET_PATH_MAX = 256, AWAY_TEXT_MAX = 1024 };

/*
 * $LESSOR_SOCKET; else the own session's $XDG_RUNTIME_DIR/lessor/lessor.sock where that exists; else
 * /run/lessor/lessor.sock. Returns @buf.
 */
const char *socket_path_find(char *buf, size_t buf_size);
/*
 * Why the socket could not be used and the cure, in one or two lines: how to start lessord, which path was tried; for a
 * permission error the group or user it belongs to and the command that helps. @r is what http_call_begin() returned.
 */
const char *socket_path_cure(const char *path, int r, char *buf, size_t buf_size);
