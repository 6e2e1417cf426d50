/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/idle.h"
#include "arbiter/actions.h"
#include "base/number.h"

/* Shorter pauses are no event: a program that waits for its next batch has nothing to be told of. */
enum { BEGAN_AFTER_MS = 60000 };

/* Who is parked, held or on its way does not hold in idleness: it was made to stand still. */
static bool may_be_idle(const struct lease *lease)
{
        return lease->state == LEASE_ACTIVE || lease->state == LEASE_ORPHANED;
}

static const struct idle_ladder *ladder_of(const struct world *w, const struct lease *lease)
{
        unsigned class = lease->priority >= PRIORITY_URGENT && lease->priority <= IDLE_CLASSES ? lease->priority - 1U
                                                                                               : PRIORITY_NORMAL - 1U;

        return &w->config.idle[class];
}

static const struct lease *lease_of(const struct world *w, const struct holder *h)
{
        return h->kind == HOLDER_LEASE && h->lease.index < w->n_leases ? &w->leases[h->lease.index] : NULL;
}

/* A gang does nothing where it does nothing on any of its devices. */
static uint64_t rests_since_ms(const struct world *w, const struct lease *lease, const struct holder *h)
{
        uint64_t since = h->rests_since_ms;

        for (uint32_t i = 0; lease->n_more != 0 && since != 0 && i < lease_n_parts(lease); i++) {
                uint64_t part = w->holders[lease_part(lease, i).holder.index].rests_since_ms;
                since = part == 0 ? 0 : u64_max(since, part);
        }
        return since;
}

static uint64_t since_ms(const struct world *w, const struct lease *lease, const struct holder *h)
{
        return h->tells_idle ? h->idle_since_ms : rests_since_ms(w, lease, h);
}

uint64_t idle_since_ms(const struct world *w, const struct holder *h)
{
        const struct lease *lease = lease_of(w, h);

        return lease && may_be_idle(lease) ? since_ms(w, lease, h) : 0;
}

uint64_t idle_reclaimable_since_ms(const struct world *w, const struct holder *h, uint64_t *ret_changes_ms)
{
        const struct lease *lease = lease_of(w, h);
        uint64_t seen_ms = lease && !h->tells_idle ? rests_since_ms(w, lease, h) : 0;
        uint64_t after_ms = lease ? ladder_of(w, lease)->reclaimable_ms : 0;

        if (ret_changes_ms)
                *ret_changes_ms = 0;
        if (h->idle_since_ms != 0 || seen_ms == 0 || after_ms == 0)
                return h->idle_since_ms;
        if (w->now_ms >= seen_ms + after_ms)
                return seen_ms;
        if (ret_changes_ms)
                *ret_changes_ms = seen_ms + after_ms;
        return 0;
}

bool idle_is_listed(const struct world *w, const struct holder *h)
{
        const struct lease *lease = lease_of(w, h);
        uint64_t since = idle_since_ms(w, h), after_ms = lease ? ladder_of(w, lease)->listed_ms : 0;

        return since != 0 && after_ms != 0 && w->now_ms >= since + after_ms;
}

void idle_after_reading(struct world *w, const struct lease *lease, struct holder *h)
{
        bool rests = h->activity == HOLDER_RESTED && h->n_processes != 0 && may_be_idle(lease) &&
                     w->devices[h->device].per_process_known;

        if (rests == (h->rests_since_ms != 0))
                return;
        world_holder_writing(w, h);
        h->rests_since_ms = rests ? u64_max(w->now_ms, 1) : 0;
        world_holder_written(w, h);
}

static void say(struct world *w, const struct lease *lease, const struct holder *h, enum action_kind kind,
                enum rule rule, uint64_t since, struct actions *out)
{
        uint64_t after_ms = ladder_of(w, lease)->reclaimable_ms, used_bytes, reserved_bytes = 0;
        const struct holder *part;

        (void) world_lease_used(w, lease, &used_bytes);
        each_part (w, lease, part)
                reserved_bytes = u64_add_sat(reserved_bytes, part->reserved_bytes);
        actions_add_lease(w, out, kind, lease,
                          &(struct reason){ .rule = (uint16_t) rule,
                                            .start_ms = since,
                                            .earliest_ms = after_ms != 0 && !h->tells_idle ? since + after_ms : 0,
                                            .used_bytes = used_bytes,
                                            .reserved_bytes = reserved_bytes });
}

/* The highest step that is due; lower ones that were missed are not made up for. */
static enum idle_told due(const struct idle_ladder *l, bool tells, uint64_t idle_ms)
{
        if (l->listed_ms != 0 && idle_ms >= l->listed_ms)
                return IDLE_TOLD_LISTED;
        if (!tells && l->reclaimable_ms != 0 && idle_ms >= l->reclaimable_ms)
                return IDLE_TOLD_RECLAIMABLE; /* who says himself that he is idle is so from the first moment */
        if (l->notice_ms != 0 && idle_ms >= l->notice_ms)
                return IDLE_TOLD_NOTICE;
        return idle_ms >= BEGAN_AFTER_MS ? IDLE_TOLD_BEGAN : IDLE_TOLD_NOTHING;
}

/* What @holder was told of, and since when, is another now. */
static void told(struct world *w, struct holder *h, enum idle_told step, uint64_t since)
{
        world_holder_writing(w, h);
        h->idle_told = (uint8_t) step;
        h->idle_told_ms = since;
        world_holder_written(w, h);
}

void idle_tick(struct world *w, const struct lease *lease, struct actions *out)
{
        static const enum rule rules[IDLE_TOLD_N] = { [IDLE_TOLD_NOTICE] = RULE_IDLE_NOTICE,
                                                      [IDLE_TOLD_RECLAIMABLE] = RULE_IDLE_RECLAIMABLE,
                                                      [IDLE_TOLD_LISTED] = RULE_IDLE_LISTED };
        struct holder *h = world_holder_get(w, lease->holder);
        uint64_t since = h && may_be_idle(lease) ? since_ms(w, lease, h) : 0;

        if (!h || !actions_have_room(out, 3))
                return;
        if (h->idle_told_ms != 0 && h->idle_told_ms != since) {
                say(w, lease, h, ACTION_IDLE, RULE_IDLE_OVER, h->idle_told_ms, out);
                told(w, h, IDLE_TOLD_NOTHING, 0);
        }
        if (since == 0 || (!w->eyes_answering && !h->tells_idle))
                return; /* where nobody looks, the next look says whether it went on */

        enum idle_told step = due(ladder_of(w, lease), h->tells_idle, u64_sub0(w->now_ms, since));
        if (step <= (enum idle_told) h->idle_told)
                return;
        if (h->idle_told == IDLE_TOLD_NOTHING)
                say(w, lease, h, ACTION_IDLE, RULE_IDLE_BEGAN, since, out);
        if (step != IDLE_TOLD_BEGAN)
                say(w, lease, h, ACTION_WARNING, rules[step], since, out);
        told(w, h, step, since);
}

void idle_forget(struct world *w)
{
        world_each_holder_of (w, i, HOLDER_LEASE) {
                w->holders[i].activity = HOLDER_ACTIVITY_UNKNOWN;
                w->holders[i].rests_since_ms = 0;
                world_device_changed(w, w->holders[i].device);
        }
}
