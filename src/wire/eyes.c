/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/eyes.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "wire/message.h"

static void code_pid(struct codec *c, const char *what, uint32_t *pid, uint32_t min)
{
        code_u32(c, what, pid, min, EYES_PID_MAX);
}

static void code_brain_hello(struct codec *c, struct eyes_brain_hello *m)
{
        code_u32(c, "version", &m->version, 1, UINT32_MAX);
}

static void code_interval(struct codec *c, struct eyes_interval *m)
{
        code_u32(c, "ms", &m->ms, EYES_INTERVAL_MIN_MS, EYES_INTERVAL_MAX_MS);
        code_u32(c, "activity_ms", &m->activity_ms, EYES_ACTIVITY_MIN_MS, EYES_ACTIVITY_MAX_MS);
}

static void code_read(struct codec *c, struct eyes_read *m)
{
        code_u64(c, "request_id", &m->request_id, 1, UINT64_MAX);
        code_text(c, "uuid", m->uuid, sizeof(m->uuid), true);
}

static void code_hello(struct codec *c, struct eyes_hello *m)
{
        code_u32(c, "version", &m->version, 1, UINT32_MAX);
        code_enum(c, "driver_state", &m->driver_state, 0, EYES_DRIVER_STATE_N);
        code_i32(c, &m->rc);
        code_text(c, "driver_version", m->driver_version, sizeof(m->driver_version), true);
        code_text(c, "boot_id", m->boot_id, sizeof(m->boot_id), true);
        code_bool(c, &m->host_pids);
        code_u32(c, "n_devices", &m->n_devices, 0, EYES_DEVICES_MAX);
        code_u32(c, "n_hidden", &m->n_hidden, 0, EYES_DEVICES_MAX);
        code_enum(c, "events", &m->events, 0, EYES_EVENTS_N);
        code_i32(c, &m->events_errno);
        code_require(c, "events_errno",
                     m->events_errno == 0 || m->events == EYES_EVENTS_REFUSED || m->events == EYES_EVENTS_MISSING);
        code_bool(c, &m->accounting);
}

static void code_device(struct codec *c, struct eyes_device *m)
{
        code_text(c, "uuid", m->uuid, sizeof(m->uuid), false);
        code_text(c, "name", m->name, sizeof(m->name), true);
        code_text(c, "bus_id", m->bus_id, sizeof(m->bus_id), true);
        code_text(c, "parent_uuid", m->parent_uuid, sizeof(m->parent_uuid), true);
        code_bool(c, &m->minor_known);
        code_u32(c, "minor", &m->minor, 0, m->minor_known ? UINT32_MAX : 0);
        code_bool(c, &m->total_known);
        code_u64(c, "total_bytes", &m->total_bytes, m->total_known ? 1 : 0, m->total_known ? EYES_BYTES_MAX : 0);
        code_bool(c, &m->mig);
        code_enum(c, "state", &m->state, 0, EYES_DEVICE_STATE_N);
        code_i32(c, &m->rc);
}

static void code_row(struct codec *c, struct eyes_row *row, uint32_t pid_before)
{
        const uint32_t nobody = EYES_ROW_GHOST | EYES_ROW_FOREIGN | EYES_ROW_UNIDENTIFIED;

        code_pid(c, "rows.pid", &row->pid, pid_before + 1);
        code_u32(c, "rows.flags", &row->flags, 0, EYES_ROW_FLAGS_ALL);
        uint32_t why = row->flags & nobody;
        code_require(c, "rows.flags", (why & (why - 1)) == 0); /* at most one reason */
        uint32_t did = row->flags & (EYES_ROW_WORKED | EYES_ROW_RESTED);
        code_require(c, "rows.flags", (did & (did - 1)) == 0 && (!did || !why));
        code_u64(c, "rows.start_ticks", &row->start_ticks, 0, why ? 0 : UINT64_MAX);
        code_u64(c, "rows.used_bytes", &row->used_bytes, 0, row->flags & EYES_ROW_USED_KNOWN ? EYES_BYTES_MAX : 0);
}

