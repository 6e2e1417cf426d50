/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKS_MAX = 8 }; /* orders to look that may follow from one another at one moment */

static struct identity identity_of(uint32_t pid)
{
        return (struct identity){ .pid = pid, .start_ticks = 7000 + (uint64_t) pid };
}

void scene_begin_with(struct scene *s, const struct config *config)
{
        memset(s, 0, sizeof(*s));
        s->config = *config;
        s->now_ms = SCENE_START_MS;
        s->next_token = 1;
        s->next_pid = 100000;
        s->world = calloc(1, sizeof(*s->world));
        s->out = calloc(1, sizeof(*s->out));
        s->ended = calloc(SCENE_LEASES_MAX, 1);
        assert_true(s->world && s->out && s->ended);
        world_init(s->world, config);
        struct input eyes = { .kind = INPUT_EYES, .eyes = { .answering = true } };
        scene_step(s, &eyes);
}

void scene_begin(struct scene *s)
{
        struct config config;

        memset(&config, 0, sizeof(config));
        config_defaults(&config);
        scene_begin_with(s, &config);
}

void scene_end(struct scene *s)
{
        free(s->world);
        free(s->out);
        free(s->ended);
        free(s->log);
        memset(s, 0, sizeof(*s));
}

static void remember(struct scene *s, const struct action *action)
{
        if (s->n_log == s->n_log_max) {
                s->n_log_max = s->n_log_max ? 2 * s->n_log_max : 256;
                s->log = realloc(s->log, s->n_log_max * sizeof(*s->log));
                assert_non_null(s->log);
        }
        s->log[s->n_log++] = *action;
}

static void check_action(struct scene *s, const struct action *action, uint64_t expected_id)
{
        if (action->kind == ACTION_NONE || action->kind >= ACTION_KIND_N)
                fail_msg("at %" PRIu64 " s: an action of no kind (%u)", scene_s(s), action->kind);
        if (action->id != expected_id)
                fail_msg("at %" PRIu64 " s: action %" PRIu64 " follows %" PRIu64, scene_s(s), action->id,
                         expected_id - 1);
        if (action->kind == ACTION_ENDED && action->lease_id < SCENE_LEASES_MAX && s->ended[action->lease_id]++ != 0)
                fail_msg("at %" PRIu64 " s: L%" PRIu64 " ends a second time", scene_s(s), action->lease_id);
}

/* One input without what follows from it. */
static void step_alone(struct scene *s, struct input *input)
{
        uint64_t expected_id = s->n_log ? s->log[s->n_log - 1].id + 1 : 1;

        input->now_ms = s->now_ms;
        arbiter_step(s->world, input, s->out);
        if (s->recorded)
                s->recorded(s, input);
        for (;;) {
                for (uint32_t i = 0; i < s->out->n; i++) {
                        check_action(s, &s->out->items[i], expected_id++);
                        remember(s, &s->out->items[i]);
                }
                if (!s->out->more)
                        break;
                struct input tick = { .kind = INPUT_TICK, .now_ms = s->now_ms };
                arbiter_step(s->world, &tick, s->out);
                if (s->recorded)
                        s->recorded(s, &tick);
        }
        if (s->sparse_checks && ++s->n_steps % 64 != 0)
                return;
        const char *wrong = world_check(s->world);
        if (wrong)
                fail_msg("at %" PRIu64 " s after %s: %s", scene_s(s), input_kind_name((enum input_kind) input->kind),
                         wrong);
}

static void read_device(struct scene *s, uint32_t device)
{
        const struct scene_card *card = &s->cards[device];
        struct occupancy rows[SCENE_ROWS_MAX];
        uint32_t n_rows = 0;
        uint64_t used = card->hidden_bytes;

        memset(rows, 0, sizeof(rows));
        for (uint32_t i = 0; i < s->n_rows; i++) {
                const struct scene_row *row = &s->rows[i];
                if (row->device != device)
                        continue;
                used += row->bytes;
                rows[n_rows].identity = row->identity;
                rows[n_rows].device = device;
                rows[n_rows].flags = card->rows_unknown ? row->flags & ~(uint32_t) ROW_USED_KNOWN : row->flags;
                rows[n_rows].used_bytes = rows[n_rows].flags & ROW_USED_KNOWN ? row->bytes : 0;
                n_rows++;
        }

        struct input input = { .kind = INPUT_READING };
        memcpy(input.reading.uuid, card->uuid, sizeof(card->uuid));
        input.reading.taken_ms = s->now_ms - card->taken_ago_ms;
        input.reading.total_bytes = card->used_unknown ? 0 : card->total_bytes;
        input.reading.used_known = !card->used_unknown;
        input.reading.used_bytes = card->used_unknown ? 0 : card->lies ? card->says_used : used;
        input.reading.per_process_known = !card->rows_unknown;
        input.reading.settled = !card->unsettled;
        input.reading.n_rows = n_rows;
        input.reading.rows = rows;
        step_alone(s, &input);
}

