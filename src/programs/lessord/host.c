/* SPDX-License-Identifier: Apache-2.0 */
/* What the API and the eyes see of the daemon. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "model/lease.h"
#include "programs/lessord/daemon.h"
#include "programs/lessord/host_conf.h"
#include "programs/lessord/plan.h"
#include "programs/lessord/records.h"
#include "programs/lessord/study.h"

static struct world *api_world(void *ctx)
{
        return ((struct daemon *) ctx)->world;
}

static uint64_t api_now_ms(void *ctx)
{
        return daemon_now_ms(ctx);
}

static uint64_t api_wall_of_ms(void *ctx, uint64_t world_ms)
{
        struct daemon *d = ctx;
        uint64_t now = daemon_now_ms(d), wall = daemon_wall_ms(d);

        if (world_ms > now)
                return wall + (world_ms - now);
        return wall > now - world_ms ? wall - (now - world_ms) : 0;
}

static int api_submit(void *ctx, const struct input *input, struct error *err)
{
        struct daemon *d = ctx;

        if (d->finish.begun && (input->kind == INPUT_REQUEST || input->kind == INPUT_PARK))
                return error_set(err, EAGAIN, "lessord is being stopped; ask the next one");
        if (d->store_failed && input_is_refusable(input))
                return error_set(err, d->store_code == ENOSPC ? ENOSPC : EAGAIN, "%s", d->store_words);
        daemon_submit(d, input);
        return 0;
}

static bool api_settled(void *ctx)
{
        return turn_is_settled(ctx);
}

static void api_health(void *ctx, struct api_health *ret)
{
        struct daemon *d = ctx;
        struct gate_view gate;

        *ret = (struct api_health){
                .version = LESSORD_VERSION,
                .gpu = eyes_link_gpu(d->eyes),
                .started_wall_ms = d->started_wall_ms,
                .degraded = d->store_failed ? d->store_words : journal_degraded(d->journal),
                .config_error = d->conf_error[0]      ? d->conf_error
                                : d->tenants.error[0] ? d->tenants.error
                                                      : NULL,
                .hands = hands_are_up(d) ? "ok" : "away",
                .hands_words = hands_words(d),
        };
        gate_look(d, &gate);
        if (gate.mode != GATE_OFF) {
                ret->gate_mode = gate_mode_name(gate.mode);
                ret->gate_state = gate.state;
                ret->gate_words = gate.words;
                ret->gate_known = gate.known;
                ret->gate_leases = gate.n_leases;
                ret->gate_refused = gate.refused;
                ret->gate_last_uid = gate.last_uid;
        }
        const char *units = managers_units_words(d), *sleep = managers_sleep_words(d);
        ret->units_words = units[0] ? units : NULL;
        ret->sleep_words = sleep[0] ? sleep : NULL;
        ret->gpu_age_known = eyes_link_age_ms(d->eyes, &ret->gpu_age_ms);
        ret->process_events = eyes_link_process_events(d->eyes, &ret->process_events_errno);
        ret->accounting_known = eyes_link_accounting(d->eyes, &ret->accounting);
        ret->host_pids_known = eyes_link_host_pids(d->eyes, &ret->host_pids);
}

static bool api_told(void *ctx, uint64_t lease_id, struct api_told *ret)
{
        struct daemon *d = ctx;
        return told_get(&d->told, d->world, lease_id, ret);
}

static bool api_looked_ms(void *ctx, uint32_t device, uint64_t *ret_age_ms)
{
        struct daemon *d = ctx;
        return device < d->world->n_devices && eyes_link_looked_ms(d->eyes, d->world->devices[device].uuid, ret_age_ms);
}

/* ---- events ---- */

struct relay {
        api_event_fn *each;
        void *cls;
        struct api_event *kept; /* newest first, to be told the other way round */
        size_t n_kept, max_kept;
        bool stopped;
};

static int relay_event(void *ctx, const struct journal_event *event)
{
        struct relay *relay = ctx;
        struct api_event e = { .now_ms = event->now_ms, .wall_ms = event->wall_ms, .action = event->action };

        if (relay->kept) {
                relay->kept[relay->n_kept++] = e;
                return relay->n_kept == relay->max_kept;
        }
        return !relay->each(relay->cls, &e);
}

