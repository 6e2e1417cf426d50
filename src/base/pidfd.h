/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Processes are held and signalled by descriptors (pidfd), never by number: a number may be somebody else's by now. */
#include "base/error.h"

/* Whether this kernel and sandbox have pidfd_open(2) and pidfd_send_signal(2), tried on ourselves. Negative errno with words
 * when not: there is no other safe way, so whoever needs one refuses to begin. */
int pidfd_check_usable(struct error *err);