static void code_reading(struct codec *c, struct eyes_reading *m)
{
        code_text(c, "uuid", m->uuid, sizeof(m->uuid), false);
        code_u64(c, "request_id", &m->request_id, 0, UINT64_MAX);
        code_u64(c, "taken_ms", &m->taken_ms, 0, UINT64_MAX);
        code_bool(c, &m->memory_valid);
        code_u64(c, "total_bytes", &m->total_bytes, m->memory_valid ? 1 : 0, m->memory_valid ? EYES_BYTES_MAX : 0);
        code_u64(c, "used_bytes", &m->used_bytes, 0, m->total_bytes);
        code_enum(c, "memory_error", &m->memory_error, 0, EYES_ERROR_N);
        code_require(c, "memory_error", m->memory_valid == (m->memory_error == EYES_ERROR_NONE));
        code_i32(c, &m->memory_rc);
        code_bool(c, &m->settled);
        code_bool(c, &m->per_process_valid);
        code_u64(c, "rows_taken_ms", &m->rows_taken_ms, 0, m->taken_ms);
        code_enum(c, "list_error", &m->list_error, 0, EYES_ERROR_N);
        code_require(c, "list_error", m->per_process_valid == (m->list_error == EYES_ERROR_NONE));
        code_require(c, "settled",
                     !m->settled || (m->memory_valid && (m->per_process_valid || eyes_list_is_absent(m->list_error))));
        code_i32(c, &m->list_rc);
        code_u32(c, "n_rows", &m->n_rows, 0, m->rows_taken_ms ? EYES_ROWS_MAX : 0);
        for (uint32_t i = 0; i < m->n_rows && !codec_failed(c); i++)
                code_row(c, &m->rows[i], i > 0 ? m->rows[i - 1].pid : 0);
}

static void code_process(struct codec *c, struct eyes_process *m)
{
        code_pid(c, "pid", &m->pid, 1);
        code_u64(c, "start_ticks", &m->start_ticks, 0, UINT64_MAX);
        code_bool(c, &m->uid_known);
        code_u32(c, "uid", &m->uid, 0, m->uid_known ? UINT32_MAX : 0);
        code_pid(c, "ppid", &m->ppid, 0);
        code_pid(c, "sid", &m->sid, 0);
        code_text(c, "comm", m->comm, sizeof(m->comm), true);
        code_bool(c, &m->exe_known);
        code_bool(c, &m->exe_deleted);
        code_text(c, "exe_path", m->exe_path, sizeof(m->exe_path), true);
        code_u64(c, "exe_dev", &m->exe_dev, 0, UINT64_MAX);
        code_u64(c, "exe_inode", &m->exe_inode, 0, UINT64_MAX);
        code_require(c, "exe_known",
                     m->exe_known || (!m->exe_deleted && !m->exe_path[0] && !m->exe_dev && !m->exe_inode));
        code_bool(c, &m->kernel_thread);
        code_enum(c, "script_kind", &m->script_kind, 0, SCRIPT_KIND_N);
        code_bool(c, &m->script_known);
        code_require(c, "script_known", !m->script_known || m->script_kind == SCRIPT_FILE);
        code_u64(c, "script_dev", &m->script_dev, 0, m->script_known ? UINT64_MAX : 0);
        code_u64(c, "script_inode", &m->script_inode, 0, m->script_known ? UINT64_MAX : 0);
        code_bool(c, &m->cgroup_known);
        code_text(c, "cgroup_path", m->cgroup_path, sizeof(m->cgroup_path), true);
        code_require(c, "cgroup_path", m->cgroup_known == (m->cgroup_path[0] == '/'));
        code_require(c, "cgroup_path", m->cgroup_known || !m->cgroup_path[0]);
        code_bool(c, &m->cgroup_id_known);
        code_u64(c, "cgroup_id", &m->cgroup_id, 0, m->cgroup_id_known ? UINT64_MAX : 0);
        code_bool(c, &m->command_known);
        code_u64(c, "command", &m->command, 0, m->command_known ? UINT64_MAX : 0);
        code_bool(c, &m->cmdline_cut);
        code_u32(c, "n_cmdline", &m->n_cmdline, 0, EYES_CMDLINE_MAX);
        if (c->writing)
                bytes_put_data(&c->w, m->cmdline, m->n_cmdline <= EYES_CMDLINE_MAX ? m->n_cmdline : 0);
        else
                (void) bytes_get_data(&c->r, m->cmdline, m->n_cmdline);
        code_text(c, "token", m->token, sizeof(m->token), true);
        code_u32(c, "n_ancestors", &m->n_ancestors, 0, EYES_ANCESTORS_MAX);
        for (uint32_t i = 0; i < m->n_ancestors && !codec_failed(c); i++) {
                code_pid(c, "ancestors.pid", &m->ancestors[i].pid, 1);
                code_u64(c, "ancestors.start_ticks", &m->ancestors[i].start_ticks, 0, UINT64_MAX);
                code_u32(c, "ancestors.slack_ticks", &m->ancestors[i].slack_ticks, 0, UINT32_MAX);
                code_enum(c, "ancestors.link", &m->ancestors[i].link, 0, EYES_KINSHIP_N);
        }
}

