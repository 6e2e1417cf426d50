/* SPDX-License-Identifier: Apache-2.0 */
#include "api/metrics.h"
#include <inttypes.h>
#include <string.h>
#include "arbiter/ceiling.h"
#include "arbiter/free.h"
#include "arbiter/idle.h"
#include "arbiter/reclaim.h"
#include "arbiter/rank.h"
#include "base/number.h"
#include "model/lease.h"

/* Buckets of the wait before a grant. */
static const struct {
        uint32_t ms;
        const char *le; /* in seconds */
} wait_bounds[METRICS_WAITS_N - 1] = {
        { 100, "0.1" },    { 1000, "1" },     { 5000, "5" },       { 30000, "30" },
        { 120000, "120" }, { 600000, "600" }, { 3600000, "3600" }, { 14400000, "14400" }
};

/* What came of moving a lease off its device and back. */
static const struct {
        enum rule rule;
        const char *move, *outcome;
} moves[METRICS_MOVES_N] = {
        { RULE_PARKED, "park", "done" },          { RULE_PARK_BLOCKED, "park", "blocked" },
        { RULE_PARK_FAILED, "park", "failed" },   { RULE_PARK_UNDONE, "park", "undone" },
        { RULE_BROKE_PROMISE, "park", "broken" }, { RULE_THAWED, "thaw", "done" },
        { RULE_THAW_BLOCKED, "thaw", "blocked" }, { RULE_THAW_FAILED, "thaw", "not-started" },
        { RULE_STUCK, "thaw", "failed" },         { RULE_HELD, "hold", "done" },
};

/* What leases were warned of; the last one: anything else. */
static const enum rule warnings[METRICS_WARNINGS_N - 1] = {
        RULE_OVER_USE,    RULE_STILL_DRAINING, RULE_STILL_ORPHANED, RULE_IDLE_NOTICE,  RULE_IDLE_RECLAIMABLE,
        RULE_IDLE_LISTED, RULE_SLOT_WARNING,   RULE_SLOT_OVER,      RULE_OTHER_DEVICE,
};

static void count_warning(struct metrics *m, const struct action *a)
{
        size_t i = 0;

        while (i < METRICS_WARNINGS_N - 1 && warnings[i] != a->why.rule)
                i++;
        m->warnings[i]++;
}

static void count_move(struct metrics *m, const struct action *a)
{
        for (size_t i = 0; i < METRICS_MOVES_N; i++)
                if (a->why.rule == moves[i].rule)
                        m->moves[i]++;
}

void metrics_count(struct metrics *m, const struct action *a, uint64_t waited_ms)
{
        size_t bucket = 0;

        if (a->kind < ACTION_KIND_N)
                m->actions[a->kind]++;
        count_move(m, a);
        if (a->kind == ACTION_WARNING)
                count_warning(m, a);
        if (a->kind != ACTION_GRANTED)
                return;
        while (bucket < METRICS_WAITS_N - 1 && waited_ms > wait_bounds[bucket].ms)
                bucket++;
        m->waits[bucket]++;
        m->n_waits++;
        m->waited_ms += waited_ms;
}

/* ---- the format ---- */

static void family(struct strbuf *out, const char *name, const char *type, const char *help)
{
        strbuf_printf(out, "# HELP lessor_%s %s\n# TYPE lessor_%s %s\n", name, help, name, type);
}

/* A label's value: backslash, quote and newline are written with a backslash. */
static void label(struct strbuf *out, const char *text)
{
        strbuf_puts(out, "\"");
        for (const char *at = text; *at; at++) {
                if (*at == '\n')
                        strbuf_puts(out, "\\n");
                else if (*at == '"' || *at == '\\')
                        strbuf_printf(out, "\\%c", *at);
                else
                        strbuf_append(out, at, 1);
        }
        strbuf_puts(out, "\"");
}

static void plain(struct strbuf *out, const char *name, const char *help, uint64_t value)
{
        family(out, name, "gauge", help);
        strbuf_printf(out, "lessor_%s %" PRIu64 "\n", name, value);
}

static void seconds(struct strbuf *out, const char *name, const char *help, uint64_t ms)
{
        family(out, name, "gauge", help);
        strbuf_printf(out, "lessor_%s %" PRIu64 ".%03" PRIu64 "\n", name, ms / 1000, ms % 1000);
}

/* ---- the daemon ---- */

