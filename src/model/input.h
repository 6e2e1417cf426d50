/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the core is told: facts, each with the time it became known (design 3.1). The journal keeps every one, and feeding
 * them again gives the same actions.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/config.h"
#include "model/device.h"
#include "model/enforce.h"
#include "model/hand.h"
#include "model/host.h"
#include "model/lease.h"
#include "model/process.h"

enum input_kind {
        INPUT_NONE,
        INPUT_TICK,          /* a second passed: slots, heartbeats, uncollected grants, the 30-minute rule */
        INPUT_CONFIG,        /* new configuration, already checked */
        INPUT_DEVICE,        /* a device was found, or its health changed */
        INPUT_READING,       /* a look at one device: changed, or asked for */
        INPUT_PROCESS,       /* facts about a process, before the first reading that lists it */
        INPUT_PROCESS_ENDED, /* its pidfd says so */
        INPUT_EYES,          /* the driver went silent, or answers again */
        INPUT_REQUEST,       /* somebody asks for a lease */
        INPUT_ACTIVATE,      /* the granted lease is collected; says what runs under it */
        INPUT_RENEW,         /* heartbeat */
        INPUT_RELEASE,       /* owner or administrator ends it; also a client that vanished while waiting */
        INPUT_OWNER_ENDED,   /* the process or connection it is bound to is gone */
        INPUT_RESTART,       /* the daemon came back; after it come OWNER_ENDED for those who are gone */
        INPUT_CHANGE,        /* owner or administrator: another priority, slot or pin */
        INPUT_OUTCOME,       /* what came of an order to the hands */
        INPUT_PARK,          /* somebody wants a lease parked or back, or its program says what it did */
        INPUT_HOST,          /* host memory and what its driver can do, when they changed */
        INPUT_RECORD,        /* a record of the hands: what is parked, whoever remembers it */
        INPUT_MANAGER,       /* what came of an order to the manager of a lease's work, or what it said unasked */
        INPUT_PAUSE,         /* the machine is about to sleep or to be shut down, or is awake again */
        INPUT_ENFORCE,       /* an administrator: the mode, approvals */
        INPUT_KIND_N,
};

struct request {
        uint64_t token; /* the asker's, to match the answer; returned in actions as it is */
        uint32_t uid;
        bool is_admin;
        bool no_wait;   /* refuse rather than queue */
        bool collected; /* the asker is connected and takes a grant at once: GRANTED and ACTIVE in one step */
        bool managed;
        bool kill_at_end;
        bool kill_left;
        bool exclusive; /* the whole of a device, with nothing beside it; @bytes: which must fit there, 0 = no matter */
        bool filler;    /* no way out named: checkpoint where proven, else restart */
        bool no_stop;   /* checkpointed, its process is not stopped as well */
        bool adopt;     /* over what runs already: binding.root is the process; 0 bytes: what it uses now */
        bool learned;   /* no size was named: as its earlier runs, or where none are known as percent_milli says */
        uint32_t quota; /* row of the asker's (model/quota.h) */
        uint8_t priority;                /* 1 … 5 */
        uint8_t n_more;                  /* a gang: so many devices beside the first, with @bytes on each */
        uint64_t bytes;                  /* > 0, or 0 with percent_milli */
        uint64_t percent_milli;          /* of the ceiling of the device it lands on; `all` = 100000 */
        uint64_t slot_ms;                /* 0 = no limit */
        uint64_t wait_ms;                /* 0 = for ever */
        uint64_t start_ms;               /* a booking: when it begins, as now_ms counts; 0 = now */
        uint64_t start_wall_ms;          /* see lease.booked_wall_ms */
        bool daily;                      /* see lease.daily */
        uint32_t day_s;                  /* see lease.day_s */
        uint64_t follows_id;             /* daily: made again after this one, which no longer is; 0 = the first */
        char device_uuid[UUID_TEXT_MAX]; /* "" = any */
        struct ways_out ways;
        struct binding binding;
        struct idempotency idempotency;
        char name[NAME_MAX_BYTES];
        char consumer[NAME_MAX_BYTES];
};

enum change_what {
        CHANGE_PRIORITY = 1 << 0,
        CHANGE_SLOT = 1 << 1,   /* slot_ms from now on (queued: from its start on); 0 = no limit any more */
        CHANGE_EXTEND = 1 << 2, /* slot_ms more */
        CHANGE_PIN = 1 << 3,    /* pin_ms from now on; 0 = without an end */
        CHANGE_UNPIN = 1 << 4,
        CHANGE_START = 1 << 5, /* a booking begins at start_ms: people's clocks were set, or stood still */
        CHANGE_ALL = (1 << 6) - 1,
};

#define CHANGE_PIN_LONGEST UINT64_MAX /* pin_ms: as long as the caller may */

struct change {
        uint64_t token;
        uint64_t lease_id;
        uint32_t uid;
        uint32_t quota; /* row of the caller's */
        bool is_admin;
        uint8_t what; /* enum change_what, one bit or several */
        uint8_t priority;
        uint64_t slot_ms;
        uint64_t pin_ms;
        uint64_t start_ms;
};

