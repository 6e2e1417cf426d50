/* SPDX-License-Identifier: Apache-2.0 */
#include "programs/lessor/replay_twin.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "arbiter/arbiter.h"
#include "base/cleanup.h"
#include "base/number.h"

enum { TICK_MS = 1000, ORDERS_KEPT = 512 };
#define GAP_MAX_MS (UINT64_C(30) * 24 * 3600 * 1000) /* no lessord had nothing to write for longer */

/* No lease will ever have it, so whoever names it is answered as one that comes too late. */
#define NO_LEASE_ID ((UINT64_C(1) << 63) - 1)
#define NO_ORDER_ID NO_LEASE_ID

/* An order to the hands. What came of it is recorded under its number, which may be another in the other world. */
struct order {
        uint64_t id;
        size_t story;
        struct identity process;
        uint8_t hand;
};

struct orders {
        size_t n; /* given so far; the last ORDERS_KEPT are here */
        struct order items[ORDERS_KEPT];
};

struct twin {
        struct world *worlds[SIDES_N];
        struct config other;
        uint64_t kept_free_bytes;
        struct twin_host host;
        struct stories stories;
        struct orders orders[SIDES_N];
        uint64_t seq; /* the last record both know; 0: none */
        uint64_t n_records;
        struct actions out;
};

void twin_free(struct twin *t)
{
        if (!t)
                return;
        for (int side = 0; side < SIDES_N; side++)
                walk_world_free(t->worlds[side]);
        stories_fini(&t->stories);
        free(t);
}

int twin_new(struct twin **ret, const struct config *config, uint64_t kept_free_bytes, const struct twin_host *host,
             struct error *err)
{
        struct twin *t = calloc(1, sizeof(*t));

        if (!t)
                return error_set(err, ENOMEM, "no memory for two worlds");
        for (int side = 0; side < SIDES_N; side++)
                t->worlds[side] = walk_world_new();
        if (!t->worlds[AS_WAS] || !t->worlds[WOULD_BE]) {
                twin_free(t);
                return error_set(err, ENOMEM, "no memory for two worlds");
        }
        t->other = *config;
        t->kept_free_bytes = kept_free_bytes;
        t->host = *host;
        *ret = t;
        return 0;
}

struct stories *twin_stories(struct twin *t)
{
        return &t->stories;
}

/* ---- one input, two worlds ---- */

/* Where the platform needs something kept free is a fact of the machine that was recorded, not of the file. */
static struct config other_config(const struct twin *t, const struct config *was)
{
        struct config config = t->other;

        config.kept_free_bytes = was->kept_free_bytes != 0 ? t->kept_free_bytes : 0;
        return config;
}

static uint64_t other_id(struct twin *t, uint64_t lease_id)
{
        const struct story *story = stories_of_lease(&t->stories, AS_WAS, lease_id);

        return story && story->fates[WOULD_BE].lease_id != 0 ? story->fates[WOULD_BE].lease_id : NO_LEASE_ID;
}

static void note_order(struct twin *t, int side, const struct action *a)
{
        struct orders *orders = &t->orders[side];
        const struct story *story = stories_of_lease(&t->stories, side, a->lease_id);

        if (story)
                orders->items[orders->n++ % ORDERS_KEPT] = (struct order){ .id = a->id,
                                                                           .story = (size_t) (story - t->stories.items),
                                                                           .process = a->process,
                                                                           .hand = a->hand };
}

static const struct order *newest_order(const struct orders *orders, const struct order *like)
{
        size_t n = orders->n < ORDERS_KEPT ? orders->n : ORDERS_KEPT;

        for (size_t i = 0; i < n; i++) {
                const struct order *order = &orders->items[(orders->n - 1 - i) % ORDERS_KEPT];
                if (order->story == like->story && order->hand == like->hand &&
                    identity_equal(order->process, like->process))
                        return order;
        }
        return NULL;
}

/* The other world's last order of this kind about this process; one that was never given there has no outcome either. */
static uint64_t other_order(const struct twin *t, uint64_t order_id)
{
        const struct orders *was = &t->orders[AS_WAS];
        const struct order *found = NULL;

        for (size_t i = 0; i < ORDERS_KEPT && i < was->n; i++)
                if (was->items[i].id == order_id)
                        found = newest_order(&t->orders[WOULD_BE], &was->items[i]);
        return found ? found->id : NO_ORDER_ID;
}

