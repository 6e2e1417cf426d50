/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>
#include "arbiter/reclaim.h"
#include "arbiter/ceiling.h"
#include "arbiter/cost.h"
#include "arbiter/free.h"
#include "arbiter/idle.h"
#include "arbiter/project.h"
#include "arbiter/rank.h"
#include "base/number.h"

/* The least important ones there are enough of: more are never looked at for one demand. */
enum { CANDIDATES_MAX = 96, SETS_OF_MAX = 12, TWO_LEVELS = 2, IMMUNE_TIMES = 4 };

enum class { CLASS_FILLER, CLASS_IDLE, CLASS_BUSY };

struct candidate {
        uint32_t holder;
        uint8_t class;
        uint8_t rank;
        bool idle;
        uint8_t n_ways;
        uint8_t ways[WAY_OUT_N]; /* gentlest first */
        uint64_t cost_ms;
        uint8_t at; /* which of its ways is taken */
        bool taken;
        uint8_t no;          /* enum reclaim_no: why it could not be, once that was tried */
        uint64_t host_bytes; /* what its way moves to host memory */
        uint64_t room_bytes; /* of the memory cgroups of its processes; 0 = not looked at yet */
};

/* What host memory can still take. */
struct room {
        uint64_t ledger_cap_bytes, ledger_taken_bytes, host_bytes;
        bool pressure, unknown;
};

struct search {
        struct world *w;
        const struct reclaim_demand *demand;
        struct sums base; /* what runs already counts as done */
        struct room room;
        uint32_t n;
        uint32_t n_tried;   /* of these: only they are taken */
        bool alone;         /* somebody has the device for himself: he has to go, whatever is free */
        bool short_of_room; /* somebody was not taken for want of host memory */
        struct candidate of[CANDIDATES_MAX];
};

/* ---- host memory ---- */

static uint64_t host_reserve_bytes(const struct world *w)
{
        return u64_max(w->config.host_reserve_bytes, w->host.total_bytes / 1000 * w->config.host_reserve_milli);
}

/* Charged, on its way there, or set aside. */
static uint64_t ledger_taken_bytes(const struct world *w, const struct ledger_tally *ledger)
{
        return u64_add_sat(u64_add_sat(w->ledger_charged_bytes, ledger->planned_bytes), ledger->set_aside_bytes);
}

uint64_t reclaim_ledger_room_bytes(const struct world *w)
{
        struct ledger_tally ledger;

        ledger_tally_make(w, &ledger);
        return u64_sub0(w->config.ledger_cap_bytes, ledger_taken_bytes(w, &ledger));
}

uint64_t reclaim_ledger_room_now(struct world *w)
{
        return u64_sub0(w->config.ledger_cap_bytes, ledger_taken_bytes(w, world_ledger(w)));
}

static uint64_t host_room_bytes(struct world *w)
{
        return u64_sub0(u64_sub0(w->host.available_bytes, host_reserve_bytes(w)), world_ledger(w)->planned_bytes);
}

bool reclaim_host_is_short(const struct world *w)
{
        return w->host.total_bytes != 0 && (w->host.pressure || w->host.available_bytes < host_reserve_bytes(w));
}

static struct room room_of(struct world *w, const struct reclaim_demand *d)
{
        /* What goes back to its device makes room here: two that change places do not wait for one another. */
        uint64_t leaving_bytes = d ? d->leaving_ledger_bytes : 0;

        return (struct room){ .ledger_cap_bytes = w->config.ledger_cap_bytes,
                              .ledger_taken_bytes = u64_sub0(ledger_taken_bytes(w, world_ledger(w)), leaving_bytes),
                              .host_bytes = host_room_bytes(w),
                              .pressure = w->host.pressure,
                              .unknown = w->host.total_bytes == 0 };
}

/* ---- who, and why not ---- */

static struct lease *lease_of(struct world *w, const struct holder *h)
{
        return h->kind == HOLDER_LEASE ? world_lease_get(w, h->lease) : NULL;
}

/* The least that the memory cgroups of its processes can still take. */
static uint64_t cgroup_room_bytes(struct world *w, const struct lease *lease)
{
        struct ref ref = world_lease_ref(w, lease);
        uint64_t room_bytes = UINT64_MAX;

        for (uint32_t i = 0; i < w->n_processes; i++) {
                const struct process *p = &w->processes[i];
                if (ref_equal(p->lease, ref) && p->room_bytes != 0 && world_has_memory_of(w, lease, p->identity))
                        room_bytes = u64_min(room_bytes, p->room_bytes);
        }
        return room_bytes;
}