static void write_daemon(struct strbuf *out, const struct api_health *h, uint32_t n_connections)
{
        static const char *const states[] = { "ok", "stale", "none", "mismatch" };

        family(out, "build_info", "gauge", "The version that runs.");
        strbuf_puts(out, "lessor_build_info{version=");
        label(out, h->version);
        strbuf_puts(out, "} 1\n");
        seconds(out, "start_time_seconds", "When the daemon started, since 1970.", h->started_wall_ms);
        family(out, "gpu_state", "gauge", "What is seen of the driver: 1 for the state it is in.");
        for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
                strbuf_printf(out, "lessor_gpu_state{state=\"%s\"} %d\n", states[i], strcmp(h->gpu, states[i]) == 0);
        if (h->gpu_age_known)
                seconds(out, "gpu_age_seconds", "Since the driver last answered.", h->gpu_age_ms);
        plain(out, "degraded", "1: the journal was damaged or cannot be written; nothing is ended or taken back.",
              h->degraded != NULL);
        plain(out, "config_refused", "1: the configuration was not taken, the last good one counts.",
              h->config_error != NULL);
        plain(out, "hands_up", "1: lessor-warden is there.", h->hands && strcmp(h->hands, "ok") == 0);
        if (h->gate_mode)
                plain(out, "gate_up", "1: the gate is in force as it is configured.",
                      strcmp(h->gate_mode, h->gate_state) == 0);
        if (h->gate_mode && h->gate_known)
                plain(out, "gate_refused",
                      "Opens of the device that the gate refused, or would have, since its keeper began.",
                      h->gate_refused);
        plain(out, "connections", "Connections of clients.", n_connections);
}

/* ---- devices ---- */

struct device_figure {
        const char *name, *help;
        bool (*get)(const struct view *v, uint32_t device, uint64_t *ret); /* false: not known */
};

static bool total(const struct view *v, uint32_t d, uint64_t *ret)
{
        *ret = v->world->devices[d].total_bytes;
        return *ret != 0;
}

static bool used(const struct view *v, uint32_t d, uint64_t *ret)
{
        *ret = v->world->devices[d].used_bytes;
        return v->world->devices[d].used_known;
}

static bool reserved(const struct view *v, uint32_t d, uint64_t *ret)
{
        struct sums sums;

        sums_of_device(v->world, d, &sums);
        *ret = sums.reserved_bytes;
        return true;
}

static bool committed(const struct view *v, uint32_t d, uint64_t *ret)
{
        *ret = device_committed_bytes(v->world, d);
        return true;
}

static bool free_of(const struct view *v, uint32_t d, uint64_t *ret)
{
        *ret = device_free_bytes(v->world, d);
        return true;
}

static bool ceiling(const struct view *v, uint32_t d, uint64_t *ret)
{
        *ret = device_ceiling_bytes(v->world, d, NULL);
        return true;
}

static bool unattributed(const struct view *v, uint32_t d, uint64_t *ret)
{
        *ret = device_unattributed_bytes(v->world, d);
        return v->world->devices[d].used_known;
}

static bool of_strangers(const struct view *v, uint32_t d, uint64_t *ret)
{
        *ret = 0;
        for (uint32_t i = 0; i < v->world->n_holders; i++) {
                const struct holder *h = &v->world->holders[i];
                if (h->kind != HOLDER_STRANGER || h->device != d)
                        continue;
                if (!h->used_known)
                        return false;
                *ret += h->used_bytes;
        }
        return true;
}

static bool usable(const struct view *v, uint32_t d, uint64_t *ret)
{
        *ret = device_is_usable(&v->world->devices[d]);
        return true;
}

static const struct device_figure figures[] = {
        { "device_usable", "1: leases can be granted on it.", usable },
        { "device_total_bytes", "Physical memory.", total },
        { "device_used_bytes", "Memory in use, as the driver reports it.", used },
        { "device_reserved_bytes", "Promised to leases, display and claims.", reserved },
        { "device_committed_bytes", "Used, plus promised and not yet taken.", committed },
        { "device_free_bytes", "What could be granted now.", free_of },
        { "device_ceiling_bytes", "What can ever be granted.", ceiling },
        { "device_stranger_bytes", "Used by processes without a lease.", of_strangers },
        { "device_unattributed_bytes", "Used, and by nobody the driver lists.", unattributed },
};

static void write_devices(struct strbuf *out, const struct view *v)
{
        const struct world *w = v->world;
        uint64_t value;

        for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
                family(out, figures[i].name, "gauge", figures[i].help);
                for (uint32_t d = 0; d < w->n_devices; d++) {
                        if (w->devices[d].health == DEVICE_ABSENT || !figures[i].get(v, d, &value))
                                continue;
                        strbuf_printf(out, "lessor_%s{uuid=", figures[i].name);
                        label(out, w->devices[d].uuid);
                        strbuf_puts(out, ",name=");
                        label(out, w->devices[d].name);
                        strbuf_printf(out, "} %" PRIu64 "\n", value);
                }
        }
}

/* ---- leases, queue, users ---- */

