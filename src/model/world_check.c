/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold between the tables, whatever happened before (world.h). Each line of it was a thought once: "could this
 * ever be untrue?" */
#include <string.h>
#include "model/world.h"

static const struct holder *holder_at(const struct world *w, struct ref ref)
{
        if (ref_is_none(ref) || ref.index >= w->n_holders)
                return NULL;
        const struct holder *h = &w->holders[ref.index];
        return h->generation == ref.generation && h->kind != HOLDER_NONE ? h : NULL;
}

static const struct lease *lease_at(const struct world *w, struct ref ref)
{
        if (ref_is_none(ref) || ref.index >= w->n_leases)
                return NULL;
        const struct lease *l = &w->leases[ref.index];
        return l->generation == ref.generation && l->state != LEASE_NONE ? l : NULL;
}

static const struct entry *entry_at(const struct world *w, struct ref ref)
{
        if (ref_is_none(ref) || ref.index >= w->n_entries)
                return NULL;
        const struct entry *e = &w->entries[ref.index];
        return e->generation == ref.generation && e->kind != ENTRY_NONE ? e : NULL;
}

/* Is it on its way, or away, exactly where its state says so? */
static const char *check_park(const struct world *w, const struct lease *l)
{
        const struct park *k = &l->park;
        enum lease_state state = (enum lease_state) l->state;
        bool in_transit =
                state == LEASE_ASKING || state == LEASE_PARKED || state == LEASE_THAWING || state == LEASE_HELD;

        if (in_transit && k->step == PARK_NONE)
                return "a lease that is on its way, and at no step of it";
        if (!in_transit && state != LEASE_STUCK && k->step != PARK_NONE && state != LEASE_DRAINING)
                return "a lease that is at work, and on its way";
        if ((state == LEASE_PARKED) != (k->step == PARK_OUT) && state != LEASE_DRAINING)
                return "a parked lease that is not away";
        if (k->step == PARK_NONE && (k->charged_bytes != 0 || k->planned_bytes != 0 || k->moved_bytes != 0))
                return "a lease at work has something in the ledger";
        for (uint32_t i = 1; i < k->n_returns; i++)
                if (k->returns_ms[i] < k->returns_ms[i - 1])
                        return "a lease's returns that are not in their order";
        uint64_t moved_bytes = 0;
        for (uint32_t i = 0; i < lease_n_parts(l); i++) {
                const struct holder *h = holder_at(w, lease_part(l, i).holder);
                if (state == LEASE_PARKED && h && h->reserved_bytes != 0)
                        return "a parked lease with a reservation on its device";
                moved_bytes += h ? h->moved_bytes : 0;
        }
        if (moved_bytes != k->moved_bytes && state != LEASE_DRAINING)
                return "what went to claims of plans is another sum on a lease's devices";
        if (k->order_id != 0 && (k->step == PARK_NONE || !binding_is_managed(&l->binding)))
                return "an order to the manager of a lease that is on no way, or has none";
        return NULL;
}

static const char *check_lease(const struct world *w, uint32_t i)
{
        const struct lease *l = &w->leases[i];

        if (w->lease_ids[i] != l->id)
                return "lease_ids disagrees with the lease table";
        if (l->state == LEASE_NONE)
                return NULL;
        if (l->state == LEASE_ENDED)
                return "an ended lease kept its row";
        if (l->id == 0 || l->id >= w->next_lease_id)
                return "a lease id that was never given out";
        if (l->user >= w->n_users || w->users[l->user].uid != l->uid)
                return "a lease whose owner has no row";
        if (l->state == LEASE_QUEUED && !entry_at(w, l->entry))
                return "a queued lease without a place in the queue";
        if (l->state != LEASE_QUEUED && l->state != LEASE_PARKED && !ref_is_none(l->entry))
                return "a lease that holds and still stands in the queue";

        if (l->adopted && l->state == LEASE_QUEUED)
                return "an adopted lease that waits";
        if (!l->ending && (l->root_term_ms != 0 || l->tree_kill_ms != 0 || l->ending_told != ENDING_TOLD_NOTHING))
                return "a lease that is not being ended, and was";

        const struct holder *h = holder_at(w, l->holder);
        if (lease_state_holds(l->state) && !h)
                return "a lease that holds without a row in the holder table";
        if (!lease_state_holds(l->state) && h)
                return "a lease that does not hold has a row in the holder table";
        uint64_t seen = 0;
        for (uint32_t k = 0; h && k < lease_n_parts(l); k++) {
                struct part part = lease_part(l, k);
                const struct holder *there = holder_at(w, part.holder);
                if (!there || there->kind != HOLDER_LEASE || lease_at(w, there->lease) != l ||
                    there->device != part.device)
                        return "a lease's holder row points elsewhere";
                if (seen >> part.device != 0)
                        return "the devices of a gang are not in their order, or one is twice among them";
                seen |= UINT64_C(1) << part.device;
        }
        if (l->n_more > GANG_MORE_MAX)
                return "a gang of more devices than there may be";
        const struct entry *e = entry_at(w, l->entry);
        if (e && e->n_more != l->n_more)
                return "a gang that asks for another number of devices than it has";
        return check_park(w, l);
}

