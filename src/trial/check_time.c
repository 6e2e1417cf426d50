/* SPDX-License-Identifier: Apache-2.0 */
/* What must not last: I9, and what has to be true when nothing is under way (I5, I10, I12). */
#include <inttypes.h>
#include "trial/trial.h"

/* Two seconds, and what the world needs to hear of it: a look every second, the tick that it is seen at. */
enum { I9_MS = 2000 + 3000, QUIET_MS = 30000, BACK_OFF_MS = 90000 };

/* Nobody can know of it before a good look shows it. The eyes look by themselves every 15 s, and in a bad life one look after
 * another is lost, late, or of two moments: a dozen in a row is none of that. */
enum { UNSEEN_MS = 12 * 15000 };

static bool anybody_waits_for(struct trial *t, uint64_t cards, uint64_t but)
{
        for (uint32_t i = 0; i < t->world->n_entries; i++) {
                const struct entry *e = &t->world->entries[i];
                const struct lease *l = e->kind == ENTRY_NONE ? NULL : world_lease_get(t->world, e->lease);
                if (l && l->id != but && (e->devices & cards) != 0)
                        return true;
        }
        return false;
}

static bool is_alone(struct trial *t, const struct book *b)
{
        for (uint32_t i = 0; i < t->world->n_leases; i++) {
                const struct book *other = book_of(t, t->world->lease_ids[i]);
                if (other && other != b && (other->devices & b->devices) != 0 && other->life >= LIFE_GRANTED &&
                    other->life <= LIFE_DRAINS)
                        return false;
        }
        return true;
}

/* What is kept for a display is nobody else's, whatever it uses of it. */
static uint64_t display_untaken_bytes(const struct trial *t, uint32_t card)
{
        uint64_t has_bytes = 0;
        bool any = false;

        for (uint32_t i = 0; i < t->n_procs; i++) {
                const struct proc *p = &t->procs[i];
                if (!p->used || !p->alive || !p->graphics || p->card != card)
                        continue;
                any = true;
                has_bytes += proc_on_card_bytes(p);
        }
        return any ? u64_sub0(t->config.display_bytes, has_bytes) : 0;
}

/* On the device where it had the most: more than was read, where it grew, which may have been on any of them. */
static uint64_t had_bytes(struct trial *t, const struct lease *l)
{
        uint64_t grown = u64_sub0(l->park.charged_bytes, l->park.used_bytes), most = 0;
        const struct holder *h;

        each_part (t->world, l, h)
                most = u64_max(most, h->began_used_bytes + grown);
        return most;
}

/* Does anything of the world hold it back? */
static bool may_return(struct trial *t, const struct book *b, const struct lease *l)
{
        bool held = l->park.cause == PARK_BY_PERSON && !l->park.wants_back &&
                    (l->park.until_ms == 0 || t->now_ms < l->park.until_ms);
        uint64_t hour_ago = u64_sub0(t->now_ms, HOURS(1));
        unsigned n_returns = 0;

        for (unsigned i = 0; i < l->park.n_returns && i < RETURNS_KEPT; i++)
                n_returns += l->park.returns_ms[i] >= hour_ago;
        if (held || l->park.idle || !t->eyes_open || !t->hands_up || n_returns >= t->config.returns_max || t->degraded)
                return false;
        for (uint32_t c = 0; c < t->n_cards; c++)
                if (book_is_on(b, c) && (t->cards[c].lost || t->now_ms - t->cards[c].foreign_grew_ms < BACK_OFF_MS))
                        return false;
        if ((b->blocked_ms != 0 && t->now_ms - b->blocked_ms < BACK_OFF_MS) || t->now_ms < l->park.again_ms ||
            t->now_ms < l->park.not_before_ms || l->park.undo_group != 0)
                return false;
        for (uint32_t c = 0; c < t->n_cards; c++) {
                uint64_t total = t->cards[c].total_bytes;
                uint64_t slack = (uint64_t) ((unsigned __int128) total * t->config.slack_milli / 1000);
                if (book_is_on(b, c) &&
                    card_used_bytes(t, c) + display_untaken_bytes(t, c) + u64_max(l->bytes, had_bytes(t, l)) + slack >
                            total)
                        return false;
        }
        return true;
}

static void check_comes_back(struct trial *t, const struct lease *l)
{
        struct book *b = book_of(t, l->id);

        if (!b || b->parked != PARKED_OUT || l->state != LEASE_PARKED || !is_alone(t, b) ||
            anybody_waits_for(t, b->devices, l->id) || !may_return(t, b, l)) {
                if (b)
                        b->fits_since_ms = b->fits_seen_ms = 0;
                return;
        }
        bool seen = true;
        if (b->fits_since_ms == 0)
                b->fits_since_ms = t->now_ms;
        for (uint32_t c = 0; c < t->n_cards; c++) {
                const struct said *said = &t->cards[c].said;
                if (book_is_on(b, c))
                        seen = seen && said->told && said->settled && said->used_known && said->per_process &&
                               said->taken_ms >= b->fits_since_ms;
        }
        b->fits_seen_ms = !seen ? 0 : b->fits_seen_ms != 0 ? b->fits_seen_ms : t->now_ms;
        if (t->now_ms - (seen ? b->fits_seen_ms : b->fits_since_ms) > (seen ? I9_MS : UNSEEN_MS))
                trial_break(t, "I9: L%" PRIu64 " is parked, fits and is alone since %" PRIu64 " ms", l->id,
                            t->now_ms - b->fits_since_ms);
}

static bool is_anything_under_way(const struct trial *t)
{
        if (t->n_orders != 0 || (t->last_death_ms != 0 && t->now_ms - t->last_death_ms < QUIET_MS))
                return true;
        return t->now_ms < t->unquiet_ms + QUIET_MS || !t->hands_up || !t->eyes_open;
}

/* I5, I12: every byte that parked work grew by is charged, and nobody but the core's books need say where it is. */
static void check_parked(struct trial *t)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < t->n_procs; i++) {
                const struct proc *p = &t->procs[i];
                if (!p->used || !p->alive || !p->away)
                        continue;
                const struct process *known = world_process_find(t->world, p->identity);
                if (!known || known->member == MEMBER_RUNNING)
                        trial_break(t, "I12: pid %u is parked, and nobody knows", p->identity.pid);
                sum += p->host_bytes;
        }
        if (sum != t->world->ledger_charged_bytes)
                trial_break(t, "I5: %" PRIu64 " are charged, and parked work grew by %" PRIu64,
                            t->world->ledger_charged_bytes, sum);
}

/* I10: what works works as a whole. */
static void check_whole(struct trial *t)
{
        for (uint32_t i = 0; i < t->n_procs; i++) {
                const struct proc *p = &t->procs[i];
                if (!p->used || !p->alive || p->client == NOBODY || (!p->locked && !p->away))
                        continue;
                const struct lease *l = world_lease_by_id(t->world, t->clients[p->client].lease_id);
                if (l && l->state == LEASE_ACTIVE && l->park.step == PARK_NONE)
                        trial_break(t, "I10: L%" PRIu64 " is active, and its pid %u is %s", l->id, p->identity.pid,
                                    p->away ? "parked" : "locked");
        }
}

void check_time(struct trial *t)
{
        if (!t->up)
                return;
        for (uint32_t i = 0; i < t->world->n_leases; i++)
                if (t->world->lease_ids[i] != 0)
                        check_comes_back(t, &t->world->leases[i]);
        check_promises_in_time(t);
        check_strangers_in_time(t);
        if (is_anything_under_way(t))
                return;
        check_parked(t);
        check_whole(t);
}
