/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The messages between the daemon ("brain") and its child lessor-eyes (design 3.2), over one SOCK_SEQPACKET socketpair:
 * one message per datagram, at most EYES_MESSAGE_MAX bytes, the child's end is its descriptor `--fd N`.
 *
 *   brain -> eyes   BRAIN_HELLO  first message, once; a version the eyes do not speak makes them exit 3
 *                   INTERVAL     from now on look every so many ms (1000 until told), and what processes do each so many (10000)
 *                   READ         look now, and answer even if nothing changed
 *   eyes -> brain   HELLO        what the driver says; comes again whenever that changed, the newest counts
 *                   DEVICE       one card or MIG instance; comes again whenever one of its fields changed
 *                   PROCESS      who a pid is; its pidfd travels with it (SCM_RIGHTS)
 *                   READING      one look at one device
 *                   EXITED       the process is dead (its pidfd became readable)
 *                   ALARM        something a person should hear about; rate-limited
 *                   DONE         the answer to a READ is complete
 *
 * What the brain may rely on:
 *  - Order: HELLO, then a DEVICE for each device, then everything else. A new eyes process tells everything anew; nothing
 *    is carried over, so the brain forgets what the old one said about processes (it keeps the pidfds it was given).
 *  - PROCESS is sent once per identity, before the first READING with a row of it. Each row without
 *    EYES_ROW_GHOST, EYES_ROW_FOREIGN and EYES_ROW_UNIDENTIFIED names an identity whose PROCESS was sent. Facts are as of first sight.
 *  - EXITED is sent once per identity that a PROCESS told, after the death; a new look at all devices follows it at once.
 *    READING rows after EXITED that still name the pid carry EYES_ROW_GHOST.
 *  - READING is sent when requested, else only when something other than the times changed since the last one sent for
 *    that device. So silence is normal, and liveness is asked for: each READ is answered by zero or more READINGs with
 *    its request_id and then exactly one DONE with it, also without driver, without devices, for an unknown uuid.
 *    READs that wait together may be answered from one look, taken after the last of them was received.
 *  - No answer by the brain's deadline = the driver hangs: kill the eyes (SIGKILL), `gpu: stale`, start new ones. The eyes
 *    have no state worth saving. They exit by themselves when the socket closes.
 *  - The eyes never decide and never signal anybody.
 *  - Nothing here is to be believed beyond what eyes_decode() checked: names, paths and command lines are strangers' bytes.
 *
 * encode: writes into @buf; -EMSGSIZE when it does not fit, -EINVAL when a field is outside its range (our own bug).
 * decode: any bytes are safe. -EBADMSG with words when malformed, -EPROTONOSUPPORT for another version. What it accepts
 * it encodes again to the same bytes. A message is written canonically: unknown figures are 0 beside a false validity.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/script.h"

enum { EYES_VERSION = 2 }; /* raised with each change of a message that a released version speaks */

enum {
        EYES_MESSAGE_MAX = 64 * 1024, /* fits a default socket buffer three times */
        EYES_UUID_SIZE = 96, /* NVML's own limit ("MIG-GPU-<uuid>/<gi>/<ci>" included); all _SIZE count the NUL */
        EYES_NAME_SIZE = 96,
        EYES_BUS_ID_SIZE = 32,
        EYES_DRIVER_SIZE = 80,
        EYES_BOOT_ID_SIZE = 37,
        EYES_COMM_SIZE = 64, /* 15 bytes for programs; kernel threads show more */
        EYES_PATH_SIZE = 4096,
        EYES_CMDLINE_MAX = 1024,
        EYES_TOKEN_SIZE = 65,
        EYES_ALARM_SIZE = 256,
        EYES_ROWS_MAX = 1024, /* the driver itself stops at 950 pids */
        EYES_ANCESTORS_MAX = 32,
        EYES_DEVICES_MAX = 64,
        EYES_PID_MAX = INT32_MAX, /* this kernel has none above 4194304; a foreign one may say what it likes (F19) */
        EYES_INTERVAL_MIN_MS = 10,
        EYES_INTERVAL_MAX_MS = 60000,
        EYES_INTERVAL_DEFAULT_MS = 1000,
        EYES_ACTIVITY_MIN_MS = 50,
        EYES_ACTIVITY_MAX_MS = 600000,
        EYES_ACTIVITY_DEFAULT_MS = 10000,
};
#define EYES_BYTES_MAX ((uint64_t) INT64_MAX)

