/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/records.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "programs/lessord/daemon.h"
#include "programs/lessord/lost_order.h"
#include "wire/parked.h"

/* -ENOENT: nothing was ever parked. Another negative errno, which is said: nobody knows. */
static int open_folder(const struct daemon *d, int *ret)
{
        char path[sizeof(d->paths.run_dir) + 8];
        struct error err = { 0 };

        (void) snprintf(path, sizeof(path), "%s/parked", d->paths.run_dir);
        int r = parked_open_to_read(path, ret, &err);
        if (r < 0 && r != -ENOENT)
                log_warning("event=records-unreadable words=\"%s\"", err.msg);
        return r;
}

static bool lives(const struct daemon *d, struct identity who)
{
        uint64_t ticks = 0;
        return process_start_ticks(&d->processes, who.pid, &ticks) == 0 && ticks == who.start_ticks;
}

/* ---- told ---- */

struct tell {
        struct daemon *d;
        uint32_t n;
};

/* In the middle of a lock, or of letting go: the hands ask the driver before their next step, so it is taken for locked. */
static enum member_step step_told(enum record_step at)
{
        enum member_step step = lost_order_member(at);

        return step == MEMBER_LOCKING || step == MEMBER_UNLOCKING ? MEMBER_LOCKED : step;
}

static void tell_one(struct daemon *d, struct identity who, const struct record *record)
{
        struct input input = { .kind = INPUT_RECORD,
                               .record = { .process = who,
                                           .uid = record->uid,
                                           .member = (uint8_t) step_told(record->step),
                                           .no_stop = (record->flags & WARDEN_FLAG_NO_STOP) != 0,
                                           .lease_id = record->lease_id,
                                           .bytes = record->bytes,
                                           .host_bytes = record->host_bytes } };

        record_uuid_text(record->device_uuid, input.record.uuid);
        daemon_submit(d, &input);
}

static bool each(void *ctx, uint32_t pid, uint64_t start_ticks, const struct record *record, int error)
{
        struct tell *t = ctx;
        struct identity who = { pid, start_ticks };

        if (error == -ESTALE) /* of another boot: its process is gone with that */
                return true;
        if (error < 0) {
                log_warning("event=record-unreadable pid=%u words=\"%s\"", pid, strerror(-error));
                return true;
        }
        /* One that is checkpointed only to be killed is the hands' own business. */
        if (record->ending || lost_order_member(record->step) == MEMBER_RUNNING || hands_work_on(t->d, who) ||
            !lives(t->d, who))
                return true;
        tell_one(t->d, who, record);
        t->n++;
        return true;
}

/* Brought back while nobody here looked (`lessor rescue`), or let go: it runs, and the world does not know. */
static void tell_rescued(struct daemon *d, int folder)
{
        for (uint32_t i = 0; i < d->world->n_processes; i++) {
                const struct process *p = &d->world->processes[i];
                struct record record;
                struct error err = { 0 };
                int r;

                if (p->member == MEMBER_RUNNING || p->state == PROCESS_ENDED)
                        continue;
                if (p->order_id != 0) /* perhaps not given yet; what comes of it says more */
                        continue;
                r = folder < 0 ? -ENOENT : parked_read(folder, p->identity.pid, p->identity.start_ticks, &record, &err);
                if (r < 0 && r != -ENOENT)
                        continue; /* unreadable: nobody knows */
                if ((r == 0 && record.step != RECORD_RESTORED) || !lives(d, p->identity))
                        continue;
                struct input input = { .kind = INPUT_RECORD,
                                       .record = { .process = p->identity, .uid = p->uid, .member = MEMBER_RUNNING } };
                log_info("event=found-running pid=%u", p->identity.pid);
                daemon_submit(d, &input);
        }
}

void records_tell(struct daemon *d)
{
        auto_close int folder = -1;
        struct tell t = { .d = d };
        int r = open_folder(d, &folder);

        if (r < 0 && r != -ENOENT)
                return;
        if (r == 0)
                (void) parked_each(folder, each, &t);
        if (t.n > 0)
                log_info("event=records found=%u", t.n);
        tell_rescued(d, folder);
}

void records_find_running(struct daemon *d)
{
        auto_close int folder = -1;
        int r = open_folder(d, &folder);

        if (r == 0 || r == -ENOENT)
                tell_rescued(d, folder);
}

/* ---- judged ---- */

void records_judge(const struct daemon *d, enum hand_verb verb, struct identity who, struct hand_outcome *ret)
{
        auto_close int folder = -1;
        struct record record;
        struct error err = { 0 };
        int r = open_folder(d, &folder);

        if (r == 0)
                r = parked_read(folder, who.pid, who.start_ticks, &record, &err);

        if (!lives(d, who) || r == -ESTALE) {
                ret->outcome = OUTCOME_BLOCKED;
                ret->why = HAND_WHY_GONE;
        } else if (r == 0 || r == -ENOENT) {
                lost_order_judge(verb, r == 0 ? &record : NULL, ret);
        } else {
                log_warning("event=record-unreadable pid=%u words=\"%s\"", who.pid, err.msg);
                ret->outcome = OUTCOME_BLOCKED;
                ret->why = HAND_WHY_STATE;
        }
}
