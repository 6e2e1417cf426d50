/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast the core decides. A day with about 100 leases on two cards is made up and recorded once, input by input, by
 * living through it: who is granted later gives back, a look that is ordered follows. Then the recording is given to
 * arbiter_step from an empty world, and only that is timed, in turns with a fixed reference loop. Prints one JSON object.
 *
 *      bench_core STEPS            a day on which many of the leases give way: plans, parks, thaws (design 9)
 *      bench_core STEPS queue      one on which nobody does: all wait for room, as before there were plans
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "arbiter/arbiter.h"
#include "base/number.h"

enum {
        STEPS_MAX = 1000000,
        LEASES = 100,
        LIVE_MAX = 125, /* with those that wait */
        LIVE_MIN = 85,
        LIVE_MOST = 104, /* with plans: hardly anybody waits for long */
        STAYING = 64,    /* programs that ask again and again; the others come for one lease */
        GIVING_WAY = 35, /* leases of fillers, by checkpoint, on the day with plans */
        OUTCOMES_MAX = 256,
        CARDS = 2,
        REPLAYS = 5,
        REFERENCE_HASHES = 4000000,
        REFERENCE_BYTES = 64,
};
#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

struct day {
        uint8_t *inputs; /* packed, as they would stand in a journal: the largest input is a whole configuration */
        size_t n_bytes, n_bytes_max;
        uint32_t n, n_max;
        struct occupancy *rows; /* of all readings, one behind the other */
        size_t n_rows, n_rows_max;
        /* What it consists of. */
        uint64_t n_actions, n_requests, n_readings, n_grants, n_waits, n_heads, n_holding, n_waiting;
        uint64_t n_plans, n_parked, n_thawed; /* plans that began */
        bool gives_way;
};

struct life { /* of the day, while it is recorded */
        struct day *day;
        struct world *world;
        struct actions *out;
        uint64_t random, now_ms, claims;
        uint64_t live[LIVE_MAX + 1]; /* ids of leases that hold or wait */
        uint32_t n_live;
        bool asked[CARDS];                   /* a look was ordered */
        struct input outcomes[OUTCOMES_MAX]; /* of the orders to the hands that are out */
        uint32_t n_outcomes;
};

static _Noreturn void give_up(const char *words)
{
        (void) fprintf(stderr, "bench_core: %s\n", words);
        exit(EXIT_FAILURE);
}