/* Can it be checkpointed at all, room aside? */
static enum reclaim_no can_checkpoint(struct world *w, const struct holder *h)
{
        const struct lease *lease = lease_of(w, h);
        const struct holder *part;
        bool known = holder_reading_is_known(h) && w->devices[h->device].per_process_known;

        if (w->host.checkpoint != CHECKPOINT_CAN)
                return RECLAIM_CANNOT;
        if (lease && lease->n_more != 0)
                each_part (w, lease, part)
                        known = known && holder_reading_is_known(part) && w->devices[part->device].per_process_known;
        if (!known)
                return RECLAIM_UNKNOWN;
        return (lease ? world_lease_listed(w, lease) : h->n_processes) == 0 ? RECLAIM_NOT_THERE : RECLAIM_MAY;
}

static enum reclaim_no find_ways(struct world *w, const struct holder *h, const struct lease *lease, uint8_t not,
                                 uint8_t ways[WAY_OUT_N], uint8_t *ret_n)
{
        uint8_t usable = lease ? ways_of_lease(w, lease) : ways_out_usable(&h->ways);
        enum reclaim_no no = RECLAIM_NO_WAY_OUT;
        uint8_t in_order[WAY_OUT_N];

        unsigned n = ways_out_in_order(lease ? &lease->ways : &h->ways, usable, in_order);

        *ret_n = 0;
        for (unsigned i = 0; i < n; i++) {
                uint8_t way = in_order[i];
                enum reclaim_no this_no = RECLAIM_MAY;
                if (lease && way == WAY_OUT_RELEASE)
                        continue; /* a release is a tenant's: nobody knows how to ask a lease's program for it */
                if (lease && lease->park.strikes[way] >= w->config.strikes_max)
                        this_no = RECLAIM_STRIKES;
                else if (not &WAY_OUT_BIT(way))
                        this_no = RECLAIM_BACK_OFF;
                else if (way == WAY_OUT_CHECKPOINT)
                        this_no = can_checkpoint(w, h);
                if (this_no == RECLAIM_MAY)
                        ways[(*ret_n)++] = way;
                else
                        no = this_no;
        }
        return *ret_n != 0 ? RECLAIM_MAY : no;
}

/* Whoever asks: is it in a state in which its device could be taken from it? */
static enum reclaim_no stands_for_it(const struct world *w, const struct holder *h, const struct lease *lease,
                                     uint64_t *ret_changes_ms)
{
        if (w->pause != PAUSE_NONE)
                return RECLAIM_PAUSED;
        if (h->protected)
                return RECLAIM_PROTECTED;
        if (h->pinned) {
                *ret_changes_ms = h->pin_end_ms;
                return RECLAIM_PINNED;
        }
        if (!lease)
                return h->kind == HOLDER_TENANT ? RECLAIM_MAY : RECLAIM_NOT_A_LEASE;
        if (lease->state == LEASE_GRANTED)
                return RECLAIM_NOT_THERE;
        if (lease->state != LEASE_ACTIVE || lease->ending || lease->park.step != PARK_NONE)
                return RECLAIM_IN_TRANSIT;
        if (w->now_ms < lease->park.not_before_ms) {
                *ret_changes_ms = lease->park.not_before_ms;
                return RECLAIM_BACK_OFF;
        }
        return RECLAIM_MAY;
}

static enum reclaim_no is_idle_for_long(const struct world *w, const struct holder *h, uint64_t idle_since_ms,
                                        unsigned rank, const struct reclaim_demand *d, uint64_t *ret_changes_ms)
{
        uint64_t owed_ms = 0;

        if (d->priority >= PRIORITY_FILLER)
                owed_ms = u64_max(w->config.linger_ms,
                                  h->keep_alive_ms != 0 ? h->keep_alive_ms : w->config.linger_filler_ms);
        else if (d->priority >= rank)
                owed_ms = w->config.linger_ms;
        if (u64_sub0(w->now_ms, idle_since_ms) >= owed_ms)
                return RECLAIM_MAY;
        *ret_changes_ms = idle_since_ms + owed_ms;
        return RECLAIM_LINGER;
}

/* After a return it is left alone for some time, so that two do not throw each other out without end; whoever is two levels
 * above does not wait for that. Where only a kill would do, the time counts from the grant, for everybody. */