/* The same fact, as the other world has to be told it: leases may have other numbers there, and users other limits. */
static struct input other_input(struct twin *t, const struct input *input)
{
        struct input other = *input;

        switch (input->kind) {
        case INPUT_CONFIG:
                other.config = other_config(t, &input->config);
                break;
        case INPUT_REQUEST:
                other.request.quota = t->host.quota_row(t->host.ctx, input->request.uid);
                break;
        case INPUT_CHANGE:
                other.change.quota = t->host.quota_row(t->host.ctx, input->change.uid);
                other.change.lease_id = other_id(t, input->change.lease_id);
                break;
        case INPUT_ACTIVATE:
        case INPUT_RENEW:
        case INPUT_RELEASE:
        case INPUT_OWNER_ENDED:
                other.call.lease_id = other_id(t, input->call.lease_id);
                break;
        case INPUT_PARK:
                other.park.lease_id = other_id(t, input->park.lease_id);
                break;
        case INPUT_RECORD:
                if (input->record.lease_id != 0)
                        other.record.lease_id = other_id(t, input->record.lease_id);
                break;
        case INPUT_OUTCOME:
                other.outcome.order_id = other_order(t, input->outcome.order_id);
                other.outcome.lease_id = other_id(t, input->outcome.lease_id);
                break;
        case INPUT_MANAGER:
                if (input->manager.order_id != 0)
                        other.manager.order_id = other_order(t, input->manager.order_id);
                other.manager.lease_id = other_id(t, input->manager.lease_id);
                break;
        }
        return other;
}

static void tell(struct twin *t, int side, struct story *request, const struct story_moment *at)
{
        for (uint32_t i = 0; i < t->out.n; i++) {
                stories_tell(&t->stories, side, &t->out.items[i], request, at);
                if (t->out.items[i].kind == ACTION_HAND)
                        note_order(t, side, &t->out.items[i]);
        }
}

/* A list that was full goes on with ticks; where the record has them too they find nothing left to say. */
static void tell_the_rest(struct twin *t, int side, const struct story_moment *at)
{
        const struct input tick = { .kind = INPUT_TICK, .now_ms = at->now_ms };

        while (t->out.more) {
                arbiter_step(t->worlds[side], &tick, &t->out);
                tell(t, side, NULL, at);
        }
}

static void step(struct twin *t, int side, const struct input *input, const struct story_moment *at)
{
        arbiter_step(t->worlds[side], input, &t->out);
        tell(t, side, NULL, at);
        tell_the_rest(t, side, at);
}

/* The answer to who asked with @token; false: there is none. */
static bool answer_of(const struct actions *out, uint64_t token, struct action *ret)
{
        for (uint32_t i = 0; i < out->n; i++)
                if (out->items[i].token == token && token != 0) {
                        *ret = out->items[i];
                        return true;
                }
        return false;
}

static void step_change(struct twin *t, const struct input inputs[SIDES_N], const struct story_moment *at)
{
        struct action answers[SIDES_N];
        bool answered = true;

        for (int side = 0; side < SIDES_N; side++) {
                arbiter_step(t->worlds[side], &inputs[side], &t->out);
                answered = answer_of(&t->out, inputs[side].change.token, &answers[side]) && answered;
                tell(t, side, NULL, at);
                tell_the_rest(t, side, at);
        }
        if (answered && at->counts &&
            (answers[AS_WAS].kind != answers[WOULD_BE].kind || answers[AS_WAS].why.rule != answers[WOULD_BE].why.rule))
                t->host.answer(t->host.ctx, &answers[AS_WAS], &answers[WOULD_BE], at);
}

/* Each side makes its lease, or none; only then it is known which two are the same. */
static int step_request(struct twin *t, const struct input inputs[SIDES_N], const struct story_moment *at,
                        struct error *err)
{
        const struct request *r = &inputs[AS_WAS].request;
        uint64_t ids[SIDES_N];

        for (int side = 0; side < SIDES_N; side++)
                ids[side] = t->worlds[side]->next_lease_id; /* what it will be called */
        struct story *story = stories_add(&t->stories, ids);
        if (!story)
                return error_set(err, ENOMEM, "no memory for what became of so many requests");
        story->asked_wall_ms = at->wall_ms;
        story->bytes = r->bytes;
        story->uid = r->uid;
        story->priority = r->priority;
        memcpy(story->name, r->name[0] ? r->name : r->consumer, sizeof(story->name));
        story->counts = at->counts;
        for (int side = 0; side < SIDES_N; side++) {
                arbiter_step(t->worlds[side], &inputs[side], &t->out);
                tell(t, side, story, at);
                if (t->worlds[side]->next_lease_id == ids[side])
                        stories_forget_lease(&t->stories, side, ids[side]);
                tell_the_rest(t, side, at);
        }
        return 0;
}

