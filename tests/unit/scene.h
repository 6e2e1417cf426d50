/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A scene for the arbiter: a world of numbers that is told nothing but inputs, and a made-up card that answers whenever
 * the core wants to look. It reads like the example it plays:
 *
 *      struct scene s;
 *      scene_begin(&s);
 *      uint32_t card = scene_device(&s, GiB(24));
 *      uint64_t a = scene_request(&s, (struct ask) { .bytes = GiB(16), .slot_s = 600 });
 *      scene_tick_to_s(&s, 600);
 *      assert_waits(&s, a);
 *      scene_end(&s);
 *
 * After every step: the world's own check, ids of actions that go on without a hole, no lease that ends twice.
 * Time starts at SCENE_START_MS, which is second 0 of the scene.
 */
#include <stdbool.h>
#include <stdint.h>
#include "arbiter/arbiter.h"
#include "arbiter/free.h"
#include "cm.h"
#include "model/world.h"

#define MiB(n) ((uint64_t) (n) << 20)
#define GiB(n) ((uint64_t) (n) << 30)
/* For examples with tenths: "20.1 of 24" is TENTHS(201) of TENTHS(240). One factor for all figures of an example. */
#define TENTHS(n) ((uint64_t) (n) *MiB(100))
#define SECONDS(n) ((uint64_t) (n) *1000)
#define HOURS(n) SECONDS((uint64_t) (n) *3600)
#define SCENE_START_MS HOURS(1000)

enum {
        ALICE = 1001,
        BOB = 1002,
        CAROL = 1003,
        SCENE_DEVICES_MAX = 4,
        SCENE_ROWS_MAX = 256,
        SCENE_LEASES_MAX = 65536, /* ids a scene keeps count of */
};

struct scene_row {
        struct identity identity;
        uint64_t bytes;
        uint32_t device;
        uint32_t flags; /* enum row_flags */
};

/* What the made-up driver says about one device. */
struct scene_card {
        char uuid[UUID_TEXT_MAX];
        uint64_t total_bytes;
        uint64_t hidden_bytes; /* used, and listed for nobody */
        uint64_t says_used;    /* with `lies`: this, whatever the rows say */
        uint64_t taken_ago_ms; /* how old a reading is when it arrives */
        bool lies;
        bool used_unknown;
        bool rows_unknown; /* no per-process figures at all */
        bool unsettled;    /* total-list-total do not agree */
};

struct scene {
        struct world *world;
        struct actions *out; /* of the last step */
        struct config config;
        uint64_t now_ms;
        bool sparse_checks; /* a scene of thousands: the world's own check, which walks all of it, every 64th step */
        uint64_t n_steps;
        bool eyes_closed; /* ACTION_READ is not answered, and a request is not preceded by a look */
        struct scene_card cards[SCENE_DEVICES_MAX];
        uint32_t n_cards;
        struct scene_row rows[SCENE_ROWS_MAX];
        uint32_t n_rows;
        uint64_t next_token;
        uint32_t next_pid;

        struct action *log; /* every action since the beginning */
        size_t n_log, n_log_max;
        struct action answer; /* to the last request or call */
        void (*hands)(struct scene *s,
                      const struct action *order); /* carries orders out (scene_park.h); NULL: nobody does */
        size_t n_done;                             /* of the log: what it has been shown */
        bool hands_work;
        uint32_t soon; /* devices to be looked at a little later (bits) */
        void (*recorded)(struct scene *s, const struct input *input); /* each step, with s->out (scene_journal.h) */
        void *record;
        uint8_t *ended; /* by lease id: how often it ended */
};

