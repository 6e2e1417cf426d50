/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is known in words of each process with device memory that lives or ended a moment ago, beside the world, which knows
 * them by numbers. Of one that comes to be a stranger it goes to the journal, in the batch that says so
 * (store/journal_audit.h); where its container's engine is asked, in one that comes behind the answer.
 */
#include <stdbool.h>
#include <stddef.h>
#include "api/engine.h"
#include "base/script.h"
#include "model/action.h"
#include "model/input.h"
#include "store/journal_audit.h"
#include "wire/eyes.h"
#include "wire/warden.h"

struct daemon;

struct audits_row {
        struct journal_audit audit; /* its facts are ours */
        uint64_t told_ms;           /* world time */
        uint64_t ended_ms;          /* 0 = it lives */
        bool is_asked;              /* its engine, which has not answered yet */
        bool awaits_hands;          /* they will say which program it runs */
        bool is_due;                /* for the journal, once both have, or have had long enough */
};

enum { AUDITS_QUESTIONS_MAX = 8 };

/* To an engine, about the container of one of them. */
struct audits_question {
        struct daemon *daemon;
        struct identity who;
        struct engine_question *question; /* NULL = none */
};

struct audits {
        struct audits_row *rows;
        size_t n, cap;
        struct audits_question questions[AUDITS_QUESTIONS_MAX];
};

/* The eyes have told of a process; @settled: as the core will be told. */
void audits_told(struct daemon *d, const struct eyes_process *told, const struct process *settled);
/*
 * The hands have seen which program it runs, called @path, and the file of its script, where they were asked for that. NULL: they cannot.
 * What was known before stays.
 */
void audits_seen(struct daemon *d, struct identity who, const char *path, const struct warden_answer *seen);
/* What it runs as a program of that name, by its command line at first sight. */
enum script_kind audits_script(const struct daemon *d, struct identity who, const char *program, char *ret,
                               size_t size);
/* An input was stepped, and its record is pending. */
void audits_stepped(struct daemon *d, const struct input *input, const struct actions *out);
/* Who lives with this pid, or has ended a moment ago; NULL: nobody with device memory. Good until the loop goes on. */
const struct journal_audit *audits_find(const struct audits *a, uint32_t pid);
void audits_stop(struct audits *a); /* nobody is asked any more; the loop has to run once more */
void audits_fini(struct audits *a);