static void show_hands(struct scene *s)
{
        if (!s->hands || s->hands_work)
                return;
        s->hands_work = true;
        while (s->n_done < s->n_log) {
                struct action a = s->log[s->n_done++];
                if (a.kind == ACTION_HAND)
                        s->hands(s, &a);
        }
        s->hands_work = false;
}

/* Answers the orders to look that are in the log from @since on, and those that follow from the answers. */
static void answer_looks(struct scene *s, size_t since)
{
        show_hands(s);
        for (int round = 0; !s->eyes_closed; round++) {
                bool asked[SCENE_DEVICES_MAX] = { false };
                bool any = false;
                for (size_t i = since; i < s->n_log; i++)
                        if (s->log[i].kind != ACTION_READ || s->log[i].device >= s->n_cards)
                                continue;
                        else if (s->log[i].wait_ms != 0 && round > 1)
                                s->soon |= UINT32_C(1) << s->log[i].device; /* time has to pass first */
                        else
                                asked[s->log[i].device] = any = true;
                if (!any)
                        return;
                if (round == LOOKS_MAX)
                        fail_msg("at %" PRIu64 " s: it looks again and again", scene_s(s));
                since = s->n_log;
                for (uint32_t d = 0; d < s->n_cards; d++)
                        if (asked[d])
                                read_device(s, d);
                show_hands(s);
        }
}

/* The last action of @since … that has @token. */
static void take_answer(struct scene *s, size_t since, uint64_t token)
{
        memset(&s->answer, 0, sizeof(s->answer));
        for (size_t i = since; i < s->n_log; i++)
                if (s->log[i].token == token)
                        s->answer = s->log[i];
}

void scene_step(struct scene *s, struct input *input)
{
        size_t since = s->n_log;

        step_alone(s, input);
        answer_looks(s, since);
}

/* ---- devices and time ---- */

uint32_t scene_device(struct scene *s, uint64_t total_bytes)
{
        uint32_t device = s->n_cards++;
        struct scene_card *card = &s->cards[device];

        assert_true(device < SCENE_DEVICES_MAX);
        (void) snprintf(card->uuid, sizeof(card->uuid), "GPU-%08u-scene", device);
        card->total_bytes = total_bytes;
        scene_device_health(s, device, DEVICE_OK);
        scene_look_at(s, device);
        return device;
}

void scene_device_health(struct scene *s, uint32_t device, enum device_health health)
{
        struct input input = { .kind = INPUT_DEVICE };

        memcpy(input.device.uuid, s->cards[device].uuid, sizeof(input.device.uuid));
        (void) snprintf(input.device.name, sizeof(input.device.name), "Scene 24G");
        (void) snprintf(input.device.pci_bus_id, sizeof(input.device.pci_bus_id), "0000:%02x:00.0", device + 1);
        input.device.minor = device;
        input.device.total_bytes = health == DEVICE_NO_MEMORY_READING ? 0 : s->cards[device].total_bytes;
        input.device.health = (uint8_t) health;
        scene_step(s, &input);
}

const char *scene_uuid(const struct scene *s, uint32_t device)
{
        return s->cards[device].uuid;
}

void scene_look_at(struct scene *s, uint32_t device)
{
        size_t since = s->n_log;

        read_device(s, device);
        answer_looks(s, since);
}

void scene_look(struct scene *s)
{
        for (uint32_t d = 0; d < s->n_cards; d++)
                scene_look_at(s, d);
}

void scene_reading(struct scene *s, uint32_t device, uint64_t taken_ms, uint64_t used_bytes, bool settled)
{
        struct input input = { .kind = INPUT_READING };

        memcpy(input.reading.uuid, s->cards[device].uuid, sizeof(input.reading.uuid));
        input.reading.taken_ms = taken_ms;
        input.reading.total_bytes = s->cards[device].total_bytes;
        input.reading.used_bytes = used_bytes;
        input.reading.used_known = true;
        input.reading.per_process_known = true;
        input.reading.settled = settled;
        scene_step(s, &input);
}

