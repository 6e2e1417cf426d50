/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whoever starts us leaves us their signals and descriptors. Put right before anything else, once:
 *
 *   descriptors 0 to 2 closed    the journal, or libuv's own pipes, would get their numbers, and each log line with them
 *   SIGCHLD ignored              the kernel reaps our eyes itself then, and their end is never learned
 *   signals blocked              SIGTERM would not end us
 */
void inherited_put_right(void);
