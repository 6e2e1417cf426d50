/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessord/hands.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "arbiter/park.h"
#include "base/log.h"
#include "programs/lessord/daemon.h"
#include "programs/lessord/launcher.h"
#include "programs/lessord/libexec.h"
#include "programs/lessord/lost_order.h"
#include "programs/lessord/records.h"

#define SYSTEM_SOCKET "/run/lessor/warden.sock"

/* ---- what came of an order ---- */

static enum hand_why why_of(enum warden_why why)
{
        switch (why) {
        case WARDEN_WHY_NONE:
                return HAND_WHY_NONE;
        case WARDEN_WHY_GONE:
        case WARDEN_WHY_RECYCLED:
                return HAND_WHY_GONE;
        case WARDEN_WHY_OTHER_OWNER:
        case WARDEN_WHY_UID_NOT_ALLOWED:
                return HAND_WHY_OWNER;
        case WARDEN_WHY_PROTECTED_INIT:
        case WARDEN_WHY_PROTECTED_KERNEL:
        case WARDEN_WHY_PROTECTED_LESSOR:
        case WARDEN_WHY_PROTECTED_PROGRAM:
                return HAND_WHY_PROTECTED;
        case WARDEN_WHY_NO_GRACE:
                return HAND_WHY_GRACE;
        case WARDEN_WHY_RATE:
        case WARDEN_WHY_BUSY:
                return HAND_WHY_RATE;
        case WARDEN_WHY_KERNEL_TOO_OLD:
                return HAND_WHY_KERNEL;
        case WARDEN_WHY_UNKILLABLE:
                return HAND_WHY_UNKILLABLE;
        case WARDEN_WHY_LOST:
        case WARDEN_WHY_AWAY:
                return HAND_WHY_AWAY;
        case WARDEN_WHY_STATE:
        case WARDEN_WHY_DEVICE:
        case WARDEN_WHY_RECORD:
                return HAND_WHY_STATE;
        case WARDEN_WHY_PARKED:
                return HAND_WHY_PARKED;
        case WARDEN_WHY_LOCK_TIMEOUT:
        case WARDEN_WHY_STANDS_STILL:
                return HAND_WHY_LOCK_TIMEOUT;
        case WARDEN_WHY_HEADROOM:
                return HAND_WHY_HEADROOM;
        case WARDEN_WHY_CANNOT_MACHINE:
        case WARDEN_WHY_CANNOT_LIBRARY:
        case WARDEN_WHY_CANNOT_DRIVER:
        case WARDEN_WHY_CANNOT_PROCESS:
        case WARDEN_WHY_CANNOT_INIT:
        case WARDEN_WHY_CANNOT_PERMITTED:
        case WARDEN_WHY_CANNOT_SUPPORTED:
                return HAND_WHY_CANNOT;
        case WARDEN_WHY_FINAL:
        case WARDEN_WHY_DRIVER:
        case WARDEN_WHY_NO_EFFECT:
                return HAND_WHY_DRIVER;
        case WARDEN_WHY_UNSEEN:
        case WARDEN_WHY_VERB:
        case WARDEN_WHY_SIGNAL:
        case WARDEN_WHY_NO_CGROUP:
        case WARDEN_WHY_CGROUP_NOT_MEMBER:
        case WARDEN_WHY_CGROUP_NOT_OURS:
        case WARDEN_WHY_CGROUP_HAS_OTHERS:
        case WARDEN_WHY_SYSTEM:
        case WARDEN_WHY_NOT_FROZEN:
        case WARDEN_WHY_N:
                break;
        }
        return HAND_WHY_OTHER;
}

static bool parks(enum hand_verb verb)
{
        return verb >= HAND_LOCK && verb < HAND_VERB_N;
}

/*
 * Of a signal "lost" is not known to have been tried: it counts as what could not be (a second SIGTERM harms nobody), and what
 * did not end is the one thing that was tried and went wrong. Parking keeps the hands' word: failed is final there.
 */
static enum outcome outcome_of(enum hand_verb verb, const struct warden_answer *a)
{
        if (a->result == WARDEN_DONE)
                return OUTCOME_DONE;
        if (a->result == WARDEN_FAILED && (parks(verb) || a->why == WARDEN_WHY_UNKILLABLE))
                return OUTCOME_FAILED;
        return OUTCOME_BLOCKED;
}

