/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * From the configuration to open doors (api/door.h): addresses, tokens, certificate, groups. What would let strangers in is
 * refused in words before anything listens (security S04): an address that is reached from elsewhere without TLS, a door
 * without a token.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "api/door.h"
#include "base/error.h"
#include "programs/lessord/conf.h"

struct doors {
        uint32_t n;
        struct door items[DOORS_MAX]; /* the TCP ones; the unix socket opens last (main.c) */
        char *cert, *key;             /* PEM; NULL without TLS */
        bool admin_gid_known;
        gid_t admin_gid;
        char admin_group[CONF_GROUP_MAX];
};

/* On failure everything that was opened is closed again. */
int doors_open(struct doors *ret, const struct conf_doors *conf, struct error *err);
/* Forgets key and certificate; they are needed no longer once the server has started. */
void doors_forget_key(struct doors *doors);
/* Closes what was not handed on. */
void doors_close(struct doors *doors);
/* The group of the system's socket: the one named, else gpu. @ret_known false: neither is there. */
int doors_socket_group(const struct conf_doors *conf, bool *ret_known, gid_t *ret_gid, struct error *err);
