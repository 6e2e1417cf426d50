/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The verbs of `lessor`, and of `lessor-sim` with a table of its own: --help, the suggestions for a mistyped word, the option
 * parser and the test that compares the man pages with all of it read the same rows.
 */
#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"

enum exit_code {
        LESSOR_EXIT_OK = 0,
        LESSOR_EXIT_REFUSED = 1, /* lessord answered, and the answer is no */
        LESSOR_EXIT_USAGE = 2,
        LESSOR_EXIT_AWAY = 69,       /* lessord does not answer, or may not be asked */
        LESSOR_EXIT_WAIT_OVER = 124, /* `run`, `lease acquire`: waited as long as it was willing to */
        LESSOR_EXIT_OWN = 125,       /* `run`: refused, a bad option: lessor itself, not the command */
        LESSOR_EXIT_CANNOT_RUN = 126,
        LESSOR_EXIT_NOT_FOUND = 127,
};

struct option {
        const char *name;  /* without the dashes */
        const char *value; /* what it takes, for --help; NULL = nothing; in brackets: it may be left away */
        const char *help;
        char letter;       /* the short form: 'q' for -q; 0 = none */
        const char *words; /* what completion offers for the value: complete.h */
};

struct verb {
        const char *name;
        const char *synopsis; /* behind "lessor NAME " */
        const char *brief;
        const struct option *options; /* ends with a row without a name; --help goes without saying */
        const char *more;             /* paragraphs below the options; NULL = none */
        bool own_codes;               /* of `run`: usage errors are 125, because 2 may be the command's */
        int (*main)(const struct verb *verb, int argc, char **argv); /* argv[0] is the verb */
        const struct option *shared; /* more rows, which other verbs have too; NULL = none */
        const struct verb *sub;      /* what may stand behind it (`lease show`); NULL = nothing */
        const char *operands;        /* what completion offers for its words: complete.h */
};

/* Row @row of both tables, the shared ones first; NULL behind the last. */
const struct option *verb_option(const struct verb *verb, int row);

/* ---- reading options ---- */

enum { OPTIONS_END = -1, OPTIONS_OPERAND = -2, OPTIONS_HELP = -3, OPTIONS_WRONG = -4 };

struct options {
        const struct verb *verb;
        int argc;
        char **argv;
        int at;
        const char *value;    /* of the option or the operand just read */
        bool only_operands;   /* past "--" */
        bool operands_end_it; /* `run`: the first operand begins somebody else's words */
};

void options_init(struct options *o, const struct verb *verb, int argc, char **argv);
/* The row's index; OPTIONS_OPERAND; OPTIONS_END (at = index of the first word not read); OPTIONS_HELP; OPTIONS_WRONG,
 * with words printed. */
int options_next(struct options *o);
const char *option_name(const struct options *o, int row); /* "priority" */

int verb_print_help(const struct verb *verb);                                          /* to stdout; returns 0 */
printf_like(2, 3) int verb_usage_error(const struct verb *verb, const char *fmt, ...); /* returns the exit code */

/* The most similar of @names (ends with NULL) to @word; NULL when none is near. */
const char *nearest_word(const char *word, const char *const *names);

/* The tables, and whose they are: "lessor", as it calls itself. */
extern const char verb_program[];
extern const struct verb verbs[];
const struct verb *verb_find(const struct verb *table, const char *name);

