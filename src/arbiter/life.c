/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include "arbiter/actions.h"
#include "arbiter/admit.h"
#include "arbiter/adopt.h"
#include "arbiter/attribute.h"
#include "arbiter/booking.h"
#include "arbiter/change.h"
#include "arbiter/ending.h"
#include "arbiter/idle.h"
#include "arbiter/learn.h"
#include "arbiter/life.h"
#include "arbiter/manage.h"
#include "arbiter/misses.h"
#include "arbiter/park.h"
#include "arbiter/project.h"
#include "arbiter/reading.h"
#include "arbiter/usage.h"
#include "base/number.h"

enum { ABSENT_LOOKS = 3 };

/* What goes on and on is warned of again: after so long, then after twice that, and so on, once a day at last. */
#define AGAIN_FIRST_MS (UINT64_C(600) * 1000)
#define AGAIN_MOST_MS (UINT64_C(24) * 3600 * 1000)
enum { AGAIN_COUNT_MAX = 255 };

static void refuse_call(struct world *w, struct actions *out, const struct lease_call *call, const struct lease *lease,
                        enum rule rule)
{
        struct action *a = actions_add(w, out, ACTION_REFUSED);

        a->token = call->token;
        a->lease_id = call->lease_id;
        a->uid = lease ? lease->uid : call->uid;
        a->why.rule = (uint16_t) rule;
}

/* The lease a call is about, if the caller may touch it; else the refusal was written. */
static struct lease *find_for(struct world *w, const struct lease_call *call, struct actions *out)
{
        struct lease *lease = world_lease_by_id(w, call->lease_id);

        if (!lease) {
                refuse_call(w, out, call, NULL, RULE_NOT_FOUND);
                return NULL;
        }
        if (!call->by_system && !call->is_admin && lease->uid != call->uid) {
                refuse_call(w, out, call, lease, RULE_NOT_OWNER);
                return NULL;
        }
        return lease;
}

void life_change_state(struct world *w, struct lease *lease, enum lease_event event)
{
        enum lease_state next = lease_next((enum lease_state) lease->state, event);
        struct holder *h;

        assert(next != LEASE_NONE);
        each_part (w, lease, h)
                world_holder_writing(w, h);
        lease->state = (uint8_t) next;
        each_part (w, lease, h)
                world_holder_written(w, h);
}

/* Its grant is collected: what it reserves it may have taken by now. */
static void set_collected(struct world *w, const struct lease *lease)
{
        struct holder *h;

        each_part (w, lease, h) {
                world_holder_writing(w, h);
                h->uncollected = false;
                world_holder_written(w, h);
        }
}

static uint64_t used_bytes(const struct world *w, const struct lease *lease)
{
        uint64_t bytes;

        (void) world_lease_used(w, lease, &bytes);
        return bytes;
}

static bool lists_processes(const struct world *w, const struct lease *lease)
{
        for (uint32_t i = 0; i < lease_n_parts(lease); i++)
                if (!w->devices[lease_part(lease, i).device].per_process_known)
                        return false;
        return true;
}

/* Out of the books: the one place where a lease ends. */
static void bury(struct world *w, struct lease *lease, const struct reason *why, uint64_t token, struct actions *out)
{
        struct action *a = actions_add_lease(w, out, ACTION_ENDED, lease, why);
        a->token = token;
        park_forget(w, lease);

        struct holder *h;
        if (lease_n_parts(lease) != 0) {
                /* What still points at it: processes that go on are strangers from the next reading on. */
                struct ref ref = world_lease_ref(w, lease);
                for (uint32_t i = 0; i < w->n_processes; i++)
                        if (ref_equal(w->processes[i].lease, ref))
                                process_put_under(&w->processes[i], (struct ref){ 0 }, ATTRIBUTED_NOT);
                each_part (w, lease, h) {
                        assert(h->n_processes == 0);
                        world_holder_drop(w, h);
                }
        }
        world_each_holder_of (w, i, HOLDER_STRANGER) /* strangers of its tree on other cards stay strangers */
                if (ref_equal(w->holders[i].lease, world_lease_ref(w, lease)))
                        w->holders[i].lease = (struct ref){ 0 };
        w->users[lease->user].n_leases--;
        world_lease_drop(w, lease);
}