static uint64_t below(struct life *l, uint64_t n) /* splitmix64: the same day everywhere */
{
        uint64_t z = (l->random += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return (z ^ (z >> 31)) % n;
}

static struct world *new_world(void)
{
        struct world *world = calloc(1, sizeof(*world));
        struct config config;

        if (!world)
                give_up("no memory for a world");
        config_defaults(&config);
        world_init(world, &config);
        return world;
}

/* ---- recording ---- */

/* Who is head, where, until when, and what is claimed for it: a step that changes this has planned. */
static uint64_t claims_of(const struct world *w)
{
        uint64_t sum = 0;

        for (uint32_t i = 0; i < w->n_entries; i++)
                if (w->entries[i].is_head)
                        sum += w->entries[i].id * 31 + w->entries[i].head_device * 7 + w->entries[i].start_ms;
        for (uint32_t i = 0; i < w->n_holders; i++)
                if (w->holders[i].kind == HOLDER_CLAIM)
                        sum += w->holders[i].reserved_bytes * 3 + i;
        return sum;
}

static void count_state(struct life *l)
{
        for (uint32_t i = 0; i < l->world->n_leases; i++) {
                l->day->n_holding += lease_state_holds((enum lease_state) l->world->leases[i].state);
                l->day->n_waiting += l->world->leases[i].state == LEASE_QUEUED;
        }
        uint64_t claims = claims_of(l->world);
        l->day->n_heads += claims != l->claims;
        l->claims = claims;
}

/* The hands do what they are told. */
static void note_order(struct life *l, const struct action *a)
{
        if (l->n_outcomes == OUTCOMES_MAX)
                give_up("more orders than were reckoned with");
        l->outcomes[l->n_outcomes++] =
                (struct input){ .kind = INPUT_OUTCOME,
                                .outcome = { .order_id = a->id,
                                             .lease_id = a->lease_id,
                                             .process = a->process,
                                             .outcome = OUTCOME_DONE,
                                             .host_bytes = a->hand == HAND_CHECKPOINT ? a->bytes : 0 } };
}

static void note_actions(struct life *l)
{
        l->day->n_actions += l->out->n;
        for (uint32_t i = 0; i < l->out->n; i++) {
                const struct action *a = &l->out->items[i];
                l->day->n_grants += a->kind == ACTION_GRANTED;
                l->day->n_waits += a->kind == ACTION_QUEUED;
                if ((a->kind == ACTION_GRANTED || a->kind == ACTION_QUEUED) && a->token != 0)
                        l->live[l->n_live++] = a->lease_id;
                if (a->kind == ACTION_READ)
                        l->asked[a->device] = true;
                if (a->kind == ACTION_HAND)
                        note_order(l, a);
                l->day->n_plans += a->kind == ACTION_PLAN && a->why.rule == RULE_PLAN_BEGAN;
                l->day->n_parked += a->kind == ACTION_PARKED && a->why.rule == RULE_PARKED;
                l->day->n_thawed += a->kind == ACTION_THAWED && a->why.rule == RULE_THAWED;
        }
}

/* How much of an input says something. */
static size_t size_of(const struct input *input)
{
        const size_t head = offsetof(struct input, request);

        switch ((unsigned) input->kind) {
        case INPUT_REQUEST:
                return head + sizeof(input->request);
        case INPUT_READING:
                return head + sizeof(input->reading);
        case INPUT_DEVICE:
                return head + sizeof(input->device);
        case INPUT_PROCESS:
                return head + sizeof(input->process);
        case INPUT_HOST:
                return head + sizeof(input->host);
        case INPUT_OUTCOME:
                return head + sizeof(input->outcome);
        }
        return head + sizeof(input->call);
}

static void keep(struct day *day, const struct input *input)
{
        size_t n = size_of(input);

        if (n > day->n_bytes_max - day->n_bytes)
                give_up("more bytes than were reckoned with");
        memcpy(day->inputs + day->n_bytes, input, n);
        day->n_bytes += n;
        day->n++;
}

static void step(struct life *l, struct input *input)
{
        struct day *day = l->day;

        if (day->n == day->n_max)
                return;
        input->now_ms = l->now_ms;
        keep(day, input);
        day->n_requests += input->kind == INPUT_REQUEST;
        day->n_readings += input->kind == INPUT_READING;
        arbiter_step(l->world, input, l->out);
        note_actions(l);
        count_state(l);
}

static void uuid_of(char uuid[UUID_TEXT_MAX], uint32_t card)
{
        (void) snprintf(uuid, UUID_TEXT_MAX, "GPU-%08u", card);
}

/* Its memory is on its card: it runs, or nothing has been moved yet, or it is back. */
static bool is_on_its_card(const struct life *l, const struct lease *lease)
{
        if (lease->state == LEASE_ACTIVE)
                return true;
        const struct process *p = world_process_find(l->world, lease->binding.owner);
        return (lease->state == LEASE_ASKING || lease->state == LEASE_THAWING) && p &&
               (p->member < MEMBER_CHECKPOINTED || p->member > MEMBER_RESTORING);
}

static void look(struct life *l, uint32_t card)
{
        struct day *day = l->day;
        struct input input = { .kind = INPUT_READING,
                               .reading = { .taken_ms = l->now_ms,
                                            .total_bytes = 80 * GIB,
                                            .used_known = true,
                                            .per_process_known = true,
                                            .settled = true,
                                            .rows = &day->rows[day->n_rows] } };

        uuid_of(input.reading.uuid, card);
        for (uint32_t i = 0; i < l->world->n_leases; i++) {
                const struct lease *lease = &l->world->leases[i];
                if (l->world->lease_ids[i] == 0 || lease->device != card || !is_on_its_card(l, lease))
                        continue;
                if (day->n_rows == day->n_rows_max)
                        give_up("more rows than were reckoned with");
                day->rows[day->n_rows++] = (struct occupancy){ .identity = lease->binding.owner,
                                                               .used_bytes = lease->bytes / 2,
                                                               .flags = ROW_COMPUTE | ROW_USED_KNOWN };
                input.reading.n_rows++;
                input.reading.used_bytes += lease->bytes / 2;
        }
        l->asked[card] = false;
        step(l, &input);
}

static void meet(struct life *l, struct identity program)
{
        struct input input = {
                .kind = INPUT_PROCESS,
                .process = { .identity = program, .uid = 1000 + program.pid % 12, .room_bytes = UINT64_MAX }
        };
        step(l, &input);
}

static struct identity staying(uint64_t number)
{
        return (struct identity){ .pid = (uint32_t) (10 + number), .start_ticks = 1 };
}

static bool stays(struct identity program)
{
        return program.start_ticks == 1;
}

/* One that gives way to whoever is more important, and comes back. */
static void ask_as_filler(struct life *l)
{
        struct identity owner = { .pid = (uint32_t) (1000 + below(l, 4000000)), .start_ticks = l->now_ms };
        struct input request = { .kind = INPUT_REQUEST,
                                 .request = { .token = 1,
                                              .uid = 1000 + owner.pid % 12,
                                              .collected = true,
                                              .priority = PRIORITY_FILLER,
                                              .bytes = MIB * (64 + below(l, 3000)),
                                              .ways.named = WAY_OUT_BIT(WAY_OUT_CHECKPOINT),
                                              .binding.owner = owner } };
        meet(l, owner);
        step(l, &request);
}

static uint32_t count_giving_way(const struct life *l)
{
        uint32_t n = 0;

        for (uint32_t i = 0; i < l->world->n_leases; i++)
                n += l->world->lease_ids[i] != 0 && l->world->leases[i].ways.named != 0;
        return n;
}

static void ask(struct life *l)
{
        struct identity owner = { .pid = (uint32_t) (1000 + below(l, 4000000)), .start_ticks = l->now_ms };

        if (below(l, l->day->gives_way ? 8 : 2))
                owner = staying(below(l, STAYING));
        else
                meet(l, owner);
        struct input request = { .kind = INPUT_REQUEST,
                                 .request = { .token = 1,
                                              .uid = 1000 + owner.pid % 12,
                                              .collected = true,
                                              .priority = (uint8_t) (2 + below(l, 4)),
                                              .bytes = MIB * (64 + below(l, l->day->gives_way ? 3700 : 3000)),
                                              .slot_ms = below(l, 3) ? 60000 * (1 + below(l, 300)) : 0,
                                              .binding.owner = owner } };
        step(l, &request);
}

static void end_one(struct life *l)
{
        uint32_t at = (uint32_t) below(l, l->n_live);
        const struct lease *lease = world_lease_by_id(l->world, l->live[at]);

        if (lease && lease->park.step != PARK_NONE)
                return; /* nobody else could bring it back, so nobody may */
        struct input ended = { .kind = INPUT_PROCESS_ENDED };
        struct input release = { .kind = INPUT_RELEASE,
                                 .call = { .lease_id = l->live[at], .by_system = true, .end_reason = END_RELEASED } };

        l->live[at] = l->live[--l->n_live];
        if (lease)
                ended.process_ended = lease->binding.owner;
        step(l, &release);
        if (lease && !stays(ended.process_ended))
                step(l, &ended);
}

static void live_on(struct life *l)
{
        uint64_t dice = below(l, 100);
        /* Each plan brings orders, looks and outcomes: for the same share of requests more is asked. */
        bool busy = l->day->gives_way;
        uint32_t most = busy ? LIVE_MOST : LIVE_MAX;

        l->now_ms += below(l, 400);
        for (uint32_t card = 0; card < CARDS; card++)
                if (l->asked[card])
                        look(l, card);
        for (uint32_t n = l->n_outcomes; n > 0; n--) { /* those that it leads to come with the next turn */
                struct input outcome = l->outcomes[0];
                l->n_outcomes--;
                memmove(l->outcomes, l->outcomes + 1, l->n_outcomes * sizeof(l->outcomes[0]));
                step(l, &outcome);
        }
        if (busy && l->n_live < most && count_giving_way(l) < GIVING_WAY) {
                ask_as_filler(l);
        } else if (dice < (busy ? 50 : 40) && l->n_live < most) {
                ask(l);
        } else if (dice < (busy ? 98 : 80) && l->n_live > LIVE_MIN) {
                end_one(l);
        } else if (dice < (busy ? 99 : 90) && l->n_live != 0) {
                struct input renew = { .kind = INPUT_RENEW,
                                       .call = { .lease_id = l->live[below(l, l->n_live)], .by_system = true } };
                step(l, &renew);
        } else {
                step(l, &(struct input){ .kind = INPUT_TICK });
        }
}

static void record(struct day *day)
{
        struct life l = { .day = day, .now_ms = 1000, .random = 42, .world = new_world() };

        l.out = calloc(1, sizeof(*l.out));
        if (!l.out)
                give_up("no memory for actions");
        step(&l, &(struct input){ .kind = INPUT_EYES, .eyes = { .answering = true } });
        for (uint32_t card = 0; card < CARDS; card++) {
                struct input input = { .kind = INPUT_DEVICE,
                                       .device = { .total_bytes = 80 * GIB, .health = DEVICE_OK } };
                uuid_of(input.device.uuid, card);
                step(&l, &input);
                look(&l, card);
        }
        for (uint64_t i = 0; i < STAYING; i++)
                meet(&l, staying(i));
        if (day->gives_way)
                step(&l, &(struct input){ .kind = INPUT_HOST,
                                          .host = { .total_bytes = 1024 * GIB,
                                                    .available_bytes = 900 * GIB,
                                                    .driver = 1,
                                                    .checkpoint = CHECKPOINT_CAN } });
        while (day->n < day->n_max)
                live_on(&l);

        const char *wrong = world_check(l.world);
        if (wrong)
                give_up(wrong);
        free(l.world);
        free(l.out);
}

/* ---- timing ---- */

/* The processor's time, not the wall's: both loops only compute, and others may work beside them. */
static uint64_t cpu_now_ns(void)
{
        struct timespec now;

        if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) < 0)
                give_up("no clock for the processor's time");
        return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

