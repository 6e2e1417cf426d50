/* SPDX-License-Identifier: Apache-2.0 */
/* Whose memory may be taken back, and when it may come back: design 4.3 and 4.4, by what was said before. */
#include <inttypes.h>
#include "trial/trial.h"

static const struct holder *holder_of(struct trial *t, uint64_t lease_id)
{
        const struct lease *l = world_lease_by_id(t->world, lease_id);
        return l ? world_holder_get(t->world, l->holder) : NULL;
}

/* How long @lease has said that it has nothing to do; 0 = it works, as far as anybody knows. */
static uint64_t idle_ms(struct trial *t, uint64_t lease_id)
{
        const struct holder *h = holder_of(t, lease_id);
        return h && h->idle_since_ms != 0 ? t->now_ms - u64_min(h->idle_since_ms, t->now_ms) + 1 : 0;
}

/* Work is stopped for who is more important by the margin, and for nobody else; a filler stops none at all. */
static void check_outranked(struct trial *t, const struct book *victim, const struct book *demander, uint64_t victim_id,
                            uint64_t demander_id)
{
        const struct lease *l = world_lease_by_id(t->world, victim_id);
        const struct lease *d = world_lease_by_id(t->world, demander_id);
        uint64_t idle = idle_ms(t, victim_id);

        if (!l || !d)
                return;
        if (d->priority >= PRIORITY_FILLER && !l->park.idle &&
            idle < u64_min(t->config.linger_filler_ms, t->config.linger_ms))
                trial_break(
                        t, "a filler, L%" PRIu64 ", takes the memory of L%" PRIu64 ", which is idle for %" PRIu64 " ms",
                        demander_id, victim_id, idle);
        if (idle != 0 || l->park.idle || l->over_time || victim->backfill || l->backfilled)
                return;
        if (d->priority + t->config.margin > l->priority)
                trial_break(t, "margin: L%" PRIu64 " of priority %u stops the work of L%" PRIu64 " of %u", demander_id,
                            d->priority, victim_id, l->priority);
        (void) demander;
}

/* I5: nothing is moved into host memory beyond the cap, by what was known of its size when it was decided. */
static void check_cap(struct trial *t, const struct lease *l, uint64_t demander_id)
{
        const struct lease *demander = world_lease_by_id(t->world, demander_id);
        uint64_t charged = t->world->ledger_charged_bytes, moves = 0;

        if (demander) /* those that change places */
                charged = u64_sub0(charged, demander->park.charged_bytes);
        bool told = true;
        for (uint32_t c = 0; c < t->n_cards; c++) {
                const struct said *said = &t->cards[c].said;
                if (!lease_is_on(l, c))
                        continue;
                told = told && said->told;
                for (uint32_t i = 0; i < said->n_rows; i++)
                        moves += said->rows[i].lease_id == l->id && !said->rows[i].ghost ? said->rows[i].bytes : 0;
        }
        if (moves <= l->ledger_set_aside_bytes)
                return; /* kept for it since it went ahead of a head, whatever the cap is now */
        /* The cap may have been lowered since: then at least nothing is added. */
        if (told && charged + moves > u64_max(t->config.ledger_cap_bytes, t->world->ledger_charged_bytes))
                trial_break(t, "I5: L%" PRIu64 " moves %" PRIu64 ", where %" PRIu64 " of %" PRIu64 " are charged",
                            l->id, moves, charged, t->config.ledger_cap_bytes);
}

void check_asked(struct trial *t, const struct action *a)
{
        struct book *b = book_of(t, a->lease_id);
        const struct lease *l = world_lease_by_id(t->world, a->lease_id);
        const struct holder *h = holder_of(t, a->lease_id);
        struct book *demander = book_of(t, a->why.head_lease_id);
        bool for_plan = l && l->park.cause == PARK_FOR_PLAN && demander && a->why.head_lease_id != 0;

        if (!b || !book_lives(b))
                trial_break(t, "I3: L%" PRIu64 " is asked for its device, and has none", a->lease_id);
        if (l && l->park.way == WAY_OUT_CHECKPOINT && b->parked == PARKED_NOT)
                check_cap(t, l, a->why.head_lease_id);
        if (!for_plan || b->parked != PARKED_NOT)
                return; /* the next way out of the same attempt */
        if (h && (h->pinned || h->protected))
                trial_break(t, "L%" PRIu64 " is pinned, and its memory is taken", a->lease_id);
        if (l->ending && l->park.way != WAY_OUT_KILL)
                trial_break(t, "L%" PRIu64 " is being ended, and is asked to give way too", a->lease_id);
        if (t->degraded)
                trial_break(t, "L%" PRIu64 ": memory is taken back by damaged books", a->lease_id);
        check_outranked(t, b, demander, a->lease_id, a->why.head_lease_id);
}

