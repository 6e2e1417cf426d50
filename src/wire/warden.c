/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/warden.h"
#include <errno.h>
#include <string.h>
#include "wire/message.h"

enum { PID_MAX = INT32_MAX, SIGNAL_MAX = 64, ERRNO_MAX = 4095 };

static void code_uuid(struct codec *c, uint8_t *uuid, bool required, bool allowed)
{
        static const uint8_t none[WARDEN_UUID_SIZE];

        if (c->writing)
                bytes_put_data(&c->w, uuid, WARDEN_UUID_SIZE);
        else
                (void) bytes_get_data(&c->r, uuid, WARDEN_UUID_SIZE);
        bool given = memcmp(uuid, none, sizeof(none)) != 0;
        code_require(c, "device_uuid", given ? allowed : !required);
}

static void code_parking(struct codec *c, struct warden_order *m)
{
        bool parks = warden_verb_parks(m->verb), locks = m->verb == WARDEN_LOCK || m->verb == WARDEN_HOLD;
        uint64_t most = parks ? UINT64_MAX : 0;

        code_uuid(c, m->device_uuid, locks || m->verb == WARDEN_RESTORE, parks);
        code_u64(c, "lease_id", &m->lease_id, 0, most);
        code_u64(c, "bytes", &m->bytes, 0, most);
        code_u64(c, "used_at_most_bytes", &m->used_at_most_bytes, 0, most);
        code_u32(c, "deadline_ms", &m->deadline_ms, locks ? 1 : 0, parks ? WARDEN_DEADLINE_MOST_MS : 0);
        code_u32(c, "flags", &m->flags, 0, parks ? WARDEN_FLAG_ALL : 0);
}

static void code_order(struct codec *c, struct warden_order *m)
{
        code_u64(c, "order_id", &m->order_id, 1, UINT64_MAX);
        code_enum(c, "verb", &m->verb, WARDEN_SIGNAL, WARDEN_VERB_N);
        bool signals = m->verb == WARDEN_SIGNAL;
        code_u32(c, "signal", &m->signal, signals ? 1 : 0, signals ? SIGNAL_MAX : 0);
        code_u32(c, "pid", &m->pid, 1, PID_MAX);
        code_u64(c, "start_ticks", &m->start_ticks, 0, UINT64_MAX);
        code_u64(c, "pidfd_inode", &m->pidfd_inode, 0, UINT64_MAX);
        code_u32(c, "owner_uid", &m->owner_uid, 0, UINT32_MAX - 1); /* the last one means "no uid" everywhere */
        code_u64(c, "cgroup_id", &m->cgroup_id, 0, UINT64_MAX);
        code_u32(c, "reason", &m->reason, 0, UINT32_MAX);
        code_parking(c, m);
}

static void code_answer(struct codec *c, struct warden_answer *m)
{
        uint32_t error = (uint32_t) m->error;

        code_u64(c, "order_id", &m->order_id, 1, UINT64_MAX);
        code_enum(c, "result", &m->result, 0, WARDEN_RESULT_N);
        code_enum(c, "why", &m->why, 0, WARDEN_WHY_N);
        code_require(c, "why", (m->result == WARDEN_DONE) == (m->why == WARDEN_WHY_NONE));
        code_u32(c, "error", &error, 0, ERRNO_MAX);
        m->error = (int32_t) error;
        code_bool(c, &m->kept);
        code_u32(c, "driver_code", &m->driver_code, 0, UINT32_MAX);
        code_u64(c, "host_bytes", &m->host_bytes, 0, UINT64_MAX);
        code_u32(c, "duration_ms", &m->duration_ms, 0, UINT32_MAX);
        code_u64(c, "program_dev", &m->program_dev, 0, m->result == WARDEN_DONE ? UINT64_MAX : 0);
        code_u64(c, "program_inode", &m->program_inode, 0, m->result == WARDEN_DONE ? UINT64_MAX : 0);
        code_u64(c, "file_dev", &m->file_dev, 0, m->program_dev != 0 ? UINT64_MAX : 0);
        code_u64(c, "file_inode", &m->file_inode, 0, m->program_dev != 0 ? UINT64_MAX : 0);
}

static void code_path(struct codec *c, struct warden_message *msg, bool has_one)
{
        if (has_one)
                code_text(c, "path", msg->path, sizeof(msg->path), true);
        else
                code_require(c, "path", msg->path[0] == '\0');
}

