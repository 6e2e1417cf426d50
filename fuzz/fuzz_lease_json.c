/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients write about leases. The first byte chooses which body it is; the rest is the body. Any bytes are safe; what is
 * accepted is within its limits, what is refused says why in plain text.
 */
#include <assert.h>
#include <string.h>
#include "api/change_json.h"
#include "api/enforce_json.h"
#include "api/lease_json.h"
#include "api/park_json.h"
#include "base/duration.h"
#include "base/escape.h"
#include "base/size.h"
#include "model/lease.h"

static void check_enforce(const struct enforce_call *c, enum enforce_call_what what)
{
        assert(c->what == what && c->for_ms <= DURATION_MAX_MS && c->mode < ENFORCE_MODE_N);
        assert((c->approval_id != 0) == (what == ENFORCE_CALL_UNAPPROVE));
        assert(c->token == 0 && c->uid == 0 && !c->is_admin && identity_is_none(c->process));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_problem(const struct problem *p)
{
        assert(p->status >= 400 && p->status < 600 && p->type[0] && p->title[0] && p->detail[0]);
        assert(text_is_plain(p->field, strlen(p->field)) && text_is_plain(p->given, strlen(p->given)));
        if (strcmp(p->type, "bad-field") == 0)
                assert(p->field[0] && p->allowed[0] && p->cure[0]);
}

static void check_ask(const struct lease_ask *ask)
{
        const struct request *r = &ask->request;

        assert(r->priority >= PRIORITY_URGENT && r->priority <= PRIORITY_FILLER);
        bool is_sized = (r->bytes > 0 && r->bytes <= SIZE_BYTES_MAX && r->percent_milli == 0) ||
                        (r->bytes == 0 && r->percent_milli > 0 && r->percent_milli <= 100000);
        assert(is_sized || (r->bytes == 0 && r->percent_milli == 0 && (r->exclusive || r->adopt)));
        assert(!r->adopt || (ask->adopt_pid > 0 && ask->adopt_pid <= LEASE_PID_MAX));
        assert(r->slot_ms <= DURATION_MAX_MS && r->wait_ms <= DURATION_MAX_MS);
        assert(memchr(r->name, '\0', sizeof(r->name)) && text_is_plain(r->name, strlen(r->name)));
        assert(memchr(r->consumer, '\0', sizeof(r->consumer)) && text_is_plain(r->consumer, strlen(r->consumer)));
        assert(memchr(r->device_uuid, '\0', sizeof(r->device_uuid)));
        assert(r->ways.named < WAY_OUT_BIT(WAY_OUT_N) && r->ways.proven == 0);
        assert(r->binding.kind < BINDING_KIND_N && ask->bind_pid <= LEASE_PID_MAX);
        assert(r->binding.kind != BINDING_HEARTBEAT ||
               (r->binding.ttl_ms >= LEASE_TTL_MIN_MS && r->binding.ttl_ms <= LEASE_TTL_MAX_MS));
        assert(r->no_wait == (ask->mode == LEASE_ASK_NOW) && r->collected == (ask->mode != LEASE_ASK_QUEUE));
        assert(!ask->books || (ask->mode == LEASE_ASK_QUEUE && r->slot_ms > 0 && !r->exclusive && !r->filler &&
                               (ask->start_wall_ms == 0 || ask->start_in_ms == 0) && r->wait_ms == 0));
        assert(ask->books || !r->daily);
        assert(r->start_ms == 0 && r->start_wall_ms == 0 && r->follows_id == 0);
        /* Nothing about the caller can be said in a body. */
        assert(r->token == 0 && r->uid == 0 && !r->is_admin && identity_is_none(r->binding.owner));
}

static void check_change(const struct change *c)
{
        assert(c->what != 0 && c->what <= CHANGE_ALL && !(c->what & CHANGE_START));
        assert(!(c->what & CHANGE_PRIORITY) || (c->priority >= PRIORITY_URGENT && c->priority <= PRIORITY_FILLER));
        assert((c->what & (CHANGE_SLOT | CHANGE_EXTEND)) != (CHANGE_SLOT | CHANGE_EXTEND));
        assert((c->what & (CHANGE_PIN | CHANGE_UNPIN)) != (CHANGE_PIN | CHANGE_UNPIN));
        assert(c->slot_ms <= DURATION_MAX_MS && (c->pin_ms <= DURATION_MAX_MS || c->pin_ms == CHANGE_PIN_LONGEST));
        assert(c->token == 0 && c->lease_id == 0 && c->uid == 0 && !c->is_admin);
}

static void check_park(const struct park_call *c)
{
        assert(c->what == PARK_CALL_PARK || c->what == PARK_CALL_REHEARSE || c->what == PARK_CALL_IDLE);
        assert(c->for_ms <= DURATION_MAX_MS && c->keep_alive_ms <= DURATION_MAX_MS);
        assert(c->for_ms == 0 || c->what == PARK_CALL_PARK);
        assert(c->token == 0 && c->lease_id == 0 && c->uid == 0 && !c->is_admin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct problem problem = { 0 };
        struct lease_ask ask;
        struct change change;
        struct activate_ask activate;
        struct park_call park;
        struct enforce_call enforce;
        uint32_t pid;

        if (size == 0)
                return 0;
        const char *body = (const char *) data + 1;
        size_t n = size - 1;
        int r;
        switch (data[0]) {
        case 'a':
                r = activate_json_parse(body, n, &activate, &problem);
                assert(r < 0 || (activate.pid <= LEASE_PID_MAX && activate.cgroup_id <= INT64_MAX));
                break;
        case 'e':
                r = empty_json_parse(body, n, &problem);
                break;
        case 'c':
                r = change_json_parse(body, n, &change, &problem);
                if (r == 0)
                        check_change(&change);
                break;
        case 'k':
        case 'i':
                r = (data[0] == 'k' ? park_json_parse : idle_json_parse)(body, n, &park, &problem);
                if (r == 0)
                        check_park(&park);
                break;
        case 'm':
                r = enforce_json_parse(body, n, &enforce, &problem);
                if (r == 0)
                        check_enforce(&enforce, ENFORCE_CALL_MODE);
                break;
        case 'o':
                r = approve_json_parse(body, n, &enforce, &pid, &problem);
                if (r == 0) {
                        assert(pid != 0 && pid <= LEASE_PID_MAX);
                        check_enforce(&enforce, ENFORCE_CALL_APPROVE);
                }
                break;
        case 'u':
                r = unapprove_json_parse(body, n, &enforce, &problem);
                if (r == 0)
                        check_enforce(&enforce, ENFORCE_CALL_UNAPPROVE);
                break;
        case 'd':
                r = adopt_json_parse(body, n, &ask, &problem);
                if (r == 0)
                        check_ask(&ask);
                break;
        case 'p':
                r = plan_json_parse(body, n, &ask, &problem);
                if (r == 0)
                        check_ask(&ask);
                break;
        default:
                r = lease_json_parse(body, n, &ask, &problem);
                if (r == 0)
                        check_ask(&ask);
        }
        if (r < 0)
                check_problem(&problem);
        return 0;
}
