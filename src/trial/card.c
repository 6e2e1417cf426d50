/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include "trial/trial.h"

enum { LAG_MS = 600, LATE_MS = 2500 };

/* Physical memory in use: the driver's own, what nobody lists, what processes have, and what is still being freed. */
uint64_t card_used_bytes(const struct trial *t, uint32_t c)
{
        const struct card *card = &t->cards[c];
        uint64_t used = card->driver_bytes + card->hidden_bytes;

        for (uint32_t i = 0; i < t->n_procs; i++)
                if (t->procs[i].used && t->procs[i].card == c)
                        used += proc_on_card_bytes(&t->procs[i]);
        for (uint32_t i = 0; i < card->n_lags; i++)
                if (card->lags[i].until_ms > t->now_ms)
                        used += card->lags[i].bytes;
        return used;
}

/* What was freed shows, and stays taken, for a while more. */
void card_lag(struct trial *t, const struct proc *p, uint64_t bytes)
{
        struct card *card = &t->cards[p->card];
        uint32_t n = 0;

        for (uint32_t i = 0; i < card->n_lags; i++)
                if (card->lags[i].until_ms > t->now_ms)
                        card->lags[n++] = card->lags[i];
        card->n_lags = n;
        if (bytes == 0 || n == LAGS_MAX || !fault_strikes(&t->faults, FAULT_MEMORY_LAGS, &card->random))
                return;
        card->lags[card->n_lags++] = (struct lag){ .until_ms = t->now_ms + 1 + random_below(&card->random, LAG_MS),
                                                   .bytes = bytes,
                                                   .client = p->client };
}

uint64_t card_lags_of(const struct trial *t, uint32_t c, uint32_t client)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < t->cards[c].n_lags; i++)
                if (t->cards[c].lags[i].until_ms > t->now_ms && t->cards[c].lags[i].client == client)
                        sum += t->cards[c].lags[i].bytes;
        return sum;
}

static uint64_t lease_of_proc(const struct trial *t, const struct proc *p)
{
        return p->client == NOBODY ? 0 : t->clients[p->client].lease_id;
}

/* Everything with memory on it, as the driver lists it; what the list says of each may be missing. */
static void list_rows(struct trial *t, uint32_t c, struct look *look)
{
        struct card *card = &t->cards[c];

        for (uint32_t i = 0; i < t->n_procs && look->n_rows < ROWS_SEEN_MAX - 1; i++) {
                const struct proc *p = &t->procs[i];
                if (!p->used || p->card != c || proc_on_card_bytes(p) == 0 || p->is_owner)
                        continue;
                if (fault_strikes(&t->faults, FAULT_READING_ROW_MISSING, &card->random))
                        continue;
                bool no_figure = (p->no_figure && !t->faults.quiet) ||
                                 fault_strikes(&t->faults, FAULT_READING_ROW_UNKNOWN, &card->random);
                bool known = look->per_process && !no_figure;
                struct identity shown = p->identity;
                if (fault_strikes(&t->faults, FAULT_READING_GHOST, &card->random))
                        shown.start_ticks = 0;
                look->said[look->n_rows] = (struct row_said){ .identity = p->identity,
                                                              .bytes = known ? p->bytes : 0,
                                                              .lease_id = lease_of_proc(t, p),
                                                              .known = known,
                                                              .ghost = shown.start_ticks == 0,
                                                              .graphics = p->graphics };
                look->rows[look->n_rows++] = (struct occupancy){
                        .identity = shown,
                        .used_bytes = known ? p->bytes : 0,
                        .device = c,
                        .flags = (known ? ROW_USED_KNOWN : 0U) | (p->graphics ? ROW_GRAPHICS : ROW_COMPUTE) |
                                 (shown.start_ticks == 0 ? ROW_GHOST : 0U),
                };
        }
}

static uint32_t free_look(const struct trial *t)
{
        for (uint32_t i = 0; i < LOOKS_MAX; i++)
                if (!t->looks[i].used)
                        return i;
        return NOBODY;
}

void card_look(struct trial *t, uint32_t c)
{
        struct card *card = &t->cards[c];
        uint32_t l = free_look(t);

        if (!t->eyes_open || !t->up || card->lost || l == NOBODY)
                return;
        struct look *look = &t->looks[l];
        memset(look, 0, offsetof(struct look, rows));
        look->card = c;
        look->taken_ms = t->now_ms;
        look->per_process = !fault_strikes(&t->faults, FAULT_READING_NO_PROCESSES, &card->random);
        look->used_known = !fault_strikes(&t->faults, FAULT_READING_TOTAL_UNKNOWN, &card->random);
        look->settled = !fault_strikes(&t->faults, FAULT_READING_UNSETTLED, &card->random);
        look->total_bytes = look->used_known ? card->total_bytes : 0;
        look->used_bytes = look->used_known ? card_used_bytes(t, c) : 0;
        if (!look->settled && look->used_known) /* it is of two moments, and may say anything */
                look->used_bytes = random_below(&card->random, card->total_bytes + 1);
        list_rows(t, c, look);
        if (fault_strikes(&t->faults, FAULT_READING_LOST, &card->random))
                return;
        look->used = true;
        card->dirty = false;
        uint64_t late_ms =
                fault_strikes(&t->faults, FAULT_READING_LATE, &card->random) ? random_below(&card->random, LATE_MS) : 0;
        timer_add(t, 1 + random_below(&card->random, 5) + late_ms, TIMER_LOOK_ARRIVES, l, 0);
}

