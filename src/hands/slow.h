/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The verbs that take their time: each runs in a helper process, which waits for the kernel as long as the settings say and
 * never longer. No loop here is without a bound, and nobody gets more than three signals (failures F54, F55).
 */
#include "hands/policy.h"
#include "wire/warden.h"

enum { SLOW_KILL_ROUNDS = 3, SLOW_LOOK_MS = 10 };

struct slow {
        const struct settings *settings;
        const struct warden_order *order;
        const struct protect_list *protect;
        const uint32_t *kin;
        size_t n_kin;
        int pidfd;
        int cgroup; /* -1 = only the one process */
};

/* What came of an order; the rest of the answer is 0. */
struct warden_answer slow_answer(const struct warden_order *o, enum warden_result result, enum warden_why why,
                                 int error);
/* The same when target_signal() said @error. */
struct warden_answer slow_not_signalled(const struct warden_order *o, enum warden_result result, int error);
/* True for the verbs that slow_run() knows. */
bool slow_is(enum warden_verb verb);
/* Carries the order out, or not, and says which; `kept` is left to the caller. */
struct warden_answer slow_run(const struct slow *s);
/* The quick opposite of FREEZE, here because it belongs to it. */
struct warden_answer slow_thaw(const struct slow *s);
