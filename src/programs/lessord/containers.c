/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/containers.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/engine.h"
#include "api/engine_state.h"
#include "base/log.h"

enum phase { PHASE_BEFORE, PHASE_CALLING, PHASE_AFTER };

struct container_order {
        struct containers *containers;
        uint64_t order_id, lease_id, grace_ms;
        enum manager_verb verb;
        enum phase phase;
        int status; /* of its stop or start */
        struct engine_question *question;
        char socket[108];
        char id[MANAGER_NAME_MAX];
};

static void on_state(void *ctx, const struct engine_reply *r);

static void forget(struct container_order *o)
{
        for (unsigned i = 0; i < CONTAINERS_MAX; i++)
                if (o->containers->orders[i] == o)
                        o->containers->orders[i] = NULL;
        free(o);
}

static void finish(struct container_order *o, enum outcome outcome, enum hand_why why,
                   const struct manager_outcome *runs)
{
        struct containers *c = o->containers;
        struct manager_outcome out = runs ? *runs : (struct manager_outcome){ 0 };

        out.order_id = o->order_id;
        out.lease_id = o->lease_id;
        out.outcome = (uint8_t) outcome;
        out.why = (uint8_t) why;
        log_info("event=container-%s container=%s order=%" PRIu64 " result=%s why=%s status=%d",
                 manager_verb_name(o->verb), o->id, o->order_id, outcome_name(outcome), hand_why_name(why), o->status);
        forget(o);
        c->host.submit(c->host.ctx, &out);
}

static void no_answer(struct container_order *o, bool may_be_done)
{
        if (may_be_done)
                finish(o, OUTCOME_FAILED, HAND_WHY_LOST, NULL);
        else
                finish(o, OUTCOME_BLOCKED, HAND_WHY_MANAGER_AWAY, NULL);
}

static void ask(struct container_order *o, enum phase phase, const char *method, const char *what, uint64_t deadline_ms,
                engine_reply_fn *on_reply)
{
        char path[MANAGER_NAME_MAX + 48];

        o->phase = phase;
        (void) snprintf(path, sizeof(path), "/containers/%s/%s", o->id, what);
        o->question = engine_call(o->containers->loop, o->socket, method, path, deadline_ms, on_reply, o);
        if (!o->question)
                no_answer(o, phase == PHASE_AFTER);
}

/* ---- after ---- */

static void judge(struct container_order *o, const struct engine_state *state)
{
        struct manager_outcome runs = { 0 };
        bool was_done = o->status == 204 || o->status == 304;
        bool known = state->running && state->pid != 0 &&
                     o->containers->host.identify(o->containers->host.ctx, state->pid, o->id, &runs);

        if (o->verb == MANAGER_START)
                finish(o, known ? OUTCOME_DONE : OUTCOME_FAILED, known ? HAND_WHY_NONE : HAND_WHY_MANAGER_FAILED,
                       &runs);
        else if (!state->running && !state->restarting)
                finish(o, OUTCOME_DONE, HAND_WHY_NONE, NULL);
        else
                finish(o, OUTCOME_FAILED, was_done ? HAND_WHY_RUNS_AGAIN : HAND_WHY_MANAGER_FAILED, &runs);
}

static void on_done(void *ctx, const struct engine_reply *r)
{
        struct container_order *o = ctx;

        o->question = NULL;
        o->status = r->status;
        if (r->status == 0)
                no_answer(o, r->sent);
        else if (r->status == 401 || r->status == 403)
                finish(o, OUTCOME_BLOCKED, HAND_WHY_FORBIDDEN, NULL);
        else
                ask(o, PHASE_AFTER, "GET", "json", CONTAINER_LOOK_MS, on_state);
}

/* ---- before ---- */

static void go_on(struct container_order *o, const struct engine_state *state)
{
        char what[32];

        if (o->verb == MANAGER_START) {
                ask(o, PHASE_CALLING, "POST", "start", CONTAINER_START_MS, on_done);
        } else if (!state->running && !state->restarting) {
                finish(o, OUTCOME_DONE, HAND_WHY_NONE, NULL);
        } else if (state->removed_at_end) {
                finish(o, OUTCOME_BLOCKED, HAND_WHY_NO_WAY_BACK, NULL);
        } else {
                (void) snprintf(what, sizeof(what), "stop?t=%" PRIu64, o->grace_ms / 1000);
                ask(o, PHASE_CALLING, "POST", what, o->grace_ms + CONTAINER_BEYOND_GRACE_MS, on_done);
        }
}

static void on_state(void *ctx, const struct engine_reply *r)
{
        struct container_order *o = ctx;
        struct engine_state state;

        o->question = NULL;
        bool fine = r->status == 200 && engine_state_parse(r->body, r->n_body, &state);
        if (o->phase == PHASE_AFTER) {
                if (fine)
                        judge(o, &state);
                else
                        no_answer(o, true);
        } else if (fine) {
                go_on(o, &state);
        } else if (r->status == 401 || r->status == 403) {
                finish(o, OUTCOME_BLOCKED, HAND_WHY_FORBIDDEN, NULL);
        } else if (r->status == 404 && o->verb == MANAGER_START) { /* removed while it was parked */
                o->status = r->status;
                finish(o, OUTCOME_FAILED, HAND_WHY_MANAGER_FAILED, NULL);
        } else if (r->status == 404) {
                finish(o, OUTCOME_BLOCKED, HAND_WHY_NO_WAY_BACK, NULL);
        } else {
                no_answer(o, false);
        }
}

void containers_order(struct containers *c, const char *socket, const char *id, enum manager_verb verb,
                      uint64_t grace_ms, uint64_t order_id, uint64_t lease_id)
{
        struct container_order *o = NULL;

        for (unsigned i = 0; i < CONTAINERS_MAX && !o && socket[0] && strlen(socket) < sizeof(o->socket); i++)
                if (!c->orders[i])
                        o = c->orders[i] = calloc(1, sizeof(*o));
        if (!o) {
                c->host.submit(c->host.ctx, &(struct manager_outcome){ .order_id = order_id,
                                                                       .lease_id = lease_id,
                                                                       .outcome = OUTCOME_BLOCKED,
                                                                       .why = HAND_WHY_MANAGER_AWAY });
                return;
        }
        *o = (struct container_order){
                .containers = c, .order_id = order_id, .lease_id = lease_id, .grace_ms = grace_ms, .verb = verb
        };
        (void) snprintf(o->socket, sizeof(o->socket), "%s", socket);
        (void) snprintf(o->id, sizeof(o->id), "%s", id);
        ask(o, PHASE_BEFORE, "GET", "json", CONTAINER_LOOK_MS, on_state);
}

void containers_init(struct containers *c, uv_loop_t *loop, const struct containers_host *host)
{
        *c = (struct containers){ .loop = loop, .host = *host };
}

void containers_stop(struct containers *c)
{
        for (unsigned i = 0; i < CONTAINERS_MAX; i++)
                if (c->orders[i]) {
                        if (c->orders[i]->question)
                                engine_cancel(c->orders[i]->question);
                        forget(c->orders[i]);
                }
}
