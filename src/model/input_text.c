/* SPDX-License-Identifier: Apache-2.0 */
#include "model/input_text.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include "base/duration.h"
#include "base/size.h"
#include "model/enforce.h"
#include "model/hand.h"
#include "model/host.h"
#include "model/lease.h"
#include "model/park.h"

enum { UUID_SHOWN = 12 };

printf_like(2, 3) static const char *words(char buf[INPUT_TEXT_MAX], const char *fmt, ...)
{
        va_list args;

        va_start(args, fmt);
        (void) vsnprintf(buf, INPUT_TEXT_MAX, fmt, args);
        va_end(args);
        return buf;
}

static const char *request_words(const struct request *r, char buf[INPUT_TEXT_MAX])
{
        char size[SIZE_TEXT_MAX], span[DURATION_TEXT_MAX], what[96];

        if (r->exclusive)
                (void) snprintf(what, sizeof(what), "a whole device");
        else if (r->bytes == 0 && r->percent_milli != 0)
                (void) snprintf(what, sizeof(what), "%" PRIu64 ".%" PRIu64 " %% of a device", r->percent_milli / 1000,
                                r->percent_milli % 1000 / 100);
        else if (r->bytes == 0 || r->learned)
                (void) snprintf(what, sizeof(what), "what it needs, and named no size");
        else
                (void) snprintf(what, sizeof(what), "%s", size_text_short(r->bytes, size));
        return words(buf, "uid %" PRIu32 " %s %s (%s%s%s)", r->uid,
                     r->adopt           ? "wanted to adopt"
                     : r->start_ms != 0 ? "booked"
                                        : "asked for",
                     what, priority_name(r->priority), r->slot_ms != 0 ? ", for " : "",
                     r->slot_ms != 0 ? duration_text(r->slot_ms, span) : "");
}

static const char *reading_words(const struct reading *r, char buf[INPUT_TEXT_MAX])
{
        char used[SIZE_TEXT_MAX], total[SIZE_TEXT_MAX];

        if (!r->used_known)
                return words(buf, "a look at %.*s, which did not say what is used", UUID_SHOWN, r->uuid);
        return words(buf, "a look at %.*s: %s of %s used, by %" PRIu32 " process%s%s", UUID_SHOWN, r->uuid,
                     size_text_short(r->used_bytes, used), size_text_short(r->total_bytes, total), r->n_rows,
                     r->n_rows == 1 ? "" : "es", r->settled ? "" : ", while it changed");
}

static const char *call_words(const struct input *in, char buf[INPUT_TEXT_MAX])
{
        const struct lease_call *c = &in->call;

        if (in->kind == INPUT_ACTIVATE && !identity_is_none(c->root))
                return words(buf, "it was collected by uid %" PRIu32 ", as pid %" PRIu32, c->uid, c->root.pid);
        if (in->kind == INPUT_ACTIVATE)
                return words(buf, "it was collected by uid %" PRIu32, c->uid);
        if (in->kind == INPUT_RENEW)
                return words(buf, "a heartbeat of uid %" PRIu32, c->uid);
        if (in->kind == INPUT_OWNER_ENDED || c->by_system)
                return words(buf, "%s", end_reason_text((enum end_reason) c->end_reason));
        return words(buf, "uid %" PRIu32 "%s gave it up", c->uid, c->is_admin ? ", an administrator," : "");
}

static const char *outcome_words(const struct hand_outcome *o, char buf[INPUT_TEXT_MAX])
{
        char size[SIZE_TEXT_MAX];

        if (o->outcome != OUTCOME_DONE)
                return words(buf, "the hands on order %" PRIu64 ", pid %" PRIu32 ": %s: %s", o->order_id,
                             o->process.pid, outcome_name((enum outcome) o->outcome),
                             hand_why_text((enum hand_why) o->why));
        return words(buf, "the hands on order %" PRIu64 ", pid %" PRIu32 ": done%s%s%s", o->order_id, o->process.pid,
                     o->host_bytes != 0 ? ", " : "", o->host_bytes != 0 ? size_text_short(o->host_bytes, size) : "",
                     o->host_bytes != 0 ? " in host memory" : "");
}

static const char *park_call_words(const struct park_call *c, char buf[INPUT_TEXT_MAX])
{
        switch ((enum park_call_what) c->what) {
        case PARK_CALL_YIELDED:
                return words(buf, "its program said that it gave its memory back");
        case PARK_CALL_IDLE:
                return words(buf, "its program said that it is idle");
        case PARK_CALL_BUSY:
                return words(buf, "its program said that it is at work");
        case PARK_CALL_NONE:
        case PARK_CALL_PARK:
        case PARK_CALL_REHEARSE:
        case PARK_CALL_THAW:
        case PARK_CALL_FORGIVE:
        case PARK_CALL_N:
                break;
        }
        return words(buf, "uid %" PRIu32 "%s: %s", c->uid, c->is_admin ? ", an administrator" : "",
                     park_call_name((enum park_call_what) c->what));
}