/* Parks by a person hold until the person ends them. */
void check_thawing(struct trial *t, const struct action *a)
{
        const struct book *b = book_of(t, a->lease_id);

        if (b->by_person && (b->until_ms == 0 || t->now_ms < b->until_ms))
                trial_break(t, "L%" PRIu64 " comes back, and the person who parked it did not say so", a->lease_id);
        if (b->parked != PARKED_OUT && b->parked != PARKED_STUCK)
                trial_break(t, "L%" PRIu64 " comes back, and was not away", a->lease_id);
}

/* I4's sister: nothing is stuck for what could not be tried. */
void check_stuck(struct trial *t, const struct action *a)
{
        const struct book *b = book_of(t, a->lease_id);

        if (t->input.kind == INPUT_OUTCOME && t->input.outcome.lease_id == a->lease_id &&
            t->input.outcome.outcome == OUTCOME_BLOCKED && b->failed_ms < b->asked_ms)
                trial_break(t, "I4: L%" PRIu64 " is stuck, because something could not be tried", a->lease_id);
}

/* The whole plan is known to suffice before anything happens. */
void check_plan_began(struct trial *t, const struct action *a)
{
        const struct said *said;
        uint64_t comes;

        if (a->device >= t->n_cards || a->why.n_blockers > BLOCKERS_MAX)
                return; /* not all of them are named */
        said = &t->cards[a->device].said;
        if (!said->told || !said->settled || !said->used_known || !said->per_process)
                return;
        comes = u64_sub0(t->cards[a->device].total_bytes, check_committed_bytes(t, a->device));
        for (uint32_t i = 0; i < a->why.n_blockers; i++) {
                const struct book *b = book_of(t, a->why.blockers[i].lease_id);
                const struct lease *victim = world_lease_by_id(t->world, a->why.blockers[i].lease_id);
                const struct holder *h = victim ? world_part_on(t->world, victim, a->device) : NULL;
                comes += b && h ? u64_max(b->bytes, h->used_bytes) : a->why.blockers[i].bytes;
        }
        for (uint32_t i = 0; i < t->world->n_leases; i++) { /* other plans count as done */
                const struct lease *l = &t->world->leases[i];
                const struct holder *h = t->world->lease_ids[i] != 0 ? world_part_on(t->world, l, a->device) : NULL;
                if (h && l->state == LEASE_ASKING)
                        comes += u64_max(l->bytes, h->used_bytes);
        }
        for (uint32_t i = 0; i < t->world->n_plans;
             i++) { /* so does who is still to leave for one of them, as a gang from here too */
                const struct plan *plan = &t->world->plans[i];
                for (uint32_t v = 0; plan->id != 0 && v < plan->n_victims; v++) {
                        const struct lease *l = world_lease_get(t->world, plan->victims[v].lease);
                        const struct holder *h = l && l->state != LEASE_ASKING && plan->victims[v].state == VICTIM_TO_DO
                                                         ? world_part_on(t->world, l, a->device)
                                                         : NULL;
                        if (h)
                                comes += u64_max(l->bytes, h->used_bytes);
                }
        }
        if (comes < a->why.need_bytes)
                trial_break(t, "L%" PRIu64 ": a plan that gives %" PRIu64 " of %" PRIu64 " begins", a->lease_id, comes,
                            a->why.need_bytes);
}

/* What is left of an ended lease drains; it is nobody else's, and no stranger's. */
void check_stranger(struct trial *t, const struct action *a)
{
        uint32_t p = proc_find(t, a->process);
        const struct book *b;

        if (a->why.rule != RULE_STRANGER_SEEN || p == NOBODY || t->procs[p].client == NOBODY || t->procs[p].misplaced)
                return;
        b = book_of(t, t->clients[t->procs[p].client].lease_id);
        if (b && b->life == LIFE_DRAINS && book_is_on(b, a->device) && t->procs[p].known)
                trial_break(t, "pid %u of L%" PRIu64 ", which drains, is called a stranger", a->process.pid,
                            t->clients[t->procs[p].client].lease_id);
}
