/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "arbiter/actions.h"
#include "arbiter/admit.h"
#include "arbiter/adopt.h"
#include "arbiter/arbiter.h"
#include "arbiter/change.h"
#include "arbiter/ending.h"
#include "arbiter/enforce.h"
#include "arbiter/hold.h"
#include "arbiter/idle.h"
#include "arbiter/life.h"
#include "arbiter/manage.h"
#include "arbiter/park.h"
#include "arbiter/plan.h"
#include "arbiter/reading.h"
#include "arbiter/request.h"
#include "base/number.h"

static void say_device(struct world *w, struct actions *out, uint32_t device, enum rule rule)
{
        if (!actions_have_room(out, 1))
                return;

        struct action *a = actions_add(w, out, ACTION_DEVICE);
        a->device = device;
        a->bytes = w->devices[device].total_bytes;
        a->why = (struct reason){ .rule = (uint16_t) rule,
                                  .total_bytes = w->devices[device].total_bytes,
                                  .limit = w->devices[device].health };
}

static void device_step(struct world *w, const struct device_facts *facts, struct actions *out)
{
        uint32_t index;
        struct device *dev = world_device_by_uuid(w, facts->uuid, &index);
        bool is_new = !dev;

        if (is_new)
                dev = world_device_new(w, &index);
        if (!dev)
                return; /* more than DEVICES_MAX: the rest is not managed, and the eyes say so */

        enum device_health before = (enum device_health) dev->health;
        memcpy(dev->uuid, facts->uuid, sizeof(dev->uuid));
        memcpy(dev->name, facts->name, sizeof(dev->name));
        memcpy(dev->pci_bus_id, facts->pci_bus_id, sizeof(dev->pci_bus_id));
        dev->uuid[sizeof(dev->uuid) - 1] = dev->name[sizeof(dev->name) - 1] = '\0';
        dev->pci_bus_id[sizeof(dev->pci_bus_id) - 1] = '\0';
        dev->minor = facts->minor;
        if (facts->total_bytes != 0)
                dev->total_bytes = facts->total_bytes;
        dev->budget_bytes = facts->budget_bytes;
        dev->error_code = facts->error_code;
        dev->health = facts->health;

        if (is_new) {
                say_device(w, out, index, RULE_DEVICE_FOUND);
                return;
        }
        reading_outdated(w, index, out); /* it was named again because something about it changed */
        if (before == dev->health)
                return;
        say_device(w, out, index, RULE_DEVICE_CHANGED);
        if (dev->health == DEVICE_LOST) {
                reading_forget(w, index, out);
                life_device_lost(w, index, true, out);
        } else if (dev->health == DEVICE_OK) {
                life_device_lost(w, index, false, out);
        }
}

static void eyes_step(struct world *w, const struct eyes_state *eyes, struct actions *out)
{
        bool silence_told = w->eyes_silent_since_ms != 0;
        if (eyes->answering ? w->eyes_answering : silence_told)
                return;

        w->eyes_answering = eyes->answering;
        w->eyes_silent_since_ms = eyes->answering ? 0 : u64_max(eyes->silent_since_ms, 1);
        if (eyes->answering) {
                reading_unconfirm(w);
                enforce_begin_anew(w);
        }
        for (uint32_t d = 0; d < w->n_devices; d++)
                reading_outdated(w, d, out); /* whatever happened in the dark */
        if (eyes->answering && !silence_told)
                return; /* the first word of all */
        struct action *a = actions_add(w, out, ACTION_EYES);
        a->why = (struct reason){ .rule = eyes->answering ? RULE_EYES_BACK : RULE_EYES_STALE };
}