static enum reclaim_no is_immune(struct world *w, const struct lease *lease, unsigned rank, const uint8_t *ways,
                                 uint8_t n_ways, const struct reclaim_demand *d, uint64_t *ret_changes_ms)
{
        uint64_t until_ms = 0;

        if (n_ways == 1 && ways[0] == WAY_OUT_KILL) {
                until_ms = lease->granted_ms + w->config.immune_kill_ms;
        } else if (lease->park.returned_ms != 0 && (unsigned) d->priority + TWO_LEVELS > rank) {
                struct cost cost = cost_of(w, lease, (enum way_out_kind) ways[0]);
                uint64_t ms = u64_add_sat(cost.out_ms, cost.back_ms);
                ms = ms > w->config.immune_max_ms ? w->config.immune_max_ms
                                                  : u64_min(IMMUNE_TIMES * ms, w->config.immune_max_ms);
                until_ms = lease->park.returned_ms + ms;
        }
        if (w->now_ms >= until_ms)
                return RECLAIM_MAY;
        *ret_changes_ms = until_ms;
        return RECLAIM_IMMUNE;
}

static uint64_t rank_kept_until_ms(const struct config *config, const struct lease *lease)
{
        uint64_t keep_ms = config->keep_rank_ms;

        if (lease->slot_ms != 0)
                keep_ms = u64_min(keep_ms, lease->slot_ms);
        return lease->granted_ms + keep_ms;
}

static enum reclaim_no is_outranked(const struct world *w, const struct lease *lease, unsigned rank,
                                    const struct reclaim_demand *d, uint64_t *ret_changes_ms)
{
        bool filler = d->priority >= PRIORITY_FILLER;

        if (!filler && rank_passes(&w->config, d->priority, rank))
                return RECLAIM_MAY;
        if (!filler && lease && lease->backfilled && ref_equal(lease->backfill_for, d->entry))
                return RECLAIM_MAY; /* it went ahead on the promise to give way */
        if (!filler && lease && !lease->over_time && rank_passes(&w->config, d->priority, lease->priority)) {
                *ret_changes_ms = rank_kept_until_ms(&w->config, lease);
                return RECLAIM_KEEPS_RANK;
        }
        /* Over time it ranks as a filler. */
        if (!filler && lease && lease->slot_end_ms > w->now_ms && rank_passes(&w->config, d->priority, PRIORITY_FILLER))
                *ret_changes_ms = lease->slot_end_ms;
        return RECLAIM_AT_WORK;
}

static unsigned rank_of_holder(const struct world *w, const struct holder *h, const struct lease *lease)
{
        if (lease)
                return lease_rank(&w->config, lease, w->now_ms);
        return h->priority != 0 ? h->priority : PRIORITY_NORMAL;
}

/* May this holder be a victim of the demand? Fills @ret where it may. */
static enum reclaim_no judge(struct world *w, uint32_t row, const struct reclaim_demand *d, struct candidate *ret,
                             uint64_t *ret_changes_ms)
{
        const struct holder *h = &w->holders[row];
        struct lease *lease = lease_of(w, h);
        uint64_t changes_ms = 0;
        enum reclaim_no no = stands_for_it(w, h, lease, &changes_ms);

        *ret_changes_ms = changes_ms;
        if (no != RECLAIM_MAY)
                return no;

        uint64_t counts_from_ms = 0, idle_since_ms = idle_reclaimable_since_ms(w, h, &counts_from_ms);
        *ret = (struct candidate){ .holder = row, .idle = idle_since_ms != 0 };
        no = find_ways(w, h, lease, 0, ret->ways, &ret->n_ways);
        if (no != RECLAIM_MAY)
                return no;
        unsigned rank = rank_of_holder(w, h, lease);
        ret->rank = (uint8_t) rank;
        bool is_filler = rank >= PRIORITY_FILLER && d->priority < PRIORITY_FILLER;
        if (ret->idle) {
                no = is_idle_for_long(w, h, idle_since_ms, rank, d, ret_changes_ms);
        } else {
                no = is_outranked(w, lease, rank, d, ret_changes_ms);
                if (no == RECLAIM_MAY && lease)
                        no = is_immune(w, lease, rank, ret->ways, ret->n_ways, d, ret_changes_ms);
                if (no != RECLAIM_MAY && counts_from_ms != 0 &&
                    (*ret_changes_ms == 0 || counts_from_ms < *ret_changes_ms))
                        *ret_changes_ms = counts_from_ms;
        }
        ret->class = is_filler ? CLASS_FILLER : ret->idle ? CLASS_IDLE : CLASS_BUSY;
        ret->cost_ms = lease ? cost_in_all_ms(w, lease, (enum way_out_kind) ret->ways[0]) : 0;
        return no;
}