/* What somebody asks for. Zero means the ordinary: P3, uid 1000, collected at once, a process of its own. */
struct ask {
        uint32_t uid;
        uint8_t priority;
        uint64_t bytes;
        uint64_t percent_milli;
        uint64_t slot_s;
        uint64_t wait_s;
        uint64_t start_s; /* a booking, from that second of the scene on */
        uint64_t follows; /* a daily booking, after that lease */
        uint64_t ttl_s;   /* a heartbeat lease with this TTL */
        uint32_t quota;   /* row of the asker's */
        bool admin, no_wait, uncollected, managed, kill_at_end, kill_left, exclusive, connection, learned, filler,
                no_stop, daily;
        uint8_t manager;       /* enum manager_kind: of a unit or container called "trainer" */
        uint8_t named, proven; /* ways out: WAY_OUT_BIT() | … */
        uint32_t pid;          /* the owner's; 0 = a new one */
        uint64_t cgroup_id;
        uint8_t more;     /* a gang: devices beside the first */
        const char *uuid; /* "" or NULL = any device */
        const char *name;
        const char *consumer; /* NULL = none */
};

void scene_begin(struct scene *s);
void scene_begin_with(struct scene *s, const struct config *config);
void scene_end(struct scene *s);

/* One input at the scene's time, and what follows from it (looks that were ordered, unless the eyes are closed). */
void scene_step(struct scene *s, struct input *input);
/* The same for a call that is answered by @token; the answer stays in s->answer. */
void scene_step_for(struct scene *s, struct input *input, uint64_t token);

uint32_t scene_device(struct scene *s, uint64_t total_bytes); /* found and read once; its index */
void scene_device_health(struct scene *s, uint32_t device, enum device_health health);
const char *scene_uuid(const struct scene *s, uint32_t device);
void scene_look(struct scene *s); /* every device is read now */
void scene_look_at(struct scene *s, uint32_t device);
/* A reading of a device made up on the spot, with no rows. */
void scene_reading(struct scene *s, uint32_t device, uint64_t taken_ms, uint64_t used_bytes, bool settled);

void scene_eyes(struct scene *s, bool answering); /* silent: nothing is read either */
void scene_config(struct scene *s);               /* s->config is the configuration from now on */
void scene_restart(struct scene *s, struct restart_facts facts);

uint64_t scene_s(const struct scene *s);                /* seconds since the beginning */
void scene_tick(struct scene *s);                       /* one TICK, now */
void scene_tick_to_s(struct scene *s, uint64_t second); /* a TICK a second until then, the last at it */
void scene_wait_to_s(struct scene *s,
                     uint64_t second); /* ticks, but none at that very moment: it is `second`, untold */

/* Its lease's id (also while it waits), or 0 when it was refused. The answer stays in s->answer. */
uint64_t scene_request(struct scene *s, struct ask ask);
void scene_activate(struct scene *s, uint64_t lease_id, uint32_t root_pid, uint64_t cgroup_id);
/* A lease over process ask.pid, and with ask.cgroup_id over that cgroup. Its id, or 0 when it was refused. */
uint64_t scene_adopt(struct scene *s, struct ask ask);
/* @change: what, and its figures; by its owner unless it names a uid. The answer stays in s->answer. */
void scene_change(struct scene *s, uint64_t lease_id, struct change change);
/* What came of an order to the hands. */
void scene_outcome(struct scene *s, const struct action *order, enum outcome outcome, enum hand_why why);
void scene_renew(struct scene *s, uint64_t lease_id);
void scene_release(struct scene *s, uint64_t lease_id); /* by its owner */
void scene_release_by(struct scene *s, uint64_t lease_id, uint32_t uid, bool admin);
void scene_owner_ended(struct scene *s, uint64_t lease_id); /* the binding is gone, and says nothing of workers */

uint32_t scene_owner(struct scene *s, uint64_t lease_id); /* pid */
uint32_t scene_process(struct scene *s, uint32_t pid, uint32_t parent_pid,
                       uint64_t cgroup_id); /* facts; 0 = a new pid */
uint32_t scene_process_of(struct scene *s, uint32_t uid, uint32_t pid, uint32_t parent_pid, uint64_t cgroup_id);
struct scene_row *scene_row(struct scene *s, uint32_t pid, uint32_t device); /* NULL = nothing there */
void scene_process_uses(struct scene *s, uint32_t pid, uint32_t device, uint64_t bytes,
                        uint32_t flags);                             /* and a look */