int verb_run_main(const struct verb *verb, int argc, char **argv);
int verb_status_main(const struct verb *verb, int argc, char **argv);
int verb_devices_main(const struct verb *verb, int argc, char **argv);
int verb_processes_main(const struct verb *verb, int argc, char **argv);
int verb_queue_main(const struct verb *verb, int argc, char **argv);
int verb_events_main(const struct verb *verb, int argc, char **argv);
int verb_why_main(const struct verb *verb, int argc, char **argv);
int verb_group_main(const struct verb *verb, int argc, char **argv);
int verb_acquire_main(const struct verb *verb, int argc, char **argv);
int verb_show_main(const struct verb *verb, int argc, char **argv);
int verb_renew_main(const struct verb *verb, int argc, char **argv);
int verb_release_main(const struct verb *verb, int argc, char **argv);
int verb_renice_main(const struct verb *verb, int argc, char **argv);
int verb_extend_main(const struct verb *verb, int argc, char **argv);
int verb_pin_main(const struct verb *verb, int argc, char **argv); /* and unpin */
int verb_adopt_main(const struct verb *verb, int argc, char **argv);
int verb_unadopt_main(const struct verb *verb, int argc, char **argv);
int verb_plan_main(const struct verb *verb, int argc, char **argv);
int verb_replay_main(const struct verb *verb, int argc, char **argv);
int verb_park_main(const struct verb *verb, int argc, char **argv);
int verb_thaw_main(const struct verb *verb, int argc, char **argv);
int verb_idle_main(const struct verb *verb, int argc, char **argv); /* and busy */
int verb_clear_main(const struct verb *verb, int argc, char **argv);
int verb_resume_main(const struct verb *verb, int argc, char **argv);
int verb_book_main(const struct verb *verb, int argc, char **argv);
int verb_book_list_main(const struct verb *verb, int argc, char **argv);
int verb_book_cancel_main(const struct verb *verb, int argc, char **argv);
int verb_enforce_main(const struct verb *verb, int argc, char **argv);
int verb_approve_main(const struct verb *verb, int argc, char **argv);
int verb_approvals_main(const struct verb *verb, int argc, char **argv);
int verb_unapprove_main(const struct verb *verb, int argc, char **argv);
int verb_audit_main(const struct verb *verb, int argc, char **argv);
int verb_costs_main(const struct verb *verb, int argc, char **argv);
int verb_limits_main(const struct verb *verb, int argc, char **argv);
int verb_config_check_main(const struct verb *verb, int argc, char **argv);
int verb_config_show_main(const struct verb *verb, int argc, char **argv);
int verb_journal_verify_main(const struct verb *verb, int argc, char **argv);
int verb_tenants_list_main(const struct verb *verb, int argc, char **argv);
int verb_tenants_show_main(const struct verb *verb, int argc, char **argv);
int verb_tenants_match_main(const struct verb *verb, int argc, char **argv);
int verb_tenants_check_main(const struct verb *verb, int argc, char **argv);
int verb_usage_main(const struct verb *verb, int argc, char **argv);
int verb_completion_main(const struct verb *verb, int argc, char **argv);
int verb_doctor_main(const struct verb *verb, int argc, char **argv);
int verb_rescue_main(const struct verb *verb, int argc, char **argv);
int verb_help_main(const struct verb *verb, int argc, char **argv);
int verb_version_main(const struct verb *verb, int argc, char **argv);

extern const struct option run_options[], acquire_options[], json_options[], events_options[], no_options[],
        rescue_options[], doctor_options[], change_options[], pin_options[], adopt_options[], plan_options[],
        limits_options[], status_options[], replay_options[], park_options[], thaw_options[], idle_options[],
        clear_options[], book_options[], enforce_options[], approve_options[], why_options[], usage_options[],
        audit_options[], tenants_options[], tenants_match_options[];
extern const char run_more[], acquire_more[], lease_more[], renice_more[], extend_more[], pin_more[], adopt_more[],
        unadopt_more[], plan_more[], limits_more[], config_more[], config_check_more[], config_show_more[],
        status_more[], completion_more[], doctor_more[], rescue_more[], replay_more[], park_more[], thaw_more[],
        idle_more[], clear_more[], resume_more[], costs_more[], book_more[], book_list_more[], book_cancel_more[],
        enforce_more[], approve_more[], approvals_more[], unapprove_more[], why_more[], usage_more[], journal_more[],
        journal_verify_more[], processes_more[], audit_more[], tenants_more[], tenants_check_more[],
        tenants_list_more[], tenants_show_more[], tenants_match_more[];