/* The same where nobody asks why not: most are no victims by their rank, which is seen at once. */
static bool may_be_victim(struct world *w, uint32_t row, const struct reclaim_demand *d, struct candidate *ret)
{
        const struct holder *h = &w->holders[row];
        const struct lease *lease = lease_of(w, h);
        uint64_t changes_ms;

        if (!lease && h->kind != HOLDER_TENANT)
                return false;
        if (idle_reclaimable_since_ms(w, h, NULL) == 0 &&
            is_outranked(w, lease, rank_of_holder(w, h, lease), d, &changes_ms) != RECLAIM_MAY)
                return false;
        return judge(w, row, d, ret, &changes_ms) == RECLAIM_MAY;
}

/* ---- the search ---- */

static bool goes_before(const struct candidate *a, const struct candidate *b)
{
        if (a->class != b->class)
                return a->class < b->class;
        if (a->rank != b->rank)
                return a->rank > b->rank;
        return a->cost_ms != b->cost_ms ? a->cost_ms < b->cost_ms : a->holder < b->holder;
}

static void insert(struct search *s, const struct candidate *c)
{
        uint32_t at = s->n < CANDIDATES_MAX ? s->n++ : CANDIDATES_MAX;

        if (at == CANDIDATES_MAX) {
                if (!goes_before(c, &s->of[CANDIDATES_MAX - 1]))
                        return;
                at--;
        }
        for (; at > 0 && goes_before(c, &s->of[at - 1]); at--)
                s->of[at] = s->of[at - 1];
        s->of[at] = *c;
}

/* A checkpoint moves what it has on all its devices. */
static uint64_t moves_bytes(struct world *w, const struct holder *h, unsigned way)
{
        const struct lease *lease = lease_of(w, h);
        uint64_t bytes = h->used_bytes;

        if (lease && lease->n_more != 0)
                (void) world_lease_used(w, lease, &bytes);
        return way == WAY_OUT_CHECKPOINT ? bytes : 0;
}

/* Asked for once: it walks all processes, and thousands of sets are tried. */
static uint64_t room_of_cgroups(struct world *w, struct candidate *c, const struct lease *lease)
{
        if (c->room_bytes == 0)
                c->room_bytes = u64_max(cgroup_room_bytes(w, lease), 1);
        return c->room_bytes;
}

static enum reclaim_no has_room(const struct search *s, struct candidate *c, unsigned way)
{
        const struct holder *h = &s->w->holders[c->holder];
        const struct lease *lease = lease_of(s->w, h);
        uint64_t bytes = moves_bytes(s->w, h, way);

        if (bytes == 0)
                return RECLAIM_MAY;
        if (s->room.pressure)
                return RECLAIM_PRESSURE;
        uint64_t taken_bytes = u64_sub0(s->room.ledger_taken_bytes, lease ? lease->ledger_set_aside_bytes : 0);
        if (u64_add_sat(taken_bytes, bytes) > s->room.ledger_cap_bytes)
                return RECLAIM_LEDGER_FULL;
        if (s->room.unknown || bytes > s->room.host_bytes)
                return RECLAIM_HOST_MEMORY;
        return lease && bytes > room_of_cgroups(s->w, c, lease) ? RECLAIM_CGROUP_LIMIT : RECLAIM_MAY;
}

static void take(struct search *s, struct candidate *c, uint8_t at)
{
        c->taken = true;
        c->at = at;
        c->host_bytes = moves_bytes(s->w, &s->w->holders[c->holder], c->ways[at]);
        s->room.ledger_taken_bytes = u64_add_sat(s->room.ledger_taken_bytes, c->host_bytes);
        s->room.host_bytes = u64_sub0(s->room.host_bytes, c->host_bytes);
}

static void put_back(struct search *s, struct candidate *c)
{
        c->taken = false;
        s->room.ledger_taken_bytes = u64_sub0(s->room.ledger_taken_bytes, c->host_bytes);
        s->room.host_bytes = u64_add_sat(s->room.host_bytes, c->host_bytes);
        c->host_bytes = 0;
}

/* The gentlest of its ways for which there is room. */
static bool take_gently(struct search *s, struct candidate *c)
{
        for (uint8_t at = 0; at < c->n_ways; at++) {
                enum reclaim_no no = has_room(s, c, c->ways[at]);
                if (no == RECLAIM_MAY) {
                        take(s, c, at);
                        return true;
                }
                c->no = (uint8_t) no;
                s->short_of_room = true;
        }
        return false;
}

static void give_back(struct sums *sums, const struct world *w, const struct candidate *c)
{
        const struct holder *h = &w->holders[c->holder];

        sums_give_back(sums, h, h->ways.floor_bytes[c->ways[c->at]]);
}

static bool suffices(const struct search *s)
{
        struct sums sums = s->base;

        bool alone = s->alone;

        for (uint32_t i = 0; i < s->n_tried; i++) {
                if (!s->of[i].taken)
                        continue;
                give_back(&sums, s->w, &s->of[i]);
                alone = alone && !s->w->holders[s->of[i].holder].exclusive;
        }
        return !alone && sums_fit(&sums, s->demand->bytes);
}

