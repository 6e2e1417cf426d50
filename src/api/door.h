/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A door: a listening socket with the rules of who may come in by it.
 *
 *   unix     who asks is what the kernel says (api/peer.h); everything is served
 *   tcp      the kernel knows nobody there: a bearer token says user or administrator. A user's token acts as the uid the
 *            configuration names, or only reads; an administrator's does everything
 *   metrics  a token, and only the addresses that are marked for it in the table of routes.c
 */
#include <stdbool.h>
#include <stdint.h>
#include "api/token.h"

enum {
        DOORS_MAX = 4,
        DOOR_NAME_MAX = 80,
        DOOR_HOSTS_MAX = 256,
        DOOR_UID_NOBODY = 65534, /* whom a reader by TCP counts as */
};

enum door_kind { DOOR_UNIX, DOOR_TCP, DOOR_METRICS };

struct door {
        enum door_kind kind;
        int listen_fd;              /* bound, listening, non-blocking; the server's from api_server_new() on */
        char name[DOOR_NAME_MAX];   /* "unix", "tcp 127.0.0.1:8787": for logs */
        char hosts[DOOR_HOSTS_MAX]; /* what else a Host may be, besides the loopback names; blanks between */
        struct token user, admin;
        bool uid_known; /* of tcp: whom the user's token acts as */
        uint32_t uid;
        bool tls; /* with the certificate of struct api_options */
};

enum door_role { DOOR_ROLE_NONE, DOOR_ROLE_READER, DOOR_ROLE_USER, DOOR_ROLE_ADMIN };

const char *door_kind_name(enum door_kind kind);
/* Whose token it is; NONE: nobody's. */
enum door_role door_role_of(const struct door *door, const char *token, size_t n);
