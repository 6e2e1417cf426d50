/* SPDX-License-Identifier: Apache-2.0 */
#include "scene_park.h"
#include <stdio.h>
#include <string.h>
#include "arbiter/park.h"

/* What a process had on its card while it was away. One scene at a time. */
static struct {
        struct identity identity;
        uint64_t bytes;
        uint32_t device;
} away[SCENE_ROWS_MAX];
static unsigned n_away;

static struct {
        unsigned n, skip;
        enum outcome outcome;
        enum hand_why why;
} next[HAND_VERB_N];
static struct action unanswered[HAND_VERB_N];
static bool lies;
static uint64_t overhead_milli;

static void put_away(struct scene *s, const struct action *a)
{
        bool any = false;

        for (uint32_t device = 0; device < s->n_cards; device++) {
                struct scene_row *row = scene_row(s, a->process.pid, device);
                if (!row)
                        continue;
                away[n_away].identity = a->process;
                away[n_away].bytes = row->bytes;
                away[n_away++].device = device;
                if (!lies)
                        *row = s->rows[--s->n_rows];
                any = true;
        }
        assert_true(any);
}

static uint64_t used_on(const struct scene *s, uint32_t device)
{
        uint64_t used = s->cards[device].hidden_bytes;

        for (uint32_t i = 0; i < s->n_rows; i++)
                if (s->rows[i].device == device)
                        used += s->rows[i].bytes;
        return used;
}

/* The last look at each of its devices. */
static bool has_headroom(struct scene *s, const struct action *a)
{
        const struct lease *lease = scene_lease(s, a->lease_id);
        const struct process *p = world_process_find(s->world, a->process);

        if (used_on(s, a->device) > a->limit_bytes)
                return false;
        for (uint32_t i = 1; i < lease_n_parts(lease); i++)
                if (used_on(s, lease_part(lease, i).device) > thaw_limit_bytes(s->world, lease, p, i))
                        return false;
        return true;
}

static void bring_back(struct scene *s, const struct action *a)
{
        bool any = false;

        for (unsigned i = n_away; i-- > 0;) {
                if (away[i].identity.pid != a->process.pid)
                        continue;
                any = true;
                s->rows[s->n_rows++] = (struct scene_row){ .identity = away[i].identity,
                                                           .bytes = away[i].bytes,
                                                           .device = away[i].device,
                                                           .flags = ROW_USED_KNOWN | ROW_COMPUTE };
                away[i] = away[--n_away];
        }
        if (!any)
                fail_msg("a restore of pid %u, which is not away", a->process.pid);
}

static uint64_t away_bytes(uint32_t pid)
{
        uint64_t bytes = 0;

        for (unsigned i = 0; i < n_away; i++)
                if (away[i].identity.pid == pid)
                        bytes += away[i].bytes;
        return bytes;
}

static void tell(struct scene *s, const struct action *a, enum outcome outcome, enum hand_why why, uint64_t host_bytes)
{
        struct input input = { .kind = INPUT_OUTCOME };

        input.outcome = (struct hand_outcome){ .order_id = a->id,
                                               .lease_id = a->lease_id,
                                               .process = a->process,
                                               .outcome = (uint8_t) outcome,
                                               .why = (uint8_t) why,
                                               .host_bytes = host_bytes };
        scene_step(s, &input);
}

static void carry_out(struct scene *s, const struct action *a)
{
        uint64_t host_bytes = 0;

        if (a->hand == HAND_CHECKPOINT) {
                put_away(s, a);
                host_bytes = away_bytes(a->process.pid);
                host_bytes += host_bytes / 1000 * overhead_milli;
        } else if (a->hand == HAND_RESTORE) {
                if (!has_headroom(s, a)) {
                        tell(s, a, OUTCOME_BLOCKED, HAND_WHY_HEADROOM, 0);
                        return;
                }
                bring_back(s, a);
        }
        tell(s, a, OUTCOME_DONE, HAND_WHY_NONE, host_bytes);
}

static void on_order(struct scene *s, const struct action *a)
{
        if (a->hand == HAND_SIGNAL || a->hand == HAND_KILL_TREE)
                return; /* what becomes of it is for the test to say */
        if (next[a->hand].n == 0 || next[a->hand].skip > 0) {
                if (next[a->hand].skip > 0)
                        next[a->hand].skip--;
                carry_out(s, a);
                return;
        }
        next[a->hand].n--;
        if (next[a->hand].outcome == OUTCOME_NONE)
                unanswered[a->hand] = *a;
        else
                tell(s, a, next[a->hand].outcome, next[a->hand].why, 0);
}

