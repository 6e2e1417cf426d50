/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An application as data (design 4.5): how its processes are told from others, how important it is, what it needs, whether it is busy, and
 * how it gives memory back. Read from files (tenants.h); nothing in C knows any application. All texts and JSON values are
 * borrowed from the documents of the set they belong to.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
        TENANTS_MAX = 128,
        TENANT_NAME_MAX = 48, /* with the NUL, as all _MAX of texts here */
        TENANT_WORD_MAX = 64,
        TENANT_TEXT_MAX = 512,
        TENANT_RULES_MAX = 16,
        TENANT_WAYS_MAX = 8,
        TENANT_CALLS_MAX = 4,
        TENANT_BUSY_MAX = 8,
        TENANT_LIST_MAX = 16,
};

struct tenant_list {
        uint32_t n;
        const char *items[TENANT_LIST_MAX];
};

/* ---- how it is recognised ---- */

/* Patterns with * and ?, each NULL when not given. All that are given must fit. */
struct tenant_program {
        const char *program;          /* of its path where it has a slash, else of the last part of it */
        const char *title;            /* of argv[0] whole: what programs that name themselves write there */
        struct tenant_list arguments; /* of each, one argument behind argv[0] must fit */
};

struct tenant_rule {
        const char *role; /* NULL = "main"; what probes and ways out name */
        struct tenant_program self, ancestor;
        const char *unit;
        const char *container, *image, *compose_service, *compose_project;
};

/* ---- what is asked of it ---- */

enum tenant_test {
        TENANT_TEST_NONE,
        TENANT_TEST_ABOVE,    /* a number greater than @above */
        TENANT_TEST_EQUALS,   /* this very value */
        TENANT_TEST_NOT_EMPTY /* there, and neither null, "" nor empty */
};

struct tenant_expect {
        uint32_t n_status;
        uint16_t status[TENANT_LIST_MAX];
        const char *pointer;  /* into the answer; NULL = only the status counts */
        const json_t *equals; /* a scalar; NULL = it need only be there */
};

/* For each item of a list that it gives first: {item} in path and body stands for what @pointer finds in it. */
struct tenant_each {
        const char *path, *items, *pointer;
        const char *where;    /* NULL = of every item; else only of those in which this pointer finds … */
        const json_t *equals; /* … this */
};

struct tenant_call {
        uint8_t method; /* enum tenant_method */
        const char *path;
        const json_t *body; /* an object, or NULL */
        struct tenant_expect expect;
        struct tenant_each each; /* path NULL = once */
};

enum tenant_method {
        TENANT_GET,
        TENANT_POST,
        TENANT_PUT,
        TENANT_PATCH,
        TENANT_DELETE,
        TENANT_METHOD_N,
};

struct tenant_calls {
        uint32_t n;
        struct tenant_call items[TENANT_CALLS_MAX];
};

/* ---- is it busy ---- */

enum tenant_busy_from {
        TENANT_BUSY_HTTP,          /* a value in a JSON answer */
        TENANT_BUSY_METRICS,       /* lines of a Prometheus text: busy when one is above */
        TENANT_BUSY_SLOTS,         /* a JSON list: busy when one item is */
        TENANT_BUSY_MEMORY,        /* it uses more than this */
        TENANT_BUSY_MEMORY_CHANGE, /* its own memory changes */
        TENANT_BUSY_EXEC,          /* a program's exit code */
        TENANT_BUSY_FROM_N,
};

struct tenant_busy {
        uint8_t from;  /* enum tenant_busy_from */
        uint8_t test;  /* enum tenant_test */
        uint16_t port; /* of several that it listens on; 0 = the only one */
        const char *role, *path, *pointer;
        struct tenant_list lines;
        int64_t above;
        const json_t *equals;
        uint64_t above_bytes; /* TENANT_BUSY_MEMORY */
        uint64_t stale_after_ms;
        struct tenant_list argv;
        const char *user;
        int64_t busy_code;
};

struct tenant_busies {
        uint32_t n;
        struct tenant_busy items[TENANT_BUSY_MAX];
};

/* ---- how it gives memory back ---- */

enum tenant_way_by {
        TENANT_WAY_HTTP,
        TENANT_WAY_EXEC,       /* argv, by that user's agent */
        TENANT_WAY_RESTART,    /* by whoever owns it: unit or container */
        TENANT_WAY_CHECKPOINT, /* by the driver, into host memory */
        TENANT_WAY_BY_N,
};

