/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>
#include "arbiter/actions.h"
#include "arbiter/attribute.h"
#include "arbiter/lane.h"
#include "arbiter/life.h"
#include "arbiter/park.h"
#include "arbiter/reading.h"
#include "arbiter/usage.h"
#include "base/number.h"

static bool before(struct identity a, struct identity b)
{
        return a.pid != b.pid ? a.pid < b.pid : a.start_ticks < b.start_ticks;
}

/* Where the rows of @device begin in the table, or would. */
static uint32_t rows_begin(const struct world *w, uint32_t device)
{
        uint32_t low = 0, high = w->n_occupancies;

        while (low < high) {
                uint32_t mid = low + (high - low) / 2;
                if (w->occupancies[mid].device < device)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

/* Where the rows of @device stand in the table: [*ret_start, return). */
static uint32_t rows_of_device(const struct world *w, uint32_t device, uint32_t *ret_start)
{
        *ret_start = rows_begin(w, device);
        return rows_begin(w, device + 1);
}

/* Nobody has watched it since the eyes or the daemon came back: by now the number may be another's. */
static bool end_may_have_been_missed(struct world *w, struct identity identity)
{
        const struct process *p = world_process_find(w, identity);
        return p && p->state == PROCESS_UNCONFIRMED;
}

/* A pid that /proc does not name any more (it is dying, or hidden) is who it was at the last look, if somebody was. */
static struct identity named(struct world *w, uint32_t start, uint32_t end, struct identity identity)
{
        for (uint32_t i = start; i < end && identity.start_ticks == 0; i++)
                if (w->occupancies[i].identity.pid == identity.pid) {
                        /* The youngest of that number stands last. */
                        while (i + 1 < end && w->occupancies[i + 1].identity.pid == identity.pid)
                                i++;
                        struct identity was = w->occupancies[i].identity;
                        return end_may_have_been_missed(w, was) ? identity : was;
                }
        return identity;
}

/*
 * What rows are sorted by, with where they are: the pid above, the row below. A row goes in where a search finds its place,
 * without a branch that depends on what it is: the driver's order is its own, and a guess would be wrong every other time.
 */
static uint64_t key_of(uint32_t pid, uint32_t row)
{
        return (uint64_t) pid << 32 | row;
}

static void insert_key(uint64_t *keys, uint32_t n, uint64_t key)
{
        uint32_t at = 0, left = n;

        if (n == 0 || keys[n - 1] < key) { /* sorted already, as far as it is */
                keys[n] = key;
                return;
        }
        while (left > 1) {
                uint32_t half = left / 2;
                at += keys[at + half - 1] < key ? half : 0;
                left -= half;
        }
        at += keys[at] < key;
        memmove(&keys[at + 1], &keys[at], (n - at) * sizeof(*keys));
        keys[at] = key;
}

/* A pid that was given out again while the old one is still listed: by start time, which the key has no room for. */
static void sort_same_pids(uint64_t *keys, const struct identity *identities, uint32_t n)
{
        for (uint32_t i = 1; i < n; i++) {
                uint64_t key = keys[i];
                uint32_t at = i;
                for (; at > 0 && keys[at - 1] >> 32 == key >> 32 &&
                       before(identities[(uint32_t) key], identities[(uint32_t) keys[at - 1]]);
                     at--)
                        keys[at] = keys[at - 1];
                keys[at] = key;
        }
}

/* Copy, sort by identity, merge what is listed twice: with the larger figure, never the sum (a pid can be in the compute
 * and the graphics list at once). Returns how many. */
static uint32_t sort_rows(struct world *w, const struct reading *reading, uint32_t device, uint32_t start, uint32_t end,
                          uint32_t max, struct occupancy rows[ROWS_MAX])
{
        uint64_t keys[ROWS_MAX];
        struct identity identities[ROWS_MAX];
        uint32_t n_keys = reading->n_rows < max ? reading->n_rows : max;
        uint32_t n = 0;

        for (uint32_t i = 0; i < n_keys; i++) {
                identities[i] = named(w, start, end, reading->rows[i].identity);
                insert_key(keys, i, key_of(identities[i].pid, i));
        }
        sort_same_pids(keys, identities, n_keys);
        for (uint32_t i = 0; i < n_keys; i++) {
                const struct occupancy *row = &reading->rows[(uint32_t) keys[i]];
                struct identity identity = identities[(uint32_t) keys[i]];
                if (n > 0 && identity_equal(rows[n - 1].identity, identity)) {
                        struct occupancy *same = &rows[n - 1];
                        bool known = (same->flags & row->flags & ROW_USED_KNOWN) != 0;
                        same->used_bytes = u64_max(same->used_bytes, row->used_bytes);
                        uint32_t both = same->flags & row->flags & ROW_RESTED;
                        same->flags = ((same->flags | row->flags) & ~(uint32_t) (ROW_USED_KNOWN | ROW_RESTED)) | both |
                                      (known ? (uint32_t) ROW_USED_KNOWN : 0);
                        continue;
                }
                rows[n] = *row;
                rows[n].identity = identity;
                rows[n].device = device;
                rows[n++].holder = (struct ref){ 0 };
        }
        return n;
}

/* What was known of a row before: its process, and who held its memory at the last look. */
struct known {
        struct process *process;
        struct ref old;
};

/* Rows and tables are sorted alike, so each is walked once. */
static void find_known(struct world *w, uint32_t start, uint32_t end, const struct occupancy *rows, uint32_t n,
                       struct known known[ROWS_MAX])
{
        uint32_t at = start, process_at = 0;

        for (uint32_t i = 0; i < n; i++) {
                while (at < end && before(w->occupancies[at].identity, rows[i].identity))
                        at++;
                bool was_there = at < end && identity_equal(w->occupancies[at].identity, rows[i].identity);
                known[i].old = was_there ? w->occupancies[at].holder : (struct ref){ 0 };
                known[i].process = world_process_find_from(w, rows[i].identity, &process_at);
        }
}

static struct holder *display_of(struct world *w, uint32_t device)
{
        struct holder *h = NULL;

        world_each_holder_of (w, i, HOLDER_DISPLAY)
                if (!h && w->holders[i].device == device)
                        h = &w->holders[i];
        if (!h)
                h = world_holder_new(w, HOLDER_DISPLAY, device);
        assert(h); /* the table is sized for it */
        h->reserved_bytes = w->config.display_bytes;
        return h;
}

static void say_stranger(struct world *w, struct actions *out, const struct holder *h, uint32_t uid, enum rule rule)
{
        if (!out || !actions_have_room(out, 1))
                return;

        struct action *a = actions_add(w, out, ACTION_STRANGER);
        a->device = h->device;
        a->uid = uid;
        a->process = h->process;
        a->bytes = h->used_bytes;
        a->why = (struct reason){ .rule = (uint16_t) rule, .used_bytes = h->used_bytes };
}

static struct holder *stranger_of(struct world *w, struct ref old, const struct occupancy *row, bool *ret_new)
{
        struct holder *h = world_holder_get(w, old);

        *ret_new = false;
        if (h && h->kind == HOLDER_STRANGER && identity_equal(h->process, row->identity))
                return h;
        h = world_holder_new(w, HOLDER_STRANGER, row->device);
        assert(h); /* the table is sized for every occupancy there can be */
        h->process = row->identity;
        *ret_new = true;
        return h;
}

static void warn_misplaced(struct world *w, struct lease *lease, const struct occupancy *row, struct actions *out)
{
        if (lease->misplaced || lease->adopted || !actions_have_room(out, 1))
                return;

        lease->misplaced = true;
        struct action *a =
                actions_add_lease(w, out, ACTION_WARNING, lease,
                                  &(struct reason){ .rule = RULE_OTHER_DEVICE, .used_bytes = row->used_bytes });
        a->device = row->device;
        a->process = row->identity;
}

/* The lease whose memory this was at the last look, or whose process it is known to be. A draining lease keeps what it has
 * only while no living one claims the process: who asked again has it under the new lease. */
static struct holder *known_holder_for(struct world *w, const struct occupancy *row, const struct known *known)
{
        struct process *process = known->process;
        struct holder *before = world_holder_get(w, known->old);
        struct lease *lease = process ? world_lease_get(w, process->lease) : NULL;

        if (lease && lease_is_on(lease, row->device) && lease->state != LEASE_DRAINING)
                return world_part_on(w, lease, row->device);
        if (!before || before->kind != HOLDER_LEASE)
                return NULL;

        struct lease *held = world_lease_get(w, before->lease);
        if (!held || held->state != LEASE_DRAINING || !process)
                return before;
        uint8_t by;
        const struct lease *again = world_lease_get(w, attribute_process(w, process, row->device, &by));
        return again && lease_is_on(again, row->device) ? NULL : before;
}

/* Whose is this memory, that nobody is known to have? */
static struct holder *holder_for(struct world *w, struct occupancy *row, const struct known *known, struct actions *out,
                                 bool *ret_new_stranger)
{
        struct process *process = known->process;
        struct lease *lease = process ? world_lease_get(w, process->lease) : NULL;

        if (process) {
                uint8_t by;
                struct ref found = attribute_process(w, process, row->device, &by);
                struct lease *better = world_lease_get(w, found);
                if (better && (!lease || lease->state == LEASE_DRAINING)) {
                        lease = better;
                        process_put_under(process, found, by);
                } else if (better && lease_is_on(better, row->device)) {
                        lease = better; /* it has a lease on each of its cards */
                }
        }
        if (lease && lease_is_on(lease, row->device))
                return world_part_on(w, lease, row->device);
        if (!lease && (row->flags & ROW_GRAPHICS) && !(row->flags & ROW_COMPUTE))
                return display_of(w, row->device);

        struct holder *stranger = stranger_of(w, known->old, row, ret_new_stranger);
        if (lease) {
                stranger->lease = world_lease_ref(w, lease);
                warn_misplaced(w, lease, row, out);
        }
        return stranger;
}

static uint8_t activity_of(const struct occupancy *row)
{
        if (row->flags & ROW_WORKED)
                return HOLDER_WORKED;
        return row->flags & ROW_RESTED ? HOLDER_RESTED : HOLDER_ACTIVITY_UNKNOWN;
}

static void account(struct holder *h, const struct occupancy *row)
{
        h->n_processes++;
        h->used_bytes += row->used_bytes;
        if (!(row->flags & ROW_USED_KNOWN))
                h->used_known = false;
        uint8_t did = activity_of(row);
        if (h->n_processes == 1 || did == HOLDER_WORKED)
                h->activity = did;
        else if (h->activity != HOLDER_WORKED && h->activity != did)
                h->activity = HOLDER_ACTIVITY_UNKNOWN;
}

static void clear_figures(struct world *w, uint32_t device, bool per_process_known)
{
        world_each_holder_on (w, i, device) {
                struct holder *h = &w->holders[i];
                if (h->kind == HOLDER_CLAIM)
                        continue;
                h->used_bytes = 0;
                h->n_processes = 0;
                h->activity = HOLDER_ACTIVITY_UNKNOWN;
                h->used_known = per_process_known || h->uncollected;
        }
}

/* Strangers and displays that are not listed any more. */
static void drop_absent(struct world *w, uint32_t device, struct actions *out)
{
        world_each_holder_on (w, i, device) {
                struct holder *h = &w->holders[i];
                if (h->n_processes != 0)
                        continue;
                if (h->kind == HOLDER_STRANGER) {
                        const struct process *p = world_process_find(w, h->process);
                        if (!p || ref_is_none(p->lease) || !ref_is_none(h->lease)) /* else it came under a lease */
                                say_stranger(w, out, h, p ? p->uid : UINT32_MAX, RULE_STRANGER_GONE);
                        world_holder_drop(w, h);
                } else if (h->kind == HOLDER_DISPLAY) {
                        world_holder_drop(w, h);
                }
        }
}

static bool is_listed(struct world *w, struct identity identity)
{
        for (uint32_t d = 0; d < w->n_devices; d++)
                if (world_occupancy_find(w, d, identity))
                        return true;
        return false;
}

/* Facts of processes that are gone, or were never seen again, and hold nothing. */
static void forget_processes(struct world *w)
{
        for (uint32_t i = w->n_processes; i > 0; i--) {
                const struct process *p = &w->processes[i - 1];
                if (p->state != PROCESS_LIVE && (p->state == PROCESS_ENDED || p->member == MEMBER_RUNNING) &&
                    !is_listed(w, p->identity)) /* who is parked is in no list */
                        world_process_drop(w, p->identity);
        }
}

static void replace_rows(struct world *w, uint32_t start, uint32_t end, const struct occupancy *rows, uint32_t n)
{
        uint32_t tail = w->n_occupancies - end;

        memmove(&w->occupancies[start + n], &w->occupancies[end], tail * sizeof(w->occupancies[0]));
        if (n != 0)
                memcpy(&w->occupancies[start], rows, n * sizeof(w->occupancies[0]));
        uint32_t n_now = start + n + tail;
        if (n_now < w->n_occupancies)
                memset(&w->occupancies[n_now], 0, (w->n_occupancies - n_now) * sizeof(w->occupancies[0]));
        w->n_occupancies = n_now;
}

/* What the driver keeps for itself: what is used with no process listed. One such look may be a lag behind a process that
 * just left, so it takes two alike; the first look at a device is believed, and any smaller figure later. */
static void learn_driver_own(struct device *dev, const struct reading *r, uint32_t n_rows_before)
{
        if (!r->used_known || !r->per_process_known || !r->settled || r->n_rows != 0)
                return;
        if (dev->driver_own_known) {
                dev->driver_own_bytes = u64_min(dev->driver_own_bytes, r->used_bytes);
        } else if (dev->reading_ms == 0 || (n_rows_before == 0 && dev->used_bytes == r->used_bytes)) {
                dev->driver_own_known = true;
                dev->driver_own_bytes = r->used_bytes;
        }
}

/* What is used and listed for nobody cannot be less than what the driver keeps. */
static void correct_driver_own(struct world *w, uint32_t device)
{
        struct device *dev = &w->devices[device];
        uint64_t listed = 0;

        if (!dev->driver_own_known || !dev->used_known || !dev->settled)
                return;
        world_each_holder_on (w, i, device) {
                const struct holder *h = &w->holders[i];
                if (!h->used_known)
                        return;
                listed = u64_add_sat(listed, h->used_bytes);
        }
        dev->driver_own_bytes = u64_min(dev->driver_own_bytes, u64_sub0(dev->used_bytes, listed));
}

/* Who has no lease and becomes more does so without a word: nothing is restored beside it for a moment (D7). What an idle
 * lease's figure does while it is idle is work. */
static void watch_foreign(struct world *w, uint32_t device)
{
        struct device *dev = &w->devices[device];
        uint64_t bytes = 0;

        world_each_holder_on (w, i, device)
                if (w->holders[i].kind == HOLDER_STRANGER)
                        bytes = u64_add_sat(bytes, w->holders[i].used_bytes);
        if (bytes > dev->foreign_bytes)
                dev->foreign_grew_ms = w->now_ms != 0 ? w->now_ms : 1;
        dev->foreign_bytes = bytes;
}

void reading_step(struct world *w, const struct reading *r, struct actions *out)
{
        struct occupancy rows[ROWS_MAX];
        struct known known[ROWS_MAX];
        bool is_new[ROWS_MAX];
        uint32_t device, start;
        struct device *dev = world_device_by_uuid(w, r->uuid, &device);
        if (!dev || dev->health == DEVICE_LOST || r->taken_ms < dev->reading_ms)
                return; /* the eyes name devices before they read them; one that is unknown here was refused as too many,
                           and a lost one shows nothing until it is said to be back */

        uint32_t end = rows_of_device(w, device, &start);
        learn_driver_own(dev, r, end - start);
        if (r->used_known)
                dev->total_bytes = r->total_bytes;
        dev->used_known = r->used_known;
        dev->used_bytes = r->used_known ? r->used_bytes : 0;
        dev->per_process_known = r->per_process_known;
        dev->settled = r->settled;
        dev->reading_ms = r->taken_ms;
        if (device_is_fresh(w, device) ||
            !r->settled) /* what comes too late is not followed by the next order at once */
                dev->read_asked_ms = 0;

        uint32_t room = OCCUPANCIES_MAX - (w->n_occupancies - (end - start));
        uint32_t n = sort_rows(w, r, device, start, end, room < ROWS_MAX ? room : ROWS_MAX, rows);
        find_known(w, start, end, rows, n, known);
        clear_figures(w, device, r->per_process_known);
        /* First what is known, so that what is new goes to the lease that has the most untaken then. */
        for (uint32_t i = 0; i < n; i++) {
                struct holder *h = known_holder_for(w, &rows[i], &known[i]);
                is_new[i] = false;
                if (h) {
                        account(h, &rows[i]);
                        rows[i].holder = world_holder_ref(w, h);
                }
        }
        for (uint32_t i = 0; i < n; i++) {
                if (!ref_is_none(rows[i].holder))
                        continue;
                struct holder *h = holder_for(w, &rows[i], &known[i], out, &is_new[i]);
                account(h, &rows[i]);
                rows[i].holder = world_holder_ref(w, h);
        }
        world_figures_changed(w, device);
        replace_rows(w, start, end, rows, n);
        for (uint32_t i = 0; i < n; i++)
                if (is_new[i]) {
                        const struct process *p = known[i].process;
                        say_stranger(w, out, world_holder_get(w, rows[i].holder), p ? p->uid : UINT32_MAX,
                                     RULE_STRANGER_SEEN);
                }
        correct_driver_own(w, device);
        drop_absent(w, device, out);
        forget_processes(w);
        watch_foreign(w, device);
        life_after_reading(w, device, out);
        park_after_reading(w, device, out);
}

/* What it was first seen to run stays, as long as its program is the same: its command line is its own, to change as it likes. */
static void keep_what_it_runs(const struct process *known, struct process *p)
{
        if (p->program == 0) /* not seen this time */
                p->program = known->program;
        if (p->program == 0 || p->program != known->program || known->runs == RUNS_UNKNOWN)
                return;
        p->runs = known->runs;
        p->script = known->script;
        p->command = known->command;
}

void reading_process(struct world *w, const struct process *facts)
{
        struct process *known = world_process_find(w, facts->identity);
        struct process process = *facts;

        process.state = PROCESS_LIVE;
        process.lease = known ? known->lease : (struct ref){ 0 };
        process.term_ms = known ? known->term_ms : 0;
        process.kill_ms = known ? known->kill_ms : 0;
        process.member = known ? known->member : MEMBER_RUNNING;
        process.order_id = known ? known->order_id : 0;
        process.device_bytes = known ? known->device_bytes : 0;
        process.parked_bytes = known ? known->parked_bytes : 0;
        for (uint32_t i = 0; i < GANG_MAX; i++)
                process.part_bytes[i] = known ? known->part_bytes[i] : 0;
        process.attributed_by = known ? known->attributed_by : (uint8_t) ATTRIBUTED_NOT;
        process.seen_ms = known ? known->seen_ms : w->now_ms;
        if (known)
                keep_what_it_runs(known, &process);
        if (known && known->n_ancestors > process.n_ancestors) { /* it descends from them all the same: some are gone */
                process.n_ancestors = known->n_ancestors;
                memcpy(process.ancestors, known->ancestors, sizeof(process.ancestors));
                memcpy(process.links, known->links, sizeof(process.links));
        }
        (void) world_process_put(w, &process); /* a full table: it stays a stranger, counted all the same */
}

void reading_process_ended(struct world *w, struct identity identity, struct actions *out)
{
        struct process *p = world_process_find(w, identity);
        if (!p || p->state == PROCESS_ENDED)
                return;

        p->state = PROCESS_ENDED;
        park_process_ended(w, identity, out);
        if (!is_listed(w, identity)) {
                world_process_drop(w, identity);
                return;
        }
        for (uint32_t i = 0; i < w->n_occupancies; i++)
                if (identity_equal(w->occupancies[i].identity, identity))
                        reading_outdated(w, w->occupancies[i].device, out);
}

void reading_outdated(struct world *w, uint32_t device, struct actions *out)
{
        struct device *dev = &w->devices[device];

        dev->changed_ms = w->now_ms;
        if (dev->reading_ms >= w->now_ms) /* of the same millisecond: it came first */
                dev->reading_ms = u64_sub0(w->now_ms, 1);
        if (dev->read_asked_ms != w->now_ms) /* else the look that was just ordered is young enough */
                dev->read_asked_ms = 0;
        if (w->eyes_answering)
                actions_read(w, out, device);
}

void reading_outdated_of(struct world *w, const struct lease *lease, struct actions *out)
{
        for (uint32_t i = 0; i < lease_n_parts(lease); i++)
                reading_outdated(w, lease_part(lease, i).device, out);
}

void reading_unconfirm(struct world *w)
{
        for (uint32_t i = 0; i < w->n_processes; i++)
                if (w->processes[i].state == PROCESS_LIVE)
                        w->processes[i].state = PROCESS_UNCONFIRMED;
}

void reading_forget(struct world *w, uint32_t device, struct actions *out)
{
        uint32_t start, end = rows_of_device(w, device, &start);

        replace_rows(w, start, end, NULL, 0);
        clear_figures(w, device, false);
        world_figures_changed(w, device);
        drop_absent(w, device, out);
        forget_processes(w);
        w->devices[device].used_known = false;
        w->devices[device].used_bytes = 0;
        w->devices[device].reading_ms = 0;
        w->devices[device].settled = false;
}