/* Who is idle goes deeper where its floor is all that is missing; work is never broken for that. */
static bool deepen(struct search *s)
{
        for (uint32_t i = 0; i < s->n; i++) {
                struct candidate *c = &s->of[i];
                for (uint8_t at = (uint8_t) (c->at + 1); c->taken && c->idle && at < c->n_ways; at++) {
                        uint8_t before = c->at;
                        const struct holder *h = &s->w->holders[c->holder];
                        if (h->ways.floor_bytes[c->ways[at]] >= h->ways.floor_bytes[c->ways[before]])
                                continue;
                        put_back(s, c);
                        if (has_room(s, c, c->ways[at]) != RECLAIM_MAY) {
                                take(s, c, before);
                                continue;
                        }
                        take(s, c, at);
                        if (suffices(s))
                                return true;
                }
        }
        return false;
}

static bool take_in_order(struct search *s)
{
        struct sums sums = s->base; /* what suffices() would come to, one after another */
        bool alone = s->alone;

        for (uint32_t i = 0, n = 0; i < s->n && n < VICTIMS_MAX; i++) {
                if (!take_gently(s, &s->of[i]))
                        continue;
                n++;
                give_back(&sums, s->w, &s->of[i]);
                alone = alone && !s->w->holders[s->of[i].holder].exclusive;
                if (!alone && sums_fit(&sums, s->demand->bytes))
                        return true;
        }
        return deepen(s);
}

static void drop_unneeded(struct search *s)
{
        for (uint32_t i = s->n; i > 0; i--) {
                struct candidate *c = &s->of[i - 1];
                if (!c->taken)
                        continue;
                put_back(s, c);
                if (!suffices(s))
                        take(s, c, c->at);
        }
}

static void put_all_back(struct search *s)
{
        for (uint32_t i = 0; i < s->n_tried; i++)
                if (s->of[i].taken)
                        put_back(s, &s->of[i]);
}

static bool take_set(struct search *s, uint32_t set, uint64_t *ret_cost_ms)
{
        *ret_cost_ms = 0;
        put_all_back(s);
        for (uint32_t i = 0; i < s->n && (set >> i) != 0; i++) {
                if (!(set >> i & 1))
                        continue;
                if (!take_gently(s, &s->of[i]))
                        return false;
                *ret_cost_ms = u64_add_sat(*ret_cost_ms, s->of[i].cost_ms);
        }
        return suffices(s);
}

/* In order it does not suffice, for small ones filled the ledger: any set that does, touching the least important. */
static bool take_any_set(struct search *s)
{
        uint32_t n = s->n < SETS_OF_MAX ? s->n : SETS_OF_MAX;

        put_all_back(s);
        s->n_tried = n;
        for (uint32_t last = 0; last < n; last++) {
                uint32_t best = 0;
                uint64_t best_ms = UINT64_MAX, ms;
                for (uint32_t rest = 0; rest < UINT32_C(1) << last; rest++) {
                        uint32_t set = UINT32_C(1) << last | rest;
                        if (take_set(s, set, &ms) && ms < best_ms) {
                                best = set;
                                best_ms = ms;
                        }
                }
                if (best != 0)
                        return take_set(s, best, &ms);
        }
        put_all_back(s);
        return false;
}

/* Who is to leave for a plan on another device leaves this one too, where it is a gang. */
static void give_back_gangs(struct world *w, const struct plan *plan, uint32_t device, struct sums *s)
{
        for (uint32_t v = 0; v < plan->n_victims; v++) {
                const struct lease *lease = world_lease_get(w, plan->victims[v].lease);
                const struct holder *h = lease && lease->n_more != 0 ? world_part_on(w, lease, device) : NULL;
                if (h && plan->victims[v].state == VICTIM_TO_DO && lease->state != LEASE_ASKING)
                        sums_give_back(s, h, h->ways.floor_bytes[plan->victims[v].way]);
        }
}

/* Who gives way for the same gang on another of its devices. */
static const struct reclaim_step *gives_way_with(const struct reclaim_demand *d, const struct world *w,
                                                 struct ref lease)
{
        for (uint32_t i = 0; i < d->n_with; i++)
                for (uint32_t k = 0; k < d->with[i].n; k++)
                        if (ref_equal(w->holders[d->with[i].steps[k].holder].lease, lease))
                                return &d->with[i].steps[k];
        return NULL;
}