void scene_uses(struct scene *s, uint64_t lease_id, uint64_t bytes); /* its owner's process, where it was granted */
uint32_t scene_stranger(struct scene *s, uint32_t device, uint64_t bytes);
uint32_t scene_graphics(struct scene *s, uint32_t device, uint64_t bytes); /* a display's process */
void scene_process_ends(struct scene *s, uint32_t pid);                    /* its memory is gone with it */
void scene_process_vanishes(struct scene *s, uint32_t pid); /* the driver lists it no more; no exit seen */

/* What no input of this part of the core can make, put into the tables as later parts will. */
void scene_ledger(struct scene *s, uint64_t charged_bytes);
void scene_usage(struct scene *s, uint32_t uid, uint64_t mib_s);                              /* as of now */
uint64_t scene_parked(struct scene *s, uint32_t device, uint64_t bytes, uint64_t back_bytes); /* wants back; its id */
struct holder *scene_claim(struct scene *s, uint32_t device, enum claim_kind kind, uint64_t bytes);
/* A tenant with @bytes on the device, as of the last reading. From here on the eyes stay closed (the next look would take its
 * processes for strangers' ones): only requests at this very moment find a fresh reading. */
struct holder *scene_tenant(struct scene *s, uint32_t device, uint64_t bytes, const struct ways_out *ways);
void scene_tenant_leaves(struct scene *s, struct holder *tenant);   /* and the eyes open again */
void scene_pin(struct scene *s, uint64_t lease_id, uint64_t end_s); /* 0 = without an end */
void scene_hold(struct scene *s, uint64_t lease_id);                /* from now on */
void scene_unhold(struct scene *s, uint64_t lease_id);

struct lease *scene_lease(struct scene *s, uint64_t lease_id);           /* NULL when it is gone */
struct entry *scene_entry(struct scene *s, uint64_t lease_id);           /* NULL when it does not wait */
const char *scene_state(struct scene *s, uint64_t lease_id);             /* "gone" when it is */
const struct holder *scene_head_claim(struct scene *s, uint32_t device); /* NULL = none */
uint64_t scene_free(struct scene *s, uint32_t device);
uint64_t scene_reserved(struct scene *s, uint32_t device); /* Σ r by the scene's own counting of the table */

/* The log. @since is an s->n_log remembered earlier, 0 = from the beginning; lease 0 = whoever; NULL when there is none. */
const struct action *scene_last(const struct scene *s, uint64_t lease_id, enum action_kind kind);
const struct action *scene_last_rule(const struct scene *s, uint64_t lease_id, enum rule rule);
size_t scene_count(const struct scene *s, size_t since, uint64_t lease_id, enum action_kind kind);
size_t scene_count_rule(const struct scene *s, size_t since, uint64_t lease_id, enum rule rule);

/* The parts of a world that may be in use; two worlds are the same when all of these are. */
bool scene_world_same(const struct world *a, const struct world *b);
/* Makes @to the same; @to was a copy of an earlier state of that world, or zeroed. */
void scene_world_copy(struct world *to, const struct world *from);
/* The same but for the clock and the numbering of actions: the books. */
bool scene_books_same(struct world *a, struct world *b);

#define assert_state(s, id, state) assert_string_equal(scene_state((s), (id)), lease_state_name(state))
#define assert_runs(s, id) assert_state((s), (id), LEASE_ACTIVE)
#define assert_waits(s, id) assert_state((s), (id), LEASE_QUEUED)
#define assert_gone(s, id) assert_string_equal(scene_state((s), (id)), "gone")
#define assert_kind(action, k)                                                                                         \
        assert_string_equal(action_kind_name((enum action_kind)(action).kind), action_kind_name(k))
#define assert_rule(action, r) assert_string_equal(rule_name((enum rule)(action).why.rule), rule_name(r))
#define assert_bytes(got, expected) assert_int_equal((got), (expected))