static void code_exited(struct codec *c, struct eyes_exited *m)
{
        code_pid(c, "pid", &m->pid, 1);
        code_u64(c, "start_ticks", &m->start_ticks, 0, UINT64_MAX);
}

static void code_alarm(struct codec *c, struct eyes_alarm *m)
{
        code_enum(c, "kind", &m->kind, 0, EYES_ALARM_KIND_N);
        code_text(c, "uuid", m->uuid, sizeof(m->uuid), true);
        code_u32(c, "n_dropped", &m->n_dropped, 0, UINT32_MAX);
        code_text(c, "text", m->text, sizeof(m->text), true);
}

static void code_done(struct codec *c, struct eyes_done *m)
{
        code_u64(c, "request_id", &m->request_id, 1, UINT64_MAX);
        code_u64(c, "taken_ms", &m->taken_ms, 0, UINT64_MAX);
        code_u32(c, "n_readings", &m->n_readings, 0, EYES_DEVICES_MAX);
}

static void code_message(struct codec *c, struct eyes_message *msg)
{
        switch (msg->kind) {
        case EYES_BRAIN_HELLO:
                code_brain_hello(c, &msg->brain_hello);
                return;
        case EYES_INTERVAL:
                code_interval(c, &msg->interval);
                return;
        case EYES_READ:
                code_read(c, &msg->read);
                return;
        case EYES_HELLO:
                code_hello(c, &msg->hello);
                return;
        case EYES_DEVICE:
                code_device(c, &msg->device);
                return;
        case EYES_PROCESS:
                code_process(c, &msg->process);
                return;
        case EYES_READING:
                code_reading(c, &msg->reading);
                return;
        case EYES_EXITED:
                code_exited(c, &msg->exited);
                return;
        case EYES_ALARM:
                code_alarm(c, &msg->alarm);
                return;
        case EYES_DONE:
                code_done(c, &msg->done);
                return;
        case EYES_NOTHING:
        case EYES_KIND_N:
                break;
        }
        code_require(c, "kind", false);
}

int eyes_encode(const struct eyes_message *msg, void *buf, size_t buf_size, size_t *ret_n, struct error *err)
{
        /* The codec takes a writable message because it also decodes; while writing it only stores back what it read. */
        union {
                const struct eyes_message *given;
                struct eyes_message *coded;
        } m = { .given = msg };
        struct codec c;

        codec_write(&c, buf, buf_size < EYES_MESSAGE_MAX ? buf_size : EYES_MESSAGE_MAX, EYES_VERSION, msg->kind);
        code_message(&c, m.coded);
        return codec_written(&c, "eyes", eyes_kind_name(msg->kind), ret_n, err);
}

static int decode(struct codec *c, uint32_t version, uint32_t kind, struct eyes_message *msg, struct error *err)
{
        if (version != EYES_VERSION)
                return codec_refuse_version("eyes", version, EYES_VERSION, err);
        if (kind == EYES_NOTHING || kind >= EYES_KIND_N)
                return codec_refuse_kind("eyes", kind, err);
        msg->kind = (enum eyes_kind) kind;
        code_message(c, msg);
        return codec_was_read(c, "eyes", eyes_kind_name(msg->kind), err);
}

int eyes_decode(const void *data, size_t n_data, struct eyes_message *ret, struct error *err)
{
        struct codec c;
        uint32_t version, kind;

        memset(ret, 0, sizeof(*ret));
        int r = codec_read(&c, "eyes", data, n_data, EYES_MESSAGE_MAX, &version, &kind, err);
        if (r == 0)
                r = decode(&c, version, kind, ret, err);
        if (r < 0)
                ret->kind = EYES_NOTHING;
        return r;
}

#define NAME_OR_UNKNOWN(table, value)                                                                                  \
        ((size_t) (value) < sizeof(table) / sizeof(*(table)) && (table)[value] ? (table)[value] : "unknown")

const char *eyes_kind_name(enum eyes_kind kind)
{
        static const char *const names[EYES_KIND_N] = {
                [EYES_BRAIN_HELLO] = "brain_hello",
                [EYES_INTERVAL] = "interval",
                [EYES_READ] = "read",
                [EYES_HELLO] = "hello",
                [EYES_DEVICE] = "device",
                [EYES_PROCESS] = "process",
                [EYES_READING] = "reading",
                [EYES_EXITED] = "exited",
                [EYES_ALARM] = "alarm",
                [EYES_DONE] = "done",
        };
        return NAME_OR_UNKNOWN(names, kind);
}