void scene_host(struct scene *s, uint64_t total_bytes, uint64_t available_bytes, bool pressure)
{
        struct input input = { .kind = INPUT_HOST };

        input.host = (struct host){ .total_bytes = total_bytes,
                                    .available_bytes = available_bytes,
                                    .read_ms = s->now_ms,
                                    .driver = 580,
                                    .pressure = pressure,
                                    .checkpoint = CHECKPOINT_CAN };
        scene_step(s, &input);
}

void scene_hands(struct scene *s)
{
        n_away = 0;
        lies = false;
        overhead_milli = 0;
        memset(next, 0, sizeof(next));
        memset(unanswered, 0, sizeof(unanswered));
        s->hands = on_order;
        s->n_done = s->n_log;
        scene_host(s, GiB(64), GiB(50), false);
}

void scene_next(struct scene *s, enum hand_verb verb, unsigned n, enum outcome outcome, enum hand_why why)
{
        (void) s;
        next[verb].skip = 0;
        next[verb].n = n;
        next[verb].outcome = outcome;
        next[verb].why = why;
}

void scene_skip(struct scene *s, enum hand_verb verb, unsigned n)
{
        (void) s;
        next[verb].skip = n;
}

void scene_answers_late(struct scene *s, enum hand_verb verb)
{
        struct action a = unanswered[verb];

        assert_int_equal(a.hand, verb);
        memset(&unanswered[verb], 0, sizeof(unanswered[verb]));
        carry_out(s, &a);
}

void scene_overhead(struct scene *s, uint64_t milli)
{
        (void) s;
        overhead_milli = milli;
}

void scene_lies(struct scene *s, bool from_now_on)
{
        (void) s;
        lies = from_now_on;
}

unsigned scene_n_orders(const struct scene *s, size_t since, enum hand_verb verb)
{
        unsigned n = 0;

        for (size_t i = since; i < s->n_log; i++)
                n += s->log[i].kind == ACTION_HAND && s->log[i].hand == verb;
        return n;
}

const char *scene_orders(const struct scene *s, size_t since, char *buf, size_t size)
{
        static const char letters[HAND_VERB_N] = {
                [HAND_SIGNAL] = 'I', [HAND_KILL_TREE] = 'K',  [HAND_FREEZE] = 'F', [HAND_THAW] = 'T',
                [HAND_LOCK] = 'L',   [HAND_CHECKPOINT] = 'C', [HAND_STOP] = 'S',   [HAND_RESTORE] = 'R',
                [HAND_UNLOCK] = 'U', [HAND_HOLD] = 'H'
        };
        size_t n = 0;

        for (size_t i = since; i < s->n_log && n + 1 < size; i++)
                if (s->log[i].kind == ACTION_HAND)
                        buf[n++] = letters[s->log[i].hand];
        buf[n] = '\0';
        return buf;
}

void scene_says_as(struct scene *s, uint64_t lease_id, enum park_call_what what, uint64_t seconds, uint32_t uid)
{
        struct input input = { .kind = INPUT_PARK };

        input.park = (struct park_call){ .token = s->next_token++,
                                         .lease_id = lease_id,
                                         .uid = uid,
                                         .what = (uint8_t) what,
                                         .for_ms = SECONDS(seconds),
                                         .keep_alive_ms = SECONDS(seconds) };
        scene_step_for(s, &input, input.park.token);
}

void scene_says(struct scene *s, uint64_t lease_id, enum park_call_what what, uint64_t seconds)
{
        const struct lease *lease = scene_lease(s, lease_id);

        scene_says_as(s, lease_id, what, seconds, lease ? lease->uid : 1000);
}

void scene_yields(struct scene *s, uint64_t lease_id)
{
        const struct lease *lease = scene_lease(s, lease_id);
        struct scene_row *row = scene_row(s, lease->binding.owner.pid, lease->device);

        if (row)
                *row = s->rows[--s->n_rows];
        scene_says(s, lease_id, PARK_CALL_YIELDED, 0);
}

void scene_cost(struct scene *s, uint32_t uid, const char *consumer, enum way_out_kind way, uint64_t out_s,
                uint64_t back_s)
{
        struct habit *habit = world_habit(s->world, uid, consumer);

        assert_non_null(habit);
        habit->costs[way] = (struct way_cost){ .n = 1, .out_ms = SECONDS(out_s), .back_ms = SECONDS(back_s) };
}