/* What it used is over; of what is parked it has been already. */
static void stop_counting(struct world *w, const struct lease *lease)
{
        struct user *user = &w->users[lease->user];

        if (lease->state != LEASE_PARKED)
                usage_set_held(&w->config, user, u64_sub0(user->held_bytes, lease_whole_bytes(lease)), w->now_ms);
}

/* Is anything of it seen there, or may be? On a lost card nothing will ever be seen again. */
static bool is_listed(const struct world *w, const struct holder *h)
{
        return w->devices[h->device].health != DEVICE_LOST &&
               (h->n_processes != 0 || (!h->uncollected && !h->used_known));
}

void life_end(struct world *w, struct lease *lease, enum end_reason end, uint64_t token, struct actions *out)
{
        struct reason why = { .rule = RULE_ENDED, .end = (uint16_t) end };

        if (lease->state == LEASE_DRAINING)
                return; /* it has ended already */
        if (lease->state == LEASE_QUEUED) {
                admit_drop_entry(w, world_entry_get(w, lease->entry));
                bury(w, lease, &why, token, out);
                return;
        }

        struct holder *h;
        struct entry *thaw = world_entry_get(w, lease->entry);
        if (thaw)
                admit_drop_entry(w, thaw);

        stop_counting(w, lease);
        lease->end_reason = (uint8_t) end;
        lease->ended_ms = w->now_ms;
        lease->leaving_told = 0;
        learn_end(w, lease, end); /* not only once it has drained: its next run may follow at once */
        life_change_state(w, lease, LEASE_EVENT_END);
        park_forget(w, lease); /* wherever it was on its way to, it arrives nowhere any more */

        const struct lease was = *lease;
        if (end == END_UNADOPTED)
                adopt_undo(w, lease);
        bool listed = false;
        each_part (w, lease, h)
                listed = listed || is_listed(w, h);
        if (!listed) {
                bury(w, lease, &why, token, out);
                reading_outdated_of(w, &was, out);
                return;
        }

        each_part (w, lease, h) {
                world_holder_writing(w, h);
                /* Ended in the books, memory still there: it counts by what it uses, and where that is unknown by what it had. */
                if (holder_reading_is_known(h))
                        h->reserved_bytes = 0;
                h->uncollected = false;
                h->pinned =
                        false; /* what it was promised is over: what stays behind is in nobody's way but by its memory */
                h->pin_end_ms = 0;
                h->exclusive = false;
                world_holder_written(w, h);
        }
        why.rule = RULE_DRAINING;
        why.used_bytes = used_bytes(w, lease);
        struct action *a = actions_add_lease(w, out, ACTION_DRAINING, lease, &why);
        a->token = token;
        reading_outdated_of(w, lease, out);
}

void life_set_active(struct world *w, struct lease *lease, uint64_t token, struct actions *out)
{
        life_change_state(w, lease, LEASE_EVENT_ACTIVATE);
        if (lease->active_ms == 0)
                lease->active_ms = w->now_ms;
        lease->owner_gone = false;
        lease->leaving_told = 0;
        ending_owner_is_back(w, lease);
        set_collected(w, lease);

        struct action *a = actions_add_lease(w, out, ACTION_ACTIVE, lease, &(struct reason){ .rule = RULE_ACTIVATED });
        a->token = token;
        /* Its program may have been on the card before it asked: the next look counts it under the lease. */
        if (attribute_take(w, lease))
                reading_outdated_of(w, lease, out);
}