static double replay_s(const struct day *day, uint64_t *ret_actions)
{
        struct world *world = new_world();
        struct actions *out = calloc(1, sizeof(*out));
        uint64_t n = 0;

        if (!out)
                give_up("no memory for actions");
        struct input input;
        const uint8_t *at = day->inputs;
        uint64_t start_ns = cpu_now_ns();
        while (at < day->inputs + day->n_bytes) {
                memcpy(&input, at, offsetof(struct input, request)); /* the kind says how long it is */
                size_t n_bytes = size_of(&input);
                memcpy(&input, at, n_bytes);
                at += n_bytes;
                arbiter_step(world, &input, out);
                n += out->n;
        }
        double s = (double) (cpu_now_ns() - start_ns) / 1e9;
        *ret_actions = n;
        free(world);
        free(out);
        return s;
}

static volatile uint64_t reference_result; /* so that the loop is not thrown away */

static double reference_s(void)
{
        uint8_t bytes[REFERENCE_BYTES];
        uint64_t hash = UINT64_C(14695981039346656037);

        memset(bytes, 0x5a, sizeof(bytes));
        uint64_t start_ns = cpu_now_ns();
        for (uint32_t round = 0; round < REFERENCE_HASHES; round++)
                for (uint32_t i = 0; i < REFERENCE_BYTES; i++)
                        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
        reference_result = hash;
        return (double) (cpu_now_ns() - start_ns) / 1e9;
}