static const char *manager_words(const struct manager_outcome *o, char buf[INPUT_TEXT_MAX])
{
        if (o->order_id == 0 && identity_is_none(o->root))
                return words(buf, "its manager says that it does not run");
        if (o->order_id == 0)
                return words(buf, "its manager says that it runs, as pid %" PRIu32, o->root.pid);
        if (o->outcome != OUTCOME_DONE)
                return words(buf, "its manager on order %" PRIu64 ": %s: %s", o->order_id,
                             outcome_name((enum outcome) o->outcome), hand_why_text((enum hand_why) o->why));
        return words(buf, "its manager on order %" PRIu64 ": done", o->order_id);
}

static const char *enforce_words(const struct enforce_call *c, char buf[INPUT_TEXT_MAX])
{
        switch ((enum enforce_call_what) c->what) {
        case ENFORCE_CALL_MODE:
                return words(buf, "uid %" PRIu32 ", an administrator, set what is done with strangers: %s", c->uid,
                             enforce_mode_name((enum enforce_mode) c->mode));
        case ENFORCE_CALL_APPROVE:
                return words(buf, "uid %" PRIu32 " approved of pid %" PRIu32, c->uid, c->process.pid);
        case ENFORCE_CALL_UNAPPROVE:
                return words(buf, "uid %" PRIu32 " took approval %" PRIu64 " back", c->uid, c->approval_id);
        case ENFORCE_CALL_NONE:
        case ENFORCE_CALL_N:
                break;
        }
        return words(buf, "uid %" PRIu32 ", about strangers", c->uid);
}

const char *input_text(const struct input *in, char buf[INPUT_TEXT_MAX])
{
        switch ((enum input_kind) in->kind) {
        case INPUT_NONE:
        case INPUT_KIND_N:
                break;
        case INPUT_TICK:
                return words(buf, "time passed");
        case INPUT_CONFIG:
                return words(buf, "another configuration");
        case INPUT_DEVICE:
                return words(buf, "device %.*s: %s", UUID_SHOWN, in->device.uuid,
                             device_health_name((enum device_health) in->device.health));
        case INPUT_READING:
                return reading_words(&in->reading, buf);
        case INPUT_PROCESS:
                return words(buf, "pid %" PRIu32 " of uid %" PRIu32 " was met, a child of pid %" PRIu32,
                             in->process.identity.pid, in->process.uid, in->process.ppid);
        case INPUT_PROCESS_ENDED:
                return words(buf, "pid %" PRIu32 " ended", in->process_ended.pid);
        case INPUT_EYES:
                return words(buf, in->eyes.answering ? "the driver answers" : "the driver is silent");
        case INPUT_REQUEST:
                return request_words(&in->request, buf);
        case INPUT_ACTIVATE:
        case INPUT_RENEW:
        case INPUT_RELEASE:
        case INPUT_OWNER_ENDED:
                return call_words(in, buf);
        case INPUT_RESTART:
                return words(buf, "lessord came back%s%s", in->restart.rebooted ? ", the machine too" : "",
                             in->restart.degraded ? ", with damaged books" : "");
        case INPUT_CHANGE:
                return words(buf, "uid %" PRIu32 "%s wanted it changed", in->change.uid,
                             in->change.is_admin ? ", an administrator," : "");
        case INPUT_OUTCOME:
                return outcome_words(&in->outcome, buf);
        case INPUT_PARK:
                return park_call_words(&in->park, buf);
        case INPUT_HOST:
                return words(buf, "host memory%s", in->host.pressure ? " is short" : " is another");
        case INPUT_RECORD:
                return words(buf, "the record of pid %" PRIu32 " says: %s", in->record.process.pid,
                             member_step_name((enum member_step) in->record.member));
        case INPUT_MANAGER:
                return manager_words(&in->manager, buf);
        case INPUT_PAUSE:
                return words(buf, in->pause.what == PAUSE_SLEEP      ? "the machine is about to sleep"
                                  : in->pause.what == PAUSE_SHUTDOWN ? "the machine is about to be shut down"
                                                                     : "the machine is awake again");
        case INPUT_ENFORCE:
                return enforce_words(&in->enforce, buf);
        }
        return words(buf, "nobody knows what");
}