void scene_eyes(struct scene *s, bool answering)
{
        struct input input = { .kind = INPUT_EYES, .eyes = { .answering = answering, .silent_since_ms = s->now_ms } };

        s->eyes_closed = !answering;
        scene_step(s, &input);
        for (uint32_t i = 0; answering && i < s->n_rows; i++) { /* new eyes name everybody they see */
                const struct process *p = world_process_find(s->world, s->rows[i].identity);
                if (!p)
                        continue;
                struct input named = { .kind = INPUT_PROCESS, .process = *p };
                scene_step(s, &named);
        }
}

void scene_config(struct scene *s)
{
        struct input input = { .kind = INPUT_CONFIG, .config = s->config };

        scene_step(s, &input);
}

void scene_restart(struct scene *s, struct restart_facts facts)
{
        struct input input = { .kind = INPUT_RESTART, .restart = facts };

        scene_step(s, &input);
}

uint64_t scene_s(const struct scene *s)
{
        return (s->now_ms - SCENE_START_MS) / 1000;
}

void scene_step_for(struct scene *s, struct input *input, uint64_t token)
{
        size_t since = s->n_log;

        step_alone(s, input);
        take_answer(s, since, token);
        answer_looks(s, since);
}

void scene_tick(struct scene *s)
{
        for (uint32_t d = 0; d < s->n_cards && !s->eyes_closed; d++)
                if (s->soon & UINT32_C(1) << d) {
                        s->soon &= ~(UINT32_C(1) << d);
                        scene_look_at(s, d);
                }
        struct input input = { .kind = INPUT_TICK };

        scene_step(s, &input);
}

void scene_tick_to_s(struct scene *s, uint64_t second)
{
        uint64_t until_ms = SCENE_START_MS + SECONDS(second);

        assert_true(until_ms >= s->now_ms);
        while (s->now_ms < until_ms) {
                s->now_ms = s->now_ms + 1000 < until_ms ? s->now_ms + 1000 : until_ms;
                scene_tick(s);
        }
}

void scene_wait_to_s(struct scene *s, uint64_t second)
{
        if (second > scene_s(s) + 1)
                scene_tick_to_s(s, second - 1);
        s->now_ms = SCENE_START_MS + SECONDS(second);
}

/* ---- requests and calls ---- */

static void fill_request(struct scene *s, struct request *r, const struct ask *ask)
{
        r->token = s->next_token++;
        r->uid = ask->uid ? ask->uid : 1000;
        r->is_admin = ask->admin;
        r->no_wait = ask->no_wait;
        r->collected = !ask->uncollected;
        r->managed = ask->managed;
        r->kill_at_end = ask->kill_at_end;
        r->kill_left = ask->kill_left;
        r->exclusive = ask->exclusive;
        r->filler = ask->filler;
        r->no_stop = ask->no_stop;
        r->learned = ask->learned;
        r->quota = ask->quota;
        r->n_more = ask->more;
        r->priority = ask->priority ? ask->priority : PRIORITY_NORMAL;
        r->bytes = ask->bytes;
        r->percent_milli = ask->learned ? 100000 : ask->percent_milli;
        r->slot_ms = SECONDS(ask->slot_s);
        r->wait_ms = SECONDS(ask->wait_s);
        r->start_ms = ask->start_s ? SCENE_START_MS + SECONDS(ask->start_s) : 0;
        r->daily = ask->daily;
        r->follows_id = ask->follows;
        r->ways.named = ask->named;
        r->ways.proven = ask->proven;
        r->binding.kind = ask->ttl_s ? BINDING_HEARTBEAT : ask->connection ? BINDING_CONNECTION : BINDING_PROCESS;
        r->binding.owner = identity_of(ask->pid ? ask->pid : s->next_pid++);
        r->binding.cgroup_id = ask->cgroup_id;
        r->binding.ttl_ms = SECONDS(ask->ttl_s);
        if (ask->manager != MANAGER_NONE) {
                r->binding.manager.kind = ask->manager;
                (void) snprintf(r->binding.manager.name, sizeof(r->binding.manager.name), "trainer.service");
        }
        if (ask->uuid)
                (void) snprintf(r->device_uuid, sizeof(r->device_uuid), "%s", ask->uuid);
        if (ask->name)
                (void) snprintf(r->name, sizeof(r->name), "%s", ask->name);
        if (ask->consumer)
                (void) snprintf(r->consumer, sizeof(r->consumer), "%s", ask->consumer);
}

