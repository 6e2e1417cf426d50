/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/gate.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "programs/lessord/daemon.h"
#include "programs/lessord/gate_rule.h"

static enum gate_mode configured(const struct daemon *d)
{
        return (enum gate_mode) d->conf.sections.gate.mode;
}

static void let_out(struct daemon *d)
{
        if (!d->gate.holds)
                return;
        d->gate.holds = false;
        (void) uv_timer_stop(&d->gate.patience);
        turn_let_out(d);
}

/* ---- who may pass ---- */

static bool same(const struct gate_allow *a, const struct gate_allow *b)
{
        return a->lease_id == b->lease_id && a->cgroup_id == b->cgroup_id && a->pid == b->pid &&
               a->start_ticks == b->start_ticks && a->owner_uid == b->owner_uid;
}

static void sync_row(struct gate *g, uint32_t i, const struct lease *lease)
{
        struct gate_row *row = &g->rows[i];
        struct gate_allow want = { 0 };

        if (lease)
                (void) gate_wants(lease, &want);
        if (same(&want, &row->allow))
                return;
        if (row->allow.lease_id != 0 && row->allow.lease_id != want.lease_id && gate_link_is_up(g->link)) {
                const struct gate_message forget = { .kind = GATE_FORGET, .lease_id = row->allow.lease_id };
                if (!gate_link_say(g->link, &forget)) {
                        gate_link_begin_again(g->link, "lessor-warden-admin does not keep up");
                        return;
                }
        }
        *row = (struct gate_row){ .allow = want, .unsaid = want.lease_id != 0 };
}

static void sync_rows(struct daemon *d)
{
        struct gate *g = &d->gate;
        uint32_t n = d->world->n_leases > g->n_rows ? d->world->n_leases : g->n_rows;

        for (uint32_t i = 0; i < n; i++)
                sync_row(g, i, i < d->world->n_leases && d->world->lease_ids[i] != 0 ? &d->world->leases[i] : NULL);
        g->n_rows = d->world->n_leases;
        g->sync_due = false;
}

/* As much as the socket takes; each answer makes room for more. True: all that is to be said is said and answered. */
static bool pump(struct daemon *d)
{
        struct gate *g = &d->gate;
        uint32_t n_open = 0;

        for (uint32_t i = 0; i < g->n_rows; i++) {
                struct gate_row *row = &g->rows[i];
                const struct gate_message msg = { .kind = GATE_ALLOW, .allow = row->allow };
                if (row->unsaid && gate_link_is_up(g->link) && gate_link_say(g->link, &msg)) {
                        row->unsaid = false;
                        row->n_asked++;
                }
                if (row->unsaid) /* the socket is full */
                        return false;
                n_open += row->n_asked;
        }
        if (g->set_due && !g->sync_due) {
                const struct gate_message msg = { .kind = GATE_SET, .mode = configured(d) };
                if (!gate_link_say(g->link, &msg))
                        return false;
                g->set_due = false;
        }
        return n_open == 0;
}

/* ---- what the keeper says ---- */

static void on_up(void *ctx)
{
        struct daemon *d = ctx;
        struct gate *g = &d->gate;

        for (uint32_t i = 0; i < g->n_rows; i++) { /* it may know of others than these */
                g->rows[i].unsaid = g->rows[i].allow.lease_id != 0;
                g->rows[i].n_asked = 0;
        }
        g->state_known = false;
        g->set_due = true;
        g->sync_due = true;
        if (turn_is_settled(d) || g->holds) /* else the world is ahead of the disk: the end of this turn says it */
                sync_rows(d);
        (void) pump(d);
}

static void on_away(void *ctx, const char *words)
{
        struct daemon *d = ctx;

        (void) words;
        d->gate.state_known = false;
        let_out(d);
}

static void on_set_answer(struct daemon *d, const struct gate_answer *a)
{
        d->gate.set_why = a->why;
        if (a->result == GATE_DONE)
                log_info("event=gate-set mode=%s", gate_mode_name(configured(d)));
        else
                log_warning("event=gate-not-set mode=%s why=%s errno=%d words=\"%s\"", gate_mode_name(configured(d)),
                            gate_why_name(a->why), a->error, gate_why_words(a->why));
        gate_link_ask(d->gate.link);
}

