/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The regular file that a process means by a path: below its own root and from its own working folder, wherever links lead there.
 * Nothing is opened for reading, and no link of the kernel's (/proc/self/fd/3, /dev/stdin) is followed.
 */
#include <stdbool.h>
#include <stdint.h>

/*
 * @proc_dir  the process's folder below /proc, with the right to look into it
 * @wait      false: only what the kernel has in memory; a file server, or a file system of a user's own, is not asked, and a file that
 *            the process has read lately is there. Before Linux 5.12 there is no such look: false
 * False: no such file, or not to be seen; nothing is in @ret_dev and @ret_inode then.
 */
bool process_file_look(int proc_dir, const char *path, bool wait, uint64_t *ret_dev, uint64_t *ret_inode);