const char *eyes_driver_state_name(enum eyes_driver_state state)
{
        static const char *const names[EYES_DRIVER_STATE_N] = {
                [EYES_DRIVER_OK] = "ok",
                [EYES_DRIVER_NO_LIBRARY] = "no_library",
                [EYES_DRIVER_OLD_LIBRARY] = "old_library",
                [EYES_DRIVER_NOT_LOADED] = "not_loaded",
                [EYES_DRIVER_MISMATCH] = "mismatch",
                [EYES_DRIVER_FAILED] = "failed",
        };
        return NAME_OR_UNKNOWN(names, state);
}

const char *eyes_device_state_name(enum eyes_device_state state)
{
        static const char *const names[EYES_DEVICE_STATE_N] = {
                [EYES_DEVICE_USABLE] = "usable",
                [EYES_DEVICE_NO_MEMORY_READING] = "no_memory_reading",
                [EYES_DEVICE_LOST] = "lost",
                [EYES_DEVICE_NO_PERMISSION] = "no_permission",
                [EYES_DEVICE_MIG_PARENT] = "mig_parent",
                [EYES_DEVICE_FAILING] = "failing",
                [EYES_DEVICE_GONE] = "gone",
        };
        return NAME_OR_UNKNOWN(names, state);
}

const char *eyes_error_name(enum eyes_error error)
{
        static const char *const names[EYES_ERROR_N] = {
                [EYES_ERROR_NONE] = "none",         [EYES_ERROR_NOT_SUPPORTED] = "not_supported",
                [EYES_ERROR_LOST] = "lost",         [EYES_ERROR_NO_PERMISSION] = "no_permission",
                [EYES_ERROR_REJECTED] = "rejected", [EYES_ERROR_NO_SYMBOL] = "no_symbol",
                [EYES_ERROR_OTHER] = "other",
        };
        return NAME_OR_UNKNOWN(names, error);
}

const char *eyes_events_name(enum eyes_events events)
{
        static const char *const names[EYES_EVENTS_N] = {
                [EYES_EVENTS_NONE] = "none",       [EYES_EVENTS_TOLD] = "told",
                [EYES_EVENTS_REFUSED] = "refused", [EYES_EVENTS_NAMESPACE] = "namespace",
                [EYES_EVENTS_MISSING] = "missing",
        };
        return NAME_OR_UNKNOWN(names, events);
}

const char *eyes_alarm_kind_name(enum eyes_alarm_kind kind)
{
        static const char *const names[EYES_ALARM_KIND_N] = {
                [EYES_ALARM_LIST_REJECTED] = "list_rejected",
                [EYES_ALARM_MEMORY_REJECTED] = "memory_rejected",
                [EYES_ALARM_SYMBOL_MISSING] = "symbol_missing",
                [EYES_ALARM_DEVICE_LOST] = "device_lost",
                [EYES_ALARM_DRIVER] = "driver",
                [EYES_ALARM_DESCRIPTORS] = "descriptors",
        };
        return NAME_OR_UNKNOWN(names, kind);
}

bool eyes_list_is_absent(enum eyes_error list_error)
{
        return list_error == EYES_ERROR_NOT_SUPPORTED || list_error == EYES_ERROR_NO_PERMISSION ||
               list_error == EYES_ERROR_NO_SYMBOL;
}

bool eyes_reading_differs(const struct eyes_reading *a, const struct eyes_reading *b)
{
        if (strcmp(a->uuid, b->uuid) != 0 || a->memory_valid != b->memory_valid || a->total_bytes != b->total_bytes ||
            a->used_bytes != b->used_bytes || a->memory_error != b->memory_error || a->memory_rc != b->memory_rc ||
            a->settled != b->settled || a->per_process_valid != b->per_process_valid ||
            a->list_error != b->list_error || a->list_rc != b->list_rc || a->n_rows != b->n_rows)
                return true;
        for (uint32_t i = 0; i < a->n_rows; i++) {
                const struct eyes_row *x = &a->rows[i], *y = &b->rows[i];

                if (x->pid != y->pid || x->flags != y->flags || x->start_ticks != y->start_ticks ||
                    x->used_bytes != y->used_bytes)
                        return true;
        }
        return false;
}