static uint64_t ask_core(struct scene *s, struct input *input)
{
        size_t since = s->n_log;
        unsigned n_answers = 0;

        step_alone(s, input);
        for (size_t i = since; i < s->n_log; i++) {
                const struct action *a = &s->log[i];
                if (a->token != input->request.token ||
                    (a->kind != ACTION_GRANTED && a->kind != ACTION_QUEUED && a->kind != ACTION_REFUSED))
                        continue;
                s->answer = *a;
                n_answers++;
        }
        if (n_answers != 1)
                fail_msg("at %" PRIu64 " s: a request got %u answers", scene_s(s), n_answers);
        uint64_t id = s->answer.kind == ACTION_REFUSED ? 0 : s->answer.lease_id;
        answer_looks(s, since);
        return id;
}

uint64_t scene_request(struct scene *s, struct ask ask)
{
        struct input input = { .kind = INPUT_REQUEST };

        if (!s->eyes_closed)
                scene_look(s);
        fill_request(s, &input.request, &ask);
        return ask_core(s, &input);
}

uint64_t scene_adopt(struct scene *s, struct ask ask)
{
        struct input input = { .kind = INPUT_REQUEST };

        assert_true(ask.pid != 0);
        if (!s->eyes_closed)
                scene_look(s);
        fill_request(s, &input.request, &ask);
        input.request.adopt = true;
        input.request.binding.root = input.request.binding.owner;
        return ask_core(s, &input);
}

static void call(struct scene *s, enum input_kind kind, struct lease_call *c)
{
        struct input input = { .kind = (uint8_t) kind };
        size_t since = s->n_log;

        c->token = s->next_token++;
        input.call = *c;
        step_alone(s, &input);
        take_answer(s, since, c->token);
        answer_looks(s, since);
}

static uint32_t owner_uid(struct scene *s, uint64_t lease_id)
{
        const struct lease *lease = scene_lease(s, lease_id);
        return lease ? lease->uid : 1000;
}

void scene_activate(struct scene *s, uint64_t lease_id, uint32_t root_pid, uint64_t cgroup_id)
{
        struct lease_call c = { .lease_id = lease_id, .uid = owner_uid(s, lease_id), .cgroup_id = cgroup_id };

        if (root_pid)
                c.root = identity_of(root_pid);
        call(s, INPUT_ACTIVATE, &c);
}

void scene_renew(struct scene *s, uint64_t lease_id)
{
        struct lease_call c = { .lease_id = lease_id, .uid = owner_uid(s, lease_id) };

        call(s, INPUT_RENEW, &c);
}

void scene_release_by(struct scene *s, uint64_t lease_id, uint32_t uid, bool admin)
{
        struct lease_call c = { .lease_id = lease_id, .uid = uid, .is_admin = admin };

        c.end_reason = admin ? END_RELEASED_ADMIN : END_RELEASED;
        call(s, INPUT_RELEASE, &c);
}

void scene_release(struct scene *s, uint64_t lease_id)
{
        scene_release_by(s, lease_id, owner_uid(s, lease_id), false);
}

void scene_owner_ended(struct scene *s, uint64_t lease_id)
{
        struct lease_call c = { .lease_id = lease_id, .by_system = true, .end_reason = END_OWNER_EXITED };

        call(s, INPUT_OWNER_ENDED, &c);
}

void scene_change(struct scene *s, uint64_t lease_id, struct change change)
{
        struct input input = { .kind = INPUT_CHANGE, .change = change };
        size_t since = s->n_log;

        input.change.token = s->next_token++;
        input.change.lease_id = lease_id;
        if (input.change.uid == 0)
                input.change.uid = owner_uid(s, lease_id);
        step_alone(s, &input);
        take_answer(s, since, input.change.token);
        if (s->answer.kind != ACTION_CHANGED && s->answer.kind != ACTION_REFUSED)
                fail_msg("at %" PRIu64 " s: a change got no answer", scene_s(s));
        answer_looks(s, since);
}