/* What that moves to host memory: each of them once, whatever number of devices it leaves. */
static uint64_t with_moves_bytes(const struct reclaim_demand *d, const struct world *w)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < d->n_with; i++)
                for (uint32_t k = 0; k < d->with[i].n; k++) {
                        const struct reclaim_step *step = &d->with[i].steps[k];
                        struct reclaim_demand before = { .with = d->with, .n_with = i };
                        if (!gives_way_with(&before, w, w->holders[step->holder].lease))
                                bytes = u64_add_sat(bytes, step->moves_bytes);
                }
        return bytes;
}

/* Each plan that runs counts as done, and whatever else is on its way off the device as gone. */
static void count_as_done(struct world *w, const struct reclaim_demand *d, struct sums *s)
{
        bool any_asks = world_tally(w, d->device)->n_asking != 0; /* else only claims are looked at */

        world_each_holder (w, i, any_asks ? w->holders_on[d->device] : w->holders_of[HOLDER_CLAIM]) {
                const struct holder *h = &w->holders[i];
                const struct lease *lease = lease_of(w, h);
                if (h->device != d->device)
                        continue;
                if (h->kind == HOLDER_CLAIM && (h->claim_kind == CLAIM_HEAD || ref_equal(h->entry, d->entry)))
                        sums_take_out(s, h);
                else if (lease && lease->state == LEASE_ASKING && lease->park.step != PARK_UNDOING)
                        sums_give_back(s, h, 0);
        }
        for (uint32_t i = 0; i < w->n_plans; i++) {
                const struct plan *plan = &w->plans[i];
                if (plan->id == 0 || ref_equal(plan->entry, d->entry))
                        continue;
                if (plan->device != d->device) {
                        give_back_gangs(w, plan, d->device, s);
                        continue;
                }
                const struct holder *claim = world_holder_get(w, plan->claim);
                if (claim)
                        sums_take_out(s, claim);
                struct holder whole = { .kind = HOLDER_CLAIM, .reserved_bytes = plan->need_bytes, .used_known = true };
                sums_add(s, &whole);
                for (uint32_t v = 0; v < plan->n_victims; v++) {
                        const struct lease *lease = world_lease_get(w, plan->victims[v].lease);
                        const struct holder *h = lease ? world_part_on(w, lease, plan->device) : NULL;
                        if (h && plan->victims[v].state == VICTIM_TO_DO)
                                sums_give_back(s, h, h->ways.floor_bytes[plan->victims[v].way]);
                }
        }
        if (d->n_with == 0)
                return;
        world_each_holder_on (w, i, d->device) {
                const struct holder *h = &w->holders[i];
                const struct reclaim_step *step = h->kind == HOLDER_LEASE ? gives_way_with(d, w, h->lease) : NULL;
                if (step)
                        sums_give_back(s, h, h->ways.floor_bytes[step->way]);
        }
}

static bool is_in_a_plan(struct world *w, const struct lease *lease)
{
        struct ref ref = world_lease_ref(w, lease);

        for (uint32_t i = 0; i < w->n_plans; i++)
                for (uint32_t v = 0; w->plans[i].id != 0 && v < w->plans[i].n_victims; v++)
                        if (ref_equal(w->plans[i].victims[v].lease, ref) && w->plans[i].victims[v].state != VICTIM_DONE)
                                return true;
        return false;
}

/* Host memory that plans which have not come so far will need. */
static uint64_t owed_by_plans_bytes(struct world *w, const struct reclaim_demand *d)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < w->n_plans; i++)
                for (uint32_t v = 0; w->plans[i].id != 0 && v < w->plans[i].n_victims; v++) {
                        const struct victim *victim = &w->plans[i].victims[v];
                        const struct lease *lease = world_lease_get(w, victim->lease);
                        const struct holder *h = lease ? world_holder_get(w, lease->holder) : NULL;
                        if (h && victim->state == VICTIM_TO_DO && !ref_equal(w->plans[i].entry, d->entry))
                                bytes = u64_add_sat(bytes, moves_bytes(w, h, victim->way));
                }
        return bytes;
}

/* An exclusive lease that is at work there: beside it nothing starts, however much is free. */
static bool somebody_is_alone(struct world *w, uint32_t device)
{
        if (world_tally(w, device)->exclusive_id == 0)
                return false;
        world_each_holder_on (w, i, device) {
                const struct lease *lease = w->holders[i].exclusive ? lease_of(w, &w->holders[i]) : NULL;
                if (lease && lease->state != LEASE_ASKING)
                        return true;
        }
        return false;
}

/* ---- the answer ---- */

