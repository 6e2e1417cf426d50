/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a client writes about leases, JSON → struct. Pure over bytes: no clock, no files, nothing about the caller but what
 * the text says. Strict: an unknown key, a wrong type or a number out of range is a problem that names the field.
 * A null is the same as leaving an optional field out.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "api/problem.h"
#include "model/input.h"

enum lease_ask_mode {
        LEASE_ASK_WAIT,  /* the answer comes with the grant; a client that goes away gives up its place */
        LEASE_ASK_QUEUE, /* answer at once, collect later */
        LEASE_ASK_NOW,   /* at once or not at all */
};

/* The caller's part of a request: token, uid, is_admin, binding.owner and a missing consumer are filled in by the server. */
struct lease_ask {
        struct request request;
        enum lease_ask_mode mode;
        uint32_t bind_pid; /* "process": 0 = the caller itself */
        uint32_t adopt_pid;
        bool adopt_cgroup; /* and everything in its cgroup */
        bool books;        /* for later; one of the next two, the other one is 0 */
        uint64_t start_wall_ms;
        uint64_t start_in_ms;
};

struct activate_ask {
        uint32_t pid;       /* 0 = not told */
        uint64_t cgroup_id; /* 0 = not told */
};

enum {
        LEASE_TTL_MIN_MS = 1000,
        LEASE_TTL_MAX_MS = 24 * 3600 * 1000,
        LEASE_TTL_DEFAULT_MS = 60000,
        LEASE_PID_MAX = 4 * 1024 * 1024, /* PID_MAX_LIMIT of the kernel */
};

/* 0, or -1 with *reterr; *ret is written on success only. @data need not be terminated and may hold anything. */
int lease_json_parse(const char *data, size_t n, struct lease_ask *ret, struct problem *reterr);
/* Body of POST /api/plan: as the one above. */
int plan_json_parse(const char *data, size_t n, struct lease_ask *ret, struct problem *reterr);
int adopt_json_parse(const char *data, size_t n, struct lease_ask *ret, struct problem *reterr);
/* Body of …/activate; no body at all is fine. */
int activate_json_parse(const char *data, size_t n, struct activate_ask *ret, struct problem *reterr);
/* Body of …/renew and of others that take nothing: none, or {}. */
int empty_json_parse(const char *data, size_t n, struct problem *reterr);
