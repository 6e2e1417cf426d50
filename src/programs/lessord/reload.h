/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The configuration over time. At the start a file that is wrong does not keep the daemon down: the last one it accepted
 * (kept beside the journal) counts, and status and config say so. Reading it again (SIGHUP, POST /api/reload) takes all of
 * it or nothing; what is set up once (doors, groups) is refused by name: it needs a restart.
 */
#include "base/error.h"

struct daemon;

enum conf_source {
        CONF_FROM_DEFAULTS, /* there is no file */
        CONF_FROM_FILE,
        CONF_FROM_ACCEPTED, /* the file is wrong */
};

const char *reload_source_name(enum conf_source source);
const char *reload_path(const struct daemon *d);
/* At the start, before anything else of the configuration is used. @path: as given by a person, or NULL. */
int reload_first(struct daemon *d, const char *path, struct error *err);
/* Once the folders are there and locked: this configuration is good. */
void reload_accept(struct daemon *d);
int reload_now(struct daemon *d, struct error *err);
