/* SPDX-License-Identifier: Apache-2.0 */
#include "books.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct world *books_world_new(void)
{
        void *p = mmap(NULL, sizeof(struct world), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                       -1, 0);
        assert(p != MAP_FAILED);
        return p;
}

void books_world_zero(struct world *world)
{
        (void) madvise(world, sizeof(*world), MADV_DONTNEED); /* private anonymous memory reads as zeros after it */
}

void books_world_free(struct world *world)
{
        (void) munmap(world, sizeof(*world));
}

/* ---- something in every field ---- */

/* Field by field into zeroed memory, so that padding stays zero and worlds can be compared as memory. */
static void some_identity(struct identity *id, uint32_t seed)
{
        id->pid = 100 + seed;
        id->start_ticks = UINT64_C(5000000000) + seed;
}

static void some_ways(struct ways_out *w, uint32_t seed)
{
        w->named = (uint8_t) (seed % 32);
        w->proven = 2;
        w->declared = (1U << 15) - 1;
        for (uint32_t i = 0; i < WAY_OUT_N; i++)
                w->floor_bytes[i] = UINT64_MAX - seed - i;
}

static void some_binding(struct binding *b, uint32_t seed)
{
        b->kind = (uint8_t) (seed % BINDING_KIND_N);
        some_identity(&b->owner, seed);
        some_identity(&b->root, seed + 1);
        b->cgroup_id = 77 + seed;
        b->ttl_ms = 30000;
        b->manager.kind = (uint8_t) (seed % MANAGER_KIND_N);
        memset(b->manager.name, 'u', seed % MANAGER_NAME_MAX);
}

static void some_ref(struct ref *r, uint32_t seed)
{
        r->index = seed % 500;
        r->generation = 1 + seed;
}

static void some_config(struct config *config, uint32_t seed)
{
        config_defaults(config);
        config->display_bytes += seed;
        config->margin = 3;
        config->n_quotas = 2;
        config->bytes_per_user_max = UINT64_C(5) << 30;
        config->slot_max_ms = 4;
        config->quotas[1] = (struct quota){ .priority_min = 3,
                                            .leases_max = 4,
                                            .waiting_max = 5,
                                            .pins_max = 6,
                                            .bytes_max = 7,
                                            .slot_max_ms = 8,
                                            .pin_max_ms = 9 };
        config->quotas[QUOTAS_MAX - 1].leases_max = 1;
}

static void some_occupancy(struct occupancy *o, uint32_t seed)
{
        some_identity(&o->identity, seed);
        o->used_bytes = UINT64_C(1) << (seed % 64);
        o->device = seed % DEVICES_MAX;
        o->flags = ROW_USED_KNOWN | ROW_MPS;
        some_ref(&o->holder, seed);
}

static void some_process(struct process *p, uint32_t seed)
{
        some_identity(&p->identity, seed);
        p->state = PROCESS_UNCONFIRMED;
        p->uid = 1000 + seed;
        p->ppid = 7;
        p->cgroup_id = 99;
        p->term_ms = 100;
        p->kill_ms = 101;
        p->member = (uint8_t) (seed % MEMBER_STEP_N);
        p->order_id = 102;
        p->device_bytes = 103;
        p->parked_bytes = 104;
        p->room_bytes = UINT64_MAX;
        p->program = 105 + seed;
        p->script = 106;
        p->command = 109;
        p->place = UINT64_MAX - seed;
        p->seen_ms = 107;
        p->token_id = 108;
        p->guard = (uint8_t) (seed % GUARD_N);
        p->runs = RUNS_SCRIPT;
        p->attributed_by = (uint8_t) (seed % ATTRIBUTED_N);
        p->n_ancestors = 3;
        for (uint32_t i = 0; i < 3; i++) {
                some_identity(&p->ancestors[i], seed + 10 + i);
                p->links[i] = (uint8_t) (LINK_EVENT + i % (LINK_N - LINK_EVENT));
        }
        some_ref(&p->lease, seed);
        memcpy(p->comm, "py\x1b[2J\xff n", 9); /* any bytes */
}