void life_activate(struct world *w, const struct lease_call *call, struct actions *out)
{
        struct lease *lease = find_for(w, call, out);
        if (!lease)
                return;
        if (lease_next((enum lease_state) lease->state, LEASE_EVENT_ACTIVATE) == LEASE_NONE) {
                refuse_call(w, out, call, lease, RULE_WRONG_STATE);
                return;
        }

        lease->renewed_ms = w->now_ms;
        if (!identity_is_none(call->root)) {
                if (!identity_equal(call->root, lease->binding.root))
                        ending_new_root(lease);
                lease->binding.root = call->root;
                lease->root_living = true;
        }
        if (lease->booked_ms != 0 && !identity_is_none(call->owner)) { /* who has what was booked from now on */
                lease->binding.kind = BINDING_PROCESS;
                lease->binding.owner = call->owner;
        }
        if (call->cgroup_id != 0)
                lease->binding.cgroup_id = call->cgroup_id;
        if (lease->state == LEASE_THAWING) {
                park_activated(w, lease, out);
                struct action *a =
                        actions_add_lease(w, out, ACTION_ACTIVE, lease, &(struct reason){ .rule = RULE_ACTIVATED });
                a->token = call->token;
                return;
        }
        life_set_active(w, lease, call->token, out);
}

void life_renew(struct world *w, const struct lease_call *call, struct actions *out)
{
        struct lease *lease = find_for(w, call, out);
        if (!lease)
                return;
        if (lease->state == LEASE_DRAINING) {
                refuse_call(w, out, call, lease, RULE_WRONG_STATE);
                return;
        }

        lease->renewed_ms = w->now_ms;
        if (lease->state == LEASE_ORPHANED && lease->binding.kind == BINDING_HEARTBEAT) {
                life_set_active(w, lease, call->token, out); /* its owner is back */
                return;
        }
        struct action *a = actions_add_lease(w, out, ACTION_RENEWED, lease, &(struct reason){ .rule = RULE_RENEWED });
        a->token = call->token;
}

void life_release(struct world *w, const struct lease_call *call, struct actions *out)
{
        struct lease *lease = find_for(w, call, out);
        if (!lease)
                return;
        if (lease->state == LEASE_DRAINING) {
                refuse_call(w, out, call, lease, RULE_WRONG_STATE); /* released before */
                return;
        }

        if (park_has_away(w, lease)) { /* nobody could bring its program back afterwards */
                struct action *a =
                        actions_add_lease(w, out, ACTION_REFUSED, lease,
                                          &(struct reason){ .rule = RULE_IS_PARKED, .head_lease_id = lease->id });
                a->token = call->token;
                return;
        }
        enum end_reason end = (enum end_reason) call->end_reason;
        if (lease->adopted) /* whatever the caller calls it: it gives the processes back */
                end = END_UNADOPTED;
        else if (end == END_NONE)
                end = lease->state == LEASE_QUEUED ? END_CANCELLED
                      : lease->uid != call->uid    ? END_RELEASED_ADMIN
                                                   : END_RELEASED;
        lease->failed = call->failed;
        life_end(w, lease, end, call->token, out);
}

/* On a lost card nothing is listed; the processes are known all the same. */
static bool has_living_process(const struct world *w, const struct lease *lease)
{
        struct ref ref = world_lease_ref(w, lease);

        for (uint32_t i = 0; i < w->n_processes; i++)
                if (ref_equal(w->processes[i].lease, ref) && w->processes[i].state != PROCESS_ENDED &&
                    !identity_equal(w->processes[i].identity, lease->binding.owner))
                        return true;
        return false;
}

void life_owner_ended(struct world *w, const struct lease_call *call, struct actions *out)
{
        struct lease *lease = world_lease_by_id(w, call->lease_id);
        if (!lease || lease->owner_gone || lease->state == LEASE_DRAINING)
                return;

        enum end_reason end = call->end_reason != END_NONE ? (enum end_reason) call->end_reason : END_OWNER_EXITED;
        if (lease->binding.kind == BINDING_PROCESS && identity_equal(lease->binding.owner, lease->binding.root))
                lease->root_living = false; /* it is its own command */
        if (manage_has_it_away(lease))
                return; /* by our order, and its manager will start it again */
        bool away = lease->state != LEASE_QUEUED && park_has_away(w, lease);
        bool works =
                lease->state != LEASE_QUEUED && (away || lease->root_living || attribute_count_workers(w, lease) != 0 ||
                                                 (lease->state == LEASE_LOST && has_living_process(w, lease)));
        if (!works || end == END_REBOOTED) {
                life_end(w, lease, end, call->token, out);
                return;
        }

        if (!away && lease->park.step == PARK_NONE) /* else it is parked, and orphaned once it is back */
                life_change_state(w, lease, LEASE_EVENT_OWNER_GONE);
        lease->owner_gone = true;
        lease->ended_ms = w->now_ms;
        lease->leaving_told = 0;
        set_collected(w, lease);
        actions_add_lease(
                w, out, ACTION_ORPHANED, lease,
                &(struct reason){ .rule = RULE_ORPHANED, .end = (uint16_t) end, .used_bytes = used_bytes(w, lease) });
        reading_outdated_of(w, lease, out);
}