void scene_outcome(struct scene *s, const struct action *order, enum outcome outcome, enum hand_why why)
{
        struct input input = { .kind = INPUT_OUTCOME };

        assert_non_null(order);
        assert_int_equal(order->kind, ACTION_HAND);
        input.outcome = (struct hand_outcome){ .order_id = order->id,
                                               .lease_id = order->lease_id,
                                               .process = order->process,
                                               .outcome = (uint8_t) outcome,
                                               .why = (uint8_t) why };
        scene_step(s, &input);
}

/* ---- processes ---- */

uint32_t scene_owner(struct scene *s, uint64_t lease_id)
{
        const struct lease *lease = scene_lease(s, lease_id);

        assert_non_null(lease);
        return lease->binding.owner.pid;
}

uint32_t scene_process(struct scene *s, uint32_t pid, uint32_t parent_pid, uint64_t cgroup_id)
{
        return scene_process_of(s, 1000, pid, parent_pid, cgroup_id);
}

uint32_t scene_process_of(struct scene *s, uint32_t uid, uint32_t pid, uint32_t parent_pid, uint64_t cgroup_id)
{
        struct input input = { .kind = INPUT_PROCESS };

        if (pid == 0)
                pid = s->next_pid++;
        input.process.identity = identity_of(pid);
        input.process.uid = uid;
        input.process.ppid = parent_pid ? parent_pid : 1;
        input.process.cgroup_id = cgroup_id;
        input.process.n_ancestors = 1;
        input.process.ancestors[0] = parent_pid ? identity_of(parent_pid) : (struct identity){ 1, 1 };
        (void) snprintf(input.process.comm, sizeof(input.process.comm), "p%u", pid);
        scene_step(s, &input);
        return pid;
}

static struct scene_row *row_find(struct scene *s, uint32_t pid, uint32_t device)
{
        for (uint32_t i = 0; i < s->n_rows; i++)
                if (s->rows[i].identity.pid == pid && s->rows[i].device == device)
                        return &s->rows[i];
        return NULL;
}

struct scene_row *scene_row(struct scene *s, uint32_t pid, uint32_t device)
{
        return row_find(s, pid, device);
}

static void rows_drop(struct scene *s, uint32_t pid)
{
        uint32_t kept = 0;

        for (uint32_t i = 0; i < s->n_rows; i++)
                if (s->rows[i].identity.pid != pid)
                        s->rows[kept++] = s->rows[i];
        s->n_rows = kept;
}

static void row_set(struct scene *s, uint32_t pid, uint32_t device, uint64_t bytes, uint32_t flags)
{
        struct scene_row *row = row_find(s, pid, device);

        if (!row) {
                assert_true(s->n_rows < SCENE_ROWS_MAX);
                row = &s->rows[s->n_rows++];
        }
        *row = (struct scene_row){ identity_of(pid), bytes, device, flags };
}

void scene_process_uses(struct scene *s, uint32_t pid, uint32_t device, uint64_t bytes, uint32_t flags)
{
        row_set(s, pid, device, bytes, flags);
        scene_look_at(s, device);
}

void scene_uses(struct scene *s, uint64_t lease_id, uint64_t bytes)
{
        const struct lease *lease = scene_lease(s, lease_id);
        assert_non_null(lease);
        uint32_t pid = lease->binding.owner.pid, device = lease->device;

        if (!world_process_find(s->world, identity_of(pid)))
                (void) scene_process(s, pid, 0, 0);
        scene_process_uses(s, pid, device, bytes, ROW_USED_KNOWN | ROW_COMPUTE);
}

uint32_t scene_stranger(struct scene *s, uint32_t device, uint64_t bytes)
{
        uint32_t pid = scene_process(s, 0, 0, 0);

        scene_process_uses(s, pid, device, bytes, ROW_USED_KNOWN | ROW_COMPUTE);
        return pid;
}

uint32_t scene_graphics(struct scene *s, uint32_t device, uint64_t bytes)
{
        uint32_t pid = scene_process(s, 0, 0, 0);

        scene_process_uses(s, pid, device, bytes, ROW_USED_KNOWN | ROW_GRAPHICS);
        return pid;
}

void scene_process_ends(struct scene *s, uint32_t pid)
{
        struct input input = { .kind = INPUT_PROCESS_ENDED };

        rows_drop(s, pid);
        input.process_ended = identity_of(pid);
        scene_step(s, &input);
        scene_look(s);
}

void scene_process_vanishes(struct scene *s, uint32_t pid)
{
        rows_drop(s, pid);
        scene_look(s);
}

/* ---- what no input can make yet ---- */

