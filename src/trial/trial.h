/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The world of the trial: what is really so (cards, processes, host memory, the hands and their records, clients), the daemon
 * between it and the core (which may lose a turn, or all it had not committed), and the books that the trial keeps of what the
 * core said. One struct, no globals, no clock, no chance but the seed's: the same scenario gives the same bytes.
 *
 *      script.c   what happens when         card.c     devices, and what is read of them
 *      process.c  processes                 client.c   who asks, and what becomes of it
 *      hands.c    orders and records        daemon.c   step, commit, act; die, and come back
 *      bookings.c promises for later         stranger.c who has memory without asking, and administrators
 *      book.c     what was said             check*.c   what must never happen (design 5)
 *      play.c     one life, from event to event       happen.c   the events of its script
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "arbiter/arbiter.h"
#include "base/error.h"
#include "base/number.h"
#include "model/world.h"
#include "trial/fault.h"
#include "trial/random.h"
#include "trial/script.h"
#include "trial/written.h"

#define SECONDS(n) ((uint64_t) (n) *1000)
#define MINUTES(n) SECONDS((uint64_t) (n) *60)
#define HOURS(n) MINUTES((uint64_t) (n) *60)
#define MIB(n) ((uint64_t) (n) << 20)
#define TRIAL_START_MS HOURS(500) /* 0 means "never" in too many places */

enum {
        CLIENTS_MAX = 2600,
        LEASES_SEEN_MAX = 6000, /* ids, over a life */
        PROCS_MAX = 512,        /* alive, or not yet forgotten */
        ROWS_SEEN_MAX = 128,    /* of one reading */
        LOOKS_MAX = 16,         /* readings under way */
        ORDERS_MAX = 512,
        TIMERS_MAX = 8192,
        LAGS_MAX = 64,
        PLACES_SEEN_MAX = 64, /* units and containers of strangers */
        ANCESTORS_KEPT = 4,
        NOBODY = UINT32_MAX,
};

/* ---- what is really so ---- */

enum record_truth { /* as the hands write it, by the process (wire/record.h) */
                    REC_NONE,
                    REC_LOCKED,
                    REC_HELD,
                    REC_CHECKPOINTING,
                    REC_CHECKPOINTED,
                    REC_STOPPED,
                    REC_RESTORING,
                    REC_FAILED,
};

/* What the eyes see of a process that is nobody's. */
struct looks_like {
        uint64_t program, script, command, place;
        uint8_t guard; /* enum process_guard */
        uint8_t runs;  /* enum process_runs */
};

/* What was said of it, and done to it, while it was nobody's. */
struct enforced {
        uint64_t noticed_ms, term_ms, kill_ms; /* said; 0 = not */
        uint64_t left_alone_ms;                /* since when nothing speaks for it and nothing is done; 0 = not so */
        uint8_t n_signals;                     /* that the hands have sent */
        uint8_t n_returns;                     /* of its unit, before it */
        bool alarmed;
};

struct proc {
        bool used, alive;
        bool told;  /* the eyes have named it to the daemon that runs now */
        bool known; /* listed while its lease lived, and at each look since then */
        bool graphics;
        bool no_figure; /* of those whose memory nobody can tell */
        bool is_owner;  /* a wrapper, with nothing on a card */
        bool is_root;
        bool ignores_term;
        bool unkillable_once;
        bool misplaced;
        bool was_restored;
        struct identity identity;
        uint32_t n_ancestors;
        struct identity ancestors[ANCESTORS_KEPT]; /* parent first */
        uint32_t client;                           /* index, or NOBODY: a stranger */
        uint32_t uid, card;
        uint64_t cgroup;
        uint64_t bytes;        /* on the card, unless it is away */
        uint64_t target_bytes; /* grows up to there */
        uint64_t host_bytes;   /* while it is away */
        uint64_t died_ms;
        uint64_t term_ms; /* SIGTERM as carried out by the hands */
        bool locked, away, stopped;
        uint8_t record; /* enum record_truth */
        uint64_t record_lease_id, record_bytes;
        struct looks_like looks_like;
        struct enforced enforced;
        struct random random;
};

struct lag {
        uint64_t until_ms, bytes;
        uint32_t client;
};

struct row_said {
        struct identity identity;
        uint64_t bytes;
        uint64_t lease_id; /* whose it really is; 0 = nobody's */
        bool known, graphics;
        bool ghost; /* listed by its pid alone: nobody is told whose it is */
};