static void some_park(struct park *k, uint32_t seed)
{
        *k = (struct park){ .step = (uint8_t) (seed % PARK_STEP_N),
                            .way = WAY_OUT_KILL,
                            .cause = PARK_REHEARSAL,
                            .failed_ways = WAY_OUT_BIT(WAY_OUT_KILL),
                            .n_returns = RETURNS_KEPT,
                            .undo_order = VICTIMS_MAX,
                            .yielded = true,
                            .lost_one = seed % 2,
                            .broke_promise = true,
                            .told = seed % 2,
                            .wants_back = true,
                            .idle = seed % 2,
                            .undo_group = 201,
                            .started_ms = 202,
                            .step_ms = 203,
                            .deadline_ms = 204,
                            .again_ms = 205,
                            .parked_ms = 206,
                            .until_ms = 207,
                            .for_lease_id = 208,
                            .by_uid = UINT32_MAX,
                            .used_bytes = 209,
                            .moved_bytes = 210,
                            .planned_bytes = 211,
                            .charged_bytes = 212,
                            .out_ms = 213,
                            .back_ms = 214,
                            .returned_ms = 215,
                            .not_before_ms = UINT64_MAX,
                            .order_id = 217,
                            .may_be_done = seed % 2 };
        for (unsigned way = 0; way < WAY_OUT_N; way++)
                k->strikes[way] = (uint8_t) (way + 1);
        for (uint32_t i = 0; i < RETURNS_KEPT; i++)
                k->returns_ms[i] = 216 + i;
}

static void fill_plan(struct plan *p, uint32_t seed)
{
        *p = (struct plan){ .id = 300 + seed, .device = 1, .n_victims = 2, .need_bytes = 301, .started_ms = 302 };
        some_ref(&p->entry, seed);
        some_ref(&p->claim, seed);
        for (uint32_t i = 0; i < p->n_victims; i++) {
                some_ref(&p->victims[i].lease, seed + i);
                p->victims[i].way = WAY_OUT_RESTART;
                p->victims[i].state = (uint8_t) (i + 1);
        }
}

static void some_host(struct host *h)
{
        *h = (struct host){ .total_bytes = 401,
                            .available_bytes = 402,
                            .read_ms = 403,
                            .driver = UINT64_MAX,
                            .pressure = true,
                            .checkpoint = CHECKPOINT_NO_HANDS };
}

static void fill_lease(struct lease *l, uint32_t seed)
{
        l->generation = 4 + seed;
        l->state = LEASE_ACTIVE;
        l->priority = PRIORITY_FILLER;
        l->kept_rank = PRIORITY_URGENT;
        l->end_reason = END_REBOOTED;
        l->managed = l->slot_warned = l->misplaced = l->backfilled = true;
        l->over_use_told = 255;
        l->leaving_told = 3;
        l->kill_at_end = l->over_time = l->owner_gone = seed % 2;
        l->exclusive = l->adopted = l->kill_left = l->ending = seed % 2;
        l->filler = l->no_stop = seed % 2;
        l->ending_told = ENDING_TOLD_BLOCKED;
        some_park(&l->park, seed);
        l->sized = SIZED_LEARNED;
        l->sized_by = PEAKS_MAX;
        l->peak_bytes = UINT64_C(11) << 30;
        l->root_term_ms = 31;
        l->tree_kill_ms = 32;
        l->ending_again_ms = 33;
        l->idempotency = (struct idempotency){ .key = { 34, UINT64_MAX }, .body = 35 };
        l->id = 17 + seed;
        l->uid = 1000;
        l->user = 1;
        l->bytes = UINT64_C(12) << 30;
        l->devices = UINT64_MAX;
        l->device = UINT32_MAX;
        l->slot_ms = 1;
        l->booked_ms = 34;
        l->booked_wall_ms = 35;
        l->daily = seed % 2;
        l->day_s = 36;
        l->arrived_ms = 2;
        l->granted_ms = 3;
        l->active_ms = 4;
        l->ended_ms = 5;
        l->slot_end_ms = 6;
        l->renewed_ms = 7;
        l->waited_ms = 8;
        l->ledger_set_aside_bytes = 9;
        l->over_use_since_ms = 10;
        some_binding(&l->binding, seed);
        some_ways(&l->ways, seed);
        some_ref(&l->holder, seed);
        some_ref(&l->entry, seed + 1);
        some_ref(&l->backfill_for, seed + 2);
        (void) snprintf(l->name, sizeof(l->name), "train %u", seed);
        memset(l->consumer, 'c', sizeof(l->consumer) - 1); /* as long as it can be */
}

