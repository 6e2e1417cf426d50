/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One step of parking or thawing one process, from the record before it to the record after it (wire/warden.h says what each verb
 * means). Runs in a helper process of its own: it loads the driver, may take as long as the driver likes, and is never ended.
 */
#include "wire/warden.h"

struct step_place {
        int parked;      /* the folder of records */
        int cgroup_root; /* -1 = no cgroup v2 */
};

enum step_how {
        STEP_ORDERED,
        STEP_ENDING,  /* it is checkpointed only to be killed */
        STEP_PATIENT, /* UNLOCK of who is held: waits for who works on it, and for it to run */
};

/* An order whose verb parks (warden_verb_parks). `kept` of the answer is left to the caller. */
struct warden_answer step_run(const struct step_place *place, const struct warden_order *order, enum step_how how);