/* Nothing of it is on the device any more. Without per-process figures nobody can tell: the time that settling may take
 * has to pass, and the device's own figure keeps counting what is there. */
static bool is_drained(const struct world *w, const struct lease *lease)
{
        if (world_lease_listed(w, lease) != 0 || lists_processes(w, lease))
                return world_lease_listed(w, lease) == 0;
        return w->now_ms >= lease->ended_ms + settle_ms(lease->bytes);
}

static void bury_drained(struct world *w, struct lease *lease, struct actions *out)
{
        enum end_reason end = (enum end_reason) lease->end_reason;

        if (lease->state != LEASE_DRAINING) { /* it ends here, not before */
                stop_counting(w, lease);
                end = END_WORKERS_GONE;
                learn_end(w, lease, end);
        }
        life_change_state(w, lease, LEASE_EVENT_MEMORY_GONE);
        bury(w, lease, &(struct reason){ .rule = RULE_DRAINED, .end = (uint16_t) end }, 0, out);
}

/* Its row where it uses the most beyond what it reserved; what it reserved aside, the first of equals. */
static const struct holder *most_over_use(struct world *w, const struct lease *lease)
{
        const struct holder *h, *most = NULL;

        each_part (w, lease, h)
                if (!most ||
                    u64_sub0(h->used_bytes, h->reserved_bytes) > u64_sub0(most->used_bytes, most->reserved_bytes))
                        most = h;
        assert(most);
        return most;
}

static void watch_over_use(struct world *w, struct lease *lease)
{
        const struct holder *h = most_over_use(w, lease);

        if (h->used_bytes <= h->reserved_bytes + w->config.over_use_bytes) {
                lease->over_use_since_ms = 0;
                lease->over_use_told = 0;
        } else if (lease->over_use_since_ms == 0) {
                lease->over_use_since_ms = w->now_ms != 0 ? w->now_ms : 1;
        }
}

/* Is another warning due, after @n of something that lasts since @since_ms, the first of them @first_ms later? */
static bool is_due_again(uint64_t now_ms, uint64_t since_ms, uint64_t first_ms, unsigned n)
{
        uint64_t at_ms = since_ms + first_ms, step_ms = AGAIN_FIRST_MS;

        for (unsigned i = 0; i < n; i++) {
                at_ms += step_ms;
                step_ms = u64_min(2 * step_ms, AGAIN_MOST_MS);
        }
        return n < AGAIN_COUNT_MAX && now_ms >= at_ms;
}

static void tick_over_use(struct world *w, struct lease *lease, struct actions *out)
{
        if (lease->over_use_since_ms == 0 || lease->state != LEASE_ACTIVE ||
            !is_due_again(w->now_ms, lease->over_use_since_ms, w->config.over_use_ms, lease->over_use_told))
                return;
        lease->over_use_told++;
        const struct holder *h = most_over_use(w, lease);
        actions_add_lease(w, out, ACTION_WARNING, lease,
                          &(struct reason){ .rule = RULE_OVER_USE,
                                            .used_bytes = h->used_bytes,
                                            .reserved_bytes = h->reserved_bytes });
}

/* Nobody of it lives any more, as far as anybody can see. Where the driver lists no processes, the time that settling may
 * take has to pass since the last of it that was known to live. */
static bool is_abandoned(const struct world *w, const struct lease *lease)
{
        if (!lease->owner_gone || lease->root_living || world_lease_listed(w, lease) != 0)
                return false;
        if (lease->state == LEASE_LOST)
                return !has_living_process(w, lease);
        return lease->state == LEASE_ORPHANED &&
               (lists_processes(w, lease) || w->now_ms >= lease->ended_ms + settle_ms(lease->bytes));
}

