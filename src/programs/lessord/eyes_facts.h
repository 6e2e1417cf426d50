/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the eyes say → what the core is told. Pure; nothing here trusts a length or a text. */
#include "base/script.h"
#include "model/input.h"
#include "model/world.h"
#include "wire/eyes.h"

void eyes_facts_device(const struct eyes_device *in, struct device_facts *ret);
/* As it was known, and gone. */
void eyes_facts_lost_device(const struct device *known, struct device_facts *ret);
/* Device and inode of a file in one number: the same for the same file, and never 0. 0: not known. */
uint64_t eyes_facts_file_number(bool known, uint64_t dev, uint64_t inode);
/* What of @ret it runs, by @file, the number of its script (0: not known), and its command line, whose number is there already. */
void eyes_facts_script(enum script_kind kind, uint64_t file, struct process *ret);
/* @host_pids: the eyes see the host's numbers. */
void eyes_facts_process(const struct eyes_process *in, bool host_pids, struct process *ret);
/*
 * Whose descent it is, as far as that is known only to some ticks: an ancestor that is gone is the process that a lease is bound
 * to, where one with that number started then, and is no other one's. Where several leases' are possible, the one that the
 * token names is meant (LINK_TOKEN); it names nobody who is not possible (S10).
 */
void eyes_facts_settle(const struct eyes_process *in, const struct world *world, struct process *process);
/* @rows: room for ROWS_MAX; ret->rows points at it. taken_ms stays CLOCK_MONOTONIC. */
void eyes_facts_reading(const struct eyes_reading *in, struct occupancy *rows, struct reading *ret);