static int by_value(const void *a, const void *b)
{
        double x = *(const double *) a, y = *(const double *) b;
        return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
        struct error err = { 0 };
        struct day day = { 0 };
        double core_s[REPLAYS], loop_s[REPLAYS];
        uint64_t n_steps, n_actions = 0;

        bool queue = argc == 3 && strcmp(argv[2], "queue") == 0;
        if ((argc != 2 && !queue) || parse_u64("STEPS", argv[1], 1000, STEPS_MAX, &n_steps, &err) < 0)
                give_up(err.msg[0] ? err.msg : "usage: bench_core STEPS [queue]");
        day.gives_way = !queue;
        day.n_max = (uint32_t) n_steps;
        day.n_rows_max = (size_t) n_steps * LIVE_MAX;
        day.n_bytes_max = (size_t) n_steps * (sizeof(struct request) + 64);
        day.inputs = calloc(day.n_bytes_max, 1);
        day.rows = calloc(day.n_rows_max, sizeof(*day.rows)); /* pages nobody writes to cost nothing */
        if (!day.inputs || !day.rows)
                give_up("no memory for a day");
        record(&day);

        for (uint32_t i = 0; i < REPLAYS; i++) {
                loop_s[i] = reference_s();
                core_s[i] = replay_s(&day, &n_actions);
                if (n_actions != day.n_actions)
                        give_up("the same day went otherwise");
        }
        qsort(core_s, REPLAYS, sizeof(*core_s), by_value);
        qsort(loop_s, REPLAYS, sizeof(*loop_s), by_value);
        (void) printf("{\"steps\":%u,\"requests\":%.4f,\"readings\":%.4f,\"plans\":%.4f,\"heads\":%.4f,\"grants\":%llu,"
                      "\"waits\":%llu,\"parked\":%llu,\"thawed\":%llu,"
                      "\"actions\":%llu,\"holding\":%.1f,\"waiting\":%.1f,\"replays\":%d,\"core_s\":%.4f,"
                      "\"reference_s\":%.4f,\"steps_per_s\":%.0f,\"reference_per_s\":%.0f}\n",
                      day.n, (double) day.n_requests / day.n, (double) day.n_readings / day.n,
                      (double) day.n_plans / day.n, (double) day.n_heads / day.n, (unsigned long long) day.n_grants,
                      (unsigned long long) day.n_waits, (unsigned long long) day.n_parked,
                      (unsigned long long) day.n_thawed, (unsigned long long) n_actions, (double) day.n_holding / day.n,
                      (double) day.n_waiting / day.n, REPLAYS, core_s[REPLAYS / 2], loop_s[REPLAYS / 2],
                      day.n / core_s[REPLAYS / 2], REFERENCE_HASHES / loop_s[REPLAYS / 2]);
        free(day.inputs);
        free(day.rows);
        return EXIT_SUCCESS;
}