struct hand_outcome {
        uint64_t order_id; /* the action's id */
        uint64_t lease_id;
        struct identity process;
        uint8_t outcome;     /* enum outcome */
        uint8_t why;         /* enum hand_why */
        uint64_t host_bytes; /* of HAND_CHECKPOINT: by how much the process grew in host memory */
        uint64_t program;    /* of HAND_LOCK: process.program as the hands see it; 0 = unknown */
};

enum park_call_what {
        PARK_CALL_NONE,
        PARK_CALL_PARK,     /* for_ms, or until somebody wants it back */
        PARK_CALL_REHEARSE, /* and back at once */
        PARK_CALL_THAW,
        PARK_CALL_YIELDED, /* its program: what was asked for was given back */
        PARK_CALL_IDLE,    /* its program: nothing to do; keep_alive_ms */
        PARK_CALL_BUSY,
        PARK_CALL_FORGIVE, /* a person: strikes are taken back, a stuck one is tried again */
        PARK_CALL_N,
};

struct park_call {
        uint64_t token;
        uint64_t lease_id;
        uint32_t uid;
        bool is_admin;
        uint8_t what; /* enum park_call_what */
        uint64_t for_ms;
        uint64_t keep_alive_ms;
};

enum enforce_call_what {
        ENFORCE_CALL_NONE,
        ENFORCE_CALL_MODE,      /* @mode from now on */
        ENFORCE_CALL_APPROVE,   /* what @process is: its user, program and script; for_ms, 0 = until it is taken back */
        ENFORCE_CALL_UNAPPROVE, /* @approval_id */
        ENFORCE_CALL_N,
};

struct enforce_call {
        uint64_t token;
        uint32_t uid;
        bool is_admin;
        uint8_t what; /* enum enforce_call_what */
        uint8_t mode; /* enum enforce_mode */
        bool here;    /* only in the unit or container where it runs now */
        struct identity process;
        uint64_t for_ms;
        uint64_t approval_id;
};

/* One process, as its record says (wire/record.h). */
struct park_record {
        struct identity process;
        uint32_t uid;
        uint8_t member; /* enum member_step */
        bool no_stop;
        uint64_t lease_id; /* as it was called then; 0 = not known */
        uint64_t bytes;    /* on the device */
        uint64_t host_bytes;
        char uuid[UUID_TEXT_MAX];
};

struct lease_call { /* activate, renew, release, owner ended */
        uint64_t token;
        uint64_t lease_id;
        uint32_t uid;
        bool is_admin;
        bool by_system;        /* not a person: the daemon itself found out */
        uint8_t end_reason;    /* enum end_reason, for release and owner ended */
        bool failed;           /* release: its program ended with an error */
        struct identity root;  /* activate: the command, or none */
        uint64_t cgroup_id;    /* activate: where it runs, or 0 */
        struct identity owner; /* activate: of a booking, who has it from now on; or none */
};

struct device_facts {
        char uuid[UUID_TEXT_MAX];
        char name[DEVICE_NAME_MAX];
        char pci_bus_id[PCI_TEXT_MAX];
        uint32_t minor;
        uint64_t total_bytes;
        uint64_t budget_bytes;
        uint32_t error_code;
        uint8_t health; /* enum device_health */
};

struct reading {
        char uuid[UUID_TEXT_MAX];
        uint64_t taken_ms; /* when the second of the two totals was read */
        uint64_t total_bytes;
        uint64_t used_bytes;
        bool used_known;
        bool per_process_known;
        bool settled;
        uint32_t n_rows;
        const struct occupancy *rows; /* identity, used_bytes, flags; sorted by nothing; the caller's */
};

struct eyes_state {
        bool answering;
        uint64_t silent_since_ms;
};

/* What logind is about to do with the machine, and waits for us to be ready for. */
enum pause_what { PAUSE_NONE, PAUSE_SLEEP, PAUSE_SHUTDOWN, PAUSE_WHAT_N };

struct pause {
        uint8_t what; /* enum pause_what */
        bool thaws;   /* what is parked and fits comes back before */
};

struct restart_facts {
        bool rebooted; /* another boot id: every process of before is gone */
        bool degraded; /* the books were damaged: nothing is ended or taken back until the next clean start */
};

struct input {
        uint8_t kind; /* enum input_kind */
        uint64_t now_ms;
        union {
                struct config config;
                struct device_facts device;
                struct reading reading;
                struct process process; /* lease unused */
                struct identity process_ended;
                struct eyes_state eyes;
                struct request request;
                struct lease_call call; /* ACTIVATE, RENEW, RELEASE, OWNER_ENDED */
                struct restart_facts restart;
                struct change change;
                struct hand_outcome outcome;
                struct park_call park;
                struct host host;
                struct park_record record;
                struct manager_outcome manager;
                struct pause pause;
                struct enforce_call enforce;
        };
};

const char *input_kind_name(enum input_kind kind);
const char *park_call_name(enum park_call_what what);
const char *enforce_call_name(enum enforce_call_what what);
