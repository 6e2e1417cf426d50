/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What `status`, `devices`, `queue` and `lease show` have in common: the same objects look the same everywhere. */
#include <stdbool.h>
#include <jansson.h>
#include "programs/lessor/verb.h"

enum { LOOK_ON = -1 };

/* Options of a verb that takes --json and no words. LOOK_ON, or the exit code. */
int look_options(const struct verb *verb, int argc, char **argv, bool *ret_json);
/* The same for a verb that takes one lease id; it is checked and written as "L17". */
int look_id_options(const struct verb *verb, int argc, char **argv, bool *ret_json, char *ret_id, size_t id_size);

/* "for L7 (alice, interactive)", "by request", "for a rehearsal": why a lease is away, from its field "park". */
enum { LOOK_WHOM_MAX = 192 };
const char *look_whom(const json_t *park, char buf[LOOK_WHOM_MAX]);
void look_devices(const json_t *devices, bool with_holders);
void look_leases(const json_t *leases);
/* Those that an administrator is to know of; nothing where there are none. */
void look_listed(const json_t *leases);
void look_queue(const json_t *queue);
void look_strangers(const json_t *strangers);
void look_lease(const json_t *lease);
/* "ollama.service", "web (ghcr.io/x/y, service chat)": where it runs; "" = not known. Returns @buf. */
enum { LOOK_PLACE_MAX = 256 };
const char *look_place(const json_t *place, char buf[LOOK_PLACE_MAX]);