static struct hands_order *find_order(struct hands *h, uint64_t id)
{
        for (uint32_t i = 0; i < HANDS_ORDERS_MAX; i++)
                if (h->orders[i].id == id)
                        return &h->orders[i];
        return NULL;
}

/* One of a daemon before this one, whose process the world still waits for. */
static bool find_in_world(const struct world *w, uint64_t id, struct hands_order *ret)
{
        for (uint32_t i = 0; i < w->n_processes; i++) {
                const struct process *p = &w->processes[i];
                if (p->order_id != id)
                        continue;
                const struct lease *lease =
                        p->lease.index < w->n_leases ? &w->leases[p->lease.index] : NULL; /* only for its id */
                *ret = (struct hands_order){ .id = id,
                                             .lease_id = lease ? lease->id : 0,
                                             .process = p->identity,
                                             .verb = lost_order_verb((enum member_step) p->member) };
                return true;
        }
        return false;
}

static void submit_outcome(struct daemon *d, const struct hands_order *order, const struct hand_outcome *outcome)
{
        struct input input = { .kind = INPUT_OUTCOME, .outcome = *outcome };

        input.outcome.order_id = order->id;
        input.outcome.lease_id = order->lease_id;
        input.outcome.process = order->process;
        daemon_submit(d, &input);
}

static void on_outcome(void *ctx, const struct warden_answer *a)
{
        struct daemon *d = ctx;
        struct hands_order *row = find_order(&d->hands, a->order_id), order;

        if (unseen_answer(d, a, hands_link_path(d->hands.link)))
                return;
        log_info("event=hands-outcome order=%" PRIu64 " result=%s why=%s errno=%d driver_code=%u took_ms=%u",
                 a->order_id, warden_result_name(a->result), warden_why_name(a->why), a->error, a->driver_code,
                 a->duration_ms);
        if (row) {
                order = *row;
                *row = (struct hands_order){ 0 };
        } else if (!find_in_world(d->world, a->order_id, &order)) { /* its core has gone on by time */
                hands_link_settled(d->hands.link, a->order_id);
                return;
        }
        if (parks(order.verb) && a->why == WARDEN_WHY_LOST && find_in_world(d->world, a->order_id, &order)) {
                hands_link_settled(d->hands.link, a->order_id);
                d->hands.resolve = true; /* the record tells more */
                hands_resolve(d);
                return;
        }
        facts_heard(d, a->why);
        submit_outcome(d, &order,
                       &(struct hand_outcome){ .outcome = (uint8_t) outcome_of(order.verb, a),
                                               .why = (uint8_t) why_of(a->why),
                                               .host_bytes = a->host_bytes });
}

/* ---- orders that nobody knows any more ---- */

static bool outcome_waits(const struct daemon *d, uint64_t order_id)
{
        for (size_t i = 0; i < d->inputs.n; i++)
                if (d->inputs.items[i].kind == INPUT_OUTCOME && d->inputs.items[i].outcome.order_id == order_id)
                        return true;
        return false;
}

static bool is_known(const struct daemon *d, uint64_t order_id)
{
        return (d->hands.link && hands_link_knows(d->hands.link, order_id)) || outcome_waits(d, order_id);
}

bool hands_work_on(const struct daemon *d, struct identity who)
{
        const struct process *p = world_process_find(d->world, who);
        return p && p->order_id != 0 && is_known(d, p->order_id);
}

static void resolve_one(struct daemon *d, const struct process *p)
{
        struct hand_outcome outcome = { 0 };
        struct hands_order order;

        if (p->order_id == 0 || is_known(d, p->order_id) || !find_in_world(d->world, p->order_id, &order))
                return;
        records_judge(d, order.verb, p->identity, &outcome);
        log_warning("event=order-lost order=%" PRIu64 " pid=%u verb=%s record_says=%s why=%s", order.id,
                    p->identity.pid, hand_verb_name(order.verb), outcome_name((enum outcome) outcome.outcome),
                    hand_why_name((enum hand_why) outcome.why));
        submit_outcome(d, &order, &outcome);
}

/*
 * Not before the world is what the disk has: an order of a batch that is being written has not been given yet, and would pass
 * for one that was lost. The records first: what they say is how things stand.
 */
void hands_resolve(struct daemon *d)
{
        if (!d->hands.resolve || !hands_are_up(d) || d->store_failed || !turn_is_settled(d))
                return;
        d->hands.resolve = false;
        records_tell(d);
        for (uint32_t i = 0; i < d->world->n_processes; i++)
                resolve_one(d, &d->world->processes[i]);
}