static void fill_entry(struct entry *e, uint32_t seed)
{
        e->generation = 8 + seed;
        e->kind = ENTRY_THAW;
        e->priority = 3;
        e->wait_kind = WAIT_BLOCKED;
        e->is_head = e->head_is_finite = e->stepped_aside = e->no_wait = e->collected = true;
        e->id = 400 + seed;
        some_ref(&e->lease, seed);
        e->user = 2;
        e->demand_bytes = 1;
        e->percent_milli = 90000;
        e->least_bytes = 1;
        e->due_ms = 7;
        e->devices = 5;
        e->limit_ms = 2;
        e->arrived_ms = 3;
        e->held_ms = 4;
        e->held_since_ms = 5;
        e->give_up_ms = 6;
        some_ways(&e->ways, seed);
        e->head_device = 3;
        e->head_since_ms = 7;
        e->start_ms = 8;
        e->block_since_ms = 9;
        e->block_until_ms = 10;
}

static void fill_holder(struct holder *h, uint32_t seed)
{
        h->generation = 6 + seed;
        h->kind = HOLDER_CLAIM;
        h->claim_kind = CLAIM_BOOKING;
        h->used_known = h->managed = h->pinned = h->protected = h->uncollected = true;
        h->device = 3;
        h->reserved_bytes = 1;
        h->used_bytes = 2;
        h->pin_end_ms = 3;
        h->idle_since_ms = 4;
        h->n_processes = 5;
        h->activity = HOLDER_WORKED;
        h->idle_told = IDLE_TOLD_LISTED;
        h->rests_since_ms = 6;
        h->idle_told_ms = 7;
        some_ways(&h->ways, seed);
        some_ref(&h->lease, seed);
        some_ref(&h->entry, seed + 1);
        some_identity(&h->process, seed);
}

static void fill_device(struct device *d, uint32_t seed)
{
        d->health = DEVICE_FAULT;
        d->used_known = d->per_process_known = d->settled = d->driver_own_known = true;
        (void) snprintf(d->uuid, sizeof(d->uuid), "GPU-%u", seed);
        (void) snprintf(d->name, sizeof(d->name), "card %u", seed);
        (void) snprintf(d->pci_bus_id, sizeof(d->pci_bus_id), "0000:%02x:00.0", seed);
        d->minor = 1;
        d->total_bytes = 2;
        d->used_bytes = 3;
        d->driver_own_bytes = 4;
        d->budget_bytes = 5;
        d->reading_ms = 6;
        d->changed_ms = 7;
        d->read_asked_ms = 8;
        d->error_code = 999;
}

static void fill_user(struct user *u, uint32_t seed)
{
        u->uid = 1000 + seed;
        u->n_leases = 1;
        u->n_waiting = 2;
        u->in_use = true;
        u->held_bytes = 3;
        u->usage_mib_s = 4;
        u->usage_at_ms = 5;
}