static void write_leases(struct strbuf *out, const struct view *v)
{
        const struct world *w = v->world;
        uint32_t states[LEASE_STATE_N] = { 0 }, waiting[PRIORITY_FILLER + 1] = { 0 };
        uint64_t longest_ms = 0;

        for (uint32_t i = 0; i < w->n_leases; i++)
                if (w->lease_ids[i] != 0 && w->leases[i].state < LEASE_STATE_N)
                        states[w->leases[i].state]++;
        for (uint32_t i = 0; i < w->n_entries; i++) {
                const struct entry *e = &w->entries[i];
                if (e->kind == ENTRY_NONE || e->priority > PRIORITY_FILLER)
                        continue;
                uint64_t waited_ms = entry_waited_ms(e, v->now_ms);
                waiting[e->priority]++;
                longest_ms = waited_ms > longest_ms ? waited_ms : longest_ms;
        }
        family(out, "leases", "gauge", "Leases by state.");
        for (unsigned s = LEASE_QUEUED; s < LEASE_ENDED; s++)
                strbuf_printf(out, "lessor_leases{state=\"%s\"} %" PRIu32 "\n", lease_state_name((enum lease_state) s),
                              states[s]);
        family(out, "queue_entries", "gauge", "Who waits, by priority.");
        for (unsigned p = PRIORITY_URGENT; p <= PRIORITY_FILLER; p++)
                strbuf_printf(out, "lessor_queue_entries{priority=\"%s\"} %" PRIu32 "\n", priority_name(p), waiting[p]);
        seconds(out, "queue_longest_wait_seconds", "How long the one has waited that waits longest.", longest_ms);
}

static void write_users(struct strbuf *out, const struct view *v)
{
        const struct world *w = v->world;

        family(out, "user_reserved_bytes", "gauge", "What the leases of a user hold.");
        for (uint32_t i = 0; i < w->n_users; i++) {
                if (!w->users[i].in_use || w->users[i].n_leases == 0)
                        continue;
                const char *name = user_names_get(v->names, w->users[i].uid);
                strbuf_printf(out, "lessor_user_reserved_bytes{uid=\"%" PRIu32 "\",user=", w->users[i].uid);
                label(out, name ? name : "");
                strbuf_printf(out, "} %" PRIu64 "\n", w->users[i].held_bytes);
        }
}

/* ---- what holds and does nothing ---- */

struct idle_sum {
        uint64_t longest_ms, bytes;
};

/* Of one user on one device. */
static struct idle_sum idle_of(const struct view *v, uint32_t uid, uint32_t device)
{
        const struct world *w = v->world;
        struct idle_sum sum = { 0 };

        for (uint32_t i = 0; i < w->n_leases; i++) {
                const struct lease *l = &w->leases[i];
                if (w->lease_ids[i] == 0 || l->uid != uid || !lease_is_on(l, device))
                        continue;
                const struct holder *h = world_part_on((struct world *) (uintptr_t) w, l, device);
                uint64_t since_ms = idle_since_ms(w, h);
                if (since_ms == 0)
                        continue;
                sum.longest_ms = u64_max(sum.longest_ms, u64_sub0(v->now_ms, since_ms));
                sum.bytes = u64_add_sat(sum.bytes, u64_max(h->reserved_bytes, h->used_bytes));
        }
        return sum;
}

/* By user and device, never by lease: the number of series is bounded by who is there. */
static void write_idle_family(struct strbuf *out, const struct view *v, const char *name, const char *help, bool bytes)
{
        const struct world *w = v->world;

        family(out, name, "gauge", help);
        for (uint32_t u = 0; u < w->n_users; u++) {
                for (uint32_t d = 0; w->users[u].in_use && w->users[u].n_leases != 0 && d < w->n_devices; d++) {
                        struct idle_sum sum = idle_of(v, w->users[u].uid, d);
                        if (sum.bytes == 0)
                                continue;
                        const char *user = user_names_get(v->names, w->users[u].uid);
                        strbuf_printf(out, "lessor_%s{uid=\"%" PRIu32 "\",user=", name, w->users[u].uid);
                        label(out, user ? user : "");
                        strbuf_puts(out, ",uuid=");
                        label(out, w->devices[d].uuid);
                        if (bytes)
                                strbuf_printf(out, "} %" PRIu64 "\n", sum.bytes);
                        else
                                strbuf_printf(out, "} %" PRIu64 ".%03" PRIu64 "\n", sum.longest_ms / 1000,
                                              sum.longest_ms % 1000);
                }
        }
}