/* So many looks in a row that show nothing of it are enough; those at all its devices count. */
static unsigned absent_looks_enough(const struct lease *lease)
{
        return ABSENT_LOOKS * lease_n_parts(lease);
}

/* A look whose totals differ may be of two moments: it takes a settled one, or several in a row that show nothing of it. */
static bool is_absent(const struct world *w, struct lease *lease)
{
        bool settled = true;

        if (world_lease_listed(w, lease) != 0) {
                lease->absent_looks = 0;
                return false;
        }
        for (uint32_t i = 0; i < lease_n_parts(lease); i++)
                settled = settled && w->devices[lease_part(lease, i).device].settled;
        if (lease->absent_looks < absent_looks_enough(lease))
                lease->absent_looks++;
        return settled || lease->absent_looks >= absent_looks_enough(lease);
}

void life_process_ended(struct world *w, struct identity identity, struct actions *out)
{
        for (uint32_t i = 0; i < w->n_leases; i++) {
                struct lease *lease = &w->leases[i];
                if (w->lease_ids[i] == 0)
                        continue;
                if (lease->root_living && identity_equal(lease->binding.root, identity)) {
                        lease->root_living = false;
                        lease->ended_ms = w->now_ms;
                        for (uint32_t k = 0; k < lease_n_parts(lease); k++)
                                world_device_changed(w, lease_part(lease, k).device);
                } else if (lease->state != LEASE_LOST) {
                        continue; /* a reading will tell of its others */
                }
                if (is_abandoned(w, lease) && actions_have_room(out, 2))
                        bury_drained(w, lease, out);
        }
}

/* Memory that grows proves work, whatever its program said; memory that stays as it is proves nothing. */
static void watch_idle(struct world *w, const struct lease *lease, struct holder *h)
{
        struct holder *any;

        const uint64_t noise_bytes = UINT64_C(16) << 20;

        if (h->idle_since_ms == 0 || !holder_reading_is_known(h))
                return;
        if (h->used_bytes <= h->idle_bytes + noise_bytes) {
                h->idle_bytes = u64_min(h->idle_bytes, h->used_bytes);
                return;
        }
        each_part (w, lease, any) {
                world_holder_writing(w, any);
                any->idle_since_ms = 0;
                world_holder_written(w, any);
        }
}

void life_after_reading(struct world *w, uint32_t device, struct actions *out)
{
        for (uint32_t i = 0; i < w->n_leases; i++) {
                struct lease *lease = &w->leases[i];
                if (w->lease_ids[i] == 0 || !lease_is_on(lease, device))
                        continue;
                if (!actions_have_room(out, 1))
                        return;

                struct holder *h = world_part_on(w, lease, device);
                bool gone = false;
                learn_use(lease, h);
                watch_idle(w, lease, h);
                idle_after_reading(w, lease, h);
                if (lease->state == LEASE_DRAINING) {
                        if (holder_reading_is_known(h) && h->reserved_bytes != 0) {
                                world_holder_writing(w, h);
                                h->reserved_bytes = 0; /* it was kept only while its use was unknown */
                                world_holder_written(w, h);
                        }
                        gone = is_absent(w, lease) && is_drained(w, lease);
                } else if (lease->state == LEASE_ORPHANED) {
                        gone = is_absent(w, lease) && is_abandoned(w, lease);
                } else if (w->devices[device].settled && lease->park.step == PARK_NONE) {
                        watch_over_use(w, lease);
                }
                if (gone)
                        bury_drained(w, lease, out);
        }
}

static void tick_slot(struct world *w, struct lease *lease, struct actions *out)
{
        if (lease->slot_end_ms == 0 || lease->over_time)
                return;
        if (w->now_ms >= lease->slot_end_ms) {
                lease->over_time = true;
                actions_add_lease(w, out, ACTION_WARNING, lease, &(struct reason){ .rule = RULE_SLOT_OVER });
                return;
        }
        /* A slot shorter than the warning time is warned of at its half: a warning at its start would tell nobody anything. */
        uint64_t lead_ms = u64_min(w->config.slot_warning_ms, lease->slot_ms / 2);
        if (!lease->slot_warned && w->now_ms + lead_ms >= lease->slot_end_ms) {
                lease->slot_warned = true;
                actions_add_lease(w, out, ACTION_WARNING, lease,
                                  &(struct reason){ .rule = RULE_SLOT_WARNING, .start_ms = lease->slot_end_ms });
        }
}

