/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who is never a target, known by the file it runs and not by its name (failures F49, security S10): what the hands would refuse
 * at the signal is known to the core before it decides. It is their list (hands/protect.h) without what root's own file adds.
 */
#include <stdbool.h>
#include "hands/protect.h"
#include "model/process.h"
#include "wire/eyes.h"

enum { GUARDS_KEPT_MS = 1000, GUARDS_WAY_IN_MAX = 16 };

struct guards {
        struct protect_list list;
        size_t n_way_in; /* of the list, the files that people log in by: how it is told, no more */
        struct program_id way_in[GUARDS_WAY_IN_MAX];
        uint64_t looked_ms;
        bool looked;
};

/* @helper: a program beside which lessor's other ones are. The files are looked at again after GUARDS_KEPT_MS. */
void guards_look(struct guards *guards, const char *helper, uint64_t now_ms);
/* Pure: what the list makes of a guard that the facts alone gave; one that they gave stays. */
enum process_guard guards_of(const struct guards *guards, const struct eyes_process *process, enum process_guard known);
