/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is known in words of each process with device memory that lives, beside the world, which knows them by numbers. Of one that
 * comes to be a stranger it goes to the journal, in the batch that says so (store/journal_audit.h).
 */
#include <stddef.h>
#include "model/action.h"
#include "model/input.h"
#include "store/journal_audit.h"
#include "wire/eyes.h"

struct daemon;

struct audits_row {
        struct journal_audit audit; /* its facts are ours */
        uint64_t told_ms;           /* world time */
};

struct audits {
        struct audits_row *rows;
        size_t n, cap;
};

/* The eyes have told of a process; @settled: as the core will be told. */
void audits_told(struct daemon *d, const struct eyes_process *told, const struct process *settled);
/* An input was stepped, and its record is pending. */
void audits_stepped(struct daemon *d, const struct input *input, const struct actions *out);
/* Who lives with this pid; NULL: nobody with device memory. Good until the loop goes on. */
const struct journal_audit *audits_find(const struct audits *a, uint32_t pid);
void audits_fini(struct audits *a);
