/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the hands refuse, whatever the brain says (security S22): a pure function over facts, and the two memories it needs - who was
 * asked to end, and how many orders there were. In doubt the answer is no, and it names the first reason.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/rate.h"
#include "hands/protect.h"
#include "hands/settings.h"
#include "hands/target.h"
#include "wire/warden.h"

enum { GRACE_MAX = 1024, KIN_MAX = 64 };

/* A SIGTERM that the hands sent. All zero = free. */
struct grace_entry {
        uint32_t pid, owner_uid;
        uint64_t start_ticks, pidfd_inode;
        uint64_t cgroup_id; /* of the order; 0 = none: nobody's grace but its own */
        uint64_t term_ms;   /* CLOCK_MONOTONIC: a grace does not run while the machine sleeps */
};

struct grace_table {
        struct grace_entry entries[GRACE_MAX];
};

/* The first SIGTERM to an identity counts, later ones for the same cgroup change nothing. A full table forgets the oldest: whom it
 * forgets cannot be killed until asked again. Returns the entry, which is to be stored. */
const struct grace_entry *grace_note(struct grace_table *g, const struct target *t, uint64_t cgroup_id,
                                     uint64_t now_ms);
/* Who stands still hears nothing: once any of @owner's was stopped, all of them have to be asked again. Folders lie in each other
 * and processes move, so nobody says which of them it was; who parks one process (@pid, else 0) does.
 * Returns the next entry that was forgotten; NULL = no more. */
const struct grace_entry *grace_forget(struct grace_table *g, uint32_t owner_uid, uint32_t pid);

struct policy_facts {
        const struct warden_order *order;
        const struct target *target; /* whoever has the order's pid now */
        const struct protect_list *protect;
        const uint32_t *kin; /* pids of the hands, the brain, and their parents */
        size_t n_kin;
        const struct grace_table *grace;
        uint64_t now_ms;
};

/* WARDEN_WHY_NONE = allowed. */
enum warden_why policy_check(const struct settings *s, const struct policy_facts *f);
