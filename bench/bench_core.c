/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast the core decides: arbiter_step over a made-up day with about 100 leases on two cards (25 % requests, 25 % ends,
 * the rest readings, renewals and ticks), beside a fixed reference loop in the same run. Prints one JSON object.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "arbiter/arbiter.h"
#include "base/clock.h"

enum { STEPS = 400000, LEASES = 100, CARDS = 2, REFERENCE_ROUNDS = 200000000 };
#define GIB (UINT64_C(1) << 30)
#define MIB (UINT64_C(1) << 20)

static uint64_t rng_state = 42;

/* splitmix64: a seed means the same everywhere. */
static uint64_t rng(void)
{
        uint64_t z = (rng_state += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

struct bench {
        struct world *world;
        struct actions *out;
        uint64_t now_ms;
        uint64_t live[LEASES * 2]; /* ids of leases that hold or wait */
        uint32_t n_live;
        uint64_t n_grants, n_waits, n_refusals;
};

static void step(struct bench *b, struct input *input)
{
        input->now_ms = b->now_ms;
        arbiter_step(b->world, input, b->out);
        for (uint32_t i = 0; i < b->out->n; i++) {
                const struct action *a = &b->out->items[i];
                b->n_grants += a->kind == ACTION_GRANTED;
                b->n_waits += a->kind == ACTION_QUEUED;
                b->n_refusals += a->kind == ACTION_REFUSED;
                if ((a->kind == ACTION_GRANTED || a->kind == ACTION_QUEUED) && a->token != 0)
                        b->live[b->n_live++] = a->lease_id;
        }
}

static void uuid_of(char uuid[UUID_TEXT_MAX], uint32_t card)
{
        (void) snprintf(uuid, UUID_TEXT_MAX, "GPU-%08u", card);
}

static void look(struct bench *b, uint32_t card)
{
        struct occupancy rows[ROWS_MAX];
        struct input input = { .kind = INPUT_READING,
                               .reading = { .taken_ms = b->now_ms,
                                            .total_bytes = 80 * GIB,
                                            .used_known = true,
                                            .per_process_known = true,
                                            .settled = true,
                                            .rows = rows } };

        uuid_of(input.reading.uuid, card);
        for (uint32_t i = 0; i < b->world->n_leases; i++) {
                const struct lease *lease = &b->world->leases[i];
                if (lease->state != LEASE_ACTIVE || lease->device != card)
                        continue;
                rows[input.reading.n_rows++] = (struct occupancy){ .identity = lease->binding.owner,
                                                                   .used_bytes = lease->bytes / 2,
                                                                   .flags = ROW_COMPUTE | ROW_USED_KNOWN };
                input.reading.used_bytes += lease->bytes / 2;
        }
        step(b, &input);
}

static void ask(struct bench *b)
{
        uint32_t pid = (uint32_t) (rng() % 4000000) + 2;
        struct input input = { .kind = INPUT_PROCESS };

        input.process.identity = (struct identity){ .pid = pid, .start_ticks = b->now_ms };
        input.process.uid = 1000 + pid % 12;
        step(b, &input);
        input = (struct input){ .kind = INPUT_REQUEST };
        input.request = (struct request){ .token = 1,
                                          .uid = 1000 + pid % 12,
                                          .collected = true,
                                          .priority = (uint8_t) (2 + rng() % 4),
                                          .bytes = MIB * (64 + rng() % 3000),
                                          .slot_ms = rng() % 3 ? 60000 * (1 + rng() % 300) : 0 };
        input.request.binding.owner = (struct identity){ .pid = pid, .start_ticks = b->now_ms };
        step(b, &input);
}

static void end_one(struct bench *b)
{
        uint32_t at = (uint32_t) (rng() % b->n_live);
        struct input input = { .kind = INPUT_RELEASE,
                               .call = { .lease_id = b->live[at], .by_system = true, .end_reason = END_RELEASED } };

        struct lease *lease = world_lease_by_id(b->world, b->live[at]);
        struct input ended = { .kind = INPUT_PROCESS_ENDED };

        b->live[at] = b->live[--b->n_live];
        if (lease)
                ended.process_ended = lease->binding.owner;
        step(b, &input);
        step(b, &ended);
}

static double reference_s(void)
{
        uint64_t start_ns = clock_now_ns(), x = 1;

        for (uint32_t i = 0; i < REFERENCE_ROUNDS; i++)
                x = x * UINT64_C(6364136223846793005) + i;
        double s = (double) (clock_now_ns() - start_ns) / 1e9;
        return x == 0 ? 0 : s; /* so that the loop is not thrown away */
}

int main(void)
{
        struct bench b = { .now_ms = 1000 };
        struct config config;
        uint64_t n = 0, n_requests = 0;

        b.world = calloc(1, sizeof(*b.world));
        b.out = calloc(1, sizeof(*b.out));
        if (!b.world || !b.out)
                return EXIT_FAILURE;
        config_defaults(&config);
        world_init(b.world, &config);
        step(&b, &(struct input){ .kind = INPUT_EYES, .eyes = { .answering = true } });
        for (uint32_t card = 0; card < CARDS; card++) {
                struct input input = { .kind = INPUT_DEVICE,
                                       .device = { .total_bytes = 80 * GIB, .health = DEVICE_OK } };
                uuid_of(input.device.uuid, card);
                step(&b, &input);
                look(&b, card);
        }

        double before_s = reference_s();
        uint64_t start_ns = clock_now_ns();
        while (n < STEPS) {
                uint64_t dice = rng() % 100;
                b.now_ms += 20;
                if (dice < 25 && b.n_live < LEASES + LEASES / 2) {
                        ask(&b);
                        n += 2;
                        n_requests++;
                } else if (dice < 50 && b.n_live > LEASES / 2) {
                        end_one(&b);
                        n += 2;
                } else if (dice < 70) {
                        look(&b, (uint32_t) (rng() % CARDS));
                        n++;
                } else if (dice < 80 && b.n_live != 0) {
                        step(&b,
                             &(struct input){ .kind = INPUT_RENEW,
                                              .call = { .lease_id = b.live[rng() % b.n_live], .by_system = true } });
                        n++;
                } else {
                        step(&b, &(struct input){ .kind = INPUT_TICK });
                        n++;
                }
        }
        double core_s = (double) (clock_now_ns() - start_ns) / 1e9;
        double loop_s = (before_s + reference_s()) / 2;

        const char *wrong = world_check(b.world);
        if (wrong) {
                (void) fprintf(stderr, "bench core: the books are wrong: %s\n", wrong);
                return EXIT_FAILURE;
        }
        (void) printf(
                "{\"bench\":\"core\",\"steps\":%llu,\"requests\":%llu,\"grants\":%llu,\"waits\":%llu,\"refusals\":%llu,"
                "\"leases\":%u,\"core_s\":%.3f,\"reference_s\":%.3f,\"steps_per_s\":%.0f,"
                "\"ratio_steps_per_reference_round\":%.6f,\"bound\":\"steps_per_s >= 1000000\"}\n",
                (unsigned long long) n, (unsigned long long) n_requests, (unsigned long long) b.n_grants,
                (unsigned long long) b.n_waits, (unsigned long long) b.n_refusals, b.n_live, core_s, loop_s,
                (double) n / core_s, ((double) n / core_s) / (REFERENCE_ROUNDS / loop_s));
        free(b.world);
        free(b.out);
        return EXIT_SUCCESS;
}