/* What was last said of a device. */
struct said {
        bool told, used_known, per_process, settled, fresh;
        uint64_t taken_ms, changed_ms, used_bytes, arrived_ms;
        uint32_t n_rows;
        struct row_said rows[ROWS_SEEN_MAX];
};

struct card {
        char uuid[UUID_TEXT_MAX];
        uint64_t total_bytes, driver_bytes, hidden_bytes;
        bool lost;
        bool lied; /* somebody on it may have taken what he was not promised, so that others run out (card.c) */
        uint64_t lied_ms;
        uint64_t foreign_grew_ms;
        uint64_t driver_seen_bytes;
        struct lag lags[LAGS_MAX];
        uint32_t n_lags;
        struct random random;
        struct said said;
        bool dirty; /* changed since it was last read: the eyes notice by themselves, in a while */
};

struct look {
        bool used;
        uint32_t card;
        uint64_t taken_ms, total_bytes, used_bytes;
        bool used_known, per_process, settled;
        uint32_t n_rows;
        struct occupancy rows[ROWS_SEEN_MAX];
        struct row_said said[ROWS_SEEN_MAX];
};

enum order_state { ORDER_FREE, ORDER_WORKING, ORDER_TO_TELL };

struct order {
        uint8_t state; /* enum order_state */
        bool lost;
        struct action order;
        struct hand_outcome outcome;
};

enum client_phase {
        CLIENT_AWAY,    /* has not asked yet */
        CLIENT_ASKED,   /* waits for the answer */
        CLIENT_WAITS,   /* queued */
        CLIENT_GRANTED, /* and not collected */
        CLIENT_RUNS,
        CLIENT_LEAVES, /* its processes are ending, or it has released */
        CLIENT_GONE,
};

enum gave { GAVE_NOTHING, GAVE_MEMORY, GAVE_COMMAND };

struct client {
        uint8_t phase; /* enum client_phase */
        uint8_t gave;  /* enum gave: what it did when it was asked to give way */
        bool adopts;
        bool never_collects;
        bool started;    /* its command runs, or ran */
        bool at_barrier; /* that is made, and waits: nobody has heard of it yet */
        bool lost_answer;
        bool came_late;
        bool vanishing;
        uint64_t arg[EVENT_ARGS]; /* of its EVENT_ASK */
        uint64_t token;
        uint64_t lease_id;
        uint64_t cgroup;
        uint32_t owner, root;   /* processes, or NOBODY */
        uint64_t reacted_to_ms; /* park.started_ms of what it last reacted to */
        uint8_t reacted_state;
        uint64_t end_ms;
        uint32_t n_crashes;
        uint64_t booked_ms;  /* 0 = wants it now */
        uint64_t follows_id; /* of a series: the lease before */
        struct random random;
};

/* ---- what was said: the trial's own books, by lease ---- */

enum life { LIFE_NONE, LIFE_WAITS, LIFE_GRANTED, LIFE_ACTIVE, LIFE_DRAINS, LIFE_ENDED };
enum parked { PARKED_NOT, PARKED_ASKED, PARKED_OUT, PARKED_BACK, PARKED_STUCK };

struct book {
        uint8_t life;   /* enum life */
        uint8_t parked; /* enum parked */
        bool managed, exclusive, kill_at_end, kill_left, adopted, backfill, owner_seen;
        bool by_person; /* parked until somebody says so */
        bool ending;    /* by kill_at_end or kill_left: something was ordered */
        uint8_t way;    /* enum way_out_kind, while asked */
        uint8_t ways;   /* named */
        uint8_t priority;
        uint8_t n_ended; /* I8 */
        bool stepped_aside;
        bool filler;
        bool gave_way;  /* was parked, and has not come back: nobody leaves it alone on its device */
        bool was_head;  /* with a start in sight: it keeps that place (design 4.2) */
        uint8_t n_more; /* a gang: so many devices beside the first */
        uint32_t client, uid, device;
        uint64_t devices; /* all of them, bit mask */
        uint64_t bytes, arrived_ms, granted_ms, slot_ms, slot_end_ms;
        uint64_t asked_ms, parked_ms, until_ms, back_ms;
        uint64_t slot_stands_ms; /* since when its slot does not run; 0 = it runs */
        uint64_t blocked_ms;     /* the last "could not be tried" */
        uint64_t failed_ms;
        uint64_t charged_bytes; /* by the outcomes of its checkpoints */
        uint64_t fits_since_ms; /* I9 */
        uint64_t fits_seen_ms;  /* since when the last look shows that, too; 0 = it does not */
        uint64_t due_ms;        /* of a booking */
        uint64_t series_again_ms;
        uint64_t held_since_ms;  /* in place, for nobody */
        uint64_t waits_since_ms; /* for memory, not for a device that could be used at all */
};

