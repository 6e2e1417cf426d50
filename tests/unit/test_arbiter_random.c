/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arbiter in a world of numbers: random requests, readings (true, late, unsettled, partial, lying), releases, deaths,
 * lost devices, silent eyes, ticks; one to three devices. After every step what must never happen (design 5) is looked for,
 * against books this test keeps by itself, from what it said and what was answered. At the end everything is given back,
 * and whoever waited must have had his turn.
 *
 *      test_arbiter_random [SEEDS [FIRST]]     default 200 from 1; a failure names its seed and the time in it
 */
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "scene.h"

enum { DEVICES = 3, LEASES = 4096, PROCS = 64, ROWS = 96, STEPS = 600, PIDS_FROM = 5000, ORDERS = 256 };
#define START_MS HOURS(500)

enum lease_life { LIFE_NONE, LIFE_WAITS, LIFE_GRANTED, LIFE_ACTIVE, LIFE_DRAINS, LIFE_ENDED };

struct my_lease {
        enum lease_life life;
        uint32_t device;
        uint64_t bytes;
        uint32_t uid;
        struct identity owner;
        bool owner_known; /* its process was shown to the core */
        bool managed;
        bool heartbeat;
        bool exclusive, adopted, kill_at_end, kill_left;
        struct identity root;
        uint64_t cgroup;
        uint64_t slot_ms, slot_end_ms;
        bool ending; /* something of it was ordered */
};

struct my_process {
        bool alive;
        struct identity identity, parent;
        uint64_t lease_id; /* 0: a stranger */
        uint32_t device;
        uint64_t bytes;
        uint64_t cgroup;
        uint32_t uid;
        bool no_figure, graphics;
        uint64_t asked_by;       /* whose orders the next three are about */
        uint64_t term_ms;        /* of the last SIGTERM, 0 = none that was carried out */
        uint32_t n_term, n_kill; /* orders that were not sent back */
};

/* An order on its way to the hands, or its outcome on its way back. */
struct my_order {
        bool waits;
        struct action order;
};

struct my_row {
        struct identity identity;
        uint64_t lease_id;
        uint64_t bytes;
        bool known, graphics;
};

/* What was last said about a device. */
struct my_device {
        char uuid[UUID_TEXT_MAX];
        uint64_t total, hidden, driver;
        bool healthy;
        bool told, used_known, per_process, settled;
        bool fresh; /* a reading came after the last change that was told */
        uint64_t taken_ms, changed_ms, used;
        enum input_kind changed_by;
        struct my_row rows[ROWS];
        uint32_t n_rows;
};

struct sim {
        uint64_t seed, random;
        uint64_t now_ms;
        uint64_t n_steps;
        enum input_kind input; /* of this step */
        uint64_t hash;         /* of all actions, byte by byte */
        uint64_t next_token, next_pid, next_action_id;
        uint64_t last_lease_id;
        bool eyes;
        bool quiet; /* nothing but the truth, and everybody leaves */
        uint64_t unit;
        struct config config;
        uint32_t n_devices;
        struct my_device devices[DEVICES];
        struct my_process procs[PROCS];
        struct my_lease leases[LEASES];
        bool asked[DEVICES]; /* a look is owed */
        struct request sent; /* under way */
        struct change sent_change;
        uint64_t active_token;          /* of the last call that was answered so */
        uint64_t adopted_used[DEVICES]; /* of what is being adopted: known to be used there */
        bool adopted_unknown[DEVICES];  /* and part of it has no figure */
        uint64_t mine_before[DEVICES];
        bool degraded;
        struct my_order orders[ORDERS];
        uint64_t n_grants, n_waits, n_refusals, n_ends, n_drains, n_backfills, n_stepped;
        uint64_t n_adopted, n_let_go, n_exclusive, n_changed, n_orders, n_kills, n_learned;
};

static struct world *world, *before;
static struct actions *out;
static uint64_t grants_seen, waits_seen, refusals_seen, drains_seen, backfills_seen, asides_seen, ends_seen;
static uint64_t adopted_seen, let_go_seen, exclusive_seen, changed_seen, orders_seen, kills_seen, learned_seen;

static void __attribute__((__format__(__printf__, 2, 3))) give_up(const struct sim *sim, const char *fmt, ...)
{
        char text[512];
        va_list args;

        va_start(args, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, args);
        va_end(args);
        fail_msg("seed %" PRIu64 ", step %" PRIu64 " (%s), at %" PRIu64 " ms: %s", sim->seed, sim->n_steps,
                 input_kind_name(sim->input), sim->now_ms - START_MS, text);
}

