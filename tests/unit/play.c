/* SPDX-License-Identifier: Apache-2.0 */
#include "play.h"

#include <stdio.h>
#include <string.h>

#define GiB(n) ((uint64_t) (n) << 30)

uint32_t play_pick(struct play *p, uint32_t n)
{
        p->random = p->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t) (p->random >> 33) % n;
}

static void play_reading(struct play *p, uint32_t device, struct reading *r)
{
        (void) snprintf(r->uuid, sizeof(r->uuid), "GPU-%u", device);
        r->taken_ms = p->now_ms;
        r->total_bytes = GiB(24);
        r->used_bytes = GiB(1) / 4;
        r->used_known = r->per_process_known = r->settled = true;
        for (uint32_t i = device; i < PLAY_PIDS; i += PLAY_DEVICES)
                if (p->used_bytes[i] > 0) {
                        struct occupancy *row = &p->rows[r->n_rows++];
                        memset(row, 0, sizeof(*row));
                        row->identity.pid = 100 + i;
                        row->identity.start_ticks = 5000 + i;
                        row->used_bytes = p->used_bytes[i];
                        row->flags = ROW_USED_KNOWN | ROW_COMPUTE;
                        r->used_bytes += row->used_bytes;
                }
        r->rows = p->rows;
}

static void play_request(struct play *p, uint32_t step, uint32_t pid, struct input *in)
{
        struct request *r = &in->request;

        in->kind = INPUT_REQUEST;
        r->token = step;
        r->uid = 1000 + pid % 4;
        r->priority = (uint8_t) (2 + play_pick(p, 4));
        r->bytes = GiB(1 + play_pick(p, 12));
        if (play_pick(p, 20) == 0) { /* all of a device */
                r->bytes = 0;
                r->percent_milli = 100000;
                r->exclusive = play_pick(p, 2) != 0;
        }
        r->slot_ms = play_pick(p, 2) ? 1000 * (uint64_t) (10 + play_pick(p, 600)) : 0;
        r->wait_ms = play_pick(p, 4) ? 0 : 1000 * (uint64_t) (1 + play_pick(p, 60));
        r->collected = play_pick(p, 4) != 0;
        r->no_wait = play_pick(p, 6) == 0;
        r->kill_at_end = play_pick(p, 8) == 0;
        r->binding.kind = BINDING_PROCESS;
        r->binding.owner.pid = 100 + pid;
        r->binding.owner.start_ticks = 5000 + pid;
        (void) snprintf(r->name, sizeof(r->name), "run %u", step);
}

static void play_change(struct play *p, uint32_t step, struct input *in)
{
        static const uint8_t what[] = { CHANGE_PRIORITY, CHANGE_SLOT, CHANGE_EXTEND, CHANGE_PIN, CHANGE_UNPIN };

        in->kind = INPUT_CHANGE;
        in->change.token = step;
        in->change.lease_id = 1 + play_pick(p, 1 + step / 5);
        in->change.is_admin = true;
        in->change.what = what[play_pick(p, sizeof(what))];
        in->change.priority = (uint8_t) (2 + play_pick(p, 4));
        in->change.slot_ms = 1000 * (uint64_t) (10 + play_pick(p, 600));
        in->change.pin_ms = 1000 * (uint64_t) (1 + play_pick(p, 60));
}

void play_input(struct play *p, uint32_t step, struct input *in)
{
        uint32_t what = play_pick(p, 100), pid = play_pick(p, PLAY_PIDS);

        memset(in, 0, sizeof(*in));
        p->now_ms += play_pick(p, 400);
        in->now_ms = p->now_ms;
        if (step == 0) {
                in->kind = INPUT_EYES;
                in->eyes.answering = true;
        } else if (step <= PLAY_DEVICES) {
                in->kind = INPUT_DEVICE;
                (void) snprintf(in->device.uuid, sizeof(in->device.uuid), "GPU-%u", step - 1);
                in->device.total_bytes = GiB(24);
                in->device.health = DEVICE_OK;
        } else if (step <= PLAY_DEVICES + PLAY_PIDS) {
                in->kind = INPUT_PROCESS;
                in->process.identity.pid = 100 + step - PLAY_DEVICES - 1;
                in->process.identity.start_ticks = 5000 + step - PLAY_DEVICES - 1;
                in->process.uid = 1000 + pid % 4;
                in->process.ppid = 1;
        } else if (what < 40) {
                if (play_pick(p, 3) == 0)
                        p->used_bytes[pid] = play_pick(p, 2) ? GiB(play_pick(p, 6)) : 0;
                in->kind = INPUT_READING;
                play_reading(p, play_pick(p, PLAY_DEVICES), &in->reading);
        } else if (what < 60) {
                play_request(p, step, pid, in);
        } else if (what < 85) {
                in->kind = (uint8_t) (what < 65 ? INPUT_RENEW : what < 70 ? INPUT_ACTIVATE : INPUT_RELEASE);
                in->call.token = step;
                in->call.lease_id = 1 + play_pick(p, 1 + step / 5);
                in->call.uid = 0;
                in->call.is_admin = true;
                in->call.end_reason = in->kind == INPUT_RELEASE ? END_RELEASED_ADMIN : END_NONE;
        } else if (what < 88) {
                play_change(p, step, in);
        } else {
                in->kind = INPUT_TICK;
        }
}