static enum blocker_kind kind_of(const struct holder *h)
{
        static const uint8_t kinds[HOLDER_KIND_N] = {
                [HOLDER_DISPLAY] = BLOCKER_DISPLAY,   [HOLDER_LEASE] = BLOCKER_LEASE,
                [HOLDER_TENANT] = BLOCKER_TENANT,     [HOLDER_CLAIM] = BLOCKER_CLAIM,
                [HOLDER_STRANGER] = BLOCKER_STRANGER,
        };
        if (h->protected)
                return BLOCKER_PROTECTED;
        return h->pinned ? BLOCKER_PINNED : (enum blocker_kind) kinds[h->kind];
}

static void add_blocker(struct world *w, uint32_t row, enum reclaim_no no, uint64_t end_ms, struct reason *why)
{
        const struct holder *h = &w->holders[row];
        const struct lease *lease = lease_of(w, h);
        struct blocker b = { .kind = (uint8_t) kind_of(h),
                             .no = (uint8_t) no,
                             .pid = h->process.pid,
                             .lease_id = lease ? lease->id : 0,
                             .bytes = u64_max(h->reserved_bytes, h->used_bytes),
                             .end_ms = end_ms };

        if (h->kind == HOLDER_CLAIM) {
                const struct entry *e = world_entry_get(w, h->entry);
                const struct lease *head = e ? world_lease_get(w, e->lease) : NULL;
                b.lease_id = head ? head->id : 0;
        }
        if (b.bytes != 0)
                reason_add_blocker(why, &b);
}

/* Of what is in the way by itself: when it ends by its own word. */
static uint64_t ends_by_itself_ms(struct world *w, const struct holder *h)
{
        const struct lease *lease = lease_of(w, h);

        return lease && lease->slot_end_ms > w->now_ms ? lease->slot_end_ms : 0;
}

static void sooner(uint64_t *earliest_ms, uint64_t ms, uint64_t now_ms)
{
        if (ms > now_ms && (*earliest_ms == 0 || ms < *earliest_ms))
                *earliest_ms = ms;
}

static void collect_victims(struct search *s)
{
        struct world *w = s->w;
        struct candidate c;

        /* For a filler nobody's work is interrupted. */
        if (s->demand->priority >= PRIORITY_FILLER && world_tally(w, s->demand->device)->n_idle == 0)
                return;
        world_each_holder_on (w, i, s->demand->device)
                if (may_be_victim(w, i, s->demand, &c) &&
                    (w->holders[i].kind != HOLDER_LEASE || !is_in_a_plan(w, lease_of(w, &w->holders[i]))) &&
                    !gives_way_with(s->demand, w, w->holders[i].lease))
                        insert(s, &c);
}

static void collect(struct search *s, struct reclaim *ret, struct reason *why)
{
        struct world *w = s->w;

        if (!why) {
                collect_victims(s);
                return;
        }
        world_each_holder_on (w, i, s->demand->device) {
                const struct holder *h = &w->holders[i];
                const struct lease *lease = lease_of(w, h);
                struct candidate c;
                uint64_t changes_ms;
                if (h->kind == HOLDER_CLAIM && (h->claim_kind == CLAIM_HEAD || ref_equal(h->entry, s->demand->entry)))
                        continue;
                enum reclaim_no no = judge(w, i, s->demand, &c, &changes_ms);
                if (no == RECLAIM_MAY && lease && is_in_a_plan(w, lease))
                        no = RECLAIM_IN_TRANSIT;
                if (no == RECLAIM_MAY) {
                        insert(s, &c);
                        continue;
                }
                sooner(&ret->earliest_ms, changes_ms, w->now_ms);
                uint64_t end_ms = changes_ms != 0 ? changes_ms : ends_by_itself_ms(w, h);
                if (end_ms != changes_ms && no != RECLAIM_PINNED)
                        sooner(&ret->earliest_ms, end_ms, w->now_ms);
                add_blocker(w, i, no, end_ms, why);
        }
}

static void say_what_stood_in_the_way(struct search *s, struct reason *why)
{
        for (uint32_t i = 0; i < s->n; i++)
                add_blocker(s->w, s->of[i].holder, (enum reclaim_no) s->of[i].no, 0, why);
}

static bool was_blocked(struct world *w, const struct candidate *c)
{
        const struct lease *lease = lease_of(w, &w->holders[c->holder]);
        uint64_t times = 20; /* back-offs after the last one that it is remembered */

        return lease && lease->park.not_before_ms != 0 &&
               w->now_ms < u64_add_sat(lease->park.not_before_ms, times * w->config.back_off_ms);
}