static const char *check_ledger(const struct world *w)
{
        uint64_t charged = 0;

        for (uint32_t i = 0; i < w->n_leases; i++) {
                uint64_t parked = 0;
                if (w->lease_ids[i] == 0)
                        continue;
                for (uint32_t k = 0; k < w->n_processes; k++)
                        if (w->processes[k].parked_bytes != 0 && lease_at(w, w->processes[k].lease) == &w->leases[i])
                                parked += w->processes[k].parked_bytes;
                if (parked > w->leases[i].park.charged_bytes)
                        return "a process has more in the ledger than its lease";
                charged += w->leases[i].park.charged_bytes;
        }
        return charged > w->ledger_charged_bytes ? "leases have more in the ledger than is charged" : NULL;
}

static const char *check_plan(const struct world *w, const struct plan *plan)
{
        const struct holder *claim = holder_at(w, plan->claim);

        if (plan->id == 0)
                return NULL;
        if (!entry_at(w, plan->entry))
                return "a plan for nobody";
        if (!ref_is_none(plan->claim) && (!claim || claim->claim_kind != CLAIM_PLAN))
                return "a plan whose claim is gone";
        if (claim && claim->reserved_bytes > plan->need_bytes)
                return "a plan that claims more than it needs";
        for (uint32_t i = 0; i < w->n_plans; i++) {
                const struct plan *other = &w->plans[i];
                if (other->id > plan->id && ref_equal(other->entry, plan->entry)) {
                        if (other->device == plan->device)
                                return "two plans for one entry on one device";
                        continue; /* of one gang */
                }
                for (uint32_t v = 0; other->id > plan->id && v < other->n_victims; v++)
                        for (uint32_t mine = 0; mine < plan->n_victims; mine++)
                                if (ref_equal(other->victims[v].lease, plan->victims[mine].lease) &&
                                    other->victims[v].state != VICTIM_DONE && plan->victims[mine].state != VICTIM_DONE)
                                        return "two plans with the same victim";
        }
        return NULL;
}

static const char *check_entry(const struct world *w, uint32_t i)
{
        const struct entry *e = &w->entries[i];

        if (e->kind == ENTRY_NONE)
                return NULL;
        const struct lease *l = lease_at(w, e->lease);
        if (!l)
                return "a queue entry of a lease that is gone";
        if (entry_at(w, l->entry) != e)
                return "a queue entry its lease does not know";
        if (e->demand_bytes < e->least_bytes)
                return "an exclusive demand that is less than was asked for";
        uint64_t heads = entry_head_devices(e);
        if (e->is_head && (e->head_device >= w->n_devices || (w->n_devices < 64 && heads >> w->n_devices != 0)))
                return "head of a device that is not there";
        if (e->is_head && (uint32_t) __builtin_popcountll(heads) != 1U + e->n_more)
                return "head of fewer devices than it needs, or of more";
        if (e->head_devices != 0 && (!e->is_head || (heads >> e->head_device & 1) == 0))
                return "devices that a gang is head of, and it is none";
        for (uint32_t j = 0; e->is_head && j < i; j++)
                if (w->entries[j].kind != ENTRY_NONE && (entry_head_devices(&w->entries[j]) & heads) != 0)
                        return "two heads of one device";
        return NULL;
}

/* Nobody is granted beside an exclusive lease, and it is granted beside nobody. What drains is nobody's any more, and what
 * is parked has nothing there. */
