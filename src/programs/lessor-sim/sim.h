/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The verbs of lessor-sim, which share the machinery of lessor's (programs/lessor/verb.h), and what they all need. */
#include <stdint.h>
#include "base/error.h"
#include "programs/lessor/verb.h"

enum { SIM_EXIT_OK = 0, SIM_EXIT_BAD = 1, SIM_EXIT_USAGE = 2 };

int sim_run_main(const struct verb *verb, int argc, char **argv);
int sim_reproduce_main(const struct verb *verb, int argc, char **argv);
int sim_replay_main(const struct verb *verb, int argc, char **argv);
int sim_policies_main(const struct verb *verb, int argc, char **argv);
int sim_synth_main(const struct verb *verb, int argc, char **argv);
int sim_fetch_main(const struct verb *verb, int argc, char **argv);
int sim_check_main(const struct verb *verb, int argc, char **argv);
int sim_completion_main(const struct verb *verb, int argc, char **argv);
int sim_help_main(const struct verb *verb, int argc, char **argv);
int sim_version_main(const struct verb *verb, int argc, char **argv);

extern const struct option synth_options[], check_options[], reproduce_options[], replay_options[], fetch_options[];
extern const char run_more[], reproduce_more[], replay_more[], fetch_more[], policies_more[], synth_more[],
        check_more[], sim_completion_more[];

/* "lessor-sim VERB: words" on stderr; returns SIM_EXIT_BAD. */
int sim_fail(const struct verb *verb, const struct error *err);
/* The value of an option that is a whole number. False: said, and the verb returns SIM_EXIT_USAGE. */
bool sim_number(const struct options *o, int row, uint64_t min, uint64_t max, uint64_t *ret);

struct placement_policy;
struct shown_points;
/* Values of options that several verbs take. NULL, false: said, and the verb returns SIM_EXIT_USAGE. */
const struct placement_policy *sim_policy(const struct options *o);
bool sim_seeds(const struct options *o, uint64_t *ret_first, size_t *ret_n); /* "10": 1 to 10; "5-8" */
bool sim_points(const struct options *o, struct shown_points *points);