void scene_ledger(struct scene *s, uint64_t charged_bytes)
{
        s->world->ledger_charged_bytes = charged_bytes;
}

void scene_usage(struct scene *s, uint32_t uid, uint64_t mib_s)
{
        uint32_t index;
        struct user *user = world_user(s->world, uid, &index);

        assert_non_null(user);
        user->usage_mib_s = mib_s;
        user->usage_at_ms = s->now_ms;
}

uint64_t scene_parked(struct scene *s, uint32_t device, uint64_t bytes, uint64_t back_bytes)
{
        struct world *w = s->world;
        uint32_t user_index;
        struct user *user = world_user(w, 1000, &user_index);
        struct lease *lease = world_lease_new(w);
        struct holder *holder = world_holder_new(w, HOLDER_LEASE, device);
        struct entry *entry = world_entry_new(w, ENTRY_THAW);

        assert_true(user && lease && holder && entry);
        user->n_leases++;
        user->n_waiting++;

        lease->state = LEASE_PARKED;
        lease->priority = lease->kept_rank = PRIORITY_NORMAL;
        lease->uid = 1000;
        lease->user = user_index;
        lease->bytes = bytes;
        lease->device = device;
        lease->devices = UINT64_C(1) << device;
        lease->arrived_ms = lease->granted_ms = lease->active_ms = s->now_ms;
        lease->binding.owner = identity_of(s->next_pid++);
        lease->holder = world_holder_ref(w, holder);
        lease->entry = world_entry_ref(w, entry);
        holder->lease = world_lease_ref(w, lease);

        entry->priority = PRIORITY_NORMAL;
        entry->lease = world_lease_ref(w, lease);
        entry->user = user_index;
        entry->demand_bytes = back_bytes;
        entry->devices = lease->devices;
        entry->arrived_ms = s->now_ms;
        lease->park = (struct park){ .step = PARK_OUT,
                                     .way = WAY_OUT_CHECKPOINT,
                                     .cause = PARK_FOR_PLAN,
                                     .used_bytes = bytes,
                                     .charged_bytes = bytes,
                                     .started_ms = s->now_ms,
                                     .parked_ms = s->now_ms };
        w->ledger_charged_bytes += bytes;
        world_device_changed(w, device);
        return lease->id;
}

struct holder *scene_claim(struct scene *s, uint32_t device, enum claim_kind kind, uint64_t bytes)
{
        struct holder *holder = world_holder_new(s->world, HOLDER_CLAIM, device);

        assert_non_null(holder);
        holder->claim_kind = (uint8_t) kind;
        holder->reserved_bytes = bytes;
        world_device_changed(s->world, device);
        return holder;
}

struct holder *scene_tenant(struct scene *s, uint32_t device, uint64_t bytes, const struct ways_out *ways)
{
        struct holder *holder = world_holder_new(s->world, HOLDER_TENANT, device);

        assert_non_null(holder);
        holder->used_bytes = bytes;
        holder->used_known = true;
        holder->n_processes = 1;
        if (ways)
                holder->ways = *ways;
        s->world->devices[device].used_bytes += bytes;
        world_device_changed(s->world, device);
        s->eyes_closed = true;
        return holder;
}

void scene_tenant_leaves(struct scene *s, struct holder *tenant)
{
        world_holder_drop(s->world, tenant);
        s->eyes_closed = false;
        scene_look(s);
}

void scene_pin(struct scene *s, uint64_t lease_id, uint64_t end_s)
{
        struct lease *lease = scene_lease(s, lease_id);
        assert_non_null(lease);
        struct holder *holder = world_holder_get(s->world, lease->holder);

        assert_non_null(holder);
        holder->pinned = true;
        holder->pin_end_ms = end_s ? SCENE_START_MS + SECONDS(end_s) : 0;
        world_device_changed(s->world, holder->device);
}

void scene_hold(struct scene *s, uint64_t lease_id)
{
        struct entry *entry = scene_entry(s, lease_id);

        assert_non_null(entry);
        entry->held_since_ms = s->now_ms;
}

void scene_unhold(struct scene *s, uint64_t lease_id)
{
        struct entry *entry = scene_entry(s, lease_id);

        assert_non_null(entry);
        entry->held_ms += s->now_ms - entry->held_since_ms;
        entry->held_since_ms = 0;
}

/* ---- looking ---- */

struct lease *scene_lease(struct scene *s, uint64_t lease_id)
{
        return world_lease_by_id(s->world, lease_id);
}