static void write_idle(struct strbuf *out, const struct view *v)
{
        const struct world *w = v->world;
        uint64_t n_over = 0, n_listed = 0;

        write_idle_family(
                out, v, "held_idle_seconds",
                "How long that lease of a user on a device has held and done nothing that has done so longest.", false);
        write_idle_family(out, v, "held_idle_bytes", "What leases hold that do nothing.", true);
        for (uint32_t i = 0; i < w->n_leases; i++) {
                if (w->lease_ids[i] == 0)
                        continue;
                n_over += w->leases[i].over_use_since_ms != 0;
                n_listed +=
                        !ref_is_none(w->leases[i].holder) && idle_is_listed(w, &w->holders[w->leases[i].holder.index]);
        }
        plain(out, "idle_listed_leases", "Leases that have done nothing for so long that an administrator is to know.",
              n_listed);
        plain(out, "over_use_leases", "Leases that use more than they reserved.", n_over);
}

/* ---- parked work ---- */

static void write_parking(struct strbuf *out, const struct view *v)
{
        const struct world *w = v->world;
        uint64_t away = 0;

        for (uint32_t i = 0; i < w->n_leases; i++)
                if (w->lease_ids[i] != 0 && w->leases[i].park.step == PARK_OUT)
                        away = u64_add_sat(away, w->leases[i].park.used_bytes);
        plain(out, "parked_bytes", "Device memory that parked leases gave back.", away);
        plain(out, "ledger_charged_bytes", "Host memory of parked work.", w->ledger_charged_bytes);
        plain(out, "ledger_cap_bytes", "The most host memory that parked work may take.", w->config.ledger_cap_bytes);
        plain(out, "ledger_room_bytes", "What the ledger can still take.", reclaim_ledger_room_bytes(w));
        if (w->host.total_bytes != 0)
                plain(out, "host_available_bytes", "MemAvailable, as of the last look.", w->host.available_bytes);
        plain(out, "host_memory_pressure", "1: the kernel says that memory is short; nothing more is parked.",
              w->host.pressure);
        plain(out, "checkpoint_possible", "1: driver and machine can checkpoint.",
              w->host.checkpoint == CHECKPOINT_CAN);
}

/* ---- since the start ---- */

static void write_counters(struct strbuf *out, const struct metrics *m)
{
        uint64_t so_far = 0;

        family(out, "decisions_total", "counter",
               "What was decided since the daemon started, by kind (lessor events).");
        for (unsigned k = ACTION_NONE + 1; k < ACTION_KIND_N; k++)
                if (k != ACTION_READ)
                        strbuf_printf(out, "lessor_decisions_total{kind=\"%s\"} %" PRIu64 "\n",
                                      action_kind_name((enum action_kind) k), m->actions[k]);
        family(out, "moves_total", "counter", "What came of parks, thaws and holds since the daemon started.");
        for (size_t i = 0; i < METRICS_MOVES_N; i++)
                strbuf_printf(out, "lessor_moves_total{move=\"%s\",outcome=\"%s\"} %" PRIu64 "\n", moves[i].move,
                              moves[i].outcome, m->moves[i]);
        family(out, "warnings_total", "counter", "What leases were warned of since the daemon started.");
        for (size_t i = 0; i < METRICS_WARNINGS_N; i++)
                strbuf_printf(out, "lessor_warnings_total{rule=\"%s\"} %" PRIu64 "\n",
                              i < METRICS_WARNINGS_N - 1 ? rule_name(warnings[i]) : "other", m->warnings[i]);
        family(out, "looks_ordered_total", "counter", "Looks at a device that a decision needed at once.");
        strbuf_printf(out, "lessor_looks_ordered_total %" PRIu64 "\n", m->actions[ACTION_READ]);
        family(out, "grant_wait_seconds", "histogram", "How long what was granted had waited.");
        for (size_t i = 0; i < METRICS_WAITS_N - 1; i++) {
                so_far += m->waits[i];
                strbuf_printf(out, "lessor_grant_wait_seconds_bucket{le=\"%s\"} %" PRIu64 "\n", wait_bounds[i].le,
                              so_far);
        }
        strbuf_printf(out, "lessor_grant_wait_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n", m->n_waits);
        strbuf_printf(out, "lessor_grant_wait_seconds_sum %" PRIu64 ".%03" PRIu64 "\n", m->waited_ms / 1000,
                      m->waited_ms % 1000);
        strbuf_printf(out, "lessor_grant_wait_seconds_count %" PRIu64 "\n", m->n_waits);
}

void metrics_write(struct strbuf *out, const struct metrics *m, const struct view *v, const struct api_health *health,
                   uint32_t n_connections)
{
        write_daemon(out, health, n_connections);
        write_devices(out, v);
        write_leases(out, v);
        write_users(out, v);
        write_idle(out, v);
        write_parking(out, v);
        write_counters(out, m);
}