static void fill_habit(struct habit *h, uint32_t seed)
{
        h->uid = 1000 + seed;
        (void) snprintf(h->consumer, sizeof(h->consumer), "train-%u.py", seed);
        h->last_ms = 6;
        h->n_runs = PEAKS_MAX + seed;
        for (uint32_t i = 0; i < PEAKS_MAX; i++)
                h->peak_bytes[i] = UINT64_MAX - i;
        h->proven = seed % 2;
        h->proof_program = 501;
        h->proof_driver = 502;
        h->n_cooperated = 503;
        h->n_ignored = 504;
        for (unsigned way = 0; way < WAY_OUT_N; way++)
                h->costs[way] =
                        (struct way_cost){ .n = way, .out_ms = 505, .back_ms = 506, .spread_ms = 507, .bytes = 508 };
        for (uint32_t i = 0; i < FLOORS_MAX; i++)
                h->floor_bytes[i] = 509 + i;
        h->n_floors = 510;
}

static void fill_enforce(struct enforce *e, uint32_t seed)
{
        *e = (struct enforce){ .mode = (uint8_t) (seed % ENFORCE_MODE_N),
                               .doubt_told = (uint8_t) (seed % DOUBT_N),
                               .mode_by_uid = 701,
                               .mode_ms = 702,
                               .began_ms = 703,
                               .swept_ms = 704 + seed,
                               .hidden_ms = 705 };
}

static void fill_approval(struct approval *a, uint32_t seed)
{
        *a = (struct approval){ .id = 1 + seed % 70,
                                .uid = 1000 + seed,
                                .by_uid = 711,
                                .program = UINT64_MAX - seed,
                                .script = seed % 2 ? 712 : 0,
                                .command = seed % 2 ? 0 : 716,
                                .place = 713,
                                .since_ms = 714,
                                .until_ms = 715,
                                .runs = seed % 2 ? RUNS_SCRIPT : RUNS_COMMAND,
                                .lapse_told = seed % 2,
                                .comm = "python3" };
}

static void fill_audit(struct audit *a, uint32_t seed)
{
        *a = (struct audit){ .uid = 1000 + seed,
                             .device = seed % 3,
                             .bytes = 721,
                             .program = 722,
                             .script = 723,
                             .place = 724,
                             .over_ms = 725,
                             .audited_ms = 726,
                             .warned_ms = 727,
                             .noticed_ms = 728,
                             .term_ms = 729,
                             .kill_ms = 730,
                             .again_ms = 731,
                             .order_id = 732,
                             .gone_ms = 733,
                             .n_signals = (uint8_t) (seed % (ENFORCE_SIGNALS_MAX + 1)),
                             .told = AUDIT_TOLD_ALL,
                             .comm = "a) R 1 1" };
        some_identity(&a->identity, seed);
}

void books_world_fill(struct world *w, uint32_t seed)
{
        some_config(&w->config, seed);
        w->now_ms = 1000 + seed;
        w->next_lease_id = 60 + seed;
        w->next_entry_id = 500;
        w->next_action_id = 9000;
        w->ledger_charged_bytes = 12;
        w->next_plan_id = 310 + seed;
        some_host(&w->host);
        w->n_plans = 2;
        w->pause = PAUSE_SLEEP;
        w->pause_thaws = true;
        w->eyes_answering = true;
        w->eyes_silent_since_ms = 13;
        w->n_devices = 3;
        w->n_leases = 7;
        w->n_entries = 5;
        w->n_holders = 9;
        w->n_processes = 4;
        w->n_occupancies = 6;
        w->n_users = 3;
        w->n_habits = 2;
        w->n_approvals = 2;
        w->n_audits = 2;
        w->next_approval_id = 77;
        fill_enforce(&w->enforce, seed);
        for (uint32_t i = 0; i < w->n_devices; i++)
                fill_device(&w->devices[i], seed + i);
        for (uint32_t i = 0; i < w->n_leases; i += 2) {
                fill_lease(&w->leases[i], seed + i);
                w->lease_ids[i] = w->leases[i].id;
        }
        w->leases[1].generation = 12; /* somebody sat there; row 3 is one that nobody ever used */
        for (uint32_t i = 0; i < w->n_entries; i += 2)
                fill_entry(&w->entries[i], seed + i);
        w->entries[3].generation = UINT32_MAX;
        for (uint32_t i = 1; i < w->n_holders; i += 2)
                fill_holder(&w->holders[i], seed + i);
        w->holders[0].generation = 2;
        for (uint32_t i = 0; i < w->n_users; i++)
                fill_user(&w->users[i], seed + i);
        fill_plan(&w->plans[1], seed);
        for (uint32_t i = 0; i < w->n_habits; i++)
                fill_habit(&w->habits[i], seed + i);
        for (uint32_t i = 0; i < w->n_approvals; i++)
                fill_approval(&w->approvals[i], seed + i);
        for (uint32_t i = 0; i < w->n_audits; i++)
                fill_audit(&w->audits[i], seed + i);
        for (uint32_t i = 0; i < w->n_occupancies; i++)
                some_occupancy(&w->occupancies[i], seed + i);
        for (uint32_t i = 0; i < w->n_processes; i++)
                some_process(&w->processes[i], seed + i);
        world_index(w);
}