static void restart_step(struct world *w, const struct restart_facts *restart, uint64_t away_ms, struct actions *out)
{
        for (uint32_t d = 0; d < w->n_devices; d++) {
                w->devices[d].reading_ms = 0; /* nothing is granted before the first look */
                w->devices[d].read_asked_ms = 0;
        }
        w->degraded = restart->degraded;
        actions_add(w, out, ACTION_RESTARTED)->why = (struct reason){ .rule = RULE_RESTARTED };
        reading_unconfirm(w);
        life_was_away(w, away_ms);
        park_was_away(w, away_ms);
        ending_was_away(w);
        idle_forget(w);
        manage_was_away(w);
        w->pause = PAUSE_NONE; /* who is started knows of no sleep */
        w->pause_thaws = false;
        enforce_was_away(w);
        if (!restart->rebooted)
                return;

        /* Every process of before is gone, and everything on the devices with it. */
        while (w->n_processes > 0)
                world_process_drop(w, w->processes[w->n_processes - 1].identity);
        for (uint32_t d = 0; d < w->n_devices; d++) {
                reading_forget(w, d, NULL);
                w->devices[d].driver_own_known = false;
                w->devices[d].driver_own_bytes = 0;
        }
        world_each_holder_of (w, i, HOLDER_LEASE) {
                w->holders[i].used_known = true; /* nothing, for sure */
                world_device_changed(w, w->holders[i].device);
        }
        life_rebooted(w, out);
}

void arbiter_step(struct world *w, const struct input *input, struct actions *out)
{
        out->n = 0;
        out->more = false;
        uint64_t away_ms = u64_sub0(input->now_ms, w->now_ms);
        if (input->now_ms > w->now_ms)
                w->now_ms = input->now_ms;

        switch ((enum input_kind) input->kind) {
        case INPUT_TICK:
                life_tick(w, out);
                enforce_tick(w, out);
                break;
        case INPUT_CONFIG:
                w->config = input->config;
                for (uint32_t d = 0; d < w->n_devices; d++)
                        world_device_changed(w, d); /* when a lease leaves hangs on its grace */
                enforce_look(w, out);               /* whom it spared by the old one may be judged by this */
                break;
        case INPUT_DEVICE:
                device_step(w, &input->device, out);
                break;
        case INPUT_READING:
                reading_step(w, &input->reading, out);
                enforce_look(w, out);
                break;
        case INPUT_PROCESS:
                reading_process(w, &input->process);
                if (enforce_has_stranger(w, input->process.identity))
                        enforce_look(w, out);
                return; /* changes nothing until a reading lists it */
        case INPUT_PROCESS_ENDED:
                reading_process_ended(w, input->process_ended, out);
                life_process_ended(w, input->process_ended, out);
                break;
        case INPUT_EYES:
                eyes_step(w, &input->eyes, out);
                break;
        case INPUT_REQUEST:
                if (!input->request.adopt) {
                        request_step(w, &input->request, out);
                        return; /* it looks at the queue itself */
                }
                adopt_step(w, &input->request, out);
                break;
        case INPUT_CHANGE:
                change_step(w, &input->change, out);
                break;
        case INPUT_OUTCOME:
                if (park_outcome(w, &input->outcome, out))
                        break;
                ending_outcome(w, &input->outcome, out);
                enforce_outcome(w, &input->outcome, out);
                return; /* changes no figure */
        case INPUT_ACTIVATE:
                life_activate(w, &input->call, out);
                break;
        case INPUT_RENEW:
                life_renew(w, &input->call, out);
                return;
        case INPUT_RELEASE:
                life_release(w, &input->call, out);
                break;
        case INPUT_OWNER_ENDED:
                life_owner_ended(w, &input->call, out);
                break;
        case INPUT_RESTART:
                restart_step(w, &input->restart, away_ms, out);
                break;
        case INPUT_HOST:
                w->host = input->host;
                break;
        case INPUT_PARK:
                park_step(w, &input->park, out);
                break;
        case INPUT_RECORD:
                park_record(w, &input->record, out);
                break;
        case INPUT_MANAGER:
                manage_outcome(w, &input->manager, out);
                break;
        case INPUT_PAUSE:
                w->pause = input->pause.what;
                w->pause_thaws = input->pause.what != PAUSE_NONE && input->pause.thaws;
                break;
        case INPUT_ENFORCE:
                enforce_call_step(w, &input->enforce, out);
                return; /* changes no figure */
        case INPUT_NONE:
        case INPUT_KIND_N:
                return;
        }
        admit_pass(w, out, NULL, input->kind == INPUT_TICK);
        if (input->kind == INPUT_TICK || input->kind == INPUT_PARK)
                hold_all(w, out); /* after it: nobody is held for who is asked for his memory in this very step */
}