static uint64_t below(struct sim *sim, uint64_t n) /* splitmix64: a seed means the same everywhere */
{
        uint64_t z = (sim->random += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return (z ^ (z >> 31)) % n;
}

static bool one_in(struct sim *sim, uint64_t n)
{
        return below(sim, n) == 0;
}

/* ---- the books this test keeps ---- */

static struct my_lease *lease_of(struct sim *sim, uint64_t id)
{
        return id > 0 && id < LEASES ? &sim->leases[id] : NULL;
}

/*
 * 4.1, from what was said: a bound that the core may exceed, never undercut. Claims of heads are left out (they are lent),
 * the driver's own share counts as explaining residue, and a draining lease is believed to be known.
 */
static uint64_t committed_by_my_books(struct sim *sim, uint32_t d)
{
        const struct my_device *device = &sim->devices[d];
        uint64_t r_sum = 0, holders_r = 0, promised = 0, untaken = 0, known_u = 0, unknown_r = 0;
        uint64_t display_u = 0;
        bool display = false, display_unknown = false;

        for (uint32_t i = 0; i < device->n_rows; i++) {
                const struct my_row *row = &device->rows[i];
                const struct my_lease *lease = lease_of(sim, row->lease_id);
                bool of_lease = lease && lease->life >= LIFE_ACTIVE && lease->life <= LIFE_DRAINS && lease->device == d;
                if (of_lease)
                        continue;
                if (row->graphics) {
                        display = true;
                        display_u += row->bytes;
                        display_unknown = display_unknown || !row->known;
                } else if (row->known) {
                        known_u += row->bytes;
                }
        }
        for (uint64_t id = 1; id <= sim->last_lease_id && id < LEASES; id++) {
                const struct my_lease *lease = &sim->leases[id];
                if (lease->life < LIFE_GRANTED || lease->life > LIFE_DRAINS || lease->device != d)
                        continue;
                uint64_t u = 0, r = lease->life == LIFE_DRAINS ? 0 : lease->bytes;
                bool known = !lease->managed;
                for (uint32_t i = 0; i < device->n_rows; i++)
                        if (device->rows[i].lease_id == id) {
                                u += device->rows[i].bytes;
                                known = known && device->rows[i].known;
                        }
                r_sum += r;
                if (lease->life == LIFE_GRANTED) {
                        promised += r;
                        untaken += r;
                        continue;
                }
                holders_r += r;
                if (known) {
                        known_u += u;
                        untaken += r > u ? r - u : 0;
                } else {
                        unknown_r += r;
                }
        }
        if (display) {
                uint64_t r = sim->config.display_bytes;
                r_sum += r;
                holders_r += r;
                if (display_unknown) {
                        unknown_r += r;
                } else {
                        known_u += display_u;
                        untaken += r > display_u ? r - display_u : 0;
                }
        }
        if (!device->per_process)
                return (device->used > holders_r ? device->used : holders_r) + promised;
        uint64_t residue = device->used > known_u ? device->used - known_u : 0;
        uint64_t sum = device->used + untaken + (unknown_r > residue ? unknown_r - residue : 0);
        return r_sum > sum ? r_sum : sum;
}

static void changed(struct sim *sim, uint32_t d)
{
        if (d >= sim->n_devices || sim->input == INPUT_READING) /* a reading is not older than what it shows */
                return;
        sim->devices[d].changed_ms = sim->now_ms;
        sim->devices[d].changed_by = sim->input;
        sim->devices[d].fresh = false;
}

static bool lives(const struct my_lease *lease)
{
        return lease && lease->life >= LIFE_GRANTED && lease->life <= LIFE_ACTIVE;
}

static struct my_process *process_of(struct sim *sim, struct identity identity)
{
        for (uint32_t i = 0; i < PROCS; i++)
                if (sim->procs[i].alive && identity_equal(sim->procs[i].identity, identity))
                        return &sim->procs[i];
        return NULL;
}

/* Would it come along with @root? What is under a living lease, on its device, is somebody's already. */
static bool comes_along(struct sim *sim, const struct my_process *p, struct identity root, uint32_t uid, uint32_t d)
{
        const struct my_lease *lease = lease_of(sim, p->lease_id);

        return (identity_equal(p->identity, root) || identity_equal(p->parent, root)) && p->uid == uid &&
               !(lives(lease) && lease->device == d);
}

static void check_beside(struct sim *sim, const struct my_lease *lease)
{
        for (uint64_t id = 1; id <= sim->last_lease_id && id < LEASES; id++) {
                const struct my_lease *other = &sim->leases[id];
                if (other != lease && lives(other) && other->device == lease->device &&
                    (other->exclusive || lease->exclusive))
                        give_up(sim, "device %u: L%" PRIu64 " beside L%" PRIu64 ", which is %s", lease->device,
                                (uint64_t) (lease - sim->leases), id, other->exclusive ? "exclusive" : "not");
        }
}

/* What it has it has; only what it wants beyond that is a promise like any other. */
static void note_adoption(struct sim *sim, const struct action *a, struct my_lease *lease, bool fresh)
{
        struct my_device *device = &sim->devices[a->device];
        uint64_t used = sim->adopted_used[a->device];

        if (a->bytes > used && (!fresh || !sim->eyes || !device->settled ||
                                sim->now_ms - device->taken_ms > sim->config.reading_max_age_ms))
                give_up(sim, "L%" PRIu64 " adopts %" PRIu64 " where %" PRIu64 " is used, on an old look", a->lease_id,
                        a->bytes, used);
        if (!device->healthy && a->bytes > used)
                give_up(sim, "L%" PRIu64 " adopts more than there is on a device that is not well", a->lease_id);
        for (uint32_t i = 0; i < PROCS; i++) {
                struct my_process *p = &sim->procs[i];
                bool elsewhere = p->device != a->device && lives(lease_of(sim, p->lease_id));
                if (p->alive && !elsewhere && comes_along(sim, p, lease->owner, lease->uid, a->device))
                        p->lease_id = a->lease_id;
        }
        for (uint32_t i = 0; i < device->n_rows; i++) {
                const struct my_process *p = process_of(sim, device->rows[i].identity);
                if (p)
                        device->rows[i].lease_id = p->lease_id;
        }
        lease->adopted = lease->owner_known = true;
        lease->root = lease->owner;
        sim->n_adopted++;
}

static void note_let_go(struct sim *sim, uint64_t id)
{
        for (uint32_t i = 0; i < PROCS; i++)
                if (sim->procs[i].lease_id == id)
                        sim->procs[i].lease_id = 0;
        for (uint32_t d = 0; d < sim->n_devices; d++)
                for (uint32_t i = 0; i < sim->devices[d].n_rows; i++)
                        if (sim->devices[d].rows[i].lease_id == id)
                                sim->devices[d].rows[i].lease_id = 0;
        sim->n_let_go++;
}

static void note_change(struct sim *sim, struct my_lease *lease)
{
        const struct change *c = &sim->sent_change;

        if (!c->is_admin && c->uid != lease->uid)
                give_up(sim, "somebody else changed a lease of %u", lease->uid);
        sim->n_changed++;
        if (!(c->what & (CHANGE_SLOT | CHANGE_EXTEND)))
                return;
        bool extends = c->what & CHANGE_EXTEND;
        uint64_t from = extends && lease->slot_end_ms > sim->now_ms ? lease->slot_end_ms : sim->now_ms;
        if (lease->life == LIFE_WAITS)
                lease->slot_ms = extends ? lease->slot_ms + c->slot_ms : c->slot_ms;
        else
                lease->slot_end_ms = extends || c->slot_ms ? from + c->slot_ms : 0;
}

static bool is_its(const struct my_lease *lease, const struct my_process *p)
{
        if (lease->adopted && p->uid != lease->uid)
                return false;
        return identity_equal(p->identity, lease->root) || identity_equal(p->identity, lease->owner) ||
               identity_equal(p->parent, lease->root) || identity_equal(p->parent, lease->owner) ||
               (lease->cgroup != 0 && p->cgroup == lease->cgroup);
}

/* I3, and the order of things: SIGTERM, the grace, SIGKILL, each once unless the hands sent it back or a restart
 * may have swallowed the kill. */
static void check_order(struct sim *sim, const struct action *a)
{
        struct my_lease *lease = lease_of(sim, a->lease_id);
        struct my_process *p = process_of(sim, a->process);

        if (!lease || lease->life < LIFE_ACTIVE || lease->life > LIFE_DRAINS)
                give_up(sim, "an order for L%" PRIu64 ", which holds nothing", a->lease_id);
        if (!p)
                give_up(sim, "an order against pid %u of L%" PRIu64 ", which does not live", a->process.pid,
                        a->lease_id);
        const struct my_lease *other = lease_of(sim, p->lease_id);
        if (!is_its(lease, p) || (p->lease_id != a->lease_id && lives(other) && is_its(other, p)))
                give_up(sim, "an order for L%" PRIu64 " against pid %u of L%" PRIu64 " (I3)", a->lease_id,
                        a->process.pid, p->lease_id);
        if (!sim->eyes || sim->degraded)
                give_up(sim, "an order while in doubt (S25)");
        bool slot_over = lease->kill_at_end && lease->slot_end_ms != 0 && sim->now_ms >= lease->slot_end_ms;
        bool command_lives = !identity_is_none(lease->root) && process_of(sim, lease->root);
        bool wrapper = !identity_is_none(lease->root) && identity_equal(a->process, lease->owner) &&
                       !identity_equal(lease->root, lease->owner);
        if (!lease->ending && !slot_over && (!lease->kill_left || command_lives))
                give_up(sim, "an order for L%" PRIu64 " that nobody named", a->lease_id);
        if (wrapper)
                give_up(sim, "an order for L%" PRIu64 " against who waits for its command", a->lease_id);
        lease->ending = true;

        if (p->asked_by != a->lease_id) {
                p->asked_by = a->lease_id;
                p->n_term = p->n_kill = 0;
                p->term_ms = 0;
        }
        if (a->signal == SIGTERM) {
                p->term_ms = sim->now_ms;
                p->n_term++;
        } else {
                if (p->term_ms == 0 || sim->now_ms - p->term_ms < sim->config.end_grace_ms)
                        give_up(sim, "pid %u is killed %" PRIu64 " ms after SIGTERM", a->process.pid,
                                p->term_ms ? sim->now_ms - p->term_ms : 0);
                p->n_kill++;
                sim->n_kills++;
        }
        if (p->n_term > 1 || p->n_kill > 1)
                give_up(sim, "pid %u got %u SIGTERM and %u SIGKILL", a->process.pid, p->n_term, p->n_kill);
        if (a->hand == HAND_KILL_TREE && (lease->adopted || a->cgroup_id == 0 || a->cgroup_id != lease->cgroup))
                give_up(sim, "L%" PRIu64 ": a cgroup is killed that was not made for it (F52)", a->lease_id);
        sim->n_orders++;
        for (uint32_t i = 0; i < ORDERS; i++)
                if (!sim->orders[i].waits) {
                        sim->orders[i] = (struct my_order){ .waits = true, .order = *a };
                        break;
                }
}

static void check_grant(struct sim *sim, const struct action *a, const bool fresh_before[DEVICES])
{
        struct my_lease *lease = lease_of(sim, a->lease_id);

        if (!lease || a->device >= sim->n_devices)
                give_up(sim, "a grant of L%" PRIu64 " on device %u", a->lease_id, a->device);
        if (lease->life != LIFE_WAITS && lease->life != LIFE_NONE)
                give_up(sim, "L%" PRIu64 " is granted, and was not waiting", a->lease_id);
        const struct my_device *device = &sim->devices[a->device];
        lease->device = a->device;
        lease->bytes = a->bytes;
        check_beside(sim, lease);
        lease->life = LIFE_GRANTED;
        lease->slot_end_ms = lease->slot_ms ? sim->now_ms + lease->slot_ms : 0;
        sim->n_exclusive += lease->exclusive;
        const struct lease *granted = world_lease_by_id(world, a->lease_id); /* it may have ended since */
        sim->n_learned += granted && granted->sized == SIZED_LEARNED;
        if (a->why.rule == RULE_ADOPTED) {
                note_adoption(sim, a, lease, fresh_before[a->device]);
                return;
        }
        if (!sim->eyes)
                give_up(sim, "L%" PRIu64 " is granted while the driver does not answer", a->lease_id);
        if (!device->healthy || !device->told || !device->used_known)
                give_up(sim, "L%" PRIu64 " is granted on a device without a figure", a->lease_id);
        if (!device->settled)
                give_up(sim, "L%" PRIu64 " is granted on an unsettled reading", a->lease_id);
        if (sim->now_ms - device->taken_ms > sim->config.reading_max_age_ms)
                give_up(sim, "L%" PRIu64 " is granted on a reading of %" PRIu64 " ms ago", a->lease_id,
                        sim->now_ms - device->taken_ms);
        if (!fresh_before[a->device])
                give_up(sim,
                        "L%" PRIu64 " is granted on a reading of %" PRIu64
                        " ms ago, older than the last change (%s %" PRIu64 " ms ago)",
                        a->lease_id, sim->now_ms - device->taken_ms, input_kind_name(device->changed_by),
                        sim->now_ms - device->changed_ms);
        sim->n_grants++;
}

static void note_action(struct sim *sim, const struct action *a, const bool fresh_before[DEVICES])
{
        struct my_lease *lease = lease_of(sim, a->lease_id);

        if (a->id != sim->next_action_id++)
                give_up(sim, "action %" PRIu64 " where %" PRIu64 " was due", a->id, sim->next_action_id - 1);
        if (a->kind != ACTION_REFUSED && lease && lease->life == LIFE_ENDED)
                give_up(sim, "%s about L%" PRIu64 ", which has ended", action_kind_name((enum action_kind) a->kind),
                        a->lease_id);
        if (a->kind == ACTION_QUEUED || (a->kind == ACTION_GRANTED && lease && lease->life == LIFE_NONE)) {
                if (!lease)
                        give_up(sim, "an answer about L%" PRIu64, a->lease_id);
                if (a->lease_id <= sim->last_lease_id || a->token != sim->sent.token)
                        give_up(sim, "L%" PRIu64 " answers to %" PRIu64, a->lease_id, a->token);
                for (uint64_t id = sim->last_lease_id + 1; id < a->lease_id; id++)
                        sim->leases[id].life = LIFE_ENDED; /* a number that was drawn and never told */
                sim->last_lease_id = a->lease_id;
                *lease = (struct my_lease){ .life = LIFE_WAITS,
                                            .uid = sim->sent.uid,
                                            .bytes = a->bytes,
                                            .managed = sim->sent.managed,
                                            .heartbeat = sim->sent.binding.kind == BINDING_HEARTBEAT,
                                            .exclusive = sim->sent.exclusive,
                                            .kill_at_end = sim->sent.kill_at_end,
                                            .kill_left = sim->sent.kill_left,
                                            .slot_ms = sim->sent.slot_ms,
                                            .owner = sim->sent.binding.owner };
                sim->n_waits += a->kind == ACTION_QUEUED;
        }
        sim->n_stepped += a->why.rule == RULE_STEPPED_ASIDE;
        switch ((enum action_kind) a->kind) {
        case ACTION_GRANTED:
                check_grant(sim, a, fresh_before);
                break;
        case ACTION_ACTIVE:
                lease->life = LIFE_ACTIVE;
                sim->active_token = a->token;
                if (lease->ending && !(lease->kill_at_end && lease->slot_end_ms && sim->now_ms >= lease->slot_end_ms)) {
                        lease->ending = false; /* its owner is back: it begins anew, if it does */
                        for (uint32_t i = 0; i < PROCS; i++)
                                if (sim->procs[i].asked_by == a->lease_id)
                                        sim->procs[i].asked_by = 0;
                }
                break;
        case ACTION_DRAINING:
                if (lease->life != LIFE_GRANTED && lease->life != LIFE_ACTIVE)
                        give_up(sim, "L%" PRIu64 " drains and held nothing", a->lease_id);
                lease->life = LIFE_DRAINS;
                sim->n_drains++;
                changed(sim, lease->device);
                break;
        case ACTION_ENDED:
                if (lease->life >= LIFE_GRANTED)
                        changed(sim, lease->device);
                if (a->why.end == END_UNADOPTED)
                        note_let_go(sim, a->lease_id);
                lease->life = LIFE_ENDED;
                sim->n_ends++;
                break;
        case ACTION_CHANGED:
                if (a->token == sim->sent_change.token && a->token != 0)
                        note_change(sim, lease);
                break;
        case ACTION_ASKED:
        case ACTION_PARKED:
        case ACTION_THAWING:
        case ACTION_THAWED:
        case ACTION_STUCK:
        case ACTION_PLAN:
        case ACTION_MANAGER:
                give_up(sim, "%s, and there is no way to", action_kind_name((enum action_kind) a->kind));
                break;
        case ACTION_HAND:
                check_order(sim, a);
                break;
        case ACTION_READ:
                if (a->device >= sim->n_devices)
                        give_up(sim, "a look at device %u", a->device);
                sim->asked[a->device] = true;
                break;
        case ACTION_REFUSED:
                sim->n_refusals++;
                break;
        case ACTION_NONE:
        case ACTION_ENFORCE:
        case ACTION_KIND_N:
                give_up(sim, "an action of no kind");
                break;
        case ACTION_QUEUED:
        case ACTION_WAITING:
        case ACTION_RENEWED:
        case ACTION_ORPHANED:
        case ACTION_WARNING:
        case ACTION_DEVICE:
        case ACTION_STRANGER:
        case ACTION_EYES:
        case ACTION_RESTARTED:
        case ACTION_IDLE:
                break;
        }
}

/* Both books of a device, line by line, for the person who reads the failure. */
static void show_books(struct sim *sim, uint32_t d)
{
        const struct my_device *device = &sim->devices[d];

        print_message("# device %u: total %" PRIu64 " used %" PRIu64 "%s\n", d, device->total, device->used,
                      device->per_process ? "" : ", no figures per process");
        for (uint64_t id = 1; id <= sim->last_lease_id; id++)
                if (sim->leases[id].life > LIFE_WAITS && sim->leases[id].life < LIFE_ENDED &&
                    sim->leases[id].device == d)
                        print_message("#   mine: L%" PRIu64 " r %" PRIu64 " life %d%s owner %u\n", id,
                                      sim->leases[id].bytes, sim->leases[id].life,
                                      sim->leases[id].managed ? " managed" : "", sim->leases[id].owner.pid);
        for (uint32_t i = 0; i < device->n_rows; i++)
                print_message("#   mine: pid %u of L%" PRIu64 " u %" PRIu64 "%s%s\n", device->rows[i].identity.pid,
                              device->rows[i].lease_id, device->rows[i].bytes, device->rows[i].known ? "" : " unknown",
                              device->rows[i].graphics ? " graphics" : "");
        for (uint32_t i = 0; i < world->n_holders; i++) {
                const struct holder *h = &world->holders[i];
                if (h->kind != HOLDER_NONE && h->device == d)
                        print_message("#   core: %s r %" PRIu64 " u %" PRIu64 "%s%s%s lease row %u pid %u\n",
                                      holder_kind_name((enum holder_kind) h->kind), h->reserved_bytes, h->used_bytes,
                                      h->used_known ? "" : " unknown", h->managed ? " managed" : "",
                                      h->uncollected ? " uncollected" : "", h->lease.index, h->process.pid);
        }
}

static void check_world(struct sim *sim, const bool granted[DEVICES])
{
        const char *wrong = world_check(world);
        if (wrong)
                give_up(sim, "%s", wrong);

        for (uint32_t d = 0; d < sim->n_devices; d++) {
                const struct my_device *device = &sim->devices[d];
                uint64_t free_now = device_free_bytes(world, d);
                uint64_t r_sum = 0;
                for (uint32_t i = 0; i < world->n_holders; i++) {
                        const struct holder *h = &world->holders[i];
                        if (h->kind == HOLDER_NONE || h->device != d)
                                continue;
                        r_sum += h->reserved_bytes;
                }
                if (free_now > device->total)
                        give_up(sim, "device %u: more free than there is", d);
                if ((!device->told || !device->used_known || !device->healthy) && free_now != 0)
                        give_up(sim, "device %u: no figure, and %" PRIu64 " free (I7)", d, free_now);
                if (granted[d] && r_sum > device->total)
                        give_up(sim, "device %u: a grant makes it promise %" PRIu64 " of %" PRIu64 " (I1)", d, r_sum,
                                device->total);
                if (!device->told || !device->used_known || !device->healthy || !device->settled)
                        continue;
                uint64_t mine = committed_by_my_books(sim, d);
                if (granted[d] && sim->input == INPUT_REQUEST && sim->sent.adopt) {
                        /* What is used was used before. A holder that is not known whole hides in what nobody can
                         * attribute; where total and list disagree there may be none of that. */
                        bool hides = sim->sent.managed || sim->adopted_unknown[d];
                        uint64_t before_it = sim->mine_before[d] + (hides ? sim->adopted_used[d] : 0);
                        if (mine > device->total && mine > before_it) {
                                show_books(sim, d);
                                give_up(sim, "device %u: adopted, and %" PRIu64 " are committed where it was %" PRIu64,
                                        d, mine, before_it);
                        }
                        continue;
                }
                if (granted[d] && mine > device->total)
                        show_books(sim, d);
                if (granted[d] && mine > device->total)
                        give_up(sim, "device %u: a grant although %" PRIu64 " of %" PRIu64 " are committed (I2)", d,
                                mine, device->total);
                if (device_committed_bytes(world, d) < mine)
                        show_books(sim, d);
                if (device_committed_bytes(world, d) < mine)
                        give_up(sim, "device %u: committed is %" PRIu64 ", by my books %" PRIu64, d,
                                device_committed_bytes(world, d), mine);
        }
        for (uint64_t id = 1; id <= sim->last_lease_id; id++) {
                const struct lease *lease = world_lease_by_id(world, id);
                enum lease_life life = sim->leases[id].life;
                if ((life == LIFE_ENDED) != (lease == NULL))
                        give_up(sim, "L%" PRIu64 " %s", id,
                                lease ? "ended and is there" : "is gone and nobody said so");
                if (lease && (life == LIFE_WAITS) != (lease->state == LEASE_QUEUED))
                        give_up(sim, "L%" PRIu64 " is %s, which nobody said", id,
                                lease_state_name((enum lease_state) lease->state));
        }
        for (uint32_t i = 0; i < world->n_leases; i++)
                sim->n_backfills += world->leases[i].backfilled;
}

static void hash_in(struct sim *sim, uint64_t value)
{
        for (int k = 0; k < 8; k++)
                sim->hash = (sim->hash ^ (value >> (8 * k) & 0xff)) * UINT64_C(1099511628211);
}

/* Field by field: what lies between the fields is the inputs' padding. */
static void hash_action(struct sim *sim, const struct action *a)
{
        const struct reason *why = &a->why;
        const uint64_t fields[] = {
                a->kind,
                a->hand,
                a->signal,
                a->cgroup_id,
                a->device,
                a->id,
                a->token,
                a->lease_id,
                a->uid,
                a->priority,
                a->bytes,
                a->process.pid,
                a->process.start_ticks,
                why->rule,
                why->end,
                why->place,
                why->n_waiting,
                why->limit,
                why->need_bytes,
                why->free_bytes,
                why->lent_bytes,
                why->ceiling_bytes,
                why->total_bytes,
                why->used_bytes,
                why->reserved_bytes,
                why->head_lease_id,
                why->start_ms,
                why->reading_age_ms,
                why->n_blockers,
        };

        for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
                hash_in(sim, fields[i]);
        for (uint32_t i = 0; i < BLOCKERS_MAX; i++) {
                hash_in(sim, why->blockers[i].kind);
                hash_in(sim, why->blockers[i].pid);
                hash_in(sim, why->blockers[i].lease_id);
                hash_in(sim, why->blockers[i].bytes);
                hash_in(sim, why->blockers[i].end_ms);
        }
}

static void step(struct sim *sim, struct input *input)
{
        bool granted[DEVICES] = { false };
        bool fresh_before[DEVICES];
        unsigned n_answers = 0;
        bool is_tick = input->kind == INPUT_TICK;

        sim->n_steps++;
        sim->input = (enum input_kind) input->kind;
        input->now_ms = sim->now_ms;
        for (uint32_t d = 0; d < DEVICES; d++)
                fresh_before[d] = sim->devices[d].fresh;
        for (uint32_t d = 0; d < sim->n_devices && input->kind == INPUT_REQUEST && input->request.adopt; d++)
                sim->mine_before[d] = committed_by_my_books(sim, d);
        if (is_tick)
                scene_world_copy(before, world);

        arbiter_step(world, input, out);
        uint32_t n_all = out->n;
        for (int again = 0;; again++) {
                if (out->n > ACTIONS_MAX)
                        give_up(sim, "%u actions", out->n);
                for (uint32_t i = 0; i < out->n; i++) {
                        const struct action *a = &out->items[i];
                        hash_action(sim, a);
                        note_action(sim, a, fresh_before);
                        if (a->kind == ACTION_GRANTED)
                                granted[a->device] = true;
                        if (input->kind == INPUT_REQUEST && a->token == sim->sent.token &&
                            (a->kind == ACTION_GRANTED || a->kind == ACTION_QUEUED || a->kind == ACTION_REFUSED))
                                n_answers++;
                }
                if (!out->more)
                        break;
                if (again > 100)
                        give_up(sim, "there is always more");
                struct input tick = { .kind = INPUT_TICK, .now_ms = sim->now_ms };
                arbiter_step(world, &tick, out);
                n_all += out->n;
        }
        if (input->kind == INPUT_REQUEST && n_answers != 1)
                give_up(sim, "a request got %u answers", n_answers);
        if (is_tick && n_all == 0) {
                before->now_ms = world->now_ms;
                if (!scene_world_same(before, world))
                        give_up(sim, "a tick without actions changed the world");
        }
        check_world(sim, granted);
}

/* ---- what happens ---- */

static void tick(struct sim *sim)
{
        struct input input = { .kind = INPUT_TICK };

        step(sim, &input);
}

static void tell_device(struct sim *sim, uint32_t d, enum device_health health)
{
        struct input input = { .kind = INPUT_DEVICE };
        struct my_device *device = &sim->devices[d];

        memcpy(input.device.uuid, device->uuid, sizeof(device->uuid));
        (void) snprintf(input.device.name, sizeof(input.device.name), "card");
        input.device.minor = d;
        input.device.total_bytes = device->total;
        input.device.health = (uint8_t) health;
        device->healthy = health == DEVICE_OK;
        if (health == DEVICE_LOST)
                device->told = device->used_known = false; /* what was known of it is over */
        sim->input = INPUT_DEVICE;
        changed(sim, d);
        step(sim, &input);
}

static void tell_process(struct sim *sim, const struct my_process *p)
{
        struct input input = { .kind = INPUT_PROCESS };

        input.process.identity = p->identity;
        input.process.uid = p->uid;
        input.process.cgroup_id = p->cgroup;
        input.process.ppid = p->parent.pid ? p->parent.pid : 1;
        input.process.n_ancestors = 1;
        input.process.ancestors[0] = p->parent.pid ? p->parent : (struct identity){ 1, 1 };
        step(sim, &input);
}

static void look(struct sim *sim, uint32_t d)
{
        static struct occupancy rows[ROWS];
        struct my_device *device = &sim->devices[d];
        struct input input = { .kind = INPUT_READING };
        uint64_t used = device->driver + device->hidden;

        if (!sim->eyes || !device->healthy)
                return;
        sim->asked[d] = false;
        memset(rows, 0, sizeof(rows));
        bool per_process = sim->quiet || !one_in(sim, 40), used_known = sim->quiet || !one_in(sim, 30);
        bool settled = sim->quiet || !one_in(sim, 15), partial = !sim->quiet && one_in(sim, 20);
        uint64_t late_ms = sim->quiet || !one_in(sim, 10) ? 0 : below(sim, 2500);
        uint64_t taken_ms = sim->now_ms - late_ms;
        if (taken_ms < device->taken_ms)
                taken_ms = device->taken_ms;

        device->n_rows = 0;
        for (uint32_t i = 0; i < PROCS; i++) {
                const struct my_process *p = &sim->procs[i];
                if (!p->alive || p->device != d)
                        continue;
                used += p->bytes;
                if (partial && one_in(sim, 2))
                        continue; /* the list came without it */
                struct my_row *row = &device->rows[device->n_rows];
                *row = (struct my_row){ .identity = p->identity, .lease_id = p->lease_id, .graphics = p->graphics };
                row->known = per_process && !p->no_figure && !(!sim->quiet && one_in(sim, 50));
                row->bytes = row->known ? p->bytes : 0;
                rows[device->n_rows] = (struct occupancy){
                        .identity = p->identity,
                        .used_bytes = row->bytes,
                        .device = d,
                        .flags = (row->known ? ROW_USED_KNOWN : 0U) | (p->graphics ? ROW_GRAPHICS : ROW_COMPUTE) |
                                 ROW_RESTED,
                };
                device->n_rows++;
        }
        if (!sim->quiet && one_in(sim, 12)) /* total and list do not agree, and the driver says it is all right */
                used = below(sim, device->total + device->total / 4);
        if (used > device->total && sim->quiet)
                used = device->total;

        memcpy(input.reading.uuid, device->uuid, sizeof(device->uuid));
        input.reading.taken_ms = taken_ms;
        input.reading.total_bytes = used_known ? device->total : 0;
        input.reading.used_bytes = used_known ? used : 0;
        input.reading.used_known = used_known;
        input.reading.per_process_known = per_process;
        input.reading.settled = settled;
        input.reading.n_rows = device->n_rows;
        input.reading.rows = rows;
        device->told = true;
        device->used_known = used_known;
        device->used = used;
        device->per_process = per_process;
        device->settled = settled;
        device->fresh = taken_ms >= device->changed_ms;
        device->taken_ms = taken_ms;
        step(sim, &input);
}

static void ask(struct sim *sim)
{
        struct input input = { .kind = INPUT_REQUEST };
        struct request *r = &input.request;

        if (sim->last_lease_id + 2 >= LEASES)
                return;
        r->token = ++sim->next_token;
        r->uid = 1000 + (uint32_t) below(sim, 4);
        r->is_admin = one_in(sim, 4);
        r->no_wait = one_in(sim, 12);
        r->collected = !one_in(sim, 4);
        r->managed = one_in(sim, 15);
        r->kill_at_end = one_in(sim, 2);
        r->kill_left = one_in(sim, 2);
        r->quota = (uint32_t) below(sim, 3);
        r->exclusive = one_in(sim, 25);
        r->priority = (uint8_t) (one_in(sim, 12) ? 1 : 2 + below(sim, 4));
        r->bytes = (1 + below(sim, one_in(sim, 3) ? 25 : 10)) * sim->unit - (one_in(sim, 4) ? 1 : 0);
        if (one_in(sim, 20)) {
                r->bytes = 0;
                r->percent_milli = 1 + below(sim, 100000);
        }
        if (r->exclusive && one_in(sim, 2))
                r->bytes = r->percent_milli = 0;
        if (r->token % 4 != 0)
                (void) snprintf(r->consumer, sizeof(r->consumer), "program-%u", (unsigned) (r->token % 3));
        r->learned = !r->exclusive && r->token % 7 == 0;
        if (r->learned) {
                r->bytes = 0;
                r->percent_milli = 100000;
        }
        r->slot_ms = one_in(sim, 2) && r->priority != 1 ? 0 : 1000 * (1 + below(sim, 300));
        r->wait_ms = one_in(sim, 4) ? 1000 * (1 + below(sim, 600)) : 0;
        if (one_in(sim, 5))
                memcpy(r->device_uuid, sim->devices[below(sim, sim->n_devices)].uuid, sizeof(r->device_uuid));
        /* Ways out that are never used here: no host fact is told, and leases know no release. Parking is the trial's. */
        r->ways.named =
                one_in(sim, 3)
                        ? (uint8_t) (below(sim, 32) & (WAY_OUT_BIT(WAY_OUT_CHECKPOINT) | WAY_OUT_BIT(WAY_OUT_RELEASE)))
                        : 0;
        r->ways.proven = one_in(sim, 4) ? WAY_OUT_BIT(WAY_OUT_CHECKPOINT) : 0;
        r->binding.kind = one_in(sim, 4) ? BINDING_HEARTBEAT : BINDING_PROCESS;
        r->binding.ttl_ms = r->binding.kind == BINDING_HEARTBEAT ? 30000 : 0;
        uint32_t pid = (uint32_t) sim->next_pid++;
        r->binding.owner = (struct identity){ pid, 9 + (uint64_t) pid };
        sim->sent = *r;
        step(sim, &input);
}

static uint64_t some_lease(struct sim *sim)
{
        if (sim->last_lease_id == 0 || one_in(sim, 30))
                return below(sim, 5000); /* nobody's */
        uint64_t back = below(sim, one_in(sim, 4) ? 200 : 20);
        return sim->last_lease_id > back ? sim->last_lease_id - back : sim->last_lease_id;
}

static void call(struct sim *sim, enum input_kind kind, uint64_t id)
{
        struct input input = { .kind = (uint8_t) kind };
        const struct my_lease *lease = lease_of(sim, id);

        input.call.token = ++sim->next_token;
        input.call.lease_id = id;
        input.call.uid = lease && !one_in(sim, 20) ? lease->uid : 1000 + (uint32_t) below(sim, 4);
        input.call.is_admin = one_in(sim, 20);
        input.call.by_system = kind == INPUT_OWNER_ENDED;
        input.call.end_reason = kind == INPUT_OWNER_ENDED ? END_OWNER_EXITED : END_RELEASED;
        step(sim, &input);
}

static struct my_process *spare_process(struct sim *sim)
{
        for (uint32_t i = 0; i < PROCS; i++)
                if (!sim->procs[i].alive)
                        return &sim->procs[i];
        return NULL;
}

/* @p is its command from now on, in a cgroup of its own or not. */
static void collect(struct sim *sim, uint64_t id, struct my_process *p)
{
        struct input input = { .kind = INPUT_ACTIVATE };
        struct my_lease *lease = lease_of(sim, id);

        uint64_t cgroup = one_in(sim, 2) ? 100000 + id : 0;
        input.call = (struct lease_call){
                .token = ++sim->next_token, .lease_id = id, .uid = lease->uid, .root = p->identity, .cgroup_id = cgroup
        };
        step(sim, &input);
        if (sim->active_token != input.call.token)
                return; /* its device is lost */
        lease->root = p->identity;
        lease->cgroup = p->cgroup = cgroup;
        tell_process(sim, p);
}

static void somebody_adopts(struct sim *sim, const struct my_process *p)
{
        struct input input = { .kind = INPUT_REQUEST };
        struct request *r = &input.request;

        if (sim->last_lease_id + 2 >= LEASES || !p->alive)
                return;
        r->adopt = r->collected = true;
        r->token = ++sim->next_token;
        r->uid = one_in(sim, 20) ? 1000 + (uint32_t) below(sim, 4) : p->uid;
        r->is_admin = one_in(sim, 4);
        r->priority = (uint8_t) (2 + below(sim, 4));
        r->bytes = one_in(sim, 3) ? below(sim, 8) * sim->unit : 0;
        r->exclusive = one_in(sim, 6);
        r->managed = one_in(sim, 30);
        r->kill_at_end = one_in(sim, 2);
        r->kill_left = one_in(sim, 3);
        r->slot_ms = one_in(sim, 2) ? 0 : 1000 * (1 + below(sim, 200));
        r->quota = (uint32_t) below(sim, 3);
        if (one_in(sim, 3))
                memcpy(r->device_uuid, sim->devices[p->device].uuid, sizeof(r->device_uuid));
        r->binding.root = r->binding.owner = p->identity;
        for (uint32_t d = 0; d < sim->n_devices; d++) {
                sim->adopted_used[d] = 0;
                sim->adopted_unknown[d] = false;
                for (uint32_t i = 0; i < sim->devices[d].n_rows; i++) {
                        const struct my_row *row = &sim->devices[d].rows[i];
                        const struct my_process *of = process_of(sim, row->identity);
                        if (!of || !comes_along(sim, of, p->identity, r->uid, d))
                                continue;
                        sim->adopted_used[d] += row->bytes;
                        sim->adopted_unknown[d] = sim->adopted_unknown[d] || !row->known;
                }
        }
        sim->sent = *r;
        step(sim, &input);
}

static void somebody_changes(struct sim *sim)
{
        struct input input = { .kind = INPUT_CHANGE };
        struct change *c = &input.change;
        uint64_t id = some_lease(sim);
        const struct my_lease *lease = lease_of(sim, id);

        c->token = ++sim->next_token;
        c->lease_id = id;
        c->uid = lease && !one_in(sim, 10) ? lease->uid : 1000 + (uint32_t) below(sim, 4);
        c->is_admin = one_in(sim, 4);
        c->quota = (uint32_t) below(sim, 3);
        c->what = (uint8_t) (1U << below(sim, 5));
        if (one_in(sim, 4))
                c->what = (uint8_t) (c->what | 1U << below(sim, 5));
        c->priority = (uint8_t) (1 + below(sim, 5));
        c->slot_ms = one_in(sim, 4) ? 0 : 1000 * below(sim, 400);
        c->pin_ms = one_in(sim, 8) ? 0 : 1000 * (1 + below(sim, 200));
        sim->sent_change = *c;
        step(sim, &input);
}

static void somebody_starts(struct sim *sim)
{
        struct my_process *p = spare_process(sim);
        uint64_t id = some_lease(sim);
        struct my_lease *lease = lease_of(sim, id);

        if (!p)
                return;
        uint32_t pid = (uint32_t) sim->next_pid++;
        *p = (struct my_process){ .alive = true, .identity = { pid, 9 + (uint64_t) pid } };
        p->device = (uint32_t) below(sim, sim->n_devices);
        p->uid = 1000 + (uint32_t) below(sim, 4);
        if (lease && lease->life == LIFE_ACTIVE && !one_in(sim, 5)) {
                p->lease_id = id;
                if (!lease->adopted || !one_in(sim, 4))
                        p->uid = lease->uid;
                if (!lease->owner_known) {
                        lease->owner_known = true;
                        p->identity = lease->owner;
                } else {
                        bool has_root = !identity_is_none(lease->root) && process_of(sim, lease->root);
                        p->parent = has_root && one_in(sim, 2) ? lease->root : lease->owner;
                        p->cgroup = one_in(sim, 4) ? 0 : lease->cgroup;
                }
                if (lease->adopted && p->uid != lease->uid)
                        p->lease_id = 0; /* it is not the owner's (S09) */
                if (!one_in(sim, 12))
                        p->device = lease->device;
                p->bytes = below(sim, lease->bytes + lease->bytes / 8 + 1);
        } else {
                const struct my_process *parent = &sim->procs[below(sim, PROCS)];
                p->graphics = one_in(sim, 4);
                p->bytes = below(sim, 6) * sim->unit;
                if (parent->alive && parent != p && parent->lease_id == 0 && !p->graphics && one_in(sim, 2)) {
                        p->parent = parent->identity;
                        p->uid = one_in(sim, 3) ? p->uid : parent->uid;
                        p->device = one_in(sim, 4) ? p->device : parent->device;
                }
        }
        p->no_figure = one_in(sim, 20);
        tell_process(sim, p);
        if (p->lease_id == id && lease && identity_is_none(lease->root) && !lease->adopted &&
            identity_equal(p->parent, lease->owner) && one_in(sim, 2))
                collect(sim, id, p);
}

static void somebody_leaves(struct sim *sim, struct my_process *p)
{
        struct input input = { .kind = INPUT_PROCESS_ENDED, .process_ended = p->identity };
        const struct my_lease *lease = lease_of(sim, p->lease_id);
        uint64_t id = p->lease_id;
        bool is_owner = lease && identity_equal(lease->owner, p->identity) && lease->life != LIFE_ENDED;
        uint32_t d = p->device;

        p->alive = false;
        bool was_listed = false;
        for (uint32_t i = 0; i < sim->devices[d].n_rows; i++)
                was_listed = was_listed || identity_equal(sim->devices[d].rows[i].identity, p->identity);
        sim->input = INPUT_PROCESS_ENDED;
        if (was_listed)
                changed(sim, d);
        step(sim, &input);
        if (is_owner)
                call(sim, INPUT_OWNER_ENDED, id);
}

static void tell_outcome(struct sim *sim, const struct action *order, enum outcome outcome, enum hand_why why)
{
        struct input input = { .kind = INPUT_OUTCOME };
        struct my_process *p = process_of(sim, order->process);

        input.outcome = (struct hand_outcome){ .order_id = order->id,
                                               .lease_id = order->lease_id,
                                               .process = order->process,
                                               .outcome = (uint8_t) outcome,
                                               .why = (uint8_t) why };
        if (p && p->asked_by == order->lease_id && outcome == OUTCOME_BLOCKED && why != HAND_WHY_GONE) {
                /* What was sent back may be ordered again; without its grace from the beginning. */
                if (p->n_kill != 0)
                        p->n_kill = 0;
                else
                        p->n_term = 0;
                if (why == HAND_WHY_GRACE)
                        p->n_term = 0;
        }
        step(sim, &input);
}

static void hands_work(struct sim *sim)
{
        static const enum hand_why whys[] = { HAND_WHY_AWAY, HAND_WHY_RATE, HAND_WHY_GRACE, HAND_WHY_PROTECTED,
                                              HAND_WHY_OTHER };
        for (uint32_t i = 0; i < ORDERS; i++) {
                struct my_order *o = &sim->orders[i];
                if (!o->waits || one_in(sim, 3))
                        continue; /* late */
                o->waits = false;
                struct action order = o->order;
                struct my_process *p = process_of(sim, order.process);
                if (!p)
                        tell_outcome(sim, &order, OUTCOME_BLOCKED, HAND_WHY_GONE);
                else if (!sim->quiet && one_in(sim, 4))
                        tell_outcome(sim, &order, OUTCOME_BLOCKED, whys[below(sim, 5)]);
                else if (!sim->quiet && one_in(sim, 8))
                        tell_outcome(sim, &order, OUTCOME_FAILED, HAND_WHY_UNKILLABLE);
                else
                        tell_outcome(sim, &order, OUTCOME_DONE, HAND_WHY_NONE);
                if (p && p->alive && one_in(sim, 4))
                        somebody_leaves(sim, p);
        }
}

static void answer_looks(struct sim *sim)
{
        for (uint32_t d = 0; d < sim->n_devices; d++)
                if (sim->asked[d] && (sim->quiet || !one_in(sim, 4)))
                        look(sim, d);
}

static void tell_eyes(struct sim *sim, bool answering)
{
        struct input input = { .kind = INPUT_EYES, .eyes = { .answering = answering, .silent_since_ms = sim->now_ms } };

        bool was_silent = answering && !sim->eyes;
        sim->eyes = answering;
        for (uint32_t d = 0; d < sim->n_devices && was_silent; d++)
                sim->devices[d].fresh = false;
        step(sim, &input);
        for (uint32_t i = 0; i < PROCS && was_silent; i++) /* new eyes see everybody for the first time */
                if (sim->procs[i].alive)
                        tell_process(sim, &sim->procs[i]);
}

static void something_happens(struct sim *sim)
{
        sim->now_ms += below(sim, 400);
        struct my_process *p = &sim->procs[below(sim, PROCS)];
        uint64_t dice = below(sim, 116);

        if (dice >= 108) {
                somebody_starts(sim);
        } else if (dice >= 104) {
                somebody_changes(sim);
        } else if (dice >= 100) {
                somebody_adopts(sim, p);
        } else if (dice < 25) {
                if (!one_in(sim, 4))
                        for (uint32_t d = 0; d < sim->n_devices; d++)
                                look(sim, d);
                ask(sim);
        } else if (dice < 35) {
                call(sim, INPUT_RELEASE, some_lease(sim));
                if (one_in(sim, 3)) /* and once more */
                        call(sim, INPUT_RELEASE, some_lease(sim));
        } else if (dice < 45) {
                somebody_starts(sim);
        } else if (dice < 55) {
                if (p->alive) /* it grows, or shrinks */
                        p->bytes = below(sim, 2) ? p->bytes + below(sim, 2 * sim->unit) : below(sim, p->bytes + 1);
        } else if (dice < 62) {
                if (p->alive)
                        somebody_leaves(sim, p);
        } else if (dice < 74) {
                look(sim, (uint32_t) below(sim, sim->n_devices));
        } else if (dice < 88) {
                sim->now_ms += 1000 - sim->now_ms % 1000;
                tick(sim);
        } else if (dice < 89) {
                sim->now_ms += 1000 * below(sim, 900);
                tick(sim);
        } else if (dice < 92) {
                call(sim, INPUT_ACTIVATE, some_lease(sim));
        } else if (dice < 94) {
                call(sim, INPUT_RENEW, some_lease(sim));
        } else if (dice < 96) {
                sim->devices[below(sim, sim->n_devices)].hidden = below(sim, 4) * sim->unit;
        } else if (dice < 97) {
                tell_eyes(sim, !sim->eyes || one_in(sim, 3));
        } else if (dice < 98) {
                uint32_t d = (uint32_t) below(sim, sim->n_devices);
                tell_device(sim, d, one_in(sim, 2) ? DEVICE_OK : one_in(sim, 2) ? DEVICE_LOST : DEVICE_FAULT);
        } else if (dice < 99) {
                struct input input = { .kind = INPUT_RESTART, .restart = { .degraded = one_in(sim, 3) } };
                sim->degraded = input.restart.degraded;
                for (uint32_t d = 0; d < sim->n_devices; d++)
                        sim->devices[d].fresh = false;
                sim->eyes = false; /* the new eyes have not spoken yet */
                for (uint32_t i = 0; i < PROCS; i++)
                        sim->procs[i].n_kill = 0; /* it may have died with the daemon: once more */
                step(sim, &input);
                tell_eyes(sim, true);
        } else {
                struct input input = { .kind = INPUT_CONFIG };
                sim->config.aging_ms = 1000 * (1 + below(sim, 600));
                sim->config.block_after_ms = 1000 * (1 + below(sim, 1800));
                sim->config.ledger_cap_bytes = below(sim, 40) * sim->unit;
                sim->config.n_quotas = 1;
                sim->config.quotas[0] = (struct quota){ .priority_min = 2,
                                                        .leases_max = 30,
                                                        .waiting_max = 10,
                                                        .pins_max = 3,
                                                        .bytes_max = below(sim, 2) * 40 * sim->unit,
                                                        .slot_max_ms = below(sim, 2) * 600000 };
                input.config = sim->config;
                step(sim, &input);
        }
        hands_work(sim);
        answer_looks(sim);
}

/* The most that any of the devices a waiting lease may be on can give. */
static uint64_t capacity_for(const struct sim *sim, uint64_t id)
{
        const struct lease *lease = world_lease_by_id(world, id);
        uint64_t capacity = 0;

        for (uint32_t d = 0; d < sim->n_devices; d++) {
                uint64_t gives = sim->devices[d].total - sim->devices[d].driver;
                if (lease && (lease->devices & (UINT64_C(1) << d)) && gives > capacity)
                        capacity = gives;
        }
        return capacity;
}

/* Everybody goes home; whoever waited must get his turn, and nothing may stay in the books. */
static void everything_ends(struct sim *sim)
{
        sim->quiet = true;
        if (!sim->eyes)
                tell_eyes(sim, true);
        for (uint32_t d = 0; d < sim->n_devices; d++) {
                sim->devices[d].hidden = 0;
                if (!sim->devices[d].healthy)
                        tell_device(sim, d, DEVICE_OK);
        }
        for (int round = 0; round < 3000; round++) {
                uint64_t n_left = 0;
                for (uint32_t i = 0; i < PROCS; i++)
                        if (sim->procs[i].alive)
                                somebody_leaves(sim, &sim->procs[i]);
                sim->now_ms += 1000;
                tick(sim);
                for (uint32_t d = 0; d < sim->n_devices; d++)
                        look(sim, d);
                answer_looks(sim);
                for (uint64_t id = 1; id <= sim->last_lease_id; id++) {
                        struct my_lease *lease = &sim->leases[id];
                        n_left += lease->life != LIFE_ENDED;
                        /* what the driver keeps came to light after it was let in */
                        const struct lease *theirs = world_lease_by_id(world, id); /* an exclusive one's is the whole */
                        uint64_t needs = lease->exclusive && theirs ? theirs->bytes : lease->bytes;
                        bool never = lease->life == LIFE_WAITS && needs > capacity_for(sim, id);
                        if (lease->life != LIFE_GRANTED && lease->life != LIFE_ACTIVE && !never)
                                continue;
                        struct input input = {
                                .kind = INPUT_RELEASE,
                                .call = { .token = ++sim->next_token, .lease_id = id, .uid = lease->uid }
                        };
                        step(sim, &input);
                }
                if (n_left == 0)
                        break;
        }
        for (uint64_t id = 1; id <= sim->last_lease_id; id++)
                if (sim->leases[id].life != LIFE_ENDED) {
                        const struct lease *lease = world_lease_by_id(world, id);
                        give_up(sim, "everything is free, and L%" PRIu64 " of %" PRIu64 " MiB is still %s", id,
                                lease ? lease->bytes >> 20 : 0,
                                lease ? lease_state_name((enum lease_state) lease->state) : "?");
                }
        for (uint32_t i = 0; i < world->n_holders; i++)
                if (world->holders[i].kind != HOLDER_NONE)
                        give_up(sim, "everybody left, and a %s is in the books",
                                holder_kind_name((enum holder_kind) world->holders[i].kind));
        for (uint32_t d = 0; d < sim->n_devices; d++)
                if (device_free_bytes(world, d) != sim->devices[d].total - sim->devices[d].driver)
                        give_up(sim, "device %u: everybody left, and %" PRIu64 " of %" PRIu64 " are free", d,
                                device_free_bytes(world, d), sim->devices[d].total);
        for (uint32_t i = 0; i < world->n_users; i++)
                if (world->users[i].in_use && (world->users[i].held_bytes || world->users[i].n_leases))
                        give_up(sim, "everybody left, and uid %u holds something", world->users[i].uid);
}

/* Memory that nobody touched costs nothing, whatever the C library is told to fill what it gives out with. */
static void *memory_new(size_t size)
{
        void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(memory != MAP_FAILED);
        return memory;
}

/* One life; @garbage is what the list of actions is filled with before it. Returns the hash of all actions. */
static uint64_t play(uint64_t seed, int garbage)
{
        static struct sim sim_memory;
        struct sim *sim = &sim_memory;

        memset(sim, 0, sizeof(*sim));
        sim->seed = sim->random = seed;
        sim->hash = UINT64_C(14695981039346656037);
        sim->now_ms = START_MS;
        sim->next_action_id = 1;
        sim->next_pid = PIDS_FROM;
        sim->unit = one_in(sim, 3) ? 64 : GiB(1);
        config_defaults(&sim->config);
        sim->config.display_bytes = sim->unit;
        sim->config.ledger_cap_bytes = 32 * sim->unit;
        if (one_in(sim, 2)) { /* so that the slow rules have their turn, too */
                sim->config.aging_ms = 20000;
                sim->config.block_after_ms = 30000;
                sim->config.keep_rank_ms = 60000;
                sim->config.usage_forgiven_ms = 40000;
        }
        if (one_in(sim, 4)) {
                sim->config.leases_max = 20;
                sim->config.entries_max = 8;
                sim->config.waiting_per_user_max = 4;
        }
        world = memory_new(sizeof(*world));
        before = memory_new(sizeof(*before));
        out = memory_new(sizeof(*out));
        memset(out, garbage, sizeof(*out));
        world_init(world, &sim->config);

        tell_eyes(sim, true);
        sim->n_devices = 1 + (uint32_t) below(sim, DEVICES);
        for (uint32_t d = 0; d < sim->n_devices; d++) {
                struct my_device *device = &sim->devices[d];
                (void) snprintf(device->uuid, sizeof(device->uuid), "GPU-%u", d);
                device->total = (12 + below(sim, 13)) * sim->unit;
                device->driver = below(sim, 2) * sim->unit / 2;
                tell_device(sim, d, DEVICE_OK);
                sim->quiet = true;
                look(sim, d);
                sim->quiet = false;
        }
        for (int i = 0; i < STEPS; i++)
                something_happens(sim);
        everything_ends(sim);

        grants_seen += sim->n_grants;
        waits_seen += sim->n_waits;
        refusals_seen += sim->n_refusals;
        drains_seen += sim->n_drains;
        backfills_seen += sim->n_backfills;
        asides_seen += sim->n_stepped;
        ends_seen += sim->n_ends;
        adopted_seen += sim->n_adopted;
        let_go_seen += sim->n_let_go;
        exclusive_seen += sim->n_exclusive;
        changed_seen += sim->n_changed;
        orders_seen += sim->n_orders;
        kills_seen += sim->n_kills;
        learned_seen += sim->n_learned;
        assert_int_equal(munmap(world, sizeof(*world)) + munmap(before, sizeof(*before)) + munmap(out, sizeof(*out)),
                         0);
        return sim->hash;
}

static uint64_t n_seeds = 200, first_seed = 1;

static void S25_random_lives_never_do_what_must_never_happen(void **state)
{
        (void) state;
        for (uint64_t seed = first_seed; seed < first_seed + n_seeds; seed++)
                if (play(seed, 0) != play(seed, 0xa5))
                        fail_msg("seed %" PRIu64 ": the same inputs gave other actions", seed);
        print_message("# %" PRIu64 " granted, %" PRIu64 " queued, %" PRIu64 " refused, %" PRIu64 " drained, %" PRIu64
                      " ended, %" PRIu64 " heads stepped aside\n",
                      grants_seen, waits_seen, refusals_seen, drains_seen, ends_seen, asides_seen);
        print_message("# %" PRIu64 " exclusive, %" PRIu64 " adopted, %" PRIu64 " let go, %" PRIu64 " changed, %" PRIu64
                      " orders to the hands, %" PRIu64 " of them to kill, %" PRIu64 " sized by earlier runs\n",
                      exclusive_seen, adopted_seen, let_go_seen, changed_seen, orders_seen, kills_seen, learned_seen);
        /* A generator that never gets anywhere near the rules proves nothing. */
        if (n_seeds >= 50)
                assert_true(grants_seen > 10 * n_seeds && waits_seen > 10 * n_seeds && drains_seen > n_seeds &&
                            backfills_seen > 0 && exclusive_seen > 0 && adopted_seen > n_seeds && let_go_seen > 0 &&
                            changed_seen > n_seeds && orders_seen > n_seeds && kills_seen > 0 && learned_seen > 0);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(S25_random_lives_never_do_what_must_never_happen),
        };
        if (argc > 1)
                n_seeds = strtoull(argv[1], NULL, 10);
        if (argc > 2)
                first_seed = strtoull(argv[2], NULL, 10);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
