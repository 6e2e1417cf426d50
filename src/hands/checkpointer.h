/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * lessor-checkpoint, seen from lessor-warden: a program beside it that forks the helpers which load the driver's library. It is
 * started before the warden gives up its rights, because the warden's filter lets neither that library work nor a program start.
 *
 *   PREPARE slot   forks a helper that waits, and answers with its pid (int32; else a negative errno)
 *   GO slot        it begins with the order in that slot of the book
 *   CANCEL slot    it ends, nothing was done
 *   LET_GO         unlock whoever is held; also when the socket closes
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

enum checkpointer_word { CHECKPOINTER_PREPARE = 1, CHECKPOINTER_GO, CHECKPOINTER_CANCEL, CHECKPOINTER_LET_GO };

struct checkpointer_message {
        uint32_t word; /* enum checkpointer_word */
        uint32_t slot;
};

enum { CHECKPOINTER_SOCKET_FD = 3, CHECKPOINTER_BOOK_FD, CHECKPOINTER_PARKED_FD }; /* as it finds them */

/* It lives as long as our end of the socket is open. */
int checkpointer_start(const char *program, int book, int parked, bool system, int *ret_sock, struct error *err);
/* The helper's pid, or a negative errno. It holds its number until GO or CANCEL. */
int checkpointer_prepare(int sock, uint32_t slot);
/* 0 or a negative errno. */
int checkpointer_say(int sock, enum checkpointer_word word, uint32_t slot);