static int tell_both(struct twin *t, const struct input *input, const struct story_moment *at, struct error *err)
{
        const struct input inputs[SIDES_N] = { [AS_WAS] = *input, [WOULD_BE] = other_input(t, input) };

        if (input->kind == INPUT_REQUEST)
                return step_request(t, inputs, at, err);
        if (input->kind == INPUT_CHANGE)
                step_change(t, inputs, at);
        else
                for (int side = 0; side < SIDES_N; side++)
                        step(t, side, &inputs[side], at);
        return 0;
}

/* ---- the time between ---- */

static bool has_leases(const struct world *world)
{
        for (uint32_t i = 0; i < world->n_leases; i++)
                if (world->lease_ids[i] != 0)
                        return true;
        return false;
}

/* Where nobody waits and nobody holds anything, a tick has nothing to decide. */
static void tick_until(struct twin *t, const struct walk_record *record)
{
        uint64_t from_ms = t->worlds[AS_WAS]->now_ms, gap_ms = u64_sub0(record->input->now_ms, from_ms);

        if (gap_ms == 0 || gap_ms > GAP_MAX_MS || (!has_leases(t->worlds[AS_WAS]) && !has_leases(t->worlds[WOULD_BE])))
                return;
        for (uint64_t n = 1; n <= (gap_ms - 1) / TICK_MS; n++) {
                const struct input tick = { .kind = INPUT_TICK, .now_ms = from_ms + n * TICK_MS };
                const struct story_moment at = {
                        .now_ms = tick.now_ms,
                        .wall_ms = record->wall_ms - (gap_ms - n * TICK_MS),
                        .counts = record->counts,
                };
                for (int side = 0; side < SIDES_N; side++)
                        step(t, side, &tick, &at);
        }
}

/* A start opens a segment, and tells first what changed: before that there was no lessord, and no tick. */
static bool follows_a_start(const struct walk_record *record)
{
        return record->opens && (record->input->kind == INPUT_CONFIG || record->input->kind == INPUT_RESTART);
}

static int on_record(void *ctx, const struct walk_record *record, struct error *err)
{
        struct twin *t = ctx;
        const struct story_moment at = { .now_ms = u64_max(record->input->now_ms, t->worlds[AS_WAS]->now_ms),
                                         .wall_ms = record->wall_ms,
                                         .counts = record->counts };

        if (!follows_a_start(record))
                tick_until(t, record);
        t->seq = record->seq;
        t->n_records += record->counts;
        int r = tell_both(t, record->input, &at, err);
        return r < 0 || !t->stories.failed ? r
                                           : error_set(err, ENOMEM, "no memory for what became of so many requests");
}

/* The first snapshot begins both. Later ones are what the history as it was came to; the other has come to something else,
 * and goes on with it. Only where records are missing there is no other way than to begin both anew. */
static int on_segment(void *ctx, const struct walk_segment *segment, struct error *err)
{
        struct twin *t = ctx;
        const struct story_moment at = { .now_ms = segment->world->now_ms, .wall_ms = segment->wall_ms };
        const struct input same = { .kind = INPUT_CONFIG,
                                    .now_ms = segment->world->now_ms,
                                    .config = segment->world->config };

        if (t->seq != 0 && t->seq + 1 == segment->first_seq)
                return 0;
        for (int side = 0; side < SIDES_N; side++) {
                walk_world_zero(t->worlds[side]);
                world_copy(t->worlds[side], segment->world);
        }
        t->orders[AS_WAS].n = t->orders[WOULD_BE].n = 0;
        stories_begin(&t->stories, segment->world);
        t->seq = segment->first_seq - 1;
        return tell_both(t, &same, &at, err);
}

static void on_damage(void *ctx, const char *words)
{
        struct twin *t = ctx;
        t->host.damage(t->host.ctx, words);
}

int twin_run(struct twin *t, struct journal *j, const struct walk_since *since, uint64_t *ret_records,
             struct error *err)
{
        const struct walk_visitor visitor = {
                .ctx = t, .segment = on_segment, .record = on_record, .damage = on_damage
        };

        int r = journal_walk(j, since, &visitor, err);
        *ret_records = t->n_records;
        return r;
}