/* Whose program may stay, as the core said. */
struct approval_said {
        uint64_t id; /* 0 = an empty row */
        uint32_t uid;
        uint64_t program, script, command, place; /* place: 0 = anywhere */
        uint64_t until_ms;                        /* 0 = for ever */
        uint8_t runs;                             /* enum process_runs */
};

/* A unit or container, and how often something in it was ended. */
struct place_said {
        uint64_t place, program, script; /* place: 0 = an empty row */
        uint32_t uid;
        struct identity ended[2]; /* the last two, and when they were sent SIGTERM */
        uint64_t term_ms[2];
};

enum timer_kind {
        TIMER_NONE,
        TIMER_TICK,
        TIMER_SWEEP,        /* the eyes look by themselves */
        TIMER_LOOK,         /* a: card */
        TIMER_LOOK_ARRIVES, /* a: look */
        TIMER_ORDER_DONE,   /* a: order */
        TIMER_ORDER_TOLD,
        TIMER_PROC_GROWS, /* a: proc, b: its pid */
        TIMER_PROC_DIES,
        TIMER_EXIT_SEEN,
        TIMER_CLIENT, /* a: client: looks what became of it */
        TIMER_CLIENT_ENDS,
        TIMER_CLIENT_RENEWS,
        TIMER_CLIENT_YIELDS,
        TIMER_CLIENT_YIELDED,
        TIMER_CLIENT_TAKES_BACK,
        TIMER_CLIENT_RETURNS,
        TIMER_CLIENT_IDLE,
        TIMER_STRANGER_RETURNS, /* a: proc that ended, b: its pid */
        TIMER_DAEMON_UP,
        TIMER_EYES_BACK,
        TIMER_HANDS_BACK,
        TIMER_CARD_BACK,
        TIMER_HOST_BACK,
        TIMER_KIND_N,
};

struct timer {
        uint64_t at_ms, order; /* ties: first come */
        uint8_t kind;
        uint32_t a;
        uint64_t b;
};

struct count {
        uint64_t requests, grants, refusals, queued, ended, drained;
        uint64_t asked, parks, thaws, undone, stuck, plans, backfills, passes;
        uint64_t gangs, gang_parks;
        uint64_t held, let_go, rehearsed, forgiven, changed, cleared;
        uint64_t bookings, booked, series, moved;
        uint64_t would_end, warned, noticed, terms, strangers_killed, spared, strangers_ended, approved, stopped,
                given_up;
        uint64_t blocked, failed, orders, kills;
        uint64_t restarts, power_cuts, restored_steps;
        uint64_t steps, ticks, inputs, actions, readings, checks;
        uint64_t out_of_memory;
        uint64_t virtual_ms;
};

struct trial {
        const struct script *script;
        struct faults faults;
        struct count count;
        struct config config;
        bool verbose;

        uint64_t now_ms;
        uint64_t end_ms, quiet_ms;
        uint64_t wall_ahead_ms, wall_behind_ms; /* people's clock against the world's, in all */
        uint32_t next_event;
        uint64_t next_timer;
        struct timer timers[TIMERS_MAX]; /* a heap */
        uint32_t n_timers;
        bool busy; /* something may happen by time alone: tick every second */
        uint64_t busy_until_ms;

        struct card cards[CARDS_MAX];
        uint32_t n_cards;
        struct proc procs[PROCS_MAX];
        uint32_t n_procs;
        uint32_t next_pid, n_started;
        uint64_t last_death_ms;
        struct client clients[CLIENTS_MAX];
        uint32_t n_clients;
        struct look looks[LOOKS_MAX];
        struct host host;
        uint64_t cgroup_room_bytes;
        bool eyes_open;
        uint64_t unquiet_ms; /* since when nothing has come or gone that the books cannot follow at once */

        struct order orders[ORDERS_MAX];
        uint32_t n_orders; /* not free */
        bool hands_up;

        /* the daemon */
        bool up;
        bool degraded;
        bool rebooted;
        uint8_t cut; /* what becomes of the next write: enum fault, or FAULT_N */
        uint64_t down_ms, went_down_ms;
        uint64_t clock_ahead_ms; /* at its next start */
        uint64_t next_token;
        size_t n_snapshot, n_journal, n_before;
        uint32_t n_journalled;