struct entry *scene_entry(struct scene *s, uint64_t lease_id)
{
        struct lease *lease = scene_lease(s, lease_id);
        return lease ? world_entry_get(s->world, lease->entry) : NULL;
}

const char *scene_state(struct scene *s, uint64_t lease_id)
{
        const struct lease *lease = scene_lease(s, lease_id);
        return lease ? lease_state_name((enum lease_state) lease->state) : "gone";
}

const struct holder *scene_head_claim(struct scene *s, uint32_t device)
{
        for (uint32_t i = 0; i < s->world->n_holders; i++) {
                const struct holder *h = &s->world->holders[i];
                if (h->kind == HOLDER_CLAIM && h->claim_kind == CLAIM_HEAD && h->device == device)
                        return h;
        }
        return NULL;
}

uint64_t scene_free(struct scene *s, uint32_t device)
{
        return device_free_bytes(s->world, device);
}

uint64_t scene_reserved(struct scene *s, uint32_t device)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < s->world->n_holders; i++)
                if (s->world->holders[i].kind != HOLDER_NONE && s->world->holders[i].device == device)
                        sum += s->world->holders[i].reserved_bytes;
        return sum;
}

const struct action *scene_last(const struct scene *s, uint64_t lease_id, enum action_kind kind)
{
        for (size_t i = s->n_log; i-- > 0;)
                if ((lease_id == 0 || s->log[i].lease_id == lease_id) && s->log[i].kind == kind)
                        return &s->log[i];
        return NULL;
}

const struct action *scene_last_rule(const struct scene *s, uint64_t lease_id, enum rule rule)
{
        for (size_t i = s->n_log; i-- > 0;)
                if ((lease_id == 0 || s->log[i].lease_id == lease_id) && s->log[i].why.rule == rule)
                        return &s->log[i];
        return NULL;
}

size_t scene_count(const struct scene *s, size_t since, uint64_t lease_id, enum action_kind kind)
{
        size_t n = 0;

        for (size_t i = since; i < s->n_log; i++)
                n += (lease_id == 0 || s->log[i].lease_id == lease_id) && s->log[i].kind == kind;
        return n;
}

size_t scene_count_rule(const struct scene *s, size_t since, uint64_t lease_id, enum rule rule)
{
        size_t n = 0;

        for (size_t i = since; i < s->n_log; i++)
                n += (lease_id == 0 || s->log[i].lease_id == lease_id) && s->log[i].why.rule == rule;
        return n;
}

#define rows_same(a, b, table) (memcmp((a)->table, (b)->table, (a)->n_##table * sizeof((a)->table[0])) == 0)

bool scene_world_same(const struct world *a, const struct world *b)
{
        /* The head first: it holds the numbers of rows. */
        return memcmp(a, b, offsetof(struct world, devices)) == 0 && rows_same(a, b, devices) &&
               memcmp(a->lease_ids, b->lease_ids, a->n_leases * sizeof(a->lease_ids[0])) == 0 &&
               rows_same(a, b, leases) && rows_same(a, b, entries) && rows_same(a, b, holders) &&
               rows_same(a, b, users) && rows_same(a, b, occupancies) && rows_same(a, b, processes) &&
               rows_same(a, b, habits) && rows_same(a, b, approvals) && rows_same(a, b, audits);
}

#define rows_copy(to, from, table) memcpy((to)->table, (from)->table, (from)->n_##table * sizeof((to)->table[0]))

void scene_world_copy(struct world *to, const struct world *from)
{
        memcpy(to, from, offsetof(struct world, devices));
        rows_copy(to, from, devices);
        memcpy(to->lease_ids, from->lease_ids, from->n_leases * sizeof(to->lease_ids[0]));
        rows_copy(to, from, leases);
        rows_copy(to, from, entries);
        rows_copy(to, from, holders);
        rows_copy(to, from, users);
        rows_copy(to, from, occupancies);
        rows_copy(to, from, processes);
        rows_copy(to, from, habits);
        rows_copy(to, from, approvals);
        rows_copy(to, from, audits);
}

bool scene_books_same(struct world *a, struct world *b)
{
        uint64_t now_ms = a->now_ms, next_action_id = a->next_action_id;

        a->now_ms = b->now_ms;
        a->next_action_id = b->next_action_id;
        bool same = scene_world_same(a, b);
        a->now_ms = now_ms;
        a->next_action_id = next_action_id;
        return same;
}