/* It was to be gone, or its command is: whoever looks after the machine hears of it as long as it lasts. */
static void warn_leaving(struct world *w, struct lease *lease, struct actions *out)
{
        bool drains = lease->state == LEASE_DRAINING;
        uint64_t reserved_bytes = 0;
        const struct holder *h;

        if (!is_due_again(w->now_ms, lease->ended_ms, w->config.over_use_ms, lease->leaving_told) ||
            !actions_have_room(out, 1))
                return;
        lease->leaving_told++;
        each_part (w, lease, h)
                reserved_bytes = u64_add_sat(reserved_bytes, h->reserved_bytes);
        actions_add_lease(w, out, ACTION_WARNING, lease,
                          &(struct reason){ .rule = drains ? RULE_STILL_DRAINING : RULE_STILL_ORPHANED,
                                            .start_ms = lease->ended_ms,
                                            .end = lease->end_reason,
                                            .used_bytes = used_bytes(w, lease),
                                            .reserved_bytes = reserved_bytes });
}

/* What drains or is orphaned: nobody may ever look again by himself, and where no processes are listed only time can tell. */
static void tick_leaving(struct world *w, struct lease *lease, struct actions *out)
{
        if (lease->absent_looks != 0 && lease->absent_looks < absent_looks_enough(lease) && w->eyes_answering)
                actions_read_of(w, out, lease);
        if (lists_processes(w, lease)) {
                warn_leaving(w, lease, out);
                return;
        }
        if (lease->state == LEASE_DRAINING ? is_drained(w, lease) : is_abandoned(w, lease))
                bury_drained(w, lease, out);
}

/* A grant that nobody collects is given up after a minute, a booking when its time is over: the device is kept for it. */
static bool is_never_collected(const struct world *w, const struct lease *lease)
{
        if (lease->booked_ms != 0)
                return w->now_ms >= lease->slot_end_ms;
        return w->now_ms - lease->granted_ms >= w->config.collect_ms;
}

static void tick_lease(struct world *w, struct lease *lease, struct actions *out)
{
        if (lease->state == LEASE_QUEUED) {
                const struct entry *e = world_entry_get(w, lease->entry);
                if ((e->give_up_ms != 0 && w->now_ms >= e->give_up_ms) || booking_is_over(w, e))
                        life_end(w, lease, END_WAIT_OVER, 0, out);
                else if (lease->binding.kind == BINDING_HEARTBEAT &&
                         w->now_ms - lease->renewed_ms > lease->binding.ttl_ms)
                        life_end(w, lease, END_EXPIRED, 0, out);
                return;
        }
        if (lease->ending || lease->kill_at_end || lease->kill_left)
                ending_tick(w, lease, out);
        if (lease->state == LEASE_DRAINING || lease->state == LEASE_ORPHANED) {
                tick_leaving(w, lease, out);
                if (lease->state != LEASE_ORPHANED)
                        return;
        }
        change_tick(w, lease, out);
        park_tick(w, lease, out);
        manage_tick(w, lease, out);
        if (lease->state == LEASE_NONE || lease->state == LEASE_DRAINING)
                return;
        if (lease->state == LEASE_GRANTED && is_never_collected(w, lease)) {
                life_end(w, lease, END_NOT_COLLECTED, 0, out);
                return;
        }
        if (lease->binding.kind == BINDING_HEARTBEAT && !lease->owner_gone &&
            w->now_ms - lease->renewed_ms > lease->binding.ttl_ms) {
                struct lease_call call = { .lease_id = lease->id, .by_system = true, .end_reason = END_EXPIRED };
                life_owner_ended(w, &call, out);
                return;
        }
        tick_over_use(w, lease, out);
        misses_tick(w, lease, out);
        idle_tick(w, lease, out);
        if (!park_slot_stands(lease))
                tick_slot(w, lease, out);
}