static void some_request(struct request *r, uint32_t seed)
{
        r->token = UINT64_MAX - seed;
        r->uid = 1000 + seed;
        r->is_admin = r->collected = r->kill_at_end = true;
        r->no_wait = r->managed = seed % 2;
        r->filler = r->no_stop = seed % 2;
        r->kill_left = r->exclusive = r->adopt = r->learned = seed % 2;
        r->quota = QUOTAS_MAX;
        r->idempotency = (struct idempotency){ .key = { 1, 2 }, .body = UINT64_MAX };
        r->priority = 2;
        r->bytes = UINT64_C(3) << 30;
        r->percent_milli = 100000;
        r->slot_ms = 7200000;
        r->wait_ms = 600000;
        r->start_ms = 600001;
        r->start_wall_ms = 28;
        r->daily = seed % 2;
        r->day_s = 29;
        r->follows_id = 30;
        (void) snprintf(r->device_uuid, sizeof(r->device_uuid), "GPU-%u", seed);
        some_ways(&r->ways, seed);
        some_binding(&r->binding, seed);
        (void) snprintf(r->name, sizeof(r->name), "n%u", seed);
        (void) snprintf(r->consumer, sizeof(r->consumer), "train.py");
}

static void some_reading(struct reading *r, uint32_t seed, struct occupancy *rows)
{
        (void) snprintf(r->uuid, sizeof(r->uuid), "GPU-%u", seed);
        r->taken_ms = 5;
        r->total_bytes = 6;
        r->used_bytes = 7;
        r->used_known = r->settled = true;
        r->per_process_known = seed % 2;
        r->n_rows = seed % 3 == 2 ? ROWS_MAX : seed % 3;
        for (uint32_t i = 0; i < r->n_rows; i++)
                some_occupancy(&rows[i], seed + i);
        r->rows = rows;
}