static void code_message(struct codec *c, struct warden_message *msg)
{
        switch (msg->kind) {
        case WARDEN_HELLO:
                code_program(c, msg->hello.program, sizeof(msg->hello.program)); /* its version is the header's */
                return;
        case WARDEN_ORDER:
                code_order(c, &msg->order);
                code_path(c, msg, msg->order.verb == WARDEN_LOOK);
                return;
        case WARDEN_OUTCOME:
                code_answer(c, &msg->outcome);
                code_path(c, msg, msg->outcome.program_dev != 0);
                return;
        case WARDEN_SETTLED:
        case WARDEN_HELD:
                code_u64(c, "order_id", &msg->order_id, 1, UINT64_MAX);
                return;
        case WARDEN_PING:
                code_u64(c, "nonce", &msg->nonce, 1, UINT64_MAX);
                return;
        case WARDEN_STATE:
                code_u64(c, "nonce", &msg->state.nonce, 0, UINT64_MAX);
                code_u32(c, "n_running", &msg->state.n_running, 0, UINT16_MAX);
                code_u32(c, "can", &msg->state.can, 0, WARDEN_CAN_ALL);
                return;
        case WARDEN_NOTHING:
        case WARDEN_KIND_N:
                break;
        }
        code_require(c, "kind", false);
}

int warden_encode(const struct warden_message *msg, void *buf, size_t buf_size, size_t *ret_n, struct error *err)
{
        struct warden_message m = *msg;
        struct codec c;

        codec_write(&c, buf, buf_size, msg->kind == WARDEN_HELLO ? msg->hello.version : WARDEN_VERSION, msg->kind);
        code_message(&c, &m);
        return codec_written(&c, "warden", warden_kind_name(msg->kind), ret_n, err);
}

static int decode(struct codec *c, uint32_t version, uint32_t kind, struct warden_message *msg, struct error *err)
{
        if (kind == WARDEN_HELLO)
                msg->hello.version = version;
        else if (version != WARDEN_VERSION)
                return codec_refuse_version("warden", version, WARDEN_VERSION, err);
        if (kind == WARDEN_NOTHING || kind >= WARDEN_KIND_N || version == 0)
                return codec_refuse_kind("warden", kind, err);
        msg->kind = (enum warden_kind) kind;
        code_message(c, msg);
        return codec_was_read(c, "warden", warden_kind_name(msg->kind), err);
}

int warden_decode(const void *data, size_t n_data, struct warden_message *ret, struct error *err)
{
        struct codec c;
        uint32_t version, kind;

        memset(ret, 0, sizeof(*ret));
        int r = codec_read(&c, "warden", data, n_data, WARDEN_MESSAGE_MAX, &version, &kind, err);
        if (r == 0)
                r = decode(&c, version, kind, ret, err);
        if (r < 0)
                ret->kind = WARDEN_NOTHING;
        return r;
}

#define NAME_OR_UNKNOWN(table, value)                                                                                  \
        ((size_t) (value) < sizeof(table) / sizeof(*(table)) && (table)[value] ? (table)[value] : "unknown")

const char *warden_kind_name(enum warden_kind kind)
{
        static const char *const names[WARDEN_KIND_N] = {
                [WARDEN_HELLO] = "hello", [WARDEN_ORDER] = "order", [WARDEN_OUTCOME] = "outcome",
                [WARDEN_HELD] = "held",   [WARDEN_PING] = "ping",   [WARDEN_SETTLED] = "settled",
                [WARDEN_STATE] = "state",
        };
        return NAME_OR_UNKNOWN(names, kind);
}

const char *warden_verb_name(enum warden_verb verb)
{
        static const char *const names[WARDEN_VERB_N] = {
                [WARDEN_SIGNAL] = "signal",
                [WARDEN_FREEZE] = "freeze",
                [WARDEN_THAW] = "thaw",
                [WARDEN_KILL_TREE] = "kill_tree",
                [WARDEN_CHECKPOINT] = "checkpoint",
                [WARDEN_LOCK] = "lock",
                [WARDEN_RESTORE] = "restore",
                [WARDEN_UNLOCK] = "unlock",
                [WARDEN_STOP] = "stop",
                [WARDEN_CONT] = "cont",
                [WARDEN_HOLD] = "hold",
                [WARDEN_LOOK] = "look",
        };
        return NAME_OR_UNKNOWN(names, verb);
}

const char *warden_result_name(enum warden_result result)
{
        static const char *const names[WARDEN_RESULT_N] = {
                [WARDEN_DONE] = "done",
                [WARDEN_BLOCKED] = "blocked",
                [WARDEN_FAILED] = "failed",
        };
        return NAME_OR_UNKNOWN(names, result);
}

