/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The daemon: one loop, one world, and a thread that waits for the disk (writer.h). Whatever comes in during a turn of the
 * loop (requests, readings, exits, timers) is collected as inputs; at its end turn_run() steps them in order, has them
 * committed with their actions to the journal in one transaction, and only then lets the actions out (turn.c).
 */
#include <stdbool.h>
#include <uv.h>
#include "api/server.h"
#include "base/error.h"
#include "model/world.h"
#include "programs/lessord/audits.h"
#include "programs/lessord/unseen.h"
#include "programs/lessord/bookings.h"
#include "programs/lessord/conf.h"
#include "programs/lessord/doors.h"
#include "programs/lessord/eyes_link.h"
#include "programs/lessord/facts.h"
#include "programs/lessord/finish.h"
#include "programs/lessord/gate.h"
#include "programs/lessord/hands.h"
#include "programs/lessord/inputs.h"
#include "programs/lessord/looks.h"
#include "programs/lessord/managers.h"
#include "programs/lessord/owners.h"
#include "programs/lessord/parked_watch.h"
#include "programs/lessord/paths.h"
#include "programs/lessord/reload.h"
#include "programs/lessord/tenants_kept.h"
#include "programs/lessord/told.h"
#include "programs/lessord/warn.h"
#include "programs/lessord/world_clock.h"
#include "programs/lessord/writer.h"
#include "senses/process.h"
#include "store/journal.h"

enum {
        TICK_MS = 1000,
        SLEPT_MS = 2000,      /* beyond what reading two clocks one after the other can differ */
        CLOCK_STEP_MS = 900,  /* a leap second is one */
        STORE_BUSY_MS = 2000, /* how long a request waits for a lock that others hold on the journal, then 503 */
        STORE_RETRY_FIRST_MS = 100,
        STORE_RETRY_BUSY_MS = 20, /* then it is only looked whether it is gone */
        STORE_RETRY_MOST_MS = 1000,
};

/* The actions of one turn, kept until they are committed. */
struct batch {
        struct action *items;
        size_t n, cap;
};

struct daemon {
        uv_loop_t loop;
        struct conf conf;
        struct doors doors; /* until the API has them */
        enum conf_source conf_source;
        char conf_path[320];
        char conf_error[400]; /* why the file was not taken; "" = it was */
        struct tenants_kept tenants;
        struct paths paths;
        struct process_source processes;
        struct world_clock clock;
        struct world *world;
        struct journal *journal; /* the writer's while it is busy */
        struct writer *writer;
        struct api_server *api;
        struct eyes_link *eyes;
        struct hands hands;
        struct gate gate;
        struct owners owners;
        struct owners roots;
        struct parked_watch parked;
        struct facts facts;
        struct looks looks;
        struct warn warn;
        struct finish finish;
        struct managers managers;
        struct bookings bookings;
        struct told told;
        struct audits audits;
        struct unseen unseen;
        int lock_fds[2];
        uint64_t started_wall_ms;
        int exit_status;
        bool ready, stopping, asleep_known;

        /* one reading of the clocks a turn; 0 = not read yet */
        uint64_t now_ms, wall_ms;
        uint64_t asleep_ms; /* as of the last reading */
        int64_t wall_ahead_ms; /* the wall clock before all time since the start, sleep too: changes when somebody sets it */
        struct inputs inputs;
        bool inputs_can_wait; /* all of them: daemon_submit_patiently() */
        struct inputs taken;  /* those of the batch that is under way */
        struct batch batch;
        uv_prepare_t before_sleep; /* the loop may sleep now: the clocks are read anew after it */
        uv_check_t turn;
        uv_idle_t busy;       /* active while inputs wait: the loop does not sleep then */
        uint32_t n_untrimmed; /* inputs since the heap was last given back */
        bool tidying_is_late; /* since a tick: the journal is tidied as soon as nothing is under way */
        uv_timer_t tick, retry, company;
        uint64_t eyes_ms; /* how often the eyes look; 0 = not told yet */
        uv_signal_t signals[3];

        bool store_failed;
        int store_code; /* errno */
        char store_words[400];
        uint64_t store_retry_ms;
};

uint64_t daemon_now_ms(struct daemon *d);
uint64_t daemon_wall_ms(struct daemon *d);
/* Never refused: what cannot be kept ends the daemon (out of memory), so that nothing is silently lost. */
void daemon_submit(struct daemon *d, const struct input *input);
/* In its order like any other, but while nobody waits for anything it has a moment until it is stepped: it then shares the
 * turn and the commit of what comes next. */
void daemon_submit_patiently(struct daemon *d, const struct input *input);
void daemon_give_up(struct daemon *d, const char *what, const struct error *err);

/* The loop does not sleep while inputs wait that can be stepped. */
void daemon_stay_awake(struct daemon *d);

/* ---- turn.c ---- */
void turn_run(struct daemon *d);
/* What the writer answered; a writer_done_fn. */
void turn_answered(void *ctx, enum writer_order order, int r, const struct error *err);
/* The actions of a batch that waited for the gate go out now; see gate.h. */
void turn_let_out(struct daemon *d);
/* The world is what the disk has, and the journal may be read. */
bool turn_is_settled(const struct daemon *d);
/* The world as the journal has it, into d->world (zeroed first). Also after a commit that failed. */
int turn_load_world(struct daemon *d, struct journal_restored *ret, struct error *err);

/* Watch the processes that the world's leases hang on; @end as for owners_sync(). Roots first: an owner that is gone leaves
 * its lease orphaned only while the command lives. */
void turn_watch_processes(struct daemon *d, enum end_reason end);

/* ---- pace.c ---- */
/* Does anybody wait for memory, or memory for somebody? */
bool pace_somebody_waits(const struct world *world);
/* Is there anybody for whom a look that was ordered decides something? */
bool pace_an_answer_is_awaited(const struct world *world);
bool pace_has_leases(const struct world *world);
/* After a turn: how often to look, and whether the seconds tick. */
void pace_set(struct daemon *d);
/* The inputs can wait, but not for ever. */
void pace_wait_for_company(struct daemon *d);

/* ---- outage.c ---- */
/* A batch could not be stored: @taken are its inputs, @code an errno. The facts among them go back to d->inputs. */
void outage_begin(struct daemon *d, struct inputs *taken, int code, const struct error *why);
void outage_answered(struct daemon *d, int r, const struct error *err);

/* ---- main.c ---- */
/* To the API, what of the configuration may change while it runs. */
void daemon_tell_limits(struct daemon *d);

/* ---- host.c ---- */
struct api_host host_for_api(struct daemon *d);
struct eyes_host host_for_eyes(struct daemon *d);
/* `rev` and reason of every living lease, from the journal. */
int host_load_told(struct daemon *d, struct error *err);
