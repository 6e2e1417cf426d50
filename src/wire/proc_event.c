/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/proc_event.h"
#include <errno.h>
#include "wire/bytes.h"

/* linux/netlink.h, linux/connector.h, linux/cn_proc.h: part of the kernel's ABI. */
enum {
        NLMSG_HEAD = 16,
        NLMSG_ALIGN_TO = 4,
        NLMSG_TYPE_DONE = 3,
        NLMSG_TYPE_OVERRUN = 4,
        CN_HEAD = 20,
        CN_PROC_IDX = 1,
        CN_PROC_VAL = 1,
        OP_LISTEN = 1,
        EVENT_NONE = 0,
        EVENT_FORK = 0x1,
        EVENT_SID = 0x80,
        PID_MAX = INT32_MAX,
};
#define EVENT_EXIT UINT32_C(0x80000000)

static uint32_t get_pid(struct bytes_reader *r)
{
        uint32_t pid = bytes_get_u32(r);

        if (pid == 0 || pid > PID_MAX)
                bytes_reader_fail(r);
        return pid;
}

/* what, cpu, timestamp, then what belongs to the kind. */
static bool parse_event(const void *data, size_t n, struct proc_event *ret)
{
        struct proc_event e = { .kind = PROC_EVENT_OTHER };
        struct bytes_reader r;

        bytes_reader_init(&r, data, n);
        uint32_t what = bytes_get_u32(&r);
        (void) bytes_get_u32(&r); /* which CPU */
        e.at_ns = bytes_get_u64(&r);
        switch (what) {
        case EVENT_NONE:
                e.kind = PROC_EVENT_ACK;
                e.error = bytes_get_u32(&r);
                break;
        case EVENT_FORK:
                e.kind = PROC_EVENT_FORK;
                e.parent_pid = bytes_get_u32(&r); /* 0: the idle task, parent of pid 1 */
                e.parent_tgid = bytes_get_u32(&r);
                if (e.parent_pid > PID_MAX || e.parent_tgid > PID_MAX)
                        bytes_reader_fail(&r);
                e.pid = get_pid(&r);
                e.tgid = get_pid(&r);
                break;
        case EVENT_SID:
        case EVENT_EXIT:
                e.kind = what == EVENT_SID ? PROC_EVENT_SID : PROC_EVENT_EXIT;
                e.pid = get_pid(&r);
                e.tgid = get_pid(&r);
                break;
        default:
                break;
        }
        *ret = r.failed ? (struct proc_event){ .kind = PROC_EVENT_OTHER } : e;
        return !r.failed;
}

int proc_event_next(const void *data, size_t n, size_t *at, struct proc_event *ret)
{
        const uint8_t *p = data;
        struct bytes_reader r;

        if (*at >= n)
                return 0;
        bytes_reader_init(&r, p + *at, n - *at);
        uint32_t len = bytes_get_u32(&r);
        uint16_t type = bytes_get_u16(&r);
        (void) bytes_get_view(&r, 10); /* flags, sequence, port */
        if (r.failed || len < NLMSG_HEAD || len > n - *at) {
                *at = n;
                return -EBADMSG;
        }
        bytes_reader_init(&r, p + *at + NLMSG_HEAD, len - NLMSG_HEAD);
        size_t step = ((size_t) len + NLMSG_ALIGN_TO - 1) & ~(size_t) (NLMSG_ALIGN_TO - 1);
        *at = step < n - *at ? *at + step : n;
        *ret = (struct proc_event){ .kind = PROC_EVENT_OTHER };
        if (type == NLMSG_TYPE_OVERRUN || type > NLMSG_TYPE_DONE)
                return 1;
        uint32_t idx = bytes_get_u32(&r), val = bytes_get_u32(&r);
        (void) bytes_get_u64(&r); /* sequence and acknowledgement */
        uint16_t n_body = bytes_get_u16(&r);
        (void) bytes_get_u16(&r);
        const uint8_t *body = bytes_get_view(&r, n_body);
        if (r.failed || idx != CN_PROC_IDX || val != CN_PROC_VAL)
                return r.failed ? -EBADMSG : 1;
        return parse_event(body, n_body, ret) ? 1 : -EBADMSG;
}

size_t proc_event_listen(void *buf, bool few)
{
        uint32_t n_body = few ? 8 : 4;
        struct bytes_writer w;

        bytes_writer_init(&w, buf, PROC_EVENT_ASK_MAX);
        bytes_put_u32(&w, NLMSG_HEAD + CN_HEAD + n_body);
        bytes_put_u16(&w, NLMSG_TYPE_DONE);
        bytes_put_u16(&w, 0);
        bytes_put_u64(&w, 0);
        bytes_put_u32(&w, CN_PROC_IDX);
        bytes_put_u32(&w, CN_PROC_VAL);
        bytes_put_u64(&w, 0);
        bytes_put_u16(&w, (uint16_t) n_body);
        bytes_put_u16(&w, 0);
        bytes_put_u32(&w, OP_LISTEN);
        if (few)
                bytes_put_u32(&w, EVENT_FORK | EVENT_SID | EVENT_EXIT);
        return w.at;
}