static const char *check_exclusive(const struct world *w, const struct holder *exclusive)
{
        if (exclusive->kind != HOLDER_LEASE || !lease_at(w, exclusive->lease)->exclusive)
                return "an exclusive holder whose lease is none";
        for (uint32_t i = 0; i < w->n_holders; i++) {
                const struct holder *h = &w->holders[i];
                if (h == exclusive || h->kind != HOLDER_LEASE || h->device != exclusive->device)
                        continue;
                const struct lease *l = lease_at(w, h->lease);
                if (l && l->park.broke_promise && (l->state == LEASE_ASKING || l->state == LEASE_STUCK))
                        continue; /* it had gone, and came back without a word; or is stuck on its way off again */
                if (l && l->state != LEASE_DRAINING && l->state != LEASE_PARKED)
                        return "a lease beside an exclusive one";
        }
        return NULL;
}

static const char *check_promises(const struct world *w, const struct holder *h)
{
        const struct lease *l = h->kind == HOLDER_LEASE ? lease_at(w, h->lease) : NULL;

        if (h->pinned && h->kind != HOLDER_LEASE && h->kind != HOLDER_TENANT)
                return "a pin on what nobody could take back";
        if (!h->pinned && h->pin_end_ms != 0)
                return "the end of a pin that is none";
        if (l && l->state == LEASE_DRAINING && (h->pinned || h->exclusive))
                return "an ended lease that still keeps others out";
        return h->exclusive ? check_exclusive(w, h) : NULL;
}

static const char *check_holder(const struct world *w, uint32_t i)
{
        const struct holder *h = &w->holders[i];

        if (h->kind == HOLDER_NONE)
                return NULL;
        if (h->device >= w->n_devices)
                return "a holder on a device that is not there";
        if (h->kind == HOLDER_LEASE && !lease_at(w, h->lease))
                return "a holder of a lease that is gone";
        if (h->kind == HOLDER_LEASE && !lease_is_on(lease_at(w, h->lease), h->device))
                return "a holder whose lease is not there";
        if (h->kind == HOLDER_CLAIM && h->claim_kind == CLAIM_NONE)
                return "a claim of no kind";
        if (h->kind == HOLDER_CLAIM && h->claim_kind == CLAIM_PLAN && !ref_is_none(h->entry)) {
                bool known = false;
                for (uint32_t k = 0; k < w->n_plans; k++)
                        known = known || (w->plans[k].id != 0 && holder_at(w, w->plans[k].claim) == h);
                if (!known)
                        return "a claim that outlived its plan";
        }
        if (h->kind == HOLDER_CLAIM && h->claim_kind == CLAIM_HEAD) {
                const struct entry *e = entry_at(w, h->entry);
                if (!e || !entry_is_head_of(e, h->device))
                        return "a head's claim that outlived its head";
                if (h->reserved_bytes > e->demand_bytes)
                        return "a claim larger than its demand";
        }
        if (h->kind != HOLDER_LEASE && (h->rests_since_ms != 0 || h->idle_told_ms != 0))
                return "somebody without a lease who is told of as idle";
        if ((h->idle_told != IDLE_TOLD_NOTHING) != (h->idle_told_ms != 0))
                return "an idle holder that was told of, and since no time";
        if (h->kind == HOLDER_CLAIM && h->used_bytes != 0)
                return "a claim that uses memory";
        return check_promises(w, h);
}

static const char *check_process(const struct world *w, const struct process *p)
{
        const struct lease *l = lease_at(w, p->lease);

        if (!ref_is_none(p->lease) && !l)
                return "a process under a lease that is gone";
        if ((p->term_ms != 0 || p->kill_ms != 0) && (!l || !l->ending))
                return "a process that was asked to end by nobody";
        if (p->kill_ms != 0 && p->term_ms == 0)
                return "a process that was killed without a word before";
        if ((p->script != 0) != (p->runs == RUNS_SCRIPT) || (p->runs == RUNS_COMMAND && p->command == 0))
                return "a process that runs a script or a command, and no such is known";
        return NULL;
}

static bool bit_is_set(const uint64_t *bits, uint32_t i)
{
        return (bits[i / 64] >> (i % 64) & 1) != 0;
}

