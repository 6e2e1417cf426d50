/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A journal of a long play (play.h), decided by the real core: what `lessor replay` is judged by, also where that core has a
 * fault put into it. As a daemon would write it: ticks that decide nothing are left out, and segments end now and then.
 */
#include <stdbool.h>
#include "base/error.h"

/* @path: a file that is not there yet. */
bool play_journal_write(const char *path, struct error *err);
