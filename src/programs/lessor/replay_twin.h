/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Two worlds that are told the same inputs: one under the configuration that was recorded, one under another. What differs
 * between them comes from the configuration, and from nothing else.
 *
 * Ticks that decided nothing are in no journal, but under another configuration they may decide something: both worlds get
 * one each second in which somebody waits or holds a lease, while lessord ran.
 *
 * The inputs are those of the history as it was. A program that would have started earlier is not seen earlier, and one that
 * would not have started at all is a stranger there: what comes out is what would have been decided on these readings.
 */
#include "base/error.h"
#include "model/config.h"
#include "programs/lessor/replay_story.h"
#include "store/walk.h"

struct twin_host {
        void *ctx;
        /* Which row of the other configuration is this user's? */
        uint32_t (*quota_row)(void *ctx, uint32_t uid);
        /* A change that was asked of a lease (renice, pin, …) would have been answered otherwise. */
        void (*answer)(void *ctx, const struct action *was, const struct action *would, const struct story_moment *at);
        void (*damage)(void *ctx, const char *words);
};

struct twin;

/* @config: the other one. @kept_free_bytes: of it on a platform that needs that (WSL); counts where the recorded one has any. */
int twin_new(struct twin **ret, const struct config *config, uint64_t kept_free_bytes, const struct twin_host *host,
             struct error *err);
void twin_free(struct twin *t); /* NULL is fine */
/* Tells the whole journal to both; then the stories are complete. @ret_records: those that count. */
int twin_run(struct twin *t, struct journal *j, const struct walk_since *since, uint64_t *ret_records,
             struct error *err);
struct stories *twin_stories(struct twin *t);