        /* the books */
        struct book books[LEASES_SEEN_MAX];
        uint64_t last_lease_id;
        uint64_t next_action_id;
        uint64_t digest;
        uint8_t enforce_mode; /* as the core said */
        uint64_t enforce_mode_ms;
        struct approval_said approvals[APPROVALS_MAX];
        struct place_said places[PLACES_SEEN_MAX];
        struct input input; /* of this step: what its pointers point at may be gone */
        struct request sent;
        struct change sent_change;
        struct park_call sent_park;
        bool granted[CARDS_MAX]; /* in this step */
        bool fresh_before[CARDS_MAX];

        /* the first thing that must never happen and did */
        bool broken;
        char what[400];
        uint64_t broken_ms;

        /* what a new life finds as it was left */
        struct world *world;
        struct world *kept; /* the books at a moment; a world of rows alone, nothing may be asked of it */
        struct actions *out;
        uint8_t *snapshot, *journal, *before, *after, *scratch;
        size_t scratch_size;
        struct written *written; /* a journal that the life is written into as well; NULL = none */
        uint64_t stop_ms;        /* a life that is only looked into: it ends so long after it began; 0 = it is lived */
        sigjmp_buf out_of_here;
};

/* ---- trial.c: words, time ---- */

printf_like(2, 3) void trial_break(struct trial *t, const char *fmt, ...);     /* the life ends here, by a long jump */
printf_like(2, 3) void trial_say(const struct trial *t, const char *fmt, ...); /* with --verbose */
void timer_add(struct trial *t, uint64_t in_ms, enum timer_kind kind, uint32_t a, uint64_t b);
bool timer_take(struct trial *t, uint64_t until_ms, struct timer *ret);
uint64_t timer_next_ms(const struct trial *t);

/* ---- process.c ---- */

uint32_t proc_new(struct trial *t, uint32_t client, uint32_t uid, uint32_t card, uint32_t parent);
uint32_t proc_find(const struct trial *t, struct identity identity); /* NOBODY; also one that is dead */
void proc_die(struct trial *t, uint32_t p);
void proc_exit_seen(struct trial *t, uint32_t p);
void proc_grow(struct trial *t, uint32_t p);
bool proc_take(struct trial *t, uint32_t p, uint64_t bytes); /* false: the card is full */
void proc_give(struct trial *t, uint32_t p, uint64_t bytes);
void proc_forget_dead(struct trial *t);
void proc_facts(const struct trial *t, uint32_t p, struct process *ret);
static inline uint64_t proc_on_card_bytes(const struct proc *p)
{
        return p->used && p->alive && !p->away ? p->bytes : 0;
}

/* ---- card.c ---- */

uint64_t card_used_bytes(const struct trial *t, uint32_t card);
void card_lag(struct trial *t, const struct proc *p, uint64_t bytes);
uint64_t card_lags_of(const struct trial *t, uint32_t card, uint32_t client);
void card_look(struct trial *t, uint32_t card);         /* takes a reading; it arrives by a timer */
void card_look_arrives(struct trial *t, uint32_t look); /* and is told */
void card_tell(struct trial *t, uint32_t card);         /* INPUT_DEVICE */
void card_sweep(struct trial *t);
uint64_t card_list_bytes(const struct trial *t, uint32_t card, uint64_t lease_id);

/* ---- client.c, client_park.c, bookings.c ---- */

uint32_t client_new(struct trial *t, const uint64_t *arg);
void client_begins(struct trial *t, uint32_t c); /* and asks */
void booking_fill(struct trial *t, struct client *c, struct request *r);
void booking_owner_comes(struct trial *t, uint32_t c);
void bookings_tick(struct trial *t);
void client_ask(struct trial *t, const struct event *e);
void client_adopt(struct trial *t, const struct event *e);
void client_answer(struct trial *t, const struct action *a); /* by its token */
void client_look(struct trial *t, uint32_t c);               /* what is its lease now? */
void client_ends(struct trial *t, uint32_t c);
void client_renews(struct trial *t, uint32_t c);
void client_release(struct trial *t, uint32_t c);
bool client_is_away(const struct trial *t, uint32_t c); /* locked, parked or stopped: it does not get on */
void client_call(struct trial *t, uint32_t c, enum input_kind kind, uint32_t uid, bool admin);
void client_processes_end(struct trial *t, uint32_t c, bool workers_too);
void client_start(struct trial *t, uint32_t c, const struct lease *lease);
void client_proc_died(struct trial *t, uint32_t c, uint32_t p);
uint32_t client_by_number(const struct trial *t, uint64_t n);
uint32_t client_of_lease(const struct trial *t, uint64_t lease_id);
void client_park_call(struct trial *t, uint32_t c, enum park_call_what what, uint64_t for_ms, uint32_t uid, bool admin);
void client_asked(struct trial *t, uint32_t c, const struct lease *lease);
void client_thawing(struct trial *t, uint32_t c, const struct lease *lease);
void client_back_at_work(struct trial *t, uint32_t c, const struct lease *lease);
void client_park_timer(struct trial *t, const struct timer *timer);