static const char *check_index(const struct world *w)
{
        for (uint32_t i = 0; i < w->n_holders; i++) {
                const struct holder *h = &w->holders[i];
                bool in_use = h->kind != HOLDER_NONE;
                if (bit_is_set(w->holders_of[HOLDER_NONE], i) != in_use)
                        return "the index of holders disagrees with the table";
                for (uint32_t d = 0; d < w->n_devices; d++)
                        if (bit_is_set(w->holders_on[d], i) != (in_use && h->device == d))
                                return "the index of a device's holders disagrees with the table";
                for (uint32_t kind = HOLDER_NONE + 1; kind < HOLDER_KIND_N; kind++)
                        if (bit_is_set(w->holders_of[kind], i) != (h->kind == kind))
                                return "the index of a kind of holders disagrees with the table";
        }
        return NULL;
}

static bool tally_is_same(const struct tally *a, const struct tally *b)
{
        const struct sums *x = &a->sums, *y = &b->sums;

        return a->n_leases == b->n_leases && a->n_there == b->n_there && a->n_keepers == b->n_keepers &&
               a->n_yielding == b->n_yielding && a->n_giving == b->n_giving && a->n_idle == b->n_idle &&
               a->n_asking == b->n_asking && a->exclusive_id == b->exclusive_id && a->listed_bytes == b->listed_bytes &&
               x->reserved_bytes == y->reserved_bytes && x->promised_bytes == y->promised_bytes &&
               x->known_used_bytes == y->known_used_bytes && x->known_untaken_bytes == y->known_untaken_bytes &&
               x->unknown_reserved_bytes == y->unknown_reserved_bytes;
}

static bool leavings_are_same(const struct leavings *a, const struct leavings *b)
{
        bool same = a->n == b->n;

        for (uint32_t i = 0; same && i < a->n; i++)
                same = a->of[i].end_ms == b->of[i].end_ms && a->of[i].holder == b->of[i].holder &&
                       a->of[i].lapses == b->of[i].lapses;
        return same;
}

/* Each entry stands in the line once. */
static const char *check_line(const struct world *w)
{
        uint64_t seen[ENTRIES_MAX / 64] = { 0 };
        uint32_t n = 0, n_bookings = 0;

        for (uint32_t i = 0; i < w->line.n; i++) {
                uint32_t row = w->line.entries[i];
                if (row >= w->n_entries || w->entries[row].kind == ENTRY_NONE || bit_is_set(seen, row))
                        return "the line of the queue names no entry, or one twice";
                seen[row / 64] |= UINT64_C(1) << row % 64;
        }
        for (uint32_t i = 0; i < w->n_entries; i++) {
                n += w->entries[i].kind != ENTRY_NONE;
                n_bookings += w->entries[i].kind == ENTRY_BOOKING;
        }
        return w->line.n != n || w->line.n_bookings != n_bookings ? "the line of the queue lacks an entry" : NULL;
}

/* What is kept from step to step is what would be made of the tables now: a write that nobody was told of shows here. */
static const char *check_kept(const struct world *w)
{
        struct ledger_tally ledger;

        ledger_tally_make(w, &ledger);
        if (w->ledger.kept &&
            (w->ledger.planned_bytes != ledger.planned_bytes || w->ledger.set_aside_bytes != ledger.set_aside_bytes))
                return "what is kept of the ledger disagrees with the leases";
        for (uint32_t d = 0; d < w->n_devices; d++) {
                struct tally tally;
                struct leavings leavings;
                if (w->tallies[d].kept) {
                        tally_make(w, d, &tally);
                        if (!tally_is_same(&w->tallies[d], &tally))
                                return "the sums that are kept of a device disagree with its holders";
                }
                if (w->leavings[d].kept) {
                        leavings_make(w, d, &leavings);
                        if (!leavings_are_same(&w->leavings[d], &leavings))
                                return "the ends that are kept of a device disagree with its leases";
                }
        }
        return NULL;
}

static const char *check_users(const struct world *w)
{
        for (uint32_t u = 0; u < w->n_users; u++) {
                uint32_t n_leases = 0, n_waiting = 0;
                for (uint32_t i = 0; i < w->n_leases; i++)
                        n_leases += w->leases[i].state != LEASE_NONE && w->leases[i].user == u;
                for (uint32_t i = 0; i < w->n_entries; i++)
                        n_waiting += w->entries[i].kind != ENTRY_NONE && w->entries[i].user == u;
                if (n_leases != w->users[u].n_leases || n_waiting != w->users[u].n_waiting)
                        return "a user's counts disagree with the tables";
        }
        return NULL;
}