enum eyes_kind {
        EYES_NOTHING, /* 0 is no message */
        EYES_BRAIN_HELLO,
        EYES_INTERVAL,
        EYES_READ,
        EYES_HELLO,
        EYES_DEVICE,
        EYES_PROCESS,
        EYES_READING,
        EYES_EXITED,
        EYES_ALARM,
        EYES_DONE,
        EYES_KIND_N,
};

enum eyes_driver_state {
        EYES_DRIVER_OK,
        EYES_DRIVER_NO_LIBRARY,  /* libnvidia-ml.so.1 cannot be opened: no NVIDIA driver here */
        EYES_DRIVER_OLD_LIBRARY, /* it lacks a symbol that nothing can replace; an ALARM names it */
        EYES_DRIVER_NOT_LOADED,  /* NVML 9: the kernel module is missing */
        EYES_DRIVER_MISMATCH, /* NVML 18: package upgraded under a loaded module; work goes on, nothing can be read: reboot */
        EYES_DRIVER_FAILED, /* any other result of initialisation or of counting the devices */
        EYES_DRIVER_STATE_N,
};

enum eyes_device_state {
        EYES_DEVICE_USABLE,
        EYES_DEVICE_NO_MEMORY_READING, /* the driver gives no memory figure (unified memory): F18 */
        EYES_DEVICE_LOST,              /* NVML 15 or 16: fell off the bus, or needs a reset: F25 */
        EYES_DEVICE_NO_PERMISSION,
        EYES_DEVICE_MIG_PARENT, /* split into instances, which are devices of their own: F28 */
        EYES_DEVICE_FAILING,    /* any other result */
        EYES_DEVICE_GONE,       /* was there, is no longer after the driver was initialised again */
        EYES_DEVICE_STATE_N,
};

/* Does the kernel tell of processes as they come and go? Without it, who leaves parents behind is traced by less. */
enum eyes_events {
        EYES_EVENTS_NONE, /* not asked for */
        EYES_EVENTS_TOLD,
        EYES_EVENTS_REFUSED,   /* EPERM: before Linux 6.6 it needs CAP_NET_ADMIN */
        EYES_EVENTS_NAMESPACE, /* asked, and not answered: it tells only who is in the first user and pid namespace */
        EYES_EVENTS_MISSING,   /* this kernel, or a filter, has no such socket: the errno says which */
        EYES_EVENTS_N,
};

/* How the step to an ancestor is known; the core has the same (model/process.h), in this order. */
enum eyes_kinship {
        EYES_KINSHIP_PARENT,
        EYES_KINSHIP_EVENT,
        EYES_KINSHIP_ACCOUNTED,
        EYES_KINSHIP_TOKEN, /* never the eyes' own finding */
        EYES_KINSHIP_SESSION,
        EYES_KINSHIP_N,
};

enum eyes_error {
        EYES_ERROR_NONE,
        EYES_ERROR_NOT_SUPPORTED,
        EYES_ERROR_NO_PERMISSION,
        EYES_ERROR_LOST,
        EYES_ERROR_REJECTED,  /* it answered, but the answer fails the sanity checks: F21 */
        EYES_ERROR_NO_SYMBOL, /* this library has no such function */
        EYES_ERROR_OTHER,
        EYES_ERROR_N,
};

enum eyes_alarm_kind {
        EYES_ALARM_LIST_REJECTED,   /* process list failed the sanity checks */
        EYES_ALARM_MEMORY_REJECTED, /* memory figure failed them */
        EYES_ALARM_SYMBOL_MISSING,
        EYES_ALARM_DEVICE_LOST,
        EYES_ALARM_DRIVER,      /* initialisation failed */
        EYES_ALARM_DESCRIPTORS, /* out of descriptors or table room: some processes stay unidentified */
        EYES_ALARM_KIND_N,
};