void reclaim_plan(struct world *w, const struct reclaim_demand *d, struct reclaim *ret, struct reason *why)
{
        struct search s; /* but for the candidates, who are written one by one */

        memset(&s, 0, offsetof(struct search, of));
        s.w = w;
        s.demand = d;
        *ret = (struct reclaim){ 0 };
        sums_now(w, d->device, &s.base);
        if (w->degraded || !device_is_usable(&w->devices[d->device]))
                return;
        count_as_done(w, d, &s.base);
        s.alone = somebody_is_alone(w, d->device);
        if (!s.alone && sums_fit(&s.base, d->bytes)) {
                ret->suffices = true;
                return;
        }
        s.room = room_of(w, d);
        uint64_t owed_bytes = u64_add_sat(owed_by_plans_bytes(w, d), with_moves_bytes(d, w));
        s.room.ledger_taken_bytes = u64_add_sat(s.room.ledger_taken_bytes, owed_bytes);
        s.room.host_bytes = u64_sub0(s.room.host_bytes, owed_bytes);
        collect(&s, ret, why);
        s.n_tried = s.n;
        ret->suffices = s.n != 0 && take_in_order(&s);
        if (s.n != 0 && !ret->suffices && s.short_of_room)
                ret->suffices = take_any_set(&s);
        if (!ret->suffices) {
                if (why) {
                        say_what_stood_in_the_way(&s, why);
                        why->earliest_ms = ret->earliest_ms;
                        why->ceiling_bytes = device_ceiling_now(w, d->device);
                }
                return;
        }

        drop_unneeded(&s);
        ret->earliest_ms = 0;
        /* Who could not be tried lately goes first: where that is so again, nobody was parked in vain. */
        for (uint32_t k = 0; k < 2 * s.n && ret->n < VICTIMS_MAX; k++) {
                const struct candidate *c = &s.of[k % s.n];
                if (!c->taken || was_blocked(w, c) != (k < s.n))
                        continue;
                const struct holder *h = &w->holders[c->holder];
                uint8_t way = c->ways[c->at];
                ret->steps[ret->n++] =
                        (struct reclaim_step){ .holder = c->holder,
                                               .way = way,
                                               .moves_bytes = c->host_bytes,
                                               .bytes = u64_sub0(u64_max(h->reserved_bytes, h->used_bytes),
                                                                 h->ways.floor_bytes[way]) };
        }
        if (why)
                reclaim_name_victims(w, ret, why);
}

void reclaim_name_victims(struct world *w, const struct reclaim *r, struct reason *why)
{
        why->n_blockers = 0;
        why->earliest_ms = 0;
        for (uint32_t i = 0; i < r->n; i++)
                add_blocker(w, r->steps[i].holder, RECLAIM_MAY, 0, why);
}

enum reclaim_no reclaim_may_take(struct world *w, const struct lease *lease, const struct reclaim_demand *d)
{
        struct candidate c;
        uint64_t changes_ms;

        const struct holder *h = world_part_on((struct world *) (uintptr_t) w, lease, d->device);

        return h ? judge(w, (uint32_t) (h - w->holders), d, &c, &changes_ms) : RECLAIM_NOT_THERE;
}

enum reclaim_no reclaim_may_park(struct world *w, const struct lease *lease, uint8_t not, uint8_t *ret_way)
{
        const struct holder *h = world_holder_get(w, lease->holder);
        struct candidate c = { 0 };
        struct search s = { .w = w };

        if (w->degraded || !h)
                return RECLAIM_NOT_THERE;
        if (w->pause != PAUSE_NONE)
                return RECLAIM_PAUSED;
        c.holder = lease->holder.index;
        enum reclaim_no no = find_ways(w, h, lease, not, c.ways, &c.n_ways);
        if (no != RECLAIM_MAY)
                return no;
        s.room = room_of(w, NULL);
        for (uint8_t at = 0; at < c.n_ways; at++) {
                no = has_room(&s, &c, c.ways[at]);
                if (no == RECLAIM_MAY) {
                        *ret_way = c.ways[at];
                        return RECLAIM_MAY;
                }
        }
        return no;
}

enum reclaim_no reclaim_may_rehearse(struct world *w, const struct lease *lease)
{
        const struct holder *h = world_holder_get(w, lease->holder);
        struct candidate c = { .n_ways = 1, .ways = { WAY_OUT_CHECKPOINT } };
        struct search s = { .w = w };

        if (w->degraded || !h)
                return RECLAIM_NOT_THERE;
        if (w->pause != PAUSE_NONE)
                return RECLAIM_PAUSED;
        c.holder = lease->holder.index;
        enum reclaim_no no = can_checkpoint(w, h);
        if (no != RECLAIM_MAY)
                return no;
        s.room = room_of(w, NULL);
        return has_room(&s, &c, WAY_OUT_CHECKPOINT);
}
