/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Questions that start nothing; the answers are exit codes, and words on standard output or error. */
#include "programs/lessord/options.h"
#include "programs/lessord/paths.h"

/* Is the configuration good, and with --print what every key says. */
int check_config(const struct options *options, const struct paths *paths);
/* Was a record of the journal changed, or is it damaged (security S27)? Also while a daemon writes it. */
int check_journal(const struct paths *paths);