enum {
        EYES_ROW_USED_KNOWN = 1 << 0, /* else used_bytes is 0 and means nothing: F17 */
        EYES_ROW_COMPUTE = 1 << 1,    /* which of the driver's lists it was in; a pid in several is one row */
        EYES_ROW_GRAPHICS = 1 << 2,
        EYES_ROW_MPS = 1 << 3,
        EYES_ROW_GHOST = 1 << 4,        /* no living process has this pid: F20 */
        EYES_ROW_FOREIGN = 1 << 5,      /* the same where the eyes do not see the host's pids (a container): F19 */
        EYES_ROW_UNIDENTIFIED = 1 << 6, /* it lives, but who it is could not be found out (hidepid, descriptor limit) */
        /* What it did over the last whole activity interval; neither: not known, as where the driver gives no samples, for MPS
         * and in another pid namespace. Both come and go at most once an interval, so who goes on as he was sends nothing. */
        EYES_ROW_WORKED = 1 << 7, /* the driver sampled work of it on this device, or it had 1 % of a CPU or more */
        EYES_ROW_RESTED = 1 << 8, /* neither of both */
        EYES_ROW_FLAGS_ALL = (1 << 9) - 1,
};

struct eyes_brain_hello {
        uint32_t version; /* EYES_VERSION */
};

struct eyes_interval {
        uint32_t ms;          /* EYES_INTERVAL_MIN_MS … EYES_INTERVAL_MAX_MS */
        uint32_t activity_ms; /* EYES_ACTIVITY_MIN_MS … EYES_ACTIVITY_MAX_MS */
};

struct eyes_read {
        uint64_t request_id;       /* not 0; comes back in READING and DONE */
        char uuid[EYES_UUID_SIZE]; /* "" = all devices */
};

struct eyes_hello {
        uint32_t version;
        enum eyes_driver_state driver_state;
        int32_t rc;                            /* what NVML returned, 0 where it was not asked */
        char driver_version[EYES_DRIVER_SIZE]; /* "" = unknown */
        char boot_id[EYES_BOOT_ID_SIZE];       /* "" = unknown; part of each identity */
        bool host_pids;     /* false: in a pid namespace; holders may be invisible, never enforce (F19) */
        uint32_t n_devices; /* each has a DEVICE: it follows, or came earlier and has not changed */
        uint32_t n_hidden;  /* devices the driver counts but lets nobody open here (NVML 4, 17): no uuid */
        enum eyes_events events;
        int32_t events_errno; /* of REFUSED and MISSING, else 0 */
        bool accounting;      /* the kernel's process accounting is read */
};

struct eyes_device {
        char uuid[EYES_UUID_SIZE]; /* never "" */
        char name[EYES_NAME_SIZE];
        char bus_id[EYES_BUS_ID_SIZE];    /* as sysfs has it, "0000:65:00.0"; "" = unknown; an instance: its parent's */
        char parent_uuid[EYES_UUID_SIZE]; /* of a MIG instance; "" otherwise */
        bool minor_known;
        uint32_t minor; /* /dev/nvidia<minor>; not an index */
        bool total_known;
        uint64_t total_bytes;
        bool mig; /* this is a MIG instance */
        enum eyes_device_state state;
        int32_t rc; /* the NVML result behind @state, 0 when usable */
};

struct eyes_row {
        uint32_t pid;         /* 1 … EYES_PID_MAX */
        uint32_t flags;       /* EYES_ROW_… */
        uint64_t start_ticks; /* 0 for rows without an identity */
        uint64_t used_bytes;
};

struct eyes_reading {
        char uuid[EYES_UUID_SIZE];
        uint64_t request_id; /* 0 = spontaneous */
        uint64_t taken_ms;   /* CLOCK_MONOTONIC just after the second total was read */
        bool memory_valid;   /* false: both figures are 0 and mean "unknown" */
        uint64_t total_bytes;
        uint64_t used_bytes; /* total - free of the driver, never its own "used" */
        enum eyes_error memory_error;
        int32_t memory_rc;
        /* Total, list, total agreed (up to 3 retries); where there is no list to be had (eyes_list_is_absent),
         * the totals. False whenever the memory is not valid, or a list there should be is not. */
        bool settled;
        bool per_process_valid; /* the rows belong to this look */
        /* When the rows were read: older than taken_ms when the list was refused or rejected and the last good one stands
         * here with its age; 0 = never, and no rows. */
        uint64_t rows_taken_ms;
        enum eyes_error list_error;
        int32_t list_rc;
        uint32_t n_rows;
        struct eyes_row rows[EYES_ROWS_MAX]; /* ascending by pid, each pid once */
};