static const char *check_habit(const struct world *w, uint32_t i)
{
        const struct habit *habit = &w->habits[i];

        if (habit_is_none(habit) || habit->consumer[sizeof(habit->consumer) - 1] != '\0')
                return "something remembered of a program without a name";
        if (habit->last_ms > w->now_ms)
                return "something remembered that has not happened yet";
        for (uint32_t k = 0; k < PEAKS_MAX; k++)
                if ((habit->peak_bytes[k] != 0) != (k < habit_n_peaks(habit)))
                        return "a peak of a run that was none, or the other way round";
        for (uint32_t j = 0; j < i; j++)
                if (w->habits[j].uid == habit->uid && strcmp(w->habits[j].consumer, habit->consumer) == 0)
                        return "two memories of one program";
        return NULL;
}

static const char *check_audit(const struct audit *a)
{
        if (audit_is_none(a))
                return "an empty row in the audit";
        if (a->kill_ms != 0 && a->term_ms == 0)
                return "a stranger that was killed without a word before";
        if (a->term_ms != 0 && a->noticed_ms == 0)
                return "a stranger that was asked to end without notice";
        if (a->n_signals > ENFORCE_SIGNALS_MAX)
                return "a stranger that was sent more signals than there are";
        return NULL;
}

static const char *check_enforce(const struct world *w)
{
        const char *wrong = NULL;

        for (uint32_t i = 0; !wrong && i < w->n_audits; i++) {
                wrong = check_audit(&w->audits[i]);
                if (!wrong && i > 0 && identity_compare(w->audits[i - 1].identity, w->audits[i].identity) >= 0)
                        wrong = "the audit is not sorted";
        }
        for (uint32_t i = 0; !wrong && i < w->n_approvals; i++) {
                const struct approval *a = &w->approvals[i];
                if (a->id == 0 || a->id >= w->next_approval_id)
                        wrong = "an approval that was never given";
                else if (a->program == 0)
                        wrong = "an approval of any program";
                else if ((a->script != 0) != (a->runs == RUNS_SCRIPT) ||
                         (a->command != 0) != (a->runs == RUNS_COMMAND) || (a->runs == RUNS_UNKNOWN && a->place == 0))
                        wrong = "an approval of any script";
        }
        return wrong;
}

const char *world_check(const struct world *w)
{
        const char *wrong = NULL;

        for (uint32_t i = 0; !wrong && i < w->n_leases; i++)
                wrong = check_lease(w, i);
        for (uint32_t i = 0; !wrong && i < w->n_entries; i++)
                wrong = check_entry(w, i);
        for (uint32_t i = 0; !wrong && i < w->n_holders; i++)
                wrong = check_holder(w, i);
        for (uint32_t i = 0; !wrong && i < w->n_plans; i++)
                wrong = check_plan(w, &w->plans[i]);
        if (!wrong)
                wrong = check_ledger(w);
        if (!wrong)
                wrong = check_index(w);
        if (!wrong)
                wrong = check_kept(w);
        if (!wrong)
                wrong = check_line(w);
        for (uint32_t i = 1; !wrong && i < w->n_processes; i++) {
                struct identity a = w->processes[i - 1].identity, b = w->processes[i].identity;
                if (a.pid > b.pid || (a.pid == b.pid && a.start_ticks >= b.start_ticks))
                        wrong = "processes are not sorted";
        }
        for (uint32_t i = 0; !wrong && i < w->n_processes; i++)
                wrong = check_process(w, &w->processes[i]);
        for (uint32_t i = 1; !wrong && i < w->n_occupancies; i++) {
                const struct occupancy *a = &w->occupancies[i - 1], *b = &w->occupancies[i];
                if (a->device > b->device || (a->device == b->device && a->identity.pid > b->identity.pid))
                        wrong = "occupancies are not sorted";
        }
        for (uint32_t i = 0; !wrong && i < w->n_occupancies; i++)
                if (!holder_at(w, w->occupancies[i].holder))
                        wrong = "memory on a device that no holder accounts for";
        for (uint32_t i = 0; !wrong && i < w->n_habits; i++)
                wrong = check_habit(w, i);
        if (!wrong)
                wrong = check_enforce(w);
        return wrong ? wrong : check_users(w);
}