static bool tell_processes(struct trial *t, const struct look *look)
{
        for (uint32_t i = 0; i < look->n_rows; i++) {
                uint32_t p = proc_find(t, look->said[i].identity);
                struct input input = { .kind = INPUT_PROCESS };
                if (p == NOBODY || t->procs[p].told || look->said[i].ghost)
                        continue;
                proc_facts(t, p, &input.process);
                t->procs[p].told = true;
                if (!daemon_submit(t, &input) || !t->up)
                        return false;
        }
        return true;
}

static bool is_named(const struct look *look, struct identity identity)
{
        for (uint32_t i = 0; i < look->n_rows; i++)
                if (identity_equal(look->said[i].identity, identity))
                        return look->rows[i].identity.start_ticks != 0;
        return false;
}

/* Who of a lease is named: those nobody was told of before its end, nobody has to know after it. */
static void note_named(struct trial *t, const struct look *look)
{
        for (uint32_t i = 0; i < t->n_procs; i++) {
                struct proc *p = &t->procs[i];
                const struct book *b = p->client == NOBODY ? NULL : book_of(t, t->clients[p->client].lease_id);
                if (p->used && p->card == look->card)
                        p->known = (p->known || (b && book_lives(b))) && is_named(look, p->identity);
        }
}

/* Who is listed by its pid alone is taken for the one that had the number at the look before, if one had: of its end, and of
 * who has the number since, nobody has been told. */
static void take_for_the_one_before(const struct said *before, struct row_said *row)
{
        const struct row_said *was = NULL;

        for (uint32_t i = 0; i < before->n_rows; i++) {
                const struct row_said *at = &before->rows[i];
                if (at->identity.pid == row->identity.pid &&
                    (!was || at->identity.start_ticks > was->identity.start_ticks))
                        was = at;
        }
        if (was)
                row->lease_id = was->lease_id;
}

void card_look_arrives(struct trial *t, uint32_t l)
{
        struct look *look = &t->looks[l];
        struct input input = { .kind = INPUT_READING };

        if (!look->used)
                return; /* of eyes that are gone */
        look->used = false;
        if (!t->up || !t->eyes_open || t->cards[look->card].lost || !tell_processes(t, look))
                return;
        memcpy(input.reading.uuid, t->cards[look->card].uuid, UUID_TEXT_MAX);
        input.reading.taken_ms = look->taken_ms;
        input.reading.total_bytes = look->total_bytes;
        input.reading.used_bytes = look->used_bytes;
        input.reading.used_known = look->used_known;
        input.reading.per_process_known = look->per_process;
        input.reading.settled = look->settled;
        input.reading.n_rows = look->n_rows;
        input.reading.rows = look->rows;

        struct said *said = &t->cards[look->card].said;
        bool overtaken = look->taken_ms < said->taken_ms; /* it says nothing any more */
        if (!overtaken) {
                for (uint32_t i = 0; i < look->n_rows; i++)
                        if (look->said[i].ghost)
                                take_for_the_one_before(said, &look->said[i]);
                said->told = true;
                said->taken_ms = look->taken_ms;
                said->arrived_ms = t->now_ms;
                said->used_known = look->used_known;
                said->used_bytes = look->used_bytes;
                said->per_process = look->per_process;
                said->settled = look->settled;
                said->fresh = look->taken_ms >= said->changed_ms;
                said->n_rows = look->n_rows;
                memcpy(said->rows, look->said, look->n_rows * sizeof(look->said[0]));
        }
        t->count.readings++;
        (void) daemon_submit(t, &input);
        if (!overtaken && t->up)
                note_named(t, look);
}

void card_tell(struct trial *t, uint32_t c)
{
        struct card *card = &t->cards[c];
        struct input input = { .kind = INPUT_DEVICE };

        memcpy(input.device.uuid, card->uuid, sizeof(card->uuid));
        (void) snprintf(input.device.name, sizeof(input.device.name), "card %u", c);
        input.device.minor = c;
        input.device.total_bytes = card->total_bytes;
        input.device.health = card->lost ? DEVICE_LOST : DEVICE_OK;
        if (card->lost)
                card->said = (struct said){ .changed_ms = t->now_ms };
        for (uint32_t i = 0; i < t->n_procs && card->lost; i++)
                t->procs[i].known = t->procs[i].known && t->procs[i].card != c; /* what was read of it is forgotten */
        (void) daemon_submit(t, &input);
}

/* Does the list of the last look lack somebody, or say less of somebody than there is to be said? */
static bool list_is_poor(const struct trial *t, uint32_t c)
{
        const struct said *said = &t->cards[c].said;
        uint32_t n = 0;

        for (uint32_t i = 0; i < said->n_rows; i++) {
                uint32_t p = proc_find(t, said->rows[i].identity);
                if (p != NOBODY && (said->rows[i].ghost || (!said->rows[i].known && !t->procs[p].no_figure)))
                        return true;
        }
        for (uint32_t i = 0; i < t->n_procs; i++)
                n += t->procs[i].used && t->procs[i].card == c && proc_on_card_bytes(&t->procs[i]) != 0 &&
                     !t->procs[i].is_owner;
        return n > said->n_rows && said->n_rows < ROWS_SEEN_MAX - 1;
}

/* The eyes look by themselves, and say what they see where it differs; an exit they watched makes them look at once. */
void card_sweep(struct trial *t)
{
        for (uint32_t c = 0; c < t->n_cards; c++) {
                const struct said *said = &t->cards[c].said;
                if (t->cards[c].dirty || !said->used_known || !said->per_process || !said->settled ||
                    card_used_bytes(t, c) != said->used_bytes || list_is_poor(t, c))
                        card_look(t, c);
        }
}