struct eyes_ancestor {
        uint32_t pid;
        uint64_t start_ticks;
        uint32_t slack_ticks; /* it started up to so much later: it is gone, and the kernel kept no more; 0 = known */
        uint8_t link;         /* enum eyes_kinship: how the step to it, from whom stands before, is known */
};

/* Identity = (boot id, pid, start_ticks). */
struct eyes_process {
        uint32_t pid;
        uint64_t start_ticks; /* field 22 of /proc/PID/stat, 1/100 s since boot */
        bool uid_known;
        uint32_t uid;              /* the real uid: who started it, which a set-uid program does not change */
        uint32_t ppid;             /* 0: none, or outside this pid namespace */
        uint32_t sid;              /* session; 0 likewise */
        char comm[EYES_COMM_SIZE]; /* any bytes */
        bool exe_known;            /* path, device and inode: not readable for other users' processes */
        bool exe_deleted;
        char exe_path[EYES_PATH_SIZE];
        uint64_t exe_dev;
        uint64_t exe_inode;
        bool kernel_thread;
        uint8_t script_kind; /* enum script_kind, by its program and command line; SCRIPT_UNSEEN where the program is not known */
        bool script_known; /* SCRIPT_FILE, and there is such a file */
        uint64_t script_dev;
        uint64_t script_inode;
        bool cgroup_known;
        char cgroup_path[EYES_PATH_SIZE]; /* the v2 line, "/user.slice/…" */
        bool cgroup_id_known;
        uint64_t cgroup_id; /* inode of the cgroup's directory */
        bool command_known; /* else there is none, or it is too long */
        uint64_t command;   /* a number for the whole of it, before anything was made unreadable: of its SHA-256 */
        bool cmdline_cut;
        uint32_t n_cmdline;             /* 0: none (kernel thread, zombie) or not readable */
        char cmdline[EYES_CMDLINE_MAX]; /* NULs kept, not terminated */
        char token[EYES_TOKEN_SIZE];    /* LESSOR_TOKEN of its environment; "" = none, not readable, or not a token */
        uint32_t n_ancestors;           /* nearest first; shorter where the chain could not be followed */
        struct eyes_ancestor ancestors[EYES_ANCESTORS_MAX];
};

struct eyes_exited {
        uint32_t pid;
        uint64_t start_ticks;
};

struct eyes_alarm {
        enum eyes_alarm_kind kind;
        char uuid[EYES_UUID_SIZE]; /* "" = not about one device */
        uint32_t n_dropped;        /* alarms of this kind that the rate limit swallowed since the last one */
        char text[EYES_ALARM_SIZE];
};

struct eyes_done {
        uint64_t request_id;
        uint64_t taken_ms;   /* CLOCK_MONOTONIC when the look was finished */
        uint32_t n_readings; /* READINGs that carried this request_id */
};

/* About 33 KiB: keep one per connection, not on a deep stack. */
struct eyes_message {
        enum eyes_kind kind; /* which of these is meant */
        union {
                struct eyes_brain_hello brain_hello;
                struct eyes_interval interval;
                struct eyes_read read;
                struct eyes_hello hello;
                struct eyes_device device;
                struct eyes_process process;
                struct eyes_reading reading;
                struct eyes_exited exited;
                struct eyes_alarm alarm;
                struct eyes_done done;
        };
};

int eyes_encode(const struct eyes_message *msg, void *buf, size_t buf_size, size_t *ret_n, struct error *err);
int eyes_decode(const void *data, size_t n_data, struct eyes_message *ret, struct error *err);

/* Words for logs and JSON: "no_library", "mig_parent", …; never NULL. */
const char *eyes_kind_name(enum eyes_kind kind);
const char *eyes_driver_state_name(enum eyes_driver_state state);
const char *eyes_device_state_name(enum eyes_device_state state);
const char *eyes_error_name(enum eyes_error error);
const char *eyes_events_name(enum eyes_events events);
const char *eyes_alarm_kind_name(enum eyes_alarm_kind kind);

/* There is no process list for us on this driver, and there will be none: the device's own figure is all there is. */
bool eyes_list_is_absent(enum eyes_error list_error);

/* True when two readings differ in anything but their times and request ids: what decides whether one is sent. */
bool eyes_reading_differs(const struct eyes_reading *a, const struct eyes_reading *b);