static void on_state(void *ctx, bool up, const char *words)
{
        struct daemon *d = ctx;

        d->hands.resolve = up;
        facts_look_soon(d);
        hands_resolve(d);
        if (up)
                unseen_wake(d);
        if (d->hands.told && d->hands.was_up == up)
                return;
        d->hands.told = true;
        d->hands.was_up = up;
        log_line(up ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "event=hands-%s words=\"%s\"", up ? "up" : "away", words);
}

void hands_settle(struct daemon *d, const struct inputs *stored)
{
        for (size_t i = 0; d->hands.link && i < stored->n; i++)
                if (stored->items[i].kind == INPUT_OUTCOME)
                        hands_link_settled(d->hands.link, stored->items[i].outcome.order_id);
}

/* ---- orders ---- */

static enum warden_verb verb_of(enum hand_verb verb)
{
        switch (verb) {
        case HAND_SIGNAL:
                return WARDEN_SIGNAL;
        case HAND_KILL_TREE:
                return WARDEN_KILL_TREE;
        case HAND_FREEZE:
                return WARDEN_FREEZE;
        case HAND_THAW:
                return WARDEN_THAW;
        case HAND_LOCK:
                return WARDEN_LOCK;
        case HAND_CHECKPOINT:
                return WARDEN_CHECKPOINT;
        case HAND_STOP:
                return WARDEN_STOP;
        case HAND_RESTORE:
                return WARDEN_RESTORE;
        case HAND_UNLOCK:
                return WARDEN_UNLOCK;
        case HAND_HOLD:
                return WARDEN_HOLD;
        case HAND_NONE:
        case HAND_VERB_N:
                break;
        }
        return WARDEN_VERB_NONE;
}

static void blocked(struct daemon *d, const struct action *a, enum hand_why why)
{
        const struct hands_order order = { .id = a->id, .lease_id = a->lease_id, .process = a->process };

        submit_outcome(d, &order, &(struct hand_outcome){ .outcome = OUTCOME_BLOCKED, .why = (uint8_t) why });
}

/* Of a gang: on which of its devices a process has the most; its record names that one, and the hands look at it once more before it
 * is restored. At the others the core has looked (thaw_keeps_waiting()). */
static uint32_t main_part(struct world *w, const struct lease *lease, struct identity identity)
{
        const struct process *p = lease && lease->n_more != 0 ? world_process_find(w, identity) : NULL;
        uint32_t most = 0;

        for (uint32_t i = 1; p && i < lease_n_parts(lease); i++)
                if (p->part_bytes[i] > p->part_bytes[most])
                        most = i;
        return most;
}

/* What only an order that parks says. False: its device has no uuid that the driver could be told. */
static bool add_parking(const struct daemon *d, const struct action *a, struct warden_order *order)
{
        const struct lease *lease = world_lease_by_id(d->world, a->lease_id);
        uint64_t deadline_ms = a->wait_ms ? a->wait_ms : d->conf.core.lock_ms;

        uint32_t part = main_part(d->world, lease, a->process);
        uint32_t device = lease && part != 0 ? lease_part(lease, part).device : a->device;

        if (device >= d->world->n_devices || !record_uuid_parse(d->world->devices[device].uuid, order->device_uuid))
                return false;
        order->lease_id = a->lease_id;
        order->bytes = a->bytes;
        if (a->hand == HAND_RESTORE)
                order->used_at_most_bytes =
                        part == 0 ? a->limit_bytes
                                  : thaw_limit_bytes(d->world, lease, world_process_find(d->world, a->process), part);
        if (a->hand == HAND_LOCK || a->hand == HAND_HOLD)
                order->deadline_ms =
                        deadline_ms < WARDEN_DEADLINE_MOST_MS ? (uint32_t) deadline_ms : WARDEN_DEADLINE_MOST_MS;
        if (a->no_stop || (lease && lease->no_stop))
                order->flags |= WARDEN_FLAG_NO_STOP;
        if (lease && lease->filler)
                order->flags |= WARDEN_FLAG_FILLER;
        return true;
}