static int api_events(void *ctx, const struct api_event_query *query, api_event_fn *each, void *cls, struct error *err)
{
        struct daemon *d = ctx;
        struct journal_events_filter filter = {
                .after_id = query->after,
                .lease_id = query->lease_id,
                .limit = query->limit,
                .newest_first = query->newest,
        };
        struct relay relay = { .each = each, .cls = cls };
        auto_free struct api_event *kept = NULL;

        if (query->newest) {
                kept = calloc(query->limit, sizeof(*kept));
                if (!kept)
                        return error_set(err, ENOMEM, "no memory for events");
                relay.kept = kept;
                relay.max_kept = query->limit;
        }
        int r = journal_events(d->journal, &filter, relay_event, &relay, err);
        if (r < 0)
                return r;
        for (size_t i = relay.n_kept; i > 0; i--)
                if (!each(cls, &kept[i - 1]))
                        break;
        return 0;
}

static bool api_study(void *ctx, const struct api_study *study, api_study_fn *done, void *done_ctx, uint64_t token)
{
        struct daemon *d = ctx;
        const struct study_moment now = { .now_ms = daemon_now_ms(d), .wall_ms = daemon_wall_ms(d) };

        return study_start(&d->loop, d->paths.journal, d->clock.boot_id, study, &now, done, done_ctx, token);
}

static const struct journal_audit *api_facts(void *ctx, uint32_t pid)
{
        return audits_find(&((struct daemon *) ctx)->audits, pid);
}

static bool api_plan(void *ctx, const struct request *request, struct api_planned *ret)
{
        struct daemon *d = ctx;
        return plan_request(d->world, daemon_now_ms(d), request, ret);
}

static bool api_manager_of(void *ctx, const char *cgroup_path, uint32_t uid, bool is_admin, struct manager *ret,
                           const char **ret_why)
{
        return managers_find(ctx, cgroup_path, uid, is_admin, ret, ret_why);
}

struct api_host host_for_api(struct daemon *d)
{
        return (struct api_host){
                .ctx = d,
                .world = api_world,
                .now_ms = api_now_ms,
                .wall_of_ms = api_wall_of_ms,
                .submit = api_submit,
                .settled = api_settled,
                .health = api_health,
                .told = api_told,
                .looked_ms = api_looked_ms,
                .events = api_events,
                .study = api_study,
                .facts = api_facts,
                .plan = api_plan,
                .quota_row = host_quota_row,
                .quota_name = host_quota_name,
                .config_json = host_config_json,
                .tenants_json = host_tenants_json,
                .reload = host_reload,
                .manager_of = api_manager_of,
        };
}

/* ---- at the start ---- */

static bool replay_told(void *cls, const struct api_event *event)
{
        struct daemon *d = cls;

        told_action(&d->told, d->world, &event->action);
        return true;
}

int host_load_told(struct daemon *d, struct error *err)
{
        for (uint32_t i = 0; i < d->world->n_leases; i++) {
                struct api_event_query query = { .lease_id = d->world->lease_ids[i], .limit = 32, .newest = true };
                if (query.lease_id == 0)
                        continue;
                int r = api_events(d, &query, replay_told, d, err);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- the eyes ---- */

static const struct world *eyes_world(void *ctx)
{
        return ((struct daemon *) ctx)->world;
}

static void eyes_submit(void *ctx, const struct input *input)
{
        daemon_submit(ctx, input);
}

static void eyes_submit_patiently(void *ctx, const struct input *input)
{
        daemon_submit_patiently(ctx, input);
}

static uint64_t eyes_of_monotonic(void *ctx, uint64_t monotonic_ms)
{
        return world_clock_of_monotonic(&((struct daemon *) ctx)->clock, monotonic_ms);
}

static uint64_t eyes_room_of(void *ctx, uint32_t pid)
{
        return facts_room_of(ctx, pid);
}

static void eyes_told_process(void *ctx, const struct eyes_process *told, const struct process *settled)
{
        audits_told(ctx, told, settled);
        if (settled->guard == GUARD_UNSEEN)
                unseen_wake(ctx);
}

static void eyes_driver_changed(void *ctx)
{
        struct daemon *d = ctx;

        d->facts.cannot = CHECKPOINT_UNKNOWN; /* another library, perhaps */
        facts_look_soon(d);
}

/* A record names a device: where the journal is lost, it can be taken up only now. */
static void eyes_named_all(void *ctx)
{
        records_tell(ctx);
}

static void eyes_first_look(void *ctx)
{
        ((struct daemon *) ctx)->ready = true; /* main.c announces it when this turn is over */
}

struct eyes_host host_for_eyes(struct daemon *d)
{
        return (struct eyes_host){
                .ctx = d,
                .world = eyes_world,
                .submit = eyes_submit,
                .submit_patiently = eyes_submit_patiently,
                .of_monotonic = eyes_of_monotonic,
                .room_of = eyes_room_of,
                .told_process = eyes_told_process,
                .driver_changed = eyes_driver_changed,
                .named_all = eyes_named_all,
                .first_look = eyes_first_look,
        };
}
