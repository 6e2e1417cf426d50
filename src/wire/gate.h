/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The messages between the daemon ("brain") and lessor-warden-admin, which keeps the gate (docs/decisions/0009): over one
 * SOCK_SEQPACKET socket, one message per datagram, each kind of one fixed size, no text but the program's version in HELLO.
 *
 *   both ways      HELLO   first message of each side, once, sent without waiting for the other's. Its layout never changes,
 *                          so that two versions can name each other; then the gate's program hangs up
 *   brain -> gate  ALLOW   this lease may open the device from now on; its earlier one is replaced
 *                  FORGET  this lease may not any more; nothing is answered
 *                  SET     every lease that counts was named since HELLO, the others are forgotten; read the configuration
 *                          again, and be open, count, or shut, as the brain says and the file allows
 *                  PING    answer with a STATE
 *   gate -> brain  ANSWER  what came of an ALLOW (with its lease) or of a SET (lease 0)
 *                  STATE   the answer to a PING
 *
 *  - An ALLOW that is answered by DONE is in force. OUTSIDE is done too: that cgroup is in none that is gated.
 *  - The kernel keeps no gate without the program: where that ends, or nobody speaks to it for GATE_ALONE_MS, everybody passes.
 *  - Anything malformed, unknown or out of place ends the connection; nothing of it is done.
 *
 * encode and decode keep the promises of wire/eyes.h: any bytes are safe; what is accepted is written again to the same bytes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

enum {
        GATE_VERSION = 1,
        GATE_MESSAGE_MAX = 96,
        GATE_PROGRAM_SIZE = 32, /* "0.1.0", with its NUL */
        /* A lessord that is restarted is back within that; one that hangs is not waited for. Above the 5 s of its pings. */
        GATE_ALONE_MS = 15000,
};

enum gate_kind {
        GATE_NOTHING, /* 0 is no message */
        GATE_HELLO,
        GATE_ALLOW,
        GATE_FORGET,
        GATE_SET,
        GATE_PING,
        GATE_ANSWER,
        GATE_STATE,
        GATE_KIND_N,
};

enum gate_mode {
        GATE_OFF, /* everybody passes, nothing is looked at */
        GATE_LOG, /* everybody passes, and who would not have is counted */
        GATE_ON,
        GATE_MODE_N,
};

enum gate_result { GATE_DONE, GATE_BLOCKED, GATE_FAILED, GATE_RESULT_N };

/* Why not. Order and names are part of the wire format: append only. */
enum gate_why {
        GATE_WHY_NONE,
        GATE_WHY_OUTSIDE,    /* done: nobody stops it where it is */
        GATE_WHY_GONE,       /* no such process or cgroup any more */
        GATE_WHY_OWNER,      /* the process, or its cgroup, belongs to another user */
        GATE_WHY_NOT_OURS,   /* a cgroup that neither lessor made nor its user has to divide */
        GATE_WHY_WHOLE_GATE, /* a gated cgroup itself, or one around it: would let everybody pass */
        GATE_WHY_FULL,       /* no more leases */
        GATE_WHY_NO_CGROUP,  /* there is no cgroup v2 here, or none of the configured ones exists */
        GATE_WHY_CONFIG,     /* the configuration cannot be read, is wrong, or can be changed by others than root */
        GATE_WHY_MODE,       /* the configuration does not have that mode */
        GATE_WHY_KERNEL,     /* no device programs of cgroups here, or not permitted */
        GATE_WHY_SYSTEM,     /* a system call failed: errno says which way */
        GATE_WHY_AWAY,       /* the brain's own: the program is not there */
        GATE_WHY_N,
};

struct gate_hello {
        uint32_t version;                /* GATE_VERSION of the sender */
        char program[GATE_PROGRAM_SIZE]; /* its program's version, printable ASCII */
};

struct gate_allow {
        uint64_t lease_id; /* not 0 */
        uint64_t
                cgroup_id; /* inode of the folder that is the lease's own, with everything below; 0 = where the process is */
        uint32_t pid;      /* with the next one: whose cgroup it is; 0 with a cgroup_id alone */
        uint64_t start_ticks;
        uint32_t owner_uid;
};

struct gate_answer {
        uint64_t lease_id; /* 0 = of a SET */
        enum gate_result result;
        enum gate_why why; /* NONE or OUTSIDE exactly when done */
        int32_t error;     /* errno behind it, 0 = none */
};

struct gate_state {
        uint64_t nonce; /* of the PING, not 0 */
        enum gate_mode mode;
        uint32_t n_cgroups; /* how many are gated */
        uint32_t n_leases;  /* how many of them may pass */
        uint64_t refused;   /* opens that were refused (LOG: that would have been) since the program began */
        uint32_t last_uid;  /* whose the last of them was; 0 while there was none */
};

struct gate_message {
        enum gate_kind kind; /* which of these is meant */
        union {
                struct gate_hello hello;
                struct gate_allow allow;
                struct gate_answer answer;
                struct gate_state state;
                uint64_t lease_id;   /* FORGET; not 0 */
                enum gate_mode mode; /* SET */
                uint64_t nonce;      /* PING; not 0 */
        };
};

int gate_encode(const struct gate_message *msg, void *buf, size_t buf_size, size_t *ret_n, struct error *err);
/* A HELLO of any version is accepted; anything else of another version is -EPROTONOSUPPORT. */
int gate_decode(const void *data, size_t n_data, struct gate_message *ret, struct error *err);

/* Words for logs and JSON; never NULL. */
const char *gate_kind_name(enum gate_kind kind);
const char *gate_mode_name(enum gate_mode mode); /* "off", "log", "on", as lessord.conf has them */
const char *gate_result_name(enum gate_result result);
const char *gate_why_name(enum gate_why why);
/* The same for a person. */
const char *gate_why_words(enum gate_why why);
