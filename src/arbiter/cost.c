/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/cost.h"
#include "base/number.h"

/* Where nothing was measured yet: the driver moves some 2 GB a second (design 4), programs end and start in half a minute. */
enum { BYTES_PER_MS = 2000000, END_GUESS_MS = 5000, START_GUESS_MS = 30000, ASK_GUESS_MS = 5000 };

static bool breaks_work(enum way_out_kind way)
{
        return way == WAY_OUT_RESTART || way == WAY_OUT_KILL;
}

static struct cost guess(const struct lease *lease, enum way_out_kind way)
{
        uint64_t move_ms = lease_whole_bytes(lease) / BYTES_PER_MS;

        switch (way) {
        case WAY_OUT_CHECKPOINT:
                return (struct cost){ .out_ms = move_ms, .back_ms = move_ms };
        case WAY_OUT_COOPERATE:
        case WAY_OUT_RELEASE:
                return (struct cost){ .out_ms = ASK_GUESS_MS, .back_ms = move_ms };
        case WAY_OUT_RESTART:
        case WAY_OUT_KILL:
        case WAY_OUT_N:
                break;
        }
        return (struct cost){ .out_ms = END_GUESS_MS, .back_ms = START_GUESS_MS };
}

struct cost cost_of(struct world *w, const struct lease *lease, enum way_out_kind way)
{
        const struct habit *habit = world_habit_find(w, lease->uid, lease->consumer);
        struct cost cost = guess(lease, way);

        if (!habit || habit->costs[way].n == 0)
                return cost;
        cost.out_ms = habit->costs[way].out_ms;
        if (habit->costs[way].back_ms != 0)
                cost.back_ms = habit->costs[way].back_ms;
        cost.measured = habit->costs[way].back_ms != 0;
        return cost;
}

uint64_t cost_in_all_ms(struct world *w, const struct lease *lease, enum way_out_kind way)
{
        struct cost cost = cost_of(w, lease, way);
        uint64_t ms = u64_add_sat(cost.out_ms, cost.back_ms);
        uint64_t since_ms = u64_max(lease->active_ms, lease->park.returned_ms);

        return breaks_work(way) ? u64_add_sat(ms, u64_sub0(w->now_ms, since_ms)) : ms;
}

/* The newest counts a quarter: a program that was changed is priced anew within a few runs. */
static uint64_t mix(uint64_t mean, uint64_t value, uint64_t n)
{
        return n == 0 ? value : mean - mean / 4 + value / 4;
}

static struct way_cost *row(struct world *w, const struct lease *lease, enum way_out_kind way)
{
        struct habit *habit = lease->consumer[0] != '\0' ? world_habit(w, lease->uid, lease->consumer) : NULL;

        if (!habit)
                return NULL;
        habit->last_ms = w->now_ms;
        return &habit->costs[way];
}

void cost_learn_out(struct world *w, const struct lease *lease, enum way_out_kind way, uint64_t out_ms, uint64_t bytes)
{
        struct way_cost *cost = row(w, lease, way);

        if (!cost)
                return;
        uint64_t off_ms = cost->out_ms > out_ms ? cost->out_ms - out_ms : out_ms - cost->out_ms;
        cost->spread_ms = cost->n == 0 ? 0 : mix(cost->spread_ms, off_ms, cost->n);
        cost->out_ms = mix(cost->out_ms, out_ms, cost->n);
        cost->bytes = bytes;
        cost->n++;
}

void cost_learn_back(struct world *w, const struct lease *lease, enum way_out_kind way, uint64_t back_ms)
{
        struct way_cost *cost = row(w, lease, way);

        if (cost)
                cost->back_ms = mix(cost->back_ms, u64_max(back_ms, 1), cost->back_ms);
}

void cost_learn_asked(struct world *w, const struct lease *lease, bool did)
{
        struct habit *habit = lease->consumer[0] != '\0' ? world_habit(w, lease->uid, lease->consumer) : NULL;

        if (!habit)
                return;
        habit->last_ms = w->now_ms;
        *(did ? &habit->n_cooperated : &habit->n_ignored) += 1;
}

static bool is_proven(struct world *w, uint32_t uid, const char *consumer)
{
        const struct habit *habit = consumer[0] != '\0' ? world_habit_find(w, uid, consumer) : NULL;

        return habit && habit->proven && habit->proof_driver == w->host.driver;
}

/* Does it run what was proven? What cannot be seen is looked at once more when it is locked. */
static bool runs_what_was_proven(struct world *w, const struct lease *lease)
{
        const struct habit *habit = world_habit_find(w, lease->uid, lease->consumer);
        struct ref ref = world_lease_ref(w, lease);

        for (uint32_t i = 0; habit && i < w->n_processes; i++) {
                const struct process *p = &w->processes[i];
                if (ref_equal(p->lease, ref) && p->program != 0 && habit->proof_program != 0 &&
                    p->program != habit->proof_program && world_has_memory_of(w, lease, p->identity))
                        return false;
        }
        return true;
}

uint8_t ways_of_lease(struct world *w, const struct lease *lease)
{
        uint8_t ways = lease->ways.named;

        if ((ways == 0 || lease->filler) && !(ways & WAY_OUT_BIT(WAY_OUT_CHECKPOINT))) {
                bool learned = is_proven(w, lease->uid, lease->consumer);
                if (lease->ways.proven & WAY_OUT_BIT(WAY_OUT_CHECKPOINT) ? runs_what_was_proven(w, lease)
                                                                         : learned && runs_what_was_proven(w, lease))
                        ways |= WAY_OUT_BIT(WAY_OUT_CHECKPOINT);
        }
        return ways;
}

void ways_prove(struct world *w, struct lease *lease)
{
        struct habit *habit = lease->consumer[0] != '\0' ? world_habit(w, lease->uid, lease->consumer) : NULL;
        struct ref ref = world_lease_ref(w, lease);
        struct holder *h;

        if (habit) {
                habit->proven = true;
                habit->proof_driver = w->host.driver;
                habit->proof_program = 0;
                habit->last_ms = w->now_ms;
                for (uint32_t i = 0; i < w->n_processes; i++)
                        if (ref_equal(w->processes[i].lease, ref) && w->processes[i].program != 0 &&
                            world_has_memory_of(w, lease, w->processes[i].identity))
                                habit->proof_program = w->processes[i].program;
        }
        if (lease->ways.named != 0 && !lease->filler)
                return; /* what is named is all that is used */
        each_part (w, lease, h)
                world_holder_writing(w, h);
        lease->ways.proven |= WAY_OUT_BIT(WAY_OUT_CHECKPOINT);
        each_part (w, lease, h) {
                h->ways = lease->ways;
                world_holder_written(w, h);
        }
}

struct ways_out ways_of_request(struct world *w, const struct request *r)
{
        struct ways_out ways = r->ways;

        if (r->filler && ways.named == 0)
                ways.named = WAY_OUT_BIT(WAY_OUT_RESTART);
        if ((r->filler || ways.named == 0) && !r->managed && is_proven(w, r->uid, r->consumer))
                ways.proven |= WAY_OUT_BIT(WAY_OUT_CHECKPOINT);
        return ways;
}
