/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Why it came so: what the journal knows about a lease, a process or one event, a step for each decision, with what led to
 * it. From events and records alone; bounded, the newest where there is more.
 *
 * A step follows from the input it was decided on (@because), and where another step is behind it, from that one (@cause_id):
 * what came of an order from the order, who was asked to give way from the plan, the plan from the request it was made for.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "model/input_text.h"
#include "model/reason.h"
#include "model/rhythm.h"
#include "store/journal.h"

enum {
        STORY_STEPS_MAX = 400, /* of each subject; what it is linked with comes on top, as much again at most */
        STORY_LEASES_MAX = 8,  /* of a process: under which it was, the latest */
        STORY_RHYTHMS_MAX = 16,
        STORY_KIND_MAX = 48,
};

enum story_kind { STORY_LEASE, STORY_EVENT, STORY_PROCESS };

struct story_subject {
        enum story_kind kind;
        uint64_t id; /* a lease's, an event's, or a pid */
};

struct story_step {
        uint64_t event_id; /* 0: nothing was decided, something was seen */
        uint64_t seq;      /* of its record */
        uint64_t wall_ms, now_ms;
        uint64_t lease_id;            /* 0 = none */
        uint64_t cause_id;            /* the event that led here; 0 = none, or not in here */
        uint32_t pid;                 /* 0 = none */
        uint16_t rule;                /* enum rule */
        uint8_t kind;                 /* enum action_kind; ACTION_NONE for what was seen */
        bool is_subject;              /* the event that was asked for */
        char what[STORY_KIND_MAX];    /* "parked", "order: checkpoint" */
        char text[REASON_TEXT_MAX];   /* its sentence; "" = none */
        char because[INPUT_TEXT_MAX]; /* what it was decided on; "": that record is not kept any more */
};

/* The same thing, again and again at equal distances. */
struct story_rhythm {
        uint64_t lease_id;
        uint64_t first_wall_ms, last_wall_ms;
        uint64_t period_ms;
        uint64_t n;
        uint16_t rule;
        char what[STORY_KIND_MAX];
};

struct story {
        struct story_step *steps; /* oldest first */
        size_t n_steps;
        bool is_cut; /* there is more, older */
        uint64_t leases[STORY_LEASES_MAX];
        uint32_t n_leases;
        uint32_t n_processes; /* STORY_PROCESS: so many had this pid, one after another */
        struct story_rhythm rhythms[STORY_RHYTHMS_MAX];
        uint32_t n_rhythms;
        uint64_t since_wall_ms; /* the oldest event that is kept; 0 = there is none */
        uint64_t n_damages;     /* passed over (STORY_PROCESS reads all of it) */
};

/* 0, with no step where nothing is known of it. @ret is to be ended by story_fini() in any case. */
int story_read(struct journal *j, const struct story_subject *subject, struct story *ret, struct error *err);
void story_fini(struct story *story);

/*
 * "L17" a lease, "P3120" a process, "E4711" an event; a number alone may be any of them: the first of which something is known
 * is meant. -EINVAL with words.
 */
struct story_word {
        struct story_subject subjects[3];
        uint32_t n;
};
int story_word_parse(const char *word, struct story_word *ret, struct error *err);
/* "lease L17", "event 4711", "pid 3120". Returns @buf. */
enum { STORY_SUBJECT_TEXT_MAX = 40 };
const char *story_subject_text(const struct story_subject *subject, char buf[STORY_SUBJECT_TEXT_MAX]);
