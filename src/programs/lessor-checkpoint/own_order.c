/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor-checkpoint/own_order.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "base/log.h"
#include "hands/keep.h"
#include "wire/parked.h"

enum { LOCK_DEADLINE_MS = 10000, MEMBERS_MAX = 256 };

static struct warden_order order_for(const struct record *r, enum warden_verb verb)
{
        struct warden_order o = { .verb = verb,
                                  .pid = r->pid,
                                  .start_ticks = r->start_ticks,
                                  .pidfd_inode = r->pidfd_inode,
                                  .owner_uid = r->uid,
                                  .lease_id = r->lease_id,
                                  .bytes = r->bytes,
                                  .flags = r->flags,
                                  .deadline_ms = LOCK_DEADLINE_MS };

        memcpy(o.device_uuid, r->device_uuid, sizeof(o.device_uuid));
        return o;
}

void own_order_let_go(const struct step_place *place, uint32_t pid, uint64_t start_ticks)
{
        struct record record;

        if (parked_read(place->parked, pid, start_ticks, &record, NULL) < 0)
                return;
        struct warden_order order = order_for(&record, WARDEN_UNLOCK);
        struct warden_answer answer = step_run(place, &order, STEP_PATIENT);
        log_info("event=let-go pid=%" PRIu32 " result=%s why=%s", pid, warden_result_name(answer.result),
                 warden_why_name(answer.why));
}

struct members {
        size_t n;
        bool full;
        struct record records[MEMBERS_MAX];
};

static bool collect(void *ctx, uint32_t pid, uint64_t start_ticks, const struct record *record, int error)
{
        struct members *m = ctx;

        (void) pid;
        (void) start_ticks;
        if (error < 0 || !keep_needs_checkpoint(record))
                return true;
        m->full = m->n == MEMBERS_MAX;
        if (!m->full)
                m->records[m->n++] = *record;
        return !m->full;
}

static bool do_one(const struct step_place *place, const struct record *r, enum warden_verb verb,
                   struct warden_answer *ret)
{
        struct warden_order order = order_for(r, verb);

        order.order_id = ret->order_id;
        *ret = step_run(place, &order, verb == WARDEN_CHECKPOINT ? STEP_ENDING : STEP_ORDERED);
        /* Who is gone needs neither; who was locked before is. */
        return ret->result == WARDEN_DONE || ret->why == WARDEN_WHY_GONE || ret->why == WARDEN_WHY_STATE;
}

static void unlock_all(const struct step_place *place, const struct members *m, size_t n)
{
        for (size_t i = n; i-- > 0;) {
                struct warden_answer answer = { 0 };
                (void) do_one(place, &m->records[i], WARDEN_UNLOCK, &answer);
        }
}

struct warden_answer own_order_prepare_end(const struct step_place *place, const struct warden_order *order)
{
        static struct members m;
        struct warden_answer answer = { .order_id = order->order_id,
                                        .result = WARDEN_BLOCKED,
                                        .why = WARDEN_WHY_RECORD };
        int r = keep_each(place->parked, place->cgroup_root, order, collect, &m);

        if (r < 0 || m.full) {
                answer.error = r < 0 ? -r : ENOSPC;
                return answer;
        }
        for (size_t i = 0; i < m.n; i++)
                if (!do_one(place, &m.records[i], WARDEN_LOCK, &answer)) {
                        unlock_all(place, &m, i);
                        return answer;
                }
        for (size_t i = 0; i < m.n; i++)
                if (!do_one(place, &m.records[i], WARDEN_CHECKPOINT, &answer)) {
                        unlock_all(place, &m, m.n); /* the record refuses it for whoever is checkpointed */
                        return answer;
                }
        return (struct warden_answer){ .order_id = order->order_id, .result = WARDEN_DONE };
}