void hands_act(struct daemon *d, const struct action *a)
{
        struct hands *h = &d->hands;
        struct warden_order order = {
                .order_id = a->id,
                .verb = verb_of((enum hand_verb) a->hand),
                .signal = a->hand == HAND_SIGNAL ? a->signal : 0,
                .pid = a->process.pid,
                .start_ticks = a->process.start_ticks,
                .owner_uid = a->uid,
                .pidfd_inode = owners_pidfd_inode(&d->roots, a->process),
                .cgroup_id = a->cgroup_id, /* also of a signal: whoever is left of the tree later was given its grace */
                .reason = a->why.rule,
        };
        struct hands_order *row = find_order(h, 0);

        if (!h->link || !row) {
                blocked(d, a, h->link ? HAND_WHY_RATE : HAND_WHY_AWAY);
                return;
        }
        if (a->lease_id == 0) { /* of a stranger: only who is held since his notice (F48) */
                order.pidfd_inode = parked_watch_pidfd_inode(&d->parked, a->process);
                if (order.pidfd_inode == 0) {
                        blocked(d, a, HAND_WHY_OTHER);
                        return;
                }
        }
        if (parks((enum hand_verb) a->hand)) {
                order.pidfd_inode =
                        order.pidfd_inode ? order.pidfd_inode : parked_watch_pidfd_inode(&d->parked, a->process);
                order.cgroup_id = 0; /* one process each */
                if (!add_parking(d, a, &order)) {
                        blocked(d, a, HAND_WHY_CANNOT);
                        return;
                }
        }
        *row = (struct hands_order){
                .id = a->id, .lease_id = a->lease_id, .process = a->process, .verb = (enum hand_verb) a->hand
        };
        hands_link_order(h->link, &order);
}

void hands_look_at(struct daemon *d, const struct warden_order *order, const char *path)
{
        hands_link_look(d->hands.link, order, path);
}

/* ---- life ---- */

enum { FOLDER_SIZE = sizeof(((struct paths *) 0)->run_dir) + 8 };

static void own_folder(const struct daemon *d, char ret[FOLDER_SIZE])
{
        (void) snprintf(ret, FOLDER_SIZE, "%s/warden", d->paths.run_dir);
}

void hands_prepare(struct daemon *d)
{
        char program[PATH_MAX], dir[FOLDER_SIZE];
        struct error err = { 0 };

        d->hands.launcher = -1;
        if (d->paths.mode == PATHS_SYSTEM)
                return;
        own_folder(d, dir);
        if (libexec_find("lessor-warden", program, &err) < 0 ||
            launcher_start(program, dir, &d->hands.launcher, &err) < 0) {
                d->hands.launcher = -1;
                (void) snprintf(d->hands.words, sizeof(d->hands.words), "%s", err.msg);
                log_warning("event=no-hands words=\"%s\"", err.msg);
        }
}

int hands_start(struct daemon *d, struct error *err)
{
        struct hands *h = &d->hands;
        char program[PATH_MAX] = "", dir[FOLDER_SIZE];
        struct hands_host host = { .ctx = d, .on_outcome = on_outcome, .on_state = on_state };
        struct hands_options options = { .version = LESSORD_VERSION };

        own_folder(d, dir);
        if (d->paths.mode == PATHS_SYSTEM) {
                options.socket = SYSTEM_SOCKET;
        } else if (h->launcher < 0 || libexec_find("lessor-warden", program, NULL) < 0) {
                return 0; /* said already; leases alone need none */
        } else {
                options.program = program;
                options.dir = dir;
                options.has_launcher = true;
                options.launcher = h->launcher;
        }
        int r = hands_link_new(&h->link, &d->loop, &options, &host, err);
        if (r < 0)
                return r;
        hands_link_start(h->link);
        return 0;
}

bool hands_can_checkpoint(const struct daemon *d)
{
        return d->hands.link && (hands_link_can(d->hands.link) & WARDEN_CAN_CHECKPOINT) != 0;
}

bool hands_are_up(const struct daemon *d)
{
        return d->hands.link && hands_link_is_up(d->hands.link);
}

const char *hands_words(const struct daemon *d)
{
        return d->hands.link ? hands_link_words(d->hands.link) : d->hands.words;
}

void hands_stop(struct daemon *d)
{
        if (d->hands.link)
                hands_link_stop(d->hands.link);
}

void hands_free(struct daemon *d)
{
        hands_link_free(d->hands.link);
        d->hands.link = NULL;
        if (d->hands.launcher >= 0)
                (void) close(d->hands.launcher);
        d->hands.launcher = -1;
}