static const struct {
        const char *name, *words;
} whys[WARDEN_WHY_N] = {
        [WARDEN_WHY_NONE] = { "none", "done" },
        [WARDEN_WHY_GONE] = { "gone", "the process is no longer there" },
        [WARDEN_WHY_RECYCLED] = { "recycled", "its pid belongs to another process by now" },
        [WARDEN_WHY_UNSEEN] = { "unseen", "who the process is cannot be seen from here" },
        [WARDEN_WHY_OTHER_OWNER] = { "other_owner", "the process belongs to another user" },
        [WARDEN_WHY_UID_NOT_ALLOWED] = { "uid_not_allowed",
                                         "processes of that user are never signalled (signal_uids)" },
        [WARDEN_WHY_PROTECTED_INIT] = { "protected_init", "it is process 1" },
        [WARDEN_WHY_PROTECTED_KERNEL] = { "protected_kernel", "it is part of the kernel" },
        [WARDEN_WHY_PROTECTED_LESSOR] = { "protected_lessor", "it is part of lessor, or started it" },
        [WARDEN_WHY_PROTECTED_PROGRAM] = { "protected_program", "its program is on the protected list" },
        [WARDEN_WHY_VERB] = { "verb", "this lessor-warden cannot do that" },
        [WARDEN_WHY_SIGNAL] = { "signal", "lessor-warden does not send that signal" },
        [WARDEN_WHY_NO_GRACE] = { "no_grace", "it was not asked to end (SIGTERM) long enough ago" },
        [WARDEN_WHY_RATE] = { "rate", "too many orders at once" },
        [WARDEN_WHY_BUSY] = { "busy", "another order on the same process is still being carried out" },
        [WARDEN_WHY_NO_CGROUP] = { "no_cgroup", "its cgroup cannot be opened (version 2 is needed)" },
        [WARDEN_WHY_CGROUP_NOT_MEMBER] = { "cgroup_not_member", "the process is not in that cgroup" },
        [WARDEN_WHY_CGROUP_NOT_OURS] = { "cgroup_not_ours", "lessor did not make that cgroup for that user" },
        [WARDEN_WHY_CGROUP_HAS_OTHERS] = { "cgroup_has_others", "a process in that cgroup may not be signalled" },
        [WARDEN_WHY_KERNEL_TOO_OLD] = { "kernel_too_old", "the kernel has no pidfd signals (Linux 5.3 is needed)" },
        [WARDEN_WHY_SYSTEM] = { "system", "a system call failed" },
        [WARDEN_WHY_UNKILLABLE] = { "unkillable", "it lives after three SIGKILLs: it hangs in the kernel" },
        [WARDEN_WHY_NOT_FROZEN] = { "not_frozen", "it did not stand still in time and goes on" },
        [WARDEN_WHY_LOST] = { "lost", "lessor-warden ended in the middle: whether it was done is not known" },
        [WARDEN_WHY_AWAY] = { "hands_away", "lessor-warden is not there at the moment" },
        [WARDEN_WHY_STATE] = { "state", "the state that is recorded of the process does not allow it" },
        [WARDEN_WHY_PARKED] = { "parked", "it is parked, and what is parked is not signalled" },
        [WARDEN_WHY_FINAL] = { "final", "an earlier step failed for good; nothing more is tried on it" },
        [WARDEN_WHY_RECORD] = { "record", "its record is damaged or could not be written" },
        [WARDEN_WHY_STANDS_STILL] = { "stands_still", "somebody stopped or froze it; it has to run to be asked" },
        [WARDEN_WHY_LOCK_TIMEOUT] = { "lock_timeout", "a kernel was still running at the deadline; it runs on" },
        [WARDEN_WHY_DEVICE] = { "device", "it was parked from another device" },
        [WARDEN_WHY_HEADROOM] = { "headroom", "the device has no room for it at the last look" },
        [WARDEN_WHY_CANNOT_MACHINE] = { "cannot_machine", "CUDA checkpoints exist on x86_64 only" },
        [WARDEN_WHY_CANNOT_LIBRARY] = { "cannot_library", "libcuda.so.1 cannot be loaded" },
        [WARDEN_WHY_CANNOT_DRIVER] = { "cannot_driver", "the driver has no checkpoints (570 or newer is needed)" },
        [WARDEN_WHY_CANNOT_PROCESS] = { "cannot_process", "to the driver it is no process with CUDA" },
        [WARDEN_WHY_CANNOT_INIT] = { "cannot_init", "the driver does not initialise" },
        [WARDEN_WHY_CANNOT_PERMITTED] = { "cannot_permitted", "the driver does not permit it" },
        [WARDEN_WHY_CANNOT_SUPPORTED] = { "cannot_supported", "the driver does not support it for this process" },
        [WARDEN_WHY_DRIVER] = { "driver", "the driver tried it and failed" },
        [WARDEN_WHY_NO_EFFECT] = { "no_effect", "the driver said that it was done, and it was not" },
};

const char *warden_why_name(enum warden_why why)
{
        return (size_t) why < WARDEN_WHY_N ? whys[why].name : "unknown";
}

const char *warden_why_words(enum warden_why why)
{
        return (size_t) why < WARDEN_WHY_N ? whys[why].words : "unknown";
}