void books_input(enum input_kind kind, uint32_t seed, struct input *ret, struct occupancy *rows)
{
        memset(ret, 0, sizeof(*ret));
        memset(rows, 0, ROWS_MAX * sizeof(*rows));
        ret->kind = (uint8_t) kind;
        ret->now_ms = UINT64_C(1) << 40 | seed;
        switch (kind) {
        case INPUT_NONE:
        case INPUT_KIND_N:
        case INPUT_TICK:
                break;
        case INPUT_CONFIG:
                some_config(&ret->config, seed);
                break;
        case INPUT_DEVICE:
                (void) snprintf(ret->device.uuid, sizeof(ret->device.uuid), "GPU-%u", seed);
                memset(ret->device.name, 'N', sizeof(ret->device.name) - 1);
                (void) snprintf(ret->device.pci_bus_id, sizeof(ret->device.pci_bus_id), "0000:65:00.0");
                ret->device.minor = 255;
                ret->device.total_bytes = UINT64_C(24) << 30;
                ret->device.budget_bytes = 1;
                ret->device.error_code = 15;
                ret->device.health = DEVICE_PARENT;
                break;
        case INPUT_READING:
                some_reading(&ret->reading, seed, rows);
                break;
        case INPUT_PROCESS:
                some_process(&ret->process, seed);
                break;
        case INPUT_PROCESS_ENDED:
                some_identity(&ret->process_ended, seed);
                break;
        case INPUT_EYES:
                ret->eyes.answering = seed % 2;
                ret->eyes.silent_since_ms = 3;
                break;
        case INPUT_REQUEST:
                some_request(&ret->request, seed);
                break;
        case INPUT_ACTIVATE:
        case INPUT_RENEW:
        case INPUT_RELEASE:
        case INPUT_OWNER_ENDED:
                ret->call.token = 9;
                ret->call.lease_id = 17 + seed;
                ret->call.uid = 1000;
                ret->call.is_admin = true;
                ret->call.by_system = seed % 2;
                ret->call.end_reason = END_RELEASED_ADMIN;
                some_identity(&ret->call.root, seed);
                ret->call.cgroup_id = 8;
                break;
        case INPUT_RESTART:
                ret->restart.rebooted = true;
                ret->restart.degraded = seed % 2;
                break;
        case INPUT_CHANGE:
                ret->change = (struct change){ .token = 11,
                                               .lease_id = 18 + seed,
                                               .uid = 1000,
                                               .quota = seed % (QUOTAS_MAX + 1),
                                               .is_admin = seed % 2,
                                               .what = CHANGE_ALL,
                                               .priority = (uint8_t) (1 + seed % 5),
                                               .slot_ms = 12,
                                               .pin_ms = 13,
                                               .start_ms = 14 };
                break;
        case INPUT_OUTCOME:
                ret->outcome.order_id = 14;
                ret->outcome.lease_id = 15 + seed;
                some_identity(&ret->outcome.process, seed);
                ret->outcome.outcome = OUTCOME_FAILED;
                ret->outcome.why = (uint8_t) (seed % HAND_WHY_N);
                ret->outcome.host_bytes = 601;
                ret->outcome.program = 602;
                break;
        case INPUT_PARK:
                ret->park = (struct park_call){ .token = 603,
                                                .lease_id = 604 + seed,
                                                .uid = 1000,
                                                .is_admin = seed % 2,
                                                .what = (uint8_t) (seed % PARK_CALL_N),
                                                .for_ms = 605,
                                                .keep_alive_ms = 606 };
                break;
        case INPUT_HOST:
                some_host(&ret->host);
                break;
        case INPUT_MANAGER:
                ret->manager = (struct manager_outcome){ .order_id = seed % 2 ? 610 : 0,
                                                         .lease_id = 611 + seed,
                                                         .outcome = OUTCOME_FAILED,
                                                         .why = (uint8_t) (seed % HAND_WHY_N),
                                                         .cgroup_id = UINT64_MAX };
                some_identity(&ret->manager.root, seed);
                break;
        case INPUT_PAUSE:
                ret->pause = (struct pause){ .what = (uint8_t) (seed % PAUSE_WHAT_N), .thaws = seed % 2 };
                break;
        case INPUT_ENFORCE:
                ret->enforce = (struct enforce_call){ .token = 611,
                                                      .uid = 612 + seed,
                                                      .is_admin = seed % 2,
                                                      .what = (uint8_t) (seed % ENFORCE_CALL_N),
                                                      .mode = (uint8_t) (seed % ENFORCE_MODE_N),
                                                      .here = seed % 2,
                                                      .for_ms = 613,
                                                      .approval_id = 614 };
                some_identity(&ret->enforce.process, seed);
                break;
        case INPUT_RECORD:
                some_identity(&ret->record.process, seed);
                ret->record.uid = 1000;
                ret->record.member = MEMBER_STOPPED;
                ret->record.no_stop = seed % 2;
                ret->record.lease_id = 607;
                ret->record.bytes = 608;
                ret->record.host_bytes = 609;
                (void) snprintf(ret->record.uuid, sizeof(ret->record.uuid), "GPU-%u", seed);
                break;
        }
}