enum tenant_when {
        TENANT_WHEN_IDLE, /* only while it has nothing to do */
        TENANT_WHEN_ANY,  /* may be asked at work: it finishes first */
};

struct tenant_way {
        uint8_t by;   /* enum tenant_way_by */
        uint8_t when; /* enum tenant_when */
        bool to_ram;  /* what is given back lies in host memory then */
        bool floor_known;
        uint16_t port;        /* of several that it listens on; 0 = the only one */
        uint64_t floor_bytes; /* what stays; else it is learned */
        uint64_t deadline_ms; /* 0 = as configured */
        const char *role;
        struct tenant_calls calls, back; /* TENANT_WAY_HTTP: in order; and what undoes them */
        struct tenant_list argv;         /* TENANT_WAY_EXEC */
        const char *user;
        const char *documented; /* where its application says so; NULL = nowhere */
        const char *drops;      /* what is lost by it; NULL = nothing */
};

struct tenant_ways {
        uint32_t n;
        struct tenant_way items[TENANT_WAYS_MAX];
};

/* ---- the rest ---- */

struct tenant_request {
        const char *path, *model; /* a request's path; where in its body the model's name stands */
};

struct tenant_need {
        uint64_t flat_bytes; /* 0 = it depends on the model, read from each request */
        uint32_t n_requests; /* 0 and flat 0 = nobody knows: it is never inferred starved */
        struct tenant_request requests[TENANT_LIST_MAX];
};

struct tenant_demand { /* what begins is owed room at once */
        uint64_t leave_within_ms, return_after_ms;
};

enum tenant_event_from { TENANT_EVENT_NONE, TENANT_EVENT_WEBSOCKET, TENANT_EVENT_SSE };

struct tenant_events {
        uint8_t from;  /* enum tenant_event_from */
        uint16_t port; /* as of a probe */
        const char *role, *path;
};

struct tenant_proxy {
        const char *listen;
        struct tenant_list hold; /* beginnings of paths whose requests may have to wait */
};

/* Its keys: names and order are those of the table in tenant.c. */
enum tenant_key {
        TENANT_TITLE,
        TENANT_MATCH,
        TENANT_PRIORITY,
        TENANT_NEED,
        TENANT_RESERVE,
        TENANT_BUSY,
        TENANT_WAYS_OUT,
        TENANT_LINGER,
        TENANT_IDLE_RELEASE,
        TENANT_QUIET_WINDOW,
        TENANT_DEMAND_ON_START,
        TENANT_CLOCK_PROFILE,
        TENANT_EVENTS,
        TENANT_PROXY,
        TENANT_HEADERS_FROM,
        TENANT_PROTECTED,
        TENANT_DISABLED,
        TENANT_CHECKED_AGAINST,
        TENANT_CANNOT,
        TENANT_SOURCE,
        TENANT_KEY_N,
};

struct tenant {
        const char *name;
        uint32_t given;             /* bits of enum tenant_key; what is not given is as configured, or not so */
        uint8_t from[TENANT_KEY_N]; /* which file of the set said so */
        const char *title;
        uint32_t n_rules;
        struct tenant_rule rules[TENANT_RULES_MAX];
        uint8_t priority; /* 1 … 5 */
        struct tenant_need need;
        uint64_t reserve_bytes;
        struct tenant_busies busy; /* they must agree */
        struct tenant_ways ways;   /* in their order */
        uint64_t linger_ms, idle_release_ms, quiet_window_ms;
        struct tenant_demand demand_on_start;
        const char *clock_profile;
        struct tenant_events events;
        struct tenant_proxy proxy;
        const char *headers_from; /* a file with keys, which only its owner may read */
        bool is_protected, disabled;
        const char *checked_against; /* version of the application; NULL = none */
        struct tenant_list cannot;   /* what of its memory cannot be taken back, and why */
        struct tenant_list source;   /* where the facts come from */
};

static inline bool tenant_gives(const struct tenant *t, enum tenant_key key)
{
        return (t->given & (1U << key)) != 0;
}

/*
 * Is it used without anybody's having said so (`lessor tenants enable`)? Only what the application documents as a way to give
 * memory back, and what loses nothing by it: never a restart, never a checkpoint.
 */
static inline bool tenant_way_is_on(const struct tenant_way *way)
{
        return (way->by == TENANT_WAY_HTTP || way->by == TENANT_WAY_EXEC) && way->documented && !way->drops;
}

const char *tenant_key_name(enum tenant_key key);
const char *tenant_way_name(enum tenant_way_by by);
