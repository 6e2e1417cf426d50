/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the API needs of the daemon around it. The API never changes the world: it reads it between two steps, hands in
 * inputs, and is told the actions after they were committed (api_server_on_actions).
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "model/action.h"
#include "model/input.h"
#include "model/world.h"
#include "store/account.h"
#include "store/audited.h"
#include "store/story.h"

/* What was last said about a lease. */
struct api_told {
        uint64_t rev; /* id of the last action about it; grows with every change */
        uint8_t kind; /* enum action_kind */
        struct reason why;
};

struct api_health {
        const char *version;
        const char *gpu; /* "ok", "stale", "none", "mismatch" */
        bool gpu_age_known;
        uint64_t gpu_age_ms; /* since the driver last answered */
        bool host_pids_known;
        bool host_pids; /* false: in a pid namespace, where some holders cannot be looked up */
        const char *
                process_events; /* "told", "refused", "namespace", "missing", "none"; NULL: the eyes have not said yet */
        int process_events_errno; /* why not; 0 = that says nothing */
        bool accounting_known;
        bool accounting; /* the kernel's process accounting is read */
        uint64_t started_wall_ms;
        const char *degraded;         /* NULL, or why: "the journal cannot be written: …" */
        const char *read_only_reason; /* NULL, or who owns the card */
        const char *
                config_error; /* NULL, or why lessord.conf or a file of tenants was not taken: the last good one counts */
        const char *hands;    /* "ok", "away" (nothing can be ended or taken back) */
        const char *hands_words; /* their version, or why they are away */
        const char *gate_mode;   /* NULL: no gate is configured; else "log" or "on" */
        const char *gate_state;  /* "log", "on": in force; "off", "away", "blocked": everybody passes */
        const char *gate_words;  /* its keeper's version, or why not */
        bool gate_known;         /* the figures are */
        uint32_t gate_leases;    /* how many may pass */
        uint64_t gate_refused;   /* opens, since its keeper began */
        uint32_t gate_last_uid;  /* whose the last of them was */
        const char *units_words; /* NULL: units can be stopped and started; or why not */
        const char *sleep_words; /* NULL: sleep and shutdown wait for us; or why not */
};

/* One journalled action. */
struct api_event {
        uint64_t now_ms;  /* world time of the decision */
        uint64_t wall_ms; /* for people */
        struct action action;
};

struct api_event_query {
        uint64_t after;    /* ids above this one */
        uint64_t lease_id; /* 0 = all */
        uint32_t limit;
        bool newest; /* the last @limit instead of the first; still oldest first */
};

/* Return false to stop early. */
typedef bool api_event_fn(void *cls, const struct api_event *event);

/* What would come of a request. */
struct api_planned {
        struct action answer; /* granted, queued or refused */
        uint64_t bytes;       /* what it asks for, resolved; 0 = it was refused before that */
        struct plan plan;     /* whose memory would be taken back for it; n_victims 0 = nobody's */
        uint8_t sized;        /* enum sized; SIZED_ASKED where it was refused */
        uint8_t sized_by;     /* SIZED_LEARNED, SIZED_RAISED: how many runs */
};

/* What is to be read from the whole journal, and what was. */
struct api_study {
        enum { API_STUDY_STORY, API_STUDY_USAGE, API_STUDY_AUDIT } kind;
        struct story_subject subject; /* of a story */
        bool by_consumer;             /* of a usage */
        uint64_t since_wall_ms;       /* 0 = all that is kept */
        struct audited_look look;     /* of audits; the host says the boot */
};

struct api_studied {
        struct api_study study;
        int r; /* negative errno with words: the journal could not be read */
        struct error err;
        struct story story;
        struct account account;
        struct audited audited;
};

/* @studied is the host's, and may be changed until this returns. */
typedef void api_study_fn(void *ctx, uint64_t token, struct api_studied *studied);

struct api_host {
        void *ctx;
        /* Read only, and only until control goes back to the loop. */
        struct world *(*world)(void *ctx);
        /* World time of this turn of the loop, and the wall time of a world time. */
        uint64_t (*now_ms)(void *ctx);
        uint64_t (*wall_of_ms)(void *ctx, uint64_t world_ms);
        /* The input is copied (rows of a reading too) and stepped at the end of this turn. -EAGAIN with words: the journal
         * cannot be written just now; -ENOSPC: the disk is full. Nothing was taken then. */
        int (*submit)(void *ctx, const struct input *input, struct error *err);
        /* False while the world is ahead of the disk (a batch is being written): nothing that shows it may be answered, and
         * no events can be read. api_server_on_settled() tells when it is over. */
        bool (*settled)(void *ctx);
        void (*health)(void *ctx, struct api_health *ret);
        bool (*told)(void *ctx, uint64_t lease_id, struct api_told *ret);
        /* How long ago the driver was last looked at, for this device; false = never. */
        bool (*looked_ms)(void *ctx, uint32_t device, uint64_t *ret_age_ms);
        /* Events from the journal, oldest first, at most query->limit. Negative errno with words. */
        int (*events)(void *ctx, const struct api_event_query *query, api_event_fn *each, void *cls, struct error *err);
        /* The journal read on another thread; @done is called in the loop, once. False: too many do, or there is no memory. */
        bool (*study)(void *ctx, const struct api_study *study, api_study_fn *done, void *done_ctx, uint64_t token);
        /* What is known in words of who lives with this pid, or did a moment ago, and has device memory, under a lease or not;
         * NULL: nothing. Good until control goes back to the loop. */
        const struct journal_audit *(*facts)(void *ctx, uint32_t pid);
        /* The core asked on a copy of the world; changes nothing. False: no memory for it. */
        bool (*plan)(void *ctx, const struct request *request, struct api_planned *ret);
        /* Which row of model/quota.h counts for a user with these groups, and what that row is called: "everyone",
         * "user alice", "group ml". */
        uint32_t (*quota_row)(void *ctx, uint32_t uid, const uint32_t *gids, size_t n_gids);
        const char *(*quota_name)(void *ctx, uint32_t row);
        /* Who runs what is in this cgroup and would stop it for @uid: a unit, a container. False: nobody, *ret_why says how so. */
        bool (*manager_of)(void *ctx, const char *cgroup_path, uint32_t uid, bool is_admin, struct manager *ret,
                           const char **ret_why);
        /* The configuration: what each key says (a new reference, NULL without memory), and reading it again, all of it or
         * nothing (negative errno with words: file and line). */
        json_t *(*config_json)(void *ctx);
        json_t *(*tenants_json)(void *ctx);
        int (*reload)(void *ctx, struct error *err);
};