void books_action(uint32_t seed, struct action *ret)
{
        memset(ret, 0, sizeof(*ret));
        ret->kind = (uint8_t) (1 + seed % (ACTION_KIND_N - 1));
        ret->device = seed % 2 ? UINT32_MAX : 63;
        ret->id = 1 + seed;
        ret->token = 2;
        ret->lease_id = INT64_MAX;
        ret->uid = UINT32_MAX;
        ret->priority = 5;
        ret->bytes = UINT64_MAX;
        some_identity(&ret->process, seed);
        ret->limit_bytes = 701;
        ret->wait_ms = 702;
        ret->no_stop = seed % 2;

        struct reason *why = &ret->why;
        why->rule = (uint16_t) (seed % RULE_N);
        why->end = END_WORKERS_GONE;
        why->place = 1;
        why->n_waiting = 2;
        why->limit = 3;
        why->need_bytes = 4;
        why->free_bytes = 5;
        why->lent_bytes = 6;
        why->ceiling_bytes = 7;
        why->total_bytes = 8;
        why->used_bytes = 9;
        why->reserved_bytes = 10;
        why->head_lease_id = 11;
        why->start_ms = 12;
        why->reading_age_ms = 13;
        why->earliest_ms = 15;
        why->n_blockers = 14;
        for (uint32_t i = 0; i < seed % (BLOCKERS_MAX + 1); i++) {
                why->blockers[i].kind = (uint8_t) (i % BLOCKER_KIND_N);
                why->blockers[i].no = (uint8_t) (i % RECLAIM_NO_N);
                why->blockers[i].pid = i;
                why->blockers[i].lease_id = 1;
                why->blockers[i].bytes = 2;
                why->blockers[i].end_ms = 3;
        }
}

/* ---- the small core ---- */

static void say(struct world *world, struct actions *out, enum action_kind kind, uint64_t lease_id)
{
        struct action *a = &out->items[out->n++];

        memset(a, 0, sizeof(*a));
        a->kind = (uint8_t) kind;
        a->id = world->next_action_id++;
        a->lease_id = lease_id;
        a->device = kind == ACTION_READ ? 0 : UINT32_MAX;
        a->uid = 1000 + (uint32_t) (a->id % 3);
        a->why.rule = RULE_FITS;
        a->why.free_bytes = a->id * 7;
}

void books_step(void *ctx, struct world *world, const struct input *input, struct actions *out)
{
        const uint64_t *differs_at = ctx;

        out->n = 0;
        out->more = false;
        if (input->now_ms > world->now_ms)
                world->now_ms = input->now_ms;
        if (input->kind == INPUT_REQUEST) {
                struct user *user = &world->users[world->n_users];
                user->uid = input->request.uid;
                user->in_use = true;
                user->held_bytes = input->request.bytes;
                if (world->n_users < USERS_MAX - 1)
                        world->n_users++;
                say(world, out, ACTION_READ, 0);
                say(world, out, ACTION_GRANTED, world->next_lease_id++);
        }
        if (input->kind == INPUT_RENEW) {
                if (world->n_users > 0)
                        world->users[input->call.lease_id % world->n_users].usage_mib_s += input->now_ms;
                say(world, out, ACTION_RENEWED, input->call.lease_id);
        }
        for (uint32_t i = 0; differs_at && i < out->n; i++)
                if (out->items[i].id == *differs_at)
                        out->items[i].why.free_bytes++;
}

void books_story(uint32_t i, struct input *ret)
{
        memset(ret, 0, sizeof(*ret));
        ret->now_ms = 1000 + 10 * (uint64_t) i;
        if (i % 3 == 0) {
                ret->kind = INPUT_REQUEST;
                ret->request.uid = 1000 + i % 5;
                ret->request.priority = 3;
                ret->request.bytes = (uint64_t) (i + 1) << 20;
                (void) snprintf(ret->request.name, sizeof(ret->request.name), "run %u", i);
        } else {
                ret->kind = INPUT_RENEW;
                ret->call.lease_id = 1 + i / 3;
                ret->call.uid = 1000 + i % 5;
        }
}