/* ---- stranger.c ---- */

void stranger_comes(struct trial *t, const struct event *e);
void stranger_died(struct trial *t, uint32_t p);
void stranger_returns(struct trial *t, uint32_t p);
void stranger_call(struct trial *t, const struct event *e); /* an administrator says something about them */

/* ---- hands.c ---- */

uint64_t hands_limit_bytes(struct trial *t, const struct action *a, const struct proc *p);
void hands_take(struct trial *t, const struct action *a);
void hands_done(struct trial *t, uint32_t order);
void hands_told(struct trial *t, uint32_t order);
void hands_back(struct trial *t);
void hands_power_cut(struct trial *t);
/* After the daemon came back: records, then what came of orders nobody knows any more. */
void hands_tell_records(struct trial *t);
void hands_tell_lost(struct trial *t);
void hands_tell_kept(struct trial *t);

/* ---- daemon.c, journal.c ---- */

bool daemon_submit(struct trial *t, struct input *input); /* false: nobody is there to hear it */
void daemon_tick(struct trial *t);
void daemon_start(struct trial *t, bool first);
void daemon_watch_owners(struct trial *t);
void daemon_tell_host(struct trial *t);
void daemon_tell_config(struct trial *t);
void journal_begin(struct trial *t); /* a snapshot, nothing after it */
void journal_add(struct trial *t, const uint8_t *input, size_t n);
void journal_come_back(struct trial *t);
void journal_forget(struct trial *t); /* an empty world */
size_t journal_encode(struct trial *t, const struct world *world, uint8_t *to);
void journal_keep_books(struct trial *t);
bool journal_books_as_kept(struct trial *t, char *words, size_t n_words); /* since; false: and where they differ */
void trial_alloc(struct trial *t);
void trial_free(struct trial *t);

/* ---- book.c, check*.c ---- */

void book_action(struct trial *t, const struct action *a);
void book_input(struct trial *t, const struct input *input);
struct book *book_of(struct trial *t, uint64_t lease_id); /* NULL */
void book_changed(struct trial *t, uint32_t card);
void book_nobody_waited(struct trial *t, uint64_t ms); /* asleep, or nobody there: no time to have waited in */
bool book_lives(const struct book *b);
bool book_is_here(const struct book *b); /* counts on its devices */
static inline bool book_is_on(const struct book *b, uint32_t card)
{
        return (b->devices >> card & 1) != 0;
}

void check_step(struct trial *t); /* after every step that said something */
void check_time(struct trial *t); /* as time passes: I9 */
void check_grant(struct trial *t, const struct action *a);
void check_order(struct trial *t, const struct action *a);
void check_asked(struct trial *t, const struct action *a);
void check_beside_bookings(struct trial *t, const struct action *a, const struct book *later);
void check_promises_in_time(struct trial *t);
void check_hold(struct trial *t, const struct action *a);
void check_thawing(struct trial *t, const struct action *a);
void check_stuck(struct trial *t, const struct action *a);
void check_plan_began(struct trial *t, const struct action *a);
void check_stranger(struct trial *t, const struct action *a);
void check_enforced(struct trial *t, const struct action *a); /* ACTION_STRANGER, ACTION_ENFORCE */
void check_stranger_order(struct trial *t, const struct action *a);
void check_signal_sent(struct trial *t, const struct action *a, uint32_t p); /* by the hands */
void check_strangers_in_time(struct trial *t);
void check_strangers_slept(struct trial *t, uint64_t ms);
void check_restored(struct trial *t);
void check_silent_tick(struct trial *t);
void check_end(struct trial *t);
void check_memory(struct trial *t, uint32_t p, uint64_t bytes); /* an honest lease ran out of memory */
void check_free(struct trial *t, uint32_t card);
uint64_t check_committed_bytes(struct trial *t, uint32_t card);

/* ---- happen.c ---- */

void happen(struct trial *t, const struct event *e);
void host_back(struct trial *t);
void eyes_back(struct trial *t, const struct timer *timer);

/* ---- play.c ---- */

/* One life. True: nothing happened that must never happen. Otherwise @t->what says it, and when. */
bool trial_play(struct trial *t, const struct script *script, bool verbose);
