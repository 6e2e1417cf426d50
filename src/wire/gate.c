/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/gate.h"
#include <errno.h>
#include <string.h>
#include "wire/message.h"

enum { PID_MAX = INT32_MAX, ERRNO_MAX = 4095 };

static void code_allow(struct codec *c, struct gate_allow *m)
{
        code_u64(c, "lease_id", &m->lease_id, 1, UINT64_MAX);
        code_u64(c, "cgroup_id", &m->cgroup_id, 0, UINT64_MAX);
        code_u32(c, "pid", &m->pid, m->cgroup_id == 0 ? 1 : 0, PID_MAX);
        code_u64(c, "start_ticks", &m->start_ticks, 0, m->pid ? UINT64_MAX : 0);
        code_u32(c, "owner_uid", &m->owner_uid, 0, UINT32_MAX - 1); /* the last one means "no uid" everywhere */
}

static void code_answer(struct codec *c, struct gate_answer *m)
{
        uint32_t error = (uint32_t) m->error;

        code_u64(c, "lease_id", &m->lease_id, 0, UINT64_MAX);
        code_enum(c, "result", &m->result, 0, GATE_RESULT_N);
        code_enum(c, "why", &m->why, 0, GATE_WHY_N);
        code_require(c, "why", (m->result == GATE_DONE) == (m->why == GATE_WHY_NONE || m->why == GATE_WHY_OUTSIDE));
        code_u32(c, "error", &error, 0, ERRNO_MAX);
        m->error = (int32_t) error;
}

static void code_message(struct codec *c, struct gate_message *msg)
{
        switch (msg->kind) {
        case GATE_HELLO:
                code_program(c, msg->hello.program, sizeof(msg->hello.program)); /* its version is the header's */
                return;
        case GATE_ALLOW:
                code_allow(c, &msg->allow);
                return;
        case GATE_FORGET:
                code_u64(c, "lease_id", &msg->lease_id, 1, UINT64_MAX);
                return;
        case GATE_SET:
                code_enum(c, "mode", &msg->mode, 0, GATE_MODE_N);
                return;
        case GATE_PING:
                code_u64(c, "nonce", &msg->nonce, 1, UINT64_MAX);
                return;
        case GATE_ANSWER:
                code_answer(c, &msg->answer);
                return;
        case GATE_STATE:
                code_u64(c, "nonce", &msg->state.nonce, 1, UINT64_MAX);
                code_enum(c, "mode", &msg->state.mode, 0, GATE_MODE_N);
                code_u32(c, "n_cgroups", &msg->state.n_cgroups, 0, UINT16_MAX);
                code_u32(c, "n_leases", &msg->state.n_leases, 0, UINT16_MAX);
                code_u64(c, "refused", &msg->state.refused, 0, UINT64_MAX);
                code_u32(c, "last_uid", &msg->state.last_uid, 0, UINT32_MAX);
                return;
        case GATE_NOTHING:
        case GATE_KIND_N:
                break;
        }
        code_require(c, "kind", false);
}

int gate_encode(const struct gate_message *msg, void *buf, size_t buf_size, size_t *ret_n, struct error *err)
{
        struct gate_message m = *msg;
        struct codec c;

        codec_write(&c, buf, buf_size, msg->kind == GATE_HELLO ? msg->hello.version : GATE_VERSION, msg->kind);
        code_message(&c, &m);
        return codec_written(&c, "gate", gate_kind_name(msg->kind), ret_n, err);
}

static int decode(struct codec *c, uint32_t version, uint32_t kind, struct gate_message *msg, struct error *err)
{
        if (kind == GATE_HELLO)
                msg->hello.version = version;
        else if (version != GATE_VERSION)
                return codec_refuse_version("gate", version, GATE_VERSION, err);
        if (kind == GATE_NOTHING || kind >= GATE_KIND_N || version == 0)
                return codec_refuse_kind("gate", kind, err);
        msg->kind = (enum gate_kind) kind;
        code_message(c, msg);
        return codec_was_read(c, "gate", gate_kind_name(msg->kind), err);
}

int gate_decode(const void *data, size_t n_data, struct gate_message *ret, struct error *err)
{
        struct codec c;
        uint32_t version, kind;

        memset(ret, 0, sizeof(*ret));
        int r = codec_read(&c, "gate", data, n_data, GATE_MESSAGE_MAX, &version, &kind, err);
        if (r == 0)
                r = decode(&c, version, kind, ret, err);
        if (r < 0)
                ret->kind = GATE_NOTHING;
        return r;
}

#define NAME_OR_UNKNOWN(table, value)                                                                                  \
        ((size_t) (value) < sizeof(table) / sizeof(*(table)) && (table)[value] ? (table)[value] : "unknown")

const char *gate_kind_name(enum gate_kind kind)
{
        static const char *const names[GATE_KIND_N] = {
                [GATE_HELLO] = "hello", [GATE_ALLOW] = "allow",   [GATE_FORGET] = "forget", [GATE_SET] = "set",
                [GATE_PING] = "ping",   [GATE_ANSWER] = "answer", [GATE_STATE] = "state",
        };
        return NAME_OR_UNKNOWN(names, kind);
}

const char *gate_mode_name(enum gate_mode mode)
{
        static const char *const names[GATE_MODE_N] = { "off", "log", "on" };
        return NAME_OR_UNKNOWN(names, mode);
}

const char *gate_result_name(enum gate_result result)
{
        static const char *const names[GATE_RESULT_N] = { "done", "blocked", "failed" };
        return NAME_OR_UNKNOWN(names, result);
}

static const struct {
        const char *name, *words;
} whys[GATE_WHY_N] = {
        [GATE_WHY_NONE] = { "none", "done" },
        [GATE_WHY_OUTSIDE] = { "outside", "it is in no cgroup that is gated" },
        [GATE_WHY_GONE] = { "gone", "the process or its cgroup is no longer there" },
        [GATE_WHY_OWNER] = { "owner", "the process belongs to another user" },
        [GATE_WHY_NOT_OURS] = { "not_ours", "lessor did not make that cgroup, nor has its user been given it" },
        [GATE_WHY_WHOLE_GATE] = { "whole_gate", "that cgroup is gated itself, or lies around one that is" },
        [GATE_WHY_FULL] = { "full", "no more leases can be let through" },
        [GATE_WHY_NO_CGROUP] = { "no_cgroup", "there is no cgroup v2 here, or none of the configured ones exists" },
        [GATE_WHY_CONFIG] = { "config", "lessor-warden-admin cannot use lessord.conf: its log says why" },
        [GATE_WHY_MODE] = { "mode", "the lessord.conf that lessor-warden-admin reads does not say so" },
        [GATE_WHY_KERNEL] = { "kernel",
                              "the kernel has no device programs of cgroups that can be used (Linux 6.1 is needed), or "
                              "does not permit them here" },
        [GATE_WHY_SYSTEM] = { "system", "a system call failed" },
        [GATE_WHY_AWAY] = { "away", "lessor-warden-admin is not there at the moment" },
};

const char *gate_why_name(enum gate_why why)
{
        return (size_t) why < GATE_WHY_N ? whys[why].name : "unknown";
}

const char *gate_why_words(enum gate_why why)
{
        return (size_t) why < GATE_WHY_N ? whys[why].words : "unknown";
}
