/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whose process is it? Pure over what is known of it. What is not known is neither yes nor no; a command line is its process's own
 * word, so a match by it serves to share and to ask, never to exempt (design 4.5).
 */
#include <stdbool.h>
#include <stdint.h>
#include "tenants/tenants.h"

enum match_verdict { MATCH_NO, MATCH_UNKNOWN, MATCH_YES };

struct match_program {
        bool program_known;
        const char *program; /* path of the file it runs */
        bool arguments_known;
        bool arguments_cut; /* there are more than are known */
        uint32_t n_arguments;
        const char *const *arguments; /* argv, from argv[0] on */
};

struct match_subject {
        struct match_program self;
        uint32_t n_ancestors;
        const struct match_program *ancestors; /* parent first */
        bool place_known;
        const char *unit; /* NULL = none */
        bool in_container;
        bool container_known;                                              /* its engine said: */
        const char *container, *image, *compose_service, *compose_project; /* NULL = none */
};

/* One condition of a rule. */
struct match_line {
        uint32_t rule;
        const char *key;    /* "arguments", "ancestor.program" */
        const char *wanted; /* the pattern */
        const char *had;    /* what it was held against; NULL = nothing of the kind, or too many to name */
        const char *why;    /* NULL, or why that is not known */
        uint8_t verdict;    /* enum match_verdict */
};
typedef void match_line_fn(void *ctx, const struct match_line *line);

/* @each may be NULL; else it is told of every condition, in order, also behind one that did not fit. */
enum match_verdict match_rule(const struct tenant *t, uint32_t rule, const struct match_subject *subject,
                              match_line_fn *each, void *ctx);
/* The best of its rules. *ret_rule: which; untouched for MATCH_NO. */
enum match_verdict match_tenant(const struct tenants *set, const struct tenant *t, const struct match_subject *subject,
                                uint32_t *ret_rule);

struct match {
        const struct tenant *tenant; /* NULL = no tenant's */
        uint32_t rule;
        bool by_place;      /* the rule names unit or container: those are not the process's own word */
        uint32_t n_others;  /* tenants that it would be as well, if it were not for this one */
        uint32_t n_unknown; /* tenants of which nobody can say */
};
/*
 * Of several that fit: an administrator's rule goes before a shipped one, a rule about the place before others, the process's own
 * properties before its ancestors' alone, more conditions before fewer, and in the end the name decides.
 */
void match_find(const struct tenants *set, const struct match_subject *subject, struct match *ret);
const char *match_role(const struct tenant *t, uint32_t rule); /* "main" */