static void on_answer(void *ctx, const struct gate_answer *a)
{
        struct daemon *d = ctx;
        struct gate *g = &d->gate;

        if (a->lease_id == 0) {
                on_set_answer(d, a);
                return;
        }
        for (uint32_t i = 0; i < g->n_rows; i++)
                if (g->rows[i].allow.lease_id == a->lease_id && g->rows[i].n_asked > 0)
                        g->rows[i].n_asked--;
        if (a->result != GATE_DONE)
                log_warning("event=gate-not-for-lease lease=L%" PRIu64 " why=%s errno=%d words=\"%s\"", a->lease_id,
                            gate_why_name(a->why), a->error, gate_why_words(a->why));
        if (pump(d))
                let_out(d);
}

static void on_state(void *ctx, const struct gate_state *state)
{
        struct daemon *d = ctx;
        struct gate *g = &d->gate;

        if (g->state_known && state->refused > g->state.refused)
                log_info("event=gate-refused opens=%" PRIu64 " last_uid=%u mode=%s", state->refused - g->state.refused,
                         state->last_uid, gate_mode_name(state->mode));
        if (state->mode != GATE_OFF && g->set_why == GATE_WHY_NO_CGROUP)
                g->set_why = GATE_WHY_NONE; /* it came later */
        g->state = *state;
        g->state_known = true;
}

static void on_patience(uv_timer_t *timer)
{
        struct daemon *d = timer->data;

        log_warning("event=gate-slow words=\"lessor-warden-admin has not said that the kernel knows; a lease begins "
                    "without\"");
        let_out(d);
}

bool gate_hold(struct daemon *d, bool leases_changed)
{
        struct gate *g = &d->gate;

        if (!g->link || configured(d) == GATE_OFF || (!leases_changed && !g->sync_due))
                return false;
        sync_rows(d);
        if (!gate_link_is_up(g->link) || pump(d) || !gate_link_is_up(g->link))
                return false;
        g->holds = true;
        (void) uv_timer_start(&g->patience, on_patience, GATE_PATIENCE_MS, 0);
        return true;
}

bool gate_holds(const struct daemon *d)
{
        return d->gate.holds;
}

/* ---- life ---- */

static void begin(struct daemon *d)
{
        const struct gate_link_host host = {
                .ctx = d, .on_up = on_up, .on_away = on_away, .on_answer = on_answer, .on_state = on_state
        };
        char socket[sizeof(d->paths.run_dir) + 32];
        struct error err = { 0 };

        if (d->gate.link || configured(d) == GATE_OFF)
                return;
        (void) snprintf(socket, sizeof(socket), "%s/warden-admin.sock", d->paths.run_dir);
        if (gate_link_new(&d->gate.link, &d->loop, socket, LESSORD_VERSION, &host, &err) < 0) {
                log_warning("event=no-gate words=\"%s\"", err.msg);
                return;
        }
        (void) uv_timer_init(&d->loop, &d->gate.patience);
        d->gate.patience.data = d;
        gate_link_start(d->gate.link);
}

void gate_start(struct daemon *d)
{
        begin(d);
}

void gate_reload(struct daemon *d)
{
        begin(d);
        if (!d->gate.link || !gate_link_is_up(d->gate.link))
                return;
        d->gate.set_due = d->gate.sync_due = true;
        if (turn_is_settled(d) || d->gate.holds)
                sync_rows(d);
        (void) pump(d);
}

void gate_finish(struct daemon *d)
{
        let_out(d);
}

void gate_stop(struct daemon *d)
{
        if (!d->gate.link)
                return;
        gate_link_stop(d->gate.link);
        uv_close((uv_handle_t *) &d->gate.patience, NULL);
}

void gate_free(struct daemon *d)
{
        gate_link_free(d->gate.link);
        d->gate.link = NULL;
}

void gate_look(const struct daemon *d, struct gate_view *ret)
{
        const struct gate *g = &d->gate;
        bool up = g->link && gate_link_is_up(g->link);

        *ret = (struct gate_view){ .mode = configured(d),
                                   .state = "away",
                                   .words = g->link ? gate_link_words(g->link) : "lessor-warden-admin is not there",
                                   .known = up && g->state_known,
                                   .n_leases = g->state.n_leases,
                                   .refused = g->state.refused,
                                   .last_uid = g->state.last_uid };
        if (up && g->set_why != GATE_WHY_NONE) {
                ret->state = "blocked";
                ret->words = gate_why_words(g->set_why);
        } else if (up) {
                ret->state = gate_mode_name(g->state_known ? g->state.mode : GATE_OFF);
        }
}
