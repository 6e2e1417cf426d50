/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The numbers of design 4: defaults there, all of them configuration. Part of the world, so that a decision can be replayed
 * under the configuration it was made with, or under another one.
 */
#include <stdbool.h>
#include <stdint.h>
#include "model/enforce.h"
#include "model/quota.h"

/* When an idle holder climbs the ladder (arbiter/idle.h): so long after it began to do nothing; 0 = never. */
struct idle_ladder {
        uint64_t notice_ms; /* its owner is told (30 min) */
        uint64_t
                reclaimable_ms; /* it counts as idle for whoever needs memory: its own ways out, nothing else (60 min) */
        uint64_t listed_ms;     /* an administrator finds it listed (24 h) */
};

enum { IDLE_CLASSES = 5 }; /* one a priority: class n is priority n + 1 */

struct config {
        uint64_t aging_ms;            /* one priority level is gained per so much waiting (600 s) */
        uint64_t usage_half_life_ms;  /* of a user's GPU-byte-seconds (one day) */
        uint64_t usage_forgiven_ms;   /* an entry that waited so long ranks as if its owner had used nothing (30 min) */
        uint64_t keep_rank_ms;        /* a holder keeps the ⌈e⌉ of its grant for so long (30 min) */
        uint64_t block_after_ms;      /* a head without a finite start blocks after so much waiting (30 min) */
        uint64_t block_max_ms;        /* and for at most so long (12 h) */
        uint64_t collect_ms;          /* a grant nobody collects is given up after (60 s) */
        uint64_t reading_max_age_ms;  /* grants use a reading at most so old (1000) */
        uint64_t slot_warning_ms;     /* warning before a slot ends (10 min) */
        uint64_t over_use_bytes;      /* beyond its reservation a lease may use (256 MiB) */
        uint64_t over_use_ms;         /* for so long (30 s) before it is warned of */
        uint64_t display_bytes;       /* reservation of the display on a card with graphics clients (1 GiB) */
        uint64_t kept_free_bytes;     /* never granted on any device; 0, or what the platform needs (WSL: 2 GiB, F33) */
        uint64_t ledger_cap_bytes;    /* host memory for parked work (32 GiB) */
        uint32_t margin;              /* levels more important a demander must be (1) */
        uint32_t ceiling_user;        /* smallest priority number a user may ask for (2) */
        uint32_t ceiling_admin;       /* (1) */
        uint32_t leases_per_user_max; /* a user's leases, waiting ones included (1024) */
        uint32_t leases_max;          /* ≤ LEASES_MAX */
        uint32_t entries_max;         /* ≤ ENTRIES_MAX */
        uint32_t waiting_per_user_max; /* (256) */

        /* What everyone may have, beside the three above; then who has something of his own (model/quota.h). */
        uint32_t pins_per_user_max;  /* pinned leases of a user (2) */
        uint32_t n_quotas;           /* rows in use */
        uint64_t bytes_per_user_max; /* (0 = no limit) */
        uint64_t slot_max_ms;        /* (0 = no limit) */
        uint64_t pin_max_ms;         /* (24 h) */
        uint64_t end_grace_ms;       /* between SIGTERM and SIGKILL, where an end was named (60 s) */
        uint64_t end_give_up_ms; /* a process that is still there so long after SIGKILL is told as unkillable (60 s) */
        /* taking memory back (design 4.3, 4.4) */
        uint64_t linger_ms; /* an idle holder is left alone so long by its equals and betters' inferiors (60 s) */
        uint64_t linger_filler_ms;      /* and by a filler, where its application says nothing of its own (5 min) */
        uint64_t immune_max_ms;         /* after a return, at most (120 s) */
        uint64_t immune_kill_ms;        /* where killing is the only way out: from the grant (600 s) */
        uint64_t ask_ms;                /* for a participant to give its memory back (30 s) */
        uint64_t lock_ms;               /* for the driver to end what it is doing (10 s) */
        uint64_t yield_grace_ms;        /* restart, kill: from SIGTERM to SIGKILL (30 s) */
        uint64_t back_off_ms;           /* after something could not be tried (30 s) */
        uint64_t card_quiet_ms;         /* before a restore nobody outside leases may have grown for so long (2 s) */
        uint64_t host_reserve_bytes;    /* host memory that parked work never takes; the larger of it (2 GiB) and */
        uint32_t host_reserve_milli;    /* so many thousandths of all of it (100) */
        uint32_t slack_milli;           /* a restore needs so many thousandths of the device more (20) */
        uint32_t returns_max;           /* within an hour (6) */
        uint32_t strikes_max;           /* in a row, then a way out is not used any more (5) */
        uint32_t bookings_per_user_max; /* (4) */
        uint64_t booking_lead_ms;       /* memory for a booking is taken back so much before it begins (30 s) */
        uint64_t booking_ahead_ms;      /* and it may lie so far ahead (14 days) */
        bool hold_in_place;             /* fillers are locked while somebody more important is busy */
        bool correct_sizes;             /* who names less than earlier runs came to gets what those did (true) */
        uint64_t hold_after_ms;         /* let go so long after that is idle (2 s) */
        struct quota quotas[QUOTAS_MAX];
        struct idle_ladder idle[IDLE_CLASSES];
        /* strangers (design 4.7) */
        uint8_t enforce_ceiling;                  /* enum enforce_mode: no mode beyond it (enforce) */
        uint32_t enforce_own_uid;                 /* only this user's processes; UINT32_MAX = everybody's */
        uint64_t enforce_sweep_ms;                /* they are judged so often, and when something is due (15 s) */
        uint64_t enforce_min_bytes;               /* with less nobody is judged (256 MiB) */
        uint64_t enforce_stay_ms;                 /* nor before it was there so long (30 s) */
        uint64_t enforce_notice_ms;               /* from the notice to SIGTERM (60 s) */
        uint64_t enforce_grace_ms[GRACE_CLASS_N]; /* from SIGTERM to SIGKILL (300 s) */
        uint64_t enforce_give_up_ms;              /* who is there so long after SIGKILL is told as unkillable (60 s) */
};

/* The defaults of design 4. */
void config_defaults(struct config *config);
/* What the callers of this row may have; a row that a reload took away is everyone's. */
struct quota config_quota(const struct config *config, uint32_t row);