void life_tick(struct world *w, struct actions *out)
{
        for (uint32_t i = 0; i < w->n_leases; i++) {
                if (w->lease_ids[i] == 0)
                        continue;
                if (!actions_have_room(out, 8))
                        return;
                tick_lease(w, &w->leases[i], out);
        }
}

/* One of a gang's: all of it is lost, for its work cannot go on without that one. */
static void lose_device(struct world *w, struct lease *lease, struct actions *out)
{
        struct holder *h;

        if (lease->state == LEASE_DRAINING) {
                bool listed = false;
                each_part (w, lease, h)
                        listed = listed || is_listed(w, h);
                if (!listed)
                        bury_drained(w, lease, out); /* nothing of it will ever be seen there again */
                return;
        }
        if (lease_next((enum lease_state) lease->state, LEASE_EVENT_DEVICE_LOST) == LEASE_NONE ||
            lease->park.step != PARK_NONE) /* what is under way with its processes goes on */
                return;
        life_change_state(w, lease, LEASE_EVENT_DEVICE_LOST);
        actions_add_lease(w, out, ACTION_WARNING, lease, &(struct reason){ .rule = RULE_DEVICE_CHANGED });
        if (is_abandoned(w, lease))
                bury_drained(w, lease, out);
}

/* It goes on as what it was. */
static void find_device(struct world *w, struct lease *lease, struct actions *out)
{
        if (lease->state != LEASE_LOST)
                return;
        for (uint32_t i = 0; i < lease_n_parts(lease); i++)
                if (w->devices[lease_part(lease, i).device].health == DEVICE_LOST)
                        return; /* another of its devices still is */
        if (lease->owner_gone) {
                life_change_state(w, lease, LEASE_EVENT_OWNER_GONE);
        } else if (lease->active_ms == 0) {
                life_change_state(w, lease, LEASE_EVENT_GRANT);
                lease->granted_ms = w->now_ms;
        } else {
                life_change_state(w, lease, LEASE_EVENT_DEVICE_BACK);
        }
        actions_add_lease(w, out, ACTION_WARNING, lease, &(struct reason){ .rule = RULE_DEVICE_CHANGED });
}

void life_device_lost(struct world *w, uint32_t device, bool lost, struct actions *out)
{
        for (uint32_t i = 0; i < w->n_leases; i++) {
                struct lease *lease = &w->leases[i];
                if (w->lease_ids[i] == 0 || !lease_is_on(lease, device))
                        continue;
                if (!actions_have_room(out, 2))
                        return;
                if (lost)
                        lose_device(w, lease, out);
                else
                        find_device(w, lease, out);
        }
}

/* A promise that nobody collected yet: there is nothing of it that could have ended. */
static bool is_booking_for_later(const struct lease *lease)
{
        return lease->booked_ms != 0 && (lease->state == LEASE_QUEUED || lease->state == LEASE_GRANTED);
}

void life_rebooted(struct world *w, struct actions *out)
{
        for (uint32_t i = 0; i < w->n_leases; i++) {
                struct lease *lease = &w->leases[i];
                if (w->lease_ids[i] == 0)
                        continue;
                lease->root_living = false;
                if (is_booking_for_later(lease))
                        continue;
                if (lease->state == LEASE_DRAINING)
                        bury_drained(w, lease, out);
                else
                        life_end(w, lease, END_REBOOTED, 0, out);
        }
}

/* Nobody could renew, collect or go on waiting while the daemon was away: that time is nobody's. */
void life_was_away(struct world *w, uint64_t away_ms)
{
        for (uint32_t i = 0; i < w->n_leases; i++) {
                struct lease *lease = &w->leases[i];
                if (w->lease_ids[i] == 0)
                        continue;
                lease->renewed_ms += away_ms;
                if (lease->state == LEASE_GRANTED)
                        lease->granted_ms += away_ms;
        }
        for (uint32_t i = 0; i < w->n_entries; i++)
                if (w->entries[i].kind != ENTRY_NONE && w->entries[i].give_up_ms != 0)
                        w->entries[i].give_up_ms += away_ms;
}
